"""The dead-letter queue: it keeps the messages that were delivered as often as allowed, with the reason.

The copy there is stored and the one in the first queue removed by one transaction of the journal, so that a crash
finds the message in one of them (ART undelivered-messages; JMS 3.1, 3.5.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ackfsm.engine.core.message import HeaderValue, Sent, pack
from ackfsm.journal import Kind, Live

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker
    from ackfsm.engine.core.instances import Copy

__all__ = ["DEAD_LETTER_HEADERS", "DeadLetters"]

_QUEUE, _DELIVERIES, _REASON = DEAD_LETTER_HEADERS = (
    "JMS_ackfsm_queue",
    "JMS_ackfsm_deliveries",
    "JMS_ackfsm_reason",
)
"""Headers of a dead letter besides its own: the queue where it was, how often it was sent to a consumer, and why."""


class DeadLetters:
    """The dead letters of a broker; with no ``name`` of a queue they are destroyed."""

    def __init__(self, broker: Broker, name: str | None) -> None:
        self.name = name
        self._broker = broker
        self._moving: dict[int, tuple[int, Sent]] = {}

    def move(self, copy: Copy) -> None:
        """Journal that ``copy`` goes to the dead-letter queue, or is destroyed."""
        journal = self._broker.storage.journal
        if self.name is None:
            journal.append(Kind.REMOVE, copy.key)
            return
        transaction, key, letter = self._broker.new_transaction(), self._broker.new_key(), self._letter(copy, self.name)
        journal.append(Kind.STORE, key, pack(letter), transaction)
        journal.append(Kind.REMOVE, copy.key, b"", transaction)
        journal.append(Kind.COMMIT, transaction)
        self._moving[copy.key] = key, letter

    def moved(self, copy: Copy) -> None:
        """The removal of ``copy`` is on stable storage: if it was moved, it is in the dead-letter queue now."""
        key, letter = self._moving.pop(copy.key, (0, None)) if self._moving else (0, None)
        if letter is not None:
            self._broker.take(key, Live(pack(letter)), stored=True)

    def told(self, copy: Copy) -> None:
        """``copy`` has become a dead letter; one that was never stored is moved in memory alone."""
        if self.name is not None and copy.key not in self._moving:
            self._broker.take(self._broker.new_key(), Live(pack(self._letter(copy, self.name))), stored=False)

    def is_letter(self, copy: Copy) -> bool:
        """Whether ``copy`` is a dead letter, whose history has ended; an application may send to the queue too."""
        message: Sent = copy.message
        return message.queue.name == self.name and copy.route.outgoing is None and _QUEUE in message.headers

    def moving(self) -> list[Sent]:
        """Those that will be in the dead-letter queue after the next sync of the journal."""
        return [letter for _, letter in self._moving.values()]

    def survived(self, live: Mapping[int, Live]) -> set[int]:
        """The keys of those whose move the journal has after the broker has stopped; the other moves are forgotten."""
        self._moving = {first: moving for first, moving in self._moving.items() if moving[0] in live}
        return {key for key, _ in self._moving.values()}

    def _letter(self, copy: Copy, name: str) -> Sent:
        message: Sent = copy.message
        why: dict[str, HeaderValue] = {
            _QUEUE: message.queue.name,
            _DELIVERIES: copy.attempts,
            _REASON: "max_delivery_attempts",
        }
        headers = message.headers if self.is_letter(copy) else {**message.headers, **why}
        return message.moved(self._broker.queue(name), headers)
