"""Legal histories and damaged ones: ``python -m model_tests.histories --runs 1000000 --jobs 2``.

Runs of drawn systems of all profiles, many in one history, are verified: none may be accused.  Some of them are
damaged (``--damage 0.05``): each is accused, or left unknown, or shown by the oracle to be a run of the tables all the
same.  What is neither is counted under the reason for which ``verify`` gives it up, and fails where there is none.

System ``number`` of a seed is always the same: ``--seed 1 --only 17`` tries it again, and prints what it finds in full.
Ends with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from ackfsm.checking.explore import Step
from ackfsm.checking.export import run_lines
from ackfsm.checking.network import Network, compose
from ackfsm.terms import Fault, InputError, Verdict
from model_tests.histories.composite import Line, kinds_of, laid_out, write
from model_tests.histories.damage import DAMAGES, damaged
from model_tests.histories.judgement import judged
from model_tests.histories.oracle import Oracle, TooManyError
from model_tests.histories.systems import system
from model_tests.histories.walker import Walker
from model_tests.support.tables import shipped

__all__ = ["Tried", "is_drained", "main", "tried"]

_TRIES: Final = 3
_APART: Final = 200
"""So many runs of a system stand in a history with those alone in which the same happened: by kind they excuse nothing
of each other.  To verify all others together takes a tenth of the time."""

_IN_ONE_HISTORY: Final = 5_000
_DAMAGED_IN_ONE: Final = 50
"""Fewer than the examples that ``verify`` names."""

Tally: TypeAlias = "collections.Counter[str]"


@dataclasses.dataclass(frozen=True, slots=True)
class _Run:
    """The labels of a run, the lines that it leaves, and what damaged them; empty if nothing did."""

    labels: str
    lines: Sequence[Line]
    damage: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """What came of one system: counts, and what failed."""

    tally: Tally
    failures: tuple[str, ...]


def tried(seed: int, number: int, runs: int, damage: float) -> Tried:
    """Draw so many ``runs`` of system ``number``, of which the part ``damage`` is damaged, and verify them."""
    network, draw = system(seed, number), random.Random(f"runs {seed} {number}")
    tally, failures = collections.Counter[str](), list[str]()
    legal, spoiled = list[_Run](), list[_Run]()
    for run in _runs(network, runs, draw):
        legal.append(run)
        if draw.random() < damage:
            spoiled += _spoiled(run, draw)
    tally["runs"], tally["different"] = len(legal), len({run.labels for run in legal})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "history.jsonl"
        failures += _accused(network, legal, file, draw, tally)
        for run, fate in _fates(network, spoiled, file, draw):
            tally[f"{run.damage}: {fate}"] += 1
            if fate == "missed":
                failures.append(f"missed: {run.damage} in {_described(network, run)}")
    return Tried(tally, tuple(f"system {number} of seed {seed}: {each}" for each in failures))


def _runs(network: Network, count: int, draw: random.Random) -> Iterator[_Run]:
    """So many runs by chance, if as many tell of all consumers: one that has no line is not there for a reader."""
    walker, consumers = Walker(network), {f"consumer-{each + 1}" for each in range(network.bounds.consumers)}
    found = 0
    for _ in range(_TRIES * count):
        steps = walker.run(draw)
        lines = run_lines(shipped(), network.configuration, steps, at_rest=is_drained(network, steps))
        if len(consumers) == 1 or consumers <= {line["process"] for line in lines if line["event"] == "delivered"}:
            found += 1
            if found > count:
                return
            yield _Run(" ".join(step.event.label for step in steps), lines)


_GONE: Final = frozenset({"absent", "discarded", "removed", "expired", "not_recovered"})
"""The states of the machine ``entry`` in which a message is not in its queue."""


def is_drained(network: Network, steps: Sequence[Step]) -> bool:
    """Whether the queue is empty in the end: what a listener failed to process may be in flight for ever."""
    state = steps[-1].after if steps else network.initial
    return all(
        name in _GONE for instance, name in zip(network.instances, state, strict=True) if instance.fsm.name == "entry"
    )


def _spoiled(run: _Run, draw: random.Random) -> list[_Run]:
    kind = draw.choice([*DAMAGES])
    lines = damaged(run.lines, kind, draw)
    return [] if lines == run.lines else [_Run(run.labels, lines, kind)]


def _grouped(runs: Sequence[_Run], most: int) -> Iterator[list[_Run]]:
    """Runs in which different things happened, which may excuse each other, stand in different histories."""
    groups = dict[frozenset[str], list[_Run]]()
    for run in runs:
        groups.setdefault(kinds_of(run.lines), []).append(run)
    for group in groups.values():
        yield from (group[begin : begin + most] for begin in range(0, len(group), most))


def _accused(network: Network, legal: Sequence[_Run], file: Path, draw: random.Random, tally: Tally) -> Iterator[str]:
    """What is said against legal runs; the ``tally`` counts the histories of them, and of which the verdict is open."""
    others = [legal[begin : begin + _IN_ONE_HISTORY] for begin in range(_APART, len(legal), _IN_ONE_HISTORY)]
    for group in (*_grouped(legal[:_APART], _APART), *others):
        write(file, network.configuration, laid_out([run.lines for run in group], draw))
        drained = all(run.lines[-1]["event"] == "drained" for run in group if run.lines)
        said = judged(file, network.configuration, drained=drained)
        tally["histories"] += 1
        tally["histories left unknown"] += said.result.verdict is Verdict.UNKNOWN
        for number, why in said.accused.items():
            yield f"accused: {why} in {_described(network, group[number]) if number >= 0 else network.configuration}"


def _fates(network: Network, spoiled: Sequence[_Run], file: Path, draw: random.Random) -> Iterator[tuple[_Run, str]]:
    oracle = functools.cache(lambda: Oracle(_with_any_fault(network)))
    for group in _grouped(spoiled, _DAMAGED_IN_ONE):
        caught = _caught(network, group, file, draw)
        yield from ((run, "caught" if place in caught else _why_not(oracle(), run)) for place, run in enumerate(group))


def _caught(network: Network, group: Sequence[_Run], file: Path, draw: random.Random) -> frozenset[int]:
    """Which of these are accused or left unknown; one by one where all together leave it open which."""
    try:
        write(file, network.configuration, laid_out([run.lines for run in group], draw, strictly=True))
        said = judged(file, network.configuration)
    except InputError:
        found = frozenset(range(len(group)))
    else:
        open_ = said.result.verdict is Verdict.UNKNOWN or said.doubts or -1 in said.accused
        found = frozenset(range(len(group))) if open_ else frozenset(said.accused)
        if not open_ or (len(group) == 1 and said.result.verdict is not Verdict.VALID):
            return found
        if len(group) == 1:
            return frozenset()
    if len(group) == 1:
        return found
    return frozenset(place for place, run in enumerate(group) if _caught(network, [run], file, draw))


def _why_not(oracle: Oracle, run: _Run) -> str:
    """Why damage was not noticed: it is a run of the tables, or ``verify`` does not look."""
    try:
        return next((why for why, so in _reasons(oracle, run.lines) if so), "missed")
    except TooManyError:
        return "not decided by the oracle"


def _reasons(oracle: Oracle, lines: Sequence[Line]) -> Iterator[tuple[str, bool]]:
    """Each reason with whether it is that."""
    yield "a run of the tables", oracle.is_run(lines)
    yield "given up, the flags of two messages do not go together", oracle.is_run(lines, flags=False)
    for event, why in _GIVEN_UP.items():
        yield f"given up, {why}", oracle.is_run(lines, without={event})
    yield "given up, a transaction of the same name may be empty", oracle.is_run([*_called_once(lines)])
    yield "given up, a transaction that was rolled back sent nothing", oracle.is_run([*_undone_once(lines)])
    if all(oracle.is_run(each) for each in _alone(lines)):
        why_no_pair = _why_no_pair(lines)
        yield why_no_pair, bool(why_no_pair)


_GIVEN_UP: Final = MappingProxyType(
    {
        "processed": "who acknowledged first need not have processed",
        "resend": "a library need not write that it sends again",
        "failed": "an application may fail more often than the listener of the model",
        "ack_in_doubt": "what failed a call may have been seen by the library alone",
        "close": "the end of a session that the model does not have there is not heard",
    }
)
"""Why lines of an event may be missing, or too many, and nobody notices."""


_OF_TRANSACTIONS: Final = frozenset({"begin", "commit", "committed", "commit_in_doubt", "rollback", "rolled_back"})


def _called_once(lines: Sequence[Line]) -> Iterator[Line]:
    """Without what was called, or answered, a second time for a transaction of that name."""
    called = set[tuple[str, str]]()
    for line in lines:
        call = line["event"], line.get("transaction", "")
        if call[1] and call[0] in _OF_TRANSACTIONS:
            if call in called:
                continue
            called.add(call)
        yield line


def _undone_once(lines: Sequence[Line]) -> Iterator[Line]:
    """Without what was sent a second time in a transaction that was rolled back."""
    undone = {line.get("transaction") for line in lines if line["event"] in {"rollback", "rolled_back"}}
    sent = set[tuple[str, str]]()
    for line in lines:
        if line["event"] == "send" and line.get("transaction") in undone:
            its = line["transaction"], line["message"]
            if its in sent:
                continue
            sent.add(its)
        yield line


def _alone(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines of each message, with those that are of none."""
    for message in sorted({line["message"] for line in lines if "message" in line}):
        yield [line for line in lines if line.get("message", message) == message]


