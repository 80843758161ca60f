"""The closed form: rates, what binds, latencies, the window that fills; the command; what is refused."""

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli, tables
from ackfsm.rates.timing import RESOURCES, Interval, Plan, Waits, Workload, plan, waits_of, window_that_fills
from ackfsm.rates.timing._plan import _DELIVERING, _PUBLISHING
from ackfsm.rates.timing._ticks import ticks_of
from ackfsm.terms import InputError, SpecError
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE

MILLISECOND = Fraction(1, 1000)
SEED = Workload(rtt=MILLISECOND / 4, bandwidth=Fraction(2**30), bandwidth_back=Fraction(2**30))
"""The numbers of the seeds: 0.25 ms, 1 Gib/s, 1500 bytes."""


def waits(profile: str = "jms", **settings_: object) -> Waits:
    return waits_of(shipped(), shipped().configure(profile, settings_))


def planned(work: Workload, profile: str = "jms", **settings_: object) -> Plan:
    return plan(work, waits(profile, **settings_))


def exactly(rate: Interval) -> Fraction:
    assert rate.is_exact
    assert rate.high is not None
    return rate.high


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["plan", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(
    ("profile", "mode", "binds"),
    [
        ("solace-jms", "NON_PERSISTENT", "bandwidth down"),
        ("solace", "DIRECT", "bandwidth down"),
        ("solace", "PERSISTENT", "prefetch"),
    ],
)
def test_no_window_holds_a_direct_message_back(profile: str, mode: str, binds: str) -> None:
    far_away = dataclasses.replace(SEED, rtt=Fraction(1))
    assert planned(far_away, profile, delivery_mode=mode).deliver.binds == binds


def test_a_blocking_send_is_bound_by_the_round_trip_and_an_unconfirmed_one_by_the_bandwidth() -> None:
    only_round_trip = dataclasses.replace(SEED, bandwidth=None)
    assert exactly(planned(only_round_trip).publish.rate) == 4000
    unconfirmed = planned(SEED, "artemis", send_mode="unconfirmed").publish
    assert (int(exactly(unconfirmed.rate)), unconfirmed.binds) == (89478, "bandwidth up")
    both = planned(SEED).publish
    assert (exactly(both.rate), both.binds) == (1 / (SEED.rtt + SEED.transmission), "round trip")
    assert (int(exactly(both.next_rate)), both.next_binds) == (89478, "bandwidth up")


def test_a_transaction_waits_once_for_all_its_messages() -> None:
    work = dataclasses.replace(SEED, messages_per_commit=100, sync_time=2 * MILLISECOND)
    found = planned(work, ack_mode="SESSION_TRANSACTED").publish
    assert exactly(found.rate) == 100 / (100 * work.transmission + work.rtt + work.sync_time)


@pytest.mark.parametrize(
    ("window", "threshold", "joined"),
    [(6, 2, 0), (7, 3, 1), (50, 17, 16), (8, 8, 0)],
)
def test_a_window_is_answered_by_thresholds(window: int, threshold: int, joined: int) -> None:
    """What is left of the window makes a batch with the first messages that are let in again."""
    work = Workload(rtt=20 * MILLISECOND, bandwidth=Fraction(10**8))
    found = plan(work, dataclasses.replace(waits("solace"), window=window, threshold=threshold))
    batches, rest = divmod(window, threshold)
    assert rest == joined
    loop = (threshold - rest) * work.transmission + work.rtt
    assert exactly(found.publish.rate) == batches * threshold / loop


def test_a_window_smaller_than_its_threshold_waits_for_the_timer_or_for_ever() -> None:
    work = Workload(rtt=MILLISECOND)
    found = dataclasses.replace(waits("solace"), window=1, threshold=2)
    assert exactly(plan(work, found).publish.rate) == 1 / (work.rtt + 1)
    assert plan(work, found).publish.binds == "window"
    blocking = planned(work, "solace", send_mode="blocking").publish
    assert (exactly(blocking.rate), blocking.binds) == (1 / (work.rtt + 1), "threshold or timer")
    assert exactly(plan(work, dataclasses.replace(found, has_timer=False)).publish.rate) == 0


def test_what_acknowledges_more_than_may_be_out_stands_still() -> None:
    calls: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 5}
    found = planned(Workload(rtt=MILLISECOND, messages_per_acknowledge=6), "rabbitmq", **calls)
    assert (exactly(found.deliver.rate), found.deliver.binds) == (Fraction(0), "prefetch")
    enough = planned(Workload(rtt=MILLISECOND, messages_per_acknowledge=5), "rabbitmq", **calls)
    assert exactly(enough.deliver.rate) == 5000


