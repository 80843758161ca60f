"""Clients of JMS: what each of four libraries is called, how it is told where to connect, and what it can do.

All are driven by one program in Java, ``java/Worker.java``, which is told the library as a JSON object.  Their vendor's
settings are those of a URL; names of the tables (``spec/profiles``) say what these are in the model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ackfsm import tables
from ackfsm.driving.live import java
from ackfsm.driving.live.brokers import DURABLE, SHARED
from ackfsm.terms import AckMode, Profile

__all__ = ["LIBRARIES", "JmsLibrary"]

_ARTEMIS: Final = "org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin"
"""Both its own client and Qpid JMS are in it, and JMS 2.0."""
_JMS: Final = "jakarta.jms:jakarta.jms-api:2.0.3"
"""The interfaces, in javax.jms; libraries of JMS 1.1 lack the methods of 2.0."""
_STANDARD: Final = MappingProxyType(
    {
        AckMode.SESSION_TRANSACTED: 0,
        AckMode.AUTO_ACKNOWLEDGE: 1,
        AckMode.CLIENT_ACKNOWLEDGE: 2,
        AckMode.DUPS_OK_ACKNOWLEDGE: 3,
    }
)
_JVM: Final = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-Xrs", "-Dlog4j2.level=OFF")
"""Small, and deaf to signals that are meant for its parent."""
_HERE: Final = Path(__file__).parent / "java"
_RECORDER: Final = "RecordingConnectionFactory.java"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JmsLibrary:
    """A library of JMS as the worker drives it.

    Attributes:
        name: of the client, for people and in commands.
        protocol: the key of the broker's port.
        profile: of ``spec/profiles``, whose names of the vendor are the settings.
        library: the vendor's name of it.
        jars: what its class path is made of: coordinates of Maven Central, or folders.
        factory: the class of its ConnectionFactory.
        url: how it is told where to connect; ``{NAME}`` is the host, the port, the process or a setting, ``{settings}``
            all others.
        failover: the same where a setting begins with ``failover.``: the library then connects again by itself.
        failover_prefix: what the vendor has in the place of that word.
        setting: how a setting is written, by ``printf``.
        separator: what stands between two settings.
        settings: those that it has unless told otherwise.
        login: those that are user and password.
        modes: its numbers of acknowledgement modes.
        waits: for each call the setting that says whether it waits for the broker, its default, and the values that do.
        asynchronous: whether it has a CompletionListener.
        subscriptions: the kinds of subscriptions to topics that it has.
        outcomes: its numbers of the outcomes that ``settle`` may say.
        queue: how a queue is named, with ``{}`` for its name.
        properties: of the JVM.
    """

    name: str
    protocol: str
    profile: str
    library: str
    jars: Sequence[str | Path]
    factory: str
    url: str
    failover: str
    failover_prefix: str = "failover."
    setting: str = "%s=%s"
    separator: str = "&"
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    login: Sequence[str] = ()
    modes: Mapping[AckMode, int]
    waits: Mapping[str, Sequence[str]]
    asynchronous: bool = True
    subscriptions: Sequence[str] = (DURABLE, SHARED)
    outcomes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    queue: str = "{}"
    properties: Sequence[str] = ()

    def lacks(self) -> str:
        """What is missing on this machine to run it, and how that is had; empty if nothing is but a download."""
        for folder in self.jars:
            if isinstance(folder, Path) and not folder.is_dir():
                return f"there is no {folder}; install it with: apt-get install libactivemq-java"
        return java.lacks(*(each for each in self.jars if isinstance(each, str)))

    def command(self) -> list[str]:
        """Fetch and compile what is not kept yet; the command that starts a worker."""
        path = [f"{each if isinstance(each, Path) else java.jars(each)}/*" for each in self.jars]
        classes = java.compiled([_recorder(), *sorted(_HERE.glob("[!R]*.java"))], *path)
        told = {key: value for key, value in dataclasses.asdict(self).items() if key not in _PYTHON_ONLY}
        return ["java", *_JVM, *self.properties, "-cp", classes, "Worker", json.dumps(told)]

    def settable(self) -> tuple[str, ...]:
        """The names of settings that may be set: those that it has anyway, and what the tables have of its URL."""
        urls = (alias.url for alias in tables.load().profiles[Profile(self.profile)].names.values())
        return tuple(dict.fromkeys((*self.settings, *filter(None, urls))))

    def profile_settings(self, settings: Mapping[str, str], others: Mapping[str, object]) -> dict[str, Any]:
        """The settings of the profile that the vendor's ``settings`` and defaults are, with the ``others`` of the run.

        What the tables have no word for is left out.
        """
        specification = tables.load()
        table = specification.profiles[specification.profile_of(self.profile)]
        all_settings = {**self.settings, **settings}
        named = {alias.name: word for name, word in all_settings.items() if (alias := table.url_alias(name))}
        given = specification.given(self.profile, {**named, **others})
        values = table.settings(given)
        return {key: values[key] for key in given}


_PYTHON_ONLY: Final = {"name", "protocol", "profile", "jars", "login", "subscriptions", "properties"}


def _recorder() -> Path:
    """The class that users copy: beside the worker in an installation, among the documents of a checkout."""
    installed = _HERE / _RECORDER
    return installed if installed.exists() else _HERE.parents[4] / "docs" / "java" / _RECORDER


LIBRARIES: Final[Mapping[str, JmsLibrary]] = MappingProxyType(
    {
        each.name: each
        for each in (
            JmsLibrary(
                name="artemis",
                protocol="core",
                profile="artemis",
                library="artemis-jms-client",
                jars=[_ARTEMIS],
                factory="org.apache.activemq.artemis.jms.client.ActiveMQJMSConnectionFactory",
                url="tcp://{host}:{port}?{settings}",
                failover="tcp://{host}:{port}?{settings}",
                failover_prefix="",  # it reconnects by reconnectAttempts, which may be said either way
                settings={"reconnectAttempts": "0", "callTimeout": "8000"},
                login=("user", "password"),
                modes={**_STANDARD, AckMode.PRE_ACKNOWLEDGE: 100, AckMode.INDIVIDUAL_ACKNOWLEDGE: 101},
                waits={
                    "PERSISTENT": ["blockOnDurableSend", "true", "true"],
                    "NON_PERSISTENT": ["blockOnNonDurableSend", "false", "true"],
                    "acknowledge": ["blockOnAcknowledge", "false", "true"],
                },
            ),
            JmsLibrary(
                name="qpid-jms",
                protocol="amqp1",
                profile="qpid-jms",
                library="qpid-jms-client",
                jars=[_ARTEMIS],
                factory="org.apache.qpid.jms.JmsConnectionFactory",
                url="amqp://{host}:{port}?{settings}",
                failover="failover:(amqp://{host}:{port}?amqp.saslMechanisms={amqp.saslMechanisms})?{settings}",
                settings={
                    "amqp.saslMechanisms": "PLAIN",
                    "jms.username": "guest",
                    "jms.password": "guest",
                    "jms.requestTimeout": "8000",
                    "jms.sendTimeout": "8000",
                    "jms.closeTimeout": "1000",
                },
                login=("jms.username", "jms.password"),
                modes={
                    **_STANDARD,
                    AckMode.PRE_ACKNOWLEDGE: 100,
                    AckMode.INDIVIDUAL_ACKNOWLEDGE: 101,
                    AckMode.NO_ACKNOWLEDGE: 257,
                },
                waits={
                    "PERSISTENT": ["jms.forceAsyncSend", "false", "false"],
                    "NON_PERSISTENT": ["jms.forceSyncSend", "false", "true"],
                },
                outcomes={"rejected": 2, "released": 3, "modified": 4, "undeliverable": 5},
            ),
            JmsLibrary(
                name="qpid",
                protocol="amqp",
                profile="qpid",
                library="qpid-client",
                jars=[
                    _JMS,
                    "org.apache.qpid:qpid-client:6.4.0",
                    "org.slf4j:slf4j-api:1.7.36",
                    "org.slf4j:slf4j-nop:1.7.36",
                ],
                factory="org.apache.qpid.client.AMQConnectionFactory",
                url="amqp://guest:guest@{clientID}/{virtualHost}?brokerlist='tcp://{host}:{port}'&failover='nofailover'&{settings}",
                failover=(
                    "amqp://guest:guest@{clientID}/{virtualHost}?brokerlist='tcp://{host}:{port}"
                    "?connectdelay='{failover.connectdelay}'&retries='{failover.retries}''"
                    "&failover='singlebroker'&{settings}"
                ),
                setting="%s='%s'",
                settings={
                    "clientID": "",
                    "virtualHost": "default",
                    "sync_publish": "all",
                    "failover.connectdelay": "100",
                    "failover.retries": "1000",
                },
                modes={**_STANDARD, AckMode.NO_ACKNOWLEDGE: 257, AckMode.PRE_ACKNOWLEDGE: 258},
                waits={
                    "PERSISTENT": ["sync_publish", "all", "all", "persistent"],
                    "NON_PERSISTENT": ["sync_publish", "all", "all"],
                    "acknowledge": ["sync_client_ack", "true", "true"],
                },
                asynchronous=False,  # it is of JMS 1.1
                subscriptions=(),
                queue="BURL:direct:////{}?durable='true'",
            ),
            JmsLibrary(
                name="activemq",
                protocol="openwire",
                profile="activemq",
                library="activemq-client",
                jars=[_JMS, Path("/usr/share/activemq/lib")],
                factory="org.apache.activemq.ActiveMQConnectionFactory",
                url="tcp://{host}:{port}?{settings}",
                failover="failover:(tcp://{host}:{port})?{settings}",
                failover_prefix="",
                modes={**_STANDARD, AckMode.INDIVIDUAL_ACKNOWLEDGE: 4},
                waits={
                    "PERSISTENT": ["jms.useAsyncSend", "false", "false"],
                    "NON_PERSISTENT": ["jms.alwaysSyncSend", "false", "true"],
                    "acknowledge": ["jms.sendAcksAsync", "true", "false"],
                },
                asynchronous=False,  # its versions of javax.jms have but parts of JMS 2.0
                subscriptions=(DURABLE,),
            ),
        )
    }
)
