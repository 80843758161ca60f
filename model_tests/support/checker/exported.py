"""Systems to export, and what another checker finds in them, held against :mod:`ackfsm.checking.explore`."""

from __future__ import annotations

import dataclasses
import functools
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import AckMode, AttemptsExhausted, Configuration, DeliveryMode, Fault
from model_tests.support.tables import actions, shipped, values
from model_tests.support.whole import WHOLE, in_turn

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


def _modes(number: int) -> tuple[AckMode, DeliveryMode]:
    """Of the drawn system of this number."""
    return list(AckMode)[number % len(AckMode)], list(DeliveryMode)[number % len(DeliveryMode)]


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


NAMES = (
    *(f"hand-{number}-{profile}" for number, (profile, _, _) in enumerate(_BY_HAND)),
    *(f"drawn-{number}-{'-'.join(_modes(number))}" for number in range(DRAWN)),
)
"""Of the systems, by their numbers: the tests' ids, for which no system is searched."""

ALL = range(len(NAMES))
COVERING = (5, 15, 16, 17, 20, 21, 23, 26, 31, 34, 37, 39, 40, 43, 45, 53, 66, 69, 70, 73, 74)
FEW: Sequence[int] = ALL if WHOLE else COVERING
"""What other searches go through in the suite: these have every machine, event, participant, fault, bound and anomaly
that all have (:func:`shapes`)."""

_SEARCHES = ("JSON", "Spin", "TLC")


def searched_by(name: str) -> list[int]:
    """The numbers of the systems that this search of an export goes through: they take turns but before a release."""
    return [number for search, number in in_turn(_SEARCHES, FEW, 1) if search == name]


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
def system(number: int) -> System:
    """The system of this number."""
    if number < len(_BY_HAND):
        profile, chosen, bounds = _BY_HAND[number]
        network = compose(shipped(), shipped().configure(profile, chosen), _bounds(**bounds))
        return System(NAMES[number], network, found(network))
    return _small(random.Random(number), number - len(_BY_HAND))


def _bounds(**bounds: Any) -> Bounds:
    return Bounds(**{"faults": frozenset(Fault), **bounds})


def _small(draw: random.Random, number: int) -> System:
    """The first drawn system with its modes that is small enough."""
    fixed = dict(zip(("ack_mode", "delivery_mode"), _modes(number), strict=True))
    while True:
        keys = [field.name for field in dataclasses.fields(Configuration)]
        chosen: dict[str, Any] = {key: draw.choice(values(key)) for key in keys} | fixed
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
            return System(NAMES[len(_BY_HAND) + number], network, _told(small))


def shapes(number: int) -> frozenset[tuple[str, ...]]:
    """What the system of this number has that another may lack, without the numbers of its messages and consumers."""
    one = system(number)
    bounds, network = one.network.bounds, one.network
    names = [instance.fsm.name for instance in network.instances]
    parts = {(_unnumbered(event.name), names[part.instance]) for event in network.events for part in event.participants}
    modes = {(key, str(value)) for key, value in network.configuration.as_dict().items() if key in _MODES}
    faults = {("fault", fault) for fault in bounds.faults if bounds.max_faults != 0}
    limits = {(key, str(value)) for key, value in dataclasses.asdict(bounds).items() if key not in _SETS}
    return frozenset({*parts, *modes, *faults, *limits, *(("reached", anomaly) for anomaly in one.found.reachable)})


_MODES = frozenset({"profile", "ack_mode", "delivery_mode", "send_mode", "consumption"})
_SETS = frozenset({"faults", "actions", "without"})


def _unnumbered(name: str) -> str:
    return re.sub(r"(_[a-z]?\d+)+", "", name)
