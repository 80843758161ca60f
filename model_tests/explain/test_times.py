"""Times of a history are told as a person says them, and read as they are told."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.showing.views.times import Clock, clock_of
from ackfsm.terms import InputError

DAY = 86_400 * 10**9
BEGUN = int(datetime(2026, 3, 1, 23, 59, tzinfo=UTC).timestamp()) * 10**9


@given(st.integers(10**18, 2 * 10**18), st.lists(st.integers(0, 3 * DAY), min_size=1, max_size=5))
def test_a_time_that_is_told_is_read_as_the_same(begun: int, later: list[int]) -> None:
    times = [begun + each for each in later]
    clock = clock_of(begun, times)
    for t in times:
        read = clock.parsed(clock(t), max(times))
        unit = 10 ** (9 - clock.digits)
        assert read // unit == t // unit
        assert clock.parsed(str(t), max(times)) == t
    assert len({clock(t) for t in times}) == len(set(times))


@given(st.integers(0, 10**17), st.lists(st.integers(0, 3 * DAY), min_size=1, max_size=5))
def test_without_a_calendar_times_are_those_of_the_history(begun: int, later: list[int]) -> None:
    times = [begun + each for each in later]
    clock = clock_of(begun, times)
    for t in times:
        cut_off = t - Fraction(clock(t).removesuffix("s")) * 10**9
        assert 0 <= cut_off < 10 ** (9 - clock.digits)
        assert clock.parsed(clock(t), max(times)) // 10 ** (9 - clock.digits) * 10 ** (9 - clock.digits) <= t


@pytest.mark.parametrize(
    ("t", "told"),
    [(BEGUN, "23:59:00"), (BEGUN + 250 * 10**6, "23:59:00.250"), (BEGUN + 120 * 10**9, "2026-03-02 00:01:00")],
)
def test_a_sentence_says_no_more_than_it_has_to(t: int, told: str) -> None:
    assert clock_of(BEGUN, [t]).said(t) == told
    assert Clock(0).said(90 * 10**9) == "90s"


def test_a_time_after_midnight_is_of_the_next_day() -> None:
    ended = BEGUN + 600 * 10**9
    assert Clock(BEGUN).parsed("00:01:00", ended) == BEGUN + 120 * 10**9
    assert Clock(BEGUN).parsed("23:59:30", ended) == BEGUN + 30 * 10**9


@pytest.mark.parametrize("text", ["", "now", "10", "1:2:3:4", "2026-13-01 10:00", "10:61", "10:05:00+01:00", "٣s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    if text == "10":
        assert Clock(BEGUN).parsed(text, BEGUN + DAY) == BEGUN + 10 * 10**9
        return
    with pytest.raises(InputError, match="is no time"):
        Clock(BEGUN).parsed(text, BEGUN + DAY)
