"""Faults that explain many messages at once: few moments, each within what every message allows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from ackfsm.terms import Fault
from ackfsm.verify.conformance.timeline import Family, Moment, Option, joined

KILL, CUT = (Family(Fault.BROKER_KILL, -1), Family(Fault.CONSUMER_LINK_LOSS, 7))
OTHER_CUT = Family(Fault.CONSUMER_LINK_LOSS, 8)

_Options: TypeAlias = Mapping[int, Sequence[Option[int]]]
"""``detail`` is how many more faults are needed."""


def _joined(options: _Options, then: _Options | None = None) -> list[Moment]:
    return joined(options, lambda message, option, _: (then or {})[message] if option.detail else ())


def _option(family: Family, low: int, high: int, more: int = 0) -> Option[int]:
    return Option(family, low, high, more)


def _told(moments: Sequence[Moment]) -> list[tuple[Family, int, int, set[int]]]:
    return [(each.family, each.low, each.high, each.messages) for each in moments]


_INTERVALS = st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair)))


def _fewest(intervals: Sequence[tuple[int, int]]) -> int:
    """How many moments all of ``intervals`` take, by trying every set of ends."""
    ends = sorted({high for _, high in intervals})
    sizes = range(len(ends) + 1)
    return next(
        size
        for size in sizes
        for moments in itertools.combinations(ends, size)
        if all(any(low <= at <= high for at in moments) for low, high in intervals)
    )


@given(st.lists(_INTERVALS, max_size=9))
def test_faults_of_one_victim_are_the_fewest(intervals: list[tuple[int, int]]) -> None:
    found = _joined({message: [_option(KILL, *each)] for message, each in enumerate(intervals)})
    assert len(found) == _fewest(intervals)
    assert sorted(message for each in found for message in each.messages) == list(range(len(intervals)))


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([KILL, CUT, OTHER_CUT]), _INTERVALS), min_size=1, max_size=3), max_size=12
    )
)
def test_each_message_is_explained_by_one_moment_that_it_allows(
    drawn: list[list[tuple[Family, tuple[int, int]]]],
) -> None:
    options = {n: [_option(family, *each) for family, each in its] for n, its in enumerate(drawn)}
    found = _joined(options)
    assert sorted(message for each in found for message in each.messages) == list(options)
    for moment in found:
        assert moment.low <= moment.high
        for message in moment.messages:
            its = [each for each in options[message] if each.family == moment.family]
            assert any(each.low <= moment.low and moment.high <= each.high for each in its)


def test_one_crash_explains_what_ten_broken_connections_would() -> None:
    options = {n: [_option(Family(Fault.CONSUMER_LINK_LOSS, n), 0, 9), _option(KILL, n, 20)] for n in range(10)}
    assert _told(_joined(options)) == [(KILL, 9, 20, set(range(10)))]


def test_intervals_that_touch_have_a_moment_in_common() -> None:
    options = {1: [_option(CUT, 0, 5), _option(KILL, 0, 5)], 2: [_option(OTHER_CUT, 5, 9), _option(KILL, 5, 9)]}
    assert _told(_joined(options)) == [(KILL, 5, 5, {1, 2})]


def test_of_two_that_explain_as_much_the_lesser_is_told() -> None:
    assert [each.family for each in _joined({1: [_option(KILL, 0, 5), _option(CUT, 0, 5)]})] == [CUT]


def test_exceptions_of_listeners_are_no_one_fault() -> None:
    families = [Family(Fault.LISTENER_EXCEPTION, 7, message) for message in range(3)]
    assert len(_joined({n: [_option(family, 0, 5)] for n, family in enumerate(families)})) == 3


def test_a_second_fault_of_a_message_is_one_that_others_need_if_it_may_be() -> None:
    options = {1: [_option(CUT, 0, 5, more=1)], 2: [_option(CUT, 1, 5)], 3: [_option(KILL, 6, 9)]}
    found = _joined(options, {1: [_option(OTHER_CUT, 7, 8), _option(KILL, 7, 8)]})
    assert _told(found) == [(CUT, 1, 5, {1, 2}), (KILL, 7, 8, {1, 3})]


def test_one_fault_is_not_taken_for_two() -> None:
    found = _joined({1: [_option(CUT, 0, 5, more=1)]}, {1: [_option(CUT, 0, 9)]})
    assert _told(found) == [(CUT, 0, 5, {1}), (CUT, 0, 9, {1})]
