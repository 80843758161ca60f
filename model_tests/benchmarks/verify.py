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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from ackfsm import tables, verify
from ackfsm.terms import Configuration
from model_tests.support.verify.large_history import Planted, write_lines, write_parquet

__all__ = ["main"]

SEED: Final = 1
EACH: Final = 20
"""Of each planted anomaly so many messages."""

_LINES: Final = 4
"""A message has so many lines."""


def _reading(path: Path, _: int, workers: int) -> int:
    """Reading the columns, and nothing else."""
    groups = range(pq.ParquetFile(path).num_row_groups)
    with ThreadPoolExecutor(workers) as executor:
        return sum(
            executor.map(lambda group: len(pq.ParquetFile(path).read_row_group(group, use_threads=False)), groups)
        )


def _folded(path: Path, messages: int, workers: int) -> int:
    specification = tables.load()
    findings = verify.examine_path(path, specification, _jms, skew=None, workers=workers, folded_from=0)
    return _checked(findings, messages)


def _at_once(path: Path, messages: int, _: int) -> int:
    specification = tables.load()
    return _checked(
        verify.examine(verify.read(path), specification, specification.configure("jms"), skew=None), messages
    )


def _jms(_: object) -> Configuration:
    return tables.load().configure("jms")


def _checked(findings: verify.Findings, messages: int) -> int:
    planted = Planted.of(messages, EACH, SEED).as_mapping()
    found = {anomaly.value: set(each.examples) for anomaly, each in findings.anomalies.items() if each.found}
    expected = {name: {f"order-{number}-7f3a" for number in numbers} for name, numbers in planted.items()}
    if found != expected:
        raise SystemExit(f"other anomalies were found than were planted: {found}")
    return findings.events


SIDES: Final[Mapping[str, Callable[[Path, int, int], int]]] = {
    "read": _reading,
    "folded": _folded,
    "at once": _at_once,
}


def _measure(side: str, path: Path, messages: int, workers: int) -> None:
    """Write what one side took, as JSON."""
    began = time.perf_counter()
    events = SIDES[side](path, messages, workers)
    taken, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    processor = used.ru_utime + used.ru_stime
    json.dump({"events": events, "clock": taken, "processor": processor, "memory": used.ru_maxrss}, sys.stdout)


def _measured(side: str, path: Path, messages: int, workers: int) -> Mapping[str, float]:
    arguments = ["--measure", side, "--path", str(path), "--messages", str(messages), "--workers", str(workers)]
    command = [sys.executable, "-m", "model_tests.benchmarks.verify", *arguments]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> int:
    """Print a table: a row for each side and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000, help="each has four lines")
    parser.add_argument("--at-once", action="store_true", help="also without chunks, which takes much memory")
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
            for side in sides:
                for workers in sorted({1, arguments.workers}) if side != "at once" else (1,):
                    found = _measured(side, path, arguments.messages, workers)
                    rate, of_processor = (found["events"] / found[key] / 1e6 for key in ("clock", "processor"))
                    memory = f"{found['memory'] / 1e6:.2f} GB"
                    sys.stdout.write(f"| {form} | {side} | {workers} | {rate:.2f} | {of_processor:.2f} | {memory} |\n")
                    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
