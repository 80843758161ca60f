"""Every claimed mode under every claimed fault: draw programs, perform them, judge their histories."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from ackfsm import tables
from ackfsm.driving.conform._acts import perform
from ackfsm.driving.conform._adapter import Adapter
from ackfsm.driving.conform._claims import Claimed, Claims, Mode, claimed
from ackfsm.driving.conform._judge import Judge, Judgement, shrunk
from ackfsm.driving.conform._program import Program, draw
from ackfsm.driving.conform._report import NO_FAULT, Cell, Failure, Limits, Report, Status
from ackfsm.driving.conform._run import Performed
from ackfsm.support.files import check_place, make_folder, write_file
from ackfsm.tables import Specification
from ackfsm.terms import AckfsmError, AckMode, Anomaly, Consumption, Fault, InputError, Verdict, check_number
from ackfsm.text import in_words

__all__ = ["conform"]

Progress = Callable[[str, int, int], None]
Led = Callable[[Mode, Fault | None], Iterable[Program]]
Watch = Callable[[Mode, Fault | None, Judgement], None]
_TRIES: Final = 4
"""Programs of a cell that begin though its time is over, until the fault has struck and something was delivered."""


def conform(  # noqa: PLR0913 - what is driven, and how much
    adapter: Adapter,
    *,
    limits: Limits | None = None,
    ack_modes: Collection[AckMode] | None = None,
    faults: Collection[Fault | None] | None = None,
    output: Path | None = None,
    specification: Specification | None = None,
    led: Led = lambda _mode, _fault: (),
    watch: Watch = lambda _mode, _fault, _judged: None,
    progress: Progress = lambda _what, _done, _of: None,
) -> Report:
    """Drive ``adapter`` through every mode that it claims, under no fault and under each fault that it can take.

    Args:
        adapter: the implementation.
        limits: how much is tried.
        ack_modes: only these of its acknowledgement modes; by default all.
        faults: only these of its faults, ``None`` among them for no fault; by default all.
        output: a folder for the histories of violations, made if there is one; by default none is kept.
        specification: the tables, by default those of the project.
        led: programs of a mode and fault that are run before those that are drawn; each is asked for when it is next.
        watch: called with each run that was judged.
        progress: called with what goes on, and with how many cells are done of how many.

    An :class:`ackfsm.terms.AckfsmError` of the adapter ends it early: it is in ``stopped`` of the report.  Raises
    :class:`ackfsm.terms.InputError` for claims that contradict themselves or the tables, for a mode or fault that is
    not claimed, and for a folder that cannot be written; whatever else the adapter raises passes.
    """
    limits = limits or Limits()
    check_number("runs", limits.runs, optional=False)
    check_number("messages", limits.messages, optional=False)
    if output is not None:
        _check_folder(output)
    claims = adapter.claims()
    known = claimed(claims, specification or tables.load())
    cells = _cells(claims, ack_modes, faults)
    done: list[Cell] = []
    stopped: AckfsmError | None = None
    with Judge(known) as judge:
        campaign = _Campaign(adapter, known, limits, output, judge, led, watch)
        for number, (mode, fault) in enumerate(cells):
            progress(f"{mode}; {fault or NO_FAULT}", number, len(cells))
            try:
                done.append(campaign.cell(mode, fault))
            except _StoppedError as error:
                stopped = error.error
                break
    done += [
        Cell(mode=mode, fault=fault, status=Status.UNKNOWN, reached=False, why="not reached: the campaign ended before")
        for mode, fault in cells[len(done) :]
    ]
    done += [
        Cell(mode=mode, fault=fault, status=Status.NOT_CLAIMED)
        for mode in dict.fromkeys(mode for mode, _ in cells)
        for fault in Fault
        if fault not in claims.faults
    ]
    return Report(claims=claims, limits=limits, cells=tuple(done), stopped=stopped)


def _check_folder(output: Path) -> None:
    """See whether the folder can be made when there is something for it."""
    if output.exists():
        make_folder(output)
    elif output.parent.is_dir():
        check_place(output)


def _cells(
    claims: Claims, ack_modes: Collection[AckMode] | None, faults: Collection[Fault | None] | None
) -> list[tuple[Mode, Fault | None]]:
    _check_asked("acknowledgement mode", ack_modes, claims.ack_modes)
    _check_asked("fault", [each for each in faults or () if each is not None], claims.faults)
    wanted = [None, *(fault for fault in Fault if fault in claims.faults)]
    return [
        (mode, fault)
        for mode in claims.modes()
        for fault in wanted
        if ack_modes is None or mode.ack_mode in ack_modes
        if faults is None or fault in faults
        if fault is not Fault.LISTENER_EXCEPTION or mode.consumption is Consumption.LISTENER
    ]


def _check_asked(what: str, asked: Collection[str] | None, had: Collection[str]) -> None:
    for each in asked or ():
        if each not in had:
            raise InputError(f"the {what} {each} is not claimed; claimed are {in_words(sorted(had)) or 'none'}")


class _StoppedError(Exception):
    """The command behind the adapter has failed."""

    def __init__(self, error: AckfsmError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclasses.dataclass(slots=True)
class _Doubts:
    """What keeps a cell from being a pass: the first reason of each kind."""

    judged: str | None = None
    delivered: int = 0
    struck: int = 0
    without_effect: str | None = None
    seen: Counter[Anomaly] = dataclasses.field(default_factory=Counter)

    def settled(self, fault: Fault | None) -> bool:
        """Whether more runs would not make the cell a pass: it is one, or a run could not be judged."""
        return self.judged is not None or self.why(fault) is None

    def why(self, fault: Fault | None) -> str | None:
        if self.judged is not None:
            return self.judged
        if fault is not None and not self.struck:
            return self.without_effect or f"{fault} never took effect while something was at stake"
        return None if self.delivered else "not a single message was delivered"


@dataclasses.dataclass(frozen=True, slots=True)
class _Campaign:
    adapter: Adapter
    claimed: Claimed
    limits: Limits
    output: Path | None
    judge: Judge
    led: Led
    watch: Watch

    def programs(self, mode: Mode, fault: Fault | None, end: float) -> Iterator[Program]:
        """Yield those that lead, from the ``end`` on after those that are drawn, which show more."""
        led = iter(self.led(mode, fault))
        yield from itertools.takewhile(lambda _: time.monotonic() <= end, led)
        yield from self.drawn(mode, fault)
        yield from led

    def cell(self, mode: Mode, fault: Fault | None) -> Cell:
        """Run the programs of one cell until one is a violation."""
        if mode in self.claimed.refused:
            return Cell(mode=mode, fault=fault, status=Status.UNKNOWN, why=self.claimed.refused[mode])
        doubts, failure = _Doubts(), None
        run, late, end = 0, 0, self.end()
        for program in self.programs(mode, fault, end):
            if time.monotonic() > end:
                if run and (late == _TRIES or doubts.settled(fault)):
                    break
                late += 1
            run += 1
            performed, judged = self.performed(mode, fault, run, program)
            doubts.struck += performed.struck > 0
            doubts.delivered += performed.delivered
            doubts.seen.update(judged.seen)
            doubts.without_effect = doubts.without_effect or performed.without_effect
            if judged.verdict is Verdict.INVALID:
                failure = self.failure(mode, fault, run, program, judged)
                break
            if doubts.judged is None and (performed.open or judged.verdict is Verdict.UNKNOWN):
                doubts.judged = f"run {run}: {performed.open or judged.reasons[0]}"
        why = None if failure else doubts.why(fault)
        return Cell(
            mode=mode,
            fault=fault,
            status=Status.VIOLATION if failure else Status.UNKNOWN if why else Status.OK,
            runs=run,
            struck=doubts.struck,
            seen=doubts.seen,
            why=why,
            failure=failure,
        )

    def end(self) -> float:
        """Return the moment after which nothing begins that begins now."""
        return math.inf if self.limits.seconds is None else time.monotonic() + self.limits.seconds

    def drawn(self, mode: Mode, fault: Fault | None) -> Iterator[Program]:
        for run in range(1, self.limits.runs + 1):
            seed = f"{self.limits.seed} {mode} {fault or NO_FAULT} {run}"
            yield draw(seed, mode, fault, self.claimed.claims, self.limits.messages)

    def performed(self, mode: Mode, fault: Fault | None, run: int, program: Program) -> tuple[Performed, Judgement]:
        try:
            performed = perform(self.adapter, self.claimed, mode, program, self.limits.wait)
        except AckfsmError as error:
            raise _StoppedError(_placed(error, f"{mode}; {fault or NO_FAULT}; run {run}")) from error
        note = f"ackfsm conform: {mode}; {fault or NO_FAULT}; seed {self.limits.seed}, run {run}: {program}"
        judged = self.judge.judge(performed, mode, note)
        self.watch(mode, fault, judged)
        return performed, judged

    def failure(self, mode: Mode, fault: Fault | None, run: int, program: Program, judged: Judgement) -> Failure:
        """Make the program smaller, and keep both histories."""
        best, end = judged, self.end()

        def fails(candidate: Program) -> bool:
            nonlocal best
            if time.monotonic() > end:
                return False
            _, found = self.performed(mode, fault, run, candidate)
            if found.like(judged):
                best = found
                return True
            return False

        small, trials = shrunk(program, fails)
        name = f"{mode.slug}-{(fault or NO_FAULT).replace('_', '-')}"
        return Failure(
            run=run,
            reasons=best.reasons,
            anomalies=best.anomalies,
            program=str(program),
            small_program=str(small),
            trials=trials,
            history=self.kept(f"{name}.jsonl", judged),
            small=self.kept(f"{name}-small.jsonl", best),
        )

    def kept(self, name: str, judged: Judgement) -> Path | None:
        if self.output is None:
            return None
        make_folder(self.output)
        path = self.output / name
        write_file(path, judged.history)
        return path


def _placed(error: AckfsmError, where: str) -> AckfsmError:
    """The same kind of error, which says where the campaign was."""
    return type(error)(f"{error} (in {where})")
