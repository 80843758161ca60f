"""The recorder: methods for single lines, and context managers round calls whose outcome is a line as well."""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from ackfsm.history.format import TELLERS, Event
from ackfsm.recorder.clock import Clock
from ackfsm.recorder.file import HistoryFile
from ackfsm.recorder.lines import RecordingError, encoded, error_text
from ackfsm.support.closing import Closing
from ackfsm.terms import AckScope, parse_value
from ackfsm.text import quoted

Rejects: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
"""Exceptions by which a client says that the broker refused, and that nothing was done."""

_NEMESIS: Final = TELLERS[0]


@dataclasses.dataclass(slots=True)
class Sending:
    """The result of a call of send, for a client that does not tell it by an exception."""

    outcome: Event | None = None
    error: str | None = None
    unroutable: bool = False

    def returned(self, error: str | None = None) -> None:
        """The broker found no queue for the message, and gave it back; it confirms it all the same."""
        self.unroutable, self.error = True, error

    def rejected(self, error: str | None = None) -> None:
        """The broker refused the message."""
        self.outcome, self.error = Event.REJECTED, error

    def in_doubt(self, error: str | None = None) -> None:
        """The call ended, and does not say whether the broker has the message."""
        self.outcome, self.error = Event.IN_DOUBT, error


class Recorder(Closing):
    """Writes a history of format 1 beside the calls of a program.

    Each line is in the file when the method returns: what a crash leaves is true up to the last line.  Threads, forked
    children and other programs may write to the same file.  One recorder writes for one *process* of the history, that
    is one logical thread of one client: give each its own with :meth:`as_process`.

    Where the system does not take a line (a full disk), :class:`ackfsm.terms.HostError` is raised: a history with a
    hole would accuse the broker.  Arguments that make no line of format 1 raise :class:`RecordingError`.
    """

    def __init__(  # noqa: PLR0913 - what the header has
        self,
        path: Path | str,
        process: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        queues: Mapping[str, Mapping[str, object]] | None = None,
        api: str | None = None,
        note: str | None = None,
        cannot_show: Collection[str] = (),
        fsync: bool = False,
        monotonic: bool = False,
    ) -> None:
        """Begin the file, or go on with one that was begun with the same settings.

        Args:
            path: where the lines go, ``NAME.jsonl``.
            process: who acts, ``producer-1``; by default the name of the program and the number of its process.
            config: the settings of broker and clients (``{"profile": "rabbitmq", ...}``), for the header.
            queues: settings that are different in single queues, by their names.
            api: the programming interface of the clients, such as ``JMS 1.1``.
            note: text for people.
            cannot_show: the events and fields that nobody records here, whether they happen or not.
            fsync: whether each line is forced to the disk, which outlasts a power failure and takes as long as a sync.
            monotonic: whether times are those of the machine's monotonic clock, as other programs write them beside
                this one, and not of the calendar.

        Raises:
            RecordingError: the path cannot be a history, or the file was begun with different settings.
            InputError: there is no such setting, or no such value of it.
        """
        for settings in (config or {}, *(queues or {}).values()):
            _check(settings)
        told = {"config": config, "queues": queues, "api": api, "note": note}
        header = {key: _plain(value) for key, value in told.items() if value is not None}
        header |= {"cannot_show": list(cannot_show)} if cannot_show else {}
        clock = Clock.monotonic() if monotonic else Clock.anchored()
        self._share(HistoryFile(Path(path), header, fsync=fsync, clock=clock), process, set(), itertools.count(1))

    def _share(self, file: HistoryFile, process: str | None, doubtful: set[str], sessions: Iterator[int]) -> None:
        self._file, self._process, self._doubtful, self._sessions = file, process, doubtful, sessions

    def as_process(self, process: str) -> Recorder:
        """A recorder for another process of the history, in the same file."""
        other = type(self).__new__(type(self))
        other._share(self._file, process, self._doubtful, self._sessions)  # noqa: SLF001 - of its own class
        return other

    @property
    def process(self) -> str:
        """Who acts.  A forked child without a name of its own is another process."""
        return self._process or f"{Path(sys.argv[0]).stem or 'python'}-{os.getpid()}"

    def new_session(self) -> str:
        """A name for a session of this process that no other one has, in no other run of the program either."""
        return f"{self.process}.{os.getpid()}.{next(self._sessions)}"

    def close(self) -> None:
        """Close the file, for all who share it."""
        self._file.close()

    def write(self, event: str, /, **fields: object) -> None:
        """Write any one line: ``write("expired", queue="orders", message="m1")``.

        ``t`` and ``process`` are filled in unless they are given; fields that are ``None`` are left out.
        """
        line = {"t": self._file.clock.now(), "process": self.process, **fields, "event": event}
        self._file.append(encoded(line))

    # Producers

    @contextmanager
    def send(  # noqa: PLR0913 - the fields of the line
        self,
        message: str,
        *,
        queue: str | None = None,
        session: str | None = None,
        delivery_mode: str | None = None,
        transaction: str | None = None,
        position: int | None = None,
        priority: int | None = None,
        again: bool | None = None,
        answered: bool = True,
        rejects: Rejects = (),
        returns: Rejects = (),
    ) -> Iterator[Sending]:
        """Round the call that sends: ``send`` before it, ``confirmed`` after it, or ``in_doubt`` if it raises.

        Args:
            message: the message's own id; no other message of the history may have it.
            queue: where it goes.
            session: in which session; of one session sends are confirmed and delivered in their order.
            delivery_mode: ``PERSISTENT``, ``NON_PERSISTENT`` ...
            transaction: the name of the open transaction; its ``committed`` is then the outcome of the send.
            position: a number of the producer's own.
            priority: where producers set it; order is owed within one.
            again: whether this is a further attempt (``resend``); ``None``: if the last one was in doubt or rejected.
            answered: whether the call waits for the broker's answer; if not, write :meth:`confirmed` when it comes.
            rejects: exceptions that say that the broker refused the message; they write ``rejected``.
            returns: exceptions that say that it found no queue for the message, and confirmed it all the same; they
                write ``returned`` and ``confirmed``.
        """
        fields = {"message": message, "queue": queue, "session": session}
        again = message in self._doubtful if again is None else again
        first = Event.RESEND if again else Event.SEND
        told = {"delivery_mode": delivery_mode, "transaction": transaction, "position": position, "priority": priority}
        self.write(first, **fields, **told)
        sending = Sending()
        try:
            yield sending
        except BaseException as error:
            if isinstance(error, returns):
                self._tell_doubt(Event.RETURNED, fields, error_text(error))
                self.write(Event.CONFIRMED, **fields)
            elif transaction is None:
                refused = isinstance(error, rejects)
                self._tell_doubt(Event.REJECTED if refused else Event.IN_DOUBT, fields, error_text(error))
            raise
        if sending.unroutable:
            self.write(Event.RETURNED, **fields, error=sending.error)
        if sending.outcome is not None:
            self._tell_doubt(sending.outcome, fields, sending.error)
        elif transaction is None and answered:
            self._doubtful.discard(message)
            self.write(Event.CONFIRMED, **fields)

    def confirmed(
        self, message: str, *, queue: str | None = None, session: str | None = None, up_to: bool = False
    ) -> None:
        """The broker's answer came; ``up_to``: for all open sends of the session, up to this one (``multiple``)."""
        self._doubtful.discard(message)
        scope = AckScope.UP_TO if up_to else None
        self.write(Event.CONFIRMED, message=message, queue=queue, session=session, scope=scope)

    def returned(
        self, message: str, *, queue: str | None = None, session: str | None = None, error: str | None = None
    ) -> None:
        """The broker found no queue for the message, and gave it back; that is no outcome, and one may follow."""
        self.write(Event.RETURNED, message=message, queue=queue, session=session, error=error)

    def rejected(
        self, message: str, *, queue: str | None = None, session: str | None = None, error: str | None = None
    ) -> None:
        """The broker refused the message."""
        self._tell_doubt(Event.REJECTED, {"message": message, "queue": queue, "session": session}, error)

    def in_doubt(
        self, message: str, *, queue: str | None = None, session: str | None = None, error: str | None = None
    ) -> None:
        """The send ended without an answer: the broker may have the message or not."""
        self._tell_doubt(Event.IN_DOUBT, {"message": message, "queue": queue, "session": session}, error)

    def _tell_doubt(self, event: Event, fields: Mapping[str, str | None], error: str | None) -> None:
        self.write(event, **fields, error=error)
        self._doubtful.add(str(fields["message"]))

    # Consumers

    @contextmanager
    def processing(  # noqa: PLR0913 - the fields of the line
        self,
        message: str,
        *,
        redelivered: bool,
        queue: str | None = None,
        session: str | None = None,
        delivery_count: int | None = None,
        transaction: str | None = None,
        position: int | None = None,
    ) -> Iterator[None]:
        """Round the work on a message: ``delivered`` before it, ``processed`` after it, or ``failed`` if it raises.

        Args:
            message: the message's own id.
            redelivered: whether the broker flagged it as delivered before (JMSRedelivered).
            queue: where it comes from.
            session: the session of the consumer.
            delivery_count: how often it was delivered, this time included (JMSXDeliveryCount).
            transaction: the name of the open transaction.
            position: a number of the consumer's own, such as the delivery tag.
        """
        fields = {"message": message, "queue": queue, "session": session, "transaction": transaction}
        self.write(Event.DELIVERED, **fields, redelivered=redelivered, delivery_count=delivery_count, position=position)
        try:
            yield
        except BaseException as error:
            self.write(Event.FAILED, **fields, error=error_text(error))
            raise
        self.write(Event.PROCESSED, **fields)

    @contextmanager
    def acknowledge(  # noqa: PLR0913 - the fields of the line
        self,
        scope: str,
        *,
        answered: bool,
        message: str | None = None,
        queue: str | None = None,
        session: str | None = None,
        transaction: str | None = None,
    ) -> Iterator[None]:
        """Round the call that acknowledges: ``acknowledge`` before it, ``acknowledged`` after it.

        If the call raises, ``ack_in_doubt`` is written: the broker may have the acknowledgement or not.

        Args:
            scope: what it covers: ``message``, ``up_to`` (all of the session up to this message), ``session``.
            answered: whether the call waits for the broker's answer.  Most do not: AMQP 0-9-1 has none, AMQP 1.0 and
                STOMP where nobody asks for it, ActiveMQ unless told to.  Without one ``acknowledged`` is not written.
            message: the message, unless the scope is ``session``.
            queue: where it came from.
            session: the session of the consumer.
            transaction: the name of the open transaction.
        """
        fields = {"scope": scope, "message": message, "queue": queue, "session": session, "transaction": transaction}
        self.write(Event.ACKNOWLEDGE, **fields)
        try:
            yield
        except BaseException as error:
            self.write(Event.ACK_IN_DOUBT, **fields, error=error_text(error))
            raise
        if answered:
            self.write(Event.ACKNOWLEDGED, **fields)

    # Sessions and transactions

    def begin(self, transaction: str, *, session: str | None = None) -> None:
        """A transaction begins.  The name is one that the process, or its session, has not open."""
        self.write(Event.BEGIN, transaction=transaction, session=session)

    @contextmanager
    def commit(self, transaction: str, *, session: str | None = None, rolls_back: Rejects = ()) -> Iterator[None]:
        """Round the call that commits: ``commit``, then ``committed``, or ``commit_in_doubt`` if it raises.

        ``rolls_back`` are exceptions by which the client says that the broker rolled the transaction back
        (TransactionRolledBackException).  Name them only where that is certain: several clients raise them as well when
        the connection broke, whatever the broker did.
        """
        fields = {"transaction": transaction, "session": session}
        self.write(Event.COMMIT, **fields)
        try:
            yield
        except BaseException as error:
            certain = isinstance(error, rolls_back)
            self.write(Event.ROLLED_BACK if certain else Event.COMMIT_IN_DOUBT, **fields, error=error_text(error))
            raise
        self.write(Event.COMMITTED, **fields)

    @contextmanager
    def rollback(self, transaction: str, *, session: str | None = None) -> Iterator[None]:
        """Round the call that rolls back: ``rollback``, then ``rolled_back``, or nothing more if it raises."""
        self.write(Event.ROLLBACK, transaction=transaction, session=session)
        yield
        self.write(Event.ROLLED_BACK, transaction=transaction, session=session)

    def recover(self, session: str | None = None) -> None:
        """Record that the session is about to give back its unacknowledged deliveries (``recover``)."""
        self.write(Event.RECOVER, session=session)

    def closing(
        self,
        session: str | None = None,
        *,
        queue: str | None = None,
        transaction: str | None = None,
        error: str | None = None,
    ) -> None:
        """Before a session is closed, or a consumer of ``queue``; with an ``error``: the connection broke."""
        self.write(Event.CLOSE, session=session, queue=queue, transaction=transaction, error=error)

    # What is seen from outside

    def drained(self, queue: str) -> None:
        """The queue was seen empty, nothing was in flight, and nothing is sent to it any more."""
        self.write(Event.DRAINED, queue=queue)

    def depth(self, queue: str, *, ready: int, unacknowledged: int) -> None:
        """The broker said how many messages the queue holds, after the last act of all clients."""
        self.write(Event.DEPTH, queue=queue, position=ready, delivery_count=unacknowledged)

    def waiting(
        self, call: str, *, message: str | None = None, queue: str | None = None, session: str | None = None
    ) -> None:
        """A call of this process has not returned: ``send``, ``acknowledge``, ``commit``, ``receive`` ..."""
        self.write(Event.WAITING, error=call, message=message, queue=queue, session=session)

    def expired(self, message: str, *, queue: str | None = None) -> None:
        """The message's time was over."""
        self.write(Event.EXPIRED, message=message, queue=queue)

    def dead_lettered(self, message: str, *, queue: str | None = None, session: str | None = None) -> None:
        """The message went to the dead letters, or was thrown away because somebody asked for that."""
        self.write(Event.DEAD_LETTERED, message=message, queue=queue, session=session)

    def fault(
        self,
        fault: str,
        *,
        victim: str | None = None,
        session: str | None = None,
        queue: str | None = None,
        error: str | None = None,
    ) -> None:
        """Before a fault is injected: ``broker_kill``, ``consumer_link_loss`` ...

        Args:
            fault: its kind.
            victim: the process that it hits; ``None`` if it hits the broker, or it is not known whom.
            session: the session that it hits, of a client; some other line has to have it.
            queue: what it hits of the victim; some other line has to have it.
            error: how it was brought about, for people.
        """
        self.write(Event.FAULT, process=victim or _NEMESIS, fault=fault, session=session, queue=queue, error=error)

    def recovered(
        self, fault: str, *, victim: str | None = None, session: str | None = None, queue: str | None = None
    ) -> None:
        """After the fault was repaired; with the same victim."""
        self.write(Event.RECOVERED, process=victim or _NEMESIS, fault=fault, session=session, queue=queue)


def _check(settings: Mapping[str, object]) -> None:
    """Find a mistake in the settings before the run and not after it; a profile may be the user's own."""
    for key, value in settings.items():
        if key == "profile" and isinstance(value, str):
            continue
        parse_value(key, value)


def _plain(value: object) -> object:
    """What JSON can hold, as it will be read back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, StrEnum):
        return value.value
    if value is None or isinstance(value, (str, int)):
        return value
    raise RecordingError(
        f"{quoted(repr(value), 60)} in the header is neither text, a whole number, true, false nor null"
    )
