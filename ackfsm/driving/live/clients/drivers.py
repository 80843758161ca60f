"""Every client with every broker that serves its protocol: how its process is started, and what is judged."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import yaml

from ackfsm.driving.live.brokers import SHARED, SUBSCRIPTIONS, Address, Subscription
from ackfsm.driving.live.clients.client import python_worker
from ackfsm.driving.live.clients.jms import LIBRARIES, JmsLibrary
from ackfsm.driving.live.clients.modes import Driven, all_driven
from ackfsm.driving.live.nemeses import FAULTS, NEMESES, Nemesis
from ackfsm.terms import AckMode, Consumption, InputError, SendMode

__all__ = ["Driver", "drivers"]

_JMS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "activemq": ("activemq",),
        "artemis": ("artemis", "qpid-jms"),
        "broker-j": ("qpid-jms", "qpid"),
    }
)
"""The libraries of JMS that a broker is driven with."""
_DEFAULT: Final = "/"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A client with a broker.

    Attributes:
        client: its name.
        protocol: of the broker's port.
        profile: of the tables, by which its runs are judged.
        modes: those that the client has.
        consumptions: those that it has.
        outcomes: that an application may state beside its acknowledgement.
        recovers: whether its sessions recover.
        cancels: whether a session goes on when its consumer is closed.
        settings: by the vendor's names, with which a connection is opened.
        login: the names of those that are user, password and, where it has it, virtual host.
        settable: the names of those that somebody may set.
        asynchronous: whether it waits for the outcome of no send before the next one.
        configured: the settings of the tables for a mode.
        topics: the kinds of subscriptions that it has, each with the settings more with which a connection is opened.
        subscribes: whether its consumers subscribe to a topic, and do not consume of the queue that is bound to it.
        lacks: what is missing on this machine to run it, and how that is had; empty if nothing is.
        command: what starts its process.
        nemesis: who strikes while it is driven.
        subscription: to which its consumers subscribe, ``None`` if there is a queue that they consume of.
        written: how a setting is written that has any letters.
    """

    client: str
    protocol: str
    profile: str
    modes: Sequence[AckMode]
    consumptions: Sequence[Consumption]
    outcomes: Collection[str]
    recovers: bool
    cancels: bool
    settings: Mapping[str, Any]
    login: Sequence[str]
    settable: Sequence[str]
    asynchronous: bool
    configured: Callable[[AckMode, Consumption], Mapping[str, Any]]
    topics: Mapping[str, Mapping[str, Any]]
    subscribes: bool
    lacks: Callable[[], str]
    command: Callable[[], Sequence[str]]
    nemesis: Nemesis = FAULTS
    subscription: Subscription | None = None
    written: Callable[[str], str] = str

    def under(self, nemesis: str) -> Driver:
        """The same client under another nemesis, after which it is named."""
        return dataclasses.replace(self, client=f"{self.client}-{nemesis}", nemesis=NEMESES[nemesis])

    def has(self, kind: str) -> bool:
        """Whether it is driven on a queue of a kind; every queue is, but not every subscription."""
        return kind not in SUBSCRIPTIONS or kind in self.topics

    def on(self, kind: str, *, load: bool = False) -> Driver:
        """The same client, driven on a queue of a kind, or on a topic with a subscription; which it may lack."""
        if not self.has(kind):
            return dataclasses.replace(self, lacks=lambda: f"{self.client} is not driven with a {kind}")
        if kind not in SUBSCRIPTIONS:
            return self
        if load and not SUBSCRIPTIONS[kind].shared:
            why = f"a load has several consumers, and a {kind} one at a time; say --queue {SHARED}, or leave out --rate"
            return dataclasses.replace(self, lacks=lambda: why)
        settings, subscription = {**self.settings, **self.topics[kind]}, SUBSCRIPTIONS[kind]
        return dataclasses.replace(self, settings=settings, subscription=subscription if self.subscribes else None)

    def sending(self, queue: str) -> Mapping[str, Any]:
        """The fields of a ``send`` to a queue, or to the topic of that name."""
        return {"destination": queue, **({} if self.subscription is None else {"topic": True})}

    def consuming(self, queue: str) -> Mapping[str, Any]:
        """The fields of a ``consumer`` of a queue, or of the subscription of that name."""
        if self.subscription is None:
            return {"destination": queue}
        return {"destination": queue, "topic": True, "subscription": queue, "shared": self.subscription.shared}

    @property
    def alone(self) -> bool:
        """Whether one consumer at a time has the subscription."""
        return self.subscription is not None and not self.subscription.shared

    def client_id(self, queue: str) -> str | None:
        """How the connection of a consumer is named that has the subscription for itself."""
        return queue if self.alone else None

    def at(self, address: Address, protocols: Collection[str]) -> Driver:
        """The same client, connecting as whom ``address`` says, where these ``protocols`` are served."""
        told = (address.user, address.password, address.virtual_host)
        login = {name: self.written(word) for name, word in zip(self.login, told, strict=False)}
        why = ""
        if self.protocol not in protocols:
            why = f"it speaks {self.protocol}, which is served at another port"
        elif len(self.login) < len(told) and address.virtual_host != _DEFAULT:
            why = f"it reaches no virtual host but {_DEFAULT}"
        lacks = (lambda: why) if why else self.lacks
        return dataclasses.replace(self, settings={**self.settings, **login}, lacks=lacks)


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def drivers(broker: str, settings: Mapping[str, str] = _NOTHING, *, asynchronous: bool = False) -> Iterator[Driver]:
    """Yield the clients of a broker, each with those of the ``settings`` that it has.

    If ``asynchronous``, they do not wait for the outcome of a send; those that cannot lack that.
    """
    for name in _JMS.get(broker, ()):
        yield _of_jms(LIBRARIES[name], settings, asynchronous=asynchronous)
    for driven in all_driven():
        if driven.broker == broker:
            yield _of_python(driven, settings, asynchronous=asynchronous)


