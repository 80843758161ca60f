"""What the application gives to a call, checked before anything happens: a call that is refused has changed nothing."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from ackfsm.engine._messages import LONGEST, HeaderValue
from ackfsm.terms import InputError
from ackfsm.text import quoted

__all__ = [
    "body_of",
    "callback_of",
    "check_part",
    "client_of",
    "duplicate_id_of",
    "flag_of",
    "headers_of",
    "id_of",
    "instance_of",
    "length_of",
    "name_of",
    "nanoseconds_of",
    "seed_of",
]

_Given = TypeVar("_Given")

_SHOWN = 60
"""Characters of a wrong argument that an error shows."""

_BITS = 64
"""The longest whole numbers in headers, as in JMS and AMQP."""

_LONGEST_CLIENT = LONGEST - 64
"""Bytes of a client's id at most: the ids of its messages begin with it."""

_NO_HEADERS: Mapping[str, HeaderValue] = MappingProxyType({})


def body_of(given: object) -> bytes:
    """The payload, which nobody can change any more."""
    if isinstance(given, str):
        raise InputError(f"body cannot be {_shown(given)}, which is text; encode it: b'...' or text.encode()")
    if not isinstance(given, bytes | bytearray | memoryview):
        raise InputError(f"body cannot be {_shown(given)}; it is bytes")
    return bytes(given)


def headers_of(given: object) -> Mapping[str, HeaderValue]:
    """A copy of the headers, which nobody can change any more."""
    if given is None:
        return _NO_HEADERS
    if not isinstance(given, Mapping):
        raise InputError(f"headers cannot be {_shown(given)}; they are a mapping of names to values")
    return MappingProxyType({_header(name): _value(name, value) for name, value in given.items()})


def _header(name: object) -> str:
    return _text("the name of a header", name)


def _value(name: object, value: object) -> HeaderValue:
    if isinstance(value, str):
        return _text(f"header {_shown(name)}", value)
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise InputError(f"header {_shown(name)} has a number of more than {_BITS} bits; send it as text")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise InputError(
        f"header {_shown(name)} cannot be {_shown(value)}; it is text, a number, True, False or None: send anything "
        "else in the body"
    )


def id_of(given: object) -> str:
    """An id of a message."""
    return _short("message_id", given, LONGEST)


def client_of(given: object) -> str:
    """An id of a client."""
    return _short("client_id", given, _LONGEST_CLIENT)


def name_of(given: object) -> str:
    """A name of a queue."""
    return _short("the name of a queue", given, LONGEST)


def duplicate_id_of(given: object) -> bytes:
    """An id by which the broker knows a message again."""
    if not isinstance(given, bytes | bytearray | memoryview):
        raise InputError(f"duplicate_id cannot be {_shown(given)}; it is bytes, or None")
    data = bytes(given)
    if len(data) > LONGEST:
        raise InputError(f"duplicate_id has at most {LONGEST:,} bytes, not {len(data):,}; choose a shorter one")
    return data


def callback_of(what: str, given: Callable[..., _Given] | None) -> Callable[..., _Given] | None:
    """What is called back, if anything is."""
    if given is not None and not callable(given):
        raise InputError(f"{what} cannot be {_shown(given)}; it is called, a function for example")
    return given


def instance_of(what: str, kind: type[_Given], given: object) -> _Given:
    """An object of the engine or of the application."""
    if not isinstance(given, kind):
        raise InputError(f"{what} cannot be {_shown(given)}; it is a {kind.__name__}")
    return given


def check_part(what: str, kinds: tuple[type, ...], described: str, given: object) -> None:
    """Raise :class:`InputError` unless a part that a broker is made of is of these types, or left out."""
    if given is not None and not isinstance(given, kinds):
        raise InputError(f"{what} cannot be {_shown(given)}; it is {described}")


def flag_of(what: str, given: object) -> bool:
    """``True`` or ``False``, and not what Python would take for one of them."""
    if not isinstance(given, bool):
        raise InputError(f"{what} cannot be {_shown(given)}; it is True or False")
    return given


def seed_of(given: object) -> int:
    """What chance begins with."""
    if not isinstance(given, int):
        raise InputError(f"seed cannot be {_shown(given)}; it is a whole number")
    return given


def length_of(given: object) -> int:
    """How many messages a queue holds."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InputError(f"max_length cannot be {_shown(given)}; it is a whole number from 0, or None")
    return given


def nanoseconds_of(given: object) -> int:
    """A timeout, which is in seconds, in nanoseconds."""
    if type(given) is float and not given:
        return 0
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise InputError(f"timeout cannot be {_shown(given)}; it is seconds, or None for any time")
    try:
        return round(float(given) * 1e9)
    except (OverflowError, ValueError):
        raise InputError("timeout is not finite, or too large; it is seconds, or None for any time") from None


def _short(what: str, given: object, longest: int) -> str:
    text = _text(what, given)
    if not text:
        raise InputError(f"{what} has at least one character")
    if len(text.encode()) > longest:
        raise InputError(f"{what} has at most {longest:,} bytes, and {_shown(text)} has more; choose a shorter one")
    return text


def _text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise InputError(f"{what} cannot be {_shown(given)}; it is text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{what} cannot be {_shown(given)}: it holds half of a surrogate pair, which UTF-8 cannot encode"
        ) from None
    return given


def _shown(given: object) -> str:
    """A wrong argument as an error shows it, whatever it is."""
    if isinstance(given, str):
        return quoted(given, _SHOWN)
    if given is None or isinstance(given, float) or (isinstance(given, int) and given.bit_length() <= _BITS):
        return repr(given)
    return f"an object of type {type(given).__name__}"
