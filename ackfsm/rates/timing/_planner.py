"""Plan many workloads: what several of them share is worked out once."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from ackfsm.rates.timing._plan import (
    Plan,
    Side,
    deliver_side,
    has_default_threshold,
    planned,
    publish_side,
    window_that_fills,
)
from ackfsm.rates.timing._waits import Waits
from ackfsm.rates.timing._workload import Workload

_Found = TypeVar("_Found")


def _fields(of: type[Workload | Waits], *others: str) -> tuple[str, ...]:
    """The fields but for the ``others``."""
    return tuple(field.name for field in dataclasses.fields(of) if field.name not in others)


_SENDING: Final = _fields(
    Workload, "bandwidth_back", "processing_time", "consumers", "messages_per_acknowledge", "lazy_batch"
)
"""What the rate of producers may depend on: all but what only consumers have, and so on."""
_CONSUMING: Final = _fields(Workload, "bandwidth", "send_time", "broker_time", "timer", "producers", "rate", "credit")
_OF_SENDS: Final = _fields(
    Waits,
    "settled_by",
    "waits_for_acknowledged",
    "acknowledged_first",
    "prefetch",
    "freed_on_delivery",
    "acknowledge_after_sync",
)
_OF_DELIVERIES: Final = _fields(
    Waits, "next_send_after", "window", "threshold", "has_timer", "completes_first", "send_after_sync"
)

_MOST: Final = 20_000
"""So many answers are kept; a memory that is full forgets all of them."""


class Planner:
    """Plans one workload after the other; each plan is what :func:`ackfsm.rates.timing.plan` answers."""

    def __init__(self) -> None:
        self._publish: _Remembered[Side] = _Remembered(publish_side, _SENDING, _OF_SENDS)
        self._deliver: _Remembered[Side] = _Remembered(deliver_side, _CONSUMING, _OF_DELIVERIES)
        self._fills: _Remembered[int | None] = _Remembered(window_that_fills, _SENDING, _OF_SENDS)

    def plan(self, work: Workload, waits: Waits) -> Plan:
        """Return the plan of a configuration; ``waits`` says what waits for what."""
        return planned(work, waits, self._publish, self._deliver, self._window_that_fills)

    def _window_that_fills(self, work: Workload, waits: Waits) -> int | None:
        """Of windows whose threshold is a third of them, as it is by default, each has the same answer."""
        if has_default_threshold(waits):
            waits = dataclasses.replace(waits, window=1, threshold=1)
        elif waits.threshold is None:
            waits = dataclasses.replace(waits, window=1)
        return self._fills(work, waits)


class _Remembered(Generic[_Found]):
    """A function of a workload and what waits for what, with its answers by those fields that it reads."""

    def __init__(
        self, function: Callable[[Workload, Waits], _Found], of_work: tuple[str, ...], of_waits: tuple[str, ...]
    ) -> None:
        self._function = function
        self._work, self._waits = operator.attrgetter(*of_work), operator.attrgetter(*of_waits)
        self._known: dict[tuple[Any, Any], _Found] = {}

    def __call__(self, work: Workload, waits: Waits) -> _Found:
        key = (self._work(work), self._waits(waits))
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._function(work, waits)
        return self._known[key]
