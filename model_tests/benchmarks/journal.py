"""How fast journals are: messages stored a second, each batch on stable storage before the next.

Run ``python -m model_tests.benchmarks.journal`` (``--help`` tells more).  All sides do the same batches, one batch each
in turn, in the same folder; the table has medians.  The raw side appends the messages to a file and calls
``fdatasync``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from ackfsm.engine.journal import FileJournal, Journal, Kind, MemoryJournal, SqliteJournal

__all__ = ["main", "recovery", "stored"]

_Batch: TypeAlias = Callable[[], None]
"""Store one batch, durably."""
_Side: TypeAlias = Callable[[Path, int, bytes], tuple[_Batch, Callable[[], None]]]
"""Folder, messages in a batch, one message: what stores a batch, and what ends it."""


def _raw(folder: Path, each: int, message: bytes) -> tuple[_Batch, Callable[[], None]]:
    file = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT)
    offset = 0

    def batch() -> None:
        nonlocal offset
        waiting = []
        for _ in range(each):
            waiting.append(message)  # noqa: PERF401 - messages come one by one
        offset += os.pwrite(file, b"".join(waiting), offset)
        os.fdatasync(file)

    return batch, lambda: os.close(file)


def _journal(opened: Callable[[Path], Journal]) -> _Side:
    def side(folder: Path, each: int, message: bytes) -> tuple[_Batch, Callable[[], None]]:
        journal, key = opened(folder), 0

        def batch() -> None:
            nonlocal key
            for _ in range(each):
                key += 1
                journal.append(Kind.STORE, key, message)
            journal.sync()

        return batch, journal.close

    return side


def _persist_queue(folder: Path, each: int, message: bytes) -> tuple[_Batch, Callable[[], None]]:
    import persistqueue

    queue = persistqueue.SQLiteQueue(str(folder / "queue"), auto_commit=False)

    def batch() -> None:
        for _ in range(each):
            queue.put(message)
        queue.task_done()

    return batch, queue.close


SIDES: Mapping[str, _Side] = {
    "raw append and fdatasync": _raw,
    "FileJournal": _journal(lambda folder: FileJournal(folder / "file")),
    "SqliteJournal": _journal(lambda folder: SqliteJournal(folder / "sqlite")),
    "persist-queue": _persist_queue,
    "MemoryJournal": _journal(lambda _: MemoryJournal()),
}


def stored(folder: Path, *, batches: int, each: int, size: int) -> dict[str, float]:
    """Messages a second of each side: medians of ``batches``, each side's next batch in turn, the order changing."""
    message = os.urandom(size)
    taken: dict[str, list[float]] = {name: [] for name in SIDES}
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        open_ = {name: side(Path(inside), each, message) for name, side in SIDES.items()}
        order = list(SIDES)
        for _ in range(batches):
            for name in order:
                begun = time.perf_counter()
                open_[name][0]()
                taken[name].append(time.perf_counter() - begun)
            order.append(order.pop(0))
        for _, end in open_.values():
            end()
    return {name: each / statistics.median(seconds) for name, seconds in taken.items()}


def recovery(folder: Path, records: int, size: int, repeats: int) -> dict[str, float]:
    """Seconds to open a journal with so many live records, and its bytes for each record."""
    seconds = []
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        journal = FileJournal(Path(inside), segment_bytes=2**30)
        for key in range(1, records + 1):
            journal.append(Kind.STORE, key, bytes(size))
            if key % 1_000 == 0:
                journal.write()
        journal.close()
        total = sum(path.stat().st_size for path in Path(inside).iterdir())
        for _ in range(repeats):
            begun = time.perf_counter()
            journal = FileJournal(Path(inside), segment_bytes=2**30)
            seconds.append(time.perf_counter() - begun)
            journal.close()
    return {"records": records, "seconds": statistics.median(seconds), "bytes_per_record": total / records}


def growth(folder: Path, messages: int, depth: int) -> dict[str, float]:
    """Messages a second through a bounded queue, and the most that its folder ever took."""
    most = 0
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        journal = FileJournal(Path(inside), segment_bytes=2**20)
        begun = time.perf_counter()
        for key in range(1, messages + 1):
            journal.append(Kind.STORE, key, b"x" * 100)
            if key > depth:
                journal.append(Kind.REMOVE, key - depth)
            if key % 1_000 == 0:
                journal.write()
            if key % 10_000 == 0:
                most = max(most, sum(path.stat().st_size for path in Path(inside).iterdir()))
        taken = time.perf_counter() - begun
        journal.close()
    return {"messages": messages, "messages_per_second": messages / taken, "most_bytes": most}


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure (default: here)")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--size", type=int, default=1_024, help="bytes of a message")
    parser.add_argument("--records", type=int, default=1_000_000, help="for the recovery, and for the growth")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rates = dict[int, Mapping[str, float]]()
    for each in (1, 10, 100):
        rates[each] = stored(chosen.folder, batches=chosen.batches, each=each, size=chosen.size)
        for name, rate in rates[each].items():
            sys.stderr.write(f"  {name}, in batches of {each}: {rate:,.0f} messages/s\n")
    found = recovery(chosen.folder, chosen.records, 100, 3)
    grown = growth(chosen.folder, chosen.records, 1_000)
    if chosen.json:
        json.dump({"messages_per_second": rates, "recovery": found, "growth": grown}, sys.stdout, indent=2)
        return
    _print(rates, found, grown)


def _print(rates: Mapping[int, Mapping[str, float]], found: Mapping[str, float], grown: Mapping[str, float]) -> None:
    out = sys.stdout.write
    out(f"{'messages/s, in batches of':26}" + "".join(f"{each:>12,}{'of raw':>8}" for each in rates) + "\n")
    for name in SIDES:
        cells = (
            f"{rates[each][name]:>12,.0f}{rates[each][name] / rates[each][next(iter(SIDES))]:>8.2f}" for each in rates
        )
        out(f"{name:26}{''.join(cells)}\n")
    out(f"recovery: {found['records']:,} records in {found['seconds']:.2f} s,")
    out(f" {found['bytes_per_record']:.0f} bytes each (100 of them data)\n")
    out(f"bounded queue: {grown['messages']:,} messages at {grown['messages_per_second']:,.0f}/s,")
    out(f" never more than {grown['most_bytes']:,} bytes on disk\n")


if __name__ == "__main__":
    main()
