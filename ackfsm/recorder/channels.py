"""The calls of a channel of AMQP 0-9-1 as lines of a history: the same for every client of that protocol."""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Final, TypeAlias

from ackfsm.history.format import Event, Outcome
from ackfsm.recorder.lines import RecordingError, error_text
from ackfsm.recorder.recorder import Recorder, Rejects, Sending
from ackfsm.terms import AckScope, DeliveryMode
from ackfsm.text import quoted

QueueOf: TypeAlias = Callable[[str, str], str | None]
"""From an exchange and a routing key to the queue that the message goes to, or ``None`` where nobody can say."""

_COUNT: Final = "x-delivery-count"
"""The header of a quorum queue: how often the message was given back, which is one less than JMSXDeliveryCount."""


def by_name(exchange: str, routing_key: str) -> str | None:
    """Return the queue of that name for the default exchange; only the broker knows the queues of others."""
    return None if exchange else routing_key


def new_message_id() -> str:
    """An id that no other message has."""
    return uuid.uuid4().hex


@dataclasses.dataclass(slots=True)
class Delivery:
    """A message that the application has, by its delivery tag."""

    message: str
    queue: str
    session: str
    called: bool
    """Whether a callback works on it, whose return says that it is done."""
    told: Event | None = None
    """The line that says what became of the work on it."""


