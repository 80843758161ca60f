"""The gallery, written into a folder."""

from __future__ import annotations

from pathlib import Path

from ackfsm.draw._gallery import MADE, gallery
from ackfsm.files import write_folder
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Configuration

__all__ = ["write_all"]


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

    Raises :class:`ackfsm.terms.InputError` if there is no Graphviz, if the tables have no rows for a setting, or if
    ``directory`` cannot be written.
    """
    return write_folder(directory, gallery(specification, configuration, bounds), MADE)
