"""Create links, and bind copies to them: from sender to queue to receiver, and to the next receiver."""

from __future__ import annotations

import dataclasses

from ackfsm.engine.core.instances import (
    Binding,
    Copy,
    MachineGroup,
    Queue,
    ReceiverLink,
    SenderLink,
    SessionEnd,
)
from ackfsm.engine.core.model import Role
from ackfsm.engine.core.stepper import Stepper
from ackfsm.tables.names import Event
from ackfsm.terms import Configuration, DeliveryMode

_CONSUMER = 2
"""Where the scope of a receiver stands among those of a binding."""

_MOST_BINDINGS = 256
"""A receiver forgets its bindings when it has so many: most are of links that have come and gone."""

_DETACHED = 3
"""What is added to the key of a copy whose delivery stays with a session while the copy itself goes on."""


class Links:
    """Makes the links of one broker and the bindings of its copies."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._model = stepper.model
        machines = stepper.model.specification.machines
        stays = stepper.model.table.stays_with_session
        self._initial = {name: machines[name].initial for name in stays}
        self._broadcasts = len(stepper.model.broadcasts)
        self._dispatch_signal = stepper.events[Event.DISPATCH_FIRST].signal

    def sender(self, end: SessionEnd) -> SenderLink:
        """The sender of a session under a configuration.

        A session has one publish window, whatever it sends: its senders share it.
        """
        roles = (Role.PRODUCER, Role.WINDOW, Role.UNCONFIRMED)
        groups = self._groups(roles, end.configuration)
        for other in end.links.senders.values():
            window = other.groups[Role.WINDOW]
            if window.automaton.fsms == groups[Role.WINDOW].automaton.fsms:
                groups[Role.WINDOW] = window
        made = SenderLink(end, groups, self._broadcasts)
        self._stepper.links[made] = None
        end.links.senders[end.configuration] = made
        return made

    def receiver(self, end: SessionEnd, queue: Queue) -> ReceiverLink:
        """A receiver of a session from ``queue``."""
        groups = self._groups((Role.CONSUMER, Role.PREFETCH), end.configuration)
        made = ReceiverLink(end, groups, self._broadcasts, queue, self._dispatch_signal)
        self._stepper.links[made] = None
        end.links.receivers.append(made)
        return made

    def _groups(self, roles: tuple[Role, ...], configuration: Configuration) -> dict[Role, MachineGroup]:
        return {role: MachineGroup(self._model.group_automaton(role, configuration)) for role in roles}

    def binding_to(self, sender: SenderLink, queue: Queue) -> Binding:
        """The binding of what ``sender`` sends to ``queue``, up to a consumer."""
        found = sender.bindings.get(queue)
        if found is None:
            sent = dataclasses.replace(sender.configuration, queue_durable=queue.durable)
            made = Binding(
                automaton=self._model.copy_automaton(sent, sent, 1),
                groups=self._stepper.by_role({**sender.groups, **self._stepper.broker.groups}),
                scopes=(sender, queue.scope, None, self._stepper.broker),
                send_config=sent,
                receive_config=sent,
                sender=sender,
            )
            found = sender.bindings[queue] = self._stepper.adopt(made)
        return found

    def binding_from(self, receiver: ReceiverLink, before: Binding) -> Binding:
        """Return the binding of copies that are dispatched to ``receiver`` and had the binding ``before``."""
        found = receiver.bindings.get(before)
        if found is None:
            if len(receiver.bindings) >= _MOST_BINDINGS:
                receiver.bindings.clear()
            base = before.base
            made = self._new_binding(receiver, base) if base is before else self.binding_from(receiver, base)
            found = receiver.bindings[before] = made
        return found

    def _new_binding(self, receiver: ReceiverLink, base: Binding) -> Binding:
        sent = base.send_config or receiver.configuration
        config = dataclasses.replace(
            receiver.configuration, delivery_mode=sent.delivery_mode, queue_durable=sent.queue_durable
        )
        if self._model.is_direct(config) and not self._model.is_direct(sent):  # in memory until it is acknowledged
            config = dataclasses.replace(config, delivery_mode=DeliveryMode.PERSISTENT, queue_durable=False)
        made = Binding(
            automaton=self._model.copy_automaton(sent, config, base.number),
            groups=self._stepper.by_role({**dict(zip(Role, base.groups, strict=True)), **receiver.groups}),
            scopes=(*base.scopes[:_CONSUMER], receiver, *base.scopes[_CONSUMER + 1 :]),
            send_config=base.send_config,
            receive_config=config,
            number=base.number,
            sender=base.sender,
            receiver=receiver,
            before=base,
        )
        return self._stepper.adopt(made)

    def attach(self, copy: Copy, receiver: ReceiverLink) -> None:
        """From now on ``receiver`` takes part in the events of ``copy``."""
        if copy.binding.receiver is receiver:
            return
        if copy.binding.receiver is not None:
            self._detach_delivery(copy, copy.binding.receiver)
        binding = self.binding_from(receiver, copy.binding)
        copy.rebind(binding, self._initial_state(copy, binding))

    def _initial_state(self, copy: Copy, binding: Binding) -> int:
        """The state of ``copy`` for a session that has had nothing of it: its client-side machines begin again."""
        key = (copy.automaton, copy.state)
        if key not in binding.initial_states:
            state = binding.automaton.intern(copy.automaton.local_states[copy.state])
            binding.initial_states[key] = binding.automaton.with_states(state, **self._initial)
        return binding.initial_states[key]

    def _detach_delivery(self, copy: Copy, receiver: ReceiverLink) -> None:
        """What ``receiver`` still has of the copy stays with it: its application may be busy with the delivery."""
        states = {name: copy.state_of(name) for name in self._initial}
        before = copy.binding
        if before.receive_config is not None and copy.is_with_consumer():
            binding = Binding(
                automaton=self._model.detached_automaton(before.receive_config, copy.number),
                groups=self._stepper.by_role(receiver.groups),
                scopes=(None, None, *before.scopes[_CONSUMER:]),
                send_config=None,
                receive_config=before.receive_config,
                number=copy.number,
                receiver=receiver,
            )
            detached = Copy(self._stepper.adopt(binding), copy.message, _UniqueKey(copy.key | _DETACHED))
            detached.state = detached.automaton.with_states(detached.state, **states)
            detached.place = copy.place
            detached.delivery, detached.dispatch_count = copy.delivery, copy.dispatch_count
            if detached.delivery is not None:
                detached.delivery.copy = detached
            detached.update_indexes()
            self._stepper.moved[detached] = None  # a call of its application may be waiting
        copy.delivery = None

    def reset_client_side(self, copy: Copy) -> None:
        """The broker is back and ``copy`` was dispatched to no session: nothing of it is disconnected."""
        if copy.binding.receiver is None:
            copy.state = copy.automaton.with_states(copy.state, **self._initial)
            copy.update_indexes()


class _UniqueKey(int):
    """A key that sorts as its number and equals itself alone."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)
