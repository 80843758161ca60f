"""The second independent oracle: two messages of one producer, one queue, one or two consuming sessions.

It is to :mod:`model_tests.support.spec.oracle` what two messages are to one: explicit variables, ``if`` guards and
assignments, searched breadth first, no table read.  What two messages and two sessions add is written from JMS 6.2.5 to
6.2.12, 8.7 and docs/decisions: order, batches, transactions, and what another session sees.  Frames of a connection
are a queue, acknowledgements of a session a list in the order of delivery, so that nothing here is said pair by pair as
the tables have to.

How to read it: the variables (:class:`Copy` to :class:`System`), what each party may do (``_producer`` to
``_recovery``), what may go wrong (``_faults``), what counts as an anomaly (:func:`observe`, :func:`at_rest`).
Choices that are not forced by the vocabulary:

* The producer is reliable but for the broker: a send blocks until it is confirmed, or in doubt as the broker is killed.
* A kill leaves what was written, synced or not, so records are in memory or stored.
* One application thread a session: what it calls it waits for, and it has one message in hand at a time.
* The acknowledgements of one call are frames in the order of delivery.
* ``rollback`` and ``recover`` take effect in one step, once the frames before them have been read.
* A broken link is noticed by both ends at once; the client may still hand over what its library had prefetched.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import ClassVar, NamedTuple, TypeVar

from ackfsm.terms import (
    AckMode,
    AckScope,
    Anomaly,
    Consumption,
    DeliveryCountFrom,
    DeliveryMode,
    Fault,
    ListenerException,
    Maybe,
)
from model_tests.support.spec.oracle import OF_A_MESSAGE, Answer, Event, Modes, Move, Space, search

ACK_MODES = (
    AckMode.AUTO_ACKNOWLEDGE,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
    AckMode.DUPS_OK_ACKNOWLEDGE,
    AckMode.SESSION_TRANSACTED,
)
ANOMALIES = (*OF_A_MESSAGE, Anomaly.REORDER, Anomaly.STUCK)
FAULTS = (Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL, Fault.LISTENER_EXCEPTION)


class Fact(enum.StrEnum):
    """What else an observer may see; spec/monitors has machines of these names for the claims."""

    TWO_REPEATED = "two_repeated"
    COMPLETED_BY_TWO = "completed_by_two"
    ACKNOWLEDGED_AHEAD = "acknowledged_ahead"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting(Modes):
    """The switches that matter here; the defaults are the strictest system."""

    known: ClassVar[Collection[AckMode]] = ACK_MODES
    consumption: Consumption = Consumption.LISTENER
    client_ack_scope: AckScope = AckScope.SESSION
    block_on_acknowledge: bool = True
    redelivery_mark_persisted: bool = True
    restart_marks_redelivered: bool | Maybe = False
    listener_exception: ListenerException = ListenerException.REDELIVER
    rollback_requeues: bool = True
    delivery_count_from: DeliveryCountFrom = DeliveryCountFrom.DISPATCH


class Rules(NamedTuple):
    """What a setting comes to."""

    recorded: bool  # the broker writes messages and removals to its journal
    auto: bool  # the session acknowledges each message by itself
    lazily: bool  # the session acknowledges whenever it suits it
    transacted: bool
    inside_receive: bool  # there is no listener
    first: bool  # AUTO acknowledges inside receive(), before the application has the message
    waits: bool  # an acknowledging call returns with the broker's answer
    scope: AckScope  # what an acknowledgement covers
    mark_persisted: bool
    restart_marks: bool | Maybe
    on_exception: ListenerException
    gives_back: bool  # a rollback gives back what was consumed
    unseen_counts: bool  # what is given back before an application had it was a delivery, too


def _rules(c: Setting) -> Rules:
    mode, inside_receive = c.ack_mode, c.consumption is Consumption.RECEIVE
    lazily, transacted = mode is AckMode.DUPS_OK_ACKNOWLEDGE, mode is AckMode.SESSION_TRANSACTED
    client = mode is AckMode.CLIENT_ACKNOWLEDGE
    return Rules(
        recorded=c.delivery_mode is DeliveryMode.PERSISTENT,
        auto=mode is AckMode.AUTO_ACKNOWLEDGE,
        lazily=lazily,
        transacted=transacted,
        inside_receive=inside_receive,
        first=mode is AckMode.AUTO_ACKNOWLEDGE and inside_receive,
        waits=c.block_on_acknowledge and not lazily and not transacted,
        scope=c.client_ack_scope if client else AckScope.UP_TO if lazily else AckScope.MESSAGE,
        mark_persisted=c.redelivery_mark_persisted,
        restart_marks=c.restart_marks_redelivered,
        on_exception=c.listener_exception,
        gives_back=c.rollback_requeues,
        unseen_counts=c.delivery_count_from is DeliveryCountFrom.DISPATCH,
    )


NOBODY = -1


class Copy(NamedTuple):
    """A message at the broker."""

    place: str = "absent"  # absent, ready, out (with a session), acknowledged (in its transaction), removed, gone
    owner: int = NOBODY  # the session that it is out with, or that removed it
    marked: bool = False  # a dispatch from now on carries the redelivered flag
    message: str = "none"  # the message's record in the journal: none, memory, stored
    removal: str = "none"  # the removal's record: the same
    answers: bool = False  # the owner's present link is to hear that the acknowledgement took effect
    kept: bool = False  # the journal may still have a mark that was taken back


class Thread(NamedTuple):
    """What the session's one thread has in hand."""

    message: int
    flagged: bool
    stage: str
    # confirming    acknowledged first, waits for the broker; the application does not have it yet
    # acknowledged  acknowledged first; the application does not have it yet
    # working       handed to the application
    # finished      AUTO with a listener: the application is done with it, the library acknowledges it next
    # waiting       the library's acknowledging call has not returned
    live: bool  # the connection that it came by has not been broken


