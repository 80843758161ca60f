"""Which tables were checked before, against the schema and each other: that takes longer than to read them."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import platformdirs

__all__ = ["is_kept", "keep", "stamp_of"]


def stamp_of(directory: Path) -> Path:
    """The file that is there if this version found the tables and the schema of ``directory``, to the byte, in form.

    It is in the user's cache folder.  Of what cannot be read it is not said here.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
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
