"""The simulation: against the closed form, the claims' numbers, the engine's virtual time, and plain Python."""

import dataclasses
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ackfsm.engine import Broker, Timed
from ackfsm.engine.core.model import EngineModel, Role
from ackfsm.rates.simulation import Simulated, Spread, _kernel, _layout, simulate
from ackfsm.rates.timing import Workload, plan, waits_of
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, before_a_release
from model_tests.timing.drawn import compare, drawn

MILLISECOND = Fraction(1, 1000)
LINE: dict[str, Any] = {"bandwidth": Fraction(2**30), "bandwidth_back": Fraction(2**30)}


@pytest.fixture(scope="module")
def model() -> EngineModel:
    return EngineModel(shipped())


def ran(
    model: EngineModel, work: Workload, messages: int, profile: str = "jms", *, apart: bool = False, **settings: object
) -> Simulated:
    return simulate(shipped(), shipped().configure(profile, settings), work, messages, apart=apart, model=model)


# the sentences of the vendors that speak of rates


def test_c04_and_c48_a_blocking_send_takes_a_round_trip(model: EngineModel) -> None:
    assert ran(model, Workload(rtt=MILLISECOND), 2_000).publish == pytest.approx(1000, rel=1e-3)
    assert ran(model, Workload(rtt=MILLISECOND / 4), 2_000).publish == pytest.approx(4000, rel=1e-3)


@before_a_release
def test_c48_what_is_not_answered_fills_the_line(model: EngineModel) -> None:
    found = ran(model, Workload(rtt=MILLISECOND / 4, **LINE), 4_000, "artemis", send_mode="unconfirmed")
    assert found.publish == pytest.approx(89478, rel=1e-3)


def test_c05_throughput_grows_with_the_transaction(model: EngineModel) -> None:
    rates = []
    for together in (1, 2, 10, 100, *[1000] * WHOLE):
        work = Workload(rtt=MILLISECOND / 4, messages_per_commit=together, **LINE)
        found = ran(model, work, 20 * together, ack_mode="SESSION_TRANSACTED", apart=True)
        expected = together / (together * work.transmission + work.rtt)
        assert found.publish == pytest.approx(float(expected), rel=1e-3)
        rates.append(found.publish)
    assert rates == sorted(rates)


def test_c42_a_commit_that_waits_for_no_sync_is_faster(model: EngineModel) -> None:
    work = Workload(rtt=MILLISECOND, sync_time=2 * MILLISECOND)
    synced, unsynced = [
        ran(model, work, 200, "artemis", apart=True, ack_mode="SESSION_TRANSACTED", journal_sync_transactional=each)
        for each in (True, False)
    ]
    assert synced.publish < unsynced.publish


def test_c19_the_timer_answers_a_publisher_who_does_not_reach_the_threshold(model: EngineModel) -> None:
    work = Workload(rtt=MILLISECOND, rate=Fraction(10))
    found = ran(model, work, 300, "solace", publish_window=50)
    assert found.confirmations.max() == pytest.approx(1.001, rel=1e-3)
    assert found.publish == pytest.approx(10, rel=1e-3)
    blocking = ran(model, Workload(rtt=MILLISECOND), 60, "solace", send_mode="blocking")
    assert blocking.publish == pytest.approx(1 / 1.001, rel=1e-3)


def test_c22_a_window_that_fills_the_round_trip_never_interrupts(model: EngineModel) -> None:
    work = Workload(rtt=2 * MILLISECOND, **LINE)
    configuration = shipped().configure("solace", {"publish_window": 50})
    fills = plan(work, waits_of(shipped(), configuration)).fills
    assert fills is not None
    interrupted = ran(model, work, 3_000, "solace", publish_window=50).publish
    assert interrupted == pytest.approx(34 / (float(work.rtt) + float(work.transmission)), rel=1e-3)
    wide = dataclasses.replace(work, rtt=MILLISECOND / 4)
    assert ran(model, wide, 3_000, "solace", publish_window=50).publish == pytest.approx(89478, rel=1e-3)