class Frame(NamedTuple):
    """Something on a session's connection."""

    kind: str  # to the client: message, acknowledged, committed; to the broker: acknowledge, requeue, commit
    message: int = NOBODY
    flagged: bool = False


class Session(NamedTuple):
    """One consumer: its process, its connection, its library, its application."""

    process: bool = True
    link: bool = True
    to_client: tuple[Frame, ...] = ()  # frames, oldest first
    to_broker: tuple[Frame, ...] = ()
    held: tuple[tuple[int, bool], ...] = ()  # prefetched: message, redelivered flag
    thread: Thread | None = None
    behind: frozenset[int] = frozenset()  # messages with which the application is busy still, by an earlier connection
    unacknowledged: tuple[tuple[int, str], ...] = ()  # in the order of delivery
    # busy    with the application       thrown  its listener threw; the application will recover
    # done    to be acknowledged         kept    its listener threw, and nothing comes of that
    call: frozenset[int] = frozenset()  # the messages whose answers an application's acknowledging call waits for
    failed: bool = False  # a call of the library failed: nothing more is handed over on this connection
    transaction: str = "idle"
    # idle, open, thrown (to be committed or rolled back), failed (to be rolled back), committing,
    # rolled_back (to be recovered)
    handed_in: frozenset[int] = frozenset()  # acknowledged in the transaction
    commit_answer: bool = False  # the broker owes the session's present link the answer to its commit


class System(NamedTuple):
    """Every variable of the system."""

    broker: bool = True
    copies: tuple[Copy, Copy] = (Copy(), Copy())
    sends: tuple[str, str] = ("new", "new")  # new, open, confirmed, in_doubt
    sessions: tuple[Session, ...] = (Session(),)


Steps = Iterator[tuple[Event, System]]


def _with(s: System, message: int, copy: Copy) -> System:
    first, second = s.copies
    return s._replace(copies=(copy, second) if message == 0 else (first, copy))


def _at(s: System, k: int, session: Session) -> System:
    return s._replace(sessions=(*s.sessions[:k], session, *s.sessions[k + 1 :]))


def _to_broker(session: Session, kind: str, message: int = NOBODY) -> Session:
    """A frame to the broker; it goes nowhere while the link is down."""
    return session._replace(to_broker=(*session.to_broker, Frame(kind, message))) if session.link else session


def _marked_as(session: Session, message: int, state: str) -> Session:
    """What the application has had of this session it now has in that state; what is acknowledged stays so."""
    entries = tuple((m, state if m == message else was) for m, was in session.unacknowledged)
    return session._replace(unacknowledged=entries)


def _without(session: Session, messages: Collection[int]) -> Session:
    return session._replace(unacknowledged=tuple(e for e in session.unacknowledged if e[0] not in messages))


# ---- What each party does -------------------------------------------------------------------------------------


