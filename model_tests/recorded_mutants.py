"""Mutants of the recorder: every cell of ``spec/recording.yaml`` changed, one at a time, and who notices.

A *mutant* is the table with one cell of one row changed: another word, one item left out, or no condition where one is.
It is *noticed* if a history of the tests is judged otherwise by it, or if what it writes of a run is judged wrongly.

Run as a program it prints how each was noticed and every survivor: ``python -m model_tests.recorded_mutants``; with
words it tries the mutants alone whose names begin with one of them.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm import verify
from ackfsm.checking import explore, export
from ackfsm.history.format import Event
from ackfsm.tables import Condition, Recording, SignRow, Specification
from ackfsm.tables._conditions import ALWAYS
from ackfsm.terms import Verdict
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.model_runs import Run, random_run, systems
from model_tests.support.verify.named_histories import named_histories
from model_tests.verify.test_model_runs import is_judged_wrongly
from model_tests.verify.test_optional_lines import STORIES, as_lines

__all__ = ["Mutant", "main", "mutants", "trial"]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """The ``part`` of the table that a cell is of, its column, the item (empty: the cell), and the table with it."""

    part: str
    column: str
    item: str
    recording: Recording = dataclasses.field(compare=False)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.part, self.column, self.item)))


def mutants(recording: Recording) -> Iterator[Mutant]:
    """Every mutant of every row."""
    lines = list(dict.fromkeys(row.line for row in recording.signs.values()))
    for rows in ("signs", "said"):
        known: Mapping[str, SignRow] = getattr(recording, rows)
        for row in known.values():
            for column, item, value in _changed(row, lines):
                changed = {**known, row.name: dataclasses.replace(row, **{column: value})}
                mutated = dataclasses.replace(recording, **{rows: MappingProxyType(changed)})  # type: ignore[arg-type]
                yield Mutant(row.name, column, item, mutated)
    for column in ("untold", "not_awaited"):
        for item, value in _without_one(getattr(recording, column)):
            yield Mutant("", column, item, dataclasses.replace(recording, **{column: value}))


def _changed(row: SignRow, lines: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    yield "line", "", lines[(lines.index(row.line) + 1) % len(lines)]
    for field in dataclasses.fields(row):
        cell = getattr(row, field.name)
        if field.name == "only":
            yield from [(field.name, "", None)] if cell else ()
        elif isinstance(cell, Enum):
            words = list(type(cell))[: 2 if field.name == "sure" else None]  # no row says `perhaps`
            yield field.name, "", words[(words.index(cell) + 1) % len(words)]
        elif isinstance(cell, bool):
            yield from [(field.name, "", not cell)] if cell or field.name == "undone" else ()
        elif isinstance(cell, Condition):
            yield from [(field.name, "", ALWAYS)] if cell != ALWAYS else ()
        elif isinstance(cell, int):
            yield from [(field.name, "", cell - 1)] if cell else ()
        elif isinstance(cell, Collection) and not isinstance(cell, str):
            yield from ((field.name, item, value) for item, value in _without_one(cell))


def _without_one(cell: Any) -> Iterator[tuple[str, Any]]:
    """Each item of a cell, and the cell without it."""
    for number, item in enumerate(sorted(cell) if isinstance(cell, frozenset) else cell):
        if isinstance(cell, Mapping):
            yield str(item), MappingProxyType({key: value for key, value in cell.items() if key != item})
        else:
            name = item if isinstance(item, str) else str(number)
            yield name, type(cell)(each for each in cell if each != item)


@dataclasses.dataclass(frozen=True, eq=False)
class _History:
    """A history of the tests, as it was read, the events of its lines, and by how much its clocks may differ."""

    read: verify.History
    lines: frozenset[str]
    skew: int | None

    @classmethod
    def of(cls, file: Path, skew: int | None = 0) -> _History:
        """The history in ``file``."""
        read = verify.read(file)
        return cls(read, frozenset(event.value for event in Event if len(read.events.places(event))), skew)

    def judged(self, specification: Specification) -> tuple[object, ...]:
        """What these tables say of it."""
        header = self.read.header
        assert header is not None
        config, queues = header.config or {}, header.queues or {}
        of_queues = {name: specification.configure(None, {**config, **own}) for name, own in queues.items()}
        configurations = verify.Configurations(specification.configure(None, config), of_queues)
        found = verify.examine(self.read, specification, configurations, skew=self.skew)
        said, told = verify.verdict(found, specification).verdict, found.explanation
        held = {name: each.unexplained_examples for name, each in found.anomalies.items() if each.unexplained}
        causes = {name: each.causes for name, each in found.anomalies.items() if said is Verdict.VALID}
        accused = [*told.examples, *(told.pairs.examples if told.pairs else ())] if told else []
        return said, held, causes, [(each.message, each.beside) for each in accused]


@functools.cache
def _histories() -> Sequence[tuple[_History, tuple[object, ...]]]:
    """The named histories, the stories and the cases, each with what the tables say of it as they are."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [_History.of(each.write(folder), each.skew * 10**6) for each in named_histories().values()]
        found += [_History.of(as_lines(each, folder)) for each in STORIES.values()]
    cases = [_History.of(file, None) for file in sorted(DATA.glob("cases/*/*.jsonl")) if verify.read_header(file)]
    found += [each for each in cases if each.read.header and each.read.header.config]
    return [(each, each.judged(shipped())) for each in found]


@functools.cache
def _runs() -> Sequence[tuple[Run, str]]:
    """Some runs of the model, each as the tables write it."""
    runs = [random_run(network, number) for seed in range(4) for network in systems(seed, 2) for number in range(2)]
    return [(run, _written(run, shipped())) for run in runs]


def _written(run: Run, specification: Specification) -> str:
    steps = explore.steps_of(run.network, run.labels)
    return export.run_history(specification, run.network.configuration, steps, at_rest=True)


_OF_ABSENT_LINES = ("", "free", "line", "only", "tells")
"""Columns that say something of messages without the line, too."""


def trial(mutant: Mutant) -> str | None:
    """How ``mutant`` is noticed, ``None`` if it is not: those histories are looked at first that have its line."""
    changed = dataclasses.replace(shipped(), recording=mutant.recording)
    recording = shipped().recording
    row = {**recording.signs, **recording.said}.get(mutant.part)
    for history, expected in sorted(_histories(), key=lambda each: row is not None and row.line not in each[0].lines):
        if row is not None and row.line not in history.lines and mutant.column not in _OF_ABSENT_LINES:
            break
        try:
            said = history.judged(changed)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody notices it
            return f"an error, {error!r}"
        if said != expected:
            header = history.read.header
            return (header and header.note) or history.read.path.name
    for run, written in _runs():
        if _written(run, changed) != written:
            with tempfile.TemporaryDirectory() as folder:
                if is_judged_wrongly(run, Path(folder), changed):
                    return "what it writes of a run"
    return None


def _numbered_trial(number: int) -> str | None:
    return trial(list(mutants(shipped().recording))[number])


def main(arguments: Sequence[str]) -> int:
    """Print how mutants are noticed, all or those that ``arguments`` begin; 1 if one is not."""
    every = list(mutants(shipped().recording))
    chosen = [n for n, each in enumerate(every) if not arguments or str(each).startswith(tuple(arguments))]
    noticed = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("forkserver")) as pool:
        for number, how in zip(chosen, pool.map(_numbered_trial, chosen), strict=True):
            noticed += how is not None
            sys.stdout.write(f"{every[number]}: {how or 'SURVIVES'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen)} mutants, {noticed} noticed\n")
    return int(noticed < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
