"""How fast histories are examined, beside reading the same columns alone and a count by Spark, and the most memory.

Run ``python -m model_tests.benchmarks.verify`` (``--help`` tells more).  One history is made from a seed, with
anomalies in known places, the other one is a recorded run of a real broker, repeated; the benchmark fails if not
exactly what is in them is found.  Each side is a process of its own, and the table has the whole of it, its start
included.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow.parquet as pq

from model_tests.benchmarks.plot import drawn, slope
from model_tests.support.verify.large_history import CONFIG, Planted, blocks, write_lines, write_parquet
from model_tests.support.verify.repeated_history import FOUND, MESSAGES, write_repeated

if TYPE_CHECKING:
    from ackfsm import tables, verify
    from ackfsm.terms import Configuration

__all__ = ["main"]

SEED: Final = 1
EACH: Final = 20
"""Of each planted anomaly so many messages."""

_LINES: Final = 4
"""A message has so many lines."""

BATCH: Final = 1 << 21
"""Rows of a file of a stream."""

REPEATED: Final = "recorded"
"""The name of the file of the recorded run."""

_MOST_LINES: Final = 10_000_000
_ON_SPARK: Final = ("Spark", "Spark's groupBy", "monitor")


Side: TypeAlias = "Callable[[Path, int, int], Callable[[], int]]"
"""Prepares what is measured, which returns how many events there were."""


def _reading(path: Path, _: int, workers: int) -> Callable[[], int]:
    """Reading the columns, and nothing else."""

    def read() -> int:
        groups = range(pq.ParquetFile(path).num_row_groups)
        with ThreadPoolExecutor(workers) as executor:
            return sum(
                executor.map(lambda group: len(pq.ParquetFile(path).read_row_group(group, use_threads=False)), groups)
            )

    return read


def _folded(path: Path, messages: int, workers: int) -> Callable[[], int]:
    from ackfsm import tables, verify

    specification = tables.load()

    def folded() -> int:
        findings = verify.examine_path(
            path,
            specification,
            functools.partial(_configured, specification),
            skew=None,
            workers=workers,
            folded_from=0,
        )
        return _checked(findings, path, messages)

    return folded


def _configured(specification: tables.Specification, header: verify.Header | None) -> Configuration:
    """What the header says."""
    return specification.configure(None, header.config if header is not None else None)


def _at_once(path: Path, messages: int, _: int) -> Callable[[], int]:
    from ackfsm import tables, verify

    specification = tables.load()
    configuration = specification.configure(None, CONFIG)
    return lambda: _checked(verify.examine(verify.read(path), specification, configuration, skew=None), path, messages)


def _on_spark(path: Path, messages: int, workers: int) -> Callable[[], int]:
    from ackfsm import spark, tables

    session, specification = spark.session(f"local[{workers}]"), tables.load()

    def examined() -> int:
        findings = spark.examine(
            path,
            specification,
            functools.partial(_configured, specification),
            session,
            skew=None,
        )
        return _checked(findings, path, messages)

    return examined


def _grouped(path: Path, messages: int, workers: int) -> Callable[[], int]:
    """How many rows each message has, by Spark alone."""
    from pyspark.sql import functions as sf

    from ackfsm import spark

    session = spark.session(f"local[{workers}]")

    def grouped() -> int:
        rows = session.read.parquet(f"file:{path}") if path.suffix == ".parquet" else session.read.json(f"file:{path}")
        counted = rows.groupBy("message").count().agg(sf.count("*"), sf.sum("count")).collect()[0]
        if counted[0] < messages:
            raise SystemExit(f"Spark found {counted[0]} messages")
        return int(counted[1])

    return grouped


def _watched(path: Path, messages: int, workers: int) -> Callable[[], int]:
    """A stream of files, each a batch of :data:`BATCH` rows."""
    from ackfsm import spark

    session = spark.session(f"local[{workers}]")

    def watched() -> int:
        reader = session.readStream.schema(spark.EVENT_SCHEMA).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(f"file:{path}/*.parquet")
        with tempfile.TemporaryDirectory() as folder:
            state, told = Path(folder) / "state", Path(folder) / "told"
            query = spark.monitor(stream, CONFIG, state=state, alerts=told, delay="10ms", availableNow=True)
            query.awaitTermination()
            found: dict[str, set[str]] = {}
            for row in pq.read_table(told).to_pylist():
                found.setdefault(row["kind"], set()).add(row["message"])
            _expect(found, messages)
            return int(spark.monitored(state)["events"])

    return watched


def _write_stream(folder: Path, messages: int, planted: Planted) -> None:
    folder.mkdir()
    for place, block in enumerate(blocks(messages, planted, BATCH)):
        file = folder / f"{place:05}.parquet"
        pq.write_table(block, file, row_group_size=BATCH // 2)
        os.utime(file, (1_000_000 + place,) * 2)  # Spark takes the oldest first


def _checked(findings: verify.Findings, path: Path, messages: int) -> int:
    found = {anomaly.value: each for anomaly, each in findings.anomalies.items() if each.found}
    if path.stem == REPEATED:
        counts = {name: each.found for name, each in found.items()}
        if counts != {name: count * (messages // MESSAGES) for name, count in FOUND.items()}:
            raise SystemExit(f"other anomalies were found than in the recorded run: {counts}")
    else:
        _expect({name: set(each.examples) for name, each in found.items()}, messages)
    return findings.events


def _expect(found: Mapping[str, set[str]], messages: int) -> None:
    planted = Planted.of(messages, EACH, SEED).as_mapping()
    expected = {name: {f"order-{number}-7f3a" for number in numbers} for name, numbers in planted.items()}
    if found != expected:
        raise SystemExit(f"other anomalies were found than were planted: {found}")


def _processor() -> float:
    """Seconds of processor time of this process and of all below it, those of Spark too (Linux)."""
    used, below = dict[int, float](), dict[int, list[int]]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = file.read_text().rpartition(")")[2].split()
            number = int(file.parent.name)
            used[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            below.setdefault(int(fields[1]), []).append(number)
    found, todo = 0.0, [os.getpid()]
    while todo:
        number = todo.pop()
        found += used.get(number, 0.0)
        todo += below.get(number, [])
    return found


SIDES: Final[Mapping[str, Side]] = {
    "read": _reading,
    "folded": _folded,
    "at once": _at_once,
    "Spark": _on_spark,
    "Spark's groupBy": _grouped,
    "monitor": _watched,
}


def _measure(side: str, path: Path, messages: int, workers: int) -> None:
    """Write what one side took, as JSON."""
    measured = SIDES[side](path, messages, workers)
    began, used_before = time.perf_counter(), _processor()
    events = measured()
    taken, processor = time.perf_counter() - began, _processor() - used_before
    told = {"events": events, "clock": taken, "processor": processor, "memory": _most_memory()}
    json.dump({**told, "whole processor": _processor()}, sys.stdout)


def _most_memory() -> int:
    """Bytes (Linux).  ``getrusage`` would tell of the process that started this one, if that had more."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def _median(repeat: int, side: str, path: Path, messages: int, workers: int) -> Mapping[str, float]:
    """Of so many measurements the medians."""
    found = [_measured(side, path, messages, workers) for _ in range(repeat)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def _measured(side: str, path: Path, messages: int, workers: int) -> Mapping[str, float]:
    """What one run in a process of its own took."""
    arguments = ["--measure", side, "--path", str(path), "--messages", str(messages), "--workers", str(workers)]
    command = [sys.executable, "-m", "model_tests.benchmarks.verify", *arguments]
    began = time.perf_counter()
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {**found, "whole clock": time.perf_counter() - began}


def _numbers_of_workers(side: str, most: int) -> Sequence[int]:
    return [1] if side == "at once" else [most] if side in _ON_SPARK else sorted({1, most})


def _over_sizes(sizes: Sequence[int], repeat: int, plot: Path | None, *, lines: bool) -> None:
    """Measure one process over histories of so many events, and draw it."""
    found: dict[str, list[tuple[float, float]]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            messages, path = size // _LINES, Path(folder) / "h.parquet"
            write_parquet(path, messages, Planted.of(messages, EACH, SEED))
            forms = {"read alone": ("read", path), "folded": ("folded", path)}
            if lines and size <= _MOST_LINES:
                forms["folded, JSONL"] = "folded", Path(folder) / "h.jsonl"
                write_lines(forms["folded, JSONL"][1], messages, Planted.of(messages, EACH, SEED))
            for name, (side, file) in forms.items():
                processor = _median(repeat, side, file, messages, 1)["processor"]
                found.setdefault(name, []).append((size, processor))
                sys.stdout.write(f"| {name} | {size} | {processor:.2f} s | {size / processor / 1e6:.2f} |\n")
                sys.stdout.flush()
    for name, points in found.items():
        sys.stdout.write(f"slope of {name}: {slope(points):.2f}\n")
    if plot is not None:
        plot.write_text(drawn(found, "events", "seconds of processor time"))


def _table(folder: Path, chosen: argparse.Namespace) -> None:
    """Print each row when it is measured."""
    sys.stdout.write("| history | side | threads | seconds | of processor time | million events a second | memory |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    repeated = -(-chosen.messages // MESSAGES)
    for name, path, messages in _histories(folder, chosen, repeated):
        sides = [*(["read"] if path.suffix == ".parquet" else []), "folded"]
        sides += ["at once"] if chosen.at_once and path.stem != REPEATED else []
        sides += ["Spark"] if chosen.spark and path.stem != REPEATED else []  # its kept messages exceed Spark's heap
        sides += ["Spark's groupBy"] if chosen.spark else []
        for side in ["monitor"] if path.is_dir() else sides:
            for workers in _numbers_of_workers(side, chosen.workers):
                found = _median(chosen.repeat, side, path, messages, workers)
                clock, processor = found["whole clock"], found["whole processor"]
                memory = "" if side in _ON_SPARK else f"{found['memory'] / 1e9:.2f} GB"  # of one process
                rate = f"{found['events'] / clock / 1e6:.2f}"
                sys.stdout.write(
                    f"| {name} | {side} | {workers} | {clock:.1f} | {processor:.1f} | {rate} | {memory} |\n"
                )
                sys.stdout.flush()


def _histories(folder: Path, chosen: argparse.Namespace, repeated: int) -> Iterator[tuple[str, Path, int]]:
    """The name, file and messages of each history, written when it is its turn."""
    messages, planted = chosen.messages, Planted.of(chosen.messages, EACH, SEED)
    write_repeated(folder / f"{REPEATED}.parquet", repeated)
    yield "recorded", folder / f"{REPEATED}.parquet", repeated * MESSAGES
    write_parquet(folder / "made.parquet", messages, planted)
    yield "made", folder / "made.parquet", messages
    if chosen.lines:
        write_lines(folder / "made.jsonl", messages, planted)
        yield "made, JSONL", folder / "made.jsonl", messages
    if chosen.spark:
        _write_stream(folder / "stream", messages, planted)
        yield "made, a stream", folder / "stream", messages


def main() -> int:
    """Print a table: a row for each side and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000, help="each has four lines, of the recorded run five")
    parser.add_argument("--at-once", action="store_true", help="also without chunks, which takes much memory")
    parser.add_argument(
        "--spark", action="store_true", help="also on Spark, beside its own groupBy, and as a stream that is watched"
    )
    parser.add_argument("--sizes", help="instead, how the time grows with the events: as 1000000,10000000")
    parser.add_argument("--plot", type=Path, help="with --sizes: draw it into this SVG")
    parser.add_argument("--lines", action="store_true", help="also as JSONL")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3, help="of so many runs the median")
    parser.add_argument("--measure", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        _measure(arguments.measure, arguments.path, arguments.messages, arguments.workers)
        return 0
    if arguments.sizes:
        sizes = [int(each) for each in arguments.sizes.split(",")]
        _over_sizes(sizes, arguments.repeat, arguments.plot, lines=arguments.lines)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _table(Path(folder), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
