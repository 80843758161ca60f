"""Whether an application comes to an end: counts first, and a clock for what never calls the engine.

In virtual time nothing happens while an application waits, but what the engine does.  So an application that calls and
calls while no event happens waits for ever, and so does one that catches the end of its process and goes on.  What is
counted is the same in every run; the clock is for loops without a call.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from ackfsm.pytest_plugin._alarm import Alarm, alarm
from ackfsm.pytest_plugin._crash import Endless
from ackfsm.pytest_plugin._reraise import Again, Returning, applications
from ackfsm.text import shown

__all__ = ["Watch"]

_MOST_EVENTS = 100_000
_MOST_FRUITLESS = 10_000
"""Calls in a row in which nothing happens."""

_MOST_CAUGHT = 1_000
"""Times that an application may catch the end of its process."""

_BEYOND = 1_000
"""Events after the last that is waited for: a single call of the application does not return."""

_GRACE = 0.5
"""Seconds that an application has to clean up in, before it is ended wherever it is."""

_OFTEN = 0.05
_PATIENCE = 5.0
"""Seconds that a call of the engine may then take, before even that is interrupted."""

_DEBUGGERS = frozenset({"pdb", "bdb", "pydevd", "_pydevd_bundle"})


class Watch:
    """Sees to it that an application ends.

    Attributes:
        ended: why it was ended; ``None`` while nothing is wrong.
        sound: whether the engine was left at the end of a call, so that it can still be asked.
    """

    def __init__(self, seconds: float | None) -> None:
        """``seconds`` of the clock are the most that one ``ackfsm.run()`` takes; ``None``: any."""
        self.ended: Endless | None = None
        self.sound = True
        self._seconds = seconds
        self._events = self._fruitless = self._caught = 0
        self._alarm: Alarm | None = None
        self._since: float | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Look at the clock while the application runs."""
        self._events = self._fruitless = self._caught = 0
        try:
            with Returning():
                self._alarm = alarm(self._ring)
                try:
                    if self._seconds is not None:
                        self._alarm.set(self._seconds)
                    yield
                finally:
                    self._alarm.close()
                    self._alarm = None
        except Again:
            if self.ended is None:
                raise
        finally:
            self._since = None
        if self.ended is not None:
            raise self.ended

    def end(self, why: str = "") -> type[Again]:
        """The application is to end, as ``why`` says; what is to be raised: a class, so that nobody keeps the error."""
        self._tell(why)
        return Again

    def _tell(self, why: str) -> None:
        """The first reason counts."""
        if self.ended is None:
            self.ended = Endless(why)
            if self._alarm is not None:
                self._alarm.set(_GRACE)

    # Counts

    def happened(self) -> None:
        """An event has happened while the application runs."""
        self._events += 1
        self._fruitless = 0
        if self._events > _MOST_EVENTS:
            self._tell(
                f"after {_MOST_EVENTS:,} events the application has not come to an end; does a message come again and "
                "again, or does it answer its own?"
            )
            if self._events > _MOST_EVENTS + _BEYOND:
                self.sound = False
                raise self.end()

    def is_fruitless(self) -> bool:
        """A call has returned; whether it is one too many in which nothing has happened."""
        self._fruitless += 1
        return self._fruitless > _MOST_FRUITLESS

    def waits(self, call: str) -> type[Again]:
        """The application calls ``call`` again and again, and nothing happens."""
        return self.end(
            f"the application waits for ever: it has made {_MOST_FRUITLESS:,} calls in a row, the last of them {call}, "
            "and nothing has happened, nor could: time is virtual, and nobody else is there. Let it return when "
            "receive() gives None; ackfsm.run() starts it again as long as messages are left"
        )

    def caught(self, name: str) -> type[Again] | None:
        """The application is told that its process is dead; the error, if it goes on and on all the same."""
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
        """Raise :class:`Again` where the application stands, and ring again until it has ended."""
        if self.ended is None:
            if self._alarm is not None and self._seconds is not None and _is_debugged(frame):
                self._alarm.set(self._seconds)
                return
            self._tell(
                f"the application has not come to an end after {self._seconds:g} seconds of the clock"
                f"{_place(frame)}; it waits for something that is not there, or needs more time: "
                "--ackfsm-timeout=SECONDS, or timeout=SECONDS in the marker ackfsm_faults"
            )
        self._since = self._since or time.monotonic()
        if self._alarm is not None:
            self._alarm.set(_OFTEN)
        if applications(frame) is not None:
            raise self.end()
        if time.monotonic() > self._since + _PATIENCE:
            self.sound = False
            raise self.end()


def _place(frame: FrameType | None) -> str:
    found = applications(frame)
    if found is None or str(found.f_globals.get("__name__")).startswith("ackfsm."):
        return ""
    return f", and is in {found.f_code.co_name} ({shown(Path(found.f_code.co_filename).name)}:{found.f_lineno})"


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False
