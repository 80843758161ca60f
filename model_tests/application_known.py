"""Defects that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one moves its program to MENDED: the suite fails as soon as it does not fail as its row says.  A failure
is known by what each of its lines says, of which messages, and by how the program is configured; what leads to it is
drawn like anything else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from ackfsm.terms import ListenerException
from model_tests._tables import shipped
from model_tests.application_books import Item
from model_tests.application_programs import Program, Send, Throw, Worker
from model_tests.application_reports import Failure

__all__ = ["KNOWN", "Known", "known"]

_TRANSACTED = "SESSION_TRANSACTED"


@dataclasses.dataclass(frozen=True)
class Known:
    """One defect."""

    name: str
    what: str
    program: Program
    is_told_by: Callable[[Program, Failure], bool]

    def __str__(self) -> str:
        return self.name


def known(program: Program, failure: Failure) -> Known | None:
    """The known defect that ``failure`` of ``program`` tells of, if it is one."""
    return next((each for each in KNOWN if each.is_told_by(program, failure)), None)


def _tells(failure: Failure, said: Iterable[str], of: Callable[[Item], bool]) -> bool:
    """Whether each line of ``failure`` says one of ``said``, of messages that can have the defect and no others."""
    for line in failure.text.splitlines():
        named = [failure.items[name] for name in re.findall(r"\bm\d+\b", line.partition(":")[0])]
        if not (named and all(map(of, named)) and any(words in line for words in said)):
            return False
    return failure.judge in {"books", "verify"}


def _is_swallowed(program: Program, failure: Failure) -> bool:
    configuration = shipped().configure(program.profile, program.settings)
    said = ("for certain, and came again", "had its effect twice", "resurrection of")
    swallows = configuration.listener_exception is ListenerException.SWALLOW
    return swallows and _tells(failure, said, lambda item: item.thrown)


KNOWN: tuple[Known, ...] = (
    Known(
        "swallowed-in-a-transaction",
        "a commit leaves out the message whose listener threw, where the library swallows that (JMS 3.1, 8.7: it may "
        "be committed): the row delivery.with_application, listener_exception",
        Program(
            "qpid",
            workers=(Worker(("a",), None, _TRANSACTED, "listener"),),
            phases=(Throw(), Send(number=2)),
            ending="die",
        ),
        _is_swallowed,
    ),
)
