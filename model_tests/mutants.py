"""Mutants of the tables: every row deleted, redirected or turned around, one at a time, and who notices.

A *mutant* is the specification with one row of one machine changed.  It is *noticed* if some system of
the :mod:`~model_tests.panel` is not the same any more: another number of states or transitions
(``spec/test_facts.py`` asserts such numbers), other anomalies or, where numbers are the same, other traces.  A mutant
of a row that *decides* nothing in the whole panel (its event never happens in its state, or another machine refuses it
as well) cannot be noticed: such rows stand for totality, and ``data/totality.yaml`` says why the others always refuse.

Run as a program it prints a summary and every survivor: ``python -m model_tests.mutants``.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeAlias

import yaml

from ackfsm.checking import explore
from ackfsm.checking.network import compose
from ackfsm.tables import EventRef, IndexKind, Machine, Row, RowKind, Specification
from model_tests.panel import System, panel
from model_tests.support.places import DATA
from model_tests.support.spec.deciding import RowOfEvent, deciding, in_all, instead
from model_tests.support.tables import shipped

__all__ = [
    "NO_STATE",
    "UNEXPLAINED",
    "Mutant",
    "Noticed",
    "Yardstick",
    "apply",
    "explained",
    "measured",
    "mutants",
    "score",
    "signature",
    "survivors",
    "totality",
    "trial",
    "yardstick",
]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One row (of one machine, line and event, under all the states that it stands for) and what is done to it."""

    machine: str
    state: str
    line: int
    event: str
    deed: str
    alternative: int = 0
    """Which of several rows of one state and event that have the same done to them; 0: there is one."""

    @property
    def row(self) -> RowOfEvent:
        """The row that it changes."""
        return self.machine, self.line, self.event

    def __str__(self) -> str:
        which = f" [{self.alternative}]" if self.alternative else ""
        return f"{self.machine}.{self.state} {self.event}{which}: {self.deed}"


@dataclasses.dataclass(frozen=True)
class Noticed:
    """A mutant and what came of it: how it was noticed, and the anomalies that it brought about."""

    mutant: Mutant
    decides: bool
    how: str | None
    anomalies: frozenset[str]


_DEEDS = {RowKind.TO: ("deleted", "redirected"), RowKind.IGNORE: ("refused",), RowKind.REFUSE: ("allowed",)}


def _groups(machine: Machine) -> Iterator[tuple[int, EventRef, RowKind, str]]:
    """Each row once for each of its events: line, event, move, and its state (``otherwise`` if it has several)."""
    states: dict[tuple[int, EventRef, RowKind], list[str]] = defaultdict(list)
    for row in machine.rows():
        states[row.line, row.event, row.kind].append(row.state)
    for (line, event, move), of in states.items():
        yield line, event, move, of[0] if len(of) == 1 else "otherwise"


def mutants(specification: Specification) -> Iterator[Mutant]:
    """Every mutant of every machine (the machines of properties are no rows of a system), each under its own name."""
    everyone = list(_mutants(specification))
    alike, seen = Counter(map(str, everyone)), Counter[str]()
    for mutant in everyone:
        seen[str(mutant)] += 1
        number = seen[str(mutant)] if alike[str(mutant)] > 1 else 0
        yield dataclasses.replace(mutant, alternative=number)


def _mutants(specification: Specification) -> Iterator[Mutant]:
    for machine in specification.machines.values():
        for line, event, move, state in _groups(machine):
            for deed in _DEEDS[move]:
                if machine.counter is None or deed != "redirected":
                    yield Mutant(machine.name, state, line, str(event), deed)


def apply(specification: Specification, mutant: Mutant) -> Specification:
    """The specification with the mutant in it."""
    machine = specification.machines[mutant.machine]
    told_apart = specification.events[mutant.event.partition("(")[0]].per in _OF_ONE_CONSUMER
    cells = {place: _mutated(machine, mutant, rows, told_apart=told_apart) for place, rows in machine.cells.items()}
    changed = dataclasses.replace(machine, cells=cells)
    return dataclasses.replace(specification, machines={**specification.machines, machine.name: changed})


_OF_ONE_CONSUMER = {IndexKind.CONSUMER, IndexKind.RECEPTION, IndexKind.DELIVERY}
"""Events of these kinds say which consumer a machine is with in its held states, in one session as well."""