def _producer(s: System, c: Rules) -> Steps:
    """Sends one after the other (JMS 7.2), or both in one transaction, which is dispatched once it is stored."""
    if not s.broker:
        return
    fresh = Copy("ready", message="memory" if c.recorded else "none")
    if c.transacted and s.sends == ("new", "new"):
        committed = fresh._replace(message="stored" if c.recorded else "none")
        yield Event("commit_sends"), s._replace(copies=(committed, committed), sends=("open", "open"))
    if not c.transacted and s.sends[0] == "new":
        yield Event("send", 0), _with(s, 0, fresh)._replace(sends=("open", "new"))
    if not c.transacted and s.sends[1] == "new" and s.sends[0] in {"confirmed", "in_doubt"}:
        yield Event("send", 1), _with(s, 1, fresh)._replace(sends=(s.sends[0], "open"))
    for m, copy in enumerate(s.copies):
        if s.sends[m] == "open" and (copy.message == "stored" or not c.recorded):
            first, second = s.sends
            yield Event("confirmed", m), s._replace(sends=("confirmed", second) if m == 0 else (first, "confirmed"))


def _broker(s: System, c: Rules) -> Steps:
    if not s.broker:
        return
    for m, copy in enumerate(s.copies):
        if copy.message == "memory":
            yield Event("store_message", m), _with(s, m, copy._replace(message="stored"))
        if copy.removal == "memory" and not c.transacted:
            yield Event("store_removal", m), _with(s, m, copy._replace(removal="stored"))
    ready = [m for m, copy in enumerate(s.copies) if copy.place == "ready"]
    for k, session in enumerate(s.sessions):
        if session.link and ready:
            yield _dispatch(s, k, session, ready[0])
        yield from _broker_reads(s, c, k, session)
        yield from _broker_answers(s, c, k, session)


def _dispatch(s: System, k: int, session: Session, m: int) -> tuple[Event, System]:
    """Messages leave the queue in its order (JMS 6.2.9)."""
    copy = s.copies[m]
    sent = session._replace(to_client=(*session.to_client, Frame("message", m, copy.marked)))
    out = copy._replace(place="out", owner=k, marked=True, kept=False)
    return Event("dispatch", m, _name(s, k)), _at(_with(s, m, out), k, sent)


def _broker_reads(s: System, c: Rules, k: int, session: Session) -> Steps:
    if not session.to_broker:
        return
    frame, *rest = session.to_broker
    read = _at(s, k, session._replace(to_broker=tuple(rest)))
    if frame.kind == "commit":
        if not _commit_in_memory(s, k):  # one commit of a session is stored before the next is executed
            yield Event("execute_commit", detail=_name(s, k)), _executed(read, c, k)
        return
    m, copy = frame.message, s.copies[frame.message]
    if frame.kind == "requeue":
        yield Event("requeued", m), _with(read, m, copy._replace(place="ready", owner=NOBODY))
    elif c.transacted:
        yield Event("settle", m), _with(read, m, copy._replace(place="acknowledged"))
    else:
        removed = copy._replace(place="removed", removal="memory" if c.recorded else "none", answers=c.waits)
        yield Event("settle", m), _with(read, m, removed)


def _executed(s: System, c: Rules, k: int) -> System:
    for m, copy in enumerate(s.copies):
        if copy.place == "acknowledged" and copy.owner == k:
            removal = "memory" if c.recorded else "none"
            s = _with(s, m, copy._replace(place="removed", removal=removal))
    return _at(s, k, s.sessions[k]._replace(commit_answer=True))


def _commit_in_memory(s: System, k: int) -> list[int]:
    return [m for m, copy in enumerate(s.copies) if copy.removal == "memory" and copy.owner == k]


def _broker_answers(s: System, c: Rules, k: int, session: Session) -> Steps:
    if c.transacted:
        in_memory = _commit_in_memory(s, k)
        if in_memory:  # one record for the whole transaction
            stored = s
            for m in in_memory:
                stored = _with(stored, m, s.copies[m]._replace(removal="stored"))
            yield Event("store_commit", detail=_name(s, k)), stored
        elif session.commit_answer:
            told = session._replace(commit_answer=False, to_client=(*session.to_client, Frame("committed")))
            yield Event("confirm_commit", detail=_name(s, k)), _at(s, k, told)
        return
    for m, copy in enumerate(s.copies):
        if copy.answers and copy.owner == k and (copy.removal == "stored" or not c.recorded):
            told = session._replace(to_client=(*session.to_client, Frame("acknowledged", m)))
            yield Event("confirm_removal", m), _at(_with(s, m, copy._replace(answers=False)), k, told)


