"""A fault in the midst of a run: its cost, and its end.

The run is that of the engine (:mod:`ackfsm.engine`) in virtual time, by the same tables as all other runs: it has the
journal, second copies and repairs that the kernel has not.  It does some thousand messages a second.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from ackfsm.engine import (
    Broker,
    JMSException,
    Message,
    MessageRejected,
    Outcome,
    OutcomeUnknown,
    Sent,
    Session,
    TransactionRolledBackException,
)
from ackfsm.rates.timing import Spread, Workload, waits_of
from ackfsm.tables import Specification
from ackfsm.tables.names import FRAMES, Agent
from ackfsm.terms import Configuration, InputError
from ackfsm.text import quoted

_NANOSECONDS: Final = 10**9
_TOGETHER: Final = 100
"""A rate is back when so many messages in a row have it."""
_BACK: Final = 0.9
"""Of what it was; messages come in batches, of which a hundred are not always a whole number."""
_QUEUE: Final = "queue"
_BREATH: Final = 100
"""After so many messages it is told how far the run has come."""


@dataclasses.dataclass(frozen=True, slots=True)
class Recovery:
    """One side of the broker before and after the fault.

    Attributes:
        before: messages a second in the second half of the time before it.
        after: messages a second from when that was back (or from the repair), without the last tenth.
        back: seconds from the fault until the rate was back; ``None`` if it was not, as far as messages show.
    """

    before: float
    after: float
    back: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class FaultRun:
    """The effect of a fault on a run.

    Attributes:
        fault: which.
        at: seconds until it happened.
        recovery: seconds from then until it was repaired.
        messages: how many the application sent.
        seconds: virtual time that all of it took.
        publish: what the producer heard of, or, where it hears nothing, what it sent.
        deliver: what was processed.
        resent: messages that were in doubt and that the producer, or its library, sent again.
        in_doubt: messages of which the producer does not know the outcome.
        undone: messages of transactions that were rolled back.
        redelivered: deliveries with the mark of redelivery.
        duplicated: messages that were processed more than once.
        unmarked: deliveries of these that were not the first and had no mark.
        lost: messages that were confirmed (or of which no answer was awaited) and never processed.
        waiting: messages that are in the queue still.
    """

    fault: str
    at: float
    recovery: float
    messages: int
    seconds: float
    publish: Recovery
    deliver: Recovery
    resent: int
    in_doubt: int
    undone: int
    redelivered: int
    duplicated: int
    unmarked: int
    lost: int
    waiting: int


def simulate_fault(  # noqa: PLR0913 - by name
    specification: Specification,
    configuration: Configuration,
    work: Workload,
    messages: int,
    *,
    at: Fraction,
    recovery: Fraction,
    fault: str = "broker_crash",
    spreads: Mapping[str, Spread] | None = None,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> FaultRun:
    """Send so many ``messages`` to listeners; after ``at`` seconds ``fault`` happens, ``recovery`` later is its repair.

    ``fault`` is one of :data:`FAULTS`.  What a crash leaves of the journal, and times that are spread, are drawn by
    ``seed``.  ``progress`` is called with how many messages have been sent.

    Raises :class:`InputError` for another fault, for several producers, for a journal without group commit, where the
    run is over before the fault, and where it stands still.
    """
    if fault not in FAULTS:
        raise InputError(f"no fault is called {quoted(fault)} here; take one of {', '.join(FAULTS)}")
    if work.producers > 1 or not work.group_commit:
        raise InputError("a fault is simulated with one producer and a journal with group commit; choose so")
    run = _Run(specification, configuration, work, spreads or {}, seed)
    try:
        return run.run(messages, (fault, _nanoseconds(at), _nanoseconds(recovery)), progress or (lambda _: None))
    except JMSException as error:
        raise InputError(f"the run stands still: {error}") from None


def _nanoseconds(seconds: Fraction) -> int:
    return round(seconds * _NANOSECONDS)


class _Pace:
    """A serialised line each way, latency, a broker that reads one message after the other, and a disk."""

    def __init__(self, work: Workload, spreads: Mapping[str, Spread], seed: int) -> None:
        self.now = 0
        self._work, self._spreads = work, spreads
        self._chance = random.Random(seed)  # noqa: S311 - repeatable chance, not secrecy
        self._free = {Agent.PRODUCER_TO_BROKER: 0, Agent.BROKER_TO_CONSUMER: 0}
        self._broker_free = 0

    def immediate_agents(self) -> frozenset[str]:
        """Library and broker; frames travel."""
        return frozenset({Agent.LIBRARY, Agent.BROKER})

    def delay(self, agent: str) -> int | None:
        """The time that a frame, a sync or the timer takes from now on."""
        if agent not in FRAMES:
            return (
                self.drawn("sync_time", self._work.sync_time) if agent == Agent.DISK else _nanoseconds(self._work.timer)
            )
        arrives = self._sent(agent) + self.drawn("rtt", self._work.rtt / 2)
        if agent == Agent.PRODUCER_TO_BROKER:
            begins = max(arrives, self._broker_free)
            arrives = self._broker_free = begins + self.drawn("broker_time", self._work.broker_time)
        return arrives - self.now

    def _sent(self, agent: str) -> int:
        """When a frame is on the line in full; only the two ways of messages take bandwidth."""
        if agent not in self._free:
            return self.now
        way = self._work.transmission if agent == Agent.PRODUCER_TO_BROKER else self._work.transmission_back
        sent = self._free[Agent(agent)] = max(self.now, self._free[Agent(agent)]) + _nanoseconds(way)
        return sent

    @property
    def socket_free(self) -> int:
        """When the socket takes another message: one is ahead of the line."""
        return self._free[Agent.PRODUCER_TO_BROKER] - _nanoseconds(self._work.transmission)

    def loses(self, agent: str) -> bool:
        """No frame is lost by chance."""
        del agent
        return False

    def drawn(self, name: str, mean: Fraction) -> int:
        """A time, by its distribution."""
        match self._spreads.get(name, Spread.CONSTANT):
            case Spread.EXPONENTIAL:
                return round(self._chance.expovariate(1.0) * float(mean) * _NANOSECONDS)
            case Spread.UNIFORM:
                return round(self._chance.uniform(0.0, 2.0) * float(mean) * _NANOSECONDS)
            case _:
                return _nanoseconds(mean)


class _Run:
    """A producer, consumers with listeners, and what they see."""

    def __init__(
        self,
        specification: Specification,
        configuration: Configuration,
        work: Workload,
        spreads: Mapping[str, Spread],
        seed: int,
    ) -> None:
        self.work = work
        self.pace = _Pace(work, spreads, seed)
        settings: dict[str, Any] = {key: value for key, value in configuration.as_dict().items() if key != "profile"}
        settings |= {"consumption": "listener", "exclusive_consumer": False}
        self.broker = Broker(configuration.profile, pace=self.pace, seed=seed, specification=specification, **settings)
        sizes = {"commit": work.messages_per_commit, "call": work.messages_per_acknowledge}
        self.at_a_time = sizes.get(waits_of(specification, configuration).settled_by, 1)
        self.unsettled = dict[Session, Message]()
        self.resends = configuration.resend_in_doubt
        self.consumers = [self.broker.connect(f"consumer {number}") for number in range(work.consumers)]
        for each in self.consumers:
            self._consume(each.session())
        self.connection = self.broker.connect("producer")
        self.session = self.connection.session()
        self.producer = self.session.producer(_QUEUE, on_outcome=self._hear)
        self.together = list[Sent]()  # in the open transaction
        self.doubtful = list[Sent]()  # still to be sent again
        self.heard, self.processed = list[int](), list[int]()  # when
        self.known, self.in_doubt = dict[str, None](), dict[str, None]()
        self.times = collections.Counter[str]()
        self.resent = self.undone = self.redelivered = self.unmarked = 0

    # consumers

    def _consume(self, session: Session) -> None:
        taken = itertools.count(1)

        def listener(message: Message) -> None:
            self._until(self.pace.now + self.pace.drawn("processing_time", self.work.processing_time))
            self._count(message)
            self.unsettled[session] = message
            if next(taken) % self.at_a_time == 0:
                self._settle(session)

        session.consumer(_QUEUE, listener=listener)

    def _settle(self, session: Session) -> None:
        """Acknowledge, as a listener does after so many messages, and an application at its end."""
        message = self.unsettled.pop(session)
        with contextlib.suppress(JMSException):  # then it comes again
            if session.transacted:
                session.commit()
            else:
                message.acknowledge()

    def _count(self, message: Message) -> None:
        self.processed.append(self.pace.now)
        self.redelivered += message.redelivered
        self.unmarked += self.times[message.id] > 0 and not message.redelivered
        self.times[message.id] += 1

    # the producer

    def _send(self, number: int, *, last: bool) -> None:
        self._until(max(self.pace.socket_free, _nanoseconds(number * self.work.interval)))
        self._until(self.pace.now + self.pace.drawn("send_time", self.work.send_time))
        with contextlib.suppress(OutcomeUnknown, MessageRejected):  # it has been heard
            message = self.producer.send(message_id=f"m{number + 1}")
            if self.session.transacted:
                self.together.append(message)
        if self.session.transacted and ((number + 1) % self.work.messages_per_commit == 0 or last):
            self._commit(again=self.resends)
        self._send_again()

    def _hear(self, message: Sent) -> None:
        if message.outcome in {Outcome.CONFIRMED, Outcome.UNCONFIRMED}:
            self._know([message])
        elif message.outcome is Outcome.IN_DOUBT:
            self.in_doubt[message.id] = None
            self.doubtful.append(message)

    def _know(self, messages: Sequence[Sent]) -> None:
        """The producer knows that these are safe, or hears nothing of them."""
        for message in messages:
            self.heard.append(self.pace.now)
            self.known[message.id] = None
            self.in_doubt.pop(message.id, None)

    def _send_again(self) -> None:
        """Send the messages in doubt again, once, where the configuration says so."""
        while self.doubtful:
            message = self.doubtful.pop(0)
            if self.resends and message.copy is not None and message.copy.other_copy is None:
                self.resent += 1
                with contextlib.suppress(OutcomeUnknown, MessageRejected):
                    self.producer.resend(message)

    def _commit(self, *, again: bool) -> None:
        together, self.together = self.together, []
        try:
            self.session.commit()
        except TransactionRolledBackException:
            self.undone += len(together)
        except OutcomeUnknown:
            self.in_doubt |= dict.fromkeys(message.id for message in together)
            if again:
                self.together = [self.producer.resend(message) for message in together]
                self.resent += len(together)
                self._commit(again=False)
        else:
            self._know(together)

    # time

    def _until(self, time: int) -> None:
        """Let the virtual time come."""
        if time > self.pace.now:
            self.broker.loop.schedule(time, _pass)
            while self.pace.now < time:
                self.broker.loop.step()

    def run(self, messages: int, fault: tuple[str, int, int], progress: Callable[[int], None]) -> FaultRun:
        """Send all, with the fault on its way, and go on until nothing is left to happen."""
        what, at, recovery = fault
        self.broker.loop.schedule(at, lambda: FAULTS[what](self))
        self.broker.loop.schedule(at + recovery, self._repair)
        for number in range(messages):
            self._send(number, last=number + 1 == messages)
            if number % _BREATH == 0:
                progress(number)
        self._rest()
        while self.unsettled:
            self._settle(next(iter(self.unsettled)))
            self._rest()
        if not self.processed or max(self.heard[-1:] + self.processed[-1:]) <= at:
            over = max(self.processed, default=0) / _NANOSECONDS
            raise InputError(f"all {messages:,} messages were through after {over:.3g} s, before the fault")
        return self._result(messages, fault)

    def _rest(self) -> None:
        """Go on until nothing is left to happen."""
        while self.broker.loop.step():
            self._send_again()

    def _repair(self) -> None:
        if not self.broker.running:
            self.broker.restart()
        while self.broker.engine.reconnect():
            pass

    def _result(self, messages: int, fault: tuple[str, int, int]) -> FaultRun:
        what, at, recovery = fault
        waiting = {copy.message.id for copy in self.broker.engine.copies_in(self.broker.queue(_QUEUE))}
        return FaultRun(
            fault=what,
            at=at / _NANOSECONDS,
            recovery=recovery / _NANOSECONDS,
            messages=messages,
            seconds=max(self.heard[-1:] + self.processed[-1:]) / _NANOSECONDS,
            publish=_recovery(self.heard, at, at + recovery),
            deliver=_recovery(self.processed, at, at + recovery),
            resent=self.resent,
            in_doubt=len(self.in_doubt),
            undone=self.undone,
            redelivered=self.redelivered,
            duplicated=sum(count > 1 for count in self.times.values()),
            unmarked=self.unmarked,
            lost=len({*self.known} - {*self.times} - waiting),
            waiting=len(waiting),
        )


def _pass() -> None:
    """Nothing but time."""


FAULTS: Final[Mapping[str, Callable[[_Run], None]]] = MappingProxyType(
    {
        "broker_crash": lambda run: run.broker.crash(),
        "broker_kill": lambda run: run.broker.kill(),
        "producer_link_loss": lambda run: run.connection.lose(),
        "consumer_link_loss": lambda run: run.consumers[0].lose(),
    }
)
"""What may happen in the midst of a run."""


def _recovery(times: Sequence[int], at: int, repaired: int) -> Recovery:
    """From the times, in nanoseconds, of what passed one side."""
    half, after = at // 2, [time for time in times if time >= at]
    before = sum(half <= time < at for time in times) / (at - half) * _NANOSECONDS
    back = _back(after, before)
    since = repaired if back is None else back
    steady = [time for time in after if time >= since]
    steady = steady[: len(steady) * 9 // 10]  # the last ones may wait for a timer
    passed = steady[-1] - since if steady else 0
    rate = len(steady) / passed * _NANOSECONDS if passed else 0.0
    return Recovery(before, rate, None if back is None else (back - at) / _NANOSECONDS)


def _back(times: Sequence[int], before: float) -> int | None:
    """When so many messages in a row begin that have the rate from before, nearly."""
    longest = _TOGETHER / (before * _BACK) * _NANOSECONDS if before else 0
    return next((one for one, other in zip(times, times[_TOGETHER:], strict=False) if other - one <= longest), None)
