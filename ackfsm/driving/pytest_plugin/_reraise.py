"""An exception that ends an application, and is raised again at its next line if the application catches it.

Python lets any code catch any exception.  So this one notices when it is deleted, which is when a bare ``except`` has
handled it, and sets a trace function that raises it again at the next line of the application: that line is outside
of the ``try``, or the one after it is.  So a loop that catches everything is left, and then the loop around it.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from ackfsm.driving.pytest_plugin._crash import Endless

_OURS = "ackfsm"
_WAITING = ("ackfsm.driving.pytest_plugin._loop", "select")
"""Where an event loop waits for something outside."""

_OUTERMOST = "ackfsm.driving.pytest_plugin._trial"
_STANDARD = sysconfig.get_path("stdlib")


class Reraising:
    """A context in which :class:`Reraised` is raised again in this thread; its end restores the trace function."""

    def __init__(self) -> None:
        self._before: Any = None
        self._traces = False

    def __enter__(self) -> Self:
        _ENTERED[threading.get_ident()] = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ENTERED.pop(threading.get_ident(), None)
        if self._traces:
            sys.settrace(self._before)

    def reraise(self, frame: FrameType | None) -> None:
        """A :class:`Reraised` was deleted while ``frame`` runs: raise another at the next line of the application."""
        if not self._traces:
            self._traces, self._before = True, sys.gettrace()
        while frame is not None and frame.f_globals.get("__name__") != _OUTERMOST:
            if _is_application(frame):
                frame.f_trace = _raise
            frame = frame.f_back
        sys.settrace(_raise)


_ENTERED: dict[int, Reraising] = {}
"""By thread."""


class Reraised(Endless):
    """The application is to end, whatever it catches.

    Raise the class, not an instance: then the handler has the only reference, and the error is raised again when the
    handler drops it.
    """

    def __init__(self, *why: object) -> None:
        super().__init__(*why)
        self._entered = _ENTERED.get(threading.get_ident())

    def __del__(self) -> None:
        """It was caught: raise it again, unless another application runs by now."""
        entered = _ENTERED.get(threading.get_ident())
        if entered is not None and entered is self._entered:
            entered.reraise(sys._getframe(1))  # noqa: SLF001 - its documented name


def _raise(frame: FrameType, event: str, _: object) -> Any:
    """Trace: raise at the next line of the application (Python then traces no more)."""
    if not _is_application(frame):
        return None
    if event == "line":
        raise Reraised
    return _raise


def application_frame(frame: FrameType | None) -> FrameType | None:
    """The frame of the application; ``None`` while the engine works for it, which must not be interrupted."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] == _OURS:
            return frame if (module, frame.f_code.co_name) == _WAITING else None
        if not _is_standard(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def _is_application(frame: FrameType) -> bool:
    """Whether the frame is code of the application."""
    return application_frame(frame) is frame and str(frame.f_globals.get("__name__")).partition(".")[0] != _OURS


def _is_standard(file: str) -> bool:
    """Whether it is a file of the standard library, whose caller is meant."""
    return file.startswith("<frozen ") or (file.startswith(_STANDARD) and "-packages" not in file)