def _client(s: System, c: Rules, k: int) -> Steps:
    session = s.sessions[k]
    if not session.process:
        return
    for event, after in itertools.chain(
        _library(session, c), _hands_over(session, c), _application(session, c), _acknowledges(session, c)
    ):
        yield _named(s, event, k), _at(s, k, after)
    yield from _ends_transaction(s, c, k, session)
    yield from _recovers(s, c, k, session)


def _library(session: Session, c: Rules) -> Iterator[tuple[Event, Session]]:
    """Reads what comes."""
    if not session.to_client:
        return
    frame, *rest = session.to_client
    read = session._replace(to_client=tuple(rest))
    if frame.kind == "message":
        yield Event("arrive", frame.message), read._replace(held=(*session.held, (frame.message, frame.flagged)))
    elif frame.kind == "committed":
        yield Event("committed"), read._replace(transaction="idle", handed_in=frozenset())
    elif c.auto and session.thread is not None:
        after = session.thread._replace(stage="acknowledged") if c.first else None
        yield Event("acknowledged", frame.message), read._replace(thread=after)
    else:
        yield Event("acknowledged", frame.message), read._replace(call=session.call - {frame.message})


def _hands_over(session: Session, c: Rules) -> Iterator[tuple[Event, Session]]:
    """One message at a time, in the order of arrival (JMS 6.2.5, 6.2.9)."""
    thread = session.thread
    if thread is not None and thread.stage == "acknowledged":
        yield _delivered(session, c, thread.message, flagged=thread.flagged)
    if thread is not None or session.call or session.failed or not session.held:
        return
    if session.transaction in {"committing", "rolled_back"}:
        return
    (m, flagged), *others = session.held
    taken = session._replace(held=tuple(others))
    if not c.first:
        yield _delivered(taken, c, m, flagged=flagged)
    elif session.link or not c.waits:  # a call that would wait fails, and nothing is handed over
        stage = "confirming" if c.waits else "acknowledged"
        in_hand = taken._replace(thread=Thread(m, flagged, stage, session.link))
        yield Event("acknowledge", m), _to_broker(in_hand, "acknowledge", m)


def _delivered(session: Session, c: Rules, m: int, *, flagged: bool) -> tuple[Event, Session]:
    after = session._replace(thread=Thread(m, flagged, "working", session.link))
    if session.link and not c.auto:
        after = after._replace(unacknowledged=(*session.unacknowledged, (m, "busy")))
    if c.transacted and session.transaction == "idle":
        after = after._replace(transaction="open")
    return Event("delivered", m, "redelivered" if flagged else ""), after


def _application(session: Session, c: Rules) -> Iterator[tuple[Event, Session]]:
    thread = session.thread
    for m in session.behind:
        yield Event("processed", m, "in vain"), session._replace(behind=session.behind - {m})
    if thread is not None and thread.stage == "working" and not session.call:
        yield Event("processed", thread.message), _returned(session, c, thread)
    if thread is not None and thread.stage == "finished":
        yield Event("acknowledge", thread.message), _acknowledged_by_library(session, c, thread)


def _returned(session: Session, c: Rules, thread: Thread) -> Session:
    """The application is done with it: what is left to do about its acknowledgement."""
    idle = session._replace(thread=None)
    if c.first:
        return idle
    if c.auto:
        return session._replace(thread=thread._replace(stage="finished"))
    if not thread.live:
        return idle
    if c.transacted:
        handed_in = _without(idle, {thread.message})._replace(handed_in=session.handed_in | {thread.message})
        return _to_broker(handed_in, "acknowledge", thread.message)
    return _marked_as(idle, thread.message, "done")


def _acknowledged_by_library(session: Session, c: Rules, thread: Thread) -> Session:
    """The session acknowledges before it calls its application with another message (JMS 6.2.11)."""
    if not thread.live:  # the call goes nowhere, and fails if it would wait
        return session._replace(thread=None, failed=c.waits and not session.link)
    after = thread._replace(stage="waiting") if c.waits else None
    return _to_broker(session._replace(thread=after), "acknowledge", thread.message)


def _acknowledges(session: Session, c: Rules) -> Iterator[tuple[Event, Session]]:
    """The application, or lazily the library, acknowledges a message and what that covers."""
    if c.auto or c.transacted or session.call or (session.transaction == "rolled_back" and not c.lazily):
        return
    for m, state in session.unacknowledged:
        if state == "done" or (state == "busy" and c.lazily and c.inside_receive):
            covered = _covered(session, c, m)
            after = _without(session, covered)._replace(call=frozenset(covered) if c.waits else frozenset())
            for each in covered:
                after = _to_broker(after, "acknowledge", each)
            yield Event("acknowledge", m), after


