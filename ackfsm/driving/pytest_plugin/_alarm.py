"""A timer that calls back in the thread that has set it, whatever runs there."""

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

from ackfsm.driving.pytest_plugin._reraise import Reraised

Ring: TypeAlias = Callable[[FrameType | None], None]
"""Called with the current frame of the thread; may raise :class:`Reraised`, which is then raised there."""

_LEAST, _MOST = 1e-5, 1e8


class Alarm(Protocol):
    """Rings once for each time that it is set."""

    def set(self, seconds: float) -> None:
        """Ring in so many seconds."""

    def close(self) -> None:
        """Stop, and restore the former state."""


def alarm(ring: Ring) -> Alarm:
    """An alarm for the current thread: by a signal in the main thread, by a second thread in any other."""
    return _SignalAlarm(ring) if threading.current_thread() is threading.main_thread() else _ThreadAlarm(ring)


class _SignalAlarm:
    """By ``SIGALRM``, which also interrupts system calls; an alarm set by other code still rings in its time."""

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
        """Restore the handler and the alarm that were set before."""
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


class _ThreadAlarm:
    """By a thread that makes Python raise in the other one; system calls are not interrupted."""

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
        """End the thread, and take an exception that it has still raised."""
        while self._thread.is_alive():
            with contextlib.suppress(Reraised):
                self._end()
        with contextlib.suppress(Reraised):
            _raise_pending()

    def _end(self) -> None:
        with self._changed:
            self._at = None
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        while self._is_due():
            try:
                self._ring(sys._current_frames().get(self._of))  # noqa: SLF001 - its documented name
            except Reraised:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._of), ctypes.py_object(Reraised))

    def _is_due(self) -> bool:
        """Wait for the time; ``False`` if the alarm is closed."""
        with self._changed:
            while self._at is not None and (left := self._at - time.monotonic()) > 0:
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            due = self._at is not None
            self._at = math.inf if due else None
            return due


def _raise_pending() -> None:
    """A call at which Python raises a pending exception of another thread; it cannot be withdrawn."""
