"""A client as the driver has it: a process that is given commands, killed and asked."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, cast

from ackfsm.terms import AckfsmError, InputError

__all__ = [
    "Answer",
    "Client",
    "ClientError",
    "ClosedError",
    "DownError",
    "RefusedError",
    "TimedOutError",
    "python_worker",
]

Answer = Mapping[str, Any]


class ClientError(AckfsmError):
    """A command failed; the kind of this error is the ``error`` of the answer."""


class ClosedError(ClientError):
    """The process has ended, or consumer, session or connection are closed or broke."""


class DownError(ClientError):
    """Nobody serves clients at host and port."""


class RefusedError(ClientError):
    """The broker or the library refuses what was asked, or the client has no such command."""


class TimedOutError(ClientError):
    """The library gave up waiting, or the command was not answered in time and may be under way still."""


_ERRORS: Final = {"closed": ClosedError, "down": DownError, "refused": RefusedError, "timeout": TimedOutError}
_PATIENCE: Final = 10.0


_PACKAGES: Final = {
    "aio_pika": "aio-pika",
    "amqp": "amqp",
    "pika": "pika",
    "proton": "python-qpid-proton",
    "stomp": "stomp.py",
}


def python_worker(client: str) -> tuple[str, ...]:
    """The command that starts a client in Python: ``aio_pika``, ``amqp``, ``pika``, ``proton``, ``stomp``.

    Raises :class:`InputError` where its library is not installed.
    """
    if importlib.util.find_spec(client) is None:
        raise InputError(f"the client {client} is not installed; install it with: pip install {_PACKAGES[client]}")
    return (sys.executable, "-m", "ackfsm.driving.live.clients.worker", client)


class Client:
    """The process of a client, in a session of its own; it ends with its parent, whatever becomes of that.

        with Client("c1", python_worker("pika"), folder / "c1.log") as client:
            client.connect(5672, folder / "c1.jsonl", config={}, settings={}, within=10)
            client.call("session", session="s", ack_mode="INDIVIDUAL_ACKNOWLEDGE")
            sent = client.ask("send", session="s", destination="orders", message="m1")
            assert sent.result(10)["outcome"] == "confirmed"

    Several threads may give commands.  The errors of answers are raised: :class:`ClientError`.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        """Start the process; what it says to people goes to the end of ``log``."""
        self.name, self._log = name, log
        self.processes: dict[str, None] = {}
        """The names under which lines were written: faults of the client hit all of them."""
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - a client of ours
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        self._input, self._answers = cast("BinaryIO", self._process.stdin), cast("BinaryIO", self._process.stdout)
        self._numbers, self._lock, self._writing = itertools.count(1), threading.Lock(), threading.Lock()
        self._open: dict[int, Future[Answer]] = {}
        self._over = self._opened = False
        self._reader = threading.Thread(target=self._read, name=f"{name} answers", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs, or is stopped and can be resumed."""
        return self._process.poll() is None

    def ask(self, operation: str, /, **fields: object) -> Future[Answer]:
        """Give a command; the result is its answer, or an error of its kind."""
        number, told = next(self._numbers), Future[Answer]()
        told.set_running_or_notify_cancel()
        given = {name: value for name, value in fields.items() if value is not None}
        line = json.dumps({"id": number, "op": operation, **given}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._over:
                told.set_exception(self._ended())
                return told
            self._open[number] = told
        with self._writing, contextlib.suppress(BrokenPipeError):  # then its end is read as well, which is the answer
            self._input.write(line)
            self._input.flush()
        return told

    def call(self, operation: str, /, *, within: float = _PATIENCE, **fields: object) -> Answer:
        """Give a command and wait for its answer, at most ``within`` seconds more than its own ``timeout``.

        Raises:
            ClientError: the answer is an error, or does not come in time; then it is :class:`TimedOutError`.
        """
        own = fields.get("timeout")
        told = self.ask(operation, **fields)
        try:
            return told.result(within + (own if isinstance(own, int | float) else 0))
        except TimeoutError:
            raise TimedOutError(f"{self.name} did not answer {operation} within {within:g} s") from None

    def connect(  # noqa: PLR0913 - by name
        self,
        port: int,
        history: Path,
        config: Mapping[str, object],
        settings: Mapping[str, Any],
        *,
        within: float,
        client_id: str | None = None,
    ) -> Answer:
        """Connect to a port of this machine, for the first time or again, with the history that was begun then."""
        if self._opened:
            return self.call("reopen", within=within, client_id=client_id)
        answer = self.call(
            "open",
            within=within,
            host="127.0.0.1",
            port=port,
            process=self.name,
            history=str(history),
            header={"config": dict(config)},
            settings=dict(settings),
            client_id=client_id,
        )
        self._opened = True
        return answer

    def kill(self) -> None:
        """SIGKILL, and wait until the process has ended and all commands are answered."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def stop(self) -> None:
        """Have the process end by itself, as at the death of its parent; kill it if it does not."""
        self.signal(signal.SIGCONT)
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP and SIGCONT; a process that has ended gets none."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _read(self) -> None:
        with self._answers as answers:
            for line in answers:
                if not line.endswith(b"\n"):
                    break  # torn by its death
                answer = json.loads(line)
                self._take(answer.pop("id"), answer)
        with self._lock:
            self._over, left, self._open = True, self._open, {}
        for told in left.values():
            told.set_exception(self._ended())

    def _take(self, number: int, answer: dict[str, Any]) -> None:
        with self._lock:
            told = self._open.pop(number, None)
            if "process" in answer:
                self.processes[answer["process"]] = None
        if told is None:
            return  # an asynchronous send whose call failed may be answered by its receipt as well
        if "error" in answer:
            told.set_exception(_ERRORS[answer["error"]](f"{self.name}: {answer.get('why', '')}"))
        else:
            told.set_result(answer)

    def _ended(self) -> ClosedError:
        return ClosedError(f"the process of {self.name} has ended; what it said is in {self._log}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
