"""What the exit codes of every command mean."""

from __future__ import annotations

from typing import Final

__all__ = ["AS_PROMISED", "FAILED", "INTERRUPTED", "UNDETERMINED", "USAGE", "VIOLATION"]

AS_PROMISED: Final = 0
VIOLATION: Final = 1
"""A promise is broken, a claim refuted, a history invalid, a journal damaged; nothing else ends with this code."""
USAGE: Final = 2
"""The input is at fault: an option, a setting, a file."""
UNDETERMINED: Final = 3
FAILED: Final = 70
"""The machine failed (a full disk, no memory, a worker that was killed), or this package did."""
INTERRUPTED: Final = 130
