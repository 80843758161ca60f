"""What is said of a claim, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

__all__ = ["Evidence", "Status", "conclude"]


class Status(StrEnum):
    """What the tables say of a sentence.  ``unknown`` is never a pass."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What one check has shown.

    ``holds`` is ``None`` if it could not tell.  ``sentence`` is for a person; ``data`` is what the
    sentence rests on, as JSON values.
    """

    check: str
    holds: bool | None
    sentence: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The evidence as the command contract has it."""
        return {"check": self.check, "holds": self.holds, "sentence": self.sentence, **self.data}


def conclude(evidence: Iterable[Evidence]) -> Status:
    """Refuted by one check that fails; proved if all hold (and there are any); otherwise unknown."""
    held = [one.holds for one in evidence]
    if False in held:
        return Status.REFUTED
    return Status.PROVED if held and all(held) else Status.UNKNOWN
