"""Defects that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one moves its program to MENDED: the suite fails as soon as it does not fail as its row says.  A failure
is known by what each of its lines says, of which messages, and by how the program is configured; what leads to it is
drawn like anything else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from ackfsm.engine import Outcome
from ackfsm.terms import ListenerException
from model_tests._tables import shipped
from model_tests.application_books import Item
from model_tests.application_programs import Program, Resend, Restart, Send, Strike, Throw, Worker
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


def _is_without_outcome(_: Program, failure: Failure) -> bool:
    resending = {item.lane[0] for item in failure.items.values() if item.resent}

    def is_open(item: Item) -> bool:
        return item.lane[0] in resending and item.sent is not None and item.sent.outcome is Outcome.OPEN

    return _tells(failure, ("missing_outcome of",), is_open)


def _is_swallowed(program: Program, failure: Failure) -> bool:
    configuration = shipped().configure(program.profile, program.settings)
    said = ("for certain, and came again", "had its effect twice", "resurrection of")
    swallows = configuration.listener_exception is ListenerException.SWALLOW
    return swallows and _tells(failure, said, lambda item: item.thrown)


KNOWN: tuple[Known, ...] = (
    Known(
        "resend-without-an-outcome",
        "of a session that sends messages again one that it sent meanwhile has no outcome when it is closed",
        Program(
            "qpid-jms",
            {
                "delivery_mode": "PERSISTENT",
                "send_mode": "asynchronous",
                "resend_in_doubt": True,
                "prefetch": 1,
                "journal_sync_non_transactional": True,
                "journal_sync_transactional": True,
                "client_ack_scope": "message",
                "listener_exception": "next_message",
            },
            "Timed(seed=0)",
            workers=(Worker(at_once=False),),
            phases=(
                *(Send(), Send(mixed=True), Send(number=2, strike=Strike("lose", 1, "send")), Resend()),
                *(Restart("close"), Send(mixed=True), Send(mixed=True, strike=Strike("crash", 1))),
            ),
        ),
        _is_without_outcome,
    ),
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
