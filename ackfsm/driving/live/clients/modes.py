"""Which modes the clients in Python can drive with which broker, and what that is in settings of the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ackfsm.history.format import Outcome
from ackfsm.terms import AckMode, Consumption, InputError

__all__ = ["DRIVEN", "Driven", "Setting", "driven"]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a client, by its vendor's name, as one of the tables.

    Attributes:
        key: of the tables.
        values: the values there, by the client's; ``None``: the same number.
        anything: the value there for all others of the client's, if there is one.
        default: the client's value where nobody sets it.
        transacted: whether it says something of transacted sessions as well.
    """

    key: str
    values: Mapping[Any, object] | None
    default: Any = dataclasses.field(kw_only=True)
    anything: object = None
    transacted: bool = True

    def told(self, value: Any) -> object:
        """Return the value in the tables, ``None`` if there is none."""
        return value if self.values is None else self.values.get(value, self.anything)


@dataclasses.dataclass(frozen=True, slots=True)
class Driven:
    """A client with a broker.

    Attributes:
        client, broker: their names.
        protocol: that of the port where the client is served.
        profile: of the tables, by which its histories are judged.
        modes: how the client does each acknowledgement mode, for people.
        consumptions: ``receive`` for messages that are fetched; ``listener``.
        outcomes: what ``settle`` can state.
        asynchronous: whether sends can be answered later.
        open: the settings that ``open`` needs with this broker.
        names: settings that may be added to these.
        config: settings of the tables that this client has, whatever else is set.
        of_mode: those that it has in one mode alone.
    """

    client: str
    broker: str
    protocol: str
    profile: str
    modes: Mapping[AckMode, str]
    consumptions: tuple[Consumption, ...]
    outcomes: tuple[Outcome, ...]
    asynchronous: bool = False
    open: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    names: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    config: Mapping[str, object] = dataclasses.field(default_factory=dict)
    of_mode: Mapping[AckMode, Mapping[str, object]] = dataclasses.field(default_factory=dict)

    def header(
        self, ack_mode: AckMode, consumption: Consumption, settings: Mapping[str, Any] = _NOTHING
    ) -> Mapping[str, object]:
        """Return the ``config`` of a history in which the client had these ``settings``.

        Raises:
            InputError: the client has not this mode, or there is no such setting, or no such value of it.
        """
        if ack_mode not in self.modes or consumption not in self.consumptions:
            legal = ", ".join(self.modes)
            raise InputError(f"{self.client} has no {ack_mode} by {consumption} with {self.broker}; it has {legal}")
        given = {**self.open, **settings}
        told = {"profile": self.profile, "ack_mode": ack_mode, "consumption": consumption, **self.config}
        for name, setting in self.names.items():
            value = setting.told(given.get(name, setting.default))
            if value is None:
                raise InputError(
                    f"{self.client} has no {name}={given[name]}; it is one of {list(setting.values or ())}"
                )
            if setting.transacted or ack_mode is not AckMode.SESSION_TRANSACTED:
                told[setting.key] = value
        return told | dict(self.of_mode.get(ack_mode, {}))


_INDIVIDUAL, _CLIENT, _TRANSACTED = (
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.SESSION_TRANSACTED,
)
_BOTH: Final = (Consumption.RECEIVE, Consumption.LISTENER)
_UP_TO: Final = MappingProxyType({_CLIENT: {"client_ack_scope": "up_to"}})

_PIKA: Final = {
    _INDIVIDUAL: "basic.ack of each delivery",
    _CLIENT: "basic.ack with multiple",
    AckMode.NO_ACKNOWLEDGE: "basic.consume with no-ack",
    _TRANSACTED: "tx.select; a commit acknowledges before it what was received",
}
_PIKA_NAMES: Final = {
    "confirms": Setting("send_mode", {True: "blocking", False: "unconfirmed"}, default=True, transacted=False),
    "prefetch_count": Setting("prefetch", None, default=0),
}
_PROTON_NAMES: Final = {
    "presettled": Setting("send_mode", {False: "blocking", True: "unconfirmed"}, default=False),
    # A number is topped up as the library is sent messages, and not as the application takes them: that is no bound.
    "credit": Setting("prefetch", {None: 1}, default=None, anything=0),
}
_FREED: Final = {"prefetch_freed": "on_delivery"}
_ACCEPTS: Final = {_INDIVIDUAL: "accepted, settled first"}
_AMQP_OUTCOMES: Final = (Outcome.RELEASED, Outcome.MODIFIED, Outcome.UNDELIVERABLE, Outcome.REJECTED)
_STOMP: Final = {
    _INDIVIDUAL: "ack:client-individual",
    _CLIENT: "ack:client",
    _TRANSACTED: "BEGIN; a commit acknowledges before it, in the transaction, what was received",
}
_RECEIPTS: Final = {"ack_receipts": Setting("block_on_acknowledge", {False: False, True: True}, default=False)}

