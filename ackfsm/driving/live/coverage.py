"""Which rows of the tables live brokers performed: counted while they are driven, kept as JSON, shown as a page."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

from ackfsm.tables.lookup import RowKey
from ackfsm.verify.findings.performed import Performed, TableRow

__all__ = ["Covered"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The rows of one client in one mode: reachable in the model, and performed.

    Attributes:
        reachable: those of runs that application, library, broker and the faults that were struck can bring about.
        certain: performed, on every run of the model that explains what was recorded; how many messages did.
        possible: performed on some such run.
        messages: how many were looked at.
        left_out: messages of which nothing is certain, by the reason.
    """

    reachable: frozenset[str]
    certain: Mapping[str, int]
    possible: Mapping[str, int]
    messages: int
    left_out: Mapping[str, int]

    @classmethod
    def of(cls, reachable: Iterable[TableRow], performed: Performed) -> Self:
        """Name the rows."""
        return cls(
            reachable=frozenset(map(_name, reachable)),
            certain=_named(performed.certain),
            possible=_named(performed.possible),
            messages=performed.messages,
            left_out=performed.left_out,
        )

    @property
    def shares(self) -> tuple[float, float]:
        """How much of what is reachable was performed for certain, and how much perhaps or for certain."""
        of = max(1, len(self.reachable))
        return len(self.reachable & self.certain.keys()) / of, len(self.reachable & self.possible.keys()) / of

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "reachable": sorted(self.reachable),
            "certain": dict(self.certain),
            "possible": dict(self.possible),
            "messages": self.messages,
            "left_out": dict(self.left_out),
        }


def _named(rows: Mapping[TableRow, int]) -> Mapping[str, int]:
    found = Counter[str]()
    for row, number in rows.items():
        found[_name(row)] += number
    return MappingProxyType(found)


def _name(row: TableRow) -> str:
    return str(RowKey.of(row.machine, row.state, row.event, row.row))
