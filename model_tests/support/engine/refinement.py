"""Whether the model can perform what an engine has done: the same events, one by one, and the same states.

The engine and the model read the same tables, but all that makes a system of them (who takes part, in which
order, what is looked up where) is written twice: in ``ackfsm.checking.network`` plainly, in ``ackfsm.engine`` for
speed.

It is asked of runs with one queue and one session on each side at a time.  What the model cannot say:

* Its messages exist from the start, so its ``commit_called`` waits for those that the run has not sent yet;
  such a refusal does not count.
* It has one session on each side for ever.  Where the application opens another, the model restarts the process or
  repairs the connection, and what belonged to the earlier session is not compared any more.
* An engine forgets a copy of which nothing can come to light.  Such a copy has to be one in the model too, and the
  model may go on with it by itself where its journal is read.
* Of more than two messages it does not know in which order they were handed over, where one has come again; a run is
  followed up to the first acknowledgement after that.
* A counter whose bound the run cannot reach has one state in the model; it is not compared, and neither is
  what gives back a place that the model does not count (``transaction_credit``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from ackfsm.checking.network import Bounds, Index, Network, NetworkEvent, compose
from ackfsm.engine import Broker, Consumer, Producer
from ackfsm.engine.core.instances import Copy, Link, MachineGroup
from ackfsm.engine.core.model import BoundEvent
from ackfsm.tables import IndexKind, RowKind
from ackfsm.terms import Configuration, Fault
from model_tests.support.tables import shipped

MESSAGES = 6
"""How many messages a run may send."""

_FATES = ("record", "removal", "recover")
_SIDES = {"producer": 0, "consumer": 2}
DEAD_LETTERS = "DLQ"
_PERFORMED_AS = {"recover": ("recover", "library_recover")}
"""What an engine performs, and what it may be in the model: a library recovers after an exception in a listener."""

_REOPEN = {
    "producer": ("producer_restart", "producer_link_up"),
    "consumer": ("consumer_restart", "consumer_link_up", "consumer_rollback"),
}


@functools.cache
def network_of(configuration: Configuration) -> tuple[Network, dict[tuple[str, Index], NetworkEvent]]:
    """The model of the whole configuration under all faults, and its events by name and index."""
    bounds = Bounds(
        messages=MESSAGES,
        faults=frozenset(Fault),
        max_faults=None,
        actions=frozenset({"recover", "rollback", "consumer_close"}),
    )
    network = compose(shipped(), configuration, bounds, ())
    return network, {(event.name, event.index): event for event in network.events}


class Refinement:
    """Observes ``broker`` and lets the model of ``configuration`` do the same; :meth:`check` says how that went."""

    def __init__(self, broker: Broker, configuration: Configuration | None = None) -> None:
        """``configuration`` is that of the sessions, by default that of the broker."""
        self.network, self._events = network_of(configuration or broker.configuration)
        self.state = self.network.initial
        self.performed: list[str] = []
        self.refused: str | None = None
        self.followed = True
        self._core = broker.stepper
        self._numbers: dict[int, int] = {}
        self._copies: dict[tuple[int, ...], Copy] = {}
        self._sides: dict[str, Link] = {}
        self._seen = {broker.stepper.broker}
        self._at = {(i.fsm.name, i.index): n for n, i in enumerate(self.network.instances)}
        self._counts_prefetch = len(self.network.instances[self._at["prefetch", ()]].fsm.states) > 1
        broker.observe(self._heard)

    def take(self, face: Producer | Consumer) -> None:
        """From now on the session of ``face`` is the one of its side."""
        self._take(face.receiver if isinstance(face, Consumer) else face._sender)  # noqa: SLF001 - read only

    def _take(self, side: Link) -> None:
        if side not in self._seen:
            self._seen.add(side)
            self._sides[side.kind] = side
            for name in _REOPEN[side.kind]:
                self._try(name, ())

    def check(self) -> None:
        """Raise :class:`AssertionError` if the model could not follow, or stands elsewhere."""
        assert self.refused is None, f"{self.refused}\nafter {' '.join(self.performed)}"
        if not self.followed:
            return
        different = list(self._different())
        assert not different, f"{different}\nafter {' '.join(self.performed)}"

    # Steps

    def _is_out_of_order(self, event: BoundEvent, subject: Copy | Link) -> bool:
        """Whether it depends on an order of delivery that the model does not know."""
        if not isinstance(subject, Copy) or event.name not in self._core.model.table.in_order_of_delivery:
            return False
        up_to, receiver = shipped().conditions["acks_up_to"], subject.binding.receiver
        environment = None if receiver is None else shipped().environment(receiver.configuration)
        return environment is not None and up_to.holds(environment) and subject.binding.is_out_of_order()

    def _heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        self.followed = self.followed and not self._is_out_of_order(event, subject)
        if not self.followed or (isinstance(subject, Copy) and subject.message.queue.name == DEAD_LETTERS):
            return  # in the model a dead letter is over
        index = self._index(event, subject)
        for side in (subject,) if isinstance(subject, Link) else subject.scopes:
            if isinstance(side, Link):
                self._take(side)
        if self.refused is not None or (isinstance(subject, Link) and not self._concerns(subject)):
            return
        if event.name == "missed" and self._sides["consumer"] not in self._core.links:
            self._try("consumer_close", ())  # an engine's close() is no event
        if event.name == "credit_returned" and not self._counts_prefetch:
            return
        names = _PERFORMED_AS.get(event.name, (event.name,))
        if not any(self._step(name, index) for name in names):
            self._read_journal_of_the_forgotten()
            if not any(self._step(name, index) for name in names):
                self.refused = f"{_label(event.name, index)}: {self._reason(event.name, index)}"
        self.performed.append(_label(event.name, index))
        if event.name == "consumer_rollback":
            self._try("consumer_recover", ())  # an engine rolls back where nothing is left to recover

    def _index(self, event: BoundEvent, subject: Copy | Link) -> Index:
        if isinstance(subject, Link):
            return ()
        message = self._numbers.setdefault(Copy.serial_of(subject.key), len(self._numbers) + 1)
        assert message <= MESSAGES, f"the run has more than {MESSAGES} messages"
        for copy in (subject, subject.other_copy):
            if copy is not None:
                self._copies[message, copy.number] = copy
        return (message,) if event.per is IndexKind.MESSAGE else (message, subject.number)

    def _concerns(self, session: Link) -> bool:
        """Whether it is the broker, or the session of a side as it is now: only that one is in the model."""
        return session.kind == "broker" or self._sides.get(session.kind, session) is session

    def _step(self, name: str, index: Index) -> bool:
        event = self._events.get((name, index))
        if event is None or any(not self._is_unsent(instance) for instance, _ in self._refusals(event)):
            return False
        after = list(self.state)
        for part in event.participants:
            fsm = self.network.instances[part.instance].fsm
            after[part.instance] = fsm.rows[self.state[part.instance], part.event].target
        self.state = tuple(after)
        return True

    def _refusals(self, event: NetworkEvent) -> Iterator[tuple[int, str]]:
        for part in event.participants:
            row = self.network.instances[part.instance].fsm.rows[self.state[part.instance], part.event]
            if row.kind is RowKind.REFUSE:
                yield part.instance, f"{self.network.instances[part.instance].label}, {row.state}: {row.because}"

    def _is_unsent(self, instance: int) -> bool:
        """Whether who refuses is a message that the run has not sent (yet), and so is none of the run's."""
        at = self.network.instances[instance]
        return at.fsm.name == "publication" and at.index[0] > len(self._numbers)

    def _reason(self, name: str, index: Index) -> str:
        event = self._events.get((name, index))
        return "there is no such event" if event is None else "; ".join(text for _, text in self._refusals(event))

    def _try(self, name: str, index: Index) -> None:
        if self._step(name, index):
            self.performed.append(f"[{_label(name, index)}]")

    def _read_journal_of_the_forgotten(self) -> None:
        """Choose for each copy that the engine has forgotten what the journal has of it: it does not matter."""
        names = [
            name
            for name in self._core.events
            if name.startswith(_FATES) and self._core.events[name].per is IndexKind.COPY
        ]
        for index, copy in self._copies.items():
            if copy.is_finished:
                for name in (*names, *names):
                    self._try(name, index)

    # States

    def _different(self) -> Iterator[str]:
        for side in self._sides.values():
            for group in side.groups.values():
                yield from self._compare(group, ())
        for group in self._core.broker.groups.values():
            yield from self._compare(group, ())
        for index, copy in self._copies.items():
            yield from self._spent(index, copy) if copy.is_finished else self._compare(copy, index)

    def _compare(self, group: MachineGroup, index: Index) -> Iterator[str]:
        for fsm in group.automaton.fsms:
            number = self._at.get((fsm.name, index), self._at.get((fsm.name, index[:1])))
            if number is None or not self._is_compared(group, fsm.name):
                continue
            model = self.network.instances[number]
            mine, its = group.state_of(fsm.name), self.state[number]
            if set(model.fsm.states) == set(fsm.states) and mine != its:
                yield f"{model.label} is {mine} in the engine and {its} in the model"

    def _is_compared(self, group: MachineGroup, machine: str) -> bool:
        if machine == "transaction_credit" and not self._counts_prefetch:
            return False
        scope = self._core.model.table.index_scope.get(machine)
        if not isinstance(group, Copy) or scope not in _SIDES:
            return True
        session = group.scopes[_SIDES[scope]]
        return session is not None and session is self._sides.get(scope)

    def _spent(self, index: Index, copy: Copy) -> Iterator[str]:
        """Whether something could still come to light in the model of what the engine takes to be over."""
        names = {fsm.name: self._state_of(fsm.name, index) for fsm in copy.automaton.fsms}
        known = {name: state for name, state in names.items() if state is not None}
        if not copy.automaton.is_finished(copy.automaton.with_states(copy.state, **known)):
            yield f"{_label('copy', index)} is over in the engine, and in the model {known}"

    def _state_of(self, machine: str, index: Index) -> str | None:
        number = self._at.get((machine, index), self._at.get((machine, index[:1])))
        return None if number is None else self.state[number]


def _label(name: str, index: Iterable[int]) -> str:
    numbers = tuple(index)
    if not numbers:
        return name
    return f"{name}(m{numbers[0]}{f'#{numbers[1]}' if len(numbers) > 1 and numbers[1] > 1 else ''})"
