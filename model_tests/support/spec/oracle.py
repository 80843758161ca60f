"""The independent oracle: one message's life written a second time, as ordinary guarded commands.

The tables of ``spec/`` say what may happen as finite-state machines composed on shared events.  This module
says the same thing in the other classical style: explicit variables, ``if`` guards and assignments over one
immutable tuple, searched breadth first with a dict.  It reads no table and shares no code with the package
but the names of ``ackfsm.terms``; it was written from the semantics alone.  Where the two agree on which
anomalies a configuration can reach under which faults, a slip would have to have been made twice, in two
different forms; where they differ, one of them is wrong.

How to read it: the variables (:class:`Copy` to :class:`System`), what each party may do (``_producer`` to
``_recovery``), what may go wrong (``_faults``), what counts as an anomaly (:func:`observe`, :func:`at_rest`),
the search (:func:`explore`).  Every ``yield`` is one rule: the guard above it, the event's name, the state after.

The system is one producer, one queue, one consumer, and one message of which a resend makes a second copy.
Choices that are not forced by the vocabulary:

* The journal serves other messages too, so its sync can fail at any time, whatever became of this message.
* A message's record and its removal's record are written and synced in any order.
* A queue is first in, first out: of two copies that are ready the first is dispatched first.
* A producer sends only over a link that is up; one that died does not send again what it had in doubt.
* A new session does not wait for what the application is still busy with, which is then in vain.
* A new session discards all that the library still held; what it has acknowledged inside the call that hands it
  over is handed over, whatever has become of the connection.
* A broken link is noticed by both ends at once; what had not arrived by then never arrives.
* The application has one message in hand at a time and acknowledges it before it takes the next, unless lazily.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from ackfsm.terms import (
    AckMode,
    Anomaly,
    Configuration,
    Consumption,
    DeliveryMode,
    Fault,
    ListenerException,
    Maybe,
    SendMode,
    Written,
)

ACK_MODES = (
    AckMode.AUTO_ACKNOWLEDGE,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
    AckMode.DUPS_OK_ACKNOWLEDGE,
    AckMode.PRE_ACKNOWLEDGE,
    AckMode.NO_ACKNOWLEDGE,
)
OF_A_MESSAGE = (
    Anomaly.LOSS,
    Anomaly.UNPROCESSED,
    Anomaly.DUPLICATE,
    Anomaly.UNFLAGGED_DUPLICATE,
    Anomaly.REPROCESSED,
    Anomaly.RESURRECTION,
)
"""What can become of a message that was sent once: this oracle and that of two messages see it."""

ANOMALIES = (
    *OF_A_MESSAGE,
    Anomaly.PHANTOM,
    Anomaly.DOUBLE_OUTCOME,
    Anomaly.MISSING_OUTCOME,
    Anomaly.STUCK,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Modes:
    """The two modes that an oracle knows some of: what the settings of both begin with."""

    known: ClassVar[Collection[AckMode]] = ACK_MODES
    delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT
    ack_mode: AckMode = AckMode.AUTO_ACKNOWLEDGE

    def __post_init__(self) -> None:
        """Raise ValueError for a mode that the oracle does not know."""
        if self.delivery_mode not in {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT}:
            raise ValueError(f"the oracle does not know delivery_mode {self.delivery_mode}")
        if self.ack_mode not in self.known:
            raise ValueError(f"the oracle does not know ack_mode {self.ack_mode}")

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """The part of a configuration that the oracle reads."""
        return cls(**{field.name: getattr(configuration, field.name) for field in dataclasses.fields(cls)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting(Modes):
    """The switches that the life of one message depends on; the defaults are the strictest system."""

    consumption: Consumption = Consumption.LISTENER
    send_mode: SendMode = SendMode.BLOCKING
    journal_sync_non_transactional: bool | Written = True
    block_on_acknowledge: bool = True
    resend_in_doubt: bool = False
    redelivery_mark_persisted: bool = True
    queue_durable: bool = True
    listener_exception: ListenerException = ListenerException.REDELIVER
    restart_marks_redelivered: bool | Maybe = False


class Rules(NamedTuple):
    """What a setting comes to."""

    setting: Setting
    recorded: bool  # the broker writes the message, and its removal, to the journal
    confirmed_when: frozenset[str]  # the states of a record in which the broker confirms what it records
    answers_sends: bool  # the broker tells the producer what became of a send
    inside_receive: bool  # there is no listener: the application calls receive()
    acknowledges_first: bool  # before the application has the message; AUTO does so inside receive()
    acknowledges_lazily: bool  # some time after the hand-over (receive) or the processing (listener)
    acknowledges_never: bool  # the broker removes the message as it sends it
    waits_for_removal: bool  # the acknowledging call returns only with the broker's confirmation


def _rules(c: Setting) -> Rules:
    recorded = c.delivery_mode is DeliveryMode.PERSISTENT and c.queue_durable
    stages = (
        "memory",
        "written",
        "durable",
    )  # a record goes through these; an answer leaves from the first that is enough
    enough = {True: "durable", Written.WRITTEN: "written", False: "memory"}[c.journal_sync_non_transactional]
    stored = frozenset(stages[stages.index(enough) :])
    inside_receive = c.consumption is Consumption.RECEIVE
    pre, auto = c.ack_mode is AckMode.PRE_ACKNOWLEDGE, c.ack_mode is AckMode.AUTO_ACKNOWLEDGE
    lazily, never = c.ack_mode is AckMode.DUPS_OK_ACKNOWLEDGE, c.ack_mode is AckMode.NO_ACKNOWLEDGE
    return Rules(
        setting=c,
        recorded=recorded,
        confirmed_when=stored if recorded else frozenset({"none"}),
        answers_sends=c.send_mode is not SendMode.UNCONFIRMED,
        inside_receive=inside_receive,
        acknowledges_first=pre or (auto and inside_receive),
        acknowledges_lazily=lazily,
        acknowledges_never=never,
        waits_for_removal=c.block_on_acknowledge and not lazily and not never,
    )


class Copy(NamedTuple):
    """One copy of the message at the broker."""

    place: str = "absent"  # absent, ready, dispatched, removed
    marked: bool = False  # a dispatch from now on carries the redelivered flag
    message: str = "none"  # the message's record in the journal: none, memory, written, durable
    removal: str = "none"  # the removal's record: the same
    owes_confirm: bool = False  # the producer's present link is to hear that the send took effect
    owes_removal_confirm: bool = False  # the consumer's present link is to hear that the acknowledgement did


class Thread(NamedTuple):
    """What the consumer's one thread has in hand: it carries one copy at a time."""

    copy: int
    redelivered: bool
    stage: str
    # confirming    acknowledged first, waits for the broker; the application does not have it yet
    # acknowledged  acknowledged first; the application does not have it yet
    # working       handed to the application
    # finished      the application is done with it, the acknowledging call comes next
    # waiting       in the acknowledging call
    live: bool  # the session that it came by has not been broken


