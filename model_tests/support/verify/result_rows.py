"""The rows of result tables in an order of their own, so that those of two drivers can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # noqa: TC002 - a test that has tables has it

__all__ = ["rows_of"]


def rows_of(tables: Mapping[str, pa.Table]) -> Mapping[str, list[dict[str, Any]]]:
    """The rows of each table, sorted; the name of the history is left out."""
    return {
        name: sorted(({**row, "history": None} for row in table.to_pylist()), key=lambda row: repr(sorted(row.items())))
        for name, table in tables.items()
    }
