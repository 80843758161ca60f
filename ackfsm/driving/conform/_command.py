"""A command in any language as an implementation: one line of JSON for each request, and one for its answer."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Final, NoReturn, Self, TypeVar

from ackfsm.driving.conform._adapter import (
    AckOutcome,
    Adapter,
    BrokerDownError,
    ClientClosedError,
    CommitOutcome,
    Delivery,
    Depth,
    SendOutcome,
    Strike,
)
from ackfsm.driving.conform._claims import Claims, Mode
from ackfsm.driving.conform._wire import (
    LONGEST,
    PROTOCOL,
    Answer,
    claims_of,
    delivery_of,
    depth_of,
    encoded,
    fields_of,
    outcome_of,
    parsed,
)
from ackfsm.terms import Fault, HostError, InputError
from ackfsm.text import quoted, shown

__all__ = ["PROTOCOL", "Command"]

_T = TypeVar("_T")

_GRACE: Final = 1.0
"""Seconds that the command has to end after its standard input is closed."""

_NAMED: Final = 60
"""Characters of the command line that a sentence has."""

_TAIL: Final = 2_000
"""Bytes of standard error that are kept."""


class Command(Adapter):
    """Runs a command and asks it.  Used as a context; the command and its children are gone when that is left.

    Every call raises :class:`InputError` for an answer that is none, and :class:`HostError` if the command has ended,
    or has not answered in time.
    """

    def __init__(self, argv: Sequence[str], *, timeout: float = 10.0) -> None:
        """Start ``argv``; each answer may take ``timeout`` seconds.

        Raises :class:`InputError` if it cannot be started.
        """
        self._name, self._timeout, self._number = shown(shlex.join(argv), _NAMED), timeout, 0
        self._buffer = b""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it has a null character"
            raise InputError(f"{self._name} cannot be started ({why}); say which program it is, after --") from None
        self._requests, self._answers = _stream(self._process.stdin), _stream(self._process.stdout)
        self._selector = selectors.DefaultSelector()
        for stream in (self._requests, self._answers):
            os.set_blocking(stream.fileno(), False)
        self._tail = b""
        self._listener = threading.Thread(target=self._listen, args=(_stream(self._process.stderr),), daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _listen(self, errors: IO[bytes]) -> None:
        """Keep the end of the command's standard error, so that the command never waits for a reader."""
        with errors:
            while piece := errors.read(4_096):
                self._tail = (self._tail + piece)[-_TAIL:]

    def end(self) -> None:
        """Let the command end, then end it with all that it has started."""
        with contextlib.suppress(OSError):
            self._requests.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self._kill()
        self._answers.close()
        self._selector.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join(_GRACE)

    # Requests and answers

    def _ask(self, op: str, read: Callable[[Answer], _T], more: float = 0.0, **fields: object) -> _T:
        """Ask for ``op``, and ``read`` the answer, which may take ``more`` seconds than others."""
        self._number += 1
        present = {name: value for name, value in fields.items() if value is not None}
        deadline = time.monotonic() + self._timeout + more
        what = f"{quoted(op)} (request {self._number})"
        self._write(encoded({"id": self._number, "op": op, **present}), deadline, what)
        line = self._line(deadline, what)
        try:
            answer = parsed(line)
            if answer.get("id") != self._number or isinstance(answer.get("id"), bool):
                wrote = quoted(line.decode(errors="replace").rstrip())
                raise InputError(f"it wrote {wrote}, which has another id")  # noqa: TRY301 - as the others
            _raise_error(answer)
            return read(answer)
        except InputError as error:
            raise InputError(
                f"{self._name}: where the answer to {what} was expected, {error}; docs/conform.md has the protocol"
            ) from None

    def _write(self, request: bytes, deadline: float, what: str) -> None:
        while request:
            self._wait(self._requests, selectors.EVENT_WRITE, deadline, what)
            try:
                request = request[self._requests.write(request) or 0 :]
            except BrokenPipeError:
                return  # it reads no more; what it has written may be read

    def _line(self, deadline: float, what: str) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > LONGEST:
                raise InputError(
                    f"{self._name} wrote a line of more than {LONGEST:,} bytes where the answer to {what} was "
                    "expected; whatever is no answer goes to standard error"
                )
            self._wait(self._answers, selectors.EVENT_READ, deadline, what)
            piece = self._answers.read(LONGEST)
            if piece == b"":
                self._ended(what)
            self._buffer += piece or b""
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _wait(self, stream: IO[bytes], event: int, deadline: float, what: str) -> None:
        self._selector.register(stream, event)
        try:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        finally:
            self._selector.unregister(stream)
        if not ready or time.monotonic() > deadline:
            self._kill()
            raise HostError(
                f"{self._name} did not answer {what} within {self._timeout:g}s and was ended{self._said()}; if it "
                "needs longer, say --timeout"
            )

    def _ended(self, what: str) -> NoReturn:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        code = self._process.poll()
        how = "closed its output" if code is None else f"ended with {_status(code)}"
        self._kill()
        raise HostError(f"{self._name} {how} before it answered {what}{self._said()}")

    def _said(self) -> str:
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return f"; the last line of its standard error: {quoted(lines[-1])}" if lines else ""

    # The operations

    def claims(self) -> Claims:
        """See :class:`Adapter`."""
        return self._ask("hello", claims_of, protocol=PROTOCOL)

    def begin(self, mode: Mode, queue: str) -> None:
        """See :class:`Adapter`."""
        self._ask(
            "begin",
            _nothing,
            queue=queue,
            ack_mode=mode.ack_mode.value,
            delivery_mode=mode.delivery_mode.value,
            consumption=mode.consumption.value,
        )

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """See :class:`Adapter`."""
        return self._ask(
            "send",
            lambda answer: outcome_of(SendOutcome, answer),
            client=client,
            queue=queue,
            message=message,
            during=_during(during),
        )

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """See :class:`Adapter`."""
        return self._ask("receive", delivery_of, more=timeout, client=client, queue=queue, timeout=timeout)

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """See :class:`Adapter`."""
        self._ask("done", _nothing, client=client, message=message, failed=failed)

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """See :class:`Adapter`."""
        return self._ask(
            "acknowledge",
            lambda answer: outcome_of(AckOutcome, answer),
            client=client,
            message=message,
            during=_during(during),
        )

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """See :class:`Adapter`."""
        return self._ask(
            "commit", lambda answer: outcome_of(CommitOutcome, answer), client=client, during=_during(during)
        )

    def rollback(self, client: str) -> None:
        """See :class:`Adapter`."""
        self._ask("rollback", _nothing, client=client)

    def recover(self, client: str) -> None:
        """See :class:`Adapter`."""
        self._ask("recover", _nothing, client=client)

    def cancel(self, client: str) -> None:
        """See :class:`Adapter`."""
        self._ask("cancel", _nothing, client=client)

    def close(self, client: str) -> None:
        """See :class:`Adapter`."""
        self._ask("close", _nothing, client=client)

    def fault(self, fault: Fault, client: str | None) -> None:
        """See :class:`Adapter`."""
        self._ask("fault", _nothing, fault=fault.value, client=client)

    def restart(self) -> None:
        """See :class:`Adapter`."""
        self._ask("restart", _nothing)

    def depth(self, queue: str) -> Depth:
        """See :class:`Adapter`."""
        return self._ask("depth", depth_of, queue=queue)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise HostError("a pipe to the command could not be made")
    return stream


def _status(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _during(strike: Strike | None) -> dict[str, object] | None:
    return None if strike is None else {"fault": strike.fault.value, "after": strike.after}


def _nothing(answer: Answer) -> None:
    fields_of(answer, ())


def _raise_error(answer: Answer) -> None:
    """Raise what an answer says that it could not be done for."""
    error = answer.get("error")
    if error is None:
        return
    fields_of(answer, ["error"], ["reason"])
    if error == "closed":
        raise ClientClosedError("the client is closed")
    if error == "down":
        raise BrokerDownError("the broker is down")
    if error == "refused":
        raise InputError(f"it refused ({quoted(str(answer.get('reason', 'without a reason')))})")
    raise InputError(f"it answered the error {quoted(str(error))}, which is not closed, down or refused")
