"""Which of the formats that need no mapping a file is of: the one whose importer finds an event in its beginning."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from ackfsm.history.importing._formats import FORMATS
from ackfsm.history.importing.interface import Options, Problems
from ackfsm.history.importing.streams import lines
from ackfsm.terms import InputError

_BEGINNING: Final = 1 << 20
"""So many bytes of whole lines are tried; of one line that is longer, all."""


def recognised(path: Path) -> str | None:
    """The name of the format of the file at ``path``; ``None`` if it is of none of them."""
    with tempfile.TemporaryDirectory(prefix="ackfsm-") as folder:
        beginning = Path(folder) / "beginning"
        with beginning.open("wb") as written:
            for _, line in lines(path):
                written.write(line + b"\n")
                if written.tell() >= _BEGINNING:
                    break
        return next((name for name, each in FORMATS.items() if not each.mapped and _reads(name, beginning)), None)


def _reads(name: str, path: Path) -> bool:
    try:
        return any(batch.num_rows for batch in FORMATS[name].importer(Options()).batches([path], Problems()))
    except InputError:
        return False
