"""Which tables were held against the schema before: that takes longer than all else that is done to read them."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import platformdirs

__all__ = ["is_kept", "keep", "stamp_of"]


def stamp_of(directory: Path) -> Path:
    """The file that is there if the tables and the schema of ``directory``, to the byte, were found in form before.

    It is in the user's cache folder.  Of what cannot be read it is not said here.
    """
    digest = hashlib.sha256()
    for file in sorted([directory / "schema.json", *directory.rglob("*.yaml")]):
        digest.update(f"{file.relative_to(directory)}\0".encode())
        with contextlib.suppress(OSError):  # who reads the table says so, and then it is not kept
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return Path(platformdirs.user_cache_dir("ackfsm")) / "tables" / digest.hexdigest()


def is_kept(stamp: Path) -> bool:
    """Whether the tables were found in form before; where the folder cannot be read nobody knows."""
    try:
        return stamp.is_file()
    except OSError:
        return False


def keep(stamp: Path) -> None:
    """Remember that the tables are in form; where nothing can be kept they are held against the schema next time."""
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