def test_c49_a_handler_frees_the_sender_of_the_round_trip(model: EngineModel) -> None:
    slow, fast = (
        ran(model, Workload(rtt=rtt, **LINE), 4_000, "artemis", send_mode="asynchronous", publish_window=2**31 - 1)
        for rtt in (MILLISECOND, 50 * MILLISECOND)
    )
    assert slow.publish == pytest.approx(89478, rel=1e-3)
    assert fast.publish == pytest.approx(89478, rel=1e-3)
    assert slow.confirmations.min() > 0, "the handler was called for every message"


# others


@pytest.mark.parametrize("number", range(14))
def test_drawn_configurations_go_as_fast_as_the_closed_form_says(number: int, model: EngineModel) -> None:
    configuration, settings, work = drawn(random.Random(f"tests {number}"))
    found = compare(configuration, settings, work, model, most=12_000)
    assert found.wrong == ()


@pytest.mark.parametrize(("sync_time", "is_exact"), [(MILLISECOND, True), (2 * MILLISECOND, False)])
def test_the_record_of_a_transaction_may_hold_the_next_up(
    sync_time: Fraction, model: EngineModel, *, is_exact: bool
) -> None:
    """Nobody is told when it is on disk, but a session has one such record at a time."""
    configuration = shipped().configure("ems", {"ack_mode": "SESSION_TRANSACTED"})
    work = Workload(rtt=4 * MILLISECOND, sync_time=sync_time, message_size=100, bandwidth=Fraction(10**7))
    found = compare(configuration, {}, work, model, most=2_000)
    assert found.wrong == ()
    assert found.passed[0].is_exact is is_exact
    assert is_exact or found.passed[1] < 0.99 * (found.passed[0].high or 0)


def test_the_record_of_a_transaction_may_hold_its_producer_up_alone(model: EngineModel) -> None:
    configuration = shipped().configure("ems", {"ack_mode": "SESSION_TRANSACTED"})
    work = Workload(rtt=5 * MILLISECOND, sync_time=5 * MILLISECOND, messages_per_commit=2)
    rate, simulated = compare(configuration, {}, work, model, most=2_000).published
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low <= simulated < 0.9 * rate.high


@pytest.mark.parametrize("group_commit", [True, False])
def test_a_call_for_several_messages_is_synced_as_a_whole(model: EngineModel, *, group_commit: bool) -> None:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "block_on_acknowledge": True}
    configuration = shipped().configure("jms", settings)
    work = Workload(rtt=4 * MILLISECOND, sync_time=MILLISECOND, messages_per_acknowledge=10, group_commit=group_commit)
    rate, simulated = compare(configuration, settings, work, model, most=2_000).delivered
    assert rate.is_exact
    assert simulated == pytest.approx(2_000 if group_commit else 10_000 / 14, rel=1e-6)
    assert simulated == pytest.approx(float(rate.high or 0), rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"delivery_mode": "NON_PERSISTENT"}, {"ack_mode": "SESSION_TRANSACTED"}])
def test_an_engine_in_virtual_time_takes_as_long(settings: dict[str, Any], model: EngineModel) -> None:
    """Each send, or each transaction of one message, waits for its answer."""
    transacted = "ack_mode" in settings
    broker = Broker(pace=Timed(latency=(400_000, 400_000), disk=2_000_000), **settings)
    session = broker.connect().session()
    producer = session.producer("q")
    for _ in range(20):
        producer.send("x")
        if transacted:
            session.commit()
    work = Workload(rtt=Fraction(8, 10_000), sync_time=2 * MILLISECOND)
    found = ran(model, work, 20, **settings, apart=True)
    period = float(found.accepted_at[-1] - found.accepted_at[0]) / 19
    assert broker.now / 1e9 / 20 == pytest.approx(period, rel=1e-3)


