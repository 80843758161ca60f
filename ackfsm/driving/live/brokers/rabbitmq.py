"""RabbitMQ, of the system's package: classic queues of both versions and quorum queues; AMQP 0-9-1, 1.0 and STOMP."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from ackfsm.driving.live.brokers.broker import SHARED, SUBSCRIPTIONS, Broker, LiveBroker, program

__all__ = ["DEAD_LETTERS", "TOPIC", "OfRabbitMq", "RabbitMq"]

_FOLDER: Final = Path("/usr/lib/rabbitmq")
_SERVER: Final = _FOLDER / "bin" / "rabbitmq-server"
"""Not the command of that name, which changes the user and writes to the system's own log."""
DEAD_LETTERS: Final = "x-dead-letter-exchange"
"""The argument of queues whose dead letters are kept."""
TOPIC: Final = "amq.topic"
"""The exchange to which subscriptions are bound."""


class OfRabbitMq(Broker):
    """RabbitMQ; all settings are arguments of the queues that are declared.

    A subscription is a queue that is bound to ``amq.topic`` by its own name.
    The exchange of dead letters is the default one, whose name is empty.
    """

    name = "rabbitmq"
    profile = "rabbitmq"
    KINDS = MappingProxyType(
        {
            "": {},
            "classic-v1": {"x-queue-type": "classic", "x-queue-version": "1"},
            "classic-v2": {"x-queue-type": "classic", "x-queue-version": "2"},
            "quorum": {"x-queue-type": "quorum"},
            SHARED: {},
        }
    )
    SETTINGS = ("x-queue-type", "x-queue-version", "x-delivery-limit", "x-single-active-consumer", DEAD_LETTERS)
    LIMIT = ("x-delivery-limit", 1)
    PORTS = ("amqp amqp1", "stomp")

    def arguments(self, kind: str, dead_letters: str) -> dict[str, str]:
        """The arguments of a queue, whose dead letters go to ``dead_letters`` if they go anywhere."""
        given = {**self.KINDS[kind], **self.vendor_settings}
        return {**given, "x-dead-letter-routing-key": dead_letters} if DEAD_LETTERS in given else given


class RabbitMq(OfRabbitMq, LiveBroker):
    """The server of the system's package."""

    dead_letters = "DLQ"
    MORE_PORTS: ClassVar[int] = 3

    @classmethod
    def lacks(cls) -> str:
        """What is missing on this machine to start the broker, and how that is had; empty if nothing is."""
        if _SERVER.exists() and shutil.which("epmd"):
            return ""
        return "there is no RabbitMQ; install it with: apt-get install rabbitmq-server"

    @property
    def version(self) -> str:
        """The vendor's."""
        return next(_FOLDER.glob("lib/rabbitmq_server-*")).name.rpartition("-")[2]

    def _command(self) -> Sequence[str]:
        (self.folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0,rabbitmq_stomp].\n", encoding="utf-8")
        stomp = f"stomp.listeners.tcp.1 = 127.0.0.1:{self.ports['stomp']}\n"
        (self.folder / "rabbitmq.conf").write_text(stomp, encoding="utf-8")
        mapper = f"epmd -port {self._more_ports[1]} -address 127.0.0.1"
        return ["/bin/sh", "-c", f'{mapper} & until {mapper} -names >/dev/null; do sleep 0.02; done; exec "{_SERVER}"']

    def _variables(self) -> Mapping[str, str]:
        folder = self.folder
        asked, mapper, distribution = map(str, self._more_ports)
        return {
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "RUNNING_UNDER_SYSTEMD": "true",  # the broker itself leads the group, and no shell that waits for it
            "RABBITMQ_NODENAME": f"live{self.ports['amqp']}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.ports["amqp"]),
            "RABBITMQ_DIST_PORT": distribution,
            "ERL_EPMD_PORT": mapper,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": str(folder / "log" / "broker.log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "feature_flags"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 "
            '-eval {ok,_}=file:script(os:getenv("ACKFSM_ASKED")).',
            "ACKFSM_ASKED": str(program("asked.erl")),
            "ACKFSM_ASKED_PORT": asked,
            **self._environment,
        }

    def _declare(self, queue: str, kind: str) -> None:
        arguments = {} if queue == self.dead_letters else self.arguments(kind, self.dead_letters)
        self._asked(" ".join(["queue", queue, *(f"{name}={value}" for name, value in arguments.items())]))
        if kind in SUBSCRIPTIONS:
            self._asked(f"bind {queue} {TOPIC}")
