"""What comes out of ``check``: the facts that the field knows, and exact sizes.

None of this is coded anywhere: it follows from the rows of ``spec/``.  Each fact is asserted of the
specification that it is given, so that ``test_facts_fail.py`` can ask it of changed tables.
"""

from collections.abc import Collection
from typing import TypeAlias

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.support.tables import shipped

LOSS, DUPLICATE, UNFLAGGED, REPROCESSED = "loss", "duplicate", "unflagged_duplicate", "reprocessed"

STRICT: dict[str, object] = {
    "delivery_mode": "PERSISTENT",
    "send_mode": "blocking",
    "journal_sync_non_transactional": True,
    "ack_mode": "AUTO_ACKNOWLEDGE",
    "consumption": "listener",
}
UNSYNCED = STRICT | {"journal_sync_non_transactional": "written"}
PRE = STRICT | {"ack_mode": "PRE_ACKNOWLEDGE"}
NO = STRICT | {"ack_mode": "NO_ACKNOWLEDGE"}
CLIENT = STRICT | {"ack_mode": "CLIENT_ACKNOWLEDGE", "block_on_acknowledge": True}

BROKER_FAULTS = (Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE)
CONSUMER_FAULTS = (Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS)

every_fault = pytest.mark.parametrize("fault", Fault)
marks = pytest.mark.parametrize("mark", [True, False], ids=["mark persisted", "mark in memory"])
blocking = pytest.mark.parametrize("block", [True, False], ids=["blocking", "not blocking"])


@pytest.fixture
def specification() -> Specification:
    return shipped()


def checked(
    specification: Specification, faults: Collection[Fault], chosen: dict[str, object], **more: object
) -> explore.Answer:
    """One message, at most one fault."""
    configuration = specification.configure("jms", chosen | more)
    answer = explore.check(specification, configuration, Bounds(faults=frozenset(faults), max_faults=1))
    assert answer.exploration.complete
    return answer


def reached(specification: Specification, fault: Fault | None, chosen: dict[str, object], **more: object) -> set[str]:
    """The anomalies that can happen under this single fault."""
    findings = checked(specification, () if fault is None else (fault,), chosen, **more).findings
    return {str(finding.anomaly) for finding in findings.values() if finding.reachable}


# PERSISTENT, blocking, synced, AUTO with a listener


@every_fault
@marks
@blocking
def test_auto_with_a_listener_loses_nothing(
    specification: Specification, fault: Fault, *, mark: bool, block: bool
) -> None:
    assert LOSS not in reached(specification, fault, STRICT, redelivery_mark_persisted=mark, block_on_acknowledge=block)


@pytest.mark.parametrize("fault", CONSUMER_FAULTS)
@marks
@blocking
def test_auto_with_a_listener_duplicates_under_faults_of_the_consumer_and_its_link(
    specification: Specification, fault: Fault, *, mark: bool, block: bool
) -> None:
    found = reached(specification, fault, STRICT, redelivery_mark_persisted=mark, block_on_acknowledge=block)
    assert DUPLICATE in found
    assert UNFLAGGED not in found


def test_a_link_of_the_producer_duplicates_only_if_messages_in_doubt_are_sent_again(
    specification: Specification,
) -> None:
    assert reached(specification, Fault.PRODUCER_LINK_LOSS, STRICT, resend_in_doubt=False) == set()
    again = reached(specification, Fault.PRODUCER_LINK_LOSS, STRICT, resend_in_doubt=True)
    assert again == {UNFLAGGED, REPROCESSED}, "the second copy is a first delivery to the broker"


@blocking
def test_a_broker_crash_may_take_the_flag_unless_the_redelivery_mark_is_persisted(
    specification: Specification, *, block: bool
) -> None:
    crash = Fault.BROKER_CRASH
    in_memory = reached(specification, crash, STRICT, redelivery_mark_persisted=False, block_on_acknowledge=block)
    persisted = reached(specification, crash, STRICT, redelivery_mark_persisted=True, block_on_acknowledge=block)
    assert in_memory == {UNFLAGGED, DUPLICATE, REPROCESSED}, "a mark in memory may also outlive the broker"
    assert persisted == {DUPLICATE, REPROCESSED}


