"""A worker for JMS, asked by a test: its process, its commands, and the history that it leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ackfsm.driving.live.brokers import LiveBroker
from ackfsm.driving.live.clients.jms import LIBRARIES

__all__ = ["AskedError", "Run", "WorkerProcess"]

_ANSWERS = 40
_DRAINS = 30


class AskedError(Exception):
    """A worker answered with an error."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"{kind}: {why}")
        self.kind = kind


class WorkerProcess:
    """A JVM that drives one library."""

    def __init__(self, library: str) -> None:
        self.library = LIBRARIES[library]
        command = self.library.command()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            self._answers[answer["id"]].put(answer)

    def tell(self, op: str, **fields: object) -> int:
        """Send a command; its number."""
        number = next(self._numbers)
        self._answers[number] = queue.SimpleQueue()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
        self.process.stdin.flush()
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a command; an error is raised."""
        answer = self._answers[number].get(timeout=_ANSWERS)
        if "error" in answer:
            raise AskedError(answer["error"], answer["why"])
        return answer

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        return self.answer(self.tell(op, **fields))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self._reader.join()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class Run:
    """One history of a worker: sessions ``s``, ``s2`` ... of one connection, and one queue of its own."""

    def __init__(
        self,
        worker: WorkerProcess,
        broker: LiveBroker,
        file: Path,
        settings: Mapping[str, str],
        config: Mapping[str, Any],
    ) -> None:
        self.worker, self.broker, self.file, self.queue = worker, broker, file, file.stem
        broker.declare(self.queue)
        told = worker.library.profile_settings(settings, config)
        header = {"config": told}
        self.ports = broker.ports[worker.library.protocol]
        self.worker.ask(
            "open", host="127.0.0.1", port=self.ports, process="c1", history=str(file), header=header, settings=settings
        )

    def session(self, mode: str, name: str = "s", *, listener: bool | None = None) -> None:
        """A session, with a consumer of its name unless ``listener`` is None."""
        self.worker.ask("session", session=name, ack_mode=mode)
        if listener is not None:
            self.consumer(name, listener=listener)

    def consumer(self, name: str = "s", **fields: object) -> None:
        """A consumer of the session of that name, with the same name."""
        self.worker.ask("consumer", session=name, consumer=name, destination=self.queue, **fields)

    def send(self, *messages: str, name: str = "s", **fields: object) -> list[str]:
        """Send messages; their outcomes."""
        numbers = [
            self.worker.tell("send", session=name, destination=self.queue, message=f"{self.queue}-{each}", **fields)
            for each in messages
        ]
        return [self.worker.answer(each)["outcome"] for each in numbers]

    def receive(self, name: str = "s", timeout: float = 10, op: str = "receive") -> str | None:
        """The next message of the consumer: ``m1``, ``m1 redelivered 2`` with its count, or None."""
        answer = self.worker.ask(op, session=name, consumer=name, timeout=timeout)
        return None if answer["message"] is None else _word(answer)

    def listened(self, name: str = "s", timeout: float = 10) -> str | None:
        """The next message with which the listener is called, as for ``receive``."""
        return self.receive(name, timeout, "listened")

    def done(self, message: str, name: str = "s", *, failed: bool = False) -> None:
        """Let the listener return, or throw."""
        self.worker.ask("done", session=name, consumer=name, message=f"{self.queue}-{message}", failed=failed)

    def acknowledge(self, message: str, name: str = "s") -> str:
        """Acknowledge a message; the outcome."""
        answer = self.worker.ask("acknowledge", session=name, message=f"{self.queue}-{message}")
        return str(answer["outcome"])

    def do(self, op: str, name: str = "s", **fields: object) -> str | None:
        """Another command of a session; its outcome, if it has one."""
        return self.worker.ask(op, session=name, **fields).get("outcome")

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

    def close(self) -> None:
        """Close the connection."""
        self.worker.ask("close")


def _word(answer: Mapping[str, Any]) -> str:
    name = str(answer["message"]).rpartition("-")[2]
    count = answer["delivery_count"]
    flag = " redelivered" if answer["redelivered"] else ""
    return f"{name}{flag}" + (f" {count}" if count not in (None, 1) or (flag and count) else "")
