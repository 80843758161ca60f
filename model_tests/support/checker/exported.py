"""Systems to export, and what a checker of another make finds in them, to be held against :mod:`ackfsm.explore`."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from ackfsm import explore
from ackfsm.network import Bounds, Network, compose
from ackfsm.terms import AckMode, AttemptsExhausted, Configuration, DeliveryMode, Fault
from model_tests.support.tables import actions, shipped, values

__all__ = ["Found", "System", "found", "systems"]

DRAWN = 36
"""Each acknowledgement mode once with each delivery mode."""

_FEWEST_STATES, _MOST_STATES = 60, 2_500
"""Of a drawn system; those written by hand may have fewer or more."""

_SECOND: Mapping[str, object] = {
    "ack_mode": "INDIVIDUAL_ACKNOWLEDGE",
    "outcomes": "released",
    "receiver_settles": "second",
    "block_on_acknowledge": False,
}
_REATTACHED: Mapping[str, object] = {"session_reattachment": True, "publish_window": 10}
_REPEATED: Mapping[str, object] = {
    "ack_mode": "SESSION_TRANSACTED",
    "duplicate_detection": True,
    "resend_in_doubt": True,
}

_BY_HAND: tuple[tuple[str, Mapping[str, object], dict[str, Any]], ...] = (
    ("jms", {}, {}),
    ("jms", {}, {"faults": frozenset(), "max_faults": 0}),
    ("artemis", {"ack_mode": "PRE_ACKNOWLEDGE"}, {"max_faults": 2}),
    ("jms", {"ack_mode": "SESSION_TRANSACTED"}, {"actions": frozenset({"rollback"})}),
    ("jms", {"resend_in_doubt": True, "redelivery_mark_persisted": False}, {}),
    ("jms", {}, {"max_faults": 0, "without": frozenset({"send"})}),
    ("solace", {"publish_window": 2}, {"messages": 2, "faults": frozenset({Fault.REJECTION})}),
    ("artemis", {}, {"messages": 2}),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"without": frozenset({"acknowledge"})}),
    ("jms", {}, {"messages": 2, "faults": frozenset({Fault.CONSUMER_CRASH})}),
    ("artemis", {"ack_mode": "SESSION_TRANSACTED"}, {"consumers": 2, "faults": frozenset(), "max_faults": 0}),
    ("solace", {}, {"consumers": 2, "messages": 2, "faults": frozenset(), "max_faults": 0}),
    ("solace", {}, {"consumers": 2, "faults": frozenset({Fault.CONSUMER_LINK_LOSS})}),
    ("jms", {}, {"consumers": 2, "one_session": True, "faults": frozenset({Fault.CONSUMER_LINK_LOSS})}),
    (
        "jms",
        {"ack_mode": "CLIENT_ACKNOWLEDGE"},
        {"messages": 2, "consumers": 2, "one_session": True, "faults": frozenset(), "max_faults": 0},
    ),
    (
        "artemis",
        {"ack_mode": "SESSION_TRANSACTED"},
        {"consumers": 2, "one_session": True, "faults": frozenset({Fault.CONSUMER_CRASH, Fault.LISTENER_EXCEPTION})},
    ),
    ("jms", {}, {"consumers": 3, "faults": frozenset(), "max_faults": 0}),
    (
        "solace",
        {"ack_mode": "CLIENT_ACKNOWLEDGE", "publish_window": 1},
        {"faults": frozenset({Fault.CONSUMER_LINK_LOSS}), "actions": frozenset({"settle_failed", "settle_rejected"})},
    ),
    (
        "rabbitmq",
        {"ack_mode": "SESSION_TRANSACTED"},
        {"faults": frozenset({Fault.LISTENER_EXCEPTION, Fault.CONSUMER_CRASH})},
    ),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"messages": 2, "faults": frozenset({Fault.LISTENER_EXCEPTION})}),
    (
        "qpid-jms",
        {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "resend_in_doubt": False},
        {
            "consumers": 2,
            "faults": frozenset(),
            "max_faults": 0,
            "actions": frozenset({"settle_released", "settle_undeliverable"}),
        },
    ),
    (
        "solace",
        {"publish_window": 9},
        {
            "messages": 2,
            "faults": frozenset(),
            "actions": frozenset({"ask_at_once"}),
            "without": frozenset({"dispatch_first"}),
        },
    ),
    (
        "jms",
        {**_SECOND, "consumer_reattachment": False},
        {"faults": frozenset({Fault.CONSUMER_LINK_LOSS}), "actions": frozenset({"settle_rejected"})},
    ),
    (
        "jms",
        {**_SECOND, "consumer_reattachment": True},
        {
            "faults": frozenset({Fault.CONSUMER_LINK_LOSS}),
            "actions": frozenset({"settle_released", "consumer_session_lost"}),
        },
    ),
    (
        "rabbitmq",
        {"outcome_scope": "up_to", "resend_in_doubt": False},
        {"messages": 2, "faults": frozenset(), "max_faults": 0, "actions": frozenset({"settle_rejected"})},
    ),
    (
        "rabbitmq",
        {"ack_mode": "SESSION_TRANSACTED"},
        {
            "faults": frozenset({Fault.LISTENER_EXCEPTION, Fault.CONSUMER_LINK_LOSS}),
            "actions": frozenset({"settle_failed", "settle_rejected"}),
        },
    ),
    (
        "artemis",
        {"consumer_reattachment": True, "publish_window": 10, "ack_mode": "SESSION_TRANSACTED"},
        {"consumers": 2, "faults": frozenset({Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL})},
    ),
    ("jms", {"delivery_delay": True}, {"messages": 2, "faults": frozenset({Fault.CONSUMER_CRASH})}),
    ("jms", {"redelivery_delay": True}, {"messages": 2, "faults": frozenset({Fault.CONSUMER_CRASH})}),
    ("ems", {"max_delivery_attempts": 2}, {"faults": frozenset({Fault.CONSUMER_CRASH}), "max_faults": None}),
    ("artemis", _REATTACHED, {"messages": 2, "faults": frozenset({Fault.PRODUCER_LINK_LOSS}), "max_faults": 2}),
    ("artemis", _REATTACHED, {"actions": frozenset({"producer_session_lost"})}),
    (
        "artemis",
        {**_REATTACHED, "ack_mode": "SESSION_TRANSACTED", "resend_in_doubt": True},
        {"faults": frozenset({Fault.PRODUCER_LINK_LOSS, Fault.BROKER_KILL})},
    ),
    ("jms", {"send_mode": "asynchronous"}, {"actions": frozenset({"producer_close"})}),
    (
        "jms",
        {"ack_mode": "SESSION_TRANSACTED", "send_mode": "asynchronous"},
        {"actions": frozenset({"producer_close", "rollback"})},
    ),
    (
        "jms",
        {"ack_mode": "SESSION_TRANSACTED", "send_mode": "asynchronous"},
        {"messages": 2, "faults": frozenset({Fault.PRODUCER_LINK_LOSS})},
    ),
    ("artemis", _REPEATED, {"faults": frozenset({Fault.PRODUCER_LINK_LOSS, Fault.BROKER_CRASH})}),
    (
        "artemis",
        _REPEATED,
        {"messages": 2, "faults": frozenset({Fault.PRODUCER_LINK_LOSS}), "actions": frozenset({"postpone"})},
    ),
    (
        "jms",
        {"destination": "durable_subscription"},
        {"subscriptions": 2, "faults": frozenset({Fault.CONSUMER_CRASH})},
    ),
    (
        "artemis",
        {"destination": "durable_subscription", "ack_mode": "SESSION_TRANSACTED"},
        {"subscriptions": 2, "non_durable": 1, "faults": frozenset({Fault.BROKER_CRASH})},
    ),
)


_ENDS: tuple[dict[str, object], ...] = (
    {"time_to_live": True},
    {"max_delivery_attempts": 1, "attempts_exhausted": AttemptsExhausted.DESTROY},
    {"max_delivery_attempts": 1, "attempts_exhausted": AttemptsExhausted.DEAD_LETTER},
)
"""Of the systems that are drawn half have two consumers; in the others messages end otherwise than acknowledged."""


@dataclasses.dataclass(frozen=True)
class Found:
    """The number of states, the number of transitions, and the anomalies that can happen."""

    states: int
    transitions: int
    reachable: frozenset[str]


@dataclasses.dataclass(frozen=True)
class System:
    """A system, a short name for the test's id, and what the project's own search finds in it."""

    name: str
    network: Network
    found: Found


def found(network: Network) -> Found:
    """What the project's own search finds."""
    return _told(explore.explore(network))