@pytest.mark.parametrize(
    ("profile", "settings"),
    [
        ("jms", {"ack_mode": "SESSION_TRANSACTED"}),
        ("solace", {"publish_window": 7}),
        ("rabbitmq", {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 5}),
        ("ems", {"ack_mode": "DUPS_OK_ACKNOWLEDGE", "consumption": "listener"}),
    ],
)
def test_python_and_compiled_code_do_the_same(
    profile: str, settings: dict[str, Any], model: EngineModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Workload(rtt=MILLISECOND, sync_time=MILLISECOND, producers=2, consumers=2, messages_per_commit=3, **LINE)
    monkeypatch.setattr("ackfsm.rates.simulation._simulation._FEW", 0)
    compiled = ran(model, work, 600, profile, **settings)
    monkeypatch.setattr("ackfsm.rates.simulation._simulation._kernel_run", lambda _: (_kernel.run, False))
    plain = ran(model, work, 600, profile, **settings)
    assert plain.events == compiled.events
    assert np.array_equal(plain.accepted_at, compiled.accepted_at)
    assert np.array_equal(plain.processed_at, compiled.processed_at)
    assert np.array_equal(plain.confirmations, compiled.confirmations)


def test_what_acknowledges_more_than_may_be_out_stands_still(model: EngineModel) -> None:
    settings: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 5}
    found = ran(model, Workload(rtt=MILLISECOND, messages_per_acknowledge=6), 100, "rabbitmq", **settings)
    assert (found.stands_still, found.deliver, found.consumed) == (True, 0.0, (5,))


def test_transactions_of_two_producers_come_in_the_order_of_their_commits(model: EngineModel) -> None:
    """Their sends are mixed: a library that kept the order of sending would wait for ever."""
    work = Workload(rtt=10 * MILLISECOND, bandwidth=Fraction(10**7), producers=2, messages_per_commit=10)
    found = ran(model, work, 400, "solace-jms", ack_mode="SESSION_TRANSACTED", consumption="listener")
    assert (found.stands_still, found.consumed) == (False, (400,))


def test_chance_is_that_of_its_seed(model: EngineModel) -> None:
    def periods(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        configuration, work = shipped().configure("jms"), Workload(rtt=MILLISECOND, processing_time=MILLISECOND)
        spreads = {"rtt": Spread.EXPONENTIAL, "processing_time": Spread.UNIFORM}
        found = simulate(shipped(), configuration, work, 4_000, spreads=spreads, seed=seed, model=model)
        return np.asarray(found.confirmations)

    assert np.array_equal(periods(1), periods(1))
    assert not np.array_equal(periods(1), periods(2))
    assert periods(1).mean() == pytest.approx(1e-3, rel=0.05), "two ways of half a round trip each"


@pytest.mark.parametrize(
    ("messages", "spreads", "said"),
    [
        (0, {}, "0 messages cannot be sent"),
        (1, {"latency": Spread.UNIFORM}, "no time is called 'latency'; spread one of broker_time, processing_time"),
    ],
)
def test_what_cannot_be_simulated_is_refused(messages: int, spreads: dict[str, Spread], said: str) -> None:
    with pytest.raises(InputError, match=said):
        simulate(shipped(), shipped().configure("jms"), Workload(), messages, spreads=spreads)


def test_a_queue_that_grows_is_held_in_memory_that_grows(model: EngineModel) -> None:
    """Four thousand messages wait while their consumer has begun with the first."""
    work = Workload(rtt=MILLISECOND / 10, processing_time=100 * MILLISECOND)
    found = ran(model, work, 4_000, "artemis", send_mode="unconfirmed", prefetch=1)
    assert not found.stands_still
    assert found.deliver == pytest.approx(10, rel=1e-3)
    assert sum(found.consumed) == 4_000


def test_the_roles_of_the_kernel_are_those_of_the_tables() -> None:
    named = [_layout.LAST_OF_PRODUCER, _layout.PREFETCH_ROLE, _layout.BROKER_ROLE]
    assert [int(role) for role in (Role.UNCONFIRMED, Role.PREFETCH, Role.BROKER)] == named
    assert len(Role) == _layout.ROLE_COUNT
