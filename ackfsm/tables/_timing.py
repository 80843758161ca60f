"""The rows of ``spec/timing.yaml``: what waits for what, where the machines are put to a clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ackfsm.tables._conditions import Condition, condition_of
from ackfsm.tables._source import Document


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A ``word`` of ``timing.yaml`` and where it holds."""

    word: str
    when: Condition


@dataclasses.dataclass(frozen=True, slots=True)
class ByteCount:
    """A size that a system counts in bytes.

    Attributes:
        name: as the vendor writes it.
        key: the setting, or the number of a workload, that it is in messages.
        rounded: ``up`` or ``down``, what a part of a message is.
        divided_by: only this part of the bytes counts.
        values: what single values mean.
        because: why it is so.
        source: the vendor's text.
    """

    name: str
    key: str
    rounded: str
    divided_by: int
    values: Mapping[str, int | None]
    because: str
    source: str

    def messages(self, size: int, message_size: int) -> int:
        """How many messages of ``message_size`` bytes a ``size`` in bytes is, at least one."""
        each = message_size * self.divided_by
        return max(1, -(-size // each) if self.rounded == "up" else size // each)


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """What waits for what: of each tuple the first rule that holds decides, and the last one holds always.

    Attributes:
        next_send_after: what a producer waits for before it sends its next message.
        answers: when the broker answers.
        settled_by: what settles a delivery.
        after_sync: which answers (``send``, ``commit``, ``acknowledge``) wait for a sync of the journal.
        counted_in_bytes: by profile what a system counts in bytes.
    """

    next_send_after: tuple[Rule, ...]
    answers: tuple[Rule, ...]
    settled_by: tuple[Rule, ...]
    after_sync: Mapping[str, Condition]
    counted_in_bytes: Mapping[str, tuple[ByteCount, ...]]

    def conditions(self) -> Iterator[Condition]:
        """Every condition of the file."""
        for rules in (self.next_send_after, self.answers, self.settled_by):
            yield from (rule.when for rule in rules)
        yield from self.after_sync.values()


def read_timing(document: Document, conditions: Mapping[str, Condition]) -> Timing:
    """Read ``timing.yaml``, whose rows may name ``conditions``.

    Raises :class:`ackfsm.terms.SpecError` naming file and line of a condition that cannot be read, and of a list whose
    last row, or not its last alone, holds always.
    """
    reader = _Reader(document, conditions)
    return Timing(
        next_send_after=reader.rules("next_send_after", "waits_for"),
        answers=reader.rules("answers", "at"),
        settled_by=reader.rules("settled_by", "by"),
        after_sync=MappingProxyType(
            {name: reader.condition(row, "after_sync", name) for name, row in document.data["after_sync"].items()}
        ),
        counted_in_bytes=MappingProxyType(
            {
                profile: tuple(_byte_count(name, row) for name, row in rows.items())
                for profile, rows in document.data.get("counted_in_bytes", {}).items()
            }
        ),
    )


def _byte_count(name: str, row: Mapping[str, Any]) -> ByteCount:
    return ByteCount(
        name=name,
        key=row["is"],
        rounded=row["rounded"],
        divided_by=row.get("divided_by", 1),
        values=MappingProxyType(row.get("values", {})),
        because=row["because"],
        source=row["source"],
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    document: Document
    conditions: Mapping[str, Condition]

    def rules(self, key: str, word: str) -> tuple[Rule, ...]:
        rows: list[Mapping[str, Any]] = self.document.data[key]
        for number, row in enumerate(rows):
            if ("when" not in row) != (number + 1 == len(rows)):
                raise self.document.error((key, number), f"{key}: the last row, and no other, has no condition")
        return tuple(Rule(row[word], self.condition(row, key, number)) for number, row in enumerate(rows))

    def condition(self, row: Mapping[str, Any], *at: str | int) -> Condition:
        return condition_of(self.document, at, row, self.conditions)
