"""Defects that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one moves its program to MENDED: the suite fails as soon as it does not fail as its row says.  A failure
is masked by what it says and by how the program is configured, never by not drawing what leads to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ackfsm.terms import ListenerException
from model_tests._tables import shipped
from model_tests.application_programs import (
    Consume,
    Program,
    Resend,
    Restart,
    Send,
    Strike,
    Throw,
    Worker,
)
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


_LISTENING_MOVER = Worker(("a",), "c", _TRANSACTED, "listener", at_once=False)


def _is_swallowed(program: Program, failure: Failure) -> bool:
    configuration = shipped().configure(program.profile, program.settings)
    said = ("came again", "its effect twice", "resurrection")
    return (
        configuration.listener_exception is ListenerException.SWALLOW
        and any(isinstance(phase, Throw) for phase in program.phases)
        and any(word in failure.text for word in said)
    )


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
