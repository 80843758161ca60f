"""The screen as rich has it; loading rich takes a while, and JSON needs none of it."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class StrictConsole(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error; by default the process would end with the exit code of a violation."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