def _mutated(machine: Machine, mutant: Mutant, rows: tuple[Row, ...], *, told_apart: bool) -> tuple[Row, ...]:
    return tuple(
        _changed(machine, mutant, row, told_apart=told_apart)
        if (row.line, str(row.event)) == (mutant.line, mutant.event)
        else row
        for row in rows
    )


def _changed(machine: Machine, mutant: Mutant, row: Row, *, told_apart: bool) -> Row:
    if mutant.deed in {"deleted", "refused"}:
        return row._replace(kind=RowKind.REFUSE, target=row.state)
    if mutant.deed == "allowed":
        return row._replace(kind=RowKind.IGNORE, target=row.state)
    can_hold = told_apart or row.state in machine.held
    states = [state for state in machine.states if can_hold or state == row.target or state not in machine.held]
    others = [state for state in states if state != row.target]
    return row._replace(target=others[states.index(row.target) % len(others)]) if others else row


Signature: TypeAlias = tuple[int, int, frozenset[str]]


def signature(specification: Specification, system: System, limit: int | None = None) -> Signature:
    """States, transitions and anomalies of a search that ends at ``limit`` states."""
    found = explore.explore(system.network(specification), explore.SearchOptions(max_states=limit))
    return found.states, found.transitions, frozenset(found.witnesses)


Measured: TypeAlias = tuple[Signature, Collection[RowOfEvent]]


def measured(system: System, most_states: int) -> Measured:
    """The signature of ``system`` in the tables as they are and the rows that decide there: none if it is too large."""
    specification = shipped()
    found = signature(specification, system, most_states + 1)
    return found, deciding(system.network(specification)) if found[0] <= most_states else ()


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """The tables as they are: each system's signature, and in which systems each row decides, the smallest first."""

    systems: tuple[System, ...]
    signatures: tuple[Signature, ...]
    deciding: Mapping[RowOfEvent, Sequence[int]]

    @classmethod
    def of(cls, found: Mapping[System, Measured], most_states: int) -> Yardstick:
        """Of the panel's systems those with no more states than ``most_states``."""
        small = {system: each for system, each in found.items() if each[0][0] <= most_states}
        signatures = tuple(each[0] for each in small.values())
        rows = [each[1] for each in small.values()]
        by_row: dict[RowOfEvent, list[int]] = defaultdict(list)
        for number in sorted(range(len(small)), key=lambda n: signatures[n][0]):
            for row in rows[number]:
                by_row[row].append(number)
        return cls(tuple(small), signatures, dict(by_row))


@functools.cache
def yardstick(most_states: int, every: int = 1) -> Yardstick:
    """Of the panel, or of a part of it, made once in a process."""
    systems = panel(shipped())[::every]
    return Yardstick.of({system: measured(system, most_states) for system in systems}, most_states)


_LARGEST = 100_000
"""States: the panel has no larger systems, so that each trial takes seconds."""

_COMPARED = 8
"""How many systems compare their traces, if no number tells a mutant."""

_TRACED = 10_000
"""States at which a comparison of traces ends without an answer."""

_EVIDENCE = 3_000
"""States of the systems in which it is looked up who decides instead of a row that decides nothing."""

_LEAST = 0.99
"""The share of the mutants of deciding rows that has to be noticed."""

NO_STATE = "no such state"
"""Who decides instead of a row in whose state no small system is."""

UNEXPLAINED = "NO REASON IS KNOWN"

Explained: TypeAlias = Mapping[tuple[str, str], Sequence[Mutant]]


def trial(mutant: Mutant, known: Yardstick) -> Noticed:
    """Let the panel look at one mutant, smallest system first, until one notices."""
    systems = known.deciding.get(mutant.row, ())
    changed = apply(shipped(), mutant)
    for number in systems:
        before = known.signatures[number]
        after = signature(changed, known.systems[number], 4 * before[0] + 1000)
        if after != before:
            new = after[2] - before[2]
            how = f"it brings {', '.join(sorted(new))}" if new else "the space has another size"
            return Noticed(mutant, decides=True, how=how, anomalies=frozenset(new))
    trace = _new_trace(changed, [known.systems[number] for number in systems[:_COMPARED]])
    return Noticed(mutant, decides=bool(systems), how=trace, anomalies=frozenset())


