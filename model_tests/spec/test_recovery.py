"""What an application has again that failed to process a message: recover(), rollback, basic.recover."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

THROWS = (Fault.LISTENER_EXCEPTION,)
TRANSACTED = {"ack_mode": "SESSION_TRANSACTED"}


def asked(  # noqa: PLR0913 - what is asked about, each by name
    profile: str,
    settings: Mapping[str, object],
    *,
    faults: Collection[Fault] = THROWS,
    max_faults: int | None = 1,
    messages: int = 2,
    consumers: int = 1,
    without: Collection[str] = (),
    spec: Specification | None = None,
) -> Answer:
    spec = spec or shipped()
    bounds = Bounds(
        messages=messages,
        consumers=consumers,
        faults=frozenset(faults),
        max_faults=max_faults,
        without=frozenset(without),
    )
    return explore.check(spec, spec.configure(profile, settings), bounds)


def way(answer: Answer, anomaly: Anomaly) -> list[str]:
    return [event.label for event in answer.findings[anomaly].steps]


@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "EXPLICIT_CLIENT_ACKNOWLEDGE"])
def test_recover_gives_back_what_did_not_fail_too(mode: str) -> None:
    """Before, the application had the message alone again whose listener had thrown (JMS 6.2.9)."""
    answer = asked("jms", {"ack_mode": mode})
    steps = way(answer, Anomaly.REPROCESSED)
    processed = next(step for step in steps if step.startswith("processed"))
    thrown = next(step for step in steps if step.startswith("listener_exception"))
    assert processed[-4:] != thrown[-4:], "another message was processed"
    assert steps.index("consumer_recover") < len(steps) - 1 - steps[::-1].index(processed), "and is processed again"


@pytest.mark.parametrize("consumers", [1, 2])
def test_it_recovers_once_and_nothing_is_left(consumers: int) -> None:
    messages = 2 if consumers == 1 else 1
    answer = asked("jms", {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}, messages=messages, consumers=consumers)
    wrong = (Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.STUCK, Anomaly.RESURRECTION, Anomaly.UNFLAGGED_DUPLICATE)
    assert not [anomaly for anomaly in wrong if answer.findings[anomaly].reachable]


def test_a_library_that_redelivers_gives_back_one_message() -> None:
    answer = asked("jms", {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "listener_exception": "redeliver"})
    assert answer.findings[Anomaly.DUPLICATE].reachable
    assert not answer.findings[Anomaly.REPROCESSED].reachable


def test_a_rollback_of_rabbitmq_requeues_nothing() -> None:
    answer = asked("rabbitmq", TRANSACTED, max_faults=None, without={"consumer_recover"})
    assert not answer.findings[Anomaly.DUPLICATE].reachable
    assert answer.findings[Anomaly.UNPROCESSED].reachable, "what failed stays with its channel"
    requeues = asked("rabbitmq", {**TRANSACTED, "rollback_requeues": True}, without={"consumer_recover"})
    assert requeues.findings[Anomaly.DUPLICATE].reachable


def test_the_application_has_it_again_with_recover_or_as_its_channel_closes() -> None:
    recovered = asked("rabbitmq", TRANSACTED, max_faults=2)
    assert "consumer_recover" in way(recovered, Anomaly.DUPLICATE)
    wrong = (Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.STUCK, Anomaly.UNFLAGGED_DUPLICATE)
    assert not [anomaly for anomaly in wrong if recovered.findings[anomaly].reachable]
    closed = asked(
        "rabbitmq", TRANSACTED, faults=(*THROWS, Fault.CONSUMER_CRASH), max_faults=2, without={"consumer_recover"}
    )
    assert closed.findings[Anomaly.DUPLICATE].reachable


def test_what_is_undone_keeps_its_place_within_the_prefetch_bound() -> None:
    settings = {**TRANSACTED, "prefetch": 1}
    stays = asked("rabbitmq", settings, without={"consumer_recover"})
    assert not stays.findings[Anomaly.PREFETCH_OVERRUN].reachable
    recovered = asked("rabbitmq", settings, max_faults=2)
    assert not recovered.findings[Anomaly.STUCK].reachable
    assert not recovered.findings[Anomaly.PREFETCH_OVERRUN].reachable


MUTANTS = {
    "recover() leaves with the session what it has had": (
        "machines/broker.yaml",
        (
            '- {to: ready, because: "what was delivered and not acknowledged is delivered again, marked", '
            "source: JMS 6.2.10}"
        ),
        "- {ignore: it stays with the session, source: model}",
        {Anomaly.UNPROCESSED, Anomaly.LOSS},
    ),
    "the application never recovers": (
        "machines/consumer.yaml",
        "          when: listener_exception == 'next_message' and not transacted",
        "          when: listener_exception == 'swallow' and not transacted",
        {Anomaly.UNPROCESSED, Anomaly.STUCK},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    file, old, new, anomalies = MUTANTS[name]
    settings = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
    spec = copy_of_spec(tmp_path)
    replace(spec, file, (old, new))
    changed = asked("jms", settings, spec=tables.load(spec)).findings
    known = asked("jms", settings).findings
    assert anomalies == {each for each in changed if changed[each].reachable and not known[each].reachable}