def _covered(session: Session, c: Rules, m: int) -> list[int]:
    """What an acknowledgement of ``m`` acknowledges, in the order of delivery (JMS 6.2.10)."""
    if c.scope is AckScope.MESSAGE:
        return [m]
    may = [n for n, state in session.unacknowledged if not (c.lazily and state == "busy" and not c.inside_receive)]
    if c.scope is AckScope.SESSION:
        return may
    return may[: may.index(m) + 1]


def _ends_transaction(s: System, c: Rules, k: int, session: Session) -> Steps:
    if not c.transacted or session.thread is not None:
        return
    if session.transaction in {"open", "thrown"}:
        called = _to_broker(session, "commit")._replace(transaction="committing")
        failed = session._replace(transaction="idle", handed_in=frozenset())
        yield Event("commit", detail=_name(s, k)), _at(s, k, called if session.link else failed)
    if session.transaction in {"thrown", "failed"} and session.link and not session.to_broker:
        yield Event("rollback", detail=_name(s, k)), _begun_anew(s, c, k) if c.gives_back else _undone(s, k)
    if session.transaction == "rolled_back" and session.link:
        yield Event("recover", detail=_name(s, k)), _begun_anew(s, c, k)


def _undone(s: System, k: int) -> System:
    """``tx.rollback`` of AMQP 0-9-1 undoes acknowledgements; what was delivered stays out until it is recovered."""
    for m, copy in enumerate(s.copies):
        if copy.owner == k and copy.place == "acknowledged":
            s = _with(s, m, copy._replace(place="out"))
    return _at(s, k, s.sessions[k]._replace(transaction="rolled_back", handed_in=frozenset()))


def _recovers(s: System, c: Rules, k: int, session: Session) -> Steps:
    """Session.recover(): all that was delivered and is not acknowledged comes again (JMS 6.2.10)."""
    thrown = [m for m, state in session.unacknowledged if state == "thrown"]
    owed = thrown or session.transaction == "rolled_back"
    if c.transacted or not owed or not session.link or session.call:
        return
    if session.thread is None and not session.to_broker:
        yield Event("recover", detail=_name(s, k)), _begun_anew(s, c, k)


def _begun_anew(s: System, c: Rules, k: int) -> System:
    """The broker takes back what is out with the session, and the library drops what it holds.

    Where that does not count it is as if it had never been sent; the journal hears of that some time.
    """
    session = s.sessions[k]
    on_its_way = [(frame.message, frame.flagged) for frame in session.to_client if frame.kind == "message"]
    for m, flagged in (*session.held, *on_its_way):
        if not flagged and not c.unseen_counts:
            s = _with(s, m, s.copies[m]._replace(marked=False, kept=c.mark_persisted))
    left = tuple(frame for frame in session.to_client if frame.kind != "message")
    anew = session._replace(to_client=left, held=(), unacknowledged=(), transaction="idle", handed_in=frozenset())
    return _at(_taken_back(s, k), k, anew)


def _taken_back(s: System, k: int) -> System:
    for m, copy in enumerate(s.copies):
        if copy.owner == k and copy.place in {"out", "acknowledged"}:
            s = _with(s, m, copy._replace(place="ready", owner=NOBODY))
    return s


def _left_behind(session: Session) -> Session:
    """A new connection does not wait for what the application is busy with by the old one."""
    thread = session.thread
    if thread is None or thread.stage != "working":
        return session
    return session._replace(thread=None, behind=session.behind | {thread.message})


def _recovery(s: System) -> Steps:
    if not s.broker:
        yield Event("broker_restart"), s._replace(broker=True)
    for k, session in enumerate(s.sessions):
        if not session.process:
            yield Event("consumer_restart", detail=_name(s, k)), _at(s, k, session._replace(process=True))
        if s.broker and session.process and not session.link:
            transaction = "idle" if session.transaction in {"idle", "rolled_back"} else "failed"
            up = _left_behind(session)._replace(link=True, held=(), failed=False, transaction=transaction)
            yield Event("consumer_link_up", detail=_name(s, k)), _at(s, k, up)


# ---- What goes wrong ------------------------------------------------------------------------------------------


