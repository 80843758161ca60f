"""Journals that are interrupted: an exception that is none of theirs comes at every step of a run, and by signals."""

from __future__ import annotations

import dataclasses
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeAlias

import ackfsm.engine.journal
from ackfsm.engine.journal import Journal, JournalFailure, Kind

Opened: TypeAlias = Callable[[Journal | None], Journal]
"""Opens a journal: a new one, or again the one that is given."""

_JOURNALS = str(Path(ackfsm.engine.journal.__file__).parent)


class Interrupts:
    """Raises KeyboardInterrupt before the step of this number of the journals' own code: a line, or a bytecode.

    ``number`` 0 only counts.  Whatever runs while :attr:`on` is off is left alone.
    """

    def __init__(self, number: int, *, bytecodes: bool = False, within: str = "") -> None:
        self.number, self.bytecodes, self.within = number, bytecodes, within
        self.count = 0
        self.on = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        self.on = True
        return self

    def __exit__(self, *_: object) -> None:
        self.on = False
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        name = frame.f_code.co_filename
        if not (name.startswith(_JOURNALS) and self.within in name) or _destroys(frame):
            return None
        frame.f_trace_opcodes = self.bytecodes
        frame.f_trace_lines = not self.bytecodes
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        if event in {"line", "opcode"} and self.on:
            self.count += 1
            if self.count == self.number:
                self.on = False
                raise KeyboardInterrupt
        return self._step


def _destroys(frame: FrameType | None) -> bool:
    """Python itself swallows what a destructor raises."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


@dataclasses.dataclass
class Confirmed:
    """What a run knows to be safe: copies, of which some are removed again, and transactions of two copies each."""

    key: int = 0
    stored: set[int] = dataclasses.field(default_factory=set)
    removed: set[int] = dataclasses.field(default_factory=set)
    unsure: set[int] = dataclasses.field(default_factory=set)
    pairs: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    position: int = 0

    def held_to(self, journal: Journal) -> None:
        """What a journal has found must be all that was confirmed, and nothing that was removed."""
        live = set(journal.recovery.live)
        lost = self.stored - self.removed - self.unsure - live
        assert not lost, f"{sorted(lost)} were confirmed, and are lost"
        assert not self.removed & live, f"{sorted(self.removed & live)} were removed, and are back"
        torn = [pair for pair in self.pairs if len(live & set(pair)) == 1]
        assert not torn, f"of the transactions {torn} one half is there"
        assert journal.recovery.next_position >= self.position
        assert all(copy.data == b"copy %d" % key * 9 for key, copy in journal.recovery.live.items())

    def work(self, journal: Journal, rounds: int, *, close: bool) -> None:
        """Store, remove, commit, write, sync, compact and close."""
        self.key = max(self.key, journal.recovery.next_key)
        for round_ in range(rounds):
            self._round(journal, round_)
        if close:
            journal.close()

    def _round(self, journal: Journal, round_: int) -> None:
        one, two, three, self.key = self.key, self.key + 1, self.key + 2, self.key + 4
        gone = next(iter(sorted(self.stored - self.removed - self.unsure - {n for p in self.pairs for n in p})), None)
        self.pairs.append((two, three))
        journal.append(Kind.STORE, one, b"copy %d" % one * 9)
        journal.append(Kind.STORE, two, b"copy %d" % two * 9, three + 1)
        if gone is not None:
            self.unsure.add(gone)
            journal.append(Kind.REMOVE, gone)
        if round_ % 2:
            journal.write()
        journal.append(Kind.STORE, three, b"copy %d" % three * 9, three + 1)
        journal.append(Kind.COMMIT, three + 1)
        if round_ % 5 == 4:
            journal.compact()
        below = journal.sync()
        assert below >= self.position, "positions run backwards"
        self.position = below
        self.stored |= {one, two, three}
        if gone is not None:  # one of a round before, which was interrupted, stays unsure
            self.removed.add(gone)


def steps_of(opened: Opened, *, bytecodes: bool = False, within: str = "", rounds: int = 2) -> int:
    """How many steps a run has."""
    with Interrupts(0, bytecodes=bytecodes, within=within) as steps:
        Confirmed().work(opened(None), rounds, close=True)
    return steps.count


def interrupted_at(
    number: int, opened: Opened, *, bytecodes: bool = False, within: str = "", rounds: int = 2
) -> tuple[bool, bool]:
    """A run that is interrupted at this step; the journal goes on after it, is closed, and opened again.

    Whether it was interrupted, and whether the journal went on.
    """
    confirmed, journal, done = Confirmed(), None, False
    with Interrupts(number, bytecodes=bytecodes, within=within) as steps:
        try:
            journal = opened(None)
            confirmed.work(journal, rounds, close=True)
            done = True
        except KeyboardInterrupt:
            steps.on = False
    went_on = journal is not None and not done and _end(journal, confirmed)
    found = opened(journal)
    confirmed.held_to(found)
    confirmed.work(found, 2, close=True)
    again = opened(found)
    confirmed.held_to(again)
    again.close()
    return not done, went_on


def _end(journal: Journal, confirmed: Confirmed) -> bool:
    """Go on with a journal that was interrupted, and close it: whether it went on; if not it has said why."""
    try:
        confirmed.work(journal, 2, close=False)
    except JournalFailure as failure:
        said = str(failure)
    else:
        said = ""
    journal.close()
    assert not said or ("open the journal again" in said and "\n" not in said)
    return not said


def alarmed(opened: Opened, seed: int, alarms: int) -> tuple[Confirmed, int]:
    """Work under real alarms, whose handler raises; what was confirmed, and how often it struck.

    Each alarm ends a journal, however it goes on, and what is opened next is held to all that was confirmed.
    """
    chance, confirmed, struck, journal = random.Random(seed), Confirmed(), 0, None

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(alarms):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + chance.random() * 0.006)
                journal = opened(journal)
                confirmed.held_to(journal)
                for _ in range(100):  # an end, should Python swallow the interrupt in a destructor
                    confirmed.work(journal, 5, close=False)
            except KeyboardInterrupt:
                struck += 1
            if journal is not None:
                _end(journal, confirmed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    journal = opened(journal)
    confirmed.held_to(journal)
    journal.close()
    return confirmed, struck