class Frame(NamedTuple):
    """Something on its way over the consumer's link."""

    kind: str  # to the consumer: message, acknowledged; to the broker: acknowledge, requeue
    copy: int
    redelivered: bool = False


class System(NamedTuple):
    """Every variable of the system."""

    producer_up: bool = True
    producer_link: bool = True
    send: str = "new"  # new, open, confirmed, rejected, in_doubt, unconfirmed (returned at once), abandoned (killed)
    resent: bool = False
    publishes: tuple[int, ...] = ()  # frames, oldest first
    answers: tuple[str, ...] = ()

    broker_up: bool = True
    copies: tuple[Copy, Copy] = (Copy(), Copy())

    consumer_up: bool = True
    consumer_link: bool = True
    to_consumer: tuple[Frame, ...] = ()  # frames, oldest first
    to_broker: tuple[Frame, ...] = ()
    held: tuple[tuple[int, bool], ...] = ()  # the library's buffer: copy, redelivered flag
    thread: Thread | None = None
    behind: frozenset[int] = frozenset()  # copies with which the application is busy still, by an earlier session
    lazy: frozenset[int] = frozenset()  # copies whose lazy acknowledgement is outstanding
    recover: frozenset[int] = frozenset()  # copies that the application will give back by recovering its session


class Event(NamedTuple):
    """One step, as a witness shows it."""

    name: str
    copy: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        """For instance ``delivered(0, redelivered)``."""
        inside = ", ".join(str(part) for part in (self.copy, self.detail) if part not in {None, ""})
        return f"{self.name}({inside})" if inside else f"{self.name}"  # plain text, also for a Fault


