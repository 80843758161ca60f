"""The rows of result tables in an order of their own, so that those of two drivers can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ackfsm.verify import TABLES


def rows_of(tables: Mapping[str, pa.Table]) -> Mapping[str, list[dict[str, Any]]]:
    """The rows of each table, sorted; the name of the history is left out."""
    return {
        name: sorted(({**row, "history": None} for row in table.to_pylist()), key=lambda row: repr(sorted(row.items())))
        for name, table in tables.items()
    }


def read_tables(folder: Path) -> Mapping[str, pa.Table]:
    """The tables that were written into ``folder``, as Arrow reads a partitioned data set."""
    hive = ds.partitioning(pa.schema([("queue", pa.string())]), flavor="hive")
    return {
        name: ds.dataset(folder / name, schema=schema, partitioning=hive).to_table() for name, schema in TABLES.items()
    }