def _told(exploration: explore.Exploration) -> Found:
    return Found(exploration.states, exploration.transitions, frozenset(map(str, exploration.witnesses)))


@functools.cache
def systems() -> tuple[System, ...]:
    """Some systems written by hand, and many drawn: every acknowledgement mode and delivery mode comes up."""
    return (*map(_by_hand, range(len(_BY_HAND))), *_drawn(random.Random(20)))


def _by_hand(number: int) -> System:
    profile, chosen, bounds = _BY_HAND[number]
    network = compose(shipped(), shipped().configure(profile, chosen), _bounds(**bounds))
    return System(f"hand-{number}-{profile}", network, found(network))


def _bounds(**bounds: Any) -> Bounds:
    return Bounds(**{"faults": frozenset(Fault), **bounds})


def _drawn(draw: random.Random) -> Iterator[System]:
    for number in range(DRAWN):
        modes = (list(AckMode)[number % len(AckMode)], list(DeliveryMode)[number % len(DeliveryMode)])
        yield _small(draw, number, dict(zip(("ack_mode", "delivery_mode"), modes, strict=True)))


def _small(draw: random.Random, number: int, fixed: Mapping[str, object]) -> System:
    """The first system drawn with these modes that is small enough."""
    while True:
        keys = [field.name for field in dataclasses.fields(Configuration)]
        chosen: dict[str, Any] = {key: draw.choice(values(key)) for key in keys} | dict(fixed)
        chosen |= {} if number % 2 else draw.choice(_ENDS)
        bounds = Bounds(
            messages=1 if number % 3 else 2,
            consumers=1 + number % 2,
            faults=frozenset(draw.sample(list(Fault), draw.choice((1, 2, 3, len(Fault))))),
            max_faults=draw.choice((0, 1, 1, 2, None)),
            actions=frozenset(draw.sample(actions(), draw.choice((0, 0, 1)))),
        )
        network = compose(shipped(), Configuration(**chosen), bounds)
        small = explore.explore(network, explore.SearchOptions(max_states=_MOST_STATES))
        if small.complete and small.states >= _FEWEST_STATES:
            return System(
                f"{number}-{chosen['ack_mode']}-{chosen['delivery_mode']}-{bounds.messages}-{bounds.consumers}",
                network,
                _told(small),
            )
