"""What the recorded history says of faults, transactions and times."""

from __future__ import annotations

import itertools

import pytest

from ackfsm.engine import Broker
from model_tests.support.engine.brokers import broker_of, lines
from model_tests.support.engine.calls import assert_kept, shared_wiring
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]


@pytest.mark.parametrize(("call", "fault"), [("lose", "link_loss"), ("crash", "crash")])
@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_the_history_names_the_side_that_a_fault_struck(side: str, call: str, fault: str) -> None:
    broker = broker_of()
    with broker.connect() as client:
        getattr(client.session(), side)("q")
        getattr(client, call)()
        assert [line["fault"] for line in lines(broker, "fault")] == [f"{side}_{fault}"]
    assert [line["fault"] for line in lines(broker, "fault")] == [f"{side}_{fault}"]


def test_the_history_records_a_listener_exception_as_a_fault() -> None:
    def throws(_: object) -> None:
        raise RuntimeError("the application fails")

    broker = Broker("jms", specification=shipped(), history=True, max_delivery_attempts=1)
    broker.connect().session().consumer("q", listener=throws)
    broker.connect().session().producer("q").send()
    assert {line["fault"] for line in lines(broker, "fault")} == {"listener_exception"}


def test_the_history_names_a_transaction_by_text() -> None:
    broker = broker_of(ack_mode="SESSION_TRANSACTED")
    with broker.connect() as client:
        session = client.session()
        session.producer("q").send(message_id="m")
        session.commit()
        assert_kept(broker)
    assert {type(line["transaction"]) for line in lines(broker) if "transaction" in line} == {str}


def test_no_two_events_of_the_history_have_the_same_time() -> None:
    broker = broker_of()
    with broker.connect().session("SESSION_TRANSACTED") as session:
        for _ in range(3):
            session.producer("q").send()
        session.commit()
    times = [line["t"] for line in lines(broker)]
    assert len(times) > 5
    assert all(a < b for a, b in itertools.pairwise(times))
