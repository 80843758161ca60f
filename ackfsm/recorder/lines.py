"""One line of a history, checked as a reader would check it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from ackfsm.history.format import (
    ACKNOWLEDGE_TIMEOUT,
    ALWAYS,
    FIELDS,
    NAMED_MESSAGE_SCOPES,
    NEEDS,
    NOT_NEGATIVE,
    TELLERS,
    VOCABULARY,
    Call,
    Event,
    Kind,
)
from ackfsm.terms import AckScope, InputError
from ackfsm.text import in_words, quoted, shown

_LONGEST_ERROR: Final = 500
"""Characters of what an exception says that are recorded."""

_WHOLE: Final = range(-(2**63), 2**63)
_NEEDS: Final = {event: tuple(name for name, events in NEEDS.items() if event in events) for event in Event}
_VOCABULARY: Final = {name: frozenset(values) for name, values in VOCABULARY.items()}
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class RecordingError(InputError):
    """The recorder was asked for something that is no line of format 1, or cannot be written where it should."""


def error_text(error: BaseException) -> str:
    """Return the name of an exception, and the beginning of its text."""
    name, said = type(error).__name__, str(error)
    text = f"{name}: {said}" if said else name
    return text[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()


def encoded(line: Mapping[str, object]) -> bytes:
    """A line with its line feed; fields that are ``None`` are left out.

    Raises :class:`RecordingError` for what a reader would not take as an event.
    """
    present = {name: value for name, value in line.items() if value is not None}
    event = present.get("event")
    for name, value in present.items():
        if name not in FIELDS:
            raise RecordingError(f"{quoted(str(event))}: there is no field {quoted(name)}; fields are {_LISTED}")
        _CHECKS[FIELDS[name]](name, value)
        if name in _VOCABULARY and value not in _VOCABULARY[name]:
            raise RecordingError(f"there is no {name} {quoted(str(value))}; it is one of {', '.join(VOCABULARY[name])}")
    for name in ALWAYS:
        if name not in present:
            raise RecordingError(f"`{name}` is missing; every line has {in_words(ALWAYS)}")
    _check_event(Event(str(event)), present)
    return f"{_encode(present)}\n".encode("ascii")


def _check_event(event: Event, present: Mapping[str, object]) -> None:
    """What one event needs beside what all have."""
    for name in _NEEDS[event]:
        if name not in present:
            raise RecordingError(f"{event} needs `{name}`")
    for name in NOT_NEGATIVE if event is not Event.DEPTH else (*NOT_NEGATIVE, "position"):
        if _number(present.get(name, 0)) < 0:
            raise RecordingError(f"`{name}` is negative ({present[name]})")
    scope = present.get("scope")
    if scope in NAMED_MESSAGE_SCOPES and "message" not in present:
        raise RecordingError(f"the scope {scope} needs `message`")
    if event is Event.CONFIRMED and scope == AckScope.SESSION:
        raise RecordingError("confirmed has the scope message or up_to")
    if event is Event.WAITING and present["error"] not in tuple(Call):
        raise RecordingError(f"there is no call {quoted(str(present['error']))}; it is one of {', '.join(Call)}")
    told = present["process"] in TELLERS
    if present.get("fault") == ACKNOWLEDGE_TIMEOUT and told and "session" not in present:
        raise RecordingError(f"{ACKNOWLEDGE_TIMEOUT} needs the `session` that called")


def _number(value: object) -> int:
    assert isinstance(value, int), value  # noqa: S101 - the kind of the field was checked before
    return value


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise RecordingError(f"`{name}` is {shown(repr(value), 60)}; it has to be text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RecordingError(f"`{name}` is {quoted(value, 60)}, which is no text in UTF-8") from None


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value not in _WHOLE:
        raise RecordingError(f"`{name}` is {shown(repr(value), 60)}; it has to be {Kind.WHOLE}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise RecordingError(f"`{name}` is {shown(repr(value), 60)}; it has to be {Kind.FLAG}")


_CHECKS: Final[Mapping[Kind, Callable[[str, object], None]]] = {
    Kind.TEXT: _check_text,
    Kind.WHOLE: _check_whole,
    Kind.FLAG: _check_flag,
}
_LISTED: Final = ", ".join(FIELDS)
