"""In which orders the signs of one life are heard, by all the orders there are, with observers that mean nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackfsm.verify.conformance.life import Heard, Life, contradiction
from ackfsm.verify.conformance.observer import Belief, TooManyStatesError
from ackfsm.verify.context.signs import Sign

_NAMES = ("delivered", "processed", "broker_crash")
_STATES = 4


class _Table:
    """An observer of a few states that hears signs by a table."""

    around = frozenset({"broker_crash"})

    def __init__(self, leads: Mapping[tuple[int, str], frozenset[int]]) -> None:
        self._leads = leads

    def first(self) -> Belief:
        return frozenset({0})

    def hear(self, belief: Belief, sign: Sign) -> Belief:
        return frozenset[int]().union(*(self._leads.get((state, sign.name), frozenset()) for state in belief))

    def possible(self, _: Belief) -> tuple[str, ...]:
        return ()


_AT = tuple(frozenset({state}) for state in range(_STATES))

_TABLES = st.dictionaries(
    st.tuples(st.integers(0, _STATES - 1), st.sampled_from(_NAMES)),
    st.frozensets(st.integers(0, _STATES - 1), max_size=2),
).map(_Table)
_HEARD = st.builds(Heard, st.sampled_from(_NAMES).map(Sign), st.integers(0, 2), st.integers(0, 6))


_ONE_BETWEEN = (Heard(Sign("delivered"), 0), Heard(Sign("delivered"), 1, 1), Heard(Sign("processed"), 1, 2))
"""The first sign may come last, after what waits for the second one alone."""


@example(_ONE_BETWEEN, _Table({(0, "delivered"): _AT[1], (1, "processed"): _AT[2], (2, "delivered"): _AT[3]}))
@given(st.lists(_HEARD, max_size=6), _TABLES)
def test_a_life_is_a_run_if_some_order_of_its_signs_is(heard: Sequence[Heard], observer: _Table) -> None:
    found = contradiction(Life(tuple(heard)), observer)  # type: ignore[arg-type]
    assert (found is None) == any(_is_heard(order, observer) for order in _orders(heard))


def _orders(heard: Sequence[Heard]) -> list[list[Heard]]:
    """All orders in which no sign comes before one that its reach, or its lane, puts before it."""

    def holds(order: Sequence[int]) -> bool:
        at = {place: when for when, place in enumerate(order)}
        return all(
            at[other] < at[place]
            for place in order
            for other in range(place)
            if other < place - heard[place].reach or heard[other].lane == heard[place].lane
        )

    return [[heard[place] for place in order] for order in itertools.permutations(range(len(heard))) if holds(order)]


def _is_heard(order: Sequence[Heard], observer: _Table) -> bool:
    belief = observer.first()
    for each in order:
        belief = observer.hear(belief, each.sign)
    return bool(belief)


_STAYS = _Table(MappingProxyType({(0, name): frozenset({0}) for name in _NAMES}))


def test_many_equal_faults_in_one_time_have_one_order() -> None:
    crashes = tuple(Heard(Sign("broker_crash"), lane, lane) for lane in range(60))
    assert contradiction(Life(crashes), _STAYS) is None  # type: ignore[arg-type]


def test_a_life_of_too_many_orders_is_given_up_and_not_searched_for_ever() -> None:
    different = tuple(Heard(Sign("broker_crash", consumer=lane), lane, lane) for lane in range(60))
    with pytest.raises(TooManyStatesError):
        contradiction(Life(different), _STAYS)  # type: ignore[arg-type]


@given(st.lists(_HEARD, max_size=8), st.sets(st.integers(0, 7)))
def test_signs_that_are_left_out_leave_each_other_sign_with_those_that_may_have_come_after_it(
    heard: list[Heard], places: set[int]
) -> None:
    there = sorted(place for place in places if place < len(heard))
    found = Life(tuple(heard)).without(*there).heard
    kept = [place for place in range(len(heard)) if place not in there]
    assert [each.sign for each in found] == [heard[place].sign for place in kept]
    for nth, place in enumerate(kept):
        behind = [other for other in kept[:nth] if place - heard[place].reach <= other]
        unseen = max(0, heard[place].reach - place)  # of what was there before the life began
        assert found[nth].reach == len(behind) + unseen
