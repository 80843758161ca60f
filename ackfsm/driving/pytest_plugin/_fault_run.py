"""One run of a test: without a fault, or with one at a fault point."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ackfsm.driving.pytest_plugin._points import Point, PointSelection
from ackfsm.driving.pytest_plugin._trace import TraceEvent
from ackfsm.terms import Fault


def _nothing() -> bool:
    return False


@dataclasses.dataclass(slots=True)
class FaultRun:
    """The input of a run of the test body, and its results.

    Attributes:
        selection: the faults of the marker; ``None`` if the test has no such marker.
        only: the one point that is requested; ``None``: all, or a sample.
        point: where the fault is injected; ``None``: nowhere.
        nodeid: of the test.
        seed: of the broker, of what survives a crash.
        steps: the events of the run without faults, each with the faults that are possible after it.
        by_application: whether the application reports itself what it has processed.
        injected: whether the fault has been injected.
        met: the event after which the fault was injected, or should have been.
        timeout: seconds of the clock that one ``ackfsm.run()`` takes at most; ``None``: any.
        awaited: whether the injected fault still waits for its effect: a call of a listener, a send.
        failed: whether setup, call or teardown has raised anything, a skip included.
    """

    selection: PointSelection | None
    nodeid: str
    seed: int
    only: Point | None = None
    point: Point | None = None
    steps: list[tuple[TraceEvent, frozenset[Fault]]] = dataclasses.field(default_factory=list)
    by_application: bool = False
    injected: bool = False
    met: TraceEvent | None = None
    failed: bool = False
    timeout: float | None = None
    awaited: Callable[[], object] = _nothing

    @property
    def is_the_same(self) -> bool:
        """Whether the run with a fault has the same event at the point as the run without."""
        return self.point is None or self.met == self.steps[self.point.number - 1][0]

    def at(self, point: Point) -> FaultRun:
        """The run with a fault at ``point`` of this one."""
        return dataclasses.replace(self, point=point, injected=False, met=None, failed=False, awaited=_nothing)