@every_fault
def test_a_persisted_mark_leaves_no_duplicate_without_the_flag(specification: Specification, fault: Fault) -> None:
    assert UNFLAGGED not in reached(specification, fault, STRICT, redelivery_mark_persisted=True)


# the same, not synced


@marks
def test_without_sync_a_power_loss_loses_and_a_killed_broker_does_not(
    specification: Specification, *, mark: bool
) -> None:
    assert LOSS in reached(specification, Fault.BROKER_CRASH, UNSYNCED, redelivery_mark_persisted=mark)
    assert LOSS not in reached(specification, Fault.BROKER_KILL, UNSYNCED, redelivery_mark_persisted=mark)


def test_the_loss_without_sync_has_a_witness_in_which_the_record_vanishes(specification: Specification) -> None:
    steps = checked(specification, [Fault.BROKER_CRASH], UNSYNCED).findings[Anomaly.LOSS].steps
    labels = [event.label for event in steps]
    assert "sync_record(m1)" not in labels
    assert labels.index("confirmed(m1)") < labels.index("record_vanishes(m1)") < labels.index("broker_restart")


# PRE_ACKNOWLEDGE


@every_fault
@marks
@pytest.mark.parametrize("consumption", ["listener", "receive"])
def test_pre_acknowledge_that_blocks_is_at_most_once(
    specification: Specification, fault: Fault, *, mark: bool, consumption: str
) -> None:
    chosen = PRE | {"block_on_acknowledge": True, "redelivery_mark_persisted": mark, "consumption": consumption}
    assert not reached(specification, fault, chosen) & {DUPLICATE, UNFLAGGED, REPROCESSED}


@pytest.mark.parametrize("fault", [*CONSUMER_FAULTS, *BROKER_FAULTS])
@marks
def test_pre_acknowledge_that_does_not_block_may_deliver_again(
    specification: Specification, fault: Fault, *, mark: bool
) -> None:
    findings = checked(specification, [fault], PRE, block_on_acknowledge=False, redelivery_mark_persisted=mark).findings
    lost_mark = fault in BROKER_FAULTS and not mark
    for anomaly in (Anomaly.UNFLAGGED_DUPLICATE if lost_mark else Anomaly.DUPLICATE, Anomaly.REPROCESSED):
        steps = [event.label for event in findings[anomaly].steps]
        first = steps.index("delivered_clear(m1)")
        assert steps.index("acknowledge(m1)") < first, "acknowledged before the hand-over"
        again = "delivered_clear(m1)" if lost_mark else "delivered_flagged(m1)"
        assert again in steps[first + 1 :], "and yet handed over again"


def test_pre_acknowledge_with_sync_off_is_not_at_most_once(specification: Specification) -> None:
    unsynced = PRE | {"journal_sync_non_transactional": False, "block_on_acknowledge": True}
    assert DUPLICATE in reached(specification, Fault.BROKER_CRASH, unsynced)


# AUTO and PRE, receive() and a listener


@every_fault
def test_auto_and_pre_are_the_same_with_receive(specification: Specification, fault: Fault) -> None:
    for mark in (True, False):
        for block in (True, False):
            for sync in (True, False):
                chosen: dict[str, object] = {
                    "consumption": "receive",
                    "redelivery_mark_persisted": mark,
                    "block_on_acknowledge": block,
                    "journal_sync_non_transactional": sync,
                }
                assert reached(specification, fault, STRICT | chosen) == reached(specification, fault, PRE | chosen)


@marks
@blocking
def test_auto_and_pre_differ_with_a_listener(specification: Specification, *, mark: bool, block: bool) -> None:
    chosen = {"redelivery_mark_persisted": mark, "block_on_acknowledge": block}
    differ = {
        f for f in Fault if reached(specification, f, STRICT, **chosen) != reached(specification, f, PRE, **chosen)
    }
    waits = {Fault.CONSUMER_LINK_LOSS, *BROKER_FAULTS}
    assert differ == {Fault.CONSUMER_CRASH, Fault.LISTENER_EXCEPTION} | (waits if block else set())
    assert LOSS in reached(specification, Fault.CONSUMER_CRASH, PRE, **chosen)


# NO_ACKNOWLEDGE


