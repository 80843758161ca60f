"""Macro-steps that were recorded do what the tables do: the same run, with them and event by event."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ackfsm.engine import AtOnce, Broker, JMSException, Message, OutcomeUnknown, Shuffled, Timed
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.engine.core.stepper import Stepper
from ackfsm.engine.journal import JournalFailure, MemoryJournal
from model_tests.support.engine.brokers import received
from model_tests.support.tables import shipped

_MODES = ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "SESSION_TRANSACTED")
_ROUNDS = 60


class Journal(MemoryJournal):
    """Remembers what was appended; its sync number ``fails`` fails, and so do all that follow."""

    def __init__(self, fails: int) -> None:
        super().__init__()
        self.appended: list[tuple[int, int, bytes, int]] = []
        self.fails = fails

    def append(self, kind: Any, key: int, data: bytes = b"", transaction: int = 0) -> int:
        """Remember it."""
        self.appended.append((int(kind), key, data, transaction))
        return super().append(kind, key, data, transaction)

    def sync(self) -> int:
        """Sync, or fail."""
        self.fails -= 1
        if self.fails <= 0:
            raise JournalFailure("the disk is gone")
        return super().sync()


class Run:
    """Random calls on two queues by three sessions that stay open, without a history."""

    def __init__(self, seed: int, pace: Scheduler, *, observed: bool) -> None:
        chance = self.chance = random.Random(seed)
        mode = chance.choice(_MODES)
        self.journal = Journal(chance.randrange(1, 60))
        self.broker = Broker(
            specification=shipped(),
            journal=self.journal,
            pace=pace,
            ack_mode=mode,
            send_mode=chance.choice(("blocking", "asynchronous")),
            redelivery_mark_persisted=chance.random() < 0.5,
            prefetch=chance.choice((0, 1, 3)),
            publish_window=chance.choice((None, 1, 2)),
        )
        if observed:
            self.broker.observe(lambda *_: None)
        self.heard: list[tuple[object, ...]] = []
        self.transacted = mode == "SESSION_TRANSACTED"
        self.sessions = [self.broker.connect().session() for _ in range(3)]
        self.producers = [self.sessions[0].producer("p", on_outcome=self._told), self.sessions[1].producer("q")]
        listening = self.broker.connect().session()
        listening.consumer("p", listener=self._called)
        self.sessions.append(listening)
        self.consumers = [self.sessions[side].consumer("q") for side in (1, 2)]

    def _told(self, message: Any) -> None:
        self.heard.append((message.id, message.outcome))

    def _called(self, message: Message) -> None:
        self.heard.append((message.id, message.redelivered, message.delivery_count))
        if self.chance.random() < 0.05:
            raise RuntimeError("the application fails")

    def rounds(self) -> None:
        """Let the run happen."""
        for _ in range(_ROUNDS):
            for _ in range(self.chance.randrange(4)):
                mode = self.chance.choice((None, None, "NON_PERSISTENT"))
                self._try(self.chance.choice(self.producers).send, b"x", delivery_mode=mode)
            for _ in range(self.chance.randrange(4)):
                self._receive(self.chance.choice(self.consumers))
            if self.transacted:
                self._try(self.chance.choice(self.sessions).commit)
            if self.chance.random() < 0.05:
                self._trouble()

    def _receive(self, consumer: Any) -> None:
        message = self._try(consumer.receive)
        if message is not None:
            self.heard.append((message.id, message.redelivered, message.delivery_count))
            if self.chance.random() < 0.8:
                self._try(message.acknowledge)

    def _trouble(self) -> None:
        session = self.chance.choice(self.sessions)
        again = session.rollback if self.transacted else session.recover
        self._try(self.chance.choice((again, self.broker.crash, self.broker.kill)))

    def _try(self, call: Any, *values: object, **named: object) -> Any:
        try:
            return call(*values, **named)
        except JMSException as error:
            self.heard.append((type(error).__name__, str(error)))
            return None

    def stands(self) -> Iterator[tuple[object, ...]]:
        """Where every part and every copy that can still be found stands."""
        stepper = self.broker.stepper
        for session in stepper.links:
            yield (session.name, session.kind, *(_names(group) for group in session.groups.values()))
            for number, index in enumerate(session.indexes):
                if index is not None:
                    yield from sorted((number, int(key), _names(copy)) for key, copy in index.members.items())


def _names(part: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = part.automaton.local_states[part.state]
    return names


_PACES: Mapping[str, Callable[[], Scheduler]] = {
    "at once": AtOnce,
    "timed": lambda: Timed(seed=3),
    "shuffled": lambda: Shuffled(3),
}


@pytest.mark.parametrize("pace", _PACES)
@pytest.mark.parametrize("seed", range(10))
def test_a_run_with_macro_steps_is_the_run_without(seed: int, pace: str) -> None:
    kept, asked = (Run(seed, _PACES[pace](), observed=observed) for observed in (False, True))
    for run in (kept, asked):
        run.rounds()
    assert kept.heard == asked.heard
    assert kept.journal.appended == asked.journal.appended
    assert list(kept.stands()) == list(asked.stands())
    assert kept.broker.now == asked.broker.now


def test_what_was_done_once_is_not_asked_of_the_tables_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(specification=shipped(), send_mode="asynchronous")
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("q")

    def exchange() -> None:
        for _ in range(10):
            producer.send(b"x")
        while consumer.receive() is not None:
            pass

    for _ in range(3):
        exchange()
    monkeypatch.setattr(Stepper, "perform", _asked)
    exchange()


def _asked(*given: object) -> bool:
    raise AssertionError(given)


class Failing(MemoryJournal):
    """A journal whose sync fails when it is told to."""

    fails = False

    def sync(self) -> int:
        """Fail, or sync."""
        if self.fails:
            raise JournalFailure("the disk is gone")
        return super().sync()


@pytest.mark.parametrize("seed", range(4))
def test_a_mark_counts_as_stored_only_after_a_sync_that_did_not_fail(seed: int) -> None:
    journal = Failing()
    broker = Broker(specification=shipped(), journal=journal, ack_mode="CLIENT_ACKNOWLEDGE", seed=seed)
    session = broker.connect().session()
    session.producer("q").send(b"x")
    journal.fails = True
    consumer = session.consumer("q")
    assert not broker.running
    assert consumer.receive(None) is not None
    left = broker.journal.journal
    assert isinstance(left, MemoryJournal)
    again = Broker(specification=shipped(), journal=left.kill(), ack_mode="CLIENT_ACKNOWLEDGE")
    message = received(again.connect().session().consumer("q"))
    assert message.redelivered


class Interrupted(MemoryJournal):
    """A journal in the sync of which ^C strikes; it has failed then."""

    interrupt = failed = False

    def sync(self) -> int:
        """Sync, be interrupted, or say that it has failed."""
        if self.interrupt:
            self.interrupt, self.failed = False, True
            raise KeyboardInterrupt
        if self.failed:
            raise JournalFailure("the disk is gone")
        return super().sync()


@pytest.mark.parametrize("settings", [{}, {"send_mode": "asynchronous"}], ids=["blocking", "asynchronous"])
@pytest.mark.parametrize("before", [0, 3])
def test_what_waits_for_a_sync_that_is_interrupted_is_told_by_the_next(before: int, settings: dict[str, Any]) -> None:
    journal = Interrupted()
    broker = Broker(specification=shipped(), journal=journal, **settings)
    session = broker.connect().session()
    outcomes: list[str] = []
    producer = session.producer("q", on_outcome=lambda message: outcomes.append(message.outcome))
    for _ in range(before):
        producer.send(b"x")
        producer.wait()
    journal.interrupt = True
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - one of the two
        producer.send(b"x")
        producer.wait()
    producer.wait()
    assert outcomes == ["confirmed"] * before + ["in_doubt"]


def test_a_send_whose_very_first_sync_fails_is_no_example_for_the_next() -> None:
    journal = Failing()
    broker = Broker(specification=shipped(), journal=journal)
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("q")
    journal.fails = True
    with pytest.raises(OutcomeUnknown):
        producer.send(b"lost")
    for _ in range(3):
        message = producer.send(b"x")
        assert message.outcome == "confirmed"
        first = received(consumer, 0.0)
        assert first.id == message.id
    broker.drained()


def test_a_queue_that_is_never_empty_does_not_grow() -> None:
    broker = Broker(specification=shipped(), delivery_mode="NON_PERSISTENT")
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("q")
    for _ in range(3):
        producer.send()
    scopes = [broker.queue("q").scope, *broker.stepper.links]
    files = [index for scope in scopes for index in scope.indexes if index is not None]
    assert {index.first() for index in files} != {None}  # from now on they are in order
    for _ in range(500):
        producer.send()
        assert consumer.receive() is not None
    keys = [len(index.members) + len(index.ordered or ()) + len(index._out_of_order) for index in files]  # noqa: SLF001
    assert max(keys) < 100


def test_messages_go_to_those_who_have_room_in_turn() -> None:
    broker = Broker(specification=shipped(), delivery_mode="NON_PERSISTENT", prefetch=1)
    consumers = [broker.connect().session().consumer("q") for _ in range(3)]
    producer = broker.connect().session().producer("q")
    for _ in range(9):
        producer.send()
    turns = [consumer.receive(0) for _ in range(3) for consumer in consumers]
    assert [message.id.rpartition("-")[2] for message in turns if message is not None] == [str(n) for n in range(1, 10)]


@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_a_message_whose_mark_is_stored_first_arrives(seed: int) -> None:
    broker = Broker(specification=shipped(), pace=Shuffled(seed))
    session = broker.connect().session()
    consumer = session.consumer("q")
    session.producer("q").send(b"x")
    assert consumer.receive(None) is not None