def _faults(s: System, c: Rules) -> Steps:
    if s.broker:
        yield from _killed(s, c)
    for k, session in enumerate(s.sessions):
        if session.link:
            yield Event(Fault.CONSUMER_LINK_LOSS, detail=_name(s, k)), _cut_off(s, k)
        if session.process:
            cut = _cut_off(s, k)
            dead = cut.sessions[k]._replace(
                process=False,
                held=(),
                thread=None,
                behind=frozenset(),
                failed=False,
                transaction="idle",
                handed_in=frozenset(),
            )
            yield Event(Fault.CONSUMER_CRASH, detail=_name(s, k)), _at(cut, k, dead)
        thread = session.thread
        if thread is not None and thread.stage == "working" and not c.inside_receive and not session.call:
            thrown = _at(s, k, _throws(session, c, thread))
            yield _named(s, Event(Fault.LISTENER_EXCEPTION, thread.message), k), thrown


def _killed(s: System, c: Rules) -> Steps:
    """What is in memory is gone, every link is down; a mark in memory may have outlived it (a stop in good order)."""
    for k, _ in enumerate(s.sessions):
        s = _cut_off(s, k)
    sends = ("in_doubt" if s.sends[0] == "open" else s.sends[0], "in_doubt" if s.sends[1] == "open" else s.sends[1])
    for first, second in itertools.product(*(list(_reloaded(copy, c)) for copy in s.copies)):
        yield Event(Fault.BROKER_KILL), s._replace(broker=False, copies=(first, second), sends=sends)


def _reloaded(copy: Copy, c: Rules) -> Iterator[Copy]:
    if copy.place in {"absent", "gone"}:
        yield copy
    elif copy.message != "stored":
        yield Copy("gone")
    elif copy.removal == "stored":
        yield Copy("removed", message="stored", removal="stored")
    elif c.restart_marks is True:
        yield Copy("ready", NOBODY, True, "stored")  # noqa: FBT003 - marked
    else:
        if c.restart_marks:
            yield Copy("ready", NOBODY, True, "stored")  # noqa: FBT003 - marked
        yield Copy("ready", NOBODY, copy.marked, "stored")
        if copy.marked and not c.mark_persisted:
            yield Copy("ready", NOBODY, False, "stored")  # noqa: FBT003 - not marked
        if copy.kept:
            yield Copy("ready", NOBODY, True, "stored")  # noqa: FBT003 - marked


def _cut_off(s: System, k: int) -> System:
    """Frames are lost, calls that wait fail, and the broker takes back what is out with the session."""
    session = s.sessions[k]
    thread, failed, transaction = session.thread, session.failed, session.transaction
    if thread is not None:
        if thread.stage in {"confirming", "waiting"}:
            thread, failed = None, True
        else:
            thread = thread._replace(live=False)
    committing = transaction == "committing"
    cut = session._replace(
        link=False,
        to_client=(),
        to_broker=(),
        thread=thread,
        failed=failed,
        unacknowledged=(),
        call=frozenset(),
        transaction="idle" if committing else transaction,
        handed_in=frozenset() if committing else session.handed_in,
        commit_answer=False,
    )
    s = _at(_taken_back(s, k), k, cut)
    for m, copy in enumerate(s.copies):
        if copy.owner == k and copy.answers:
            s = _with(s, m, copy._replace(answers=False))
    return s


def _throws(session: Session, c: Rules, thread: Thread) -> Session:  # noqa: PLR0911 - an answer for each policy
    """What a listener's exception comes to (JMS 8.7)."""
    policy, m, idle = c.on_exception, thread.message, session._replace(thread=None)
    gives_back = policy in {ListenerException.REDELIVER, ListenerException.RECOVER, ListenerException.NEXT_MESSAGE}
    if c.transacted and policy is ListenerException.NEXT_MESSAGE:
        thrown = session if session.transaction == "failed" else session._replace(transaction="thrown")
        return _returned(thrown, c, thread)
    if policy is ListenerException.ACKNOWLEDGE or (c.transacted and not gives_back):
        return _returned(session, c, thread)
    if c.transacted:
        return _without(idle, {m})._replace(transaction="failed")
    if policy is ListenerException.RECOVER:  # nothing else is done before the library has recovered the session
        return _marked_as(idle, m, "thrown")._replace(transaction="rolled_back")
    if not thread.live or not (c.auto or any(n == m for n, _ in session.unacknowledged)):
        return idle  # nothing is left to give back: its session is gone, or another acknowledgement has covered it
    if policy is ListenerException.REDELIVER:
        return _to_broker(_without(idle, {m}), "requeue", m)
    state = "thrown" if gives_back else "kept"
    if c.auto:
        return idle._replace(unacknowledged=(*session.unacknowledged, (m, state)))
    return _marked_as(idle, m, state)


