"""Crash a run at every point, in every legal state of the disk, and compare each recovery with the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ackfsm.engine.journal._entry import ATTEMPTS, JournalDamaged, JournalFailure, Kind
from ackfsm.engine.journal._protocol import Journal
from ackfsm.engine.journal._recovery import Live, Recovery
from ackfsm.engine.journal._runs import KINDS, Operation, parse_workload, random_run
from ackfsm.engine.journal._simulated import DiskFaults, DiskState, Image, SimulatedDisk
from ackfsm.engine.journal._tables import DurabilityOracle, Tables
from ackfsm.tables import Specification

_Open: TypeAlias = Callable[[SimulatedDisk], Journal]
_Key: TypeAlias = tuple[tuple[str, bytes], ...]
_Kept: TypeAlias = tuple[tuple[tuple[int, Live], ...], tuple[tuple[bytes, int], ...]]

_DEEP = 2
"""How often a recovery is itself crashed during its own recovery."""


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A behaviour of a journal that the tables do not allow: the run, the crash point, and the recovery."""

    run: str
    point: str
    what: str

    def __str__(self) -> str:
        return f"{self.run}: {self.point}: {self.what}"


@dataclasses.dataclass(frozen=True, slots=True)
class Enumeration:
    """How much was tried, and the violations, the shortest run first.

    Attributes:
        runs: the runs.
        crash_points: points in them at which the power may fail.
        disk_states: different contents of the disk after that, in all runs.
        recoveries: openings of a disk, those that are themselves crashed and those after them included.
        violations: at most one for each run.
    """

    runs: int
    crash_points: int
    disk_states: int
    recoveries: int
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        counts = f"{self.runs:,} runs, {self.crash_points:,} crash points, {self.disk_states:,} states of the disk"
        first = f"; first: {self.violations[0]}" if self.violations else ""
        return f"{counts}, {self.recoveries:,} recoveries, {len(self.violations):,} violations{first}"


def enumerate_crashes(
    open_journal: _Open,
    runs: Iterable[str | Sequence[Operation]],
    *,
    specification: Specification | None = None,
    fine: bool = True,
    shrink: bool = True,
) -> Enumeration:
    """Try every crash of every run.

    Args:
        open_journal: opens the journal under test on a disk; called for every recovery.
        runs: as text (see :class:`Operation`), or parsed.
        specification: the tables; those of the package by default.
        fine: writes are torn at every byte, otherwise in the middle.
        shrink: a run with a violation is shortened as far as a violation remains.

    Everything confirmed must be there, nothing finally removed may come back, transactions are atomic,
    nothing is invented, the order is kept; what a recovery has found is on stable storage, so that a crash
    of the recovery and a second recovery find the same.  A journal with a torn end must open.
    """
    tables_ = Tables(specification)
    parsed = [parse_workload(run) if isinstance(run, str) else tuple(run) for run in runs]
    counts = [0, 0, 0]
    violations: list[Violation] = []
    known = _Known()
    for run in parsed:
        tried = _Trial(open_journal, tables_, run, fine=fine, known=known)
        violation = tried.go()
        counts = [a + b for a, b in zip(counts, (tried.points, len(tried.seen), tried.recoveries), strict=True)]
        if violation is not None:
            violations.append(_shortest(open_journal, tables_, run, violation, known) if shrink else violation)
    violations.sort(key=lambda violation: (violation.run.count(","), violation.run))
    points, states, recoveries = counts
    return Enumeration(len(parsed), points, states, recoveries, tuple(violations))


def random_crashes(
    open_journal: _Open,
    seeds: Iterable[int],
    *,
    length: int = 60,
    faults: bool = False,
    specification: Specification | None = None,
) -> Enumeration:
    """The same for one random run of ``length`` operations for each seed, writes torn in the middle."""
    runs = (random_run(seed, length, faults=faults) for seed in seeds)
    return enumerate_crashes(open_journal, runs, specification=specification, fine=False, shrink=False)


