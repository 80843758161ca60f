"""Pieces of Markdown, and folders of files that are made from the tables and made again when these change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ackfsm.files import cannot_write, make_folder, write_files

__all__ = ["code", "page_of", "rows_of", "sentence", "write_folder"]

_BEGINNING = 200


def page_of(lines: Iterable[str]) -> str:
    """The text of these lines."""
    return "".join(f"{line}\n" for line in lines)


def sentence(text: str) -> str:
    """``text`` as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def code(text: str) -> str:
    """``text`` in the type of code."""
    return f"`{text}`"


def rows_of(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table with these column names."""
    cells = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells]


def write_folder(directory: Path, files: Mapping[str, str], made: str) -> tuple[Path, ...]:
    """Write ``files`` (text by name) into ``directory``, all or none; what was written, sorted.

    Then the pages and pictures below it are removed that say ``made`` of themselves near their beginning, so that an
    earlier call has made them, and that are not among ``files``; others are left alone.

    Raises :class:`ackfsm.terms.InputError` if ``directory`` cannot be written, and :class:`ackfsm.terms.HostError`
    where the machine fails.
    """
    make_folder(directory)
    paths = {directory / name: text.encode() for name, text in files.items()}
    for folder in {path.parent for path in paths} - {directory}:
        make_folder(folder)
    write_files(paths)
    for path in sorted(directory.rglob("*.*")):
        if path not in paths and path.suffix in {".md", ".svg"} and path.is_file():
            _clear(path, made.encode())
    return tuple(sorted(paths))


def _clear(path: Path, made: bytes) -> None:
    try:
        with path.open("rb") as file:
            stale = made in file.read(_BEGINNING)
        if stale:
            path.unlink()
    except OSError as error:
        raise cannot_write(path, error) from None
