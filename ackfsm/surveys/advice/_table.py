"""Read ``spec/advice.yaml``: other words for guarantees, and candidates beside the switches of the sweep."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackfsm.tables import Condition, Document, Specification, Value, condition_of, read_form
from ackfsm.terms import key_type, parse_value

SIZES_OF_WORKLOADS = frozenset({"messages_per_commit", "messages_per_acknowledge"})
"""Sizes that are no settings: they belong to what the application does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """A key and the values that are tried beside its default, where ``when`` holds of a configuration."""

    key: str
    values: tuple[Any, ...]
    when: Condition


@dataclasses.dataclass(frozen=True, slots=True)
class AdviceTable:
    """``needs`` has the guarantee that a word stands for; ``varied`` are settings, ``sizes`` buy throughput."""

    needs: Mapping[str, str]
    varied: tuple[Choice, ...]
    sizes: tuple[Choice, ...]


def read_table(specification: Specification, directory: Path | None = None) -> AdviceTable:
    """The table of ``spec/`` (or of ``directory``).

    Raises :class:`ackfsm.terms.SpecError` naming file and line for a guarantee, setting, value or condition that does
    not exist.
    """
    document = read_form("advice.yaml", "advice", directory)
    needs = {name: _guarantee(document, specification, name, row) for name, row in document.data["needs"].items()}
    varied, sizes = (
        tuple(_choice(document, specification, kind, n, row) for n, row in enumerate(document.data[kind]))
        for kind in ("varied", "sizes")
    )
    return AdviceTable(needs, varied, sizes)


def _guarantee(document: Document, specification: Specification, name: str, row: Mapping[str, Any]) -> str:
    guarantee = str(row["guarantee"])
    if guarantee not in specification.guarantees:
        known = ", ".join(specification.guarantees)
        raise document.error(("needs", name), f"there is no guarantee {guarantee!r}; guarantees.yaml has {known}")
    return guarantee


def _choice(document: Document, specification: Specification, kind: str, number: int, row: Mapping[str, Any]) -> Choice:
    key = row["key"]
    with document.at((kind, number)):
        values = tuple(_value(key, value) for value in row["values"])
    return Choice(key, values, condition_of(document, (kind, number), row, specification.conditions))


def _value(key: str, value: object) -> Value:
    if key in SIZES_OF_WORKLOADS:
        return value if isinstance(value, int) else None
    key_type(key)
    return parse_value(key, value)
