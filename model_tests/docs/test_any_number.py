"""What is kept for the pages of the systems: it is of these tables, and some of it is proved anew."""

from __future__ import annotations

import functools
import random

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import DecidedMode, Undecided
from ackfsm.tables.batch import batch
from ackfsm.terms import Anomaly, Configuration, Fault
from model_tests import any_number
from model_tests.support.checker.projected import fading
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, before_a_release

WHY = ("2 messages or more: there are more than 6,000,000 views at the level local", "a; b: c 1", "")
MADE_BY = "make it again: python -m model_tests.any_number"


@functools.cache
def first() -> dict[str, Configuration]:
    return any_number.first_of(shipped(), any_number.modes_of(shipped()))


def test_what_is_kept_is_of_these_tables() -> None:
    """A row that matters gives the modes with it another digest, so that what was kept of them is no more."""
    kept = any_number.FILE.read_text(encoding="utf-8")
    names = any_number.names_of(shipped(), first())
    assert kept == any_number.text_of(matrix.kept_decisions(), names), MADE_BY


def test_the_file_is_read_as_it_is_written() -> None:
    draw = random.Random(3)
    names = [anomaly.value for anomaly in Anomaly]
    for _ in range(20):
        drawn = draw.sample(names, draw.randrange(len(names)))
        cut = draw.randint(0, len(drawn))
        one = DecidedMode(
            {name: draw.randint(1, 501) for name in drawn[:cut]},
            {name: Undecided(draw.randint(0, 3), draw.choice(WHY)) for name in drawn[cut:]},
        )
        key, mode = draw.choice([*first().items()])
        text = any_number.text_of({key: one}, any_number.names_of(shipped(), {key: mode}))
        assert matrix.read_decided_modes(text.splitlines()) == {key: one}


@pytest.mark.parametrize("told", ["reorder:1", "reorder:1 [too many] and more", "loss [too many]"])
def test_what_is_undecided_is_never_passed_over(told: str) -> None:
    """An anomaly that is not read would be one that is proved."""
    with pytest.raises(ValueError, match="is not an undecided anomaly with a number and a reason"):
        matrix.read_decided_modes([f"0123456789abcdef; jms; duplicate:1; {told}"])


@before_a_release
@pytest.mark.parametrize("number", [0, 1])
def test_what_is_kept_is_found_again(number: int) -> None:
    """Other modes whenever the file is another one."""
    kept = {key: one for key, one in matrix.kept_decisions().items() if key in first()}
    key = random.Random(f"{sorted(kept)} {number}").choice(sorted(kept))
    (found,) = any_number.decide_modes(shipped(), [first()[key]])
    for anomaly in Anomaly:
        known, now = kept[key].reachable(anomaly), found.reachable(anomaly)
        assert known is None or now is known, (first()[key], anomaly, MADE_BY)
    assert all(found.possible[name] <= messages for name, messages in kept[key].possible.items())


def test_nothing_that_two_messages_show_is_said_to_be_impossible() -> None:
    """By a search that knows nothing of proofs."""
    reached, many, kept = 0, 20 if WHOLE else 7, matrix.kept_decisions()
    for key, one in random.Random(1).sample(sorted(kept.items()), many):
        bounds = Bounds(messages=2, faults=frozenset(Fault), max_faults=1)
        answer = explore.check(shipped(), first()[key], bounds, max_states=100_000)
        for anomaly, finding in answer.findings.items():
            reached += finding.reachable is True
            assert not finding.reachable or one.reachable(anomaly) is not False, (first()[key], anomaly)
    assert reached > many


def test_what_was_kept_is_not_found_for_other_tables() -> None:
    mode = shipped().configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    with batch(shipped()) as work:
        known = matrix.keys_of_modes(work, [mode])[mode]
    with batch(fading(shipped(), 2)) as work:
        assert matrix.keys_of_modes(work, [mode])[mode] != known
    assert known in first()
