"""What an application program runs on: a broker with its log, the model that follows it, and the books."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ackfsm.engine import (
    AtOnce,
    Broker,
    BrokerStopped,
    Consumer,
    History,
    JMSException,
    Producer,
    Sent,
    Session,
    Shuffled,
    Stuck,
    Timed,
)
from ackfsm.engine.core.instances import Copy, Link
from ackfsm.engine.core.model import BoundEvent
from ackfsm.engine.journal import Crashable
from ackfsm.terms import AttemptsExhausted, Configuration, DeliveryCountFrom
from model_tests.applications import programs
from model_tests.applications.books import Books
from model_tests.applications.programs import Program
from model_tests.applications.yardstick import Yardstick
from model_tests.support.engine.refinement import MESSAGES, Refinement
from model_tests.support.tables import shipped

__all__ = ["Molds", "Testbed"]

_STOPS = frozenset({"broker_crash", "broker_kill", "journal_failure"})
_MILD = frozenset({"listener_exception", "rejection"})
"""Of what is logged as a fault, what takes nothing from anybody."""

ATTEMPTS = 3
"""The model tells no more delivery attempts apart."""


class Molds:
    """Brokers after which others are made, so that the tables are read once; and what judges their logs."""

    def __init__(self, kind: type[Broker] = Broker, *, thorough: bool = False) -> None:
        self.kind = kind
        self.yardstick = Yardstick(shipped(), thorough=thorough)
        self._mold: Broker | None = None

    def broker(self, *args: Any, **settings: Any) -> Broker:
        """A broker of the kind that is tested."""
        if self._mold is None:
            self._mold = Broker(specification=shipped())
        return self.kind(*args, like=self._mold, **settings)


class _Log(History):
    """The engine's log, which counts faults in the books as they are logged."""

    def __init__(self, configuration: Configuration, books: Books) -> None:
        super().__init__(configuration)
        self._books = books

    def add(self, now: int, process: str, event: str, **fields: object) -> None:
        """One line."""
        if event == "fault" and fields.get("fault") not in _MILD:
            self._books.faults += 1
            self._books.stops += fields.get("fault") in _STOPS
        self._books.refusals += fields.get("fault") == "rejection"
        super().add(now, process, event, **fields)


class Testbed:
    """What a run of ``program`` has beside its clients."""

    __test__ = False  # for pytest

    def __init__(self, program: Program, molds: Molds, *, observed: bool) -> None:
        self.program, self.molds, self.observed = program, molds, observed
        self.books = Books(keeps_order=self._keeps_order())
        self.feats: set[str] = set()
        self.events: Counter[str] = Counter()
        self.noted: Exception | None = None
        """What was raised inside a listener and is no answer of the API."""
        self.sending: dict[Configuration, None] = {}
        self.consuming: dict[Configuration, None] = {}
        self.brokers = 1
        self.after_event: Callable[[str], None] = lambda _: None
        """Called with the name of each event that was observed."""
        self.first_configuration = self._configuration(*self.first_mode())
        self.history = _Log(self.first_configuration, self.books)
        self.broker = self._start(None)
        self.refinement: Refinement | None = None
        if observed and program.is_modelled and self.first_configuration.max_delivery_attempts <= ATTEMPTS:
            self.refinement = Refinement(self.broker, self.first_configuration)
        self._observe()

    @property
    def is_modelled(self) -> bool:
        """Whether the model still has what is done: one broker, one session on each side."""
        return self.program.is_modelled and self.brokers == 1

    def first_mode(self) -> tuple[str, str]:
        """Acknowledgement mode and consumption of the first worker."""
        worker = self.program.workers[0]
        return worker.ack_mode, worker.consumption

    def _keeps_order(self) -> bool:
        settings = programs.configured(self.program.profile, self.program.settings)
        assert settings is not None
        alone = len(self.program.workers) == 1
        marked = alone or settings.delivery_count_from is DeliveryCountFrom.DISPATCH
        return marked and settings.undelivered_marks_redelivered and settings.redelivery_mark_persisted

    def _configuration(self, mode: str, consumption: str) -> Configuration:
        found = programs.configured(
            self.program.profile, {**self.program.settings, "ack_mode": mode, "consumption": consumption}
        )
        assert found is not None, f"{self.program.profile} has no {mode} by {consumption} with these settings"
        return found

    def sending_mode(self, *, transacted: bool) -> tuple[str, str]:
        """A mode for a session that only sends."""
        if self.program.is_modelled:
            return self.first_mode()
        modes = programs.modes(self.program.profile, self.program.settings)
        return next(each for each in modes if (each[0] == "SESSION_TRANSACTED") == transacted)

    def _start(self, journal: Any) -> Broker:
        pace = {"AtOnce": AtOnce, "Timed": Timed, "Shuffled": Shuffled}
        return self.molds.broker(
            self.program.profile,
            journal=journal,
            pace=eval(self.program.pace, dict(pace)),  # noqa: S307 - one of the paces
            seed=self.program.seed,
            history=self.history,
            **self.program.settings,
        )

    def another_broker(self) -> None:
        """A new broker opens the journal that the one before has left."""
        before = self.broker
        journal = before.journal.journal
        assert isinstance(journal, Crashable)
        before.observe(None)
        self.bury()
        self.broker = self._start(journal.kill())
        self.broker.loop.scheduler.now = before.now
        number = max(self.broker.engine.queues._transaction, before.engine.queues._transaction)  # noqa: SLF001
        self.broker.engine.queues._transaction = number  # noqa: SLF001 - ids of a history are unique
        self.brokers += 1
        self.broker.log("nemesis", "recovered", fault="broker_kill")
        self._observe()

    def bury(self) -> None:
        """Write into the books what the broker has dead-lettered, or says that it has destroyed instead."""
        gone = {sent.id for sent in self.broker.dead_letters}
        if self.first_configuration.attempts_exhausted == AttemptsExhausted.DESTROY:
            gone |= {str(line["message"]) for line in self.history.lines if line["event"] == "dead_lettered"}
        for name in gone & self.books.items.keys():
            self.books.items[name].dead = True

    def may_send(self) -> bool:
        """Whether the model has room for another message."""
        return not self.program.is_modelled or len(self.books.items) < MESSAGES

    def heard_of(self, sent: Sent) -> None:
        """The outcome of a send."""
        self.books.items[sent.id].sent = sent

    def took(self, face: Producer | Consumer, configuration: Configuration) -> None:
        """A session was opened."""
        (self.consuming if isinstance(face, Consumer) else self.sending)[configuration] = None
        if self.refinement is not None:
            self.refinement.take(face)

    @contextlib.contextmanager
    def answers(self, session: Session) -> Iterator[None]:
        """Errors of the API are answers, but for a call that can never return while its process lives."""
        try:
            yield
        except (Stuck, BrokerStopped):
            if not session.closed:
                raise
        except JMSException as error:
            self.feats.add(type(error).__name__)

    def rest(self, steps: int) -> bool:
        """So many things happen by themselves; whether nothing is left that can."""
        return not all(self.broker.loop.step() for _ in range(steps))

    def _observe(self) -> None:
        self.broker.observe(self._heard if self.observed else None)

    def _heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        self.events[event.name] += 1
        if self.refinement is not None:
            self.refinement._heard(event, subject)  # noqa: SLF001 - it stands in for its observer
        self.after_event(event.name)
