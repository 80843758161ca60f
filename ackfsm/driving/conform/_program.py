"""Programs: the acts of the clients of one run, drawn from a seed, and the rest if a part is left out."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Final, TypeAlias

from ackfsm.driving.conform._claims import BROKER_FAULTS, Claims, Mode, Operation, acknowledged_by_application
from ackfsm.terms import AckMode, Consumption, Fault


@dataclasses.dataclass(frozen=True, slots=True)
class Send:
    """The producer sends so many messages, and then in a transaction does ``end``: ``commit``, ``rollback`` or nothing.

    Nothing leaves the transaction open.
    """

    number: int = 1
    end: str = "commit"


@dataclasses.dataclass(frozen=True, slots=True)
class Receive:
    """Consumer ``who`` receives up to so many messages.

    ``end``: it acknowledges (or commits) ``each``, the ``last``, or ``none``.
    """

    who: int = 0
    number: int = 1
    end: str = "each"


@dataclasses.dataclass(frozen=True, slots=True)
class Recover:
    """Consumer ``who`` recovers its session, or rolls it back."""

    who: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Close:
    """A client closes: consumer ``who``, or the producer if that is -1.  Another one takes its place."""

    who: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Cancel:
    """The consumer of ``who`` is closed, and its session goes on with another one."""

    who: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Inject:
    """A fault, which strikes consumer ``who`` if it is one of a consumer.

    ``at``: ``idle``; ``delivered``, while the consumer has a message that it is not done with; or at the ``after``-th
    step of a ``send``, an ``acknowledge``, a commit of the producer (``commit_sent``) or of the consumer
    (``commit_received``).
    """

    fault: Fault
    at: str = "idle"
    who: int = 0
    after: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Act:
    """One event of the tables that an application, or a fault, brings about; or a delivery that is waited for.

    ``message`` is that of the event, empty for none; ``during`` strikes at the ``after``-th step of the call.
    """

    event: str
    message: str = ""
    who: int = 0
    during: Fault | None = None
    after: int = 1


Step: TypeAlias = Send | Receive | Recover | Close | Cancel | Inject | Act


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """The steps of one run, after which everything is drained."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(map(_told, self.steps))


_TOLD: Final = {
    Recover: "has what it has not settled delivered again",
    Close: "closes",
    Cancel: "is closed, and its session goes on with another one",
}


def _told(step: Step) -> str:
    match step:
        case Send(number, end):
            then = {"commit": " and commits", "rollback": " and rolls back"}.get(end, "")
            return f"the producer sends {_messages(number)}{then}"
        case Receive(who, number, end):
            then = "" if end == "none" else f" and settles {'each' if end == 'each' else 'the last'}"
            return f"{_named(who)} receives up to {_messages(number)}{then}"
        case Recover() | Close() | Cancel():
            return f"{_named(step.who)} {_TOLD[type(step)]}"
        case Inject():
            return _told_fault(step)
        case Act():
            return _told_act(step)


def _told_fault(step: Inject) -> str:
    whose = f" of {_named(step.who)}" if step.fault in _OF_CONSUMERS else ""
    match step.at:
        case "idle":
            return f"{step.fault}{whose}"
        case "delivered":
            return f"{step.fault}{whose}, while {_named(step.who)} has a message"
        case _:
            what = {"commit_sent": "commit of the producer", "commit_received": f"commit of {_named(step.who)}"}
            return f"{step.fault}{whose}, at step {step.after} of a {what.get(step.at, step.at)}"


def _told_act(step: Act) -> str:
    about = f" of {step.message}" if step.message else ""
    struck = f", struck by {step.during} at step {step.after}" if step.during else ""
    return f"{step.event}{about} ({_named(step.who)}){struck}"


def _messages(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"


def _named(who: int) -> str:
    return "the producer" if who < 0 else f"consumer {who + 1}"


_FEWEST, _MOST = 2, 6
"""Steps between the first send and the end, beside faults."""

_OF_PRODUCERS: Final = frozenset({Fault.PRODUCER_LINK_LOSS, Fault.PRODUCER_CRASH})
_OF_CONSUMERS: Final = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH})
_ALONE: Final = BROKER_FAULTS | {Fault.CONSUMER_LINK_LOSS}
"""A library may hand over what it fetched before these, after another consumer has had it; nobody promises more."""


