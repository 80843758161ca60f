"""A client in Python as a process of its own: ``python -m ackfsm.driving.live.clients.worker pika``."""

from __future__ import annotations

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
from typing import Any, BinaryIO, Final

from ackfsm.driving.live.clients.library import (
    IN_DOUBT,
    Consumer,
    Failed,
    Kind,
    ListenerFailedError,
    Outgoing,
    Place,
    Received,
    Session,
)
from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode, DeliveryMode, InputError

__all__ = ["LIBRARIES", "main"]

LIBRARIES: Final = {"pika": "PikaSession", "proton": "ProtonSession", "stomp": "StompSession"}
"""The modules of this package that drive a library, and their sessions."""

_PATIENCE: Final = 10.0
_DOUBTFUL: Final = frozenset({"send", "acknowledge", "commit"})
"""Calls that may have taken effect although they failed."""

_ASKER: Final = ""
"""The field of a command of the worker's own: who is told the answer."""

_Command = Mapping[str, Any]
_Answer = Mapping[str, object]


class _Out:
    """Writes answers, each for one command."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._lock = file, threading.Lock()

    def answer(self, command: _Command, answer: _Answer | Failed) -> None:
        if _ASKER in command:
            command[_ASKER](answer)
            return
        told = {"error": answer.kind, "why": str(answer)} if isinstance(answer, Failed) else answer
        line = json.dumps({"id": command.get("id"), **told}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()


class _SessionThread(threading.Thread):
    """A session: its commands in order."""

    def __init__(self, out: _Out, opened: _Command, make: Callable[[_Command], Session]) -> None:
        super().__init__(name=str(opened["session"]), daemon=True)
        self.commands: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self.over = False
        """Whether it takes no more commands."""
        self._out, self._opened, self._make = out, opened, make
        self._session: Session
        self._listened: _Command | None = None
        self._done: _Command | None = None
        self._holding = False

    def run(self) -> None:
        try:
            self._session = self._make(self._opened)
        except Exception as error:  # noqa: BLE001 - it is the answer
            self.over = True
            self._out.answer(self._opened, _failure(error, None))
        else:
            self._out.answer(self._opened, {"process": self._session.recorder.process})
        while not self.over:
            self._perform(self.commands.get())
        while True:
            self._out.answer(self.commands.get(), Failed(Kind.CLOSED, f"the session {self.name} is closed"))

    def _perform(self, command: _Command) -> None:
        if command["op"] == "listened":
            self._listen(command)
        else:
            answer = self._answered(command)
            if answer is not None:
                self._out.answer(command, answer)

    def _answered(self, command: _Command) -> _Answer | Failed | None:
        try:
            if command["op"] == "close" and "consumer" not in command:
                return self._close()
            self._check_usable()
            return _OPERATIONS[command["op"]](self, command)
        except Exception as error:  # noqa: BLE001 - it is the answer
            doubtful = command["op"] in _DOUBTFUL and self._session.kind_of(error) is not None
            return {"outcome": IN_DOUBT} if doubtful else _failure(error, self._session)

    def _check_usable(self) -> None:
        if not self._session.usable:
            raise Failed(Kind.CLOSED, f"the session {self.name} is closed, or broke")

    def _close(self) -> _Answer:
        if self._holding:
            raise Failed(Kind.REFUSED, "the listener of the session holds a message, and close() would wait for it")
        self.over = True
        if self._session.usable:
            self._session.close()
        return {}

    # Listeners

    def _listen(self, command: _Command) -> None:
        self._listened = command
        told: _Answer | Failed = {"message": None}
        try:
            self._check_usable()
            self._session.listen(self._consumer(command), command["timeout"], self._called)
        except Exception as error:  # noqa: BLE001 - it is the answer
            told = _failure(error, self._session)
        self._returned()
        self._tell(told)

    def _called(self, received: Received) -> None:
        """The listener: what it does are the commands of its session, until it is done."""
        self._returned()
        self._holding, told = True, self._tell(_told(received))
        while (command := self.commands.get())["op"] != "done":
            if command["op"] != "listened":
                self._perform(command)
            elif told:
                self._out.answer(command, Failed(Kind.REFUSED, "the listener holds a message until it is done"))
            else:
                self._listened = command
                told = self._tell(_told(received))
        self._holding, self._done = False, command
        if command.get("failed"):
            raise ListenerFailedError("the listener throws, as it was told to")

    def _tell(self, answer: _Answer | Failed) -> bool:
        """Answer the command that waits for the listener; return whether one did."""
        waiting, self._listened = self._listened, None
        if waiting is not None:
            self._out.answer(waiting, answer)
        return waiting is not None

    def _returned(self) -> None:
        """The listener has returned, and the library and the record know."""
        if self._done is not None:
            self._out.answer(self._done, {})
        self._done = None

    # Operations

    def _consumer(self, command: _Command) -> Consumer:
        found = self._session.consumers.get(command["consumer"])
        if found is None:
            raise Failed(Kind.CLOSED, f"the session {self.name} has no consumer {command['consumer']}")
        return found

    def _consume(self, command: _Command) -> _Answer:
        if command.get("subscription"):
            raise self._session.lacks("durable and shared subscriptions")
        asked = [command[name] for name in ("consumer", "destination")]
        flags = [bool(command.get(name)) for name in ("topic", "listener")]
        self._session.consume(Consumer(*asked, *flags))
        return {}

    def _send(self, command: _Command) -> _Answer | None:
        mode = DeliveryMode(command.get("delivery_mode", DeliveryMode.PERSISTENT))
        outgoing = Outgoing(
            command["message"],
            command["destination"],
            bool(command.get("topic")),
            mode is DeliveryMode.PERSISTENT,
            b"x" * command.get("size", 0),
            command.get("priority"),
        )
        later = None
        if command.get("asynchronous"):
            later = lambda outcome: self._out.answer(command, {"outcome": outcome})  # noqa: E731 - it has no name
        outcome = self._session.send(outgoing, later)
        return None if outcome is None else {"outcome": outcome}

    def _receive(self, command: _Command) -> _Answer:
        received = self._session.receive(self._consumer(command), command["timeout"])
        return {"message": None} if received is None else _told(received)

    def _settle(self, command: _Command) -> _Answer:
        self._session.settle(command["message"], command["outcome"])
        return {}

    def _rollback(self, _: _Command) -> _Answer:
        self._session.rollback()
        return {}

    def _recover(self, _: _Command) -> _Answer:
        self._session.recover()
        return {}

    def _close_consumer(self, command: _Command) -> _Answer:
        self._session.close_consumer(self._consumer(command))
        del self._session.consumers[command["consumer"]]
        return {}

    def _acknowledge(self, command: _Command) -> _Answer:
        return {"outcome": self._session.acknowledge(command["message"])}

    def _commit(self, _: _Command) -> _Answer:
        return {"outcome": self._session.commit()}

    def _no_listener(self, _: _Command) -> _Answer:
        raise Failed(Kind.REFUSED, "no listener of the session holds a message")


_OPERATIONS: Final[Mapping[str, Callable[[_SessionThread, _Command], _Answer | None]]] = {
    "consumer": _SessionThread._consume,  # noqa: SLF001 - the table of its own methods
    "send": _SessionThread._send,  # noqa: SLF001
    "receive": _SessionThread._receive,  # noqa: SLF001
    "done": _SessionThread._no_listener,  # noqa: SLF001
    "acknowledge": _SessionThread._acknowledge,  # noqa: SLF001
    "settle": _SessionThread._settle,  # noqa: SLF001
    "commit": _SessionThread._commit,  # noqa: SLF001
    "rollback": _SessionThread._rollback,  # noqa: SLF001
    "recover": _SessionThread._recover,  # noqa: SLF001
    "close": _SessionThread._close_consumer,  # noqa: SLF001
}


def _told(received: Received) -> _Answer:
    return {
        "message": received.message,
        "redelivered": received.redelivered,
        "delivery_count": received.delivery_count,
    }


def _failure(error: Exception, session: Session | None) -> Failed:
    """The answer that an error is."""
    if isinstance(error, Failed):
        return error
    kind = None if session is None else session.kind_of(error)
    if kind is None:
        traceback.print_exception(error)
    return Failed(kind or Kind.REFUSED, f"{type(error).__name__}: {error}")


class _Worker:
    """The commands that are no session's, and the way of the others to theirs."""

    def __init__(self, client: str, out: _Out) -> None:
        module = importlib.import_module(f"ackfsm.driving.live.clients.{client}")
        self._kind: type[Session] = getattr(module, LIBRARIES[client])
        self._out = out
        self._sessions: dict[str, _SessionThread] = {}
        self._place = Place("", 0, {})
        self._recorder: Recorder | None = None

    def take(self, command: _Command) -> None:
        """Perform a command, or pass it on."""
        try:
            self._take(command)
        except Failed as failed:
            self._out.answer(command, failed)
        except (InputError, KeyError, TypeError, ValueError) as error:
            self._out.answer(command, Failed(Kind.REFUSED, f"{type(error).__name__}: {error}"))

    def _take(self, command: _Command) -> None:
        operation = command["op"]
        if operation == "open":
            self._open(command)
        elif operation == "reopen":
            self._connected(command)
        elif operation == "session":
            thread = self._sessions[command["session"]] = _SessionThread(self._out, command, self._session)
            thread.start()
        elif operation == "close" and "session" not in command:
            threading.Thread(target=self._close, args=[command, list(self._sessions.values())], daemon=True).start()
        elif operation not in {*_OPERATIONS, "listened"}:
            raise Failed(Kind.REFUSED, f"there is no command {operation}")
        elif command["session"] not in self._sessions:
            raise Failed(Kind.CLOSED, f"there is no session {command['session']}")
        else:
            self._sessions[command["session"]].commands.put(command)

    def _open(self, command: _Command) -> None:
        self._place = Place(command["host"], command["port"], command.get("settings", {}))
        header = command.get("header", {})
        self._recorder = Recorder(Path(command["history"]), command["process"], **header, monotonic=True)
        self._connected(command)

    def _connected(self, command: _Command) -> None:
        """Sessions have connections of their own; that of the client is only looked for."""
        self._sessions = {}
        try:
            socket.create_connection((self._place.host, self._place.port), _PATIENCE).close()
        except OSError as error:
            raise Failed(Kind.DOWN, error) from None
        library = self._kind.library
        self._out.answer(command, {"library": f"{library} {importlib.metadata.version(library)}"})

    def _session(self, command: _Command) -> Session:
        if self._recorder is None:
            raise Failed(Kind.REFUSED, "the client is not open")
        recorder = self._recorder.as_process(f"{self._recorder.process}.{command['session']}")
        return self._kind(self._place, recorder, AckMode(command["ack_mode"]))

    def _close(self, command: _Command, sessions: Sequence[_SessionThread]) -> None:
        """Close all sessions, each in its thread."""
        answers: queue.SimpleQueue[_Answer | Failed] = queue.SimpleQueue()
        for thread in sessions:
            thread.commands.put({"op": "close", _ASKER: answers.put})
        told = [answers.get() for _ in sessions]
        failed = [each for each in told if isinstance(each, Failed) and each.kind is not Kind.CLOSED]
        self._out.answer(command, failed[0] if failed else {})


def main(arguments: Sequence[str]) -> int:
    """Perform the commands on standard input, until it ends; then end at once, and close nothing."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    worker = _Worker(arguments[0], _Out(answers))
    for line in sys.stdin.buffer:
        worker.take(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
