"""Artemis, of Maven Central: its core protocol, AMQP 1.0, OpenWire and STOMP at one port."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final
from xml.sax.saxutils import escape

from ackfsm.driving.live import java
from ackfsm.driving.live.brokers.broker import DURABLE, SHARED, Broker, LiveBroker, program

__all__ = ["JARS", "Artemis", "OfArtemis"]

JARS: Final = "org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin"
"""The broker, its own client, and Qpid JMS."""
_DEAD_LETTERS: Final = "dead-letter-address"
_OF_ADDRESSES: Final = ("max-delivery-attempts", "redelivery-delay", _DEAD_LETTERS)
_OF_THE_SERVER: Final = (
    "journal-sync-transactional",
    "journal-sync-non-transactional",
    "persist-delivery-count-before-delivery",
    "id-cache-size",
    "journal-buffer-timeout",
    "journal-file-size",
    "journal-type",
)
_DEFAULTS: Final = {"journal-type": "NIO", "journal-file-size": "10M", _DEAD_LETTERS: "DLQ"}
"""With an empty address of dead letters there is none."""


class OfArtemis(Broker):
    """Artemis, which is configured with its settings; the AMQP protocol and STOMP mark less than its own protocol."""

    name = "artemis"
    profile = "artemis"
    SETTINGS = (*_OF_THE_SERVER, *_OF_ADDRESSES)
    PORTS = ("core amqp1 openwire stomp",)
    SEEN = MappingProxyType({each: {"ended_consumer_marks_redelivered": False} for each in ("amqp1", "stomp")})


class Artemis(OfArtemis, LiveBroker):
    """With its journal in files of Java NIO, embedded in a program of ours.

    A subscription has the same name in the core protocol and in AMQP.
    """

    KINDS = MappingProxyType({"": {}, DURABLE: {}, SHARED: {}})

    @property
    def dead_letters(self) -> str:
        """The queue at the address of that name."""
        return self.vendor_settings.get(_DEAD_LETTERS) or _DEFAULTS[_DEAD_LETTERS]

    @classmethod
    def lacks(cls) -> str:
        """What is missing on this machine to start the broker, and how that is had; empty if nothing is."""
        return java.lacks(JARS)

    @property
    def version(self) -> str:
        """The vendor's."""
        return JARS.split(":")[2]

    def _command(self) -> Sequence[str]:
        classes = java.compiled([program("Asked.java"), program("ArtemisServer.java")], f"{java.jars(JARS)}/*")
        configuration = self.folder / "broker.xml"
        configuration.write_text(self._configuration(), encoding="utf-8")
        logging = self.folder / "log4j2.properties"
        logging.write_text(_LOGGING, encoding="utf-8")
        options = [*self._jvm, f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", classes]
        return ["java", *options, "ArtemisServer", str(configuration), str(self._more_ports[0])]

    def _configuration(self) -> str:
        folder = escape(str(self.folder))
        return f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>live</name>
 <persistence-enabled>true</persistence-enabled><security-enabled>false</security-enabled>
 <amqp-use-core-subscription-naming>true</amqp-use-core-subscription-naming>
 <jmx-management-enabled>false</jmx-management-enabled><journal-pool-files>10</journal-pool-files>
 {self._elements(_OF_THE_SERVER)}
 <journal-directory>{folder}/journal</journal-directory><bindings-directory>{folder}/bindings</bindings-directory>
 <large-messages-directory>{folder}/large</large-messages-directory><paging-directory>{folder}/paging</paging-directory>
 <acceptors><acceptor name="all">tcp://127.0.0.1:{self.ports["core"]}?protocols=CORE,AMQP,OPENWIRE,STOMP</acceptor></acceptors>
 <address-settings><address-setting match="#">
  {self._elements(_OF_ADDRESSES)}
  <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
 </address-setting></address-settings>
</core></configuration>
"""

    def _elements(self, names: Sequence[str]) -> str:
        words = {**_DEFAULTS, **self.vendor_settings}
        return "".join(f"<{name}>{escape(words[name])}</{name}>" for name in names if words.get(name))


_LOGGING: Final = """appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""