Steps = Iterator[tuple[Event, System]]


def _with(system: System, number: int, copy: Copy) -> System:
    first, second = system.copies
    return system._replace(copies=(copy, second) if number == 0 else (first, copy))


def _to_broker(system: System, kind: str, number: int) -> System:
    """A frame to the broker; it goes nowhere while the link is down."""
    if not system.consumer_link:
        return system
    return system._replace(to_broker=(*system.to_broker, Frame(kind, number)))


# ---- What each party does -------------------------------------------------------------------------------------


def _producer(s: System, c: Rules) -> Steps:
    if not s.producer_link:
        return
    if s.send == "new":
        yield Event("send", 0), s._replace(send="open" if c.answers_sends else "unconfirmed", publishes=(0,))
    if s.send == "in_doubt" and c.setting.resend_in_doubt and not s.resent:
        yield Event("resend", 1), s._replace(send="open", resent=True, publishes=(1,))
    if s.answers:
        outcome, *later = s.answers
        yield Event(outcome), s._replace(send=outcome, answers=tuple(later))


def _broker_reads(s: System, c: Rules) -> Steps:
    if s.publishes and s.broker_up:
        number, *later = s.publishes
        accepted = Copy("ready", message="memory" if c.recorded else "none", owes_confirm=c.answers_sends)
        yield Event("accept", number), _with(s, number, accepted)._replace(publishes=tuple(later))
    if s.to_broker and s.broker_up:
        frame, *rest = s.to_broker
        copy = s.copies[frame.copy]
        read = s._replace(to_broker=tuple(rest))
        if frame.kind == "acknowledge":
            settled = _removed(copy, c)._replace(owes_removal_confirm=c.waits_for_removal)
            yield Event("settle", frame.copy), _with(read, frame.copy, settled)
        if frame.kind == "requeue":
            yield Event("requeued", frame.copy), _with(read, frame.copy, copy._replace(place="ready"))


def _broker_acts(s: System, c: Rules) -> Steps:
    for number, copy in enumerate(s.copies if s.broker_up else ()):
        if copy.owes_confirm and copy.message in c.confirmed_when:
            told = s._replace(answers=(*s.answers, "confirmed"))
            yield Event("confirm", number), _with(told, number, copy._replace(owes_confirm=False))
        if copy.place == "ready" and s.consumer_link and "ready" not in {each.place for each in s.copies[:number]}:
            sent = s._replace(to_consumer=(*s.to_consumer, Frame("message", number, copy.marked)))
            marked = copy._replace(marked=True)
            after = _removed(marked, c) if c.acknowledges_never else marked._replace(place="dispatched")
            yield Event("dispatch", number), _with(sent, number, after)
        if copy.owes_removal_confirm and copy.removal in c.confirmed_when:
            told = s._replace(to_consumer=(*s.to_consumer, Frame("acknowledged", number)))
            yield Event("confirm_removal", number), _with(told, number, copy._replace(owes_removal_confirm=False))


def _removed(copy: Copy, c: Rules) -> Copy:
    return copy._replace(place="removed", removal="memory" if c.recorded else "none")


def _journal(s: System) -> Steps:
    """Each record is written, and each written record synced, in its own time."""
    for number, copy in enumerate(s.copies if s.broker_up else ()):
        if copy.message == "memory":
            yield Event("write_message", number), _with(s, number, copy._replace(message="written"))
        if copy.message == "written":
            yield Event("sync_message", number), _with(s, number, copy._replace(message="durable"))
        if copy.removal == "memory":
            yield Event("write_ack_record", number), _with(s, number, copy._replace(removal="written"))
        if copy.removal == "written":
            yield Event("sync_ack_record", number), _with(s, number, copy._replace(removal="durable"))


