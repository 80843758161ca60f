"""Of several workers one compiles a function, and the others read what that one has kept."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def compiling_in_turn(file: Path) -> Iterator[None]:
    """A function is compiled, or read from Numba's cache, by the process that has locked ``file``.

    Two that start with empty caches would compile the same functions at the same time, half a minute of each processor.
    """
    from numba.core.dispatcher import Dispatcher

    compile_now: Any = Dispatcher.compile
    thread, depth = threading.RLock(), 0

    def compile_alone(self: Any, sig: Any) -> Any:
        """Compiling a function compiles those that it calls, so that a thread may come here again."""
        nonlocal depth
        with thread:
            if not depth:
                fcntl.flock(lock, fcntl.LOCK_EX)
            depth += 1
            try:
                return compile_now(self, sig)
            finally:
                depth -= 1
                if not depth:
                    fcntl.flock(lock, fcntl.LOCK_UN)

    with file.open("ab") as lock, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_alone)
        yield