def _why_no_pair(lines: Sequence[Line]) -> str:
    """Why two messages, each a run of the tables, are not held to them together (docs/decisions/pairs.md), or empty."""
    if any(line["event"] == "resend" for line in lines):
        return "given up, a message was sent again"
    blocked = set[str]()
    for line in lines:
        if line["event"] == "send" and "transaction" not in line:
            if blocked:
                return "given up, a send began while another was blocked"
            blocked.add(line["message"])
        elif line["event"] in {"confirmed", "rejected", "in_doubt"}:
            blocked.discard(line["message"])
    return ""


def _with_any_fault(network: Network) -> Network:
    bounds = dataclasses.replace(
        network.bounds,
        faults=frozenset(Fault),
        max_faults=None,
        actions=frozenset({"recover", "rollback", "consumer_close", "send_timed_out", "outcome_forgotten"}),
    )
    return compose(shipped(), network.configuration, bounds)


def _described(network: Network, run: _Run) -> str:
    configuration = network.configuration
    usual = shipped().configure(configuration.profile).as_dict()
    chosen = {name: value for name, value in configuration.as_dict().items() if usual[name] != value}
    lines = "".join(f"\n    {' '.join(f'{value}' for value in line.values())}" for line in run.lines)
    return f"{configuration.profile} {chosen} {network.bounds.as_dict()}\n  {run.labels}{lines}"


