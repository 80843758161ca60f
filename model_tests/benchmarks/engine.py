"""How fast the engine is: messages sent, delivered and acknowledged a second, by one thread.

Run ``python -m model_tests.benchmarks.engine``.  Medians of several runs, in turn: in memory of processor time, beside
the same traffic through ``queue.Queue`` of the standard library, which promises nothing and is the limit of Python on
this machine; on a disk by the clock, beside persist-queue, whose messages are acknowledged and outlive a crash too.
``--before DIRECTORY`` measures another checkout in turn with this one.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ackfsm import tables
from ackfsm.engine import Broker
from ackfsm.engine.journal import FileJournal, Journal, MemoryJournal, SqliteJournal

__all__ = ["SIDES", "Size", "growth", "main", "on_disk", "throughput"]

_BODY = b"x" * 100
_BATCH = 500


def _call_by_call(broker: Broker, messages: int) -> None:
    """Each message is received and acknowledged before the next is sent."""
    with broker.connect() as connection:
        session = connection.session()
        producer, consumer = session.producer("q"), session.consumer("q")
        for _ in range(messages):
            producer.send(_BODY)
            consumer.receive()


def _in_batches(broker: Broker, messages: int) -> None:
    """Asynchronous sends, a listener, and one sync for a batch."""
    seen = [0]

    def listener(_: object) -> None:
        seen[0] += 1

    with broker.connect() as connection:
        producer = connection.session().producer("q")
        connection.session().consumer("q", listener=listener)
        for _ in range(0, messages, _BATCH):
            for _ in range(_BATCH):
                producer.send(_BODY)
            producer.wait()
    if seen[0] != messages:
        raise AssertionError(f"{seen[0]} of {messages} messages were delivered")


def _standard(messages: int) -> float:
    waiting: queue.Queue[bytes] = queue.Queue()
    begun = time.process_time()
    for _ in range(messages):
        waiting.put(_BODY)
        waiting.get()
        waiting.task_done()
    return messages / (time.process_time() - begun)


@dataclasses.dataclass(frozen=True)
class Size:
    """Bytes of memory in use, and of the journal before and after compaction."""

    memory: int
    journal: int
    compacted: int


_Traffic = Callable[[Broker, int], None]

SIDES: Mapping[str, tuple[_Traffic, Mapping[str, Any]]] = {
    "NON_PERSISTENT, AUTO, call by call": (_call_by_call, {"delivery_mode": "NON_PERSISTENT"}),
    "NON_PERSISTENT, AUTO, in batches": (
        _in_batches,
        {"delivery_mode": "NON_PERSISTENT", "send_mode": "asynchronous"},
    ),
    "PERSISTENT, AUTO, call by call": (_call_by_call, {}),
    "PERSISTENT, AUTO, in batches": (_in_batches, {"send_mode": "asynchronous"}),
    "PERSISTENT, AUTO, in batches, mark in memory": (
        _in_batches,
        {"send_mode": "asynchronous", "redelivery_mark_persisted": False},
    ),
}


def _rates(specification: tables.Specification, messages: int) -> Iterator[tuple[str, float]]:
    """Messages a second of each side, once."""
    for name, (traffic, settings) in SIDES.items():
        broker = Broker(specification=specification, journal=MemoryJournal(), **settings)
        traffic(broker, _BATCH)  # the tables are read on the way
        begun = time.process_time()
        traffic(broker, messages)
        yield name, messages / (time.process_time() - begun)


def throughput(messages: int, repeats: int, before: Path | None = None) -> dict[str, float]:
    """Messages a second of each side, medians; those of the checkout ``before`` too, measured in turn."""
    specification = tables.load()
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, rate in _rates(specification, messages):
            _add(found, name, rate)
        _add(found, "queue.Queue", _standard(messages))
        if before is not None:
            for name, rate in _elsewhere(before, messages).items():
                _add(found, f"before: {name}", rate)
    return {name: statistics.median(rates) for name, rates in found.items()}


def _add(found: dict[str, list[float]], name: str, rate: float) -> None:
    """Add what was measured, and tell of it, since the medians are known at the end alone."""
    of_side = found.setdefault(name, [])
    of_side.append(rate)
    sys.stderr.write(f"  run {len(of_side)}: {_line(name, rate)}")


def _line(name: str, rate: float) -> str:
    return f"{name:54}{rate:>12,.0f} messages/s\n"


def _elsewhere(checkout: Path, messages: int) -> dict[str, float]:
    """The same of another checkout, in a process of its own."""
    asked = ["--json", "--repeats=1", "--growth=0", f"--messages={messages}"]
    done = subprocess.run(
        [sys.executable, "-m", "model_tests.benchmarks.engine", *asked],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        check=True,
    )
    rates: dict[str, float] = json.loads(done.stdout)["messages_per_second"]
    return rates


def on_disk(folder: Path, messages: int, repeats: int) -> dict[str, float]:
    """Messages a second by the clock, each on the disk of ``folder`` before the next is sent; medians."""
    specification = tables.load()
    journals: dict[str, Callable[[Path], Journal]] = {"FileJournal": FileJournal, "SqliteJournal": SqliteJournal}
    found: dict[str, list[float]] = {}
    for turn in range(repeats):
        for name, journal in journals.items():
            with Broker(specification=specification, journal=journal(folder / f"{name}-{turn}")) as broker:
                _call_by_call(broker, _BATCH)
                begun = time.perf_counter()
                _call_by_call(broker, messages)
                rate = messages / (time.perf_counter() - begun)
            _add(found, f"PERSISTENT, AUTO, call by call, {name}", rate)
        _add(found, "persist-queue: SQLiteAckQueue", _persist_queue(folder / f"persist-queue-{turn}", messages))
    return {name: statistics.median(rates) for name, rates in found.items()}


def _persist_queue(folder: Path, messages: int) -> float:
    import persistqueue

    waiting = persistqueue.SQLiteAckQueue(str(folder), auto_commit=True)
    begun = time.perf_counter()
    for _ in range(messages):
        waiting.put(_BODY)
        waiting.ack(waiting.get())
    rate = messages / (time.perf_counter() - begun)
    waiting.close()
    return rate


def growth(messages: int, journal: Journal) -> list[Size]:
    """What is in use after each tenth of ``messages`` through a queue that holds a thousand at most and is never empty.

    ``journal`` is compacted then, as somebody has to who runs a broker for long.
    """
    broker = Broker(specification=tables.load(), journal=journal, send_mode="asynchronous")
    session = broker.connect().session()
    broker.queue("q", max_length=1_000)
    producer, consumer = session.producer("q"), session.consumer("q")
    for _ in range(_BATCH // 2):
        producer.send(_BODY)
    tracemalloc.start()
    sizes = []
    for _ in range(10):
        for _ in range(0, messages // 10, _BATCH):
            for _ in range(_BATCH):
                producer.send(_BODY)
            producer.wait()
            if any(consumer.receive() is None for _ in range(_BATCH)):
                raise AssertionError("a message is missing")
        compaction = journal.compact()
        gc.collect()
        sizes.append(Size(tracemalloc.get_traced_memory()[0], compaction.bytes_before, compaction.bytes_after))
        sys.stderr.write(f"  {type(journal).__name__}, part {len(sizes)}: {sizes[-1].memory >> 10:,} KiB of memory\n")
    tracemalloc.stop()
    return sizes


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--disk", type=Path, metavar="DIRECTORY", help="measure on the disk of this directory too")
    parser.add_argument("--disk-messages", type=int, default=500)
    parser.add_argument("--before", type=Path, metavar="DIRECTORY", help="another checkout, measured in turn")
    parser.add_argument("--growth", type=int, default=100_000, help="messages through a bounded queue; 0: none")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rates = throughput(chosen.messages, chosen.repeats, chosen.before)
    with tempfile.TemporaryDirectory(dir=chosen.disk) as folder:
        if chosen.disk is not None:
            rates |= on_disk(Path(folder), chosen.disk_messages, chosen.repeats)
        journals: dict[str, Journal] = {"memory": MemoryJournal(), "file": FileJournal(Path(folder) / "growth")}
        sizes = {kind: growth(chosen.growth, journal) for kind, journal in journals.items()} if chosen.growth else {}
    if chosen.json:
        told = {kind: [dataclasses.asdict(size) for size in each] for kind, each in sizes.items()}
        json.dump({"messages_per_second": rates, "bytes_in_use": told}, sys.stdout, indent=2)
        return
    out = sys.stdout.write
    for name, rate in rates.items():
        out(_line(name, rate))
    for kind, each in sizes.items():
        out(f"\n{chosen.growth:,} messages through a queue of 1,000, {kind} journal; KiB after each tenth\n")
        for field in dataclasses.fields(Size):
            out(f"{field.name:12}" + " ".join(f"{getattr(size, field.name) >> 10:>7,}" for size in each) + "\n")


if __name__ == "__main__":
    main()
