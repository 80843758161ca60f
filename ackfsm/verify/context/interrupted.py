"""Whether something may have taken its messages away from a consumer between two moments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.joins import NONE
from ackfsm.tables import Side
from ackfsm.verify.context.circumstances import Circumstance

__all__ = ["Interruptions"]

_EVERYBODY = NONE


class Interruptions:
    """The times in which a fault, a broken connection or an act of the application may have hit each process."""

    def __init__(self, found: Iterable[Circumstance]) -> None:
        """``found`` is what happened; faults of producers take nothing away from consumers."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for each in found:
            if each.sign.side is not Side.PRODUCER:
                for process in each.hit | each.suspected or {_EVERYBODY}:
                    spans.setdefault(process, []).append((each.low, each.high))
        self._spans = {process: _by_begin(its) for process, its in spans.items()}

    def between(self, process: Ints, begin: Ints, end: Ints) -> Mask:
        """For each ``process`` whether something may have hit it after ``begin`` and before ``end`` (nanoseconds)."""
        found = np.zeros(len(process), bool)
        for whose, (low, latest) in self._spans.items():
            its = np.flatnonzero((process == whose) | (whose == _EVERYBODY))
            before = np.searchsorted(low, end[its], side="left")
            found[its] |= (before > 0) & (latest[before - 1] > begin[its])
        return found


def _by_begin(spans: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The begins of ``spans``, ascending, and for each the latest end of those that begin no later."""
    low, high = np.array(sorted(spans), np.int64).T
    return low, np.maximum.accumulate(high)
