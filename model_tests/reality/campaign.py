"""Start each broker in turn, put the relay before it, measure its parameters and points, and write them down."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from ackfsm.driving.live.brokers import BROKERS, LiveBroker
from ackfsm.driving.live.brokers.artemis import JARS
from ackfsm.driving.live.faults.relay import relay
from ackfsm.driving.live.java import jars
from model_tests.reality import pika_client
from model_tests.reality.bench import Bench, Measure, parameters, port_of
from model_tests.reality.jms_client import OPTIONS, jms_client
from model_tests.reality.points import SIDES, Side, points
from model_tests.reality.runs import MEASURED, rounded, written
from model_tests.support.brokers import had, running

__all__ = ["main"]

_POLICIES: Final = {os.SCHED_OTHER: "time sharing", os.SCHED_RR: "real time, round robin"}
_PRIORITY: Final = 10


def main() -> int:
    """Measure what the command line asks for, and write it to a file: 0, or 1 if something could not be measured."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: _ended())
    if arguments.real_time:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))  # what is started inherits it
    campaign = _Campaign(arguments)
    try:
        campaign.run()
    except (pytest.skip.Exception, pytest.fail.Exception) as lack:
        sys.stderr.write(f"{lack}\n")
        return 1
    return 1 if campaign.failed else 0


def _arguments() -> argparse.Namespace:
    brokers = list(dict.fromkeys(side.broker for side in SIDES))
    parser = argparse.ArgumentParser(prog="python -m model_tests.reality", description=__doc__)
    parser.add_argument("brokers", nargs="*", help=f"which: {', '.join(brokers)} (default: all)")
    parser.add_argument("--output", type=Path, default=MEASURED, help="the file of records (default: %(default)s)")
    parser.add_argument(
        "--data", type=Path, help="below which folder the brokers keep their data (default: that of temporary files)"
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each repeat counts (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="of each point (default: %(default)s)")
    parser.add_argument(
        "--real-time", action="store_true", help="let everything go before other work of the machine (for root)"
    )
    arguments = parser.parse_args()
    if strange := sorted(set(arguments.brokers) - set(brokers)):
        parser.error(f"there is no broker {strange[0]!r}; there are {', '.join(brokers)}")
    arguments.brokers = arguments.brokers or brokers
    return arguments


def _ended() -> NoReturn:
    raise SystemExit(143)


class _Campaign:
    """All that is measured by one command."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._machine: dict[str, Any] = {}
        self._records: list[dict[str, Any]] = []
        self.failed = False

    def run(self) -> None:
        """Measure, and write after each broker what there is."""
        begin = time.monotonic()
        self._machine = _machine(self._arguments.data)
        self._records += list(_relay_itself())
        for name in self._arguments.brokers:
            with tempfile.TemporaryDirectory(prefix="reality-", dir=self._arguments.data) as folder:
                self._measure_broker(name, Path(folder))
            self._machine["load"].append(round(os.getloadavg()[0], 2))
            self._machine["minutes"] = round((time.monotonic() - begin) / 60, 1)
            self._arguments.output.write_text(written([self._machine, *self._records]), encoding="utf-8")

    def _measure_broker(self, name: str, folder: Path) -> None:
        options = self._arguments
        with (
            _started(name, folder, self._machine["sync"]["median"]) as (broker, measure),
            relay(port_of(broker)) as line,
        ):
            self._machine["versions"].append(f"{broker.name} {broker.version}")
            bench = Bench(broker, line, measure, seconds=options.seconds, repeats=options.repeats)
            for side in SIDES:
                if side.broker == name:
                    self._measure_side(bench, side)

    def _measure_side(self, bench: Bench, side: Side) -> None:
        bench.warm_up(side)
        for record in parameters(bench, side):
            self._keep(record, f"{record['name']} {record['value']} {record['unit']}")
        for point in points(side):
            about = f"{point.what} {point.config} rtt {point.rtt_ms} ms, {point.message_size} bytes, {point.bandwidth}"
            try:
                measured = bench.measure(point)
            except (RuntimeError, OSError) as error:
                self.failed = True
                sys.stderr.write(f"{side.broker} {side.protocol} {about}: {error!r}\n")
                continue
            record = point.record(measured.outcomes) | measured.wire
            self._keep(record, f"{about}: {record['rate']}/s of {record['repeats']}")

    def _keep(self, record: dict[str, Any], said: str) -> None:
        self._records.append(record)
        sys.stdout.write(f"{record['broker']} {record['protocol']} {said}\n")
        sys.stdout.flush()


@contextlib.contextmanager
def _started(name: str, folder: Path, sync_time: float) -> Iterator[tuple[LiveBroker, Measure]]:
    """A broker and its client.

    Artemis syncs by a timer, every 3.3 ms by default.  As ``artemis create`` does, it is set to the time of a sync.
    """
    settings = {"journal-buffer-timeout": str(int(sync_time * 1e9))} if name == "artemis" else None
    with running(BROKERS[name], settings, below=folder, jvm=OPTIONS) as broker:
        if name == "rabbitmq":
            yield broker, pika_client.measure
            return
        with had():
            classes = jars(JARS)  # which holds the clients of both
        with jms_client(classes, folder) as client:
            yield broker, client.measure


def _machine(data: Path | None) -> dict[str, Any]:
    return {
        "kind": "machine",
        "cpus": os.cpu_count(),
        "load": [round(os.getloadavg()[0], 2)],
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "scheduling": _POLICIES.get(os.sched_getscheduler(0), "other"),
        "sync": _sync(data),
        "versions": [f"Python {platform.python_version()}", f"Linux {platform.release()}", _java()],
        "java_options": list(OPTIONS),
    }


def _sync(data: Path | None) -> dict[str, float]:
    """Seconds of fdatasync after 512 bytes on the disk of the brokers: the median and the 95th percentile."""
    times = []
    with tempfile.NamedTemporaryFile(dir=data) as file:
        for _ in range(200):
            file.write(bytes(512))
            file.flush()
            begin = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(time.monotonic() - begin)
    return {"median": rounded(statistics.median(times)), "p95": rounded(statistics.quantiles(times, n=20)[-1])}


def _java() -> str:
    with contextlib.suppress(OSError):
        return subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[0]  # noqa: S607
    return "no Java"


def _relay_itself() -> Iterator[dict[str, Any]]:
    """What the relay adds where it should add nothing, and by how much it misses a round trip of 5 ms."""
    with _echo() as port, relay(port) as line:
        bare = _round_trip(port)
        for name, rtt in (("relay_added", 0.0), ("relay_error_at_5_ms", 0.005)):
            line.shape(rtt)
            value = _round_trip(line.port) - bare - rtt
            how = (
                "median round trip of 100 bytes to an echo by the relay, less that without it, less what it should add"
            )
            yield {"kind": "parameter", "broker": None, "name": name, "value": rounded(value), "unit": "s", "how": how}


def _round_trip(port: int) -> float:
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(300):
            begin = time.monotonic()
            connection.sendall(bytes(100))
            connection.recv(100, socket.MSG_WAITALL)
            times.append(time.monotonic() - begin)
    return statistics.median(times)


@contextlib.contextmanager
def _echo() -> Iterator[int]:
    """The port of a server that sends everything back."""

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with connection:
                    while data := connection.recv(65_536):
                        connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
