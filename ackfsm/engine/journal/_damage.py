"""Corrupt every byte of a journal in turn, and check that opening it notices."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ackfsm.engine.journal._crashes import Violation
from ackfsm.engine.journal._entry import ATTEMPTS, JournalDamaged, Kind
from ackfsm.engine.journal._protocol import Journal
from ackfsm.engine.journal._recovery import Recovery
from ackfsm.engine.journal._runs import KINDS, Operation, parse_workload
from ackfsm.engine.journal._simulated import Image, SimulatedDisk

_Open: TypeAlias = Callable[[SimulatedDisk], Journal]


@dataclasses.dataclass(frozen=True, slots=True)
class Damages:
    """How many corruptions had which outcome.

    Attributes:
        refused: the journal was refused as damaged.
        cut: a torn end was cut and reported, and nothing synced was in it.
        harmless: everything was recovered.
        violations: all others.
    """

    refused: int
    cut: int
    harmless: int
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        first = f"; first: {self.violations[0]}" if self.violations else ""
        counts = f"{self.refused:,} refused, {self.cut:,} cut as torn, {self.harmless:,} harmless"
        return f"{counts}, {len(self.violations):,} violations{first}"


def enumerate_corruptions(open_journal: _Open, run: str | Sequence[Operation]) -> Damages:
    """Corrupt the journal that ``run`` (of entries and calls) leaves, at every single byte.

    One bit of each byte is changed, each byte becomes zero, each write of a file is exchanged with each other of the
    same length that is different, and so are files.  The run ends with a sync or, to close the journal, with
    ``reopen``: everything must be found then, or the journal must be refused.
    """
    disk = SimulatedDisk()
    _perform(open_journal(disk), parse_workload(run) if isinstance(run, str) else run)
    image = disk.image
    expected = open_journal(SimulatedDisk(image)).recovery
    counts = {"refused": 0, "cut": 0, "harmless": 0}
    violations: list[Violation] = []
    for place, damaged in _damaged(image, disk):
        outcome = _outcome(open_journal, damaged, expected)
        if outcome in counts:
            counts[outcome] += 1
        else:
            violations.append(Violation(str(run), place, outcome))
    return Damages(**counts, violations=tuple(violations))


def _perform(journal: Journal, run: Sequence[Operation]) -> None:
    for operation in run:
        if operation.name in KINDS:
            kind = KINDS[operation.name]
            data = {Kind.STORE: b"copy", Kind.MARK: ATTEMPTS.pack(1), Kind.REMEMBER: b"id"}.get(kind, b"")
            journal.append(kind, operation.key, data, operation.transaction)
        else:
            getattr(journal, "close" if operation.name == "reopen" else operation.name)()


def _damaged(image: Image, disk: SimulatedDisk) -> Iterator[tuple[str, Image]]:
    for name, data in image.items():
        for at, byte in enumerate(data):
            for what, new in (("one bit changed", byte ^ (1 << at % 8)), ("zero", 0)):
                if new != byte:
                    yield f"byte {at} of {name}, {what}", {**image, name: data[:at] + bytes([new]) + data[at + 1 :]}
        for one, other, size in disk.equal_sized_writes(name):
            content = bytearray(data)
            content[one : one + size], content[other : other + size] = (
                data[other : other + size],
                data[one : one + size],
            )
            yield f"{size} bytes at {one} and at {other} of {name} exchanged", {**image, name: bytes(content)}
    for first, second in itertools.combinations(image, 2):
        yield f"{first} and {second} exchanged", {**image, first: image[second], second: image[first]}


def _outcome(open_journal: _Open, damaged: Image, expected: Recovery) -> str:
    try:
        found = open_journal(SimulatedDisk(damaged)).recovery
    except JournalDamaged:
        return "refused"
    same = found.live == expected.live and list(found.live) == list(expected.live)
    if not same or found.remembered != expected.remembered:
        return f"{found}, without a word, and there had been: {expected}"
    return "cut" if found.torn is not None else "harmless"
