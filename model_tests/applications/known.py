"""Defects that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one moves its program to MENDED: the suite fails as soon as it does not fail as its row says.  A failure
is known by what each of its lines says, of which messages, and by how the program is configured; what leads to it is
drawn like anything else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from model_tests.applications.books import Item
from model_tests.applications.programs import Program
from model_tests.applications.reports import Failure

__all__ = ["KNOWN", "Known", "known", "tells"]


@dataclasses.dataclass(frozen=True)
class Known:
    """One defect."""

    name: str
    what: str
    program: Program
    is_told_by: Callable[[Program, Failure], bool]

    def __str__(self) -> str:
        return self.name


def known(program: Program, failure: Failure, among: Iterable[Known] | None = None) -> Known | None:
    """The known defect that ``failure`` of ``program`` tells of, if it is one; ``among`` these, by default KNOWN."""
    return next((each for each in (KNOWN if among is None else among) if each.is_told_by(program, failure)), None)


def tells(failure: Failure, said: Iterable[str], of: Callable[[Item], bool]) -> bool:
    """Whether each line of ``failure`` says one of ``said``, of messages that can have the defect and no others."""
    for line in failure.text.splitlines():
        named = [failure.items[name] for name in re.findall(r"\bm\d+\b", line.partition(":")[0])]
        if not (named and all(map(of, named)) and any(words in line for words in said)):
            return False
    return failure.judge in {"books", "verify"}


KNOWN: tuple[Known, ...] = ()
