"""A session that consumes and sends in one transaction: its input and its output count together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

TRANSACTED = {"ack_mode": "SESSION_TRANSACTED"}
SPEC = shipped()
FORWARD = frozenset({"forward"})
FAULTS = (Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL, Fault.BROKER_CRASH, Fault.JOURNAL_FAILURE)


def is_torn(  # noqa: PLR0913 - what is asked about, each by name
    profile: str,
    fault: Fault,
    settings: Mapping[str, object] | None = None,
    *,
    messages: int = 1,
    consumers: int = 1,
    spec: Specification = SPEC,
) -> bool | None:
    """Whether a transaction can be torn by this fault, which may happen any number of times to one message."""
    often = None if messages == consumers == 1 else 1
    bounds = Bounds(
        messages=messages, consumers=consumers, faults=frozenset({fault}), max_faults=often, actions=FORWARD
    )
    answer = explore.check(spec, spec.configure(profile, {**TRANSACTED, **(settings or {})}), bounds)
    return answer.findings[Anomaly.TORN_TRANSACTION].reachable


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("messages", "consumers"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("profile", ["jms", "artemis"])
def test_input_and_output_count_together(profile: str, fault: Fault, messages: int, consumers: int) -> None:
    assert is_torn(profile, fault, messages=messages, consumers=consumers) is False


@pytest.mark.parametrize("settings", [{"delivery_mode": "NON_PERSISTENT"}, {"listener_exception": "swallow"}])
def test_also_where_they_are_in_memory_or_a_listener_throws(settings: Mapping[str, object]) -> None:
    for fault in (Fault.BROKER_KILL, Fault.LISTENER_EXCEPTION):
        assert is_torn("jms", fault, settings) is False


@pytest.mark.parametrize(
    ("profile", "settings"), [("rabbitmq", {}), ("ems", {}), ("artemis", {"journal_sync_transactional": False})]
)
def test_a_transaction_that_is_stored_in_parts_or_late_is_torn_by_the_broker_alone(
    profile: str, settings: Mapping[str, object]
) -> None:
    assert is_torn(profile, Fault.BROKER_KILL, settings) is True
    assert is_torn(profile, Fault.CONSUMER_CRASH, settings) is False


MUTANTS = {
    "an output outlives the session of its transaction": (
        Fault.CONSUMER_CRASH,
        "consumer_crash, broker_crash, broker_kill, journal_failure:\n        {to: none, because: a transaction",
        "consumer_crash, broker_crash, broker_kill, journal_failure:\n        {to: volatile, because: a transaction",
    ),
    "an output outlives the rollback of its transaction": (
        Fault.LISTENER_EXCEPTION,
        "session_starts_over, consumer_rollback:\n        {to: none, because: a transaction",
        "session_starts_over, consumer_rollback:\n        {to: volatile, because: a transaction",
    ),
    "an output is delivered before its commit is stored": (
        Fault.BROKER_KILL,
        "    output_delivered: {refuse: it is not in its queue}",
        "    output_delivered: {ignore: somebody has it before it is in its queue}",
    ),
    "an output is not in the record of the commit": (
        Fault.BROKER_KILL,
        "    committing:\n      sync_consumer_commit: {to: stored,",
        "    committing:\n      sync_consumer_commit: {to: volatile,",
    ),
    "a commit that vanishes leaves the output": (
        Fault.BROKER_KILL,
        "      consumer_commit_vanishes: {to: none, because: the record of the commit had not",
        "      consumer_commit_vanishes: {to: stored, because: the record of the commit had not",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_tears_them_apart_is_noticed(name: str, tmp_path: Path) -> None:
    fault, old, new = MUTANTS[name]
    spec = copy_of_spec(tmp_path)
    replace(spec, "machines/broker.yaml", (old, new))
    assert is_torn("jms", fault, spec=tables.load(spec)) is True


def test_nothing_of_it_is_there_unless_a_check_asks_for_it() -> None:
    answer = explore.check(shipped(), shipped().configure("jms", TRANSACTED), Bounds(faults=frozenset(Fault)))
    assert "forward(m1)" not in {event.label for event in answer.network.events}
