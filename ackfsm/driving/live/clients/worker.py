"""A client in Python as a process of its own: ``python -m ackfsm.driving.live.clients.worker pika``."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import json
import os
import queue
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from ackfsm.driving.live.clients.library import Consumer, Failed, Kind, Outgoing, Received, Session, ThrownError
from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode, DeliveryMode

__all__ = ["LIBRARIES", "main"]

LIBRARIES: Final = {
    "aio_pika": "AioPikaSession",
    "amqp": "AmqpSession",
    "pika": "PikaSession",
    "proton": "ProtonSession",
    "stomp": "StompSession",
}
"""The modules of this package that drive a library, and their sessions."""

_PATIENCE: Final = 10.0
_DOUBTFUL: Final = frozenset({"send", "acknowledge", "commit"})
"""Calls that may have taken effect although they failed."""

_Command: TypeAlias = Mapping[str, Any]
_Answer: TypeAlias = Mapping[str, object] | Failed
_Tell: TypeAlias = Callable[[_Answer], None]


class _SessionThread(threading.Thread):
    """A session: its commands in order."""

    def __init__(self, kind: type[Session], make: Callable[[], Session], name: str, opened: _Tell) -> None:
        super().__init__(name=name, daemon=True)
        self.tasks: queue.SimpleQueue[tuple[_Command, _Tell]] = queue.SimpleQueue()
        self._kind, self._make, self._opened = kind, make, opened
        self._session: Session
        self._over = self._holding = False
        self._untold: dict[str, _Tell] = {}
        """Who waits for the listener's call, and for its return."""

    def run(self) -> None:
        try:
            self._session = self._make()
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._over, failure = True, _failure(error, self._kind)
            closed = isinstance(failure, Failed) and failure.kind is Kind.CLOSED
            self._opened(Failed(Kind.DOWN, failure) if closed else failure)
        else:
            self._opened({"process": self._session.recorder.process})
        while True:
            self._perform(*self.tasks.get())

    def _perform(self, command: _Command, tell: _Tell) -> None:
        closes = command["op"] == "close" and "consumer" not in command
        try:
            self._check(closes=closes)
            if closes:
                self._close()
                tell({})
            elif command["op"] == "listened":
                self._listen(command, tell)
            elif (answer := _performed(self._session, command, tell)) is not None:
                tell(answer)
        except Exception as error:  # noqa: BLE001 - it is the answer
            tell(_failure(error, self._kind, command["op"]))

    def _check(self, *, closes: bool) -> None:
        if self._over or not (closes or self._session.usable):
            raise Failed(Kind.CLOSED, f"the session {self.name} is closed, or broke")
        if closes and self._holding:
            raise Failed(Kind.REFUSED, "the listener of the session holds a message, and close() would wait for it")

    def _close(self) -> None:
        self._over = True
        if self._session.usable:
            self._session.close()

    # Listeners

    def _listen(self, command: _Command, tell: _Tell) -> None:
        self._untold["listened"] = tell
        answer: _Answer = dataclasses.asdict(Received(None))
        try:
            self._session.listen(_consumer(self._session, command), command["timeout"], self._called)
        except Exception as error:  # noqa: BLE001 - it is the answer
            answer = _failure(error, self._kind)
        self._told("done", {})
        self._told("listened", answer)

    def _called(self, received: Received) -> None:
        """The listener: what it does are the commands of its session, until it is done."""
        self._told("done", {})
        self._holding, answer = True, dataclasses.asdict(received)
        told = self._told("listened", answer)
        while (task := self.tasks.get())[0]["op"] != "done":
            if task[0]["op"] in _OF_WHAT_IT_WAS_HANDED and not told:
                task[1](Failed(Kind.REFUSED, "the listener was called with a message that was not asked for yet"))
            elif task[0]["op"] != "listened":
                self._perform(*task)
            elif told:
                task[1](Failed(Kind.REFUSED, "the listener holds a message until it is done"))
            else:
                told = True
                task[1](answer)
        self._holding, self._untold["done"] = False, task[1]
        if task[0].get("failed"):
            raise ThrownError("the listener throws, as it was told to")

    def _told(self, operation: str, answer: _Answer) -> bool:
        """Answer the command that waits for this; return whether one did."""
        tell = self._untold.pop(operation, None)
        if tell is not None:
            tell(answer)
        return tell is not None


# The commands of a session


def _performed(session: Session, command: _Command, tell: _Tell) -> _Answer | None:
    """Return the answer to a command; ``None`` if it is told later."""
    if command["op"] == "send":
        outcome = session.send(_outgoing(command, tell))
        return None if outcome is None else {"outcome": outcome}
    result = _OPERATIONS[command["op"]](session, command)
    if isinstance(result, Received):
        return dataclasses.asdict(result)
    return {} if result is None else {"outcome": result}


def _outgoing(command: _Command, tell: _Tell) -> Outgoing:
    persistent = command.get("delivery_mode", DeliveryMode.PERSISTENT) == DeliveryMode.PERSISTENT
    later = (lambda outcome: tell({"outcome": outcome})) if command.get("asynchronous") else None
    return Outgoing(command["message"], command["destination"], persistent, b"x" * command.get("size", 0), later)