def _library(s: System, c: Rules) -> Steps:
    if s.to_consumer:
        frame, *rest = s.to_consumer
        read = s._replace(to_consumer=tuple(rest))
        if frame.kind == "message":
            yield Event("hold", frame.copy), read._replace(held=(*s.held, (frame.copy, frame.redelivered)))
        if frame.kind == "acknowledged" and s.thread is not None:
            first = s.thread.stage == "confirming"
            yield (
                Event("acknowledged", frame.copy),
                read._replace(thread=s.thread._replace(stage="acknowledged") if first else None),
            )
    if s.thread is None and s.held:
        (number, redelivered), *others = s.held
        taken = s._replace(held=tuple(others))
        if not c.acknowledges_first:
            yield _hand_over(taken, c, number, redelivered=redelivered)
        elif s.consumer_link or not c.waits_for_removal:  # a call that would wait fails, and nothing is handed over
            stage = "confirming" if c.waits_for_removal else "acknowledged"
            thread = Thread(number, redelivered, stage, s.consumer_link)
            yield Event("acknowledge", number), _to_broker(taken, "acknowledge", number)._replace(thread=thread)
    if s.thread is not None and s.thread.stage == "acknowledged":
        yield _hand_over(s, c, s.thread.copy, redelivered=s.thread.redelivered)
    for number in s.lazy:
        done = s._replace(lazy=s.lazy - {number})
        yield Event("acknowledge", number), _to_broker(done, "acknowledge", number)


def _hand_over(s: System, c: Rules, number: int, *, redelivered: bool) -> tuple[Event, System]:
    """The application gets the message; with receive() a lazy acknowledgement may follow from here on."""
    lazy = c.acknowledges_lazily and c.inside_receive and s.consumer_link
    thread = Thread(number, redelivered, "working", s.consumer_link)
    after = s._replace(thread=thread, lazy=s.lazy | {number} if lazy else s.lazy)
    return Event("delivered", number, "redelivered" if redelivered else ""), after


def _application(s: System, c: Rules) -> Steps:
    if s.thread is not None and s.thread.stage == "working":
        yield Event("processed", s.thread.copy), _done(s, c, s.thread)
    for number in s.behind:  # it comes to its end, and nobody waits for that
        yield Event("processed", number, "in vain"), s._replace(behind=s.behind - {number})
    if s.thread is not None and s.thread.stage == "finished":
        number = s.thread.copy
        if not s.thread.live:  # the call fails at once: its session is gone
            yield Event("acknowledge", number, "in vain"), s._replace(thread=None)
        else:
            thread = s.thread._replace(stage="waiting") if c.waits_for_removal else None
            yield Event("acknowledge", number), _to_broker(s, "acknowledge", number)._replace(thread=thread)
    for number in s.recover:
        done = s._replace(recover=s.recover - {number})
        yield Event("recover", number), _to_broker(done, "requeue", number)


def _done(s: System, c: Rules, thread: Thread) -> System:
    """The application has finished with the message: what is left to do about its acknowledgement."""
    if c.acknowledges_first or c.acknowledges_never:
        return s._replace(thread=None)
    if c.acknowledges_lazily:
        now_due = thread.live and not c.inside_receive
        return s._replace(thread=None, lazy=s.lazy | {thread.copy} if now_due else s.lazy)
    return s._replace(thread=thread._replace(stage="finished"))


def _recovery(s: System) -> Steps:
    if not s.broker_up:
        yield Event("broker_restart"), s._replace(broker_up=True)
    if not s.producer_up:
        yield Event("producer_restart"), s._replace(producer_up=True)
    if not s.consumer_up:
        yield Event("consumer_restart"), s._replace(consumer_up=True)
    if s.broker_up and s.producer_up and not s.producer_link:
        yield Event("producer_link_up"), s._replace(producer_link=True)
    if s.broker_up and s.consumer_up and not s.consumer_link:
        yield Event("consumer_link_up"), _new_session(s)


def _new_session(s: System) -> System:
    """It holds nothing, and a thread of its own calls the application, whatever the old one is busy with."""
    new = s._replace(consumer_link=True, held=())
    if s.thread is None or s.thread.stage != "working":
        return new
    return new._replace(thread=None, behind=s.behind | {s.thread.copy})