DRIVEN: Final = (
    Driven(
        "pika",
        "rabbitmq",
        "amqp",
        "rabbitmq",
        _PIKA,
        _BOTH,
        (Outcome.RELEASED, Outcome.MODIFIED, Outcome.REJECTED),
        names=_PIKA_NAMES,
    ),
    Driven(
        "proton",
        "rabbitmq",
        "amqp1",
        "rabbitmq",
        {**_ACCEPTS, AckMode.NO_ACKNOWLEDGE: "snd-settle-mode settled"},
        (Consumption.RECEIVE,),
        (Outcome.RELEASED, Outcome.REJECTED),
        open={"queue": "/amq/queue/{}", "topic": "/topic/{}", "capabilities": False, "redelivered": "first_acquirer"},
        names=_PROTON_NAMES,
        config=_FREED,
    ),
    Driven(
        "proton",
        "artemis",
        "amqp1",
        "artemis",
        {**_ACCEPTS, AckMode.PRE_ACKNOWLEDGE: "snd-settle-mode settled"},
        (Consumption.RECEIVE,),
        _AMQP_OUTCOMES,
        names=_PROTON_NAMES,
        config={"outcomes": "undeliverable", **_FREED},
    ),
    Driven(
        "proton",
        "broker-j",
        "amqp1",
        "qpid-jms",
        {**_ACCEPTS, AckMode.NO_ACKNOWLEDGE: "snd-settle-mode settled"},
        (Consumption.RECEIVE,),
        _AMQP_OUTCOMES,
        names=_PROTON_NAMES,
        config={"resend_in_doubt": False, **_FREED},
    ),
    Driven(
        "stomp",
        "rabbitmq",
        "stomp",
        "rabbitmq",
        {**_STOMP, AckMode.NO_ACKNOWLEDGE: "ack:auto"},
        _BOTH,
        (Outcome.RELEASED, Outcome.REJECTED),
        asynchronous=True,
        open={"queue": "/amq/queue/{}"},
        config={"send_mode": "blocking"},
    ),
    Driven(
        "stomp",
        "artemis",
        "stomp",
        "artemis",
        {**_STOMP, AckMode.PRE_ACKNOWLEDGE: "ack:auto"},
        _BOTH,
        (Outcome.REJECTED,),
        asynchronous=True,
        open={
            "queue": "{}",
            "send": {"destination-type": "ANYCAST"},
            "subscribe": {"subscription-type": "ANYCAST"},
            "nack": {"rejected": {}},
        },
        names=_RECEIPTS,
        config={"send_mode": "blocking", "outcomes": "rejected"},
        of_mode=_UP_TO,
    ),
    Driven(
        "stomp",
        "activemq",
        "stomp",
        "activemq",
        _STOMP,
        _BOTH,
        (Outcome.REJECTED,),
        asynchronous=True,
        open={"nack": {"rejected": {}}},
        names=_RECEIPTS,
        config={"send_mode": "blocking", "outcomes": "rejected"},
        of_mode=_UP_TO,
    ),
)


def driven(client: str, broker: str) -> Driven:
    """Return what ``client`` can drive with ``broker``; raises :class:`InputError` if they do not go together."""
    for each in DRIVEN:
        if (each.client, each.broker) == (client, broker):
            return each
    pairs = ", ".join(f"{each.client} with {each.broker}" for each in DRIVEN)
    raise InputError(f"{client} is not driven with {broker}; there are {pairs}")
