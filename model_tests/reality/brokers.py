"""The brokers that are measured, each started in a fresh folder, with durable queues that come and go."""

from __future__ import annotations

import base64
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import pika

from model_tests.reality.processes import Jvm, begun, jvm
from model_tests.support.maven import BROKER_J, jars_of
from model_tests.support.recorder.jms import broker_xml
from model_tests.support.recorder.rabbitmq import RabbitMq, free_ports, rabbitmq, until

__all__ = ["Broker", "artemis", "broker_j", "rabbit"]

_VIRTUAL_HOST: Final = "default/default"


class Broker(Protocol):
    """A broker that runs, and listens at ``port``."""

    @property
    def port(self) -> int:
        """Where it serves clients."""

    @property
    def version(self) -> str:
        """Its name and version."""

    def create(self, queue: str) -> None:
        """Make a durable queue."""

    def remove(self, queue: str) -> None:
        """Remove a queue with its messages."""


class _Rabbit:
    def __init__(self, broker: RabbitMq) -> None:
        self.port = broker.port
        self._connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, heartbeat=0))
        self._channel = self._connection.channel()
        impl: Any = self._connection
        self.version = f"RabbitMQ {impl._impl.server_properties['version']}"  # noqa: SLF001

    def create(self, queue: str) -> None:
        self._channel.queue_declare(queue, durable=True)

    def remove(self, queue: str) -> None:
        self._channel.queue_delete(queue)


@contextlib.contextmanager
def rabbit() -> Iterator[Broker]:
    """RabbitMQ with classic queues."""
    with rabbitmq() as broker:
        yield _Rabbit(broker)


class _Artemis:
    def __init__(self, port: int, process: Jvm, version: str) -> None:
        self.port, self._process, self.version = port, process, version

    def create(self, queue: str) -> None:
        self._process.ask(f"create {queue}")

    def remove(self, queue: str) -> None:
        self._process.ask(f"remove {queue}")


@contextlib.contextmanager
def artemis(jars: Path, folder: Path, sync_time: float) -> Iterator[Broker]:
    """Artemis with its journal in files of Java NIO, from ``jars``, with its data in ``folder``.

    It syncs by a timer, every 3.3 ms by default.  As ``artemis create`` does, the timer is set to the time of a sync.
    """
    (port,) = free_ports(1)
    settings = {"journal-file-size": "10M", "journal-buffer-timeout": int(sync_time * 1e9)}
    configuration = broker_xml(folder, port, [], protocols="CORE,AMQP", more=settings)
    with jvm(jars, folder, Path(__file__).parent / "java" / "ArtemisServer.java", str(configuration)) as process:
        process.answer()
        yield _Artemis(port, process, f"Artemis {jars.name.rpartition('-')[2]}")


class _BrokerJ:
    def __init__(self, port: int, management: int, version: str) -> None:
        self.port, self._management, self.version = port, management, version

    def create(self, queue: str) -> None:
        self._request("PUT", f"queue/{_VIRTUAL_HOST}/{queue}", {"durable": True})

    def remove(self, queue: str) -> None:
        self._request("DELETE", f"queue/{_VIRTUAL_HOST}/{queue}")

    def serves(self) -> bool:
        """Whether the virtual host is active, which it is some time after the port listens."""
        try:
            return bool(self._request("GET", f"virtualhost/{_VIRTUAL_HOST}")["state"] == "ACTIVE")
        except (OSError, urllib.error.URLError, KeyError):
            return False

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._management}/api/latest/{path}",
            json.dumps(body).encode() if body is not None else None,
            {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(), "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
            text = answer.read()
        found = json.loads(text) if text else {}
        return dict(found[0] if isinstance(found, list) else found or {})


@contextlib.contextmanager
def broker_j(cache: Path, folder: Path) -> Iterator[Broker]:
    """Broker-J with the store of Apache Derby; its jars are kept in ``cache``, its data in ``folder``."""
    jars = jars_of(BROKER_J, cache)
    port, management = free_ports(2)
    configuration = folder / "broker.json"
    configuration.write_text(json.dumps(_broker_j_configuration(port, management)), encoding="utf-8")
    command = [f"-Dderby.stream.error.file={folder}/derby.log", "-cp", f"{jars}/*", "org.apache.qpid.server.Main"]
    command += ["-prop", f"qpid.work_dir={folder}/work", "-icp", str(configuration)]
    log = folder / "BrokerJ.log"
    with log.open("w") as errors, begun(command, folder, errors, errors) as process:
        broker = _BrokerJ(port, management, f"Broker-J {jars.name.rpartition('-')[2]}")
        until(lambda: broker.serves() or process.poll() is not None, "Broker-J serves")
        assert process.poll() is None, log.read_text()[-2000:]
        yield broker


def _broker_j_configuration(port: int, management: int) -> dict[str, Any]:
    users = [{"name": "guest", "type": "managed", "password": "guest"}]
    rules = [{"name": "Root", "type": "NameAndLevel", "level": "WARN", "loggerName": "ROOT"}]
    listens = {"bindingAddress": "127.0.0.1", "authenticationProvider": "plain"}
    aliases = [{"name": "d", "type": "defaultAlias"}, {"name": "n", "type": "nameAlias"}]
    aliases.append({"name": "h", "type": "hostnameAlias"})
    return {
        "name": "measured",
        "modelVersion": "9.0",
        "authenticationproviders": [{"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": users}],
        "brokerloggers": [{"name": "console", "type": "Console", "brokerloginclusionrules": rules}],
        "ports": [
            {"name": "AMQP", "type": "AMQP", "port": port, "virtualhostaliases": aliases, **listens},
            {"name": "HTTP", "type": "HTTP", "port": management, "protocols": ["HTTP"], **listens},
        ],
        "plugins": [{"type": "MANAGEMENT-HTTP", "name": "httpManagement", "httpBasicAuthenticationEnabled": "true"}],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "JSON",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps({"type": "BDB", "modelVersion": "9.0"}),
            }
        ],
    }
