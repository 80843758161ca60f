"""The dead-letter queue: messages that reached the limit of delivery attempts, with the reason.

The copy there is stored and the one in the first queue removed by one transaction of the journal, so that a crash
finds the message in one of them (ART undelivered-messages; JMS 3.1, 3.5.11).
"""

from __future__ import annotations

from collections.abc import Mapping

from ackfsm.engine.core.codec import pack
from ackfsm.engine.core.instances import Copy, HeaderValue, Sent
from ackfsm.engine.core.journal import JournalAdapter
from ackfsm.engine.core.queues import Queues
from ackfsm.engine.journal import Kind, Live

_QUEUE, _DELIVERIES, _REASON = DEAD_LETTER_HEADERS = (
    "JMS_ackfsm_queue",
    "JMS_ackfsm_deliveries",
    "JMS_ackfsm_reason",
)
"""Headers of a dead letter besides its own: the queue where it was, how often it was dispatched, and why."""


class DeadLetters:
    """The dead letters of a broker, in the queue of that ``name``."""

    def __init__(self, name: str, queues: Queues, journal: JournalAdapter) -> None:
        self.name = name
        self._queues = queues
        self._adapter = journal
        self._pending: dict[int, tuple[int, Sent]] = {}
        journal.on_entry("move to the dead-letter queue", self.journal_move)

    def journal_move(self, copy: Copy) -> None:
        """Journal that ``copy`` goes to the dead-letter queue."""
        journal = self._adapter.journal
        transaction, key = self._queues.new_transaction(), self._queues.new_key()
        letter = self._letter(copy, self.name)
        journal.append(Kind.STORE, key, pack(letter), transaction)
        journal.append(Kind.REMOVE, copy.key, b"", transaction)
        journal.append(Kind.COMMIT, transaction)
        self._pending[copy.key] = key, letter

    def complete_move(self, copy: Copy) -> None:
        """The removal of ``copy`` is on stable storage: if it was moved, it is in the dead-letter queue now."""
        key, letter = self._pending.pop(copy.key, (0, None)) if self._pending else (0, None)
        if letter is not None:
            self._queues.restore(key, Live(pack(letter)), stored=True)

    def add(self, copy: Copy) -> None:
        """``copy`` has become a dead letter; one that was never stored is moved in memory alone."""
        if copy.key not in self._pending:
            letter = self._letter(copy, self.name)
            self._queues.restore(self._queues.new_key(), Live(pack(letter)), stored=False)

    def is_letter(self, copy: Copy) -> bool:
        """Whether ``copy`` is a dead letter, whose history has ended; an application may send to the queue too."""
        message = copy.message
        return message.queue.name == self.name and copy.binding.sender is None and _QUEUE in message.headers

    def pending(self) -> list[Sent]:
        """Return the messages that the next sync of the journal adds to the dead-letter queue."""
        return [letter for _, letter in self._pending.values()]

    def recovered_keys(self, live: Mapping[int, Live]) -> set[int]:
        """The keys of those whose move the journal has after the broker has stopped; the other moves are forgotten."""
        self._pending = {first: pending for first, pending in self._pending.items() if pending[0] in live}
        return {key for key, _ in self._pending.values()}

    def _letter(self, copy: Copy, name: str) -> Sent:
        message = copy.message
        why: dict[str, HeaderValue] = {
            _QUEUE: message.queue.name,
            _DELIVERIES: copy.dispatch_count,
            _REASON: "max_delivery_attempts",
        }
        headers = message.headers if self.is_letter(copy) else {**message.headers, **why}
        return message.moved_to(self._queues.queue(name), headers)
