"""Defects of the engine that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one takes its row out: the suite fails as soon as the program of a row does not fail as it says.  A failure
is
masked by what it says and by the traces that the run has left, never by not drawing what leads to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from model_tests.application_programs import (
    Consume,
    Program,
    Resend,
    Restart,
    Send,
    Strike,
    Worker,
)
from model_tests.application_runs import Failure

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


_LISTENING_MOVER = Worker(("a",), "c", _TRANSACTED, "listener", at_once=False)

KNOWN: tuple[Known, ...] = (
    Known(
        "mark-before-its-commit",
        "the mark of a message that is sent on before its commit is stored is forgotten with the broker's process",
        Program(
            settings={"journal_sync_transactional": False},
            workers=(_LISTENING_MOVER, Worker(("c",), None, "DUPS_OK_ACKNOWLEDGE", "listener", at_once=False)),
            phases=(Send(number=2), Consume(), Restart("kill")),
            ending="die",
        ),
        lambda program, failure: (
            ("redelivered flag clear" in failure.text or "unflagged_duplicate" in failure.text)
            and not program.settings.get("journal_sync_transactional", True)
        ),
    ),
    Known(
        "resend-without-an-outcome",
        "a message that was sent again has no outcome when its session is closed",
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
        lambda _, failure: failure.judge == "verify" and "missing_outcome" in failure.text,
    ),
)