def _task(asked: tuple[int, int, int, float]) -> Tried:
    return tried(*asked)


def _all(asked: argparse.Namespace) -> Iterator[Tried]:
    numbers = [asked.only] if asked.only is not None else range(-(-asked.runs // asked.each))
    tasks = [(asked.seed, number, asked.each, asked.damage) for number in numbers]
    if asked.jobs == 1:
        yield from map(_task, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(asked.jobs, context) as executor:
        yield from executor.map(_task, tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try histories; returns 1 if any fails."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.histories", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=2_000, help="runs of one system")
    parser.add_argument("--damage", type=float, default=0.05, help="the part of the runs that is damaged as well")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this system alone")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    tally, failures, begun = collections.Counter[str](), 0, time.monotonic()
    for number, each in enumerate(_all(asked)):
        tally.update(each.tally)
        failures += len(each.failures)
        told = [*each.failures[:5], f"{tally['runs']:,} runs, {failures} failures, {time.monotonic() - begun:.0f} s"]
        sys.stdout.write("".join(f"{line}\n" for line in (told if number % 50 == 0 else told[:-1])))
        sys.stdout.flush()
    counts = (f"{count:>9,} {name}\n" for name, count in sorted(tally.items()))
    sys.stdout.write(f"{''.join(counts)}{failures:>9,} failures\n")
    return min(failures, 1)
