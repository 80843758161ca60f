"""An alarm that rings in the thread that has set it, whatever runs there."""

from __future__ import annotations

import contextlib
import ctypes
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol, TypeAlias

from ackfsm.pytest_plugin._reraise import Again

__all__ = ["Alarm", "Ring", "alarm"]

Ring: TypeAlias = Callable[[FrameType | None], None]
"""Called with what the thread is about; may raise :class:`Again`, which is then raised there."""

_LEAST, _MOST = 1e-5, 1e8


class Alarm(Protocol):
    """Rings once for each time that it is set."""

    def set(self, seconds: float) -> None:
        """Ring in so many seconds."""

    def close(self) -> None:
        """Ring no more, and leave everything as it was."""


def alarm(ring: Ring) -> Alarm:
    """An alarm for the present thread: by a signal in the main thread, from a thread beside any other."""
    return _Signal(ring) if threading.current_thread() is threading.main_thread() else _Beside(ring)


class _Signal:
    """By ``SIGALRM``, which interrupts also what waits; an alarm that somebody else has set rings in its time."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._open = True
        left, self._every = signal.setitimer(signal.ITIMER_REAL, 0)
        self._ours, self._theirs = math.inf, time.monotonic() + left if left else math.inf
        self._handler = signal.signal(signal.SIGALRM, self._rings)

    def set(self, seconds: float) -> None:
        """Ring in so many seconds."""
        self._ours = time.monotonic() + seconds
        self._wind()

    def close(self) -> None:
        """Give the signal back."""
        self._open = False
        self._ours = math.inf
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if self._handler is None else self._handler)
        self._wind()

    def _wind(self) -> None:
        at = min(self._ours, self._theirs)
        if at < math.inf:
            every = 0 if self._open else self._every
            signal.setitimer(signal.ITIMER_REAL, min(max(at - time.monotonic(), _LEAST), _MOST), every)

    def _rings(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now >= self._theirs:
            self._theirs = now + self._every if self._every else math.inf
            self._wind()
            if callable(self._handler):
                self._handler(number, frame)
        elif self._open and now >= self._ours:
            self._ours = math.inf
            self._ring(frame)
        else:
            self._wind()


class _Beside:
    """By a thread that has Python raise in the other one; what waits outside of Python is not interrupted."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._of = threading.get_ident()
        self._at: float | None = math.inf
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._watch, name="ackfsm alarm", daemon=True)
        self._thread.start()

    def set(self, seconds: float) -> None:
        """Ring in so many seconds."""
        with self._changed:
            self._at = time.monotonic() + seconds
            self._changed.notify()

    def close(self) -> None:
        """End the thread, and let what it still has raised come here."""
        while self._thread.is_alive():
            with contextlib.suppress(Again):
                self._end()
        with contextlib.suppress(Again):
            _look()

    def _end(self) -> None:
        with self._changed:
            self._at = None
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        while self._is_due():
            try:
                self._ring(sys._current_frames().get(self._of))  # noqa: SLF001 - its documented name
            except Again:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._of), ctypes.py_object(Again))

    def _is_due(self) -> bool:
        """Wait for the time; ``False`` if it is never to ring again."""
        with self._changed:
            while self._at is not None and (left := self._at - time.monotonic()) > 0:
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            due = self._at is not None
            self._at = math.inf if due else None
            return due


def _look() -> None:
    """Python looks here for what another thread has it raise; told to forget it, it would look for it for ever."""
