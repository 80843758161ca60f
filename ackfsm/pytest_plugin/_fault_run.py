"""One attempt at a test: without a fault, or with one at a certain point; and what it tells the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ackfsm.pytest_plugin._points import Point, Wanted
from ackfsm.pytest_plugin._trace import Happening
from ackfsm.terms import Fault

__all__ = ["Attempt"]


def _nothing() -> bool:
    return False


@dataclasses.dataclass(slots=True)
class Attempt:
    """What a run of the test body is told, and what it finds.

    Attributes:
        wanted: what the marker asks for; ``None`` if the test has no such marker.
        only: the one point that is asked for; ``None``: all, or so many of them.
        point: where the fault strikes; ``None``: nowhere.
        nodeid: of the test.
        seed: of the broker, of what survives a crash.
        steps: the events of the run without faults, each with the faults that may strike after it.
        by_word: whether the application says itself what it has processed.
        struck: whether the fault has struck.
        met: the event after which the fault has struck, or should have.
        timeout: seconds of the clock that one ``ackfsm.run()`` takes at most; ``None``: any.
        awaited: whether the fault that has struck still waits for its effect: a listener to be called, a send.
        failed: whether setup, call or teardown has raised anything, a skip included.
    """

    wanted: Wanted | None
    nodeid: str
    seed: int
    only: Point | None = None
    point: Point | None = None
    steps: list[tuple[Happening, frozenset[Fault]]] = dataclasses.field(default_factory=list)
    by_word: bool = False
    struck: bool = False
    met: Happening | None = None
    failed: bool = False
    timeout: float | None = None
    awaited: Callable[[], object] = _nothing

    @property
    def is_the_same(self) -> bool:
        """Whether the run with a fault has come to the event that the run without had there."""
        return self.point is None or self.met == self.steps[self.point.number - 1][0]

    def at(self, point: Point) -> Attempt:
        """The next one, with a fault at ``point`` of the run that this one was."""
        return dataclasses.replace(self, point=point, struck=False, met=None, failed=False, awaited=_nothing)
