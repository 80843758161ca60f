"""The oracle is held to what can be known without it: counts made by hand, the promises of the modes, its own laws."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.terms import (
    AckEventMode,
    AckMode,
    AckScope,
    Anomaly,
    AttemptsExhausted,
    Configuration,
    Consumption,
    DeliveryCountFrom,
    DeliveryMode,
    Destination,
    DupsOkAcknowledgement,
    Fault,
    ListenerException,
    NonPersistentHandling,
    Outcomes,
    OutcomeScope,
    PreAcknowledgeBy,
    PrefetchFreed,
    Profile,
    ReceiverSettles,
    SendMode,
    TransactionJournalling,
    UnwindowedConfirm,
    Written,
)
from model_tests.support.spec.oracle import ACK_MODES, Answer, Event, Seen, Setting, System, at_rest, explore, observe
from model_tests.support.whole import WHOLE

AUTO, CLIENT, PRE = AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.PRE_ACKNOWLEDGE
DUPS_OK, NO = AckMode.DUPS_OK_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE
RECEIVE, LISTENER = Consumption.RECEIVE, Consumption.LISTENER
NON_PERSISTENT, UNCONFIRMED = DeliveryMode.NON_PERSISTENT, SendMode.UNCONFIRMED
BROKER = (Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE)
PRODUCER = (Fault.PRODUCER_LINK_LOSS, Fault.PRODUCER_CRASH, Fault.REJECTION)
CONSUMER = (Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH)
AGAIN = frozenset({Anomaly.DUPLICATE, Anomaly.UNFLAGGED_DUPLICATE, Anomaly.REPROCESSED})
LETTERS = {
    "L": Anomaly.LOSS,
    "U": Anomaly.UNPROCESSED,
    "D": Anomaly.DUPLICATE,
    "X": Anomaly.UNFLAGGED_DUPLICATE,
    "P": Anomaly.REPROCESSED,
    "R": Anomaly.RESURRECTION,
    "S": Anomaly.STUCK,
}

some_setting = st.builds(
    Setting,
    delivery_mode=st.sampled_from([DeliveryMode.PERSISTENT, NON_PERSISTENT]),
    ack_mode=st.sampled_from(ACK_MODES),
    consumption=st.sampled_from(Consumption),
    send_mode=st.sampled_from(SendMode),
    journal_sync_non_transactional=st.sampled_from([True, Written.WRITTEN, False]),
    block_on_acknowledge=st.booleans(),
    resend_in_doubt=st.booleans(),
    redelivery_mark_persisted=st.booleans(),
    queue_durable=st.booleans(),
    listener_exception=st.sampled_from(ListenerException),
    restart_marks_redelivered=st.booleans(),
)
a_few = settings(max_examples=25 if WHOLE else 8)


def under(setting: Setting, faults: Iterable[Fault]) -> frozenset[StrEnum]:
    """What one fault of ``faults`` can cause."""
    return explore(setting, faults, max_faults=1).reachable


def size(answer: Answer) -> tuple[int, dict[StrEnum, int]]:
    """The number of states, and how many events each reachable anomaly takes."""
    return answer.states, {name: len(witness) for name, witness in answer.anomalies.items() if witness is not None}


# ---- Counted by hand ------------------------------------------------------------------------------------------


def test_a_message_that_nothing_waits_for_goes_through_seven_states() -> None:
    # new, sent, ready, on its way, held, handed over, processed
    setting = Setting(delivery_mode=NON_PERSISTENT, ack_mode=NO, send_mode=UNCONFIRMED)
    assert explore(setting).states == 7


def test_a_confirmation_runs_beside_the_consumption() -> None:
    # new, sent, then {owed, on its way, confirmed} x {ready, on its way, held, handed over, processed}
    setting = Setting(delivery_mode=NON_PERSISTENT, ack_mode=NO)
    assert explore(setting).states == 2 + 3 * 5


def test_journal_and_blocking_acknowledgement_run_beside_the_confirmation() -> None:
    # new, sent, then {memory, written, durable, confirm on its way, confirmed} x {ready, on its way, held, handed
    # over, processed, acknowledgement on its way, removal in memory, written, durable, confirm on its way, done}
    assert explore(Setting()).states == 2 + 5 * 11


def test_the_shortest_loss_without_acknowledgement() -> None:
    setting = Setting(delivery_mode=NON_PERSISTENT, ack_mode=NO, send_mode=UNCONFIRMED)
    assert explore(setting, [Fault.CONSUMER_CRASH]).anomalies[Anomaly.LOSS] == (
        "send(0)",
        "accept(0)",
        "dispatch(0)",
        "consumer_crash",
        "consumer_restart",
        "consumer_link_up",
    )


def test_the_shortest_redelivery_after_a_lost_acknowledgement() -> None:
    setting = Setting(delivery_mode=NON_PERSISTENT, send_mode=UNCONFIRMED)
    assert explore(setting, [Fault.CONSUMER_LINK_LOSS]).anomalies[Anomaly.REPROCESSED] == (
        *("send(0)", "accept(0)", "dispatch(0)", "hold(0)", "delivered(0)"),
        *("consumer_link_loss", "consumer_link_up", "processed(0, in vain)"),
        *("dispatch(0)", "hold(0)", "delivered(0, redelivered)", "processed(0)"),
    )


# ---- What the modes promise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "faults", "expected"),
    [
        (Setting(), BROKER, "DP"),
        (Setting(), PRODUCER, ""),
        (Setting(), CONSUMER, "DP"),
        (Setting(redelivery_mark_persisted=False), BROKER, "DXP"),
        (Setting(journal_sync_non_transactional=False), [Fault.BROKER_CRASH], "LDPR"),
        (Setting(journal_sync_non_transactional=False), [Fault.BROKER_KILL], "LDPR"),
        (Setting(journal_sync_non_transactional=Written.WRITTEN), [Fault.BROKER_CRASH], "LDPR"),
        (Setting(journal_sync_non_transactional=Written.WRITTEN), [Fault.BROKER_KILL], "DP"),
        (Setting(journal_sync_non_transactional=False, block_on_acknowledge=False), [Fault.BROKER_CRASH], "LDP"),
        (Setting(delivery_mode=NON_PERSISTENT), BROKER, "L"),
        (Setting(queue_durable=False), BROKER, "L"),
        (Setting(delivery_mode=NON_PERSISTENT), CONSUMER, "DP"),
        (Setting(send_mode=UNCONFIRMED), PRODUCER, "L"),
        (Setting(resend_in_doubt=True), [Fault.PRODUCER_LINK_LOSS], "XP"),
        (Setting(resend_in_doubt=True), [Fault.PRODUCER_CRASH, Fault.REJECTION], ""),
        (Setting(ack_mode=CLIENT, consumption=RECEIVE), CONSUMER, "DP"),
        (Setting(ack_mode=DUPS_OK), [Fault.CONSUMER_CRASH], "DP"),
        (Setting(ack_mode=DUPS_OK, consumption=RECEIVE), [Fault.CONSUMER_CRASH], "UDP"),
        (Setting(ack_mode=PRE), BROKER, "L"),
        (Setting(ack_mode=PRE), [Fault.CONSUMER_CRASH], "LU"),
        (Setting(ack_mode=PRE, block_on_acknowledge=False), [Fault.CONSUMER_CRASH], "LUDP"),
        (Setting(ack_mode=PRE, block_on_acknowledge=False), [Fault.CONSUMER_LINK_LOSS], "DP"),
        (Setting(ack_mode=PRE, journal_sync_non_transactional=False), [Fault.BROKER_CRASH], "LDPR"),
        (Setting(ack_mode=NO), [Fault.CONSUMER_LINK_LOSS], "L"),
        (Setting(ack_mode=NO), [Fault.CONSUMER_CRASH], "LU"),
    ],
)
def test_what_a_fault_can_do(setting: Setting, faults: list[Fault], expected: str) -> None:
    assert under(setting, faults) == {LETTERS[letter] for letter in expected}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ListenerException.REDELIVER, "D"),
        (ListenerException.NEXT_MESSAGE, "D"),
        (ListenerException.SWALLOW, "US"),
        (ListenerException.ACKNOWLEDGE, "U"),
    ],
)
@pytest.mark.parametrize("ack_mode", [AUTO, CLIENT, AckMode.INDIVIDUAL_ACKNOWLEDGE, DUPS_OK])
def test_what_a_listener_exception_can_do(ack_mode: AckMode, policy: ListenerException, expected: str) -> None:
    setting = Setting(ack_mode=ack_mode, listener_exception=policy)
    assert under(setting, [Fault.LISTENER_EXCEPTION]) == {LETTERS[letter] for letter in expected}


@pytest.mark.parametrize("policy", ListenerException)
@pytest.mark.parametrize("ack_mode", [PRE, NO])
def test_an_exception_after_the_acknowledgement_leaves_nothing_to_give_back(
    ack_mode: AckMode, policy: ListenerException
) -> None:
    setting = Setting(ack_mode=ack_mode, listener_exception=policy)
    assert under(setting, [Fault.LISTENER_EXCEPTION]) == {Anomaly.UNPROCESSED}


def test_a_message_acknowledged_first_and_blocking_comes_once_whatever_happens() -> None:
    assert not explore(Setting(ack_mode=PRE), Fault, max_faults=None).reachable & AGAIN


def test_two_faults_undo_an_unsynced_removal_that_outlived_a_kill() -> None:
    # The kill keeps the removal's record, the power loss takes it: the broker had said "acknowledged" before both.
    setting = Setting(journal_sync_non_transactional=Written.WRITTEN)
    assert Anomaly.RESURRECTION not in explore(setting, [Fault.BROKER_KILL], max_faults=None).reachable
    assert Anomaly.RESURRECTION in explore(setting, [Fault.BROKER_KILL, Fault.BROKER_CRASH], max_faults=2).reachable


@pytest.mark.parametrize(
    ("setting", "faults", "states"),
    [
        (Setting(), [Fault.BROKER_CRASH], 928),
        (Setting(), [Fault.CONSUMER_LINK_LOSS], 940),
        (Setting(resend_in_doubt=True), [Fault.PRODUCER_LINK_LOSS], 2643),
        (Setting(ack_mode=DUPS_OK), [Fault.CONSUMER_LINK_LOSS], 615),
        (Setting(ack_mode=DUPS_OK, consumption=RECEIVE), [Fault.CONSUMER_LINK_LOSS], 985),
        (Setting(ack_mode=PRE, block_on_acknowledge=False), [Fault.CONSUMER_LINK_LOSS], 1485),
        (Setting(ack_mode=NO), [Fault.BROKER_KILL], 1591),
        (Setting(), [Fault.LISTENER_EXCEPTION, Fault.CONSUMER_LINK_LOSS], 1165),
    ],
)
def test_the_number_of_states_is_locked(setting: Setting, faults: list[Fault], states: int) -> None:
    # Not known from elsewhere: a change here is a change of the semantics, and has to be meant.
    assert explore(setting, faults, max_faults=2).states == states


# ---- Laws -----------------------------------------------------------------------------------------------------


@given(setting=some_setting)
@settings(max_examples=200 if WHOLE else 67)
def test_nothing_goes_wrong_without_a_fault(setting: Setting) -> None:
    assert explore(setting, Fault, max_faults=0).reachable == frozenset()


@given(setting=some_setting, faults=st.sets(st.sampled_from(Fault), max_size=3))
@a_few
def test_more_faults_never_make_an_anomaly_impossible(setting: Setting, faults: set[Fault]) -> None:
    separately = frozenset[Anomaly]().union(*(under(setting, [fault]) for fault in faults))
    once, twice = under(setting, faults), explore(setting, faults, max_faults=2).reachable
    assert separately == once <= twice


@given(setting=some_setting)
@a_few
def test_a_sent_message_is_always_resolved(setting: Setting) -> None:
    never = {Anomaly.PHANTOM, Anomaly.DOUBLE_OUTCOME, Anomaly.MISSING_OUTCOME}
    assert not under(setting, Fault) & never


@given(setting=some_setting, fault=st.sampled_from(Fault))
@a_few
def test_a_switch_that_cannot_matter_does_not(setting: Setting, fault: Fault) -> None:
    memory_only = dataclasses.replace(setting, delivery_mode=NON_PERSISTENT)
    other = dataclasses.replace(
        memory_only,
        queue_durable=not setting.queue_durable,
        journal_sync_non_transactional=not setting.journal_sync_non_transactional,
        redelivery_mark_persisted=not setting.redelivery_mark_persisted,
    )
    assert size(explore(memory_only, [fault])) == size(explore(other, [fault]))


@given(setting=some_setting, fault=st.sampled_from([fault for fault in Fault if fault != Fault.LISTENER_EXCEPTION]))
@a_few
def test_auto_and_pre_acknowledge_alike_inside_receive(setting: Setting, fault: Fault) -> None:
    auto = dataclasses.replace(setting, ack_mode=AUTO, consumption=RECEIVE)
    pre = dataclasses.replace(auto, ack_mode=PRE)
    assert size(explore(auto, [fault])) == size(explore(pre, [fault]))


@given(setting=some_setting, fault=st.sampled_from(Fault))
@a_few
def test_a_witness_ends_with_what_it_shows(setting: Setting, fault: Fault) -> None:
    for anomaly, witness in explore(setting, [fault]).anomalies.items():
        if witness is not None:
            assert sum(event.startswith(fault.value) for event in witness) == 1
            assert witness[0] == "send(0)"
        if witness is not None and anomaly in {Anomaly.DUPLICATE, Anomaly.UNFLAGGED_DUPLICATE}:
            assert witness[-1].startswith("delivered(")
            assert ("redelivered" in witness[-1]) == (anomaly == Anomaly.DUPLICATE)
        if witness is not None and anomaly == Anomaly.LOSS:
            assert not any(event.startswith("delivered(") for event in witness)


# ---- The observer: also what the system can never show it -----------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["delivered"], Anomaly.PHANTOM),
        (["send", "confirmed", "rejected"], Anomaly.DOUBLE_OUTCOME),
        (["send", "confirmed", "confirmed"], Anomaly.DOUBLE_OUTCOME),
        (["send", "resend", "confirmed", "rejected"], Anomaly.DOUBLE_OUTCOME),
        (["send", "resend", "confirmed", "confirmed"], None),
        (["send", "delivered", "delivered"], Anomaly.UNFLAGGED_DUPLICATE),
        (["send", "delivered", "processed", "processed"], Anomaly.REPROCESSED),
        (["send", "delivered", "processed"], None),
        (["send", "acknowledged", "delivered"], None),
    ],
)
def test_the_observer_names_what_it_sees(events: list[str], expected: Anomaly | None) -> None:
    seen, found = Seen(), list[Anomaly]()
    for name in events:
        seen, new = observe(seen, Event(name, 0))
        found += new
    assert found == ([] if expected is None else [expected])


def test_a_resend_exempts_from_resurrection() -> None:
    again = Event("delivered", 0, "redelivered")
    assert observe(Seen(sends=1, delivered=1, acknowledged=True), again)[1] == [
        Anomaly.DUPLICATE,
        Anomaly.RESURRECTION,
    ]
    assert observe(Seen(sends=2, delivered=1, acknowledged=True), again)[1] == [Anomaly.DUPLICATE]


def test_a_send_that_is_never_answered_is_missed_and_blocks() -> None:
    unanswered = System(send="open")
    assert list(at_rest(unanswered, Setting(), Seen(sends=1))) == [Anomaly.MISSING_OUTCOME, Anomaly.STUCK]
    later = Setting(send_mode=SendMode.ASYNCHRONOUS)
    assert list(at_rest(unanswered, later, Seen(sends=1))) == [Anomaly.MISSING_OUTCOME]


# ---- The settings ---------------------------------------------------------------------------------------------


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="does not know delivery_mode RELIABLE"):
        Setting(delivery_mode=DeliveryMode.RELIABLE)
    with pytest.raises(ValueError, match="does not know ack_mode SESSION_TRANSACTED"):
        Setting(ack_mode=AckMode.SESSION_TRANSACTED)


@given(setting=some_setting)
@a_few
def test_a_configuration_is_read_whole(setting: Setting) -> None:
    configuration = Configuration(
        **dataclasses.asdict(setting),
        profile=Profile.JMS,
        publish_window=None,
        confirm_threshold=None,
        confirm_timer=False,
        ack_immediately=False,
        ack_event_mode=AckEventMode.PER_MESSAGE,
        journal_sync_transactional=False,
        duplicate_detection=False,
        client_ack_scope=AckScope.SESSION,
        prefetch=0,
        max_delivery_attempts=0,
        non_persistent_handling=NonPersistentHandling.VOLATILE,
        transaction_journalling=TransactionJournalling.ATOMIC,
        unwindowed_confirm=UnwindowedConfirm.BROKER,
        pre_acknowledge_by=PreAcknowledgeBy.CLIENT,
        dups_ok_acknowledgement=DupsOkAcknowledgement.LAZY,
        prefetch_freed=PrefetchFreed.ON_ACKNOWLEDGE,
        delivery_count_persisted=True,
        delivery_count_from=DeliveryCountFrom.DISPATCH,
        undelivered_marks_redelivered=True,
        ended_consumer_marks_redelivered=True,
        closed_consumer_gives_back=False,
        rejected_comes_again=False,
        requeue_clears_mark=False,
        attempts_exhausted=AttemptsExhausted.DEAD_LETTER,
        release_counts=False,
        time_to_live=False,
        expires_in_hand=False,
        rejection_excludes_delivery=False,
        exclusive_consumer=False,
        session_reattachment=False,
        transacted_completion=True,
        duplicate_dooms_transaction=False,
        outcomes=Outcomes.ACCEPTED,
        outcome_scope=OutcomeScope.MESSAGE,
        transacted_outcomes=False,
        receiver_settles=ReceiverSettles.FIRST,
        consumer_reattachment=False,
        rollback_requeues=True,
        delivery_delay=False,
        redelivery_delay=False,
        destination=Destination.QUEUE,
    )
    assert Setting.of(configuration) == setting
