"""The factors of ``spec/sweep.yaml``: the settings that ``ackfsm matrix`` varies, with their values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, TypeAlias

from ackfsm.tables._conditions import STATIC_NAMES, Condition
from ackfsm.tables._source import Document
from ackfsm.terms import InputError, legal_values, parse_value

Value: TypeAlias = StrEnum | bool | int | None
"""A value of a setting."""


@dataclasses.dataclass(frozen=True, slots=True)
class Omission:
    """A value that is not explored where ``when`` holds, a condition on the number of messages alone."""

    value: Value
    when: Condition
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Factor:
    """A setting that is varied over ``values`` where ``when`` holds, and left to the profile elsewhere.

    ``left_out`` is a value that takes too long with many messages, ``None`` if each can be explored.
    """

    key: str
    values: tuple[Value, ...]
    when: Condition
    left_out: Omission | None
    because: str
    source: str


def read_factors(
    document: Document, condition: Callable[[tuple[str | int, ...], str], Condition]
) -> tuple[Factor, ...]:
    """Read ``sweep.yaml``; ``condition`` parses one, given its place.

    Raises :class:`ackfsm.terms.SpecError` for settings and values that do not exist, for a setting
    that is listed twice, and for conditions that read what is no setting or a factor further down
    (those of ``left_out``: anything but ``messages``).
    """
    factors = tuple(_factor(document, i, row, condition) for i, row in enumerate(document.data))
    keys = [factor.key for factor in factors]
    for i, key in enumerate(keys):
        if key in keys[:i]:
            raise document.error((i, "key"), f"{key} stands twice; keep one")
        if late := sorted(factors[i].when.settings() & set(keys[i:])):
            raise document.error((i, "when"), f"{key} matters depending on {late[0]}; move {late[0]} above it")
    return factors


def _factor(
    document: Document,
    number: int,
    row: dict[str, Any],
    condition: Callable[[tuple[str | int, ...], str], Condition],
) -> Factor:
    when = condition((number, "when"), row.get("when", "True"))
    if unfit := sorted(when.settings() & STATIC_NAMES.keys()):
        raise document.error((number, "when"), f"{unfit[0]} is no setting; a switch matters in a configuration")
    with document.at((number,)):
        values = tuple(_values(row["key"], row.get("values")))
    left_out = _omission(document, number, row, condition)
    return Factor(row["key"], values, when, left_out, row["because"], row["source"])


def _omission(
    document: Document,
    number: int,
    row: dict[str, Any],
    condition: Callable[[tuple[str | int, ...], str], Condition],
) -> Omission | None:
    if "left_out" not in row:
        return None
    omitted, path = row["left_out"], (number, "left_out")
    when = condition((*path, "when"), omitted["when"])
    if unfit := sorted(when.settings() - {"messages"}):
        raise document.error(
            (*path, "when"), f"{unfit[0]} does not say how many messages there are; only messages may stand here"
        )
    with document.at((*path, "value")):
        return Omission(parse_value(row["key"], omitted["value"]), when, omitted["because"], omitted["source"])


def _values(key: str, stated: list[object] | None) -> Iterator[Value]:
    if stated is not None:
        yield from (parse_value(key, value) for value in stated)
    elif values := legal_values(key):
        yield from values
    else:
        raise InputError(f"{key} is a number; say which values it takes (values: [...])")
