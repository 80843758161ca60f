"""Mutants of the recorder: every cell of ``spec/recording.yaml`` changed, one at a time, and who notices.

A *mutant* is the table with one cell of one row changed: another word, one item of a list left out, or nothing where
something was.  It is *noticed* if the tables refuse it, if a history of the tests is judged otherwise by it, or if what
it writes of a run of the model is judged wrongly.  Each survivor has its reason in ``data/recorded_survivors.yaml``.

Run as a program it prints a summary and every survivor: ``python -m model_tests.recorded_mutants``.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ackfsm import explore, export, tables, verify
from ackfsm.history_format import Event
from ackfsm.tables import Of, Side, Specification, When
from ackfsm.tables._load import read_form
from ackfsm.terms import SpecError, Verdict
from model_tests.support.data import read_data
from model_tests.support.places import DATA, SPEC
from model_tests.support.tables import copy_of_spec, read_once, shipped
from model_tests.support.verify.model_runs import Run, random_run, systems
from model_tests.support.verify.named_histories import named_histories
from model_tests.verify.test_optional_lines import STORIES, as_lines
from model_tests.verify.test_model_runs import SEEDS as _SEEDS
from model_tests.verify.test_model_runs import is_judged_wrongly

__all__ = ["Mutant", "main", "mutants", "survivors", "trial"]

_Path: TypeAlias = tuple[str | int, ...]

_WORDS: Mapping[str, Sequence[str]] = {"of": tuple(Of), "side": tuple(Side), "when": tuple(When)}
"""Columns in which a word always stands."""

_ONE_BY_ONE = ("if", "has", "lacks", "tells", "also", "alone", "or", "doubts", "unwritten", "then", "free", "sets")
"""Columns with several items, each of which may be left out."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """The cell, or the item of one, at ``path``, and what stands there instead; ``None``: nothing does."""

    path: _Path
    instead: str | bool | None

    @property
    def line(self) -> str:
        """The line of its row, empty if it is of none."""
        return str(_table()["signs"][self.path[1]]["line"]) if self.path[0] == "signs" else ""

    def __str__(self) -> str:
        return f"{' '.join(map(str, self.path))}: {'left out' if self.instead is None else self.instead}"


@functools.cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_form("recording.yaml", "recording", SPEC).data
    return table


def mutants() -> Iterator[Mutant]:
    """Every mutant of every row."""
    lines = list(dict.fromkeys(row["line"] for row in _table()["signs"].values()))
    for name, row in _table()["signs"].items():
        for column, cell in {"sure": None, **row}.items():
            yield from _of_cell(("signs", name, column), column, cell, lines)
    yield Mutant(("by_library",), "False")
    yield Mutant(("in_transaction", "ack_mode"), "CLIENT_ACKNOWLEDGE")
    for part in ("untold", "not_awaited"):
        yield from (Mutant((part, name), None) for name in _table()[part])


def _of_cell(path: _Path, column: str, cell: Any, lines: Sequence[str]) -> Iterator[Mutant]:
    if column in {"because", "source"}:
        return
    if words := lines if column == "line" else _WORDS.get(column):
        yield Mutant(path, words[(words.index(cell) + 1) % len(words)])
    elif column == "sure":
        yield Mutant(path, None if cell else "if_possible")
    elif column == "undone":
        yield Mutant(path, not cell)
    elif column in _ONE_BY_ONE and not isinstance(cell, str):
        yield from (Mutant((*path, item), None) for item in (cell if isinstance(cell, dict) else range(len(cell))))
    else:
        yield Mutant(path, None)


def apply(mutant: Mutant, folder: Path) -> Specification:
    """The tables with the mutant in them, from a copy of them in ``folder``; raises :class:`SpecError` as reading does."""
    table = copy.deepcopy(dict(_table()))
    *outer, last = mutant.path
    inside = functools.reduce(lambda node, key: node[key], outer, table)
    if mutant.instead is not None:
        inside[last] = mutant.instead
    else:
        del inside[last]
        if not inside and len(outer) > 2:  # what has no items is left out
            del functools.reduce(lambda node, key: node[key], outer[:-1], table)[outer[-1]]
    (folder / "recording.yaml").write_text(json.dumps(table), encoding="utf-8")
    return tables.load(folder)


@dataclasses.dataclass(frozen=True, eq=False)
class _History:
    """A history of the tests, as it was read; ``how`` it is examined."""

    read: verify.History
    lines: frozenset[str]
    how: Mapping[str, Any]

    def judged(self, specification: Specification) -> tuple[object, ...]:
        """What these tables say of it."""
        header = self.read.header
        assert header is not None
        general = specification.configure(None, header.config)
        its = {
            name: specification.configure(None, {**(header.config or {}), **own})
            for name, own in (header.queues or {}).items()
        }
        configurations = verify.Configurations(general, its) if its else general
        found = verify.examine(self.read, specification, configurations, **self.how)
        said = verify.verdict(found, specification).verdict
        held = {name: each.unexplained_examples for name, each in found.anomalies.items() if each.unexplained}
        causes = {name: each.causes for name, each in found.anomalies.items() if each.found and said is Verdict.VALID}
        of = found.explanation
        accused = [*of.examples, *(of.pairs.examples if of.pairs else ())] if of else []
        return said, held, causes, [(each.message, each.beside) for each in accused]


@functools.cache
def _runs() -> Sequence[Run]:
    return [random_run(network, number) for seed in _SEEDS for network in systems(seed, 3) for number in range(3)]


def _written(run: Run, specification: Specification) -> str:
    steps = explore.steps_of(run.network, run.labels)
    return export.run_history(specification, run.network.configuration, steps, at_rest=True)


@functools.cache
def _histories() -> Sequence[_History]:
    """The named histories, the stories, the cases, and random runs of the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [_history(each.write(folder), skew=each.skew * 10**6) for each in named_histories().values()]
        found += [_history(as_lines(each, folder), skew=0) for each in STORIES.values()]
        cases = [file for file in sorted(DATA.glob("cases/*/*.jsonl")) if _is_read(file)]
        found += [_history(file, skew=None) for file in cases]
        for run in _runs():
            (folder / "h.jsonl").write_text(_written(run, shipped()), encoding="utf-8")
            found.append(_history(folder / "h.jsonl", skew=0, tells_processed=True))
    return found


