"""Perform events: the tables of all participants are evaluated, and all of them move or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ackfsm.engine.core.automaton import REFUSED, UNKNOWN
from ackfsm.engine.core.instances import Binding, Copy, Link, MachineGroup, NullGroup, ReceiverLink, Scope
from ackfsm.engine.core.model import BoundEvent, Broadcast, EngineModel, IndexRelation, Role
from ackfsm.tables import Counter, IndexKind, Row

Effect: TypeAlias = Callable[[Any], None]
"""A side effect of an event, for a copy or a link: a journal entry, a callback of the application."""

Observer: TypeAlias = Callable[[BoundEvent, "Copy | Link"], None]
"""Called after each event; a fault may be injected here."""


class StepRecorder:
    """Records a macro-step: its broadcasts and effects, and whether no other copy took part (``is_isolated``).

    ``before_sync`` is what had happened before a sync within it: the states of the copy and of the groups, the effects,
    and how many steps were performed.
    """

    __slots__ = ("before_sync", "broadcasts", "effects", "is_isolated")

    def __init__(self) -> None:
        self.is_isolated = True
        self.broadcasts: dict[Broadcast, None] = {}
        self.effects: list[Effect] = []
        self.before_sync: tuple[int, tuple[int, ...], tuple[Effect, ...], int] | None = None

    def begin_sync(self, state: int, groups: tuple[int, ...], done: int) -> None:
        """A sync begins; the effects from now on follow it."""
        self.before_sync = state, groups, tuple(self.effects), done
        self.effects = []


class Stepper:
    """The links of one broker, and the synchronous steps of their machine groups and of the copies.

    ``event_effects`` are performed after an event of that name, ``state_effects`` when a machine comes to a state, or a
    counter takes back what it counted (``undone``).  ``moved`` collects the copies that were moved by events of others.
    After ``False``, :meth:`refusal` is the row that refused.
    """

    def __init__(self, model: EngineModel) -> None:
        self.model = model
        self.events = model.events
        self.null_group = NullGroup(len(model.events) * len(IndexRelation))
        broker = MachineGroup(model.group_automaton(Role.BROKER, model.specification.configure()))
        self.broker = Link("broker", "broker", {Role.BROKER: broker}, len(model.broadcasts))
        self.links: dict[Link, None] = {self.broker: None}
        self.event_effects: dict[str, Effect] = {}
        self.state_effects: dict[tuple[str, str], list[Effect]] = {}
        self.observer: Observer | None = None
        self.moved: dict[Copy, None] = {}
        self.recorder: StepRecorder | None = None
        self._refused: tuple[MachineGroup, int] | None = None
        self._recorded_steps: dict[tuple[object, ...], dict[Any, Any]] = {}
        self._state_effects_of: dict[tuple[int, int, int], tuple[Effect, ...]] = {}

    def by_role(self, groups: Mapping[Role, MachineGroup]) -> tuple[MachineGroup, ...]:
        """``groups`` in the order of their roles; a null group stands for those that are not given."""
        return tuple(groups.get(role, self.null_group) for role in Role)

    def adopt(self, binding: Binding) -> Binding:
        """``binding``, which shares the recorded macro-steps of its kind from now on."""
        kind = (
            binding.automaton,
            binding.before and binding.before.automaton,
            *(None if group is self.null_group else group.automaton for group in binding.groups),
            *(scope is None for scope in binding.scopes),
        )
        binding.recorded_steps = self._recorded_steps.setdefault(kind, {})
        return binding

    def new_scope(self) -> Scope:
        """A scope without machine groups: that of a queue."""
        return Scope(len(self.model.broadcasts))

    def refusal(self) -> Row:
        """The row that refused last."""
        if self._refused is None:
            raise AssertionError("nothing was refused")
        group, signal = self._refused
        row = group.automaton.refusal(signal, group.state)
        if row is None:
            raise AssertionError("what was refused is not refused any more")
        return row

    def perform(self, event: BoundEvent, copy: Copy) -> bool:
        """One event of a copy; ``False`` if a participant refuses it."""
        moves = self._moves(event, copy)
        if moves is None:
            return False
        effects = [(group, effect) for group, target in moves for effect in self._effects_of(group, target)]
        for group, target in moves:
            group.state = target
        others = [group for group, _ in moves if isinstance(group, Copy) and group is not copy]
        effect_of_event = self.event_effects.get(event.name)
        recorder = self.recorder
        if recorder is not None:
            recorder.broadcasts.update(
                (broadcast, None) for broadcast, _ in event.broadcasts if copy.scopes[broadcast.scope] is not None
            )
            recorder.effects += (effect for _, effect in effects)
            recorder.effects += [effect_of_event] if effect_of_event is not None else []
            recorder.is_isolated = recorder.is_isolated and not others
        for group, effect in effects:
            effect(group if isinstance(group, Copy) else copy)
        if effect_of_event is not None:
            effect_of_event(copy)
        for other in others:
            other.update_indexes()
            self.moved[other] = None
        if self.observer is not None:
            copy.update_indexes()
            self.observer(event, copy)
        return True

    def refuser(self, event: BoundEvent, copy: Copy) -> MachineGroup | None:
        """The group that would refuse ``event`` now, ``None`` if none would."""
        return None if self.is_enabled(event, copy) or self._refused is None else self._refused[0]

    def is_enabled(self, event: BoundEvent, copy: Copy) -> bool:
        """Whether no participant would refuse ``event`` now."""
        return self._moves(event, copy) is not None

    def _moves(self, event: BoundEvent, copy: Copy) -> list[tuple[MachineGroup, int]] | None:
        """Where each participant would go; ``None`` if one refuses."""
        moves: list[tuple[MachineGroup, int]] = []
        for group in self._participants(event, copy):
            if not self._add_move(group, event.signal, moves):
                return None
        twin = copy.other_copy
        if (
            twin is not None
            and _shares_scope(event, copy, twin)
            and not self._add_move(twin, _signal_for_other_copy(event, copy), moves)
        ):
            return None
        for broadcast, signal in event.broadcasts:
            scope = copy.scopes[broadcast.scope]
            index = scope.indexes[broadcast.number] if scope is not None else None
            if index is not None and index.members:
                for other in list(index.receivers(copy, broadcast)):
                    if other is not twin and not self._add_move(other, signal, moves):
                        if self.recorder is not None:
                            self.recorder.is_isolated = False
                        return None
        return moves

    def _participants(self, event: BoundEvent, copy: Copy) -> Iterator[MachineGroup]:
        """The groups that take part in an event of ``copy`` as their own."""
        for role in event.roles:
            if role is not Role.CONSUMER or not event.of_all_consumers:
                yield copy.group(role)
                continue
            if self.recorder is not None:
                self.recorder.is_isolated = False
            for link in self.links:
                if isinstance(link, ReceiverLink) and link.queue is copy.message.queue:
                    yield link.groups[role]

    def _add_move(self, group: MachineGroup, signal: int, moves: list[tuple[MachineGroup, int]]) -> bool:
        column = group.columns[signal]
        if column is None:
            return True
        target = column[group.state]
        if target == UNKNOWN:
            target = group.automaton.fill(signal, group.state)
        if target == REFUSED:
            self._refused = (group, signal)
            return False
        if target != group.state:
            moves.append((group, target))
        return True

    def _effects_of(self, group: MachineGroup, target: int) -> tuple[Effect, ...]:
        """The effects of ``group`` coming to ``target``."""
        key = (id(group.automaton), group.state, target)
        found = self._state_effects_of.get(key)
        if found is None:
            states = group.automaton.local_states
            pairs = zip(group.automaton.fsms, states[group.state], states[target], strict=True)
            changed = [(fsm.name, was, now) for fsm, was, now in pairs if was != now]
            arrived = [(name, "undone" if Counter.is_undone(was, now) else now) for name, was, now in changed]
            found = self._state_effects_of[key] = tuple(e for at in arrived for e in self.state_effects.get(at, ()))
        return found

    def copies_of(self, link: Link) -> list[Copy]:
        """The copies that take part in events of a link or of the broker, in the order of their keys."""
        members = link.index(self.model.all_copies(link.kind)).members
        return [members[key] for key in sorted(members)]  # the order in the index depends on the observer

    def is_link_enabled(self, event: BoundEvent, link: Link) -> bool:
        """Whether no participant would refuse ``event`` of a link or of the broker now."""
        return self._link_moves(event, link) is not None

    def _link_moves(
        self, event: BoundEvent, link: Link
    ) -> tuple[list[tuple[MachineGroup, int]], list[tuple[MachineGroup, int]]] | None:
        """Where the copies and the groups would go; ``None`` if one refuses."""
        moves: list[tuple[MachineGroup, int]] = []
        copies: list[tuple[MachineGroup, int]] = []
        for copy in self.copies_of(link):
            if not self._add_move(copy, event.signal, copies):
                return None
        for _, group in self._groups_reached(link):
            if not self._add_move(group, event.signal, moves):
                return None
        return copies, moves

    def perform_link_event(self, event: BoundEvent, link: Link) -> bool:
        """One event of a link or of the broker: its groups and every copy that it concerns take part."""
        asked = self._link_moves(event, link)
        if asked is None:
            return False
        copies, moves = asked
        owner = {id(group): of for of, group in self._groups_reached(link)}
        effects = [(group, effect) for group, target in (*copies, *moves) for effect in self._effects_of(group, target)]
        for group, target in (*copies, *moves):
            group.state = target
        for group, _ in copies:
            if isinstance(group, Copy):
                group.update_indexes()
                self.moved[group] = None
        for group, effect in effects:
            effect(group if isinstance(group, Copy) else owner[id(group)])
        effect_of_event = self.event_effects.get(event.name)
        if effect_of_event is not None:
            effect_of_event(link)
        if self.observer is not None:
            self.observer(event, link)
        return True

    def _groups_reached(self, link: Link) -> Iterator[tuple[Link, MachineGroup]]:
        reached = self.links if link.kind == "broker" else (link, self.broker)
        for of in reached:
            for group in of.groups.values():
                yield of, group


def _shares_scope(event: BoundEvent, copy: Copy, other: Copy) -> bool:
    """Whether the other copy of the message is in a scope of ``event``: it may have gone to another link."""
    broadcasts = event.broadcasts
    return not broadcasts or any(
        copy.scopes[broadcast.scope] is other.scopes[broadcast.scope] for broadcast, _ in broadcasts
    )


def _signal_for_other_copy(event: BoundEvent, copy: Copy) -> int:
    """The signal to the other copy of the message: an event of the message is its own too."""
    if event.per is IndexKind.MESSAGE:
        return event.signal
    return event.other_copy_signal if copy.number > 1 else event.earlier_signal
