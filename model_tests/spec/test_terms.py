"""The vocabulary: the names are those of the contract, and a value is read or refused with a sentence."""

import dataclasses
import json
import re
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import terms
from ackfsm.terms import Configuration, InputError
from model_tests.support.tables import configurations, shipped

KEYS = [field.name for field in dataclasses.fields(Configuration)]
ENUMS = [key for key in KEYS if issubclass(terms.key_type(key), StrEnum)]
BOOLEANS = [key for key in KEYS if terms.key_type(key) is bool]
NUMBERS = [key for key in KEYS if terms.key_type(key) is int]
OPTIONAL = ["publish_window", "confirm_threshold"]
LEAST = {"confirm_threshold": 1}

SETTINGS = """profile delivery_mode ack_mode consumption non_persistent_handling send_mode publish_window
    confirm_threshold confirm_timer ack_immediately ack_event_mode journal_sync_non_transactional
    journal_sync_transactional block_on_acknowledge queue_durable destination redelivery_mark_persisted
    resend_in_doubt duplicate_detection client_ack_scope prefetch max_delivery_attempts listener_exception
    transaction_journalling unwindowed_confirm pre_acknowledge_by dups_ok_acknowledgement prefetch_freed
    delivery_count_persisted delivery_count_from undelivered_marks_redelivered ended_consumer_marks_redelivered
    closed_consumer_gives_back rejected_comes_again requeue_clears_mark restart_marks_redelivered attempts_exhausted
    time_to_live expires_in_hand rejection_excludes_delivery exclusive_consumer session_reattachment
    consumer_reattachment transacted_completion
    duplicate_dooms_transaction outcomes outcome_scope release_counts transacted_outcomes receiver_settles
    rollback_requeues delivery_delay redelivery_delay"""

VOCABULARY = {
    terms.Profile: "jms ems solace solace-jms qpid qpid-jms artemis activemq rabbitmq",
    terms.DeliveryMode: "PERSISTENT NON_PERSISTENT RELIABLE DIRECT",
    terms.AckMode: """AUTO_ACKNOWLEDGE CLIENT_ACKNOWLEDGE DUPS_OK_ACKNOWLEDGE SESSION_TRANSACTED PRE_ACKNOWLEDGE
        NO_ACKNOWLEDGE INDIVIDUAL_ACKNOWLEDGE EXPLICIT_CLIENT_ACKNOWLEDGE EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE""",
    terms.Consumption: "receive listener",
    terms.SendMode: "blocking asynchronous unconfirmed",
    terms.AckEventMode: "PER_MESSAGE WINDOWED",
    terms.AckScope: "session up_to message",
    terms.ListenerException: "redeliver recover next_message swallow acknowledge",
    terms.NonPersistentHandling: "volatile stored direct",
    terms.TransactionJournalling: "atomic per_message",
    terms.UnwindowedConfirm: "broker socket_write",
    terms.PreAcknowledgeBy: "client broker",
    terms.DupsOkAcknowledgement: "lazy automatic",
    terms.PrefetchFreed: "on_delivery on_acknowledge on_dispatch",
    terms.DeliveryCountFrom: "dispatch delivery acknowledgement",
    terms.Outcomes: "accepted rejected released undeliverable",
    terms.OutcomeScope: "message up_to",
    terms.ReceiverSettles: "first second",
    terms.Fault: """broker_crash broker_kill producer_link_loss consumer_link_loss producer_crash consumer_crash
        listener_exception journal_failure rejection""",
    terms.Anomaly: """loss unprocessed duplicate unflagged_duplicate reprocessed resurrection phantom dirty_delivery
        torn_transaction reorder window_overrun prefetch_overrun double_outcome missing_outcome early_confirm
        count_regression over_delivered ghost stuck""",
    terms.Verdict: "valid invalid unknown",
}


@pytest.mark.parametrize("kind", VOCABULARY, ids=lambda kind: kind.__name__)
def test_every_name_is_the_one_of_the_contract(kind: type[StrEnum]) -> None:
    assert [member.value for member in kind] == VOCABULARY[kind].split()


def test_the_settings_are_those_of_the_contract() -> None:
    assert SETTINGS.split() == KEYS


def any_of_jms() -> st.SearchStrategy[Configuration]:
    """Every setting at random under the profile that refuses none."""
    return configurations().map(lambda drawn: dataclasses.replace(drawn, profile=terms.Profile.JMS))