class ChannelBook:
    """The lines of one channel, which is one session.

    An application that works on several deliveries of the channel at once has a session for each (``NAME+2``): in a
    session of the model the work on one message ends before the next is handed over.  Who fetches the next message is
    done with the one before.
    """

    def __init__(self, recorder: Recorder, session: str | None, queue_of: QueueOf) -> None:
        self.recorder = recorder
        self.session = session or recorder.new_session()
        self._queue_of = queue_of
        self._open: dict[int, Delivery] = {}
        self._working: dict[str, Delivery] = {}
        self._latest: dict[int, Delivery] = {}
        self._enlisted: dict[int, Delivery] = {}
        self._handed: dict[str, set[tuple[str, str]]] = {}
        self._transacted, self._transaction, self._numbers = False, "", itertools.count(1)
        self._used, self._closed, self._given_back = False, False, False
        self._failure: BaseException | None = None

    def sending(  # noqa: PLR0913 - what a publish says
        self,
        message: str,
        exchange: str,
        routing_key: str,
        *,
        persistent: bool,
        answered: bool,
        rejects: Rejects,
        returns: Rejects = (),
    ) -> AbstractContextManager[Sending]:
        """Round a publish."""
        self._used = True
        return self.recorder.send(
            message,
            queue=self._queue_of(exchange, routing_key),
            session=self.session,
            delivery_mode=DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT,
            transaction=self._begun(),
            answered=answered,
            rejects=rejects,
            returns=returns,
        )

    def delivered(  # noqa: PLR0913 - what a delivery says
        self,
        tag: int,
        message: str | None,
        queue: str,
        *,
        redelivered: bool,
        headers: Mapping[str, Any] | None,
        acknowledged: bool,
        called: bool,
        consumer: str | None = None,
    ) -> Delivery:
        """The application is handed a message.

        ``acknowledged``: the broker asks for no acknowledgement; ``called``: a callback works on it.
        """
        if message is None:
            raise RecordingError(
                f"a message of the queue {quoted(queue)} has no message_id, so that nobody can say which one it is; "
                "let its producer set one (wrapped producers do)"
            )
        self._used = True
        if not called:
            for before in self._latest.values():
                self._tell(before, Event.PROCESSED)
        delivery = Delivery(message, queue, self._free(), called)
        self._working[delivery.session] = delivery
        count = (headers or {}).get(_COUNT)
        self.recorder.write(
            Event.DELIVERED,
            queue=queue,
            message=message,
            session=delivery.session,
            redelivered=redelivered,
            delivery_count=count + 1 if isinstance(count, int) else None,
            position=tag,
            consumer=consumer,
            transaction=None if acknowledged else self._begun(),
        )
        if consumer is not None:
            self._handed.setdefault(consumer, set()).add((delivery.session, queue))
        self._latest = {tag: delivery}
        if not acknowledged:
            self._open[tag] = delivery
        return delivery

    def done(self, tag: int) -> None:
        """The work on the delivery with this tag is done, if it is still open or the latest one."""
        delivery = self._open.get(tag) or self._latest.get(tag)
        if delivery is not None:
            self._tell(delivery, Event.PROCESSED)

    def ended(self, delivery: Delivery, error: BaseException | None = None) -> None:
        """The application is done with its delivery, or raised ``error``.

        An error that came from its acknowledgement tells that the work was done.
        """
        failed = None if error is None or error is self._failure else error_text(error)
        self._tell(delivery, Event.PROCESSED if failed is None else Event.FAILED, failed)

    def acknowledging(self, tag: int, *, multiple: bool) -> AbstractContextManager[None]:
        """Round an acknowledgement; for one of an unknown delivery there is no line."""
        covered = self._covered(tag, multiple=multiple)
        return self._acknowledging(covered, multiple=multiple) if covered else nullcontext()

    @contextmanager
    def _acknowledging(self, covered: list[int], *, multiple: bool) -> Iterator[None]:
        transaction = self._begun()
        deliveries = [self._open[each] for each in covered]
        for delivery in deliveries:
            if not delivery.called:
                self._tell(delivery, Event.PROCESSED)
        last = deliveries[-1]
        told: list[tuple[AckScope, Delivery]]
        if multiple and (self._given_back or len(self._working) > 1):
            # A range would cover what was given back and may be with somebody else by now, and none of other sessions.
            told = [(AckScope.MESSAGE, each) for each in deliveries]
        else:
            told = [(AckScope.UP_TO if multiple else AckScope.MESSAGE, last)]
        try:
            with ExitStack() as stack:
                for scope, delivery in told:
                    call = self.recorder.acknowledge(
                        scope,
                        answered=False,
                        message=delivery.message,
                        queue=delivery.queue,
                        session=delivery.session,
                        transaction=transaction,
                    )
                    stack.enter_context(call)
                yield
        except BaseException as error:
            self._failure = error
            raise
        for each in covered:
            delivery = self._open.pop(each)
            if self._transacted:
                self._enlisted[each] = delivery

    @contextmanager
    def giving_back(self, tag: int, *, multiple: bool, requeue: bool, outcome: Outcome | None = None) -> Iterator[None]:
        """Round a rejection: ``failed`` before it, and ``dead_lettered`` after one that does not requeue.

        One that requeues all that the channel has is a ``recover``.  AMQP 1.0 alone has an ``outcome`` for it.
        """
        covered = self._covered(tag, multiple=multiple)
        whole = multiple and requeue and len(covered) == len(self._open)
        for each in covered:
            delivery = self._open[each]
            if not (whole and delivery.told) and delivery.told is not Event.FAILED:
                self._write(delivery, Event.FAILED, "requeue" if requeue else "rejected", outcome)
        if whole:
            self._recover()
        else:
            self._given_back = True
        yield
        for each in covered:
            delivery = self._open.pop(each)
            if not requeue:
                self.recorder.dead_lettered(delivery.message, queue=delivery.queue, session=delivery.session)

    def recovering(self) -> None:
        """Before all that was delivered and not acknowledged is given back."""
        self._recover()
        self._open.clear()

    def transacted(self) -> None:
        """From now on sends and acknowledgements take effect by a commit."""
        self._transacted = True

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Round a commit."""
        if not self._transaction:
            yield
            return
        name, self._transaction = self._transaction, ""
        with self.recorder.commit(name, session=self.session):
            yield
        self._enlisted.clear()

    @contextmanager
    def rolling_back(self) -> Iterator[None]:
        """Round a rollback, after which the channel has its deliveries as before, not acknowledged."""
        if not self._transaction:
            yield
            return
        name, self._transaction = self._transaction, ""
        with self.recorder.rollback(name, session=self.session):
            yield
        self._open = dict(sorted({**self._open, **self._enlisted}.items()))
        self._enlisted.clear()

    def cancelled(self, consumer: str) -> None:
        """A consumer of the channel was ended, and what it was handed stays with the channel."""
        for session, queue in sorted(self._handed.pop(consumer, ())):
            self.recorder.write(Event.CLOSE, session=session, queue=queue, consumer=consumer)

    def closing(self, error: BaseException | None = None) -> bool:
        """Before the channel is closed, or after it broke by ``error``; a second time, or unused, writes nothing.

        Returns whether it was written.
        """
        writes = self._used and not self._closed
        if writes:
            self._closed = True
            text = None if error is None else error_text(error)
            for session in self._sessions():
                transaction = self._transaction if session == self.session else ""
                self.recorder.closing(session, transaction=transaction or None, error=text)
        self._open.clear()
        return writes

    def _begun(self) -> str | None:
        """The open transaction, begun if there is none; ``None`` outside transactions."""
        if not self._transacted:
            return None
        if not self._transaction:
            self._transaction = f"{self.session}.t{next(self._numbers)}"
            self.recorder.begin(self._transaction, session=self.session)
        return self._transaction

    def _covered(self, tag: int, *, multiple: bool) -> list[int]:
        if not multiple:
            return [tag] if tag in self._open else []
        return sorted(each for each in self._open if not tag or each <= tag)

    def _tell(self, delivery: Delivery, event: Event, error: str | None = None) -> None:
        if delivery.told is None:
            self._write(delivery, event, error)

    def _write(self, delivery: Delivery, event: Event, error: str | None, outcome: Outcome | None = None) -> None:
        delivery.told = event
        self.recorder.write(
            event,
            message=delivery.message,
            queue=delivery.queue,
            session=delivery.session,
            transaction=self._transaction or None,
            error=error,
            outcome=outcome,
        )

    def _recover(self) -> None:
        for session in self._sessions():
            self.recorder.recover(session)

    def _sessions(self) -> list[str]:
        """That of the channel, and those beside it that were handed a message."""
        return list({self.session: None, **self._working})

    def _free(self) -> str:
        """The first session in which nothing is worked on."""
        for number in itertools.count(1):
            session = self.session if number == 1 else f"{self.session}+{number}"
            working = self._working.get(session)
            if working is None or working.told is not None:
                return session
        raise AssertionError
