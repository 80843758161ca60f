"""Every client with every broker that serves its protocol: how its process is started, and what is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.driving.live.clients.client import python_worker
from ackfsm.driving.live.clients.jms import LIBRARIES, JmsLibrary
from ackfsm.driving.live.clients.modes import Driven, all_driven
from ackfsm.driving.live.nemeses import FAULTS, NEMESES, Nemesis
from ackfsm.terms import AckMode, Consumption, InputError

__all__ = ["Driver", "drivers"]

_JMS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "activemq": ("activemq",),
        "artemis": ("artemis", "qpid-jms"),
        "broker-j": ("qpid-jms", "qpid"),
    }
)
"""The libraries of JMS that a broker is driven with."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A client with a broker.

    Attributes:
        client: its name.
        protocol: of the broker's port.
        profile: of the tables, by which its runs are judged.
        modes: those that the client has.
        consumptions: those that it has.
        recovers: whether its sessions recover.
        settings: by the vendor's names, with which a connection is opened.
        configured: the settings of the tables for a mode.
        lacks: what is missing on this machine to run it, and how that is had; empty if nothing is.
        command: what starts its process.
        nemesis: who strikes while it is driven.
    """

    client: str
    protocol: str
    profile: str
    modes: Sequence[AckMode]
    consumptions: Sequence[Consumption]
    recovers: bool
    settings: Mapping[str, Any]
    configured: Callable[[AckMode, Consumption], Mapping[str, Any]]
    lacks: Callable[[], str]
    command: Callable[[], Sequence[str]]
    nemesis: Nemesis = FAULTS

    def under(self, nemesis: str) -> Driver:
        """The same client under another nemesis, after which it is named."""
        return dataclasses.replace(self, client=f"{self.client}-{nemesis}", nemesis=NEMESES[nemesis])


def drivers(broker: str) -> Iterator[Driver]:
    """Yield the clients of a broker."""
    for name in _JMS.get(broker, ()):
        yield _of_jms(LIBRARIES[name])
    for driven in all_driven():
        if driven.broker == broker:
            yield _of_python(driven)


def _of_jms(library: JmsLibrary) -> Driver:
    def configured(ack_mode: AckMode, consumption: Consumption) -> Mapping[str, Any]:
        mode = {"ack_mode": ack_mode.value, "consumption": consumption.value}
        return _without_mode(library.profile_settings(library.settings, mode))

    return Driver(
        client=library.name,
        protocol=library.protocol,
        profile=library.profile,
        modes=tuple(library.modes),
        consumptions=tuple(Consumption),
        recovers=True,
        settings=library.settings,
        configured=configured,
        lacks=library.lacks,
        command=library.command,
    )


def _of_python(driven: Driven) -> Driver:
    def configured(ack_mode: AckMode, consumption: Consumption) -> Mapping[str, Any]:
        return _without_mode(driven.header(ack_mode, consumption))

    return Driver(
        client=driven.client,
        protocol=driven.protocol,
        profile=driven.profile,
        modes=tuple(map(AckMode, driven.modes)),
        consumptions=tuple(map(Consumption, driven.consumptions)),
        recovers=False,
        settings=driven.open,
        configured=configured,
        lacks=lambda: _lack(driven.client),
        command=lambda: python_worker(driven.client),
    )


def _without_mode(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in settings.items() if name not in {"profile", "ack_mode", "consumption"}}


def _lack(client: str) -> str:
    try:
        python_worker(client)
    except InputError as error:
        return str(error)
    return ""