@given(any_of_jms())
def test_a_configuration_survives_json(configuration: Configuration) -> None:
    settings = json.loads(json.dumps(configuration.as_dict()))
    assert list(settings) == KEYS
    assert shipped().configure(None, settings) == configuration


@given(any_of_jms())
def test_a_configuration_survives_the_command_line(configuration: Configuration) -> None:
    settings = {
        key: str(value).lower() if key in BOOLEANS else str(value) for key, value in configuration.as_dict().items()
    }
    settings |= {key: "none" for key in OPTIONAL if getattr(configuration, key) is None}
    assert shipped().configure(None, settings) == configuration


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        shipped().configure().prefetch = 3  # type: ignore[misc]


@pytest.mark.parametrize("key", ENUMS)
@pytest.mark.parametrize("value", ["", "auto_acknowledge", "CLIENT_ACK", 3, None, True, ["receive"]])
def test_a_value_of_no_enumeration_is_refused_with_the_legal_ones(key: str, value: object) -> None:
    with pytest.raises(InputError) as error:
        terms.parse_value(key, value)
    kind = terms.key_type(key)
    assert issubclass(kind, StrEnum)
    legal = ", ".join(member.value for member in kind)
    said = str(error.value)
    hint = re.search(r" \(did you mean (\w+)\?\)", said)
    assert hint is None or hint[1] in legal.split(", ")
    assert said.replace(hint[0] if hint else "", "") == f"{key} cannot be {value!r}; it is one of {legal}"
    assert hint or value != "auto_acknowledge" or key != "ack_mode"


@pytest.mark.parametrize("key", BOOLEANS)
def test_a_boolean_is_true_or_false(key: str) -> None:
    assert [terms.parse_value(key, value) for value in ("true", "True", "TRUE", True)] == [True] * 4
    assert [terms.parse_value(key, value) for value in ("false", "False", False)] == [False] * 3
    more = {"journal_sync": "true, false, written, synced or nothing", "restart_marks": "true, false or maybe"}
    legal = next((legal for start, legal in more.items() if key.startswith(start)), "true or false")
    for value in ("yes", "1", "", 1, 0, None):
        with pytest.raises(InputError, match=f"^{key} cannot be {value!r}; it is {legal}$"):
            terms.parse_value(key, value)


@pytest.mark.parametrize("key", NUMBERS)
@given(number=st.integers(0, 10**12))
def test_a_number_is_whole_and_not_negative(key: str, number: int) -> None:
    number += LEAST.get(key, 0)
    assert terms.parse_value(key, number) == terms.parse_value(key, str(number)) == number
    for value in (-1 - number, str(-1 - number), float(number), f"{number}.0", f"{number}k"):
        with pytest.raises(InputError, match=f"^{key} cannot be {value!r}; it is a whole number from [01]"):
            terms.parse_value(key, value)


@pytest.mark.parametrize("value", [0, "0"], ids=["number", "text"])
def test_a_threshold_is_of_one_message_or_more(value: object) -> None:
    with pytest.raises(
        InputError, match=f"^confirm_threshold cannot be {value!r}; it is a whole number from 1, or none$"
    ):
        terms.parse_value("confirm_threshold", value)


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", ["", " 1", "²", True, [1], "NaN"])
def test_what_only_resembles_a_number_is_refused(key: str, value: object) -> None:
    with pytest.raises(InputError, match=r"it is a whole number from [01]"):
        terms.parse_value(key, value)


@pytest.mark.parametrize("key", NUMBERS)
def test_only_a_window_or_threshold_may_be_none(key: str) -> None:
    for value in (None, "none"):
        if key in OPTIONAL:
            assert terms.parse_value(key, value) is None
        else:
            with pytest.raises(InputError, match=f"^{key} cannot be"):
                terms.parse_value(key, value)


def test_an_unknown_setting_is_refused_with_those_that_are_spelled_much_the_same() -> None:
    for ask in (terms.key_type, lambda key: terms.parse_value(key, "x")):
        with pytest.raises(InputError, match=r"^there is no setting 'ackmode' \(did you mean ack_mode\?\)$"):
            ask("ackmode")
        with pytest.raises(InputError, match=r"^there is no setting 'colour'; `ackfsm where` shows all of them$"):
            ask("colour")