@pytest.mark.parametrize("fault", CONSUMER_FAULTS)
@pytest.mark.parametrize("consumption", ["listener", "receive"])
def test_no_acknowledge_loses_under_faults_of_the_consumer(
    specification: Specification, fault: Fault, consumption: str
) -> None:
    found = reached(specification, fault, NO, consumption=consumption)
    assert LOSS in found
    assert not found & {DUPLICATE, UNFLAGGED, REPROCESSED}


# further facts


@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        (profile, mode)
        for mode in ("AUTO", "CLIENT", "DUPS_OK", "PRE", "NO", "INDIVIDUAL")
        for profile in Profile
        if f"{mode}_ACKNOWLEDGE" in shipped().supported_values(profile, "ack_mode")
    ],
)
def test_without_a_fault_nothing_goes_wrong(specification: Specification, profile: Profile, mode: str) -> None:
    for consumption in ("receive", "listener"):
        chosen = {"ack_mode": f"{mode}_ACKNOWLEDGE", "consumption": consumption}
        answer = explore.check(
            specification, specification.configure(profile, chosen), Bounds(messages=2, max_faults=0)
        )
        assert [finding.anomaly for finding in answer.findings.values() if finding.reachable] == []


@every_fault
@pytest.mark.parametrize("chosen", [STRICT, CLIENT, PRE, NO], ids=["AUTO", "CLIENT", "PRE", "NO"])
def test_every_call_returns_and_every_send_has_an_outcome(
    specification: Specification, fault: Fault, chosen: dict[str, object]
) -> None:
    assert not reached(specification, fault, chosen) & {"stuck", "missing_outcome", "double_outcome", "phantom"}


@every_fault
def test_a_confirmed_acknowledgement_is_final(specification: Specification, fault: Fault) -> None:
    assert "resurrection" not in reached(specification, fault, CLIENT)


def test_a_confirmed_acknowledgement_is_not_final_without_sync(specification: Specification) -> None:
    unsynced = CLIENT | {"journal_sync_non_transactional": "written"}
    assert "resurrection" in reached(specification, Fault.BROKER_CRASH, unsynced)
    assert "resurrection" not in reached(specification, Fault.BROKER_KILL, unsynced)


def test_what_is_not_journalled_dies_with_the_broker(specification: Specification) -> None:
    for chosen in ({"delivery_mode": "NON_PERSISTENT"}, {"queue_durable": False}):
        for fault in BROKER_FAULTS:
            assert reached(specification, fault, STRICT | chosen) == {LOSS}


def test_a_rejection_is_told_to_a_producer_that_waits_and_to_no_other(specification: Specification) -> None:
    assert reached(specification, Fault.REJECTION, STRICT) == set()
    assert reached(specification, Fault.REJECTION, STRICT, send_mode="asynchronous") == set()
    assert reached(specification, Fault.REJECTION, STRICT, send_mode="unconfirmed") == {LOSS}


def test_what_a_throwing_listener_leads_to_is_the_librarys_choice(specification: Specification) -> None:
    found = {
        choice: reached(specification, Fault.LISTENER_EXCEPTION, STRICT, listener_exception=choice)
        for choice in ("redeliver", "next_message", "swallow", "acknowledge")
    }
    assert found == {
        "redeliver": {DUPLICATE},
        "next_message": {DUPLICATE},
        "swallow": {"stuck", "unprocessed"},
        "acknowledge": {"unprocessed"},
    }


def test_recovering_a_session_brings_back_what_is_not_acknowledged(specification: Specification) -> None:
    configuration = specification.configure("jms", CLIENT)
    answer = explore.check(specification, configuration, Bounds(max_faults=0, actions=frozenset({"recover"})))
    assert [str(f.anomaly) for f in answer.findings.values() if f.reachable] == [DUPLICATE, REPROCESSED]


@pytest.mark.parametrize("profile", Profile)
def test_every_profile_keeps_its_promises_under_any_single_fault(
    specification: Specification, profile: Profile
) -> None:
    answer = explore.check(specification, specification.configure(profile), Bounds(faults=frozenset(Fault)))
    assert answer.exploration.complete
    assert [(finding.anomaly, finding.promise) for finding in answer.violations] == []


