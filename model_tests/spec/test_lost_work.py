"""What a session loses with its connection, and what it acknowledges before its turn, where there are several messages.

Faults are without limit.  Each fact falls if one row that it rests on is taken back (docs/decisions/transactions.md).
There is one session: the tables have no second one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Bounds, Network, compose, observers_named
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

TRANSACTED = {"ack_mode": "SESSION_TRANSACTED"}
ACKNOWLEDGED_FIRST = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}
AND_HANDED_OVER_AT_ONCE = {**ACKNOWLEDGED_FIRST, "block_on_acknowledge": False}
LOST_PARTS = {Anomaly.RESURRECTION, Anomaly.TORN_TRANSACTION}
LEFT_BEHIND = {Anomaly.LOSS, Anomaly.STUCK}

profiles = pytest.mark.parametrize("profile", ["jms", "ems", "artemis", "qpid"])


def changed(folder: Path, old: str, new: str) -> Specification:
    """The tables with other words in a row of the consumer."""
    spec = copy_of_spec(folder)
    replace(spec, "machines/consumer.yaml", (old, new))
    return tables.load(spec)


def composed(  # noqa: PLR0913 - a system, its bounds, and what watches it
    specification: Specification,
    profile: str,
    chosen: Mapping[str, object],
    faults: Collection[Fault],
    *,
    messages: int = 2,
    watched: Collection[Anomaly] = tuple(Anomaly),
) -> Network:
    """The system with what watches for some anomalies: each further one multiplies the states."""
    actions = frozenset({"rollback"}) if chosen == TRANSACTED else frozenset[str]()
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=None, actions=actions)
    watching = observers_named(specification, set(watched) & specification.properties.keys())
    return compose(specification, specification.configure(profile, chosen), bounds, watching)


def anomalies(network: Network) -> set[Anomaly]:
    found = explore.explore(network)
    assert found.complete
    return {anomaly for anomaly in Anomaly if anomaly in found.witnesses}


@profiles
def test_a_transaction_that_lost_a_part_is_not_committed(profile: str) -> None:
    faults = (Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH)
    assert not anomalies(composed(shipped(), profile, TRANSACTED, faults, watched=LOST_PARTS))


def test_nor_with_three_messages() -> None:
    of_three = composed(shipped(), "jms", TRANSACTED, [Fault.CONSUMER_LINK_LOSS], messages=3, watched=LOST_PARTS)
    assert not anomalies(of_three)


@pytest.mark.parametrize(
    "row",
    [
        'consumer_link_up:\n        to: %s\n        because: "the session that the broker had of it',
        'consumer_link_up: {to: %s, because: "commit() fails, and tells',
    ],
)
def test_it_would_be_if_a_reconnection_began_a_new_transaction(row: str, tmp_path: Path) -> None:
    begun_anew = changed(tmp_path, row % "failed", row % "idle")
    torn = composed(begun_anew, "jms", TRANSACTED, [Fault.CONSUMER_LINK_LOSS], watched=LOST_PARTS)
    assert anomalies(torn) == LOST_PARTS


@profiles
def test_what_is_acknowledged_before_it_is_handed_over_is_handed_over(profile: str) -> None:
    assert not anomalies(composed(shipped(), profile, ACKNOWLEDGED_FIRST, []))


@pytest.mark.parametrize("profile", ["jms", "artemis", "qpid"])
def test_also_when_the_connection_is_lost(profile: str) -> None:
    faults = [Fault.CONSUMER_LINK_LOSS]
    assert not anomalies(composed(shipped(), profile, AND_HANDED_OVER_AT_ONCE, faults, watched=LEFT_BEHIND))


@pytest.mark.parametrize("profile", ["jms", "ems"])
@pytest.mark.parametrize("messages", [1, 2])
def test_but_for_a_library_that_waits_for_an_answer_and_gets_none(messages: int, profile: str) -> None:
    """One message is enough: the call fails, and the broker may have removed what it was about."""
    faults = [Fault.CONSUMER_LINK_LOSS]
    waiting = composed(shipped(), profile, ACKNOWLEDGED_FIRST, faults, messages=messages, watched=LEFT_BEHIND)
    assert anomalies(waiting) == {Anomaly.LOSS}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "{refuse: the library acknowledges in the order in which it delivers,",
            "{ignore: the library acknowledges in any order,",
            id="acknowledged out of order",
        ),
        pytest.param(
            "source: 003 PRE_ACKNOWLEDGE}\n      arrive(earlier): {refuse:",
            "source: 003 PRE_ACKNOWLEDGE}\n      arrive(earlier): {ignore:",
            id="overtaken by an earlier one",
        ),
    ],
)
def test_it_would_not_be_if_another_came_between(old: str, new: str, tmp_path: Path) -> None:
    between = changed(tmp_path, old, new)
    at_once = composed(between, "jms", AND_HANDED_OVER_AT_ONCE, [Fault.CONSUMER_LINK_LOSS], watched=LEFT_BEHIND)
    assert anomalies(at_once) == LEFT_BEHIND


def acknowledged_ahead(network: Network) -> int:
    """The most messages that are, in any state, acknowledged and not yet handed over."""
    with Search(pack(network)) as search:
        while search.has_work():
            search.expand_batch()
        states = state_table(search).astype(np.int64)
    ahead = np.zeros(len(states), np.int64)
    for column, instance in zip(states.T, network.instances, strict=True):
        if instance.fsm.name == "delivery":
            ahead += np.isin(
                column,
                [instance.fsm.states.index(name) for name in ("acked_undelivered", "awaiting_ack_before_delivery")],
            )
    return int(ahead.max())


@pytest.mark.parametrize("chosen", [ACKNOWLEDGED_FIRST, AND_HANDED_OVER_AT_ONCE], ids=["waits", "at once"])
def test_one_message_at_a_time_is_acknowledged_ahead(chosen: Mapping[str, object], tmp_path: Path) -> None:
    """So one crash of the consumer loses one message (JMS 6.2.10: the last one of the session)."""
    faults = (Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH)
    assert acknowledged_ahead(composed(shipped(), "jms", chosen, faults, watched=())) == 1
    row = 'acknowledge(later_beside):\n        {%s: "the call that'
    runs_ahead = changed(tmp_path, row % "refuse", row % "ignore")
    assert acknowledged_ahead(composed(runs_ahead, "jms", chosen, faults, watched=())) == 2
