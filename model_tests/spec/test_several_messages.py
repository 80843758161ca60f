"""What the tables say of two messages of one session: the order of frames, what is compared, what outlives a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Interpreter, Refused
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

SENT = ("send", "accept", "write_record", "sync_record", "confirm", "confirmed")


def network(
    specification: Specification, profile: str, chosen: Mapping[str, object], *faults: Fault, messages: int = 2
) -> Network:
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=1 if faults else 0)
    return compose(specification, specification.configure(profile, chosen), bounds)


def anomalies(network: Network) -> set[Anomaly]:
    found = explore.explore(network)
    assert found.complete
    return {Anomaly(name) for name in found.witnesses}


def both_unacknowledged(network: Network) -> Interpreter:
    """Both messages are with the application, which has acknowledged neither."""
    system = Interpreter(network)
    for message in ("m1", "m2"):
        for step in (*SENT, "dispatch_first", "arrive", "delivered_clear", "processed"):
            system.fire(f"{step}({message})")
    return system


@pytest.mark.parametrize(("first", "second"), [("m1", "m2"), ("m2", "m1")])
@pytest.mark.parametrize("answered", [True, False])
def test_acknowledgements_of_a_session_are_read_in_the_order_in_which_they_were_sent(
    first: str, second: str, *, answered: bool
) -> None:
    chosen = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "block_on_acknowledge": answered}
    system = both_unacknowledged(network(shipped(), "jms", chosen))
    system.fire(f"acknowledge({first})")
    system.fire(f"acknowledge({second})")
    with pytest.raises(Refused, match="frames of one connection arrive in their order"):
        system.fire(f"settle({second})")
    system.fire(f"settle({first})")
    system.fire(f"settle({second})")


@pytest.mark.parametrize("called_on", ["m1", "m2"])
def test_one_acknowledgement_that_covers_both_is_read_for_both_in_the_order_of_delivery(called_on: str) -> None:
    """So that it is the same on whichever message the application calls it (C30)."""
    system = both_unacknowledged(network(shipped(), "jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}))
    system.fire(f"acknowledge({called_on})")
    with pytest.raises(Refused):
        system.fire("settle(m2)")
    system.fire("settle(m1)")
    system.fire("settle(m2)")


def test_a_message_that_comes_again_is_acknowledged_behind_the_later_one() -> None:
    """Its first acknowledgement does not cover it: the frame of the later message was on its way before."""
    chosen = {"ack_mode": "CLIENT_ACKNOWLEDGE", "listener_exception": "redeliver", "block_on_acknowledge": False}
    system = Interpreter(network(shipped(), "jms", chosen, Fault.LISTENER_EXCEPTION))
    for message in ("m1", "m2"):
        for step in (*SENT, "dispatch_first", "arrive"):
            system.fire(f"{step}({message})")
    again = ("requeue(m1)", "dispatch_again(m1)", "arrive(m1)", "delivered_flagged(m1)", "processed(m1)")
    first = ("delivered_clear(m1)", "listener_exception(m1)", "delivered_clear(m2)", "processed(m2)", "acknowledge(m2)")
    for step in (*first, *again, "acknowledge(m1)"):
        system.fire(step)
    with pytest.raises(Refused, match="frames of one connection arrive in their order"):
        system.fire("settle(m1)")
    system.fire("settle(m2)")
    system.fire("settle(m1)")


RESENT = {"ack_mode": "SESSION_TRANSACTED", "resend_in_doubt": True}


def test_the_second_copy_of_a_message_does_not_show_a_torn_transaction(tmp_path: Path) -> None:
    loss = Fault.PRODUCER_LINK_LOSS
    assert Anomaly.TORN_TRANSACTION not in anomalies(network(shipped(), "qpid", RESENT, loss))
    spec = copy_of_spec(tmp_path)
    file, row = (
        "properties/torn_transaction.yaml",
        "      asked:\n        resend, resend(other):\n          {to: out, because: %s",
    )
    replace(spec, file, (row % '"the first delivery', row.replace("to: out", "to: asked") % '"the first delivery'))
    for state in ("not_acknowledged", "after_another", "alone", "together"):
        row = f"      {state}:\n        resend, resend(other):\n          {{to: out"
        replace(spec, file, (row, row.replace("to: out", f"to: {state}")))
    assert Anomaly.TORN_TRANSACTION in anomalies(network(tables.load(spec), "qpid", RESENT, loss))


def test_a_torn_acknowledgement_is_still_found() -> None:
    reached = anomalies(network(shipped(), "rabbitmq", {"ack_mode": "SESSION_TRANSACTED"}, Fault.BROKER_KILL))
    assert Anomaly.TORN_TRANSACTION in reached


@pytest.mark.parametrize("persisted", [True, False])
def test_a_redelivery_after_a_crash_of_the_broker_may_carry_the_flag_and_must_if_the_mark_is_persisted(
    *, persisted: bool
) -> None:
    chosen = {"redelivery_mark_persisted": persisted, "ack_mode": "CLIENT_ACKNOWLEDGE"}
    reached = anomalies(network(shipped(), "jms", chosen, Fault.BROKER_KILL, messages=1))
    assert Anomaly.DUPLICATE in reached, "flagged"
    assert (Anomaly.UNFLAGGED_DUPLICATE in reached) is not persisted
