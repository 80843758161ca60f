"""Defects of the engine that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one takes its row out: the suite fails as soon as the program of a row does not fail as it says.  A
failure
is masked by what it says and by the traces that the run has left, never by not drawing what leads to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from model_tests.application_programs import (
    Close,
    Consume,
    Fault,
    Program,
    Resend,
    Restart,
    Send,
    Sender,
    Strike,
    Worker,
)
from model_tests.application_runs import DISCONNECTED, HALVES, INSIDE, NESTED, OTHER, Failure

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


def _raises(*words: str) -> Callable[[Program, Failure], bool]:
    return lambda _, failure: failure.judge == "raised" and all(word in failure.text for word in words)


def _leaves(trace: str) -> Callable[[Program, Failure], bool]:
    return lambda _, failure: trace in failure.traces


_LISTENING_AT_ONCE = Worker(("a",), "c", _TRANSACTED, "listener")
_LISTENING_MOVER = Worker(("a",), "c", _TRANSACTED, "listener", at_once=False)

KNOWN: tuple[Known, ...] = (
    Known(
        "resend-by-another-session",
        "a message that a closed session sent is sent again on the connection that is gone",
        Program(
            "solace",
            {"send_mode": "blocking", "resend_in_doubt": True},
            workers=(Worker(("a",), None, _TRANSACTED, "listener", at_once=False),),
            phases=(Send(number=2, end="", strike=Strike("fail_journal", 1)), Close(0), Resend()),
        ),
        _raises("Stuck: resend of"),
    ),
    Known(
        "resend-to-another-broker",
        "a message that an earlier broker was sent is no message of this one, and nobody says so",
        Program(
            "ems",
            {"resend_in_doubt": True},
            phases=(Send(strike=Strike("kill", 1)), Restart("close"), Resend()),
        ),
        _raises("AttributeError: 'Nobody' object"),
    ),
    Known(
        "connected-while-down",
        "the broker dies as one side of a session is connected again, and the other side is connected all the same",
        Program(
            "qpid",
            {},
            "Shuffled(0)",
            workers=(Worker(ack_mode="NO_ACKNOWLEDGE"),),
            phases=(Send(), Fault("fail_journal"), Send(strike=Strike("kill", 2))),
        ),
        lambda _, failure: failure.judge == "model" and "link_up: broker, down" in failure.text,
    ),
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
