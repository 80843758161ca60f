"""No property is empty: each anomaly can be reached, in the tables as they are or with a row of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

CONSUMER, BROKER, JOURNAL, PRODUCER = (
    f"machines/{name}.yaml" for name in ("consumer", "broker", "journal", "producer")
)


@dataclass(frozen=True)
class Way:
    """Where an anomaly is reached: a system, and the rows (file, old, new) that have to be other ones for it."""

    profile: str = "jms"
    settings: Mapping[str, object] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    messages: int = 1
    max_faults: int = 1
    actions: tuple[str, ...] = ()
    changes: tuple[tuple[str, str, str], ...] = ()

    def reached(self, specification: Specification) -> set[Anomaly]:
        """The anomalies that these tables reach there."""
        bounds = Bounds(
            messages=self.messages,
            faults=frozenset(self.faults),
            max_faults=self.max_faults,
            actions=frozenset(self.actions),
        )
        answer = explore.check(specification, specification.configure(self.profile, self.settings), bounds)
        return {anomaly for anomaly, finding in answer.findings.items() if finding.reachable}


TRANSACTED = {"ack_mode": "SESSION_TRANSACTED"}
CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
UP = "  up:\n    send, resend:\n      - {when: confirms_sends, because: one more is open, source: 002 step 1}\n"

WAYS: dict[Anomaly, Way] = {
    Anomaly.LOSS: Way(settings={"ack_mode": "NO_ACKNOWLEDGE"}, faults=(Fault.CONSUMER_CRASH,)),
    Anomaly.UNPROCESSED: Way(settings={"consumption": "receive"}, faults=(Fault.CONSUMER_CRASH,)),
    Anomaly.DUPLICATE: Way(faults=(Fault.CONSUMER_CRASH,)),
    Anomaly.UNFLAGGED_DUPLICATE: Way("artemis", faults=(Fault.BROKER_CRASH,)),
    Anomaly.REPROCESSED: Way(faults=(Fault.CONSUMER_CRASH,)),
    Anomaly.RESURRECTION: Way("rabbitmq", TRANSACTED, (Fault.BROKER_KILL,)),
    Anomaly.TORN_TRANSACTION: Way("rabbitmq", TRANSACTED, (Fault.BROKER_KILL,), messages=2),
    Anomaly.OVER_DELIVERED: Way("artemis", {"max_delivery_attempts": 1, **CLIENT}, (Fault.BROKER_KILL,)),
    Anomaly.GHOST: Way(
        "solace",
        {"resend_in_doubt": True},
        (Fault.PRODUCER_LINK_LOSS, Fault.REJECTION),
        max_faults=2,
    ),
    Anomaly.REORDER: Way("activemq", messages=2, actions=("taken_elsewhere",)),
    Anomaly.MISSING_OUTCOME: Way(settings={"publish_window": 2, "confirm_threshold": 2}),
    Anomaly.EARLY_CONFIRM: Way(
        faults=(Fault.BROKER_CRASH,),
        changes=(
            (
                JOURNAL,
                '- {refuse: "the response waits for the sync", when: answer_waits_for_sync,',
                "- {to: written, because: impatience, when: answer_waits_for_sync,",
            ),
        ),
    ),
    Anomaly.COUNT_REGRESSION: Way("ems", faults=(Fault.BROKER_KILL,)),
    Anomaly.STUCK: Way("qpid", faults=(Fault.LISTENER_EXCEPTION,)),
    Anomaly.PHANTOM: Way(
        changes=(
            (
                BROKER,
                "    absent:\n      accept:\n",
                "    absent:\n      dispatch_first: {to: dispatched, because: x, source: model}\n      accept:\n",
            ),
        ),
    ),
    Anomaly.DIRTY_DELIVERY: Way(
        settings=TRANSACTED,
        changes=(
            (
                BROKER,
                "- {to: staged, when: transacted, because: nobody",
                "- {to: ready, when: transacted, because: nobody",
            ),
        ),
    ),
    Anomaly.DOUBLE_OUTCOME: Way(
        changes=(
            (
                PRODUCER,
                "      confirmed: {to: none, because: the frame has arrived,",
                "      confirmed: {to: in_flight, because: it comes again,",
            ),
            (
                PRODUCER,
                "    confirmed, confirmed_by_range, rejected: {refuse: no answer",
                "    confirmed, confirmed_by_range, rejected: {ignore: no answer",
            ),
        ),
    ),
    Anomaly.WINDOW_OVERRUN: Way(
        settings={"publish_window": 1, "send_mode": "asynchronous"},
        messages=2,
        changes=(
            (
                PRODUCER,
                UP,
                UP.replace("- {when", "- {ignore: x, when").replace(", because: one more is open", ""),
            ),
        ),
    ),
    Anomaly.PREFETCH_OVERRUN: Way(
        settings=CLIENT | {"prefetch": 1},
        messages=2,
        changes=(
            (
                CONSUMER,
                "{because: one more is out, source: 003 prefetch; EMS-PREF}",
                "{ignore: nobody counts, source: model}",
            ),
        ),
    ),
}


@pytest.mark.parametrize("anomaly", Anomaly)
def test_every_anomaly_can_be_reached(anomaly: Anomaly, tmp_path: Path) -> None:
    way = WAYS[anomaly]
    if not way.changes:
        assert anomaly in way.reached(shipped())
        return
    assert anomaly not in way.reached(shipped())
    spec = copy_of_spec(tmp_path)
    for file, old, new in way.changes:
        replace(spec, file, (old, new))
    assert anomaly in way.reached(tables.load(spec))