def test_a_call_that_acknowledges_several_waits_for_the_record_of_each() -> None:
    calls: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "block_on_acknowledge": True}
    work = Workload(rtt=MILLISECOND, sync_time=MILLISECOND, messages_per_acknowledge=10)
    assert exactly(planned(work, **calls).deliver.rate) == 5_000, "one sync takes all of them"
    alone = dataclasses.replace(work, group_commit=False)
    assert exactly(planned(alone, **calls).deliver.rate) == Fraction(10_000, 11)


@pytest.mark.parametrize(
    ("mode", "settled_by", "exact"),
    [
        ("DUPS_OK_ACKNOWLEDGE", "batch", False),
        ("AUTO_ACKNOWLEDGE", "message", True),
        ("INDIVIDUAL_ACKNOWLEDGE", "message", True),
        ("CLIENT_ACKNOWLEDGE", "call", True),
        ("SESSION_TRANSACTED", "commit", True),
        ("NO_ACKNOWLEDGE", "dispatch", True),
    ],
)
def test_what_settles_a_delivery_decides_how_many_go_at_a_time(mode: str, settled_by: str, *, exact: bool) -> None:
    """Of a lazy library nobody knows how many it acknowledges before the prefetch bound is reached."""
    settings_: dict[str, Any] = {"ack_mode": mode, "prefetch": 40, "prefetch_freed": "on_acknowledge"}
    found = waits("jms", **settings_, consumption="listener")
    assert found.settled_by == settled_by
    assert plan(Workload(rtt=MILLISECOND, processing_time=MILLISECOND), found).deliver.rate.is_exact is exact


def test_where_syncs_of_two_sides_meet_only_bounds_are_known() -> None:
    found = planned(dataclasses.replace(SEED, sync_time=MILLISECOND))
    assert found.publish.rate.is_exact
    assert not found.rate.is_exact
    assert found.rate.low is not None
    assert found.rate.high is not None
    assert found.rate.low < found.rate.high


def test_two_things_that_bind_equally_are_both_named() -> None:
    work = Workload(broker_time=MILLISECOND, send_time=MILLISECOND)
    assert planned(work, "artemis", send_mode="unconfirmed").publish.binds == "sending and broker"


def test_a_message_that_waits_alone_is_confirmed_by_the_timer() -> None:
    work = Workload(rtt=MILLISECOND)
    assert planned(work, "solace").confirmation == (MILLISECOND, MILLISECOND + 1)
    assert plan(work, dataclasses.replace(waits("solace"), has_timer=False)).confirmation == (MILLISECOND, None)
    assert planned(work, "artemis", send_mode="unconfirmed").confirmation is None
    assert planned(work).delivery == MILLISECOND


WORKS = st.builds(
    Workload,
    **dict.fromkeys(
        ("rtt", "send_time", "broker_time", "sync_time", "processing_time", "timer"),
        st.fractions(0, 1, max_denominator=1000),
    ),
    bandwidth=st.none() | st.fractions(10**5, 10**9, max_denominator=1),
    bandwidth_back=st.none() | st.fractions(10**5, 10**9, max_denominator=1),
    message_size=st.integers(1, 100_000),
    group_commit=st.booleans(),
    rate=st.none() | st.fractions(1, 10**6, max_denominator=1),
    credit=st.none() | st.integers(1, 300),
    **dict.fromkeys(
        ("producers", "consumers", "messages_per_commit", "messages_per_acknowledge", "lazy_batch"), st.integers(1, 200)
    ),
)
WAITS = st.builds(
    Waits,
    next_send_after=st.sampled_from(["answer", "window", "commit", "nothing"]),
    settled_by=st.sampled_from(["message", "call", "batch", "commit", "dispatch"]),
    window=st.none() | st.integers(1, 300),
    threshold=st.none() | st.integers(1, 100),
    prefetch=st.none() | st.integers(1, 300),
)


