"""What a run of an application program reports: what it did, and what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from ackfsm.terms import Configuration
from model_tests.applications.books import Item

__all__ = ["Failure", "Report"]


@dataclasses.dataclass(frozen=True)
class Failure:
    """What is wrong: who says so, and what.

    ``judge`` is ``books``, ``verify``, ``model``, ``raised`` or ``unobserved``; ``items`` are the messages of the run
    as the books have them.
    """

    judge: str
    text: str
    items: Mapping[str, Item] = dataclasses.field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.judge}: {self.text}"


@dataclasses.dataclass
class Report:
    """What a run did: events of the tables, feats of the application; the configurations of its sessions."""

    failure: Failure | None
    events: Counter[str]
    feats: set[str]
    sending: list[Configuration]
    consuming: list[Configuration]