# ---- What goes wrong ------------------------------------------------------------------------------------------


def _faults(s: System, c: Rules) -> Steps:
    if s.broker_up:
        yield from _broker_faults(s, c)
        if s.publishes:
            answered = (*s.answers, "rejected") if c.answers_sends else s.answers
            yield Event(Fault.REJECTION, s.publishes[0]), s._replace(publishes=s.publishes[1:], answers=answered)
    if s.producer_link:
        yield Event(Fault.PRODUCER_LINK_LOSS), _producer_link_breaks(s)
    if s.producer_up:
        yield Event(Fault.PRODUCER_CRASH), _producer_dies(s)
    if s.consumer_link:
        yield Event(Fault.CONSUMER_LINK_LOSS), _returned(_consumer_link_breaks(s))
    if s.consumer_up:
        gone = _returned(_consumer_link_breaks(s))
        yield Event(Fault.CONSUMER_CRASH), gone._replace(consumer_up=False, held=(), thread=None, behind=frozenset())
    if s.thread is not None and s.thread.stage == "working" and not c.inside_receive:
        yield Event(Fault.LISTENER_EXCEPTION, s.thread.copy), _listener_throws(s, c, s.thread)


def _broker_faults(s: System, c: Rules) -> Steps:
    for stopped in _broker_stops(s, c, _after_kill(s)):
        yield Event(Fault.BROKER_KILL), stopped
    for detail, copies in _after_power_loss(s):
        for stopped in _broker_stops(s, c, copies):
            yield Event(Fault.BROKER_CRASH, detail=detail), stopped
            yield Event(Fault.JOURNAL_FAILURE, detail=detail), stopped


def _producer_link_breaks(s: System) -> System:
    """Frames are lost, an open send is in doubt, and the broker no longer has whom to answer."""
    first, second = (copy._replace(owes_confirm=False) for copy in s.copies)
    send = "in_doubt" if s.send == "open" else s.send
    return s._replace(producer_link=False, publishes=(), answers=(), copies=(first, second), send=send)


def _producer_dies(s: System) -> System:
    """Nobody is left to hear of an open send, or to send again one in doubt."""
    known = s.send not in {"open", "in_doubt"}
    return _producer_link_breaks(s)._replace(producer_up=False, send=s.send if known else "abandoned")


def _consumer_link_breaks(s: System) -> System:
    """What breaks at the client's end: frames, outstanding acknowledgements, calls that wait for the broker."""
    thread = s.thread
    if thread is not None:
        waits = thread.stage in {"confirming", "waiting"}  # acknowledgement in doubt
        thread = None if waits else thread._replace(live=False)
    return s._replace(
        consumer_link=False, to_consumer=(), to_broker=(), thread=thread, lazy=frozenset(), recover=frozenset()
    )


def _returned(s: System) -> System:
    """What the broker does when the consumer's link breaks: what is dispatched is ready again."""
    first, second = (
        copy._replace(place="ready" if copy.place == "dispatched" else copy.place, owes_removal_confirm=False)
        for copy in s.copies
    )
    return s._replace(copies=(first, second))


def _broker_stops(s: System, c: Rules, copies: Iterable[Copy]) -> Iterator[System]:
    """Both links break; each copy's state when the broker starts again is read off the journal."""
    broken = _consumer_link_breaks(_producer_link_breaks(s))
    for first, second in itertools.product(*(_reloaded(copy, c) for copy in copies)):
        yield broken._replace(broker_up=False, copies=(first, second))


def _reloaded(copy: Copy, c: Rules) -> Iterator[Copy]:
    """A mark that is only in memory may be gone, or not: a broker may have been stopped in good order."""
    if copy.message == "none":
        yield Copy()
        return
    place = "ready" if copy.removal == "none" else "removed"
    if c.setting.restart_marks_redelivered:
        yield Copy(place, True, copy.message, copy.removal)  # noqa: FBT003 - marked
    if c.setting.restart_marks_redelivered is True:
        return
    yield Copy(place, copy.marked, copy.message, copy.removal)
    if copy.marked and not c.setting.redelivery_mark_persisted:
        yield Copy(place, False, copy.message, copy.removal)  # noqa: FBT003 - not marked


