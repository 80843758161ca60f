"""A run of a worker for JMS, told by a test: one connection with its sessions, and the history that it leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ackfsm.driving.live.brokers import LiveBroker
from ackfsm.driving.live.clients.client import Client
from ackfsm.driving.live.clients.jms import JmsLibrary

_SOON: Final = 60.0
_DRAINS: Final = 30


class Run:
    """One history of a worker: sessions ``s``, ``s2`` ... of one connection, and one queue of its own."""

    def __init__(  # noqa: PLR0913 - who speaks with whom, and how
        self,
        client: Client,
        library: JmsLibrary,
        broker: LiveBroker,
        file: Path,
        *,
        settings: Mapping[str, str],
        config: Mapping[str, Any],
    ) -> None:
        self.client, self.broker, self.file, self.queue = client, broker, file, file.stem
        broker.declare(self.queue)
        header = {"config": library.profile_settings(settings, config)}
        place = {"host": "127.0.0.1", "port": broker.ports[library.protocol]}
        self.do("open", None, **place, process="c1", history=str(file), header=header, settings=settings)

    def session(self, mode: str, name: str = "s", *, listener: bool | None = None) -> None:
        """A session, with a consumer of its name unless ``listener`` is None."""
        self.do("session", name, ack_mode=mode)
        if listener is not None:
            self.consumer(name, listener=listener)

    def consumer(self, name: str = "s", **fields: object) -> None:
        """A consumer of the session of that name, with the same name."""
        self.do("consumer", name, consumer=name, destination=self.queue, **fields)

    def send(self, *messages: str, name: str = "s", **fields: object) -> list[str]:
        """Send messages; their outcomes."""
        answers = [
            self.client.ask("send", session=name, destination=self.queue, message=f"{self.queue}-{each}", **fields)
            for each in messages
        ]
        return [each.result(_SOON)["outcome"] for each in answers]

    def receive(self, name: str = "s", timeout: float = 10, op: str = "receive") -> str | None:
        """The next message of the consumer: ``m1``, ``m1 redelivered 2`` with its count, or None."""
        answer = self.client.call(op, within=_SOON, session=name, consumer=name, timeout=timeout)
        return None if answer["message"] is None else _word(answer)

    def listened(self, name: str = "s", timeout: float = 10) -> str | None:
        """The next message with which the listener is called, as for ``receive``."""
        return self.receive(name, timeout, "listened")

    def done(self, message: str, name: str = "s", *, failed: bool = False) -> None:
        """Let the listener return, or throw."""
        self.do("done", name, consumer=name, message=f"{self.queue}-{message}", failed=failed)

    def acknowledge(self, message: str, name: str = "s") -> str:
        """Acknowledge a message; the outcome."""
        return str(self.do("acknowledge", name, message=f"{self.queue}-{message}"))

    def do(self, op: str, name: str | None = "s", **fields: object) -> str | None:
        """Another command, of a session; its outcome, if it has one."""
        return self.client.call(op, within=_SOON, session=name, **fields).get("outcome")

    def write(self, event: str, process: str = "nemesis", **fields: object) -> None:
        """A line of somebody else's."""
        line = {"t": time.monotonic_ns(), "process": process, "event": event, **fields}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")

    def drained(self) -> None:
        """Wait until the broker says that the queue is empty, and tell it."""
        end = time.monotonic() + _DRAINS
        while (depth := self.broker.depth(self.queue)).ready + depth.unacknowledged:
            assert time.monotonic() < end, depth
            time.sleep(0.1)
        self.write("drained", "broker", queue=self.queue)

    def end(self) -> None:
        """Close the session and, once the queue is empty, the connection."""
        self.do("close")
        self.drained()
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.do("close", None)


def _word(answer: Mapping[str, Any]) -> str:
    name = str(answer["message"]).rpartition("-")[2]
    count = answer["delivery_count"]
    flag = " redelivered" if answer["redelivered"] else ""
    return f"{name}{flag}" + (f" {count}" if count not in (None, 1) or (flag and count) else "")
