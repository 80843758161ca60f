"""The gallery, written into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ackfsm.draw._gallery import MADE, gallery
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, InputError

__all__ = ["write_all"]

_BEGINNING = 200


def write_all(
    specification: Specification,
    directory: Path,
    configuration: Configuration | None = None,
    bounds: Bounds | None = None,
) -> tuple[Path, ...]:
    """Write a page and a picture for every machine and property, the overview and an index into ``directory``.

    With a ``configuration`` everything is drawn for it, as :func:`ackfsm.draw.draw` does; without one,
    the machines that decide sends, acknowledgements and records are drawn in every mode besides.
    All is made before the first file is written.  Then the files are removed that an earlier call has
    made and this one has not; others are left alone.  Returns what was written, sorted.

    Raises :class:`InputError` if there is no Graphviz, if the tables have no rows for a setting, or if
    ``directory`` cannot be written.
    """
    files = {directory / name: text for name, text in gallery(specification, configuration, bounds).items()}
    try:
        _write(directory, files)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written ({error.strerror}); name another folder") from None
    return tuple(sorted(files))


def _write(directory: Path, files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    for path in sorted(directory.rglob("*.*")):
        if path not in files and path.suffix in {".md", ".svg"} and MADE.encode() in path.read_bytes()[:_BEGINNING]:
            path.unlink()
