"""Write the journal entries that the tables ask for, and recover from them after a crash."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from ackfsm.engine.core.codec import pack
from ackfsm.engine.core.errors import BrokerStopped, JMSException, JournalInconsistent
from ackfsm.engine.core.instances import Copy, Link
from ackfsm.engine.core.model import SCOPES, Automaton, BoundEvent
from ackfsm.engine.core.stepper import Effect, Stepper
from ackfsm.engine.journal import ATTEMPTS, Crashable, Journal, JournalFailure, Kind, Live
from ackfsm.tables import EventRef, RowKind
from ackfsm.tables.names import Agent, Event, Machine, Record, Redelivery

_STORE, _REMOVE, _MARK = Kind.STORE, Kind.REMOVE, Kind.MARK
_PRODUCER, _CONSUMER = SCOPES.index("producer"), SCOPES.index("consumer")

UNDONE = "undone"
"""A counter has taken back what it counted: stands for a state in :attr:`Stepper.state_effects`."""


class JournalAdapter:
    """The journal of a broker: one ``COMMIT`` makes all of a transaction count, on whatever links of its session.

    ``has_unsynced`` says that there is an entry which is to be synced and for which no call waits.
    """

    def __init__(self, stepper: Stepper, journal: Journal) -> None:
        self.stepper = stepper
        self.journal = journal
        self.open_error = ""
        self.syncs = 0
        self.has_unsynced = False
        self._commits: dict[int, None] = {}
        self._journals_marks: dict[Automaton, bool] = {}
        self._records = stepper.model.table.journal_records
        for machine, state, effect in (
            (Machine.DELIVERY_ATTEMPTS, UNDONE, self._attempt_undone),
            (Machine.REDELIVERY, Redelivery.CLEAR, self._unmarked),
            (Machine.REDELIVERY, Redelivery.COUNTED_OR_NOT, self._mark_withdrawn),
            (Machine.REDELIVERY, Redelivery.WITHDRAWN, self._mark_withdrawn),
        ):
            stepper.state_effects.setdefault((machine, state), []).append(effect)
        self.on_entry("store", self._store)
        self.on_entry("store in transaction", self._store_in_transaction)
        self.on_entry("remove", self._remove)
        self.on_entry("remove in transaction", self._remove_in_transaction)
        self.on_entry("commit", self._commit)

    def on_entry(self, entry: str, effect: Effect) -> None:
        """Perform ``effect`` where the tables ask the journal for ``entry``."""
        for row in self.stepper.model.table.journal_actions:
            if row.entry == entry:
                self.stepper.state_effects.setdefault((row.machine, row.state), []).append(effect)

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

    def _commit(self, link: Link) -> None:
        self._commits[link.transaction] = None

    def sync(self) -> bool:
        """Write and sync; ``False`` if the journal has failed."""
        self.has_unsynced = False
        try:
            if self._commits:
                self._write_commits()
            self.journal.sync()
        except JournalFailure:
            return False
        self.syncs += 1
        return True

    def requires_mark(self, copy: Copy, automaton: Automaton) -> bool:
        """Whether the broker stores the mark of ``copy`` before it is dispatched: if a crash ignores it."""
        if not copy.stored:
            return False
        if automaton not in self._journals_marks:
            row = automaton.fsm(Machine.REDELIVERY).rows[Redelivery.MARKED, EventRef(Event.BROKER_CRASH)]
            self._journals_marks[automaton] = row.kind is RowKind.IGNORE
        return self._journals_marks[automaton]

    def _write_commits(self) -> None:
        for transaction in self._commits:
            self.journal.append(Kind.COMMIT, transaction)
        self._commits.clear()

    def write_mark(self, copy: Copy) -> None:
        """Store that ``copy`` is dispatched once more, behind the commit by which it is stored itself."""
        if self._commits:
            self._write_commits()
        self.journal.append(_MARK, copy.key, ATTEMPTS.pack(copy.dispatch_count + 1))

    def _attempt_undone(self, copy: Copy) -> None:
        """``copy`` was given back unseen, so that its last dispatch is no attempt; it stays marked if others were.

        No call waits for that to be synced: what a crash takes of it counts once too often.
        """
        if copy.dispatch_count > 1:
            copy.dispatch_count -= 1
            self._store_attempts(copy)

    @staticmethod
    def _unmarked(copy: Copy) -> None:
        """No delivery of ``copy`` counts: the next one is the first."""
        copy.dispatch_count = 0

    def _mark_withdrawn(self, copy: Copy) -> None:
        """The mark that the journal has of ``copy`` does not count; no call waits for that."""
        self._unmarked(copy)
        self._store_attempts(copy)

    def _store_attempts(self, copy: Copy) -> None:
        if self.requires_mark(copy, copy.automaton):
            self.journal.append(_MARK, copy.key, ATTEMPTS.pack(copy.dispatch_count))
            self.has_unsynced = True

    # Crash and recovery

    def crash(self, chance: random.Random, *, power: bool) -> None:
        """The broker's process is gone, with ``power`` the machine too; the journal is opened again, if it can be."""
        self._commits.clear()
        self.has_unsynced = False
        journal = self.crashable()
        self._open(lambda: journal.crash(lambda _: chance.random() < 0.5) if power else journal.kill())  # noqa: PLR2004 - either

    def reopen(self) -> None:
        """Open the journal if that could not be done when the broker stopped.

        Raises :class:`BrokerStopped` if it still cannot be.
        """
        if self.open_error:
            self._open(self.crashable().kill)
        if self.open_error:
            raise BrokerStopped(f"{self.open_error}; call restart() again when it can be")

    def _open(self, journal: Callable[[], Journal]) -> None:
        try:
            self.journal = journal()
        except JournalFailure as error:
            self.open_error = f"its journal cannot be opened ({error})"
        else:
            self.open_error = ""

    def crashable(self) -> Crashable:
        """The journal, which can be crashed; raises :class:`JMSException` if it cannot."""
        if not isinstance(self.journal, Crashable):
            kind = type(self.journal).__name__
            raise JMSException(
                f"a {kind} cannot be crashed inside this process; "
                "give it the methods of ackfsm.engine.journal.Crashable"
            )
        return self.journal

    def recover(self, copies: list[Copy], dead_letters: Callable[[Mapping[int, Live]], set[int]]) -> None:
        """Read the journal: the tables say what may be found there.

        ``dead_letters`` are the keys of those whose move to the dead-letter queue it has.  Raises
        :class:`JournalInconsistent` if it has something that the tables exclude.
        """
        live = self.journal.recovery.live
        for link in self.stepper.links:
            self._resolve_commits(link, copies, live)
        for copy in copies:
            self._recover_copy(copy, live)
        known = {copy.key for copy in (*copies, *self.stepper.copies_of(self.stepper.broker))} | dead_letters(live)
        for key in live.keys() - known:
            raise JournalInconsistent(f"the journal has brought back copy {key}, whose removal was on stable storage")
        if not self.sync():
            self.open_error = "its journal failed when it was opened"
            raise BrokerStopped(f"{self.open_error}; call restart() again when there is a sound disk with room")

    def _resolve_commits(self, link: Link, copies: list[Copy], live: Mapping[int, Live]) -> None:
        """Decide for each unsynced commit whether the journal has it, from the messages that it committed."""
        for group in link.groups.values():
            enabled = {event.name: event for event in group.facts.enabled if event.agent == Agent.RECOVERY}
            for commit in self._records.values():
                if commit.commits is None or commit.vanishes not in enabled:
                    continue
                kept = self._records[commit.commits].keeps_message
                committed = [copy for copy in copies if self._is_committed(copy, commit.commits, link)]
                survived = commit.survives in enabled and any((copy.key in live) is kept for copy in committed)
                self.stepper.perform_link_event(enabled[commit.survives if survived else commit.vanishes], link)

    @staticmethod
    def _is_committed(copy: Copy, record: str, link: Link) -> bool:
        """Whether ``record`` of ``copy`` counts with the commit of ``link``."""
        return copy.scopes[SCOPES.index(link.kind)] is link and copy.state_of(record) == Record.WITH_COMMIT

    def _recover_copy(self, copy: Copy, live: Mapping[int, Live]) -> None:
        stored, performed = copy.key in live, set[BoundEvent]()
        while enabled := {event.name: event for event in copy.facts.enabled if event.agent == Agent.RECOVERY}:
            event = self._recovery_event(enabled, stored=stored)
            if event in performed:
                raise AssertionError(f"the tables leave the fate of copy {copy.key} open after {event.name}")
            performed.add(event)
            if not self.stepper.perform(event, copy):
                row = self.stepper.refusal()
                raise AssertionError(f"{event.name} of copy {copy.key} is refused: {row.because}, {row.place}")
            self._check_consistent(event, copy, stored=stored)
        copy.update_indexes()

    def _recovery_event(self, enabled: dict[str, BoundEvent], *, stored: bool) -> BoundEvent:
        """Which of the events that are possible has occurred."""
        for record in self._records.values():
            if record.survives in enabled and record.commits is None:
                return enabled[record.survives if stored is record.keeps_message else record.vanishes]
        return next(iter(enabled.values()))

    def _check_consistent(self, event: BoundEvent, copy: Copy, *, stored: bool) -> None:
        if event.name == Event.RECOVER_READY and not stored:
            raise JournalInconsistent(f"the journal has lost {copy.message.id}, which was on stable storage")
        if event.name == Event.RECOVER_REMOVED and stored:
            raise JournalInconsistent(
                f"the journal has brought back {copy.message.id}, whose removal was on stable storage"
            )
        if event.name == Event.RECOVER_LOST and stored:
            self.journal.append(Kind.REMOVE, copy.key)  # it got there, though no confirmation was sent


def _transaction(copy: Copy, scope: int) -> int:
    link = copy.scopes[scope]
    if not isinstance(link, Link):
        raise AssertionError("a transaction without a link")  # noqa: TRY004 - not the caller's doing
    return link.transaction
