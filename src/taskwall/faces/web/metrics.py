"""The fleet as Prometheus scrapes it: its text format, version 0.0.4. Nothing of what tasks say is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...fleet import Fleet

Number = float | None

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(fleet: Fleet | None) -> str:
    """What is measured of a fleet; None when its board could not be read, which is then all that is told."""
    families = [_one("up", "Whether the board could be read.", int(fleet is not None)), *(_of(fleet) if fleet else ())]
    return "".join(f"{line}\n" for family in families for line in family)


def _of(fleet: Fleet) -> Iterator[list[str]]:
    """What cannot be told, such as the least of no leases, has no sample."""
    lefts = [session.left for session in fleet.sessions if session.left is not None]
    waits, took = fleet.decision.minutes if fleet.decision else 0, fleet.day.minutes
    yield _each("tasks", "Tasks by state.", "state", fleet.counts)
    yield _each("sessions", "Sessions that hold a task.", "host", Counter(session.host for session in fleet.sessions))
    yield _each("claims", "Claims by how their lease stands.", "lease", fleet.claims)
    yield _one("claims_lapsing", "Live claims in the last fifth of their lease.", fleet.lapsing)
    yield _one("lease_seconds_left_min", "Time until the next live lease lapses.", _seconds(min(lefts, default=None)))
    for name, work in (("hour", fleet.hour), ("day", fleet.day)):
        yield _one(f"completed_last_{name}", f"Tasks completed in the last {name}.", work.completed)
        yield _one(f"failed_attempts_last_{name}", f"Claims that failed or lapsed in the last {name}.", work.failed)
        yield _one(f"created_last_{name}", f"Tasks created in the last {name}.", work.created)
    yield _one("claim_to_done_median_seconds", "Median time from claim to completion in the last day.", _seconds(took))
    yield _one("oldest_decision_seconds", "How long the oldest decision has waited for a person.", _seconds(waits))


def _one(name: str, doc: str, value: Number) -> list[str]:
    return _family(name, doc, {"": value})


def _each(name: str, doc: str, label: str, values: Mapping[str, Number]) -> list[str]:
    return _family(name, doc, {f'{{{label}="{_escaped(key)}"}}': value for key, value in values.items()})


def _family(name: str, doc: str, values: Mapping[str, Number]) -> list[str]:
    """A gauge with a sample for each set of labels."""
    samples = [f"taskwall_{name}{labels} {value}" for labels, value in values.items() if value is not None]
    return [f"# HELP taskwall_{name} {doc}", f"# TYPE taskwall_{name} gauge", *samples]


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _seconds(minutes: Number) -> Number:
    return None if minutes is None else round(60 * minutes, 1)
