"""The queues of a broker and the copies in them: sent, sent again, restored from the journal."""

from __future__ import annotations

import dataclasses

from ackfsm.engine.core.codec import unpack
from ackfsm.engine.core.instances import Binding, Copy, Queue, SenderLink, Sent
from ackfsm.engine.core.links import Links
from ackfsm.engine.core.loop import RunLoop
from ackfsm.engine.core.model import Automaton
from ackfsm.engine.journal import REMEMBERED, Live, Recovery
from ackfsm.tables import Counter, EventRef, RowKind
from ackfsm.tables.names import DuplicateId, Entry, Event, Machine, Publication, PublishFrame, Record, Redelivery
from ackfsm.terms import Configuration, InputError


class Queues:
    """Makes queues, keys, transaction numbers and copies; knows the duplicate ids.

    ``by_name`` are the queues.
    """

    def __init__(self, configuration: Configuration, loop: RunLoop, links: Links) -> None:
        self.by_name = loop.dispatcher.queues
        self._configuration = configuration
        self._loop = loop
        self._links = links
        self._stepper = loop.stepper
        self._model = loop.stepper.model
        self._ready = self._model.overtaken_by(Event.DISPATCH_FIRST, "queue")
        self._serial = 0
        self._epoch = ""
        self._transaction = 0
        self._duplicate_ids: dict[bytes, None] = {}

    def queue(self, name: str, *, durable: bool | None = None, max_length: int | None = None) -> Queue:
        """The queue of that name, made if there is none.

        Raises :class:`ackfsm.terms.InputError` if it exists and is different.
        """
        found = self.by_name.get(name)
        if found is None:
            wanted = self._configuration.queue_durable if durable is None else durable
            scope = self._stepper.new_scope()
            found = self.by_name[name] = Queue(name, wanted, max_length, scope, scope.index(self._ready))
        elif (durable is not None and durable != found.durable) or (
            max_length is not None and max_length != found.max_length
        ):
            raise InputError(
                f"queue {name!r} exists with durable={found.durable}, max_length={found.max_length}; use it so"
            )
        return found

    def new_key(self) -> int:
        """The key of a new message's first copy."""
        self._serial += 1
        return Copy.key_of(self._serial, 1)

    def new_id(self, session: str) -> str:
        """An id for a message of ``session`` that is unique, earlier runs of this broker included."""
        return f"{session}-{self._epoch}{self._serial + 1}"

    def new_transaction(self) -> int:
        """The number of a transaction."""
        self._transaction += 1
        return self._transaction

    def first_copy(self, sender: SenderLink, message: Sent) -> Copy:
        """The first copy of ``message``, which ``sender`` is about to send."""
        copy = message.copy = Copy(self._links.binding_to(sender, message.queue), message, self.new_key())
        if message.duplicate_id is not None and self._is_duplicate(message.duplicate_id, copy.automaton):
            copy.state = copy.automaton.with_states(copy.state, **{Machine.DUPLICATE_ID: DuplicateId.KNOWN})
        return copy

    def _is_duplicate(self, duplicate_id: bytes, automaton: Automaton) -> bool:
        """Whether the id has come with another message, which is synced first, and the tables have the broker look."""
        if duplicate_id not in self._duplicate_ids:
            return False
        if EventRef(Event.ACCEPT) not in automaton.fsm(Machine.DUPLICATE_ID).moving:
            return False
        self._loop.flush_all()
        return duplicate_id in self._duplicate_ids

    def remember_id(self, copy: Copy) -> None:
        """The broker knows the duplicate id of ``copy``, if it has one; only the newest are kept."""
        if copy.message.duplicate_id is not None:
            self._duplicate_ids[copy.message.duplicate_id] = None
            if len(self._duplicate_ids) > REMEMBERED:
                del self._duplicate_ids[next(iter(self._duplicate_ids))]

    def forget_id(self, copy: Copy) -> None:
        """``copy`` is gone, and its duplicate id with it."""
        if copy.message.duplicate_id is not None:
            self._duplicate_ids.pop(copy.message.duplicate_id, None)

    def second_copy(self, first: Copy) -> Copy:
        """The copy that a resend makes."""
        base = first.binding.base
        sent = base.send_config or self._configuration
        binding = Binding(
            automaton=self._model.copy_automaton(sent, sent, 2),
            groups=base.groups,
            scopes=base.scopes,
            send_config=sent,
            receive_config=sent,
            number=2,
            sender=base.sender,
        )
        copy = Copy(self._stepper.adopt(binding), first.message, first.key + 1)
        copy.other_copy, first.other_copy = first, copy
        self._loop.resends = True
        return copy

    # What the journal had

    def load(self, recovery: Recovery) -> None:
        """Restore the messages of an opened journal, and go on with its numbers."""
        self._serial = Copy.serial_of(recovery.next_key)
        self._epoch = f"{recovery.epoch}." if recovery.epoch > 1 else ""  # what is not stored leaves no number behind
        self._transaction = recovery.next_key
        self._duplicate_ids = dict.fromkeys(recovery.remembered)
        for key, live in recovery.live.items():
            self.restore(key, live, stored=True).restored += 1

    def restore(self, key: int, live: Live, *, stored: bool) -> Queue:
        """Put a copy into its queue that no producer of this run of the broker has sent; which queue that is."""
        message = unpack(live.data, self.queue)
        config = dataclasses.replace(
            self._configuration, delivery_mode=message.delivery_mode, queue_durable=message.queue.durable
        )
        number = Copy.number_of(key)
        binding = Binding(
            automaton=self._model.copy_automaton(config, config, number),
            groups=self._stepper.by_role(self._stepper.broker.groups),
            scopes=(None, message.queue.scope, None, self._stepper.broker),
            send_config=config,
            receive_config=config,
            number=number,
        )
        copy = Copy(self._stepper.adopt(binding), message, key)
        copy.dispatch_count, copy.stored = live.attempts, stored
        copy.state = self._restored_state(copy, live)
        Queue.enter(copy)
        copy.update_indexes()
        self._loop.schedule_dispatch(message.queue)
        return message.queue

    @staticmethod
    def _restored_state(copy: Copy, live: Live) -> int:
        """The state of a copy whose producer is of an earlier run of the broker."""
        states: dict[str, str] = {
            Machine.PUBLICATION: Publication.RESOLVED,
            Machine.PUBLISH_FRAME: PublishFrame.GONE,
            Machine.ENTRY: Entry.READY,
        }
        if copy.stored:
            states[Machine.RECORD] = Record.DURABLE
        marks = copy.automaton.fsm(Machine.REDELIVERY)
        mark = Redelivery.MARKED if live.attempts else marks.initial  # a mark that counts nothing was taken back
        states[Machine.REDELIVERY] = marks.step(mark, EventRef(Event.RECOVER_READY)) or mark
        attempts = copy.automaton.fsm(Machine.DELIVERY_ATTEMPTS)
        if live.attempts:
            numbers = [state for state in attempts.states if not state.endswith(Counter.OPEN)]
            number = numbers[min(live.attempts, len(numbers) - 1)]
            if attempts.rows[number, EventRef(Event.BROKER_CRASH)].kind is RowKind.IGNORE:  # the broker keeps the count
                states[Machine.DELIVERY_ATTEMPTS] = number
        return copy.automaton.with_states(copy.state, **states)
