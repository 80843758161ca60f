"""The common parts of the wrappers of clients."""

from __future__ import annotations

import importlib
from typing import Any

from ackfsm.recorder.lines import RecordingError
from ackfsm.text import quoted


class Wrapped:
    """Stands for an object of a client; calls without a record are passed on to it."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


def client(module: str, package: str) -> Any:
    """The client library; raises :class:`RecordingError` where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = RecordingError(f"{package} is needed to record what it does; install it with: pip install {package}")
        raise missing from error


def expect(value: object, kind: type, word: str) -> None:
    """Raise :class:`RecordingError` unless ``value`` is what can be wrapped."""
    if not isinstance(value, kind):
        raise RecordingError(f"{quoted(type(value).__name__)} cannot be recorded; wrap {word}")
