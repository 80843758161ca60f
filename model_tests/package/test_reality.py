"""Does the harness that measures real brokers add the round trip and the bandwidth that it says?"""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator

import pytest

from model_tests.reality.relay import Line, Relay, relay


def _echo(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while data := connection.recv(65_536):
                connection.sendall(data)


@pytest.fixture
def relayed() -> Iterator[Relay]:
    """A relay to a server that sends everything back."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_echo, args=(listener,), daemon=True)
        thread.start()
        with relay(listener.getsockname()[1]) as running:
            yield running
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _connected(running: Relay) -> contextlib.closing[socket.socket]:
    connection = socket.create_connection(("127.0.0.1", running.port), 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return contextlib.closing(connection)


def _received(connection: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        got += connection.recv(65_536)
    return bytes(got)


def _round_trip(connection: socket.socket, data: bytes) -> float:
    begin = time.monotonic()
    connection.sendall(data)
    assert _received(connection, len(data)) == data
    return time.monotonic() - begin


def test_the_round_trip_is_added(relayed: Relay) -> None:
    relayed.shape(rtt=0.005)
    with _connected(relayed) as connection:
        slow = statistics.median(_round_trip(connection, b"x" * 100) for _ in range(100))
    assert slow == pytest.approx(0.005, abs=0.0005)


def test_a_limited_line_is_occupied_by_one_packet_after_the_other() -> None:
    line = Line(delay=0.5, bandwidth=8 * 1460)
    assert [(due, len(part)) for due, part in line.carry(bytes(2 * 1460 + 730), 10)] == [
        (11.5, 1460),
        (12.5, 1460),
        (13.0, 730),
    ]
    assert [due for due, _ in line.carry(bytes(1460), 11)] == [14.0]
    assert [due for due, _ in line.carry(bytes(1460), 20)] == [21.5]


def test_any_number_is_under_way_at_a_time(relayed: Relay) -> None:
    relayed.shape(rtt=0.1)
    with _connected(relayed) as connection:
        begin = time.monotonic()
        for number in range(50):
            connection.sendall(bytes([number]) * 10)
            time.sleep(0.001)
        assert _received(connection, 500) == b"".join(bytes([number]) * 10 for number in range(50))
        assert time.monotonic() - begin < 0.3


def test_the_bandwidth_is_limited(relayed: Relay) -> None:
    relayed.shape(bandwidth=10e6)
    with _connected(relayed) as connection:
        size = 500_000
        seconds = _round_trip(connection, bytes(size))
    assert size * 8 / seconds == pytest.approx(10e6, rel=0.03)