# ---- What an observer calls an anomaly ------------------------------------------------------------------------


_T = TypeVar("_T")


class Seen(NamedTuple):
    """What an observer of the clients remembers, for each message, and of order for each session."""

    delivered: tuple[bool, ...] = (False, False)
    processed: tuple[bool, ...] = (False, False)
    final: tuple[str, ...] = ("", "")  # "", early (before the delivery that it is of), final
    order: tuple[str, ...] = ("",)  # "", behind (the second message came before the first one), decided
    facts: Facts | None = None  # None: nobody asks


class Facts(NamedTuple):
    """What has been completed, as far as the facts depend on it."""

    since: frozenset[int] = frozenset()  # messages, since a session last failed
    again: frozenset[int] | None = None  # messages, after a failure before which both had been; None: not yet
    by: frozenset[tuple[int, int]] = frozenset()  # message and session


def observe(seen: Seen, event: Event, k: int, before: System) -> tuple[Seen, list[StrEnum]]:
    """What the observer remembers after an event of session ``k``, and the anomalies and facts that it completes."""
    found: list[StrEnum] = []
    m = event.copy
    if event.name == "delivered" and m is not None:
        return _sees_delivery(seen, m, k, found, flagged=event.detail.startswith("redelivered")), found
    if event.name == "processed" and m is not None:
        return _sees_completion(seen, m, k, found, in_vain=event.detail.startswith("in vain")), found
    if event.name == "acknowledged" and m is not None:
        return seen._replace(final=_set(seen.final, m, value="final" if seen.delivered[m] else "early")), found
    if event.name == "acknowledge" and seen.facts is not None and _works_on_another(before.sessions[k], m):
        found.append(Fact.ACKNOWLEDGED_AHEAD)
    if event.name == "committed":
        for n in before.sessions[k].handed_in:
            seen = seen._replace(final=_set(seen.final, n, value="final"))
    if event.name == "consumer_link_up" and seen.order[k] == "behind":  # order is promised within a session
        seen = seen._replace(order=_set(seen.order, k, value=""))
    return seen, found


def _works_on_another(session: Session, m: int | None) -> bool:
    thread = session.thread
    return thread is not None and thread.stage == "working" and thread.message != m


def _sees_delivery(seen: Seen, m: int, k: int, found: list[StrEnum], *, flagged: bool) -> Seen:
    if seen.delivered[m]:
        found.append(Anomaly.DUPLICATE if flagged else Anomaly.UNFLAGGED_DUPLICATE)
    if seen.final[m] == "final":
        found.append(Anomaly.RESURRECTION)
    if seen.final[m] == "early":
        seen = seen._replace(final=_set(seen.final, m, value="final"))
    return _in_order(seen._replace(delivered=_set(seen.delivered, m, value=True)), m, k, found, flagged=flagged)


def _sees_completion(seen: Seen, m: int, k: int, found: list[StrEnum], *, in_vain: bool) -> Seen:
    """What is completed in vain is nothing that its session has acknowledged or left unacknowledged."""
    if seen.processed[m]:
        found.append(Anomaly.REPROCESSED)
    facts = seen.facts if seen.facts is None or in_vain else _completed(seen.facts, m, k, found)
    return seen._replace(processed=_set(seen.processed, m, value=True), facts=facts)


def _in_order(seen: Seen, m: int, k: int, found: list[StrEnum], *, flagged: bool) -> Seen:
    """A first, unflagged delivery after an unflagged one of a later message breaks the order (JMS 6.2.9)."""
    was = seen.order[k]
    if m == 0 and was == "behind" and not flagged:
        found.append(Anomaly.REORDER)
    if m == 0:
        return seen._replace(order=_set(seen.order, k, value="decided"))
    if not flagged and not was:
        return seen._replace(order=_set(seen.order, k, value="behind"))
    return seen


def _completed(facts: Facts, m: int, k: int, found: list[StrEnum]) -> Facts:
    if any(n == m and other != k for n, other in facts.by):
        found.append(Fact.COMPLETED_BY_TWO)
    by = facts.by | {(m, k)}
    if facts.again is None:
        return Facts(facts.since | {m}, None, by)
    again = facts.again | {m}
    if len(again) > 1:
        found.append(Fact.TWO_REPEATED)
    return Facts(facts.since, again, by)


