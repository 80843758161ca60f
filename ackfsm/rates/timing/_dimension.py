"""One dimension of a sweep: an option of ``ackfsm plan`` or a setting, and the values that it takes."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from ackfsm.support.throughput import parse_bandwidth, parse_duration, parse_rate
from ackfsm.terms import InputError
from ackfsm.text import meant, parse_size, quoted

__all__ = ["SWEPT_OPTIONS", "Dimension", "read_dimension"]

Number = Fraction | int | bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a grid: an option or setting, and its values.

    Attributes:
        name: an option of ``ackfsm plan``, with underscores, or a setting, by its key or by the system's name.
        values: as they are written.
        fields: those of a workload that it stands for; empty for a setting.
        numbers: of an option what each of the values means.
    """

    name: str
    values: tuple[str, ...]
    fields: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()

    @property
    def is_setting(self) -> bool:
        """Whether it is a setting of the configuration, not a number of the workload."""
        return not self.fields


def read_dimension(text: str, *, both_ways: bool = True) -> Dimension:
    """A dimension as it is typed: ``rtt=0.1ms,1ms``, ``publish_window=1..1000*10``, ``producers=1..8+1``.

    Args:
        text: a name and its values, with commas between them.  A range has its first and its last value, and by what
            the next is greater (``*10``, ``+1``).
        both_ways: ``bandwidth`` is that of both directions.

    Raises :class:`InputError` for what is not of that form, or no value of an option; settings are not looked at.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if not (equals and name and values.strip()):
        raise InputError(f"{quoted(text)} is not NAME=VALUE,VALUE…, for example rtt=0.1ms,1ms,10ms")
    option = name.replace("-", "_")
    if option not in SWEPT_OPTIONS:
        return Dimension(name, _once(name, _values(name, values, _of_setting)))
    fields, parse = SWEPT_OPTIONS[option]
    chosen = _once(option, _values(option, values, parse))
    numbers = tuple(_read(option, parse, value) for value in chosen)
    return Dimension(option, chosen, fields if both_ways else fields[:1], numbers)


def _once(name: str, values: Iterator[str]) -> tuple[str, ...]:
    found = dict[str, None]()
    for value in values:
        if value in found:
            raise InputError(f"{name} says {quoted(value)} twice; say it once")
        found[value] = None
    return tuple(found)


_MOST: Final = 10_000
"""No dimension has more values."""

_RANGE: Final = re.compile(r"(?P<low>.+?)\.\.(?P<high>.+?)(?P<sign>[*+])(?P<step>[^*+]+)")
_UNIT: Final = re.compile(r"\d+(?:\.\d+)?\s*(?P<unit>[A-Za-z/]*)")


def _values(name: str, text: str, parse: Callable[[str], Number]) -> Iterator[str]:
    for each in text.split(","):
        value = each.strip()
        if not value:
            raise InputError(f"{name} has an empty value in {quoted(text)}; leave that comma out")
        if ".." in value:
            yield from _range(name, value, parse)
        else:
            yield value


def _range(name: str, text: str, parse: Callable[[str], Number]) -> Iterator[str]:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise InputError(
            f"{name}: {quoted(text)} is no range; write FIRST..LAST*FACTOR or FIRST..LAST+STEP: 1..1000*10"
        )
    low, high = (_ordered(name, parse, found[end].strip()) for end in ("low", "high"))
    multiplied, unit = found["sign"] == "*", _unit(found["low"])
    step = _factor(name, found["step"]) if multiplied else _ordered(name, parse, found["step"].strip())
    if high < low:
        raise InputError(f"{name}: {quoted(text)} ends before it begins; write the smaller one first")
    if multiplied and low == 0:
        raise InputError(f"{name}: {quoted(text)} never leaves 0; begin above it")
    if step == 0:
        raise InputError(f"{name}: {quoted(text)} never ends; take a step above 0")
    one, whole = _ordered(name, parse, f"1{unit}"), isinstance(parse(found["low"].strip()), int)
    value, written = low, list[str]()
    while value <= high:
        number = value / one
        written.append(f"{_decimal(Fraction(math.floor(number)) if whole else number)}{unit}")
        if len(written) > _MOST:
            raise InputError(f"{name}: {quoted(text)} has more than {_MOST:,} values; take a greater step")
        value = value * step if multiplied else value + step
    yield from dict.fromkeys(written)


def _unit(text: str) -> str:
    found = _UNIT.fullmatch(text.strip())
    return found["unit"] if found else ""


def _decimal(number: Fraction) -> str:
    """A number in decimals: all of them where it is whole, else twelve digits."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.12g}"


def _factor(name: str, text: str) -> Fraction:
    try:
        factor = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor <= 1:
        raise InputError(f"{name}: {quoted(text)} is no factor of a range; write a number above 1")
    return factor


def _ordered(name: str, parse: Callable[[str], Number], text: str) -> Fraction:
    """A value as a number that a range can go over."""
    value = _read(name, parse, text)
    if value is None or isinstance(value, bool):
        raise InputError(f"{name}: {quoted(text)} is no number that a range could begin or end with")
    return Fraction(value)


def _read(name: str, parse: Callable[[str], Number], text: str) -> Number:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _bandwidth(text: str) -> Fraction | None:
    return None if text == "any" else parse_bandwidth(text)


def _size(text: str) -> int:
    found = parse_size(text)
    if not found:
        raise InputError(f"{quoted(text)} is not a size, as 512MiB or 8GiB are")
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) >= 1):
        raise InputError(f"{quoted(text)} is not a whole number from 1")
    return int(text)


_DIGITS: Final = 18
"""A number with so many digits fits into 64 bits."""


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise InputError(f"{quoted(text)} is neither true nor false{meant(text, ('true', 'false'))}")
    return text == "true"


def _of_setting(text: str) -> int:
    found = parse_size(text)
    if found is None:
        raise InputError(f"{quoted(text)} is no number that a range could begin or end with")
    return found


_Option = tuple[tuple[str, ...], Callable[[str], Number]]

SWEPT_OPTIONS: Final[Mapping[str, _Option]] = MappingProxyType(
    {
        "rtt": (("rtt",), parse_duration),
        "bandwidth": (("bandwidth", "bandwidth_back"), _bandwidth),
        "bandwidth_back": (("bandwidth_back",), _bandwidth),
        "message_size": (("message_size",), _size),
        **{
            name: ((name,), parse_duration)
            for name in ("send_time", "broker_time", "sync_time", "processing_time", "timer")
        },
        "group_commit": (("group_commit",), _switch),
        "producers": (("producers",), _count),
        "consumers": (("consumers",), _count),
        "per_commit": (("messages_per_commit",), _count),
        "per_acknowledge": (("messages_per_acknowledge",), _count),
        "rate": (("rate",), parse_rate),
    }
)
"""The options of ``ackfsm plan`` that can be swept: the fields of a workload that each sets, and how it is read."""
