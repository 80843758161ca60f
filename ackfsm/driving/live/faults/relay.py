"""A TCP relay that delays, throttles, holds, cuts and refuses connections, in a process of its own.

``python -m ackfsm.driving.live.faults.relay PORT HOST`` relays a free port to that of ``HOST`` until its input ends.
It writes its port and then, for each line of its input, which is a JSON object, the bytes that were relayed so far.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import enum
import json
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ackfsm.terms import HostError

__all__ = ["Bytes", "Line", "Relay", "Way", "relay"]

_READ: Final = 65_536
_SEGMENT: Final = 1460
"""Bytes that occupy a limited line at once, as a packet of Ethernet does."""
_KEPT: Final = 32 * 2**20
"""Bytes that one direction keeps at most; nothing more is read then."""
_EARLY: Final = 0.00005
"""Seconds before a chunk is due at which the relay stops sleeping: about what the kernel wakes it up too late."""
_PR_SET_TIMERSLACK: Final = 29
_HEALTHY: Final[Mapping[str, Any]] = {"rtt": 0.0, "bandwidth": None, "listens": True, "held": [], "cut": False}
"""What a relay is told at each time."""
_RESET: Final = struct.pack("ii", 1, 0)
"""The option of a socket whose close is a RST, and throws away what was not sent."""


class Way(enum.Enum):
    """A direction of all connections of a relay."""

    UP = "up"
    """From the clients to the broker."""
    DOWN = "down"
    """From the broker to the clients."""


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
    """A relay that runs; clients connect to ``port``.  It ends with the process that made it, even a killed one."""

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        command = [sys.executable, "-m", __name__, str(target), host]
        self._process = subprocess.Popen(  # noqa: S603 - this module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise HostError("a process got no pipes")
        self._input, self._output = self._process.stdin, self._process.stdout
        self._state = dict(_HEALTHY)
        self.port = int(self._answer()["port"])

    def shape(self, rtt: float = 0.0, bandwidth: float | None = None) -> None:
        """Let what comes from now on have this round trip, in seconds, and this bandwidth each way, in bit/s."""
        self._set(rtt=rtt, bandwidth=bandwidth)

    def cut(self) -> int:
        """End all connections by a RST to both sides, with what is under way; returns how many there were."""
        return self._ask({**self._state, "cut": True})["cut"]

    def refuse(self) -> None:
        """Refuse new connections from now on; those that are there stay."""
        self._set(listens=False)

    def blackhole(self, *ways: Way) -> None:
        """Let nothing through these ways from now on, an end neither, while the connections stay.

        As TCP sends again what was lost, :meth:`heal` lets through what was held.  A :meth:`cut` throws it away.
        """
        self._set(held=[way.value for way in ways])

    def heal(self) -> None:
        """Accept connections again, and let everything through; the shape stays."""
        self._set(listens=True, held=[])

    def relayed(self) -> Bytes:
        """What was relayed so far."""
        answer = self._ask(self._state)
        return Bytes(answer["up"], answer["down"])

    def close(self) -> None:
        """End the relay and, with it, its connections."""
        self._process.communicate(timeout=10)

    def _set(self, **changes: Any) -> None:
        self._state |= changes
        self._ask(self._state)

    def _ask(self, question: dict[str, Any]) -> dict[str, int]:
        self._input.write(json.dumps(question) + "\n")
        self._input.flush()
        return self._answer()

    def _answer(self) -> dict[str, int]:
        line = self._output.readline()
        if not line:
            raise HostError("the relay has ended by itself; what it wrote to the standard error says why")
        answer: dict[str, int] = json.loads(line)
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
        self._kept = 0
        self.ended = self.blocked = self.held = False

    @property
    def reads(self) -> bool:
        """Whether more may come in."""
        return not self.ended and self._kept < _KEPT

    @property
    def over(self) -> bool:
        """Whether all has gone out, and nothing comes any more."""
        return self.ended and not self._waiting and not self.held

    @property
    def due(self) -> float | None:
        """When the next bytes leave; ``None``: there are none, or they are held, or the receiver takes none."""
        return self._waiting[0][0] if self._waiting and not self.blocked and not self.held else None

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
        self._kept += len(data)
        self._waiting.extend((due, memoryview(part)) for due, part in self.line.carry(data, now))

    def write(self, now: float) -> None:
        """Let out what is due."""
        self.blocked = False
        while self._waiting and self._waiting[0][0] <= now and not self.held:
            due, part = self._waiting.popleft()
            try:
                sent = self.target.send(part)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.ended = True
                self._waiting.clear()
                return
            self._kept -= sent
            if sent < len(part):
                self._waiting.appendleft((due, part[sent:]))
                self.blocked = True
                return


class _Server:
    """The loop of the relay's process: all connections in one thread, which waits for sockets and times at once."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._state = dict(_HEALTHY)
        self._pairs: list[tuple[_Direction, _Direction]] = []
        self._gone = Bytes(0, 0)
        # A socket keeps a port that it was bound to by number, also while it refuses.
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", 0))
            self._listener = socket.create_server(free.getsockname())

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
        reads = [
            sys.stdin,
            *([self._listener] if self._state["listens"] else []),
            *(each.source for each in directions if each.reads),
        ]
        writes = [each.target for each in directions if each.blocked]
        dues = [due for each in directions if (due := each.due) is not None]
        patience = max(0.0, min(dues) - time.monotonic() - _EARLY) if dues else None
        # Not epoll, whose timeouts are whole milliseconds.
        readable, writable, _ = select.select(reads, writes, [], patience)
        return readable, writable

    def _end_pairs(self) -> None:
        """Once a side has ended and was told all, end the connections of both."""
        for pair in [pair for pair in self._pairs if any(direction.over for direction in pair)]:
            self._end(pair)

    def _end(self, pair: tuple[_Direction, _Direction], *, reset: bool = False) -> None:
        self._pairs.remove(pair)
        self._gone += Bytes(*(direction.relayed for direction in pair))
        for direction in pair:
            if reset:
                direction.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            direction.source.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            broker = socket.create_connection(self._target, 1)
        except OSError:
            client.close()
            return
        for each in (client, broker):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.settimeout(0)
        self._pairs.append((_Direction(client, broker, Line()), _Direction(broker, client, Line())))
        self._follow()

    def _obey(self) -> bool:
        """Follow one line of the input, if it has not ended."""
        line = sys.stdin.readline()
        if not line:
            return False
        before, self._state = self._state, json.loads(line)
        if before["listens"] and not self._state["listens"]:
            self._listener.shutdown(socket.SHUT_RD)
        elif self._state["listens"] and not before["listens"]:
            self._listener.listen()
        ended = list(self._pairs) if self._state["cut"] else []
        for pair in ended:
            self._end(pair, reset=True)
        self._follow()
        total = self._gone
        for up, down in self._pairs:
            total += Bytes(up.relayed, down.relayed)
        _say({**dataclasses.asdict(total), "cut": len(ended)})
        return True

    def _follow(self) -> None:
        """Let all lines be as they are to be."""
        for pair in self._pairs:
            for direction, way in zip(pair, Way, strict=True):
                direction.held = way.value in self._state["held"]
                direction.line.delay, direction.line.bandwidth = self._state["rtt"] / 2, self._state["bandwidth"]


def _say(answer: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the harness ends in order, and the relay with it
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _Server((sys.argv[2], int(sys.argv[1]))).run()


if __name__ == "__main__":
    _serve()
