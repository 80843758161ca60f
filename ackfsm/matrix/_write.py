"""Write a matrix into a folder."""

from __future__ import annotations

import importlib
from pathlib import Path

from ackfsm import files
from ackfsm.matrix._html import html
from ackfsm.matrix._result import Matrix
from ackfsm.matrix._summary import Summary

__all__ = ["make_folder", "write"]


def make_folder(folder: Path) -> None:
    """Make ``folder`` unless it is there, so that a long search does not end in a file that cannot be written.

    Raises :class:`ackfsm.terms.InputError` if it cannot be written to, :class:`ackfsm.terms.HostError` where the
    machine fails, and :class:`ModuleNotFoundError` without pyarrow.
    """
    importlib.import_module("pyarrow.parquet")
    files.make_folder(folder)


def write(matrix: Matrix, summary: Summary, folder: Path) -> tuple[Path, Path]:
    """Write ``matrix.parquet`` (everything) and ``matrix.html`` (a page to read) into ``folder``, both or neither.

    Raises as :func:`make_folder`.
    """
    from ackfsm.matrix._parquet import parquet

    table, page = folder / "matrix.parquet", folder / "matrix.html"
    files.write_files({table: parquet(matrix), page: html(matrix, summary).encode()})
    return table, page