def draw(seed: str, mode: Mode, fault: Fault | None, claims: Claims, messages: int) -> Program:
    """The program of ``seed`` in this mode: at most so many ``messages``, and one more with each of its faults."""
    return Program(tuple(_Draw(random.Random(seed), mode, fault, claims, messages).steps()))  # noqa: S311 - repeatable


class _Draw:
    def __init__(self, chance: random.Random, mode: Mode, fault: Fault | None, claims: Claims, messages: int) -> None:
        self.chance, self.fault, self.has = chance, fault, claims.operations
        self.left = messages
        self.transacted = mode.ack_mode is AckMode.SESSION_TRANSACTED
        self.by_application = acknowledged_by_application(mode.ack_mode)
        self.receives = mode.consumption is Consumption.RECEIVE
        """Else closing a consumer would wait for its listener."""
        alone = fault in _ALONE
        self.consumers = min(claims.consumers, 2 if chance.random() < 1 / 4 and not alone else 1)

    def steps(self) -> Iterator[Step]:
        yield self.send()
        body = [self.step() for _ in range(self.chance.randint(_FEWEST, _MOST))]
        if self.fault is not None:
            for _ in range(self.chance.choice((1, 1, 1, 2))):
                body.insert(self.chance.randint(0, len(body)), self.inject(self.fault))
        yield from (step for step in body if step is not None)

    def send(self) -> Send:
        number = self.chance.randint(1, max(1, min(3, self.left)))
        self.left -= number
        ends = ["commit", "commit", "commit", ""]
        ends += ["rollback"] * (Operation.ROLLBACK in self.has)
        return Send(number, self.chance.choice(ends) if self.transacted else "")

    def who(self) -> int:
        return self.chance.randrange(self.consumers)

    def step(self) -> Step | None:
        back = Operation.ROLLBACK if self.transacted else Operation.RECOVER
        kinds = ["receive"] * 6
        kinds += ["send"] * (3 * (self.left > 0))
        kinds += ["recover"] * (2 * (back in self.has and (self.transacted or self.by_application)))
        kinds += ["close"] * (Operation.CLOSE in self.has)
        kinds += ["cancel"] * (2 * (Operation.CANCEL in self.has and self.receives))
        match self.chance.choice(kinds):
            case "send":
                return self.send()
            case "recover":
                return Recover(self.who())
            case "close":
                return Close(self.chance.randrange(-1, self.consumers))
            case "cancel":
                return Cancel(self.who())
            case _:
                end = self.chance.choice(("each", "each", "last", "none"))
                settles = self.transacted or self.by_application
                return Receive(self.who(), self.chance.randint(1, 3), end if settles else "none")

    def inject(self, fault: Fault) -> Inject:
        return Inject(fault, self.chance.choice(self.moments(fault)), self.who(), self.chance.randint(1, 12))

    def moments(self, fault: Fault) -> list[str]:
        """At which moments the fault may strike."""
        if fault in {Fault.REJECTION, Fault.LISTENER_EXCEPTION}:
            return ["idle"]
        during = Operation.DURING in self.has
        of_producer = ["send", "send"] * during + ["commit_sent"] * (during and self.transacted)
        of_consumer = ["acknowledge", "acknowledge"] * (during and self.by_application)
        of_consumer += ["commit_received"] * 2 * (during and self.transacted)
        if fault in _OF_PRODUCERS:
            return ["idle", *of_producer]
        if fault in _OF_CONSUMERS:
            return ["idle", "delivered", "delivered", *of_consumer]
        return ["idle", "delivered", *of_producer, *of_consumer]


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a little less in them, the smallest first."""
    steps = program.steps
    for size in sorted({max(1, len(steps) // 2), 1}, reverse=True):
        for at in range(0, len(steps), size):
            yield Program(steps[:at] + steps[at + size :])
    for at, step in enumerate(steps):
        for less in _less(step):
            yield Program((*steps[:at], less, *steps[at + 1 :]))


def _less(step: Step) -> Iterator[Step]:
    if isinstance(step, Send | Receive) and step.number > 1:
        yield dataclasses.replace(step, number=1)
        yield dataclasses.replace(step, number=step.number - 1)
    if isinstance(step, Receive | Recover | Close | Cancel | Inject | Act) and step.who > 0:
        yield dataclasses.replace(step, who=0)
    if isinstance(step, Inject) and step.at not in {"idle", "delivered"}:
        yield dataclasses.replace(step, at="idle")
