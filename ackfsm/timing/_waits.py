"""Read ``spec/timing.yaml``: what waits for what in a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackfsm.tables import ALWAYS, Condition, Document, Specification, parse_condition, read_form
from ackfsm.terms import Configuration

__all__ = ["Waits", "waits_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """What waits for what; each text is a word of ``spec/timing.yaml``.

    Attributes:
        next_send_after: ``answer``, ``window``, ``commit`` or ``nothing``.
        window: so many sends may be open; ``None``: any number.
        threshold: the broker answers so many at a time; ``None``: each at once.
        has_timer: it answers fewer when its timer fires.
        completes_first: a commit waits until each send of its transaction is complete.
        send_after_sync: the answer to a send waits for a sync.
        commit_after_sync: that to a commit does.
        acknowledge_after_sync: that to an acknowledgement does.
        settled_by: ``message``, ``call``, ``batch``, ``commit`` or ``dispatch``.
        waits_for_acknowledged: who acknowledges waits for the answer of the broker.
        acknowledged_first: a message is acknowledged before the application has it.
        prefetch: so many deliveries may be out; ``None``: any number.
        is_journalled: messages and their acknowledgements are written to the journal, whoever waits for that.
        freed_on_delivery: a delivery counts until the application has it, not until it is settled.
    """

    next_send_after: str
    window: int | None
    threshold: int | None
    has_timer: bool
    completes_first: bool
    send_after_sync: bool
    commit_after_sync: bool
    acknowledge_after_sync: bool
    settled_by: str
    waits_for_acknowledged: bool
    acknowledged_first: bool
    prefetch: int | None
    freed_on_delivery: bool
    is_journalled: bool


def waits_of(specification: Specification, configuration: Configuration, directory: Path | None = None) -> Waits:
    """What waits for what in ``configuration``, by ``timing.yaml`` of ``spec/`` (or of ``directory``).

    Raises :class:`ackfsm.terms.SpecError` naming file and line where that is wrong.
    """
    return _Reader(read_form("timing.yaml", "timing", directory), specification, configuration).waits()


class _Reader:
    def __init__(self, document: Document, specification: Specification, configuration: Configuration) -> None:
        self.document = document
        self.specification = specification
        self.configuration = configuration
        self.environment = specification.environment(configuration)

    def waits(self) -> Waits:
        after_sync = {
            name: self._condition(row, "after_sync", name).holds(self.environment)
            for name, row in self.document.data["after_sync"].items()
        }
        threshold = self._first("answers", "at") == "threshold"
        next_send_after = self._first("next_send_after", "waits_for")
        return Waits(
            next_send_after=next_send_after,
            window=1 if next_send_after == "answer" else self.configuration.publish_window or None,
            threshold=self.configuration.confirm_threshold if threshold else None,
            has_timer=self.configuration.confirm_timer,
            completes_first=self._holds("completes_transacted_sends"),
            send_after_sync=after_sync["send"],
            commit_after_sync=after_sync["commit"],
            acknowledge_after_sync=after_sync["acknowledge"],
            settled_by=self._first("settled_by", "by"),
            waits_for_acknowledged=self._holds("confirms_acks"),
            acknowledged_first=self._holds("acks_before_delivery"),
            prefetch=self.configuration.prefetch or None,
            freed_on_delivery=self._holds("credit_freed_on_delivery"),
            is_journalled=self._holds("journalled"),
        )

    def _holds(self, condition: str) -> bool:
        return self.specification.conditions[condition].holds(self.environment)

    def _first(self, key: str, word: str) -> str:
        """The word of the first row of a list that holds."""
        rows: list[Mapping[str, Any]] = self.document.data[key]
        for number, row in enumerate(rows):
            if ("when" not in row) != (number + 1 == len(rows)):
                raise self.document.error((key, number), f"{key}: the last row, and no other, has no condition")
        found = next(row for n, row in enumerate(rows) if self._condition(row, key, n).holds(self.environment))
        return str(found[word])

    def _condition(self, row: Mapping[str, Any], *at: str | int) -> Condition:
        if "when" not in row:
            return ALWAYS
        try:
            return parse_condition(row["when"], self.specification.conditions)
        except ValueError as error:
            raise self.document.error((*at, "when"), str(error)) from None
