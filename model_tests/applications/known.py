"""Defects that are known and not mended: a program that shows each, and how its failures are told.

Whoever mends one moves its program to MENDED: the suite fails as soon as it does not fail as its row says.  A failure
is known by what each of its lines says, of which messages, and by how the program is configured; what leads to it is
drawn like anything else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from ackfsm.terms import AckScope
from model_tests.applications.books import Item
from model_tests.applications.programs import Consume, Program, Send, Throw, Worker
from model_tests.applications.reports import Failure
from model_tests.support.tables import shipped

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


def _is_out_of_order(program: Program, failure: Failure) -> bool:
    """Of a session that acknowledges up to a message, one of whose messages has come again behind later ones."""
    modes = [{**program.settings, "ack_mode": worker.ack_mode} for worker in program.workers]
    up_to = any(shipped().configure(program.profile, mode).client_ack_scope is AckScope.UP_TO for mode in modes)
    again = (
        sum(item.deliveries > 1 for item in failure.items.values()) > 1
    )  # that which the failure tells of, and another
    return up_to and again and tells(failure, ("for certain, and came again",), lambda _: True)


KNOWN: tuple[Known, ...] = (
    Known(
        "up-to-in-the-order-of-sending",
        "an acknowledgement up to a message that came again covers what was sent before it, and not what was delivered "
        "before it as RabbitMQ's does: the tables have the order of sending alone",
        Program(
            "rabbitmq",
            {"publish_window": 2, "prefetch": 2},
            "Shuffled(19)",
            workers=(Worker(output="c", ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener", at_once=False),),
            phases=(
                *(Send(number=2, end=""), Send(number=4), Throw(), Send(), Consume(number=2, end="last", timeout=None)),
                *(Send(number=3, end=""), Consume(end="last", timeout=None)),
            ),
        ),
        _is_out_of_order,
    ),
)