def _after_kill(s: System) -> Iterator[Copy]:
    """The process dies, the machine lives: what is only in memory is lost, what is written stays."""
    for copy in s.copies:
        message, removal = ("none" if record == "memory" else record for record in (copy.message, copy.removal))
        yield copy._replace(message=message, removal=removal)


def _after_power_loss(s: System) -> Iterator[tuple[str, list[Copy]]]:
    """The machine dies: of what is written but not synced, any part survives and the rest vanishes."""
    kinds = itertools.product((0, 1), ("message", "removal"))
    unsynced = [(number, kind) for number, kind in kinds if getattr(s.copies[number], kind) == "written"]
    for fates in itertools.product(("durable", "none"), repeat=len(unsynced)):
        copies = list(_after_kill(s))
        for (number, kind), fate in zip(unsynced, fates, strict=True):
            copy = copies[number]
            copies[number] = copy._replace(message=fate) if kind == "message" else copy._replace(removal=fate)
        yield " ".join(f"{kind}-{number}:{fate}" for (number, kind), fate in zip(unsynced, fates, strict=True)), copies


def _listener_throws(s: System, c: Rules, thread: Thread) -> System:
    """What the library does; where nothing is left to give back, or the session is broken, nothing comes of it."""
    policy = c.setting.listener_exception
    if policy is ListenerException.ACKNOWLEDGE:
        return _done(s, c, thread)
    idle = s._replace(thread=None)
    if c.acknowledges_first or c.acknowledges_never or not thread.live:
        return idle
    if policy in {ListenerException.REDELIVER, ListenerException.RECOVER}:  # there is nothing else in the session
        return _to_broker(idle, "requeue", thread.copy)
    if policy is ListenerException.NEXT_MESSAGE:
        return idle._replace(recover=s.recover | {thread.copy})
    return idle  # swallow


# ---- What an observer calls an anomaly ------------------------------------------------------------------------


class Seen(NamedTuple):
    """What an observer of the clients remembers; numbers are counted up to two."""

    sends: int = 0
    confirmed: int = 0
    rejected: int = 0
    delivered: int = 0
    processed: int = 0
    acknowledged: bool = False


_COUNTED: Mapping[str, str] = {
    "send": "sends",
    "resend": "sends",
    "confirmed": "confirmed",
    "rejected": "rejected",
    "delivered": "delivered",
    "processed": "processed",
}


def observe(seen: Seen, event: Event) -> tuple[Seen, list[Anomaly]]:
    """What the observer remembers after an event, and the anomalies that the event completes."""
    found = []
    if event.name == "delivered":
        if seen.sends == 0:
            found.append(Anomaly.PHANTOM)
        if seen.delivered > 0:
            found.append(Anomaly.DUPLICATE if event.detail == "redelivered" else Anomaly.UNFLAGGED_DUPLICATE)
        if seen.delivered > 0 and seen.acknowledged and seen.sends == 1:
            found.append(Anomaly.RESURRECTION)
    if event.name == "processed" and seen.processed > 0:
        found.append(Anomaly.REPROCESSED)
    if event.name == "acknowledged":
        return seen._replace(acknowledged=True), found
    if event.name not in _COUNTED:
        return seen, found
    field = _COUNTED[event.name]
    after = seen._replace(**{field: min(2, getattr(seen, field) + 1)})
    both = after.confirmed > 0 and after.rejected > 0
    if both or after.confirmed + after.rejected > after.sends:
        found.append(Anomaly.DOUBLE_OUTCOME)
    return after, found


def at_rest(s: System, setting: Setting, seen: Seen) -> Iterator[Anomaly]:
    """The anomalies of a state in which nothing but faults can happen any more."""
    reported = seen.confirmed > 0 or s.send == "unconfirmed"
    if reported and seen.delivered == 0:
        yield Anomaly.LOSS
    if seen.delivered > 0 and seen.processed == 0:
        yield Anomaly.UNPROCESSED
    if s.send == "open":
        yield Anomaly.MISSING_OUTCOME
    send_waits = s.send == "open" and setting.send_mode is SendMode.BLOCKING
    acknowledge_waits = s.thread is not None and s.thread.stage in {"confirming", "waiting"}
    if send_waits or acknowledge_waits or any(copy.place == "dispatched" for copy in s.copies):
        yield Anomaly.STUCK


