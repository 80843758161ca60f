"""Every crash of a journal: exact counts, no violation; and every seeded bug is found, by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ackfsm.engine.journal import (
    FileJournal,
    Operation,
    enumerate_corruptions,
    enumerate_crashes,
    parse_workload,
    random_crashes,
    random_run,
)
from ackfsm.terms import InputError
from model_tests.support.journal.bugs import BUGS, DAMAGE_BUG, opened
from model_tests.support.tables import shipped
from model_tests.support.whole import few

EIGHT = {
    "store 1, write, store 2, write, sync, remove 1, write, sync": (28, 1_065, 6_312),
    "store 1 in 7, store 2 in 7, commit 7, sync, store 3, remove 1, sync, reopen": (42, 1_407, 10_842),
    "store 1, store 2, sync, remove 1 in 7, store 3 in 7, commit 7, write, compact": (32, 2_796, 10_078),
    "store 1, mark 1, remember 4, write, store 2, write, tear, sync": (31, 622, 1_632),
    "store 1, write, kill, sync, remove 1, write, kill, sync": (45, 632, 2_434),
    "store 1, write, store 2, failing, sync, store 3, sync, reopen": (34, 711, 1_973),
}
"""Runs of eight operations: crash points, states of the disk, recoveries."""

ENTRIES = {"store", "remove", "commit"}


@pytest.mark.parametrize(("run", "counts"), few([*EIGHT.items()], 3))
def test_every_crash_of_eight_operations_is_survived(run: str, counts: tuple[int, int, int]) -> None:
    found = enumerate_crashes(opened, [run], specification=shipped())
    assert not found.violations
    assert (found.crash_points, found.disk_states, found.recoveries) == counts


def test_every_short_run_is_survived() -> None:
    runs = list(_every_run(3))
    found = enumerate_crashes(opened, runs, specification=shipped(), fine=False)
    assert (found.runs, found.crash_points, found.disk_states, found.recoveries) == (64, 1_462, 2_255, 15_420)
    assert not found.violations


@pytest.mark.parametrize("faults", [False, True])
def test_long_random_runs_are_survived(*, faults: bool) -> None:
    seeds = few(range(2), 1)
    found = random_crashes(opened, seeds, length=10, faults=faults, specification=shipped())
    assert (found.runs, found.violations) == (len(seeds), ())
    assert found.recoveries > 200


def test_without_a_bug_the_runs_that_show_bugs_are_survived() -> None:
    runs = few([*dict.fromkeys(bug.run for bug in BUGS.values())], 8)
    assert not enumerate_crashes(opened, runs, specification=shipped(), fine=False).violations


@pytest.mark.parametrize("name", BUGS)
def test_every_seeded_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    assert enumerate_crashes(bug.opened, [bug.run], specification=shipped(), fine=False, shrink=False).violations


def test_the_shortest_run_is_told() -> None:
    run = "store 3, write, remember 4, sync, remove 3, store 1, sync, kill"
    bug = BUGS["remembers ids only in memory"]
    (violation,) = enumerate_crashes(bug.opened, [run], specification=shipped(), fine=False).violations
    assert violation.run == "remember 4, sync"
    assert "duplicate-id 4 is not there" in violation.what


def test_without_persistence_no_id_survives_and_that_is_found() -> None:
    found = enumerate_crashes(
        lambda disk: FileJournal("/journal", remembered=0, disk=disk), ["remember 1, sync"], specification=shipped()
    )
    assert "the tables do not allow" in found.violations[0].what


LYING = "store 1, sync, lying, store 2 in 7, remove 1 in 7, commit 7, sync"


def test_a_disk_that_lies_can_lose_but_not_tear_or_invent() -> None:
    assert not enumerate_crashes(opened, [LYING], specification=shipped(), fine=False).violations


SYNCED = "store 1, store 2, sync, remove 1, mark 2, sync, store 3 in 7, commit 7, sync, remember 5, "


@pytest.mark.parametrize(
    ("end", "refused", "cut", "harmless"),
    [("sync", 203, 47, 137), ("reopen", 297, 0, 142), ("sync, compact, store 6, sync", 323, 47, 137)],
)
def test_damage_is_refused_and_what_is_cut_was_never_safe(end: str, refused: int, cut: int, harmless: int) -> None:
    found = enumerate_corruptions(opened, SYNCED + end)
    assert (found.refused, found.cut) == (refused, cut)
    assert found.harmless == harmless, "in one of the three marks of the watermark, where two others say enough"
    assert not found.violations


def test_damage_that_is_taken_for_a_torn_end_is_found() -> None:
    assert enumerate_corruptions(DAMAGE_BUG, SYNCED + "sync").violations


@pytest.mark.parametrize("word", ["stor 1", "store", "sync 1", "store one", ""])
def test_a_word_that_is_no_operation_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="is no operation; write for example"):
        parse_workload(f"store 1, {word}")


def test_runs_read_as_they_are_written() -> None:
    text = "store 1 in 7, commit 7, mark 1, reopen, tear"
    assert ", ".join(map(str, parse_workload(text))) == text
    assert random_run(3, 20) == random_run(3, 20) != random_run(4, 20)


def _every_run(length: int) -> Iterator[tuple[Operation, ...]]:
    """All meaningful runs of ``length`` operations over two copies and a transaction.

    A copy is stored once, and removed once, after it was stored; copy 2 is stored after copy 1; a transaction is
    committed once, when there is something in it; no two calls in a row do nothing.
    """
    alphabet = parse_workload(
        "store 1, store 1 in 7, remove 1, remove 1 in 7, store 2, store 2 in 7, commit 7,"
        " write, sync, compact, reopen, kill, tear"
    )
    yield from (run for run in itertools.product(alphabet, repeat=length) if _sensible(run))


def _sensible(run: tuple[Operation, ...]) -> bool:
    stored: set[int] = set()
    removed: set[int] = set()
    state = {"open": 0, "committed": 0}
    previous = Operation("sync")
    for operation in run:
        if not _follows(operation, previous, stored, removed, state):
            return False
        previous = operation
    return run[-1].name not in ENTRIES


def _follows(
    operation: Operation, previous: Operation, stored: set[int], removed: set[int], state: dict[str, int]
) -> bool:
    """Whether an operation is meaningful here; updates the sets and the state."""
    name, key = operation.name, operation.key
    if name == "store":
        sensible = key not in stored and (key == 1 or 1 in stored)
        stored.add(key)
    elif name == "remove":
        sensible = key in stored and key not in removed
        removed.add(key)
    elif name == "commit":
        sensible = bool(state["open"]) and not state["committed"]
        state["committed"] = 1
    else:
        sensible = previous.name in ENTRIES or (previous.name == "write" and name != "write")
    if operation.transaction:
        sensible = sensible and not state["committed"]
        state["open"] = 1
    if name in {"reopen", "kill", "tear"} and state["open"]:
        state["committed"] = 1
    return sensible
