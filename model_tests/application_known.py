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
        "A1",
        "commit() returns although a part of the transaction was acknowledged to a connection that had broken",
        Program(
            workers=(Worker(ack_mode=_TRANSACTED),),
            phases=(Send(number=3), Fault("lose", 1), Consume(number=3, end="none"), Consume(number=2)),
        ),
        _leaves(DISCONNECTED),
    ),
    Known(
        "A2",
        "receive() acknowledges one message and hands over another: the first is lost, or stays with its session",
        Program(
            settings={"prefetch": 1},
            senders=(Sender(), Sender(transacted=True)),
            phases=(
                Send(1, end=""),
                Send(0, number=2),
                Send(1, number=0),
                Consume(),
                Close(2, returns=False),
            ),
        ),
        _leaves(OTHER),
    ),
    Known(
        "A3",
        "a transaction that consumes and sends is executed by halves, its commit is never stored: no broker can start",
        Program(
            "artemis",
            {"send_mode": "asynchronous"},
            "Timed(seed=0)",
            workers=(_LISTENING_AT_ONCE,),
            phases=(
                Send(number=3),
                Consume(strike=Strike("die", 1, "execute_consumption")),
                Consume(end="last", strike=Strike("crash", 1)),
            ),
        ),
        lambda _, failure: (
            "JournalInconsistent" in failure.text or (HALVES in failure.traces and "its effect twice" in failure.text)
        ),
    ),
    Known(
        "rollback-redelivers-into-itself",
        "rollback() of a session whose listener sends waits for the sends of the message that it has had redelivered",
        Program(workers=(_LISTENING_MOVER,), phases=(Send(), Consume(end="rollback"))),
        _raises("Stuck: rollback() of"),
    ),
    Known(
        "two-listeners-at-once",
        "while a listener waits in commit(), another consumer of its session calls its own (JMS 3.1, 6.2.5)",
        Program(
            "qpid",
            {"send_mode": "blocking"},
            "Shuffled(0)",
            workers=(Worker(("a", "a"), None, _TRANSACTED, "listener"),),
            phases=(Send(number=2),),
            ending="die",
        ),
        _leaves(NESTED),
    ),
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
        "sends-after-the-commit",
        "a listener is called inside commit() of its session, and what it sends joins that transaction",
        Program(
            "solace",
            {},
            "Shuffled(549)",
            workers=(_LISTENING_MOVER,),
            seed=549,
            phases=(
                *(Send(number=4, end=""), Send(), Send(number=4, end=""), Send(number=3)),
                *(Restart("close"), Consume(number=5, timeout=0.0)),
            ),
        ),
        lambda _, failure: (
            INSIDE in failure.traces and ("dirty_delivery" in failure.text or "never came again" in failure.text)
        ),
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
        "dead-letters-out-of-order",
        "what a broker that starts finds at its limit is dead-lettered in another order where somebody observes",
        Program(
            settings={"max_delivery_attempts": 2},
            pace="Timed(seed=0)",
            senders=(Sender(transacted=True),),
            workers=(Worker(ack_mode=_TRANSACTED),),
            phases=(Send(end=""), Send(), Consume(end="rollback"), Send(end="", strike=Strike("kill", 17))),
        ),
        lambda _, failure: failure.judge == "unobserved" and "dead_lettered" in failure.text,
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
        "commit-of-nothing",
        "what a listener is given inside rollback() is of no transaction: commit() returns, and it comes again",
        Program(
            "artemis",
            senders=(Sender(transacted=True),),
            workers=(Worker(("a",), None, _TRANSACTED, "listener", at_once=False),),
            phases=(Send(), Consume(end="rollback"), Consume(end="last")),
        ),
        lambda _, failure: INSIDE in failure.traces and "was committed for certain, and came again" in failure.text,
    ),
    Known(
        "commit-waits-for-its-listener",
        "a listener that is called inside commit() of its session makes it wait for ever",
        Program(
            "qpid",
            {},
            "Timed(seed=14)",
            seed=14,
            senders=(Sender(transacted=True),),
            workers=(Worker(("a", "a"), None, _TRANSACTED, "listener", at_once=False),),
            phases=(Send(number=4, end=""), Send(), Consume(end="last")),
            ending="die",
        ),
        lambda _, failure: INSIDE in failure.traces and "Stuck: commit() of" in failure.text,
    ),
)
