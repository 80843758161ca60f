"""Fault points: which fault is injected after which event of a run, and which points are tried."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ackfsm.driving.pytest_plugin._trace import TraceEvent
from ackfsm.terms import Anomaly, Fault, InputError
from ackfsm.text import meant, quoted, shown

_Name = TypeVar("_Name", Fault, Anomaly)

_NAMED = 60
"""How many characters of a wrong name a message shows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """``fault`` is injected after event ``number`` (from 1) of the run without faults."""

    number: int
    fault: Fault

    def __str__(self) -> str:
        """As ``--ackfsm-point`` takes it."""
        return f"{self.number}:{self.fault}"


@dataclasses.dataclass(frozen=True, slots=True)
class PointSelection:
    """The arguments of the marker ``ackfsm_faults``.

    Attributes:
        faults: the kinds, all if none is named.
        named: whether they were named: then each must be able to strike.
        never: anomalies that must not happen, besides those that the configuration promises absent.
        timeout: seconds of the clock that one ``ackfsm.run()`` takes at most; ``None``: as the command line says.
    """

    faults: tuple[Fault, ...]
    named: bool
    never: tuple[Anomaly, ...]
    timeout: float | None = None


def read_marker(arguments: Sequence[object], named: dict[str, object]) -> PointSelection:
    """Read the marker.  Raises :class:`InputError` for names that do not exist."""
    never, timeout = named.pop("never", ()), named.pop("timeout", None)
    if named:
        raise InputError(
            f"the marker ackfsm_faults has no {_quoted(next(iter(named)))}; it has never=[...] and timeout=SECONDS"
        )
    if isinstance(never, str) or not isinstance(never, Iterable):
        raise InputError(f"never={_quoted(never)} is no list of anomalies; write never=[{_quoted(never)}]")
    faults = tuple(dict.fromkeys(_member(Fault, "fault", name) for name in arguments))
    absent = tuple(dict.fromkeys(_member(Anomaly, "anomaly", name) for name in never))
    seconds = None if timeout is None else seconds_of("timeout", timeout)
    return PointSelection(faults or tuple(Fault), bool(faults), absent, seconds)


def seconds_of(what: str, given: object) -> float:
    """A number of seconds, infinity included.  Raises :class:`InputError` for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise InputError(f"{what} cannot be {_quoted(given)}; it is a number of seconds above 0 (inf: no limit)")
    return float(given)


def _member(kind: type[_Name], what: str, name: object) -> _Name:
    if isinstance(name, str) and name in list(kind):
        return kind(name)
    raise InputError(f"there is no {what} {_quoted(name)}{meant(name, kind)}; it is one of {', '.join(kind)}")


def _quoted(given: object) -> str:
    return quoted(given, _NAMED) if isinstance(given, str) else shown(repr(given), _NAMED)


def parse_point(text: str) -> Point:
    """``N:fault``.  Raises :class:`InputError` for anything else."""
    number, colon, fault = text.partition(":")
    if not colon or not number.isdecimal() or int(number) < 1:
        raise InputError(f"--ackfsm-point {_quoted(text)} is not N:fault, for example 12:consumer_crash")
    return Point(int(number), _member(Fault, "fault", fault))


def points_of(steps: Sequence[tuple[TraceEvent, frozenset[Fault]]], selection: PointSelection) -> list[Point]:
    """Every point of a run: after each of its events the selected faults that are possible there.

    Raises :class:`InputError` if a fault that was named is possible nowhere, so that trying it would show nothing.
    """
    points = [
        Point(number, fault) for fault in selection.faults for number, (_, may) in enumerate(steps, 1) if fault in may
    ]
    idle = [fault for fault in selection.faults if not any(point.fault is fault for point in points)]
    if idle and (selection.named or not points):
        raise InputError(
            f"{idle[0]} can strike nowhere in this run ({len(steps)} events): {_NEEDS.get(idle[0], 'nothing happened')}"
        )
    return points


_NEEDS = {
    Fault.PRODUCER_CRASH: "the application does not send",
    Fault.PRODUCER_LINK_LOSS: "the application does not send",
    Fault.REJECTION: "the application does not send",
    Fault.CONSUMER_CRASH: "the application does not consume",
    Fault.CONSUMER_LINK_LOSS: "the application does not consume",
    Fault.LISTENER_EXCEPTION: "the application has no listener",
}


def sample_points(points: Sequence[Point], most: int | None, seed: str) -> list[Point]:
    """A random sample of at most so many ``points``, in their order, by ``seed``."""
    if most is None or len(points) <= most:
        return list(points)
    indexes = random.Random(seed).sample(range(len(points)), most)  # noqa: S311 - reproducible
    return [points[index] for index in sorted(indexes)]
