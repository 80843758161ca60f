"""A TCP relay that adds a round trip and limits the bandwidth, in a process of its own.

``python -m model_tests.reality.relay PORT`` relays a free port to ``PORT`` of this machine until its input ends.  It
writes its port and then, for each line of its input, which is a JSON object, the bytes that were relayed so far.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["Bytes", "Line", "Relay", "relay"]

_READ: Final = 65_536
_SEGMENT: Final = 1460
"""Bytes that occupy a limited line at once, as a packet of Ethernet does."""
_HELD: Final = 32 * 2**20
"""Bytes that one direction holds at most; nothing more is read then."""
_EARLY: Final = 0.00005
"""Seconds before a chunk is due at which the relay stops sleeping: about what the kernel wakes it up too late."""
_PR_SET_TIMERSLACK: Final = 29


@dataclasses.dataclass(frozen=True, slots=True)
class Bytes:
    """What was relayed so far: ``up`` to the broker and ``down`` to the clients, without the headers of TCP."""

    up: int
    down: int

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(self.up + other.up, self.down + other.down)

    def __sub__(self, other: Bytes) -> Bytes:
        return Bytes(self.up - other.up, self.down - other.down)


@dataclasses.dataclass(slots=True)
class Line:
    """One direction of a line: when the bytes that enter it now leave it.

    ``delay`` is in seconds; ``bandwidth``, in bits a second, is unlimited if ``None``.  Any number of bytes is under
    way at a time, and none overtakes another.
    """

    delay: float = 0.0
    bandwidth: float | None = None
    busy_until: float = 0.0

    def carry(self, data: bytes, now: float) -> Iterator[tuple[float, bytes]]:
        """The parts of ``data``, each with the time at which it leaves the line."""
        if self.bandwidth is None:
            yield now + self.delay, data
            return
        for begin in range(0, len(data), _SEGMENT):
            part = data[begin : begin + _SEGMENT]
            self.busy_until = max(now, self.busy_until) + len(part) * 8 / self.bandwidth
            yield self.busy_until + self.delay, part


class Relay:
    """A relay that runs; clients connect to ``port``."""

    def __init__(self, target: int) -> None:
        command = [sys.executable, "-m", "model_tests.reality.relay", str(target)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._answer()["port"])

    def shape(self, rtt: float = 0.0, bandwidth: float | None = None) -> None:
        """Let connections made from now on have this round trip, in seconds, and this bandwidth each way, in bit/s."""
        self._ask({"rtt": rtt, "bandwidth": bandwidth})

    def relayed(self) -> Bytes:
        """What was relayed so far."""
        return Bytes(**self._ask({}))

    def close(self) -> None:
        """End the relay and, with it, its connections."""
        self._process.communicate(timeout=10)

    def _ask(self, question: dict[str, float | None]) -> dict[str, int]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, int]:
        assert self._process.stdout is not None
        answer: dict[str, int] = json.loads(self._process.stdout.readline())
        return answer


@contextlib.contextmanager
def relay(target: int) -> Iterator[Relay]:
    """A relay to the port ``target`` of this machine, as long as it is needed."""
    running = Relay(target)
    try:
        yield running
    finally:
        running.close()


class _Direction:
    """What comes from ``source`` and has yet to go to ``target``."""

    def __init__(self, source: socket.socket, target: socket.socket, line: Line) -> None:
        self.source, self.target, self.line = source, target, line
        self.relayed = 0
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self._held = 0
        self.ended = self.blocked = False

    @property
    def reads(self) -> bool:
        """Whether more may come in."""
        return not self.ended and self._held < _HELD

    @property
    def over(self) -> bool:
        """Whether all has gone out, and nothing comes any more."""
        return self.ended and not self._waiting

    @property
    def due(self) -> float | None:
        """When the next bytes leave; ``None``: there are none, or the receiver takes none."""
        return self._waiting[0][0] if self._waiting and not self.blocked else None

    def read(self) -> None:
        """Take in what has come."""
        try:
            data = self.source.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.monotonic()
        self.ended = not data
        self.relayed += len(data)
        self._held += len(data)
        self._waiting.extend((due, memoryview(part)) for due, part in self.line.carry(data, now))

    def write(self, now: float) -> None:
        """Let out what is due."""
        self.blocked = False
        while self._waiting and self._waiting[0][0] <= now:
            due, part = self._waiting.popleft()
            try:
                sent = self.target.send(part)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.ended = True
                self._waiting.clear()
                return
            self._held -= sent
            if sent < len(part):
                self._waiting.appendleft((due, part[sent:]))
                self.blocked = True
                return


class _Server:
    """The loop of the relay's process: all connections in one thread, which waits for sockets and times at once."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._delay = 0.0
        self._bandwidth: float | None = None
        self._pairs: list[tuple[_Direction, _Direction]] = []
        self._gone = Bytes(0, 0)
        self._listener = socket.create_server(("127.0.0.1", 0))

    def run(self) -> None:
        """Relay until the input ends."""
        _say({"port": self._listener.getsockname()[1]})
        while True:
            readable, writable = self._waited()
            directions = self._directions()
            for direction in directions:
                if direction.source in readable:
                    direction.read()
            now = time.monotonic()
            for direction in directions:
                if direction.target in writable or ((due := direction.due) is not None and due <= now):
                    direction.write(now)
            if any(direction.over for direction in directions):
                self._end_pairs()
            if self._listener in readable:
                self._accept()
            if sys.stdin in readable and not self._obey():
                return

    def _directions(self) -> list[_Direction]:
        return [direction for pair in self._pairs for direction in pair]

    def _waited(self) -> tuple[list[Any], list[Any]]:
        directions = self._directions()
        reads = [self._listener, sys.stdin, *(each.source for each in directions if each.reads)]
        writes = [each.target for each in directions if each.blocked]
        dues = [due for each in directions if (due := each.due) is not None]
        patience = max(0.0, min(dues) - time.monotonic() - _EARLY) if dues else None
        # Not epoll, whose timeouts are whole milliseconds.
        readable, writable, _ = select.select(reads, writes, [], patience)
        return readable, writable

    def _end_pairs(self) -> None:
        """Once a side has ended and was told all, end the connections of both."""
        for pair in [pair for pair in self._pairs if any(direction.over for direction in pair)]:
            self._pairs.remove(pair)
            self._gone += Bytes(*(direction.relayed for direction in pair))
            for direction in pair:
                direction.source.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            broker = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        for each in (client, broker):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.settimeout(0)
        up, down = (Line(self._delay, self._bandwidth) for _ in range(2))
        self._pairs.append((_Direction(client, broker, up), _Direction(broker, client, down)))

    def _obey(self) -> bool:
        """Follow one line of the input, if it has not ended."""
        line = sys.stdin.readline()
        if not line:
            return False
        if command := json.loads(line):
            self._delay, self._bandwidth = command["rtt"] / 2, command["bandwidth"]
        total = self._gone
        for up, down in self._pairs:
            total += Bytes(up.relayed, down.relayed)
        _say(dataclasses.asdict(total))
        return True


def _say(answer: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the harness ends in order, and the relay with it
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _Server(int(sys.argv[1])).run()


if __name__ == "__main__":
    _serve()
