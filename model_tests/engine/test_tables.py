"""Brokers that share what was read from the tables."""

from __future__ import annotations

import pytest

from ackfsm.engine import Broker
from ackfsm.engine.core.model import EngineModel
from ackfsm.terms import InputError
from model_tests.support.tables import shipped


def test_a_broker_like_another_shares_its_tables_and_nothing_else() -> None:
    first = Broker("artemis", specification=shipped())
    first.connect().session().producer("q").send(b"x")
    second = Broker("jms", like=first)
    assert second.specification is first.specification
    assert second.connect().session("AUTO_ACKNOWLEDGE", prefetch=1).consumer("q").listener is None
    assert (first.queue("q").length, second.queue("q").length) == (1, 0)


def test_tables_are_given_once() -> None:
    with pytest.raises(InputError, match="give the tables once"):
        Broker(specification=shipped(), like=Broker(specification=shipped()))


def test_machines_of_one_scope_share_the_broadcast_of_an_event() -> None:
    """Else a copy would be indexed several times, and looked for as often, for what is asked of it once."""
    for event in EngineModel(shipped()).events.values():
        kinds = [(each.scope, each.relation, each.by_message) for each, _ in event.broadcasts]
        assert len(kinds) == len(set(kinds)), event.name
