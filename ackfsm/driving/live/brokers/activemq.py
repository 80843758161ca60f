"""ActiveMQ Classic, of the system's package: OpenWire and STOMP, over KahaDB."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ackfsm.driving.live import java
from ackfsm.driving.live.brokers.broker import DURABLE, LiveBroker, program

__all__ = ["JARS", "ActiveMq"]

JARS: Final = Path("/usr/share/activemq/lib")
"""The broker and its own client."""
_LOGGER: Final = Path("/usr/share/java/slf4j-simple.jar")
_BROKER: Final = JARS / "activemq-broker.jar"


class ActiveMq(LiveBroker):
    """ActiveMQ Classic, embedded in a program of ours."""

    name = "activemq"
    profile = "activemq"
    KINDS = MappingProxyType({"": {}, DURABLE: {}})
    dead_letters = "ActiveMQ.DLQ"
    SETTINGS = (
        "persistJMSRedelivered",
        "processNonPersistent",
        "journalDiskSyncStrategy",
        "journalDiskSyncInterval",
        "concurrentStoreAndDispatchQueues",
    )
    PORTS = ("openwire", "stomp")

    @classmethod
    def lacks(cls) -> str:
        """What is missing on this machine to start the broker, and how that is had; empty if nothing is."""
        if not _BROKER.exists():
            return "there is no ActiveMQ; install it with: apt-get install activemq"
        return java.lacks()

    @property
    def version(self) -> str:
        """The vendor's."""
        with zipfile.ZipFile(_BROKER) as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode()
        return next(
            line.split(": ")[1] for line in manifest.splitlines() if line.startswith("Implementation-Version: ")
        )

    def _command(self) -> Sequence[str]:
        classes = java.compiled([program("Asked.java"), program("ActiveMqServer.java")], f"{JARS}/*", str(_LOGGER))
        ports = map(str, (*self.ports.values(), *self._more_ports))
        words = [f"{name}={value}" for name, value in self.vendor_settings.items()]
        return ["java", *self._jvm, "-cp", classes, "ActiveMqServer", str(self.folder / "kahadb"), *ports, *words]
