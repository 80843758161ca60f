"""Faults of the network and of disks: do they break what they say, for as long as they say?"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm.driving.live.faults.disk import small_disk
from ackfsm.driving.live.faults.relay import Bytes, Relay, Way, relay
from ackfsm.terms import InputError
from model_tests.support.live.losing_disk import losing_disk
from model_tests.support.tools import missing

Connect = Callable[[], socket.socket]
_SILENCE = 0.1
"""Seconds in which nothing comes that is held."""


class Echo:
    """A server that sends back what it gets, one thread for each connection."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.connections: list[socket.socket] = []
        self.got: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        ended = b"reset"
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                self.got.append(data)
                connection.sendall(data)
            ended = b"end"
        self.got.append(ended)

    def close(self) -> None:
        """End it with its connections."""
        for each in (self.listener, *self.connections):
            each.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def relayed(echo: Echo) -> Iterator[Relay]:
    with relay(echo.port) as running:
        yield running


@pytest.fixture
def connect(relayed: Relay) -> Iterator[Callable[[], socket.socket]]:
    """Makes connections through the relay that work."""
    with contextlib.ExitStack() as stack:

        def connected() -> socket.socket:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", relayed.port), 5))
            connection.sendall(b"first")
            assert connection.recv(99) == b"first"
            return connection

        yield connected


def silent(connection: socket.socket) -> bool:
    connection.settimeout(_SILENCE)
    try:
        return connection.recv(99) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)


def until(echo: Echo, wanted: bytes) -> None:
    end = time.monotonic() + 5
    while wanted not in echo.got:
        assert time.monotonic() < end, f"{wanted!r} is not in {echo.got}"
        time.sleep(0.01)


def test_a_cut_resets_both_sides_and_lets_new_ones_in(relayed: Relay, echo: Echo, connect: Connect) -> None:
    first, second = connect(), connect()
    assert relayed.cut() == 2
    for each in (first, second):
        with pytest.raises(ConnectionResetError):
            each.recv(99)
    until(echo, b"reset")
    connect()
    assert relayed.cut() <= 1


def test_refused_connections_are_refused_and_old_ones_stay(relayed: Relay, connect: Connect) -> None:
    old = connect()
    for _ in range(2):
        relayed.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", relayed.port), 5)
        old.sendall(b"on")
        assert old.recv(99) == b"on"
        relayed.heal()
        connect()


@pytest.mark.parametrize("way", Way)
def test_one_way_is_held_and_comes_after_the_repair(way: Way, relayed: Relay, echo: Echo, connect: Connect) -> None:
    connection = connect()
    relayed.blackhole(way)
    connection.sendall(b"held")
    assert silent(connection)
    assert (b"held" in echo.got) is (way is Way.DOWN)
    relayed.heal()
    assert connection.recv(99) == b"held"
    assert relayed.relayed() == Bytes(9, 9)


def test_new_connections_are_held_too_and_their_end(relayed: Relay, echo: Echo) -> None:
    relayed.blackhole(Way.UP, Way.DOWN)
    with socket.create_connection(("127.0.0.1", relayed.port), 5) as connection:
        connection.sendall(b"held")
        assert silent(connection)
    assert echo.got == []
    relayed.heal()
    until(echo, b"held")
    while len(echo.got) < 2:
        time.sleep(0.01)
    assert echo.got[1] in {b"end", b"reset"}  # what came back nobody took


def test_a_cut_throws_away_what_was_held(relayed: Relay, echo: Echo, connect: Connect) -> None:
    connection = connect()
    relayed.blackhole(Way.UP)
    connection.sendall(b"held")
    assert silent(connection)
    relayed.cut()
    relayed.heal()
    connect()
    assert b"held" not in echo.got


def test_a_delay_strikes_connections_that_are_there(relayed: Relay, connect: Connect) -> None:
    connection = connect()
    for rtt in (0.2, 0.0):
        relayed.shape(rtt=rtt)
        begin = time.monotonic()
        connection.sendall(b"slow")
        assert connection.recv(99) == b"slow"
        assert time.monotonic() - begin >= rtt


def test_the_relay_ends_with_a_killed_process_that_made_it(echo: Echo) -> None:
    program = "from ackfsm.driving.live.faults.relay import Relay; import sys, time\n"
    program += "print(Relay(int(sys.argv[1])).port, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program, str(echo.port)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        socket.create_connection(("127.0.0.1", port), 5).close()
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while _listens(port):
        assert time.monotonic() < end


def _listens(port: int) -> bool:
    with contextlib.suppress(ConnectionResetError), socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != errno.ECONNREFUSED
    return True


def test_a_disk_is_full_and_has_room_again(tmp_path: Path) -> None:
    try:
        with small_disk(tmp_path / "disk", 2**20) as disk:
            file = disk.folder / "file"
            file.write_bytes(bytes(5_000))
            disk.fill(leave=8_192)
            file.write_bytes(bytes(10_000))
            disk.fill()
            with pytest.raises(OSError) as caught, file.open("ab") as appended:  # noqa: PT011 - its number is looked at
                appended.write(bytes(10_000))
            assert caught.value.errno == errno.ENOSPC
            disk.empty()
            file.write_bytes(bytes(500_000))
    except InputError as error:
        missing(str(error))
    assert list((tmp_path / "disk").iterdir()) == []


def test_without_root_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for disk in (small_disk(tmp_path / "disk", 2**20), losing_disk(tmp_path / "disk")):
        with pytest.raises(InputError, match="run this as root, or leave the fault out"), disk:
            pass
