"""A watchdog for applications that do not terminate: it counts calls and events, and has a wall clock.

In virtual time nothing happens while an application waits, except in the engine.  So an application that keeps calling
while no event happens waits for ever, and so does one that catches the end of its process and continues.  The counts
are the same in every run; the clock is for loops that never call the engine.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from ackfsm.driving.pytest_plugin._alarm import Alarm, alarm
from ackfsm.driving.pytest_plugin._crash import Endless
from ackfsm.driving.pytest_plugin._reraise import Reraised, Reraising, application_frame
from ackfsm.text import shown

_MOST_EVENTS = 100_000
_MOST_FRUITLESS = 10_000
"""Consecutive calls in which no event happens."""

_MOST_CAUGHT = 1_000
"""How often an application may catch the end of its process."""

_BEYOND = 1_000
"""Further events that are allowed before a call that does not return is interrupted."""

_GRACE = 0.5
"""Seconds that an application has to clean up before it is interrupted anywhere."""

_OFTEN = 0.05
_PATIENCE = 5.0
"""Seconds that a call of the engine may then take before it is interrupted, too."""

_DEBUGGERS = frozenset({"pdb", "bdb", "pydevd", "_pydevd_bundle"})


class Watchdog:
    """Ends an application that does not terminate.

    Attributes:
        ended: why it was ended; ``None`` while nothing is wrong.
        consistent: whether no call of the engine was interrupted, so that its state can still be used.
    """

    def __init__(self, seconds: float | None) -> None:
        """``seconds`` of wall-clock time are the limit of one ``ackfsm.run()``; ``None``: no limit."""
        self.ended: Endless | None = None
        self.consistent = True
        self._seconds = seconds
        self._events = self._fruitless = self._caught = 0
        self._alarm: Alarm | None = None
        self._since: float | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A context in which the application runs, with the wall clock set."""
        self._events = self._fruitless = self._caught = 0
        try:
            with Reraising():
                self._alarm = alarm(self._ring)
                try:
                    if self._seconds is not None:
                        self._alarm.set(self._seconds)
                    yield
                finally:
                    self._alarm.close()
                    self._alarm = None
        except Reraised:
            if self.ended is None:
                raise
        finally:
            self._since = None
        if self.ended is not None:
            raise self.ended

    def end(self, why: str = "") -> type[Reraised]:
        """End the application for the reason ``why``; returns the class to raise, so that no instance is kept."""
        self._note_end(why)
        return Reraised

    def _note_end(self, why: str) -> None:
        """Note why the application is to end; the first reason counts."""
        if self.ended is None:
            self.ended = Endless(why)
            if self._alarm is not None:
                self._alarm.set(_GRACE)

    # Counts

    def count_event(self) -> None:
        """Count an event while the application runs."""
        self._events += 1
        self._fruitless = 0
        if self._events > _MOST_EVENTS:
            self._note_end(
                f"after {_MOST_EVENTS:,} events the application has not come to an end; does a message come again and "
                "again, or does it answer its own?"
            )
            if self._events > _MOST_EVENTS + _BEYOND:
                self.consistent = False
                raise self.end()

    def is_fruitless(self) -> bool:
        """Count a call that has returned; whether it is one too many without an event."""
        self._fruitless += 1
        return self._fruitless > _MOST_FRUITLESS

    def waits(self, call: str) -> type[Reraised]:
        """End the application, which keeps calling ``call`` while nothing happens."""
        return self.end(
            f"the application waits for ever: it has made {_MOST_FRUITLESS:,} calls in a row, the last of them {call}, "
            "and nothing has happened, nor could: time is virtual, and nobody else is there. Let it return when "
            "receive() gives None; ackfsm.run() starts it again as long as messages are left"
        )

    def caught(self, name: str) -> type[Reraised] | None:
        """Count a crash that the application has caught; the error to raise if it keeps doing so."""
        self._caught += 1
        if self._caught <= _MOST_CAUGHT:
            return None
        return self.end(
            f"the application does not end with its process: {name} has crashed, and it has caught ProcessCrashed "
            f"{_MOST_CAUGHT:,} times. No process survives a crash: catch Exception, not everything (a bare except, "
            "except BaseException)"
        )

    # The clock

    def _ring(self, frame: FrameType | None) -> None:
        """Raise :class:`Reraised` in the application, and ring again until it has ended."""
        if self.ended is None:
            if self._alarm is not None and self._seconds is not None and _is_debugged(frame):
                self._alarm.set(self._seconds)
                return
            self._note_end(
                f"the application has not come to an end after {self._seconds:g} seconds of the clock"
                f"{_place(frame)}; it waits for something that is not there, or needs more time: "
                "--ackfsm-timeout=SECONDS, or timeout=SECONDS in the marker ackfsm_faults"
            )
        self._since = self._since or time.monotonic()
        if self._alarm is not None:
            self._alarm.set(_OFTEN)
        if application_frame(frame) is not None:
            raise self.end()
        if time.monotonic() > self._since + _PATIENCE:
            self.consistent = False
            raise self.end()


def _place(frame: FrameType | None) -> str:
    found = application_frame(frame)
    if found is None or str(found.f_globals.get("__name__")).startswith("ackfsm."):
        return ""
    return f", and is in {found.f_code.co_name} ({shown(Path(found.f_code.co_filename).name)}:{found.f_lineno})"


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False
