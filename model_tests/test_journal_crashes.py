"""Every crash of a journal: exact counts, no violation; and every seeded bug is found, by name."""

import pytest

from ackfsm.journal import enumerate_crashes, enumerate_damage, every_run, parse_run, random_crashes, random_run
from ackfsm.terms import InputError
from model_tests._tables import shipped
from model_tests.journal_bugs import BUGS, DAMAGE_BUG, opened

EIGHT = {
    "store 1, write, store 2, write, sync, remove 1, write, sync": (0, 0, 0),
    "store 1 in 7, store 2 in 7, commit 7, sync, store 3, remove 1, sync, reopen": (0, 0, 0),
    "store 1, store 2, sync, remove 1 in 7, store 3 in 7, commit 7, write, compact": (0, 0, 0),
    "store 1, mark 1, remember 4, write, store 2, write, tear, sync": (0, 0, 0),
    "store 1, write, kill, sync, remove 1, write, kill, sync": (0, 0, 0),
    "store 1, write, store 2, failing, sync, store 3, sync, reopen": (0, 0, 0),
}
"""Runs of eight operations: crash points, states of the disk, recoveries."""


@pytest.mark.parametrize(("run", "counts"), EIGHT.items())
def test_every_crash_of_eight_operations_is_survived(run: str, counts: tuple[int, int, int]) -> None:
    found = enumerate_crashes(opened, [run], specification=shipped())
    assert not found.violations
    assert (found.crash_points, found.disk_states, found.recoveries) == counts
