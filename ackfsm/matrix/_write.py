"""Write a matrix into a folder."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from ackfsm.matrix._html import write_html
from ackfsm.matrix._result import Matrix
from ackfsm.matrix._summary import Summary
from ackfsm.terms import InputError

__all__ = ["make_folder", "write"]


def make_folder(folder: Path) -> None:
    """Make ``folder`` unless it is there, so that a long search does not end in a file that cannot be written.

    Raises :class:`InputError` if it cannot be written to, and :class:`ModuleNotFoundError` without pyarrow.
    """
    importlib.import_module("pyarrow.parquet")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); name another folder") from None


def write(matrix: Matrix, summary: Summary, folder: Path) -> tuple[Path, Path]:
    """Write ``matrix.parquet`` (everything) and ``matrix.html`` (a page to read) into ``folder``."""
    from ackfsm.matrix._parquet import write_parquet

    table, page = folder / "matrix.parquet", folder / "matrix.html"
    write_parquet(matrix, table)
    write_html(matrix, summary, page)
    return table, page