@pytest.mark.parametrize(
    ("chosen", "broken"),
    [
        ({"journal_sync_non_transactional": "false"}, {LOSS, "resurrection"}),
        ({"redelivery_mark_persisted": "false"}, {UNFLAGGED}),
        ({"listener_exception": "swallow"}, set()),
        ({"ack_mode": "PRE_ACKNOWLEDGE"}, set()),
        ({"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": "true"}, set()),
        ({"publish_window": 0}, {"stuck"}),
    ],
)
def test_a_promise_is_broken_where_a_setting_takes_away_what_it_rests_on(
    specification: Specification, chosen: dict[str, object], broken: set[str]
) -> None:
    answer = checked(specification, frozenset(Fault), chosen)
    assert {str(finding.anomaly) for finding in answer.violations} == broken


# exact sizes


Size: TypeAlias = tuple[str, dict[str, object], int, int | None, int, int]
"""Profile, settings, messages, how many faults of any kind (``None``: any number); states, transitions."""

SIZES: list[Size] = [
    ("jms", {}, 1, 1, 1525, 3593),
    ("ems", {}, 1, 1, 3484, 9417),
    ("solace", {"resend_in_doubt": False}, 1, 1, 1522, 4040),
    ("solace", {}, 1, 1, 15211, 49951),
    ("solace-jms", {}, 1, 1, 1522, 4259),
    ("qpid", {}, 1, 1, 1354, 3729),
    ("qpid-jms", {}, 1, 1, 10978, 32644),
    ("artemis", {}, 1, 1, 1362, 3197),
    ("activemq", {}, 1, 1, 1362, 3197),
    ("rabbitmq", {}, 1, 1, 1166, 2749),
    ("jms", {}, 1, 0, 57, 96),
    ("jms", {}, 1, 2, 8121, 27133),
    ("jms", {}, 1, None, 14869, 98913),
    ("jms", {}, 2, 0, 258, 550),
    ("jms", {}, 2, 1, 15861, 41615),
    ("solace", {}, 2, 0, 2775, 9470),
    ("artemis", {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}, 2, 1, 32940, 97304),
    ("ems", {"resend_in_doubt": True}, 1, 2, 488321, 1966988),
    ("jms", {"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": True}, 1, 1, 1163, 2762),
    ("jms", {"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": False}, 1, 1, 2012, 5485),
    ("jms", {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}, 1, 1, 1163, 2757),
    ("jms", {"ack_mode": "DUPS_OK_ACKNOWLEDGE", "consumption": "receive"}, 1, 1, 1694, 4514),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, 1, 1, 1525, 3593),
    ("jms", {"ack_mode": "NO_ACKNOWLEDGE"}, 1, 1, 1599, 4400),
    ("jms", {"delivery_mode": "NON_PERSISTENT", "send_mode": "unconfirmed"}, 1, 1, 300, 668),
    ("jms", {"ack_mode": "SESSION_TRANSACTED"}, 1, 1, 1199, 2800),
    ("jms", {"ack_mode": "SESSION_TRANSACTED"}, 2, 1, 19962, 55668),
    ("ems", {"ack_mode": "EXPLICIT_CLIENT_ACKNOWLEDGE"}, 2, 1, 346462, 1391909),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "up_to"}, 2, 1, 40565, 120299),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 1}, 2, 1, 14879, 37956),
    ("solace", {"publish_window": 1, "ack_event_mode": "WINDOWED", "resend_in_doubt": False}, 2, 1, 27571, 92457),
    ("artemis", {"resend_in_doubt": True, "duplicate_detection": True}, 1, 1, 2930, 6725),
    ("artemis", {"max_delivery_attempts": 2}, 1, 2, 11569, 35344),
]


def _title(size: Size) -> str:
    profile, chosen, messages, max_faults, *_ = size
    said = ", ".join(f"{key}={value}" for key, value in chosen.items())
    return f"{profile}, {messages} message(s), {max_faults} fault(s), {said or 'defaults'}"


@pytest.mark.parametrize("size", SIZES, ids=_title)
def test_the_size_of_the_space_is_exactly_this(size: Size) -> None:
    profile, chosen, messages, max_faults, states, transitions = size
    bounds = Bounds(messages=messages, faults=frozenset(Fault), max_faults=max_faults)
    found = explore.check(shipped(), shipped().configure(profile, chosen), bounds).exploration
    assert (found.states, found.transitions, found.complete) == (states, transitions, True)