@settings(max_examples=300 if WHOLE else 100)
@given(WORKS, WAITS, st.sampled_from(sorted(RESOURCES)))
def test_what_is_no_bound_of_a_side_does_not_change_its_rate(work: Workload, found: Waits, resource: str) -> None:
    ticks = ticks_of(work)
    free = ticks.without(resource)
    for side in (_PUBLISHING, _DELIVERING):
        assert resource in side.bounds or side.of(ticks, found) == side.of(free, found)


@settings(max_examples=100 if WHOLE else 33)
@given(WORKS, st.sampled_from(sorted(RESOURCES)))
def test_ticks_are_the_times_and_what_costs_nothing_is_the_same_in_both(work: Workload, resource: str) -> None:
    ticks = ticks_of(work)
    assert Fraction(ticks.rtt, ticks.a_second) == work.rtt
    assert Fraction(ticks.transmission, ticks.a_second) == work.transmission
    assert Fraction(ticks.interval, ticks.a_second) == work.interval
    free, other = ticks.without(resource), ticks_of(work.without(resource))
    for name in ("rtt", "transmission", "transmission_back", "sync_time", "timer", "interval"):
        assert Fraction(getattr(free, name), free.a_second) == Fraction(getattr(other, name), other.a_second)
    assert not free.costs(resource)


@settings(max_examples=60 if WHOLE else 20)
@given(st.integers(1, 50_000), st.integers(10**6, 10**10), st.sampled_from(["jms", "solace"]))
def test_the_window_that_fills_is_the_smallest(rtt: int, bandwidth: int, profile: str) -> None:
    work = Workload(rtt=Fraction(rtt, 10**6), bandwidth=Fraction(bandwidth))
    found = waits(profile, send_mode="asynchronous", publish_window=100)
    fills = window_that_fills(work, found)
    assert fills is not None

    def rate(window: int) -> Fraction:
        threshold = found.threshold and -(-window // 3)
        high = plan(work, dataclasses.replace(found, window=window, threshold=threshold)).publish.rate.high
        assert high is not None
        return high

    assert rate(fills) == 1 / work.transmission
    assert fills == 1 or rate(fills - 1) < rate(fills)


def test_the_command_prints_the_numbers_of_the_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, "--rtt", "0.25ms", "--bandwidth", "1Gib", "--message-size", "1500")
    ways = {
        way.get("publish_window") or way.get("send_mode") or way["messages_per_commit"]: way for way in answer["ways"]
    }
    assert ways["blocking"]["alone"]["round trip"] == 4000
    assert int(ways["unconfirmed"]["rate"]) == 89478
    assert answer["publish"]["binds"] == "round trip"
    assert cli.main(["plan"]) == 0
    screen = capsys.readouterr().out
    assert "4,000" in screen
    assert "89,478" in screen
    assert max(map(len, screen.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "0"], "--rate: '0' is no rate; write messages a second, a number above 0"),
        (["--rtt", "2"], "--rtt: '2' is no quantity here; write a number above 0 and one of s, ms, us, ns"),
        (["--bandwidth", "fast"], "--bandwidth: 'fast' is no quantity here"),
    ],
)
def test_what_is_no_number_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert cli.main(["plan", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("field", ["rtt", "timer", "producers", "bandwidth", "rate"])
def test_a_workload_that_cannot_be_is_refused(field: str) -> None:
    with pytest.raises(InputError, match=field):
        Workload(**{field: -1})  # type: ignore[arg-type] # whichever field it is


def test_a_row_that_is_wrong_is_named(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "timing.yaml", ("when: confirms_in_batches", f"{HERE}when: confirms_in_heaps"))
    with pytest.raises(SpecError, match=rf"timing.yaml:{line}: .*confirms_in_heaps"):
        tables.load(spec)
