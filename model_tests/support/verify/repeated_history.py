"""A recorded run of a real broker time and again: a history as large as is asked for, written as Parquet."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

from ackfsm.history.lines import SCHEMA
from model_tests.support.places import DATA

RECORDED: Final = DATA / "rabbitmq-b-confirm-manual-broker-kill.jsonl.gz"
"""25,028 lines by five processes; the broker was killed twice."""

MESSAGES: Final = 5_000
"""Of one run."""

FOUND: Final = MappingProxyType({"duplicate": 34, "reprocessed": 34})
"""The messages of one run that have an anomaly."""

_PAUSE: Final = 10**9
"""Nanoseconds between two runs."""


def write_repeated(path: Path, times: int, recorded: Path = RECORDED, rows: int = 1 << 18) -> int:
    """Write the ``recorded`` run so many ``times``, one after the other; returns how many events that is.

    A message of each run has an id of its own, as long as those of JMS providers.  A row group has whole runs, and at
    least so many ``rows``: of so many a chunk of the fold has two.
    """
    with gzip.open(recorded) as file:
        header = file.readline().strip()
        options = pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
        run = pyarrow.json.read_json(file, parse_options=options).combine_chunks()
    columns = [name for name in run.column_names if run[name].null_count < len(run)]
    run = run.select(columns).replace_schema_metadata({"ackfsm_history": header})
    span, each = pc.max(run["t"]).as_py() - pc.min(run["t"]).as_py() + _PAUSE, -(-rows // len(run))
    with pq.ParquetWriter(path, run.schema) as writer:
        for first in range(0, times, each):
            runs = [_moved(run, number, number * span) for number in range(first, min(first + each, times))]
            group = pa.concat_tables(runs)
            writer.write_table(group, row_group_size=len(group))
    return times * len(run)


def _moved(run: pa.Table, number: int, by: int) -> pa.Table:
    """The same run later, of other messages."""
    ids = pc.binary_join_element_wise(f"ID:f3a1c2d0-7b64-11ee-{number:04x}-0242ac120002:", run["message"], "")
    at, named = run.column_names.index("t"), run.column_names.index("message")
    later = run.set_column(at, run.schema.field("t"), pc.add(run["t"], by))
    return later.set_column(named, run.schema.field("message"), ids)
