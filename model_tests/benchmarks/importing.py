"""How fast tables are imported: rows a second, beside pyarrow's own reading of the same file.

Run ``python -m model_tests.benchmarks.importing`` (``--help`` tells more).  All sides are called in turn; the table has
medians of processor time, as one processor would take.  The benchmark fails if an event is missing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from ackfsm.history.importing import Options, Problems, format_named
from ackfsm.history.importing.write import import_history

__all__ = ["main", "write_table"]

MAPPING: Final = """
ackfsm_mapping: 1
time: {column: time, format: iso}
process: app
message: id
redelivered: again
scope: {constant: message}
event: {column: what, values: {SENT: send, CONFIRMED: confirmed, GOT: delivered, ACKED: acknowledge}}
"""
_WORDS: Final = ("SENT", "CONFIRMED", "GOT", "ACKED")


def write_table(folder: Path, rows: int) -> None:
    """Somebody's log of orders, four rows each, as CSV, JSON lines and Parquet."""
    number = np.arange(rows)
    step = number % len(_WORDS)
    times = pa.array(1_772_359_200_000_000 + number * 100, pa.timestamp("us")).cast(pa.string())
    table = pa.table(
        {
            "time": pa.compute.binary_join_element_wise(times, "Z", ""),
            "what": pa.array(_WORDS).take(pa.array(step)),
            "id": pa.compute.binary_join_element_wise("order-", pa.array(number // len(_WORDS)).cast(pa.string()), ""),
            "app": pa.array(["shop", "shop", "billing", "billing"]).take(pa.array(step)),
            "again": pa.array([None, None, "false", None], pa.string()).take(pa.array(step)),
        }
    )
    pyarrow.csv.write_csv(table, folder / "log.csv")
    pq.write_table(table, folder / "log.parquet")
    lines = (json.dumps({k: v for k, v in row.items() if v}) for row in table.slice(0, rows // 4).to_pylist())
    (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _sides(folder: Path, rows: int) -> Mapping[str, tuple[int, Callable[[], int]]]:
    """For each side how many rows it has, and what reads them and says how many there were."""
    (folder / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    importer = format_named("table").importer(Options(mapping=folder / "mapping.yaml"))

    def events(name: str) -> Callable[[], int]:
        return lambda: sum(batch.num_rows for batch in importer.batches([folder / name], Problems()))

    def history(name: str) -> Callable[[], int]:
        def written() -> int:
            return sum(import_history(importer, [folder / name], folder / "out.parquet", {}).events.values())

        return written

    def read_csv() -> int:
        return int(pyarrow.csv.read_csv(folder / "log.csv").num_rows)

    def rewrite_csv() -> int:
        table = pyarrow.csv.read_csv(folder / "log.csv")
        pq.write_table(table, folder / "again.parquet", compression="zstd")
        return int(table.num_rows)

    return {
        "CSV: pyarrow reads it": (rows, read_csv),
        "CSV: events": (rows, events("log.csv")),
        "CSV: pyarrow writes it as Parquet": (rows, rewrite_csv),
        "CSV: history written": (rows, history("log.csv")),
        "Parquet: pyarrow reads it": (rows, lambda: int(pq.read_table(folder / "log.parquet").num_rows)),
        "Parquet: events": (rows, events("log.parquet")),
        "Parquet: history written": (rows, history("log.parquet")),
        "JSON lines: events": (rows // 4, events("log.jsonl")),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and fail if an event is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, arguments.rows)
        sides, took = _sides(folder, arguments.rows), dict[str, list[float]]()
        for _ in range(arguments.times):
            for side, (rows, call) in sides.items():
                begun = time.process_time()
                found = call()
                took.setdefault(side, []).append(time.process_time() - begun)
                sys.stderr.write(f"  {side}: {took[side][-1]:.2f} s\n")
                if found != rows:
                    sys.stderr.write(f"{side}: {found} of {rows} rows\n")
                    return 1
        sys.stdout.write("| side | million rows a second of a processor |\n|---|---|\n")
        for side, (rows, _) in sides.items():
            sys.stdout.write(f"| {side} | {rows / statistics.median(took[side]) / 1e6:.2f} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
