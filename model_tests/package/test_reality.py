"""Does the harness that measures real brokers add the round trip and the bandwidth that it says?"""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm.driving.live.faults.relay import Bytes, Line, Relay, relay
from model_tests.reality.points import SIDES, Side, points
from model_tests.reality.runs import Outcome, read, written
from model_tests.support.tables import shipped

_SIZE = 250_000


def _echo(connection: socket.socket) -> None:
    while data := connection.recv(65_536):
        connection.sendall(data)


def _count(connection: socket.socket) -> None:
    """Say when a size has come.  What is sent back would wait once more wherever the machine has let it be late."""
    while len(_received(connection, _SIZE)) == _SIZE:
        connection.sendall(b".")


@contextlib.contextmanager
def _server(work: Callable[[socket.socket], None]) -> Iterator[Relay]:
    """A relay to a server of one connection."""

    def serve() -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            work(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with relay(listener.getsockname()[1]) as running:
            yield running
        thread.join(5)


def _connected(running: Relay) -> contextlib.closing[socket.socket]:
    connection = socket.create_connection(("127.0.0.1", running.port), 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return contextlib.closing(connection)


def _received(connection: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size and (data := connection.recv(min(65_536, size - len(got)))):
        got += data
    return bytes(got)


def _round_trip(connection: socket.socket, data: bytes, back: int) -> float:
    begin = time.monotonic()
    connection.sendall(data)
    assert len(_received(connection, back)) == back
    return time.monotonic() - begin


def test_the_round_trip_is_added() -> None:
    with _server(_echo) as relayed:
        relayed.shape(rtt=0.005)
        with _connected(relayed) as connection:
            assert min(_round_trip(connection, bytes(100), 100) for _ in range(30)) >= 0.005


def test_no_more_than_the_delay_is_added_where_the_bandwidth_is_not_limited() -> None:
    line = Line(delay=0.0025, bandwidth=None)
    assert [due for due, _ in line.carry(bytes(100), 10)] == [10.0025]


def test_a_limited_line_is_occupied_by_one_packet_after_the_other() -> None:
    line = Line(delay=0.5, bandwidth=8 * 1460)
    assert [(due, len(part)) for due, part in line.carry(bytes(2 * 1460 + 730), 10)] == [
        (11.5, 1460),
        (12.5, 1460),
        (13.0, 730),
    ]
    assert [due for due, _ in line.carry(bytes(1460), 11)] == [14.0]
    assert [due for due, _ in line.carry(bytes(1460), 20)] == [21.5]


def test_any_number_is_under_way_at_a_time() -> None:
    line = Line(delay=0.5, bandwidth=None)
    assert [due for now in (10, 10.125, 10.25) for due, _ in line.carry(bytes(10), now)] == [10.5, 10.625, 10.75]
    with _server(_echo) as relayed:
        relayed.shape(rtt=0.1)
        with _connected(relayed) as connection:
            for number in range(50):
                connection.sendall(bytes([number]) * 10)
                time.sleep(0.001)
            assert _received(connection, 500) == b"".join(bytes([number]) * 10 for number in range(50))


def test_the_bandwidth_is_limited() -> None:
    with _server(_count) as relayed:
        relayed.shape(bandwidth=10e6)
        with _connected(relayed) as connection:
            rates = [_SIZE * 8 / _round_trip(connection, bytes(_SIZE), 1) for _ in range(4)]
        assert max(rates) < 10.3e6  # a busy machine makes it slower, and nothing faster
        assert relayed.relayed() == Bytes(4 * _SIZE, 4)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: f"{side.broker}-{side.protocol}")
def test_points_are_systems_of_the_tables(side: Side) -> None:
    for point in points(side):
        settings = {key: value for key, value in point.config.items() if key not in {"profile", "batch"}}
        shipped().configure(point.config["profile"], settings)


def test_a_point_is_written_with_all_of_its_repeats_and_its_median() -> None:
    point = SIDES[0].window(16, 5)
    record = point.record([Outcome(300, 1.0, 310), Outcome(100, 1.0, 110), Outcome(400, 2.0, 410)])
    assert (record["rate"], record["repeats"]) == (200.0, [300.0, 100.0, 200.0])
    assert (record["messages"], record["seconds"]) == (400, 2.0)
    assert record["config"]["publish_window"] == 16


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [{"kind": "machine", "cpus": 2}, {"kind": "point", "rate": 1.5}]
    file = tmp_path / "measured.jsonl"
    file.write_text(written(records))
    assert read(file) == records
    file.write_text('{"kind": "guess"}\n')
    with pytest.raises(ValueError, match=r"measured\.jsonl:1: not a record"):
        read(file)


def test_what_was_measured_is_enough_to_compare() -> None:
    records = read()
    assert [record["kind"] for record in records].count("machine") == 1
    measured = [record for record in records if record["kind"] == "point"]
    for broker in {side.broker for side in SIDES}:
        assert sum(record["broker"] == broker for record in measured) >= 10
    for record in measured:
        assert len(record["repeats"]) >= 3
        assert statistics.median(record["repeats"]) == record["rate"]


@pytest.mark.parametrize("side", SIDES, ids=lambda side: f"{side.broker}-{side.protocol}")
def test_every_point_was_measured_with_the_costs_of_its_side(side: Side) -> None:
    mine = [
        record for record in read() if (record.get("broker"), record.get("protocol")) == (side.broker, side.protocol)
    ]
    found = [
        (record["config"], record["rtt_ms"], record["message_size"], record["bandwidth_bit_s"])
        for record in mine
        if record["kind"] == "point"
    ]
    assert found == [(point.config, point.rtt_ms, point.message_size, point.bandwidth) for point in points(side)]
    names = {record["name"] for record in mine if record["kind"] == "parameter"}
    assert names >= {
        "blocking_send",
        "sync_time",
        "message_cost",
        "commit_cost",
        "transacted_message_cost",
        "consume_cost",
    }