def _after_fault(seen: Seen, event: Event) -> Seen:
    """A listener's exception is no failure of its session."""
    facts = seen.facts
    if facts is None or facts.again is not None or event.name == Fault.LISTENER_EXCEPTION:
        return seen
    again = frozenset[int]() if len(facts.since) > 1 else None
    return seen._replace(facts=facts._replace(since=frozenset(), again=again))


def _set(values: tuple[_T, ...], number: int, *, value: _T) -> tuple[_T, ...]:
    return (*values[:number], value, *values[number + 1 :])


def at_rest(s: System, seen: Seen) -> Iterator[Anomaly]:
    """The anomalies of a state in which nothing but faults can happen any more."""
    for m, copy in enumerate(s.copies):
        if s.sends[m] == "confirmed" and not seen.delivered[m]:
            yield Anomaly.LOSS
        if seen.delivered[m] and not seen.processed[m]:
            yield Anomaly.UNPROCESSED
        if copy.place in {"out", "acknowledged"} or s.sends[m] in {"new", "open"}:
            yield Anomaly.STUCK
    for session in s.sessions:
        waits = session.thread is not None and session.thread.stage in {"confirming", "waiting"}
        if waits or session.call or session.transaction == "committing":
            yield Anomaly.STUCK


# ---- The search -----------------------------------------------------------------------------------------------


class _Node(NamedTuple):
    system: System
    seen: Seen
    faults_left: int


def explore(
    setting: Setting,
    faults: Iterable[Fault] = (),
    max_faults: int = 1,
    *,
    sessions: int = 1,
    facts: Collection[StrEnum] = (),
) -> Answer:
    """Visit every state that ``setting`` can reach with ``sessions`` and at most ``max_faults`` of ``faults``.

    The ``facts`` are looked for beside the anomalies, which takes more states.

    Raises ValueError for a fault that the oracle does not know.
    """
    allowed = frozenset(faults)
    if strange := allowed - set(FAULTS):
        raise ValueError(f"the oracle does not know {min(strange)}")
    rules = _rules(setting)
    seen = Seen(order=("",) * sessions, facts=Facts() if facts else None)
    wanted = frozenset[StrEnum]((*ANOMALIES, *facts))
    space = Space(
        start=_Node(System(sessions=(Session(),) * sessions), seen, max_faults),
        steps=lambda node: _steps(node, rules, wanted),
        faults=lambda node: _faulty_steps(node, rules, allowed),
        at_rest=lambda node: at_rest(node.system, node.seen),
        mirrored=_mirrored if sessions > 1 else None,
    )
    return search(space, wanted)


def _mirrored(node: _Node) -> _Node:
    """The same with the two sessions exchanged."""
    s, seen = node.system, node.seen
    first, second = (copy if copy.owner == NOBODY else copy._replace(owner=1 - copy.owner) for copy in s.copies)
    facts = seen.facts and seen.facts._replace(by=frozenset((m, 1 - k) for m, k in seen.facts.by))
    return _Node(
        s._replace(copies=(first, second), sessions=s.sessions[::-1]),
        seen._replace(order=seen.order[::-1], facts=facts),
        node.faults_left,
    )


def _steps(node: _Node, c: Rules, wanted: frozenset[StrEnum]) -> Iterator[Move[_Node]]:
    s = node.system
    for event, after in itertools.chain(_producer(s, c), _broker(s, c)):
        yield event, node._replace(system=after), []
    seen_by_clients = ((event, after, k) for k, _ in enumerate(s.sessions) for event, after in _client(s, c, k))
    repairs = ((event, after, _number(event)) for event, after in _recovery(s))
    for event, after, k in itertools.chain(repairs, seen_by_clients):
        seen, found = observe(node.seen, event, k, s)
        yield event, _Node(after, seen, node.faults_left), [each for each in found if each in wanted]


def _faulty_steps(node: _Node, c: Rules, allowed: frozenset[Fault]) -> Iterator[Move[_Node]]:
    if node.faults_left and allowed:
        for event, after in _faults(node.system, c):
            if event.name in allowed:
                yield event, _Node(after, _after_fault(node.seen, event), node.faults_left - 1), []


def _name(s: System, k: int) -> str:
    """How a witness names a session: not at all where there is one."""
    return f"s{k + 1}" if len(s.sessions) > 1 else ""


def _named(s: System, event: Event, k: int) -> Event:
    name = _name(s, k)
    return event._replace(detail=" at ".join(filter(None, (event.detail, name)))) if name else event


def _number(event: Event) -> int:
    return int(event.detail[1:]) - 1 if event.detail.startswith("s") else 0
