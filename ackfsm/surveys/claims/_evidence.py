"""The status of a claim, with its evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Whether the tables prove a sentence.  ``unknown`` is never a pass."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What one check has shown.

    ``holds`` is ``None`` if it is undecided.  ``sentence`` is for a person; ``data`` has what the
    sentence is based on, as JSON values.  ``few_messages`` is for how many messages it was shown, ``None`` if for any.
    """

    check: str
    holds: bool | None
    sentence: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    few_messages: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The evidence as ``docs/commands.md`` has it."""
        shown_for = {"shown_for": self.few_messages or "any"} if self.holds else {}
        return {"check": self.check, "holds": self.holds, "sentence": self.sentence, **self.data, **shown_for}


def conclude(evidence: Iterable[Evidence]) -> Status:
    """Refuted by one check that fails; proved if all hold (and there are any); otherwise unknown."""
    holds = [one.holds for one in evidence]
    if False in holds:
        return Status.REFUTED
    return Status.PROVED if holds and all(holds) else Status.UNKNOWN
