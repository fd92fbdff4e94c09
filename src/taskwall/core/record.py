"""Frozen records, without the import cost of `dataclasses`.

`dataclasses` imports `inspect` and takes about as long as half an interpreter start, which every board command
would pay. Type checkers see an ordinary frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):  # noqa: ANN201
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """A value with named fields: compared by value, never changed, copied with `replace`."""

    __fields__: ClassVar[tuple[str, ...]] = ()
    __defaults__: ClassVar[dict[str, Any]] = {}
    __names__: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        own, values = cls.__annotations__, cls.__dict__
        cls.__fields__ += (*own,)
        cls.__names__ = frozenset(cls.__fields__)
        cls.__defaults__ = cls.__defaults__ | {name: values[name] for name in own if name in values}

    def __init__(self, *args: Any, **values: Any) -> None:
        state, fields = self.__dict__, self.__fields__
        state |= self.__defaults__
        state |= zip(fields, args, strict=False)
        state |= values
        if len(state) != len(fields) or len(args) > len(fields) or not self.__names__.issuperset(values):
            wrong = set(fields) ^ set(state) or {"too many positional values"}
            raise TypeError(f"{type(self).__name__}: missing or unknown fields: {', '.join(sorted(wrong))}")

    @classmethod
    def made_of(cls, values: dict[str, Any]) -> Self:
        """The record that keeps these values, known to be those of all its fields: for what is made in bulk."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        if not self.__names__.issuperset(changes):
            return type(self)(**{**self.__dict__, **changes})  # raises
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__, **changes)
        return changed
