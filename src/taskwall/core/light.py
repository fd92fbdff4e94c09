"""What hot commands use of `contextlib`, `functools` and their like, to load which takes a third as long as Python.

The same names with the same meaning, as far as they are used here. Rooms that no hot command loads take those of the
standard library.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import contextmanager, suppress
    from functools import cache, cached_property, lru_cache
    from types import SimpleNamespace
else:
    try:
        from _functools import _lru_cache_wrapper
    except ImportError:  # a Python whose `functools` has no half that is written in C
        from functools import lru_cache
    else:

        def lru_cache(maxsize):
            """Let a function remember its latest so many answers; for None, all."""
            return lambda function: _lru_cache_wrapper(function, maxsize, False, lambda *told: told)

    def cache(function):
        """Let a function remember its answers."""
        return lru_cache(None)(function)

    class cached_property:  # noqa: N801
        """A property that is computed once; then it is an attribute, until that is deleted."""

        def __init__(self, function):
            self.function, self.__doc__ = function, function.__doc__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            found = instance.__dict__[self.function.__name__] = self.function(instance)
            return found

    class SimpleNamespace:
        """An object with these attributes."""

        def __init__(self, **values):
            self.__dict__.update(values)

    class suppress:  # noqa: N801
        """A block that ends quietly at the first exception of these kinds."""

        def __init__(self, *kinds):
            self.kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, error, traceback):
            return kind is not None and issubclass(kind, self.kinds)

    def contextmanager(function):
        """Make of a generator function with one `yield` what `with` takes; the block stands in for the `yield`."""

        def block(*args, **values):
            return _Block(function(*args, **values))

        block.__doc__ = function.__doc__
        return block

    class _Block:
        def __init__(self, steps):
            self.steps = steps

        def __enter__(self):
            return next(self.steps)

        def __exit__(self, kind, error, traceback):
            if kind is None:
                for _ in self.steps:
                    raise RuntimeError("there is a second `yield`")
                return False
            try:
                self.steps.throw(error)
            except BaseException as raised:
                if raised is not error and not isinstance(raised, StopIteration):
                    raise
                error.__traceback__ = traceback  # without the generator's own lines
                return raised is not error
            raise RuntimeError("there is a second `yield`")


__all__ = ["SimpleNamespace", "cache", "cached_property", "contextmanager", "lru_cache", "suppress"]
