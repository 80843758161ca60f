"""A plain life ends unmarked in every property machine, in every order that it admits: so Spark need not fold it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from ackfsm.spark._lives import ANY_NUMBER, CLEAN_PATTERNS
from ackfsm.terms import SendMode
from ackfsm.verify._fold import fold
from ackfsm.verify._format import Observable, observable_code
from ackfsm.verify._watch import machines_of
from model_tests.support.tables import shipped

SPEC = shipped()


def _orders(life: Mapping[Observable, Observable | None]) -> Iterator[tuple[Observable, ...]]:
    """Every order of the life's observables in which each comes after the one that it is mapped to."""
    for word in itertools.permutations(life):
        if all(first is None or word.index(first) < word.index(each) for each, first in life.items()):
            yield word


def _with_acknowledgements(word: tuple[Observable, ...]) -> Iterator[tuple[Observable, ...]]:
    """``word`` with up to two acknowledgements, calls or answers, anywhere after the delivery."""
    yield word
    if Observable.DELIVERED_CLEAR not in word:
        return
    after = range(word.index(Observable.DELIVERED_CLEAR) + 1, len(word) + 1)
    for number in (1, 2):
        for acts in itertools.product(ANY_NUMBER, repeat=number):
            for places in itertools.combinations_with_replacement(after, number):
                longer = list(word)
                for place, act in sorted(zip(places, acts, strict=True), reverse=True):
                    longer.insert(place, act)
                yield tuple(longer)


def _marked(word: tuple[Observable, ...], send_mode: SendMode) -> set[str]:
    machines = machines_of(SPEC, SPEC.configure("jms", {"send_mode": send_mode}))
    codes = np.array([observable_code(each) for each in word], np.uint8)
    states = fold(machines, np.zeros(1, np.int64), codes) if word else machines.initial[None, :]
    return {
        name for name in SPEC.properties if name in machines.names and machines.means(name, states, np.ones(1, bool))[0]
    }


@pytest.mark.parametrize("send_mode", SendMode)
@pytest.mark.parametrize("life", CLEAN_PATTERNS.values(), ids=CLEAN_PATTERNS)
def test_a_plain_life_is_never_marked(life: Mapping[Observable, Observable | None], send_mode: SendMode) -> None:
    words = {longer for word in _orders(life) for longer in _with_acknowledgements(word)}
    assert words
    assert {word: marks for word in words if (marks := _marked(word, send_mode))} == {}


def test_the_claim_can_fail() -> None:
    life = CLEAN_PATTERNS["sent"]
    assert _marked(tuple(each for each in life if each is not Observable.DELIVERED_CLEAR), SendMode.BLOCKING) == {
        "loss"
    }
    assert _marked((*life, Observable.DELIVERED_CLEAR), SendMode.BLOCKING) == {"unflagged_duplicate"}