def _new_trace(changed: Specification, systems: Sequence[System]) -> str | None:
    """A trace that only one of the two has: spaces of one size are not the same yet."""
    for system in systems:
        configuration = shipped().configure(system.profile, dict(system.settings))
        before, after = (compose(tables, configuration, system.bounds, ()) for tables in (shipped(), changed))
        found = explore.compare(before, after, shipped().events.keys(), max_states=_TRACED)
        if found.trace:
            return f"{found.only} alone goes on with {found.trace[-1]} after {len(found.trace) - 1} steps"
    return None


def score() -> tuple[list[Noticed], Mapping[RowOfEvent, frozenset[str]]]:
    """Every mutant, tried in parallel; and for each row that decides nothing who decides :func:`instead`."""
    systems = panel(shipped())
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:  # says so if a process dies
        found = pool.map(functools.partial(measured, most_states=_LARGEST), systems, chunksize=4)
        known = Yardstick.of(dict(zip(systems, found, strict=True)), _LARGEST)
        tried = list(pool.map(functools.partial(trial, known=known), mutants(shipped()), chunksize=16))
        idle = frozenset(each.mutant.row for each in tried if not each.decides)
        sizes = zip(known.systems, known.signatures, strict=True)
        small = [system for system, (states, *_) in sizes if states <= _EVIDENCE]
        return tried, in_all(pool.map(functools.partial(_instead, rows=idle), small, chunksize=4))


def _instead(system: System, rows: Collection[RowOfEvent]) -> Mapping[RowOfEvent, frozenset[str]]:
    return instead(system.network(shipped()), rows)


def survivors() -> Mapping[str, str]:
    """The mutants that nobody can notice, each with the reason why it is the same system."""
    text = (DATA / "survivors.yaml").read_text(encoding="utf-8")
    return {str(name): str(reason) for name, reason in yaml.safe_load(text).items()}


Reasons: TypeAlias = Mapping[str, Mapping[str, str]]


def totality() -> Reasons:
    """For each machine who decides instead of its rows that decide nothing, and why that one always does."""
    text = (DATA / "totality.yaml").read_text(encoding="utf-8")
    found: Reasons = yaml.safe_load(text)
    return found


def explained(idle: Collection[Mutant], others: Mapping[RowOfEvent, frozenset[str]], reasons: Reasons) -> Explained:
    """The mutants ``idle`` by machine and by who decides instead, as far as ``reasons`` know it."""
    found: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in idle:
        who = {*others.get(mutant.row, {NO_STATE}), f"{mutant.state} {mutant.event}"}
        known = [each for each in reasons.get(mutant.machine, {}) if each in who]
        found[mutant.machine, known[0] if known else UNEXPLAINED].append(mutant)
    return found


def main() -> int:
    """Print the score, what nobody noticed, and the properties that a mutant was seen to break."""
    (found, others), excused, reasons = score(), survivors(), totality()
    decisive = [each for each in found if each.decides]
    alive = [str(each.mutant) for each in decisive if each.how is None]
    broken = frozenset[str]().union(*(each.anomalies for each in found))
    out = sys.stdout.write
    share = 1 - len(alive) / len(decisive)
    out(f"{len(found)} mutants; {len(decisive)} of rows that decide something, {len(decisive) - len(alive)} noticed\n")
    out(f"{share:.2%} are noticed; {len(excused.keys() & set(alive))} of the others have a reason\n")
    out(f"brought about by some mutant: {', '.join(sorted(broken))}\n")
    for name in sorted(stale := excused.keys() - set(alive)):
        out(f"is noticed, and need not be excused any more: {name}\n")
    for name in alive:
        out(f"survives: {name} ({excused.get(name, 'NO REASON IS KNOWN')})\n")
    idle = explained([each.mutant for each in found if not each.decides], others, reasons)
    for (machine, who), rows in idle.items():
        reason = reasons[machine][who] if who != UNEXPLAINED else ", ".join(map(str, rows))
        out(f"decide nothing: {len(rows)} mutants of {machine}, since {who}: {reason}\n")
    unused = [f"{machine} {who}" for machine, of in reasons.items() for who in of if (machine, who) not in idle]
    for each in unused:
        out(f"explains no row any more: {each}\n")
    unknown = set(alive) - excused.keys() or any(who == UNEXPLAINED for _, who in idle)
    return int(bool(stale or unknown or unused) or share < _LEAST)


if __name__ == "__main__":
    sys.exit(main())
