"""An adapter led through the programs of the tours of its claims; what it did is kept, and the rows are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from ackfsm import tables
from ackfsm.driving.conform import NO_FAULT, Adapter, Judgement, Limits, Mode, Program, Report, claimed, conform
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.driving.live.coverage import Covered
from ackfsm.driving.live.led import led, undone
from ackfsm.driving.live.tour import STAGES, tour
from ackfsm.history.read import read
from ackfsm.support.files import write_file
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault
from ackfsm.verify import Kept
from ackfsm.verify.findings.performed import Performed, TableRow, rows_performed

__all__ = ["OWN_ENGINE", "Driven", "engine_driven"]

OWN_ENGINE: Final = "engine"
"""The name of the embedded broker among those that are driven."""


class Driven:
    """An adapter, and where it keeps what it did."""

    def __init__(
        self,
        adapter: Adapter,
        place: Path,
        performed: set[TableRow],
        *,
        without: Collection[str],
        resends: bool = False,
    ) -> None:
        """To the rows of the profile that are ``performed`` those are added that are here.

        ``without`` names events that the adapter brings about in no way; ``resends`` says that its library sends again
        what is in doubt.
        """
        self._adapter, self._place, self._resends, self._claims = adapter, place, resends, adapter.claims()
        known = claimed(self._claims, tables.load())
        self._specification, self._configurations = known.specification, known.configurations
        stages = [each for each in STAGES if each.consumers <= self._claims.consumers]
        self._tours = {
            each: tour(self._specification, configuration, faults=self._claims.faults, without=without, stages=stages)
            for each, configuration in self._configurations.items()
        }
        self._performed, self._number, self._total, self._kept = performed, 0, Performed(), (Kept(), Kept())

    def report(
        self, faults: Collection[Fault | None] | None, limits: Limits, progress: Callable[[str], None]
    ) -> Report:
        """Drive it under these ``faults``, by default under all that it claims."""
        programs = {each: led(its.programs, resends=self._resends) for each, its in self._tours.items()}
        return conform(
            self._adapter,
            limits=limits,
            faults=None if faults is None else [each for each in faults if each in {None, *self._claims.faults}],
            output=self._place,
            led=lambda mode, fault: self._in_turn(programs[mode].get(fault, {})),
            watch=self._keep,
            progress=lambda cell, _done, _of: progress(cell.rpartition("; ")[2]),
        )

    def _keep(self, mode: Mode, fault: Fault | None, judged: Judgement) -> None:
        self._number += 1
        path = self._place / "histories" / f"{self._number:03}-{fault or NO_FAULT}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, judged.history)
        here = rows_performed(read(path), self._specification, self._configurations[mode], kept=self._kept)
        self._total += here
        self._performed |= here.certain.keys()

    def _in_turn(self, programs: Mapping[Program, frozenset[TableRow]]) -> Iterator[Program]:
        """Yield all programs, each time that with the most rows that no run of the profile has performed so far."""
        left = dict(programs)
        while left:
            best = max(left, key=lambda each: len(left[each] - self._performed))
            del left[best]
            yield best

    def covered(self) -> Covered:
        """Return the rows that were performed, of those that can be."""
        return Covered.of(frozenset().union(*(its.rows for its in self._tours.values())), self._total)


def engine_driven(profile: str, mode: AckMode, consumption: Consumption, place: Path) -> Driven:
    """Return the embedded broker with its journal in memory, in one mode: every fault strikes it in this process."""
    adapter = EngineAdapter(
        profile, ack_modes=[mode], delivery_modes=[DeliveryMode.PERSISTENT], consumptions=[consumption]
    )
    without = undone(tables.load(), (), recovers=mode is not AckMode.SESSION_TRANSACTED, cancels=False)
    return Driven(adapter, place, set(), without=without)
