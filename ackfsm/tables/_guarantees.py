"""Guarantees: which findings exclude each of them, and which is stronger than which.

A finding is an anomaly, or a monitor's: an end of a message that is none.  A guarantee is excluded by findings: its
own, and those of every guarantee that it is above.  One anomaly may imply others (processing cannot complete twice
without a second delivery), so a guarantee that rules out the implied ones rules out the implying one too.  Guarantees
are a partial order: the one that rules out more is the stronger.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

from ackfsm.tables._source import Document
from ackfsm.terms import Anomaly


class Level(StrEnum):
    """The unit of a guarantee: deliveries, completed processing, or the effects of a transaction."""

    DELIVERY = "delivery"
    PROCESSING = "processing"
    TRANSACTION = "transaction"


@dataclasses.dataclass(frozen=True, slots=True)
class Implication:
    """Wherever ``anomaly`` has happened, at least one of ``implies`` has happened too."""

    anomaly: Anomaly
    implies: frozenset[Anomaly]
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Exclusion:
    """A finding that excludes a guarantee, and why: an anomaly, or the name of a monitor."""

    finding: str
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Guarantee:
    """One guarantee of the table: ``above`` names weaker ones, whose exclusions it has too.

    ``of_what_was_confirmed`` is the monitor that excludes it of messages that were reported as sent; empty without one.
    """

    name: str
    level: Level
    means: str
    above: tuple[str, ...]
    excluded_by: tuple[Exclusion, ...]
    of_what_was_confirmed: str = ""


@dataclasses.dataclass(frozen=True)
class Guarantees(Mapping[str, Guarantee]):
    """All guarantees by name, in the order of the table, with the implications between anomalies."""

    named: Mapping[str, Guarantee]
    implications: tuple[Implication, ...]

    def __getitem__(self, name: str) -> Guarantee:
        return self.named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)

    @functools.cached_property
    def monitors(self) -> tuple[str, ...]:
        """The monitors that exclude guarantees, in the order of the table."""
        findings = (e.finding for guarantee in self.named.values() for e in guarantee.excluded_by)
        return tuple(dict.fromkeys(finding for finding in findings if finding not in set(Anomaly)))

    def excluded_by(self, name: str) -> frozenset[str]:
        """Return the findings that exclude this guarantee, its own and the ones of weaker guarantees named."""
        guarantee = self.named[name]
        own = frozenset(exclusion.finding for exclusion in guarantee.excluded_by)
        return own.union(*(self.excluded_by(weaker) for weaker in guarantee.above))

    def rules_out(self, name: str) -> frozenset[str]:
        """The findings that cannot be made where this guarantee holds, anomalies that imply others included."""
        return self._ruled_out[name]

    @functools.cached_property
    def _ruled_out(self) -> Mapping[str, frozenset[str]]:
        return {name: self._absent_with(self.excluded_by(name)) for name in self.named}

    def is_above(self, stronger: str, weaker: str) -> bool:
        """Whether ``stronger`` rules out everything that ``weaker`` rules out, and more."""
        return self._ruled_out[stronger] > self._ruled_out[weaker]

    def evaluate(self, happens: Mapping[str, bool | None]) -> dict[str, bool | None]:
        """Whether each guarantee holds; ``happens`` has for findings whether they can happen (or did).

        ``False`` if a finding that it rules out happens, ``True`` if none of those that exclude it does,
        ``None`` where that depends on findings that are unknown (``None``) or missing.
        """
        present = {finding for finding, happened in happens.items() if happened}
        absent = self._absent_with({finding for finding, happened in happens.items() if happened is False})
        return {name: self._holds(name, present, absent) for name in self.named}

    def _holds(self, name: str, present: Collection[str], absent: frozenset[str]) -> bool | None:
        if not self._ruled_out[name].isdisjoint(present):
            return False
        return True if self.excluded_by(name) <= absent else None

    def strongest(self, verdicts: Mapping[str, bool | None]) -> tuple[str, ...]:
        """The maximal ones among the guarantees that hold by ``verdicts`` (:meth:`evaluate`)."""
        held = [name for name in self.named if verdicts.get(name)]
        return tuple(name for name in held if not any(self.is_above(other, name) for other in held))

    def strongest_by_level(self, verdicts: Mapping[str, bool | None]) -> dict[Level, tuple[str, ...]]:
        """For each level the maximal ones among its guarantees that hold by ``verdicts`` (:meth:`evaluate`)."""
        return {
            level: self.strongest({n: holds and self.named[n].level is level for n, holds in verdicts.items()})
            for level in Level
        }

    def _absent_with(self, absent: Collection[str]) -> frozenset[str]:
        """``absent`` and every anomaly that implies only absent ones, which therefore cannot happen either."""
        closed = frozenset(absent)
        while more := {i.anomaly for i in self.implications if i.implies <= closed} - closed:
            closed |= more
        return closed


def read_guarantees(document: Document) -> Guarantees:
    """Read ``guarantees.yaml``; raises :class:`ackfsm.terms.SpecError` with the line of an error in the order."""
    implications = tuple(_implication(document, i, row) for i, row in enumerate(document.data["implications"]))
    named = {name: _guarantee(name, row) for name, row in document.data["guarantees"].items()}
    for name in named:
        _check_order(document, name, named, ())
    guarantees = Guarantees(named, implications)
    _check_distinct(document, guarantees)
    return guarantees


def _implication(document: Document, number: int, row: Mapping[str, Any]) -> Implication:
    anomaly, implies = Anomaly(row["anomaly"]), frozenset(map(Anomaly, row["implies"]))
    if anomaly in implies:
        raise document.error(("implications", number), f"{anomaly} implies itself, which says nothing; delete it there")
    return Implication(anomaly, implies, row["because"], row["source"])


def _guarantee(name: str, row: Mapping[str, Any]) -> Guarantee:
    exclusions = (
        Exclusion(Anomaly(e["anomaly"]) if "anomaly" in e else e["monitor"], e["because"], e["source"])
        for e in row.get("excluded_by", ())
    )
    narrowed = row.get("of_what_was_confirmed", {}).get("monitor", "")
    return Guarantee(name, Level(row["level"]), row["means"], tuple(row.get("above", ())), tuple(exclusions), narrowed)


def _check_order(document: Document, name: str, named: Mapping[str, Guarantee], over: tuple[str, ...]) -> None:
    """Refuse names that do not exist, and a guarantee that is (through others) above itself."""
    if name in over:
        circle = " above ".join((*over[over.index(name) :], name))
        raise document.error(
            ("guarantees", name, "above"), f"{circle}: no guarantee is above itself; drop one of these"
        )
    for weaker in named[name].above:
        if weaker not in named:
            raise document.error(
                ("guarantees", name, "above"), f"there is no guarantee {weaker!r}; define it or drop it"
            )
        _check_order(document, weaker, named, (*over, name))


def _check_distinct(document: Document, guarantees: Guarantees) -> None:
    """Refuse two guarantees that rule out the same."""
    seen: dict[frozenset[str], str] = {}
    for name in guarantees:
        other = seen.setdefault(guarantees.rules_out(name), name)
        if other != name:
            raise document.error(("guarantees", name), f"{name} and {other} rule out the same; keep one")
