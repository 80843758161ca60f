"""What the tables ask of the journal, and what it says after a crash."""

from __future__ import annotations

import random
from collections.abc import Callable

from ackfsm.engine.core.automaton import Automaton
from ackfsm.engine.core.dead_letters import DeadLetters
from ackfsm.engine.core.errors import BrokerStopped, JMSException, JournalInconsistent
from ackfsm.engine.core.instances import Copy
from ackfsm.engine.core.message import pack
from ackfsm.engine.core.model import Event
from ackfsm.engine.core.stepper import Core, Effect, Session
from ackfsm.journal import ATTEMPTS, Crashable, Journal, JournalFailure, Kind, Live
from ackfsm.tables import EventRef, Move

__all__ = ["Storage"]

_STORE, _REMOVE, _MARK = Kind.STORE, Kind.REMOVE, Kind.MARK
_PRODUCER = 0
_CONSUMER = 2


class Storage:
    """The journal of a broker: one ``COMMIT`` makes all of a transaction hold, whatever the sides of its session.

    ``owes`` says that there is an entry which is to be synced and for which nobody waits.
    """

    def __init__(self, core: Core, journal: Journal, letters: DeadLetters) -> None:
        self.core = core
        self.journal = journal
        self.letters = letters
        self.unopened = ""
        self.syncs = 0
        self.owes = False
        self._commits: dict[int, None] = {}
        self._marking: dict[object, bool] = {}
        asked: dict[str, Effect] = {
            "store": self._store,
            "store in transaction": self._store_in_transaction,
            "remove": self._remove,
            "remove in transaction": self._remove_in_transaction,
            "commit": self._commit,
            "move to the dead-letter queue": letters.move,
        }
        core.arrivals.setdefault(("delivery_attempts", "undone"), []).append(self._unmark)
        for row in core.wiring.table.journals:
            core.arrivals.setdefault((row.machine, row.state), []).append(asked[row.entry])

    def _store(self, copy: Copy, transaction: int = 0) -> None:
        copy.stored = True
        self.journal.append(_STORE, copy.key, pack(copy.message), transaction)
        if copy.message.duplicate_id is not None:
            self.journal.append(Kind.REMEMBER, copy.key, copy.message.duplicate_id, transaction)

    def _store_in_transaction(self, copy: Copy) -> None:
        self._store(copy, _transaction(copy, _PRODUCER))

    def _remove(self, copy: Copy) -> None:
        self.journal.append(_REMOVE, copy.key)

    def _remove_in_transaction(self, copy: Copy) -> None:
        self.journal.append(Kind.REMOVE, copy.key, b"", _transaction(copy, _CONSUMER))

    def _commit(self, session: Session) -> None:
        self._commits[session.transaction] = None

    def sync(self) -> bool:
        """Write and sync; ``False`` if the journal has failed."""
        self.owes = False
        try:
            if self._commits:
                self._write_commits()
            self.journal.sync()
        except JournalFailure:
            return False
        self.syncs += 1
        return True

    def marks(self, copy: Copy, automaton: Automaton) -> bool:
        """Whether the broker stores that it sends ``copy``, before it goes on under ``automaton`` (``redelivery``)."""
        if not copy.stored:
            return False
        if automaton not in self._marking:
            fsm = automaton.machine("redelivery")
            self._marking[automaton] = fsm.rows["marked", EventRef("broker_crash")].move is Move.IGNORE
        return self._marking[automaton]

    def _write_commits(self) -> None:
        for transaction in self._commits:
            self.journal.append(Kind.COMMIT, transaction)
        self._commits.clear()

    def mark(self, copy: Copy) -> None:
        """Store that ``copy`` is sent for the next time, behind the commit by which it is stored itself."""
        if self._commits:
            self._write_commits()
        self.journal.append(_MARK, copy.key, ATTEMPTS.pack(copy.attempts + 1))

    def _unmark(self, copy: Copy) -> None:
        """What ``copy`` was sent for nobody saw, and so it does not count; it stays marked.

        Nobody waits for that to be on the disk: what a crash takes of it counts once too often.
        """
        copy.give_back_unseen()
        if self.marks(copy, copy.automaton):
            self.journal.append(_MARK, copy.key, ATTEMPTS.pack(copy.attempts))
            self.owes = True

    # Crash and recovery

    def crash(self, chance: random.Random, *, power: bool) -> None:
        """The broker's process is gone, with ``power`` the machine too; the journal is opened again, if it can be."""
        self._commits.clear()
        self.owes = False
        journal = self.crashable()
        self._open(lambda: journal.crash(lambda _: chance.random() < 0.5) if power else journal.kill())  # noqa: PLR2004 - either

    def reopen(self) -> None:
        """Open the journal if that could not be done when the broker stopped.

        Raises :class:`BrokerStopped` if it still cannot be.
        """
        if self.unopened:
            self._open(self.crashable().kill)
        if self.unopened:
            raise BrokerStopped(f"{self.unopened}; call restart() again when it can be")

    def _open(self, journal: Callable[[], Journal]) -> None:
        try:
            self.journal = journal()
        except JournalFailure as error:
            self.unopened = f"its journal cannot be opened ({error})"
        else:
            self.unopened = ""

    def crashable(self) -> Crashable:
        """The journal, which can be crashed; raises :class:`JMSException` if it cannot."""
        if not isinstance(self.journal, Crashable):
            kind = type(self.journal).__name__
            raise JMSException(
                f"a {kind} cannot be crashed inside this process; give it the methods of ackfsm.journal.Crashable"
            )
        return self.journal

    def recover(self, copies: list[Copy]) -> None:
        """Read the journal: the tables say what may be found, the journal what is.

        Raises :class:`JournalInconsistent` if it is something that the tables exclude.
        """
        live = self.journal.recovery.live
        for session in self.core.sessions:
            self._commits_found(session, copies, live)
        for copy in copies:
            self._found(copy, live)
        known = {copy.key for copy in (*copies, *self.core.copies_of(self.core.broker))} | self.letters.survived(live)
        for key in live.keys() - known:
            raise JournalInconsistent(f"the journal has brought back copy {key}, whose removal was on stable storage")
        if not self.sync():
            self.unopened = "its journal failed when it was opened"
            raise BrokerStopped(f"{self.unopened}; call restart() again when there is a sound disk with room")

    def _commits_found(self, session: Session, copies: list[Copy], live: dict[int, Live]) -> None:
        """Whether a commit that was not synced is in the journal: what it committed tells."""
        for part in session.parts.values():
            todo = {event.name: event for event in part.told.todo if event.agent == "recovery"}
            for kind, side, machine, there in (
                ("commit", _PRODUCER, "record", True),
                ("consumer_commit", _CONSUMER, "ack_record", False),
            ):
                if f"{kind}_vanishes" in todo:
                    mine = [c for c in copies if c.scopes[side] is session and c.of(machine) == "with_commit"]
                    survived = f"{kind}_survives" in todo and any((c.key in live) is there for c in mine)
                    self.core.happen(todo[f"{kind}_survives" if survived else f"{kind}_vanishes"], session)

    def _found(self, copy: Copy, live: dict[int, Live]) -> None:
        stored, passed = copy.key in live, set[Event]()
        while todo := {event.name: event for event in copy.told.todo if event.agent == "recovery"}:
            event = self._fate(todo, stored=stored)
            if event in passed:
                raise AssertionError(f"the tables leave the fate of copy {copy.key} open after {event.name}")
            passed.add(event)
            if not self.core.perform(event, copy):
                row = self.core.refusal()
                raise AssertionError(f"{event.name} of copy {copy.key} is refused: {row.because}, {row.place}")
            self._consistent(event, copy, stored=stored)
        copy.file()

    @staticmethod
    def _fate(todo: dict[str, Event], *, stored: bool) -> Event:
        """Which of the events that may be is the one that was."""
        if "record_survives" in todo:
            return todo["record_survives" if stored else "record_vanishes"]
        if "ack_record_survives" in todo:
            return todo["ack_record_vanishes" if stored else "ack_record_survives"]
        return next(iter(todo.values()))

    def _consistent(self, event: Event, copy: Copy, *, stored: bool) -> None:
        if event.name == "recover_ready" and not stored:
            raise JournalInconsistent(f"the journal has lost {copy.message.id}, which was on stable storage")
        if event.name == "recover_removed" and stored:
            raise JournalInconsistent(
                f"the journal has brought back {copy.message.id}, whose removal was on stable storage"
            )
        if event.name == "recover_lost" and stored:
            self.journal.append(Kind.REMOVE, copy.key)  # it got there although nobody was told so


def _transaction(copy: Copy, side: int) -> int:
    session = copy.scopes[side]
    if not isinstance(session, Session):
        raise AssertionError("a transaction without a session")  # noqa: TRY004 - not the caller's doing
    return session.transaction
