"""Paths of files as Spark takes them."""

from __future__ import annotations

import re
from pathlib import Path


def uri(file: Path) -> str:
    """``file`` as Spark takes it: on the local file system, and with nothing in it read as a pattern."""
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute()))