def _is_read(file: Path) -> bool:
    header = verify.read_header(file)
    return header is not None and header.config is not None


def _history(file: Path, **how: Any) -> _History:
    read = verify.read(file)
    lines = {name for name in Event if len(read.events.places(name))}
    return _History(read, frozenset(map(str, lines)), how)


@functools.cache
def _expected() -> Sequence[tuple[object, ...]]:
    return [each.judged(shipped()) for each in _histories()]


@functools.cache
def _folder() -> Path:
    """The copy of the tables that this process changes."""
    read_once(pytest.MonkeyPatch())
    return copy_of_spec(Path(tempfile.mkdtemp(prefix="ackfsm-recorded-")))


def trial(mutant: Mutant) -> str | None:
    """How ``mutant`` is noticed: those histories first that have its line; ``None`` if it is not."""
    try:
        changed = apply(mutant, _folder())
    except SpecError as error:
        return f"refused: {str(error).rpartition(': ')[2]}"
    both = list(zip(_histories(), _expected(), strict=True))
    for history, expected in sorted(both, key=lambda each: mutant.line not in each[0].lines):
        try:
            said = history.judged(changed)
        except Exception as error:  # noqa: BLE001 - any is noticed
            return f"an error: {error!r}"
        if said != expected:
            return f"judged otherwise: {(history.read.header and history.read.header.note) or history.read.path.name}"
    for run in _runs():
        if _written(run, changed) != _written(run, shipped()) and is_judged_wrongly(run, _folder(), changed):
            return "a run is written wrongly"
    return None


def survivors() -> Mapping[str, str]:
    """The mutants that nobody notices, each with its reason."""
    return read_data("recorded_survivors.yaml") or {}


def main(arguments: Sequence[str]) -> int:
    """Try all mutants, or those whose names begin with one of ``arguments``; print what nobody noticed."""
    chosen = [each for each in mutants() if not arguments or str(each).startswith(tuple(arguments))]
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        tried = list(zip(chosen, pool.map(trial, chosen, chunksize=4), strict=True))
    alive, excused = [str(mutant) for mutant, how in tried if how is None], survivors()
    out = sys.stdout.write
    for mutant, how in tried:
        out(f"{mutant}: {how or 'SURVIVES: ' + excused.get(str(mutant), 'NO REASON IS KNOWN')}\n")
    out(f"{len(tried)} mutants, {len(tried) - len(alive)} noticed, {len(excused.keys() & {*alive})} have a reason\n")
    stale = excused.keys() & {str(mutant) for mutant, how in tried if how is not None}
    for name in sorted(stale):
        out(f"is noticed, and need not be excused any more: {name}\n")
    return int(bool(stale or {*alive} - excused.keys()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