# ---- The search -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """For each anomaly the shortest sequence of events that shows it, or None; and the number of states."""

    anomalies: Mapping[StrEnum, tuple[str, ...] | None]
    states: int

    @property
    def reachable(self) -> frozenset[StrEnum]:
        """The anomalies that can happen."""
        return frozenset(anomaly for anomaly, witness in self.anomalies.items() if witness is not None)


class _Node(NamedTuple):
    system: System
    seen: Seen
    faults_left: int | None  # None: no bound


_N = TypeVar("_N", bound=Hashable)

Move = tuple[Event, _N, Sequence[StrEnum]]
"""A step, the node after it, and the anomalies that it completes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Space(Generic[_N]):
    """What can be searched; of two nodes that are each other ``mirrored`` one is enough."""

    start: _N
    steps: Callable[[_N], Iterable[Move[_N]]]
    faults: Callable[[_N], Iterable[Move[_N]]]
    at_rest: Callable[[_N], Iterable[StrEnum]]
    mirrored: Callable[[_N], _N] | None = None


def explore(setting: Setting, faults: Iterable[Fault] = (), max_faults: int | None = 1) -> Answer:
    """Visit every state that ``setting`` can reach with at most ``max_faults`` of ``faults`` (None: any number)."""
    rules, allowed = _rules(setting), frozenset(faults)
    space = Space(
        start=_Node(System(), Seen(), max_faults),
        steps=lambda node: _steps(node, rules),
        faults=lambda node: _faulty_steps(node, rules, allowed),
        at_rest=lambda node: at_rest(node.system, setting, node.seen),
    )
    return search(space, ANOMALIES)


def search(space: Space[_N], anomalies: Iterable[StrEnum]) -> Answer:
    """Visit breadth first whatever can be reached; a node without a step, faults aside, is at rest."""
    start, mirrored = space.start, space.mirrored
    came_by: dict[_N, tuple[_N, Event] | None] = {start: None}
    witnesses: dict[StrEnum, tuple[str, ...] | None] = dict.fromkeys(anomalies)
    todo = deque([start])
    while todo:
        node = todo.popleft()
        steps = list(space.steps(node))
        if not steps:
            for anomaly in space.at_rest(node):
                witnesses[anomaly] = witnesses[anomaly] or _path(came_by, node)
        for event, target, found in itertools.chain(steps, space.faults(node)):
            for anomaly in found:
                witnesses[anomaly] = witnesses[anomaly] or (*_path(came_by, node), str(event))
            if target not in came_by and (mirrored is None or mirrored(target) not in came_by):
                came_by[target] = (node, event)
                todo.append(target)
    return Answer(anomalies=witnesses, states=len(came_by))


def _steps(node: _Node, c: Rules) -> Iterator[tuple[Event, _Node, list[Anomaly]]]:
    s = node.system
    client_side = itertools.chain(_producer(s, c), _library(s, c), _application(s, c))
    broker_side = itertools.chain(_broker_reads(s, c), _broker_acts(s, c), _journal(s))
    for event, after in itertools.chain(client_side, broker_side, _recovery(s)):
        seen, found = observe(node.seen, event)
        yield event, _Node(after, seen, node.faults_left), found


def _faulty_steps(node: _Node, c: Rules, allowed: frozenset[str]) -> Iterator[tuple[Event, _Node, list[Anomaly]]]:
    if node.faults_left == 0 or not allowed:
        return
    left = None if node.faults_left is None else node.faults_left - 1
    for event, after in _faults(node.system, c):
        if event.name in allowed:
            yield event, _Node(after, node.seen, left), []


def _path(came_by: Mapping[_N, tuple[_N, Event] | None], node: _N) -> tuple[str, ...]:
    events: list[str] = []
    step = came_by[node]
    while step is not None:
        node, event = step
        events.append(str(event))
        step = came_by[node]
    return tuple(reversed(events))
