"""What an importer makes of files, as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ackfsm.history.importing import Options, Problems, format_named
from model_tests.support.places import DATA

SAMPLES = DATA / "imports"
"""Samples of other formats; their README says where each is from."""


def imported(name: str, *paths: Path) -> tuple[list[dict[str, Any]], Problems]:
    """The events that a format gives, without the fields that they have not, and what could not be read."""
    problems = Problems()
    batches = format_named(name).importer(Options()).batches(paths, problems)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [{key: value for key, value in row.items() if value is not None} for row in rows], problems


def events(rows: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    """Some fields of events, in the order of their times."""
    return [tuple(row.get(field) for field in fields) for row in sorted(rows, key=lambda row: row["t"])]