def _of_jms(library: JmsLibrary, given: Mapping[str, str], *, asynchronous: bool) -> Driver:
    settings = {**library.settings, **{name: given[name] for name in library.settable() if name in given}}

    def configured(ack_mode: AckMode, consumption: Consumption) -> Mapping[str, Any]:
        mode = {"ack_mode": ack_mode.value, "consumption": consumption.value}
        return _without_mode({**library.profile_settings(settings, mode), **_sent(ack_mode, asynchronous=asynchronous)})

    return Driver(
        client=library.name,
        protocol=library.protocol,
        profile=library.profile,
        modes=tuple(library.modes),
        consumptions=tuple(Consumption),
        outcomes=library.outcomes.keys(),
        recovers=True,
        cancels=True,
        settings=settings,
        login=library.login,
        settable=library.settable(),
        asynchronous=asynchronous,
        configured=configured,
        topics={kind: {} for kind in library.subscriptions},
        subscribes=True,
        lacks=lambda: _waits(library.name, asynchronous and not library.asynchronous) or library.lacks(),
        command=library.command,
        written=functools.partial(quote, safe=""),
    )


def _of_python(driven: Driven, given: Mapping[str, str], *, asynchronous: bool) -> Driver:
    settings = {name: yaml.safe_load(given[name]) for name in driven.names if name in given}

    def configured(ack_mode: AckMode, consumption: Consumption) -> Mapping[str, Any]:
        header = driven.header(ack_mode, consumption, settings)
        return _without_mode({**header, **_sent(ack_mode, asynchronous=asynchronous)})

    return Driver(
        client=driven.client,
        protocol=driven.protocol,
        profile=driven.profile,
        modes=tuple(map(AckMode, driven.modes)),
        consumptions=tuple(map(Consumption, driven.consumptions)),
        outcomes=driven.outcomes,
        recovers=False,
        cancels=driven.cancels,
        settings={**driven.open, **settings},
        login=driven.login,
        settable=tuple(driven.names),
        asynchronous=asynchronous,
        configured=configured,
        topics=driven.topics,
        subscribes=False,
        lacks=lambda: _waits(driven.client, asynchronous and not driven.asynchronous) or _lack(driven.client),
        command=lambda: python_worker(driven.client),
    )


def _sent(ack_mode: AckMode, *, asynchronous: bool) -> Mapping[str, str]:
    """How sends are confirmed, if that is not as the client's settings say."""
    if asynchronous and ack_mode is not AckMode.SESSION_TRANSACTED:
        return {"send_mode": SendMode.ASYNCHRONOUS.value}
    return {}


def _waits(client: str, always: bool) -> str:  # noqa: FBT001 - whether there is anything to say
    return f"{client} waits for the outcome of each send; leave out --window" if always else ""


def _without_mode(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in settings.items() if name not in {"profile", "ack_mode", "consumption"}}


def _lack(client: str) -> str:
    try:
        python_worker(client)
    except InputError as error:
        return str(error)
    return ""