def _consume(session: Session, command: _Command) -> None:
    consumer = Consumer(command["consumer"], command["destination"], bool(command.get("listener")))
    session.consume(consumer)
    session.consumers[consumer.name] = consumer


def _consumer(session: Session, command: _Command) -> Consumer:
    if command["consumer"] not in session.consumers:
        raise Failed(Kind.CLOSED, f"the session has no consumer {command['consumer']}")
    return session.consumers[command["consumer"]]


def _close_consumer(session: Session, command: _Command) -> None:
    session.close_consumer(_consumer(session, command))
    del session.consumers[command["consumer"]]


def _not_listening(_: Session, __: _Command) -> None:
    raise Failed(Kind.REFUSED, "no listener of the session holds a message")


_OF_WHAT_IT_WAS_HANDED: Final = frozenset({"acknowledge", "settle", "commit", "rollback", "recover"})
_OPERATIONS: Final[Mapping[str, Callable[[Session, _Command], Received | str | None]]] = {
    "consumer": _consume,
    "receive": lambda session, command: session.receive(_consumer(session, command), command["timeout"]),
    "done": _not_listening,
    "acknowledge": lambda session, command: session.acknowledge(command["message"]),
    "settle": lambda session, command: session.settle(command["message"], command["outcome"]),
    "commit": lambda session, _: session.commit(),
    "rollback": lambda session, _: session.rollback(),
    "recover": lambda session, _: session.recover(),
    "close": _close_consumer,
}


def _failure(error: Exception, session: type[Session] | None = None, operation: str = "") -> _Answer:
    """The answer that an error is."""
    if isinstance(error, Failed):
        return error
    kind = None if session is None else session.kind_of(error)
    if kind is None:
        traceback.print_exception(error)
    elif operation in _DOUBTFUL:
        return {"outcome": "in_doubt"}
    return Failed(kind or Kind.REFUSED, f"{type(error).__name__}: {error}")


class _Worker:
    """The commands that are no session's, and the way of the others to theirs."""

    def __init__(self, client: str) -> None:
        module = importlib.import_module(f"ackfsm.driving.live.clients.{client}")
        self._kind: type[Session] = getattr(module, LIBRARIES[client])
        self._sessions: dict[str, _SessionThread] = {}
        self._place: tuple[str, int, Mapping[str, Any]]
        self._recorder: Recorder

    def take(self, command: _Command, tell: _Tell) -> None:
        """Perform a command, or pass it on."""
        try:
            self._take(command, tell)
        except Exception as error:  # noqa: BLE001 - it is the answer
            tell(_failure(error))

    def _take(self, command: _Command, tell: _Tell) -> None:
        operation, session = command["op"], command.get("session")
        if operation == "open":
            self._place = command["host"], command["port"], command.get("settings", {})
            header = command.get("header", {})
            self._recorder = Recorder(Path(command["history"]), command["process"], **header, monotonic=True)
            self._connect(tell)
        elif operation == "reopen":
            self._connect(tell)
        elif operation == "session":
            recorder = self._recorder.as_process(f"{self._recorder.process}.{session}")
            make = functools.partial(self._kind, *self._place, recorder, AckMode(command["ack_mode"]))
            self._sessions[command["session"]] = _SessionThread(self._kind, make, command["session"], tell)
            self._sessions[command["session"]].start()
        elif operation == "close" and session is None:
            threading.Thread(target=_close, args=[list(self._sessions.values()), tell], daemon=True).start()
        elif operation not in {"send", "listened", *_OPERATIONS}:
            raise Failed(Kind.REFUSED, f"there is no command {operation}")
        elif session not in self._sessions:
            raise Failed(Kind.CLOSED, f"there is no session {session}")
        else:
            self._sessions[session].tasks.put((command, tell))

    def _connect(self, tell: _Tell) -> None:
        """Sessions have connections of their own; that of the client is only looked for."""
        self._sessions = {}
        try:
            socket.create_connection(self._place[:2], _PATIENCE).close()
        except OSError as error:
            raise Failed(Kind.DOWN, error) from None
        tell({"library": f"{self._kind.library} {importlib.metadata.version(self._kind.library)}"})


def _close(sessions: Sequence[_SessionThread], tell: _Tell) -> None:
    """Close all sessions, each in its thread."""
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    for thread in sessions:
        thread.tasks.put(({"op": "close"}, answers.put))
    told = [answers.get() for _ in sessions]
    tell(next((each for each in told if isinstance(each, Failed) and each.kind is not Kind.CLOSED), {}))


def _write(file: BinaryIO, lock: threading.Lock, number: int, answer: _Answer) -> None:
    told = {"error": answer.kind, "why": str(answer)} if isinstance(answer, Failed) else answer
    line = json.dumps({"id": number, **told}, separators=(",", ":")).encode() + b"\n"
    with lock:
        file.write(line)
        file.flush()


def main(arguments: Sequence[str]) -> int:
    """Perform the commands on standard input, until it ends; then end at once, and close nothing."""
    answers, lock = os.fdopen(os.dup(sys.stdout.fileno()), "wb"), threading.Lock()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    worker = _Worker(arguments[0])
    for line in sys.stdin.buffer:
        command = json.loads(line)
        worker.take(command, functools.partial(_write, answers, lock, command["id"]))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
