"""Validate the arguments of API calls before anything happens, so that a refused call changes nothing."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from ackfsm.engine.core.codec import LONGEST
from ackfsm.engine.core.instances import Body, HeaderValue, MapValue, Queue
from ackfsm.terms import InputError
from ackfsm.text import quoted

_Given = TypeVar("_Given")

_SHOWN = 60
"""Characters of a wrong argument that an error shows."""

_BITS = 64
"""The longest whole numbers in headers, as in JMS and AMQP."""

_TIMES = 2**63
"""Times are below this, in nanoseconds."""

_LONGEST_CLIENT = LONGEST - 64
"""Bytes of a client's id at most: the ids of its messages begin with it."""

NO_HEADERS: Mapping[str, HeaderValue] = MappingProxyType({})


def body_of(given: object) -> Body:
    """The payload, which cannot be changed any more."""
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    if isinstance(given, str):
        return text_of("body", given)
    if isinstance(given, Mapping):
        return MappingProxyType({_entry(name): _mapped(name, value) for name, value in given.items()})
    raise InputError(f"body cannot be {_shown(given)}; it is bytes, text, or a mapping of names to values")


def _entry(name: object) -> str:
    """A name in a mapping (JMS 3.1, ``MapMessage``: it is not empty)."""
    return text_of("a name in the body", name, least=1)


def _mapped(name: object, value: object) -> MapValue:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _value(f"{_shown(name)} in the body", value, "text, bytes, a number, True, False or None")


def headers_of(given: object) -> Mapping[str, HeaderValue]:
    """A copy of the headers, which cannot be changed any more."""
    if not isinstance(given, Mapping):
        raise InputError(f"headers cannot be {_shown(given)}; they are a mapping of names to values")
    return MappingProxyType({_header(name): _named(name, value) for name, value in given.items()})


def _header(name: object) -> str:
    return text_of("the name of a header", name)


def _named(name: object, value: object) -> HeaderValue:
    kinds = "text, a number, True, False or None: send anything else in the body"
    return _value(f"header {_shown(name)}", value, kinds)


def _value(what: str, value: object, kinds: str) -> HeaderValue:
    if isinstance(value, str):
        return text_of(what, value)
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise InputError(f"{what} has a number of more than {_BITS} bits; send it as text")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise InputError(f"{what} cannot be {_shown(value)}; it is {kinds}")


def id_of(what: str, given: object) -> str:
    """An id of a message, or of a client."""
    return _short(what, given, _LONGEST_CLIENT if what == "client_id" else LONGEST)


def name_of(given: object) -> str:
    """A name of a queue."""
    return _short("the name of a queue", given, LONGEST)


def reply_of(given: object) -> str:
    """Return the name of the queue for an answer; ``given`` may be the queue itself."""
    return _short("reply_to", given.name if isinstance(given, Queue) else given, LONGEST)


def duplicate_id_of(given: object) -> bytes:
    """An id by which the broker knows a message again."""
    if not isinstance(given, bytes | bytearray | memoryview):
        raise InputError(f"duplicate_id cannot be {_shown(given)}; it is bytes, or None")
    data = bytes(given)
    if len(data) > LONGEST:
        raise InputError(f"duplicate_id has at most {LONGEST:,} bytes, not {len(data):,}; choose a shorter one")
    return data


def callback_of(what: str, given: Callable[..., _Given] | None) -> Callable[..., _Given] | None:
    """Return the callback, if one is given."""
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


def time_of(given: object) -> int:
    """The time of a clock, in nanoseconds."""
    if isinstance(given, bool) or not isinstance(given, int) or not -_TIMES <= given < _TIMES:
        raise InputError(f"clock cannot say {_shown(given)}; it says whole nanoseconds, of 64 bits")
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
    text = text_of(what, given, least=1)
    if len(text.encode()) > longest:
        raise InputError(f"{what} has at most {longest:,} bytes, and {_shown(text)} has more; choose a shorter one")
    return text


def text_of(what: str, given: object, *, least: int = 0) -> str:
    """Text, in characters that UTF-8 can encode."""
    if not isinstance(given, str):
        raise InputError(f"{what} cannot be {_shown(given)}; it is text")
    if len(given) < least:
        raise InputError(f"{what} has at least one character")
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
