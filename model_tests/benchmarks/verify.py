"""How fast histories are examined: events a second, beside reading the same columns alone, and the most memory.

Run ``python -m model_tests.benchmarks.verify`` (``--help`` tells more).  The history is made from a seed, with
anomalies in known places; the benchmark fails if not exactly these are found.  Each side is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from ackfsm import spark, tables, verify
from ackfsm.terms import Configuration
from model_tests.support.verify.large_history import Planted, write_lines, write_parquet

__all__ = ["main"]

SEED: Final = 1
EACH: Final = 20
"""Of each planted anomaly so many messages."""

_LINES: Final = 4
"""A message has so many lines."""


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
    specification = tables.load()

    def folded() -> int:
        findings = verify.examine_path(path, specification, _jms, skew=None, workers=workers, folded_from=0)
        return _checked(findings, messages)

    return folded


def _at_once(path: Path, messages: int, _: int) -> Callable[[], int]:
    specification = tables.load()
    configuration = specification.configure("jms")
    return lambda: _checked(verify.examine(verify.read(path), specification, configuration, skew=None), messages)


def _on_spark(path: Path, messages: int, workers: int) -> Callable[[], int]:
    session, specification = spark.session(f"local[{workers}]"), tables.load()
    return lambda: _checked(spark.examine(path, specification, _jms, session, skew=None), messages)


def _grouped(path: Path, messages: int, workers: int) -> Callable[[], int]:
    """How many rows each message has, by Spark alone."""
    session = spark.session(f"local[{workers}]")

    def grouped() -> int:
        rows = session.read.parquet(f"file:{path}") if path.suffix == ".parquet" else session.read.json(f"file:{path}")
        counted = rows.groupBy("message").count().agg(sf.count("*"), sf.sum("count")).collect()[0]
        if counted[0] < messages:
            raise SystemExit(f"Spark found {counted[0]} messages")
        return int(counted[1])

    return grouped


def _jms(_: object) -> Configuration:
    return tables.load().configure("jms")


def _checked(findings: verify.Findings, messages: int) -> int:
    planted = Planted.of(messages, EACH, SEED).as_mapping()
    found = {anomaly.value: set(each.examples) for anomaly, each in findings.anomalies.items() if each.found}
    expected = {name: {f"order-{number}-7f3a" for number in numbers} for name, numbers in planted.items()}
    if found != expected:
        raise SystemExit(f"other anomalies were found than were planted: {found}")
    return findings.events


SIDES: Final[Mapping[str, Side]] = {
    "read": _reading,
    "folded": _folded,
    "at once": _at_once,
    "Spark": _on_spark,
    "Spark's groupBy": _grouped,
}


def _measure(side: str, path: Path, messages: int, workers: int) -> None:
    """Write what one side took, as JSON."""
    measured = SIDES[side](path, messages, workers)
    began = time.perf_counter()
    events = measured()
    taken, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    processor = used.ru_utime + used.ru_stime
    json.dump({"events": events, "clock": taken, "processor": processor, "memory": used.ru_maxrss}, sys.stdout)


def _measured(side: str, path: Path, messages: int, workers: int) -> Mapping[str, float]:
    arguments = ["--measure", side, "--path", str(path), "--messages", str(messages), "--workers", str(workers)]
    command = [sys.executable, "-m", "model_tests.benchmarks.verify", *arguments]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _numbers_of_workers(side: str, most: int) -> Sequence[int]:
    return [1] if side == "at once" else [most] if "Spark" in side else sorted({1, most})


def main() -> int:
    """Print a table: a row for each side and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000, help="each has four lines")
    parser.add_argument("--at-once", action="store_true", help="also without chunks, which takes much memory")
    parser.add_argument(
        "--spark", action="store_true", help="also on Spark, beside its own groupBy; clock alone tells of it"
    )
    parser.add_argument("--lines", action="store_true", help="also as JSONL")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--measure", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        _measure(arguments.measure, arguments.path, arguments.messages, arguments.workers)
        return 0
    planted = Planted.of(arguments.messages, EACH, SEED)
    with tempfile.TemporaryDirectory() as folder:
        files = {"Parquet": Path(folder) / "h.parquet"}
        write_parquet(files["Parquet"], arguments.messages, planted)
        if arguments.lines:
            files["JSONL"] = Path(folder) / "h.jsonl"
            write_lines(files["JSONL"], arguments.messages, planted)
        sys.stdout.write("| file | side | threads | million events a second | a second of processor time | memory |\n")
        sys.stdout.write("|---|---|---|---|---|---|\n")
        for form, path in files.items():
            sides = [*(["read"] if form == "Parquet" else []), "folded", *(["at once"] if arguments.at_once else [])]
            sides += ["Spark", "Spark's groupBy"] if arguments.spark else []
            for side in sides:
                for workers in _numbers_of_workers(side, arguments.workers):
                    found = _measured(side, path, arguments.messages, workers)
                    rate = found["events"] / found["clock"] / 1e6
                    own = f"{found['events'] / found['processor'] / 1e6:.2f} | {found['memory'] / 1e6:.2f} GB"
                    own = " | " if "Spark" in side else own  # its workers are other processes
                    sys.stdout.write(f"| {form} | {side} | {workers} | {rate:.2f} | {own} |\n")
                    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
