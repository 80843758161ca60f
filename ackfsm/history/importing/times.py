"""Times in a column, as nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ackfsm.history.importing.mapping import When

_FACTORS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ZONED: Final = r"([Zz]|[+-]\d\d:?\d\d)$"
_NUMERIC: Final = re.compile(r"[+-]?\d+(\.\d*)?")
_ISO: Final = "iso"

_RULES_END: Final = 2_114_380_800 * 10**9
"""The year 2037: later Arrow knows no summer time."""

_FRACTION: Final = "%f"
_DIGITS: Final = 9
_NAIVE: Final = pa.timestamp("ns")


def nanoseconds(column: pa.Array, when: When) -> pa.Array:
    """Return the times of ``column`` in ns since 1970 (or since the zero of its numbers); null for other values.

    Numbers are of the unit of ``when``, without one nanoseconds.  Text is of its format; without unit and format it is
    read as numbers if it begins with one, else as ISO 8601.  What has no zone is in that of ``when``; a time that the
    clocks there show twice a year, or never, is none.
    """
    if pt.is_null(column.type):
        return pa.nulls(len(column), pa.int64())
    if pt.is_timestamp(column.type):
        return tolerant(lambda part: _of_timestamps(part.cast(pa.timestamp("ns", column.type.tz)), when.zone), column)
    if pt.is_decimal(column.type):
        column = column.cast(pa.string())
    if pt.is_integer(column.type) or pt.is_floating(column.type):
        return tolerant(lambda part: _of_numbers(part, _FACTORS[when.unit or "ns"]), column)
    if when.format is not None and when.format != _ISO:
        return _formatted(column, when.format, when.zone)
    if when.unit is not None or (when.format is None and _is_numeric(column)):
        return tolerant(lambda part: _of_digits(part, _FACTORS[when.unit or "ns"]), column)
    return _of_iso(column, when.zone)


def _is_numeric(texts: pa.Array) -> bool:
    some = texts.drop_null()
    return len(some) > 0 and _NUMERIC.fullmatch(some[0].as_py()) is not None


def _of_numbers(numbers: pa.Array, factor: int) -> pa.Array:
    if pt.is_integer(numbers.type):
        return pc.multiply_checked(numbers.cast(pa.int64()), pa.scalar(factor, pa.int64()))
    whole = pc.floor(numbers)  # apart, for a double has 53 bits
    rest = pc.round(pc.multiply(pc.subtract(numbers, whole), float(factor))).cast(pa.int64())
    return pc.add_checked(_of_numbers(whole.cast(pa.int64()), factor), rest)


def _of_digits(texts: pa.Array, factor: int) -> pa.Array:
    try:
        return _of_numbers(texts.cast(pa.int64()), factor)
    except pa.ArrowInvalid:
        return _of_fractions(texts, factor)


def _of_fractions(texts: pa.Array, factor: int) -> pa.Array:
    """Return the ns exactly, digit by digit; parts of a nanosecond are cut off."""
    places = len(str(factor)) - 1
    parts = pc.extract_regex(texts, r"^(?P<whole>[+-]?\d+)(?:\.(?P<fraction>\d*))?$")
    whole = _of_numbers(pc.struct_field(parts, "whole").cast(pa.int64()), factor)
    if pc.any(pc.and_(texts.is_valid(), parts.is_null())).as_py():
        raise pa.ArrowInvalid("no number")
    if not places:
        return whole
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "fraction"), places, "0"), 0, places)
    return pc.add_checked(whole, digits.cast(pa.int64()))


def _of_timestamps(times: pa.Array, zone: str) -> pa.Array:
    if times.type.tz is None and zone != "UTC":
        if len(times) > times.null_count and pc.max(times.cast(pa.int64())).as_py() >= _RULES_END:
            raise pa.ArrowInvalid("the time zone is not known so late")
        times = pc.assume_timezone(times, zone, ambiguous="raise", nonexistent="raise")
    return times.cast(pa.int64())


def _of_iso(texts: pa.Array, zone: str) -> pa.Array:
    texts = pc.replace_substring(texts, ",", ".") if pc.any(pc.match_substring(texts, ",")).as_py() else texts
    zoned = pc.match_substring_regex(texts, _ZONED)
    if not pc.any(zoned).as_py():
        return tolerant(lambda part: _of_timestamps(part.cast(_NAIVE), zone), texts)
    nothing = pa.scalar(None, pa.string())
    absolute = tolerant(
        lambda part: part.cast(pa.timestamp("ns", "UTC")).cast(pa.int64()), pc.if_else(zoned, texts, nothing)
    )
    if pc.all(zoned).as_py():
        return absolute
    local = tolerant(lambda part: _of_timestamps(part.cast(_NAIVE), zone), pc.if_else(zoned, nothing, texts))
    return pc.coalesce(absolute, local)


def _formatted(texts: pa.Array, form: str, zone: str) -> pa.Array:
    """Texts as :func:`time.strptime` reads them; ``%f`` may have up to nine digits."""
    before, fraction, after = form.partition(_FRACTION)
    if "%z" in form or "%Z" in form or after or _FRACTION in after or (fraction and not before):
        return _one_by_one(texts, form, zone)
    digits = None
    if fraction:
        separator = before[-1]
        parts = pc.extract_regex(texts, rf"^(?P<time>.*){re.escape(separator)}(?P<fraction>\d{{1,{_DIGITS}}})$")
        texts = pc.if_else(parts.is_valid(), pc.struct_field(parts, "time"), pa.scalar(None, pa.string()))
        digits = pc.struct_field(parts, "fraction")
        before = before[:-1]
    whole = pc.strptime(texts, before, "s", error_is_null=True)
    times = tolerant(lambda part: _of_timestamps(part.cast(_NAIVE), zone), whole)
    if digits is None:
        return times
    padded = pc.utf8_rpad(digits, _DIGITS, "0")
    return pc.add(times, tolerant(lambda part: part.cast(pa.int64()), padded))


def _one_by_one(texts: pa.Array, form: str, zone: str) -> pa.Array:
    where = ZoneInfo(zone)
    return pa.array([None if text is None else _single(text, form, where) for text in texts.to_pylist()], pa.int64())


def _single(text: str, form: str, zone: ZoneInfo) -> int | None:
    try:
        time = datetime.strptime(text, form)  # noqa: DTZ007 - the zone is put in below
    except ValueError:
        return None
    if time.tzinfo is None:
        early, late = (time.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        if early.utcoffset() != late.utcoffset():
            return None
        time = early
    since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1_000


def tolerant(function: Callable[[pa.Array], pa.Array], array: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """``function`` of the array, null where it fails: the array is halved until that is known."""
    try:
        return function(array)
    except (pa.ArrowException, ValueError):
        if len(array) <= 1:
            return pa.nulls(len(array), kind or pa.int64())
    middle = len(array) // 2
    halves = (array.slice(0, middle), array.slice(middle))
    return pa.concat_arrays([tolerant(function, half, kind) for half in halves])