def _shortest(
    open_journal: _Open, tables_: Tables, run: tuple[Operation, ...], found: Violation, known: _Known
) -> Violation:
    """Remove operations one by one as long as a violation remains."""
    number = 0
    while number < len(run):
        shorter = run[:number] + run[number + 1 :]
        violation = _Trial(open_journal, tables_, shorter, fine=False, known=known).go() if shorter else None
        if violation is None:
            number += 1
        else:
            run, found, number = shorter, violation, 0
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Point:
    """A crash point: the disk, the expected state of each entry, and where it is in the run."""

    state: DiskState
    oracle: DurabilityOracle
    what: str


@dataclasses.dataclass(slots=True)
class _Known:
    """The results of recoveries by the content of the disk, shared by all runs, since many have the same prefix.

    Attributes:
        found: what a recovery finds, the same each time, or an error.
        recovery: the first recovery.
        checked: the depth of recoveries at which its own crashes were tried.
    """

    found: dict[_Key, _Kept | str] = dataclasses.field(default_factory=dict)
    recovery: dict[_Key, Recovery] = dataclasses.field(default_factory=dict)
    checked: dict[_Key, int] = dataclasses.field(default_factory=dict)


class _Trial:
    """One run, and all its crashes."""

    def __init__(
        self,
        open_journal: _Open,
        tables_: Tables,
        run: tuple[Operation, ...],
        *,
        fine: bool,
        known: _Known,
    ) -> None:
        self.open_journal, self.run, self.fine = open_journal, run, fine
        self._known = known
        self.points = self.recoveries = 0
        self.seen: set[_Key] = set()
        self._oracle = DurabilityOracle(tables_)
        self._disk = SimulatedDisk()
        self._lying = False
        self._failed = False
        self._marks = self._next = 0
        self._moments: list[_Point] = []
        self._doing = "before anything"

    def go(self) -> Violation | None:
        """Perform the run, then crash it at each point; returns the first violation."""
        try:
            self._perform()
        except _Broken as broken:
            return self._violation(broken.point, broken.what)
        for point in self._moments:
            violation = self._crash(point) or self._kill(point)
            if violation is not None:
                return violation
        return None

    # the run

    def _perform(self) -> None:
        journal = self._opened("opening")
        for number, operation in enumerate(self.run, 1):
            self._doing = f"at operation {number} ({operation})"
            journal = self._do(operation, journal)
            self._moment("done", unsure=False)

    def _do(self, operation: Operation, journal: Journal) -> Journal:
        name = operation.name
        if name in KINDS:
            self._append(operation, journal)
        elif name in {"write", "sync", "compact"}:
            self._call(name, journal)
        elif name == "reopen":
            return self._reopened(journal)
        elif name in {"kill", "crash", "tear"}:
            return self._lost(name)
        else:
            self._fault(name)
        return journal

    def _append(self, operation: Operation, journal: Journal) -> None:
        kind, data = KINDS[operation.name], b""
        if kind == Kind.STORE:
            data = b"copy %d" % operation.key
        elif kind == Kind.MARK:
            self._marks += 1
            data = ATTEMPTS.pack(self._marks)
        elif kind == Kind.REMEMBER:
            data = b"id %d" % operation.key
        try:
            position = journal.append(kind, operation.key, data, operation.transaction)
        except JournalFailure as failure:
            self._allow_failure(failure)
        else:
            if position < self._next:
                raise _Broken(self._doing, f"position {position} comes again")
            self._next = position + 1
            self._oracle.append(kind, operation.key, data, operation.transaction, position)

    def _call(self, name: str, journal: Journal) -> None:
        self._watch()
        try:
            if name == "write":
                self._oracle.written(journal.write())
            elif name == "sync":
                self._synced(journal.sync())
            else:
                journal.compact()
                self._synced(journal.sync())
        except JournalFailure as failure:
            self._allow_failure(failure)
        except Exception as error:
            raise _Broken(self._doing, f"{name} raises {error!r}") from error

    def _synced(self, below: int) -> None:
        if self._lying:
            self._oracle.unsure = True
        else:
            self._oracle.synced(below)

    def _allow_failure(self, failure: JournalFailure) -> None:
        """Accept a failure if the disk has failed; from then on nothing is known for certain."""
        if not self._failed:
            raise _Broken(self._doing, f"it fails though the disk works: {failure}")
        self._oracle.unsure, self._oracle.failure = True, "journal_failure"

    def _reopened(self, journal: Journal) -> Journal:
        self._watch()
        try:
            journal.close()
        except JournalFailure as failure:
            self._allow_failure(failure)
        else:
            if not self._failed:
                self._synced(2**63)
        self._disk.kill()
        self._disk.faults = DiskFaults(sync_lies=self._lying)
        return self._opened("closed", after=None if self._oracle.unsure else "broker_kill")

    def _lost(self, name: str) -> Journal:
        if name == "kill":
            before = self._oracle.copy(unsure=False)
            self._oracle.killed()
            self._disk.kill()
            self._disk.faults = DiskFaults(sync_lies=self._lying)
            return self._opened("killed", before, after="broker_kill")
        state = self._disk.state
        image = next(iter(state.images(fine=False))) if name == "crash" else state.torn()
        result = self._recover(image, state, 0)
        judged = result if isinstance(result, str) else self._oracle.judge(self._known.recovery[_key(image)])
        if isinstance(judged, str):
            raise _Broken(self._doing, judged)
        self._oracle = judged
        self._disk = state.disk(image)
        return self._opened(name)

    def _fault(self, name: str) -> None:
        self._failed = self._failed or name in {"failing", "full"}
        if name == "failing":
            self._disk.faults.sync_fails += 1
        elif name == "lying":
            self._disk.faults.sync_lies = self._lying = True
        elif name == "short":
            self._disk.faults.short_writes = True
        else:
            self._disk.faults.capacity = sum(map(len, self._disk.image.values())) + 20

    def _opened(self, how: str, before: DurabilityOracle | None = None, *, after: str | None = None) -> Journal:
        """Open the journal; its recovery must be legal, and is the expected state from then on."""
        self._watch()
        journal = self._open(self._disk)
        if isinstance(journal, str):
            raise _Broken(self._doing, f"{how}, then opened: {journal}")
        judged = (before or self._oracle).judge(journal.recovery, after=after)
        if isinstance(judged, str):
            raise _Broken(self._doing, f"{how}, then opened: {judged}")
        self._next = journal.recovery.next_position
        if self._lying:  # what was found is not known to be safe
            self._oracle.unsure = True
        else:
            self._oracle = judged
        self._failed = False
        return journal

    # crashes

    def _watch(self) -> None:
        self._disk.watch = lambda what: self._moment(f"before {what}", unsure=True)

    def _moment(self, what: str, *, unsure: bool) -> None:
        self._moments.append(_Point(self._disk.state, self._oracle.copy(unsure=unsure), f"{self._doing}, {what}"))

    def _crash(self, point: _Point) -> Violation | None:
        self.points += 1
        judged: dict[_Kept | str, str] = {}
        for image in point.state.images(fine=self.fine):
            key = _key(image)
            self.seen.add(key)
            result = self._recover(image, point.state, 0)
            if result not in judged:
                judged[result] = self._judged(point, key, result)
            if judged[result]:
                return self._violation(f"power loss {point.what}", judged[result])
        return None

    def _violation(self, where: str, what: str) -> Violation:
        return Violation(", ".join(map(str, self.run)), where, what)

    def _kill(self, point: _Point) -> Violation | None:
        """The process dies here; power may be lost during the next opening."""
        disk, states = point.state.killed(), list[DiskState]()
        disk.watch = lambda _: states.append(disk.state)
        journal = self._open(disk)
        where = f"death of the process {point.what}"
        if isinstance(journal, str):
            return None if self._lying else self._violation(where, journal)
        judged = point.oracle.judge(journal.recovery, after="broker_kill")
        if isinstance(judged, str):
            return self._violation(where, judged)
        found, stable = _kept(journal.recovery), disk.state
        known: dict[_Kept | str, str] = {}
        for state in [*states, stable]:
            wrong = self._after_kill(point, state, found if state is stable else None, known)
            if wrong:
                return self._violation(f"{where}, power loss in the opening after it", wrong)
        return None

    def _after_kill(
        self, point: _Point, state: DiskState, expected: _Kept | None, known: dict[_Kept | str, str]
    ) -> str:
        if self._lying:
            return ""
        for image in state.images(fine=False):
            result = self._once(image, state)
            if expected is not None and result != expected:
                return f"{_describe(result)}, though the opening has found {_describe(expected)}"
            if result not in known:
                known[result] = self._judged(point, _key(image), result)
            if known[result]:
                return known[result]
        return ""

    def _judged(self, point: _Point, key: _Key, result: _Kept | str) -> str:
        if isinstance(result, str):
            return "" if self._lying and result.startswith("refused") else result
        judged = point.oracle.judge(self._known.recovery[key])
        return judged if isinstance(judged, str) else ""

    def _recover(self, image: Image, state: DiskState, depth: int) -> _Kept | str:
        """Return the recovery, if crashes of it do not change it; otherwise the error."""
        key = _key(image)
        if self._known.checked.get(key, _DEEP + 1) <= depth:
            return self._known.found[key]
        found, states = self._opening(key, image, state)
        self._known.checked[key] = depth
        if isinstance(found, str):
            return found
        wrong = self._again(states, found, depth)
        if wrong:
            self._known.found[key] = wrong
        return wrong or found

    def _opening(self, key: _Key, image: Image, state: DiskState) -> tuple[_Kept | str, list[DiskState]]:
        """Return what a recovery finds, and the disk before each of its steps and after the last one."""
        disk, states = state.disk(image), list[DiskState]()
        disk.watch = lambda _: states.append(disk.state)
        journal = self._open(disk)
        if key not in self._known.found:
            self._known.found[key] = journal if isinstance(journal, str) else _kept(journal.recovery)
        if not isinstance(journal, str):
            self._known.recovery.setdefault(key, journal.recovery)
        return self._known.found[key], [*states, disk.state]

    def _again(self, states: Sequence[DiskState], expected: _Kept | str, depth: int) -> str:
        """Crash the recovery at each of its steps: the next recovery has to find the same."""
        for later in states if depth < _DEEP else states[-1:]:
            for other in later.images(fine=False):
                found = self._recover(other, later, depth + 1) if depth < _DEEP else self._once(other, later)
                if isinstance(found, str):
                    return f"after a crash of the recovery: {found}"
                if found != expected:
                    other_found = f"{_describe(found)}, not {_describe(expected)}"
                    return f"after a crash of the recovery another one finds {other_found}"
        return ""

    def _once(self, image: Image, state: DiskState) -> _Kept | str:
        key = _key(image)
        return self._known.found[key] if key in self._known.found else self._opening(key, image, state)[0]

    def _open(self, disk: SimulatedDisk) -> Journal | str:
        self.recoveries += 1
        try:
            return self.open_journal(disk)
        except JournalDamaged as damaged:
            return f"refused though nothing is damaged: {damaged}"
        except JournalFailure as failure:
            return f"it fails though the disk works: {failure}"
        except Exception as error:  # noqa: BLE001 - it is the journal under test that raises
            return f"opening raises {error!r}"


class _Broken(Exception):  # noqa: N818 - it says what the journal is
    """A run that cannot go on."""

    def __init__(self, point: str, what: str) -> None:
        super().__init__(what)
        self.point, self.what = point, what


def _key(image: Image) -> _Key:
    return tuple(sorted(image.items()))


def _kept(found: Recovery) -> _Kept:
    return tuple(found.live.items()), tuple(found.remembered.items())


def _describe(kept: _Kept | str) -> str:
    return kept if isinstance(kept, str) else f"the copies {[key for key, _ in kept[0]]}"
