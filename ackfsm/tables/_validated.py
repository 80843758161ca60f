"""A cache of which tables are valid, since validating them takes longer than reading them."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import platformdirs

__all__ = ["is_validated", "mark_validated", "validation_stamp"]


def validation_stamp(directory: Path) -> Path:
    """The file in the user's cache folder that marks exactly these tables as valid for exactly this version.

    Its name is a hash over the package ``tables``, the schema and all tables in ``directory``.  A file that cannot
    be read is left out of it: reading that table raises the error, so the tables are not marked.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    for file in sorted([directory / "schema.json", *directory.rglob("*.yaml")]):
        digest.update(f"{file.relative_to(directory)}\0".encode())
        with contextlib.suppress(OSError):  # reading the table raises it, and then nothing is marked
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return Path(platformdirs.user_cache_dir("ackfsm")) / "tables" / digest.hexdigest()


def is_validated(stamp: Path) -> bool:
    """Whether the tables were found valid before; ``False`` where the folder cannot be read."""
    try:
        return stamp.is_file()
    except OSError:
        return False


def mark_validated(stamp: Path) -> None:
    """Remember that the tables are valid; where nothing can be written they are validated again next time."""
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
