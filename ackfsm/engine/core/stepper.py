"""Perform events: every participant is asked by its table, and all move or none does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ackfsm.engine.core.automaton import REFUSED, UNKNOWN, Automaton
from ackfsm.engine.core.instances import Copy, Nobody, Part, Route, Scope
from ackfsm.engine.core.model import Event, Role, View, Wiring
from ackfsm.tables import Counter, Per, Row
from ackfsm.terms import Configuration

__all__ = ["Core", "Effect", "Observer", "Session", "Watch"]

Effect = Callable[[Any], None]
"""What an event does besides, for a copy or a session: a journal entry, a word to the application."""

Observer = Callable[[Event, "Copy | Session"], None]
"""Called after each event; a fault may be injected here."""


class Session(Scope):
    """One side of a session, or the broker: its parts, and the copies that its events concern."""

    __slots__ = ("face", "kind", "name", "parts", "transaction")

    def __init__(self, kind: str, name: str, parts: dict[Role, Part], calls: int) -> None:
        """``kind`` is one of :data:`SCOPES`; ``transaction`` is the number of the one that is open or ends."""
        super().__init__(calls)
        self.kind = kind
        self.name = name
        self.parts = parts
        self.transaction = 0
        self.face: Any = None


class Watch:
    """A course as it happens: who was called, what was done, and whether other copies took part.

    ``half`` is what had happened before a sync in its midst: the states of the copy and of the roles, what was done,
    and how many steps were.
    """

    __slots__ = ("alone", "calls", "effects", "half")

    def __init__(self) -> None:
        self.alone = True
        self.calls: dict[Any, None] = {}
        self.effects: list[Effect] = []
        self.half: tuple[int, tuple[int, ...], tuple[Effect, ...], int] | None = None

    def sync(self, state: int, roles: tuple[int, ...], done: int) -> None:
        """A sync begins; what is done from now on follows it."""
        self.half = state, roles, tuple(self.effects), done
        self.effects = []


class Core:
    """The parts of one broker and of all sessions, and the rules by which they move.

    ``effects`` has what is done after an event of that name, ``arrivals`` what is done when a machine comes to a
    state, or a counter takes back what it counted (``undone``).  ``moved`` collects the copies that the events of
    others have moved.  After ``False``, ``refusal()`` tells who refused.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.events = wiring.events
        self.nobody = Nobody(len(wiring.events) * len(View))
        self.sessions: dict[Session, None] = {}
        broker = Part(wiring.part(Role.BROKER, wiring.specification.configure()))
        self.broker = self.session("broker", "broker", {Role.BROKER: broker})
        self.effects: dict[str, Effect] = {}
        self.arrivals: dict[tuple[str, str], list[Effect]] = {}
        self.observer: Observer | None = None
        self.moved: dict[Copy, None] = {}
        self.watch: Watch | None = None
        self._refused: tuple[Part, int] | None = None
        self._recorded: dict[tuple[object, ...], dict[Any, Any]] = {}
        self._entered: dict[tuple[int, int, int], tuple[Effect, ...]] = {}

    def session(self, kind: str, name: str, parts: dict[Role, Part]) -> Session:
        """A scope with parts of its own, that events of the broker reach too."""
        made = Session(kind, name, parts, len(self.wiring.calls))
        self.sessions[made] = None
        return made

    def route(  # noqa: PLR0913 - what a route is, by name
        self,
        *,
        automaton: Automaton,
        roles: Mapping[Role, Part],
        scopes: tuple[Scope | None, ...],
        sent: Configuration | None,
        kept: Configuration | None,
        number: int = 1,
        outgoing: Any = None,
        incoming: Any = None,
        base: Route | None = None,
    ) -> Route:
        """A route, see :class:`Route`; nobody has the ``roles`` that are not given."""
        parts = (self.nobody, *(roles.get(role, self.nobody) for role in Role if role is not Role.COPY))
        kind = (
            automaton,
            base and base.automaton,
            *(None if part is self.nobody else part.automaton for part in parts),
            *(scope is None for scope in scopes),
        )
        return Route(
            automaton=automaton,
            roles=parts,
            scopes=scopes,
            sent=sent,
            kept=kept,
            recorded=self._recorded.setdefault(kind, {}),
            number=number,
            outgoing=outgoing,
            incoming=incoming,
            base=base,
        )

    def queue(self) -> Scope:
        """A scope without parts."""
        return Scope(len(self.wiring.calls))

    def refusal(self) -> Row:
        """The row that refused last."""
        if self._refused is None:
            raise AssertionError("nothing was refused")
        part, signal = self._refused
        row = part.automaton.refusal(signal, part.state)
        if row is None:
            raise AssertionError("what was refused is not refused any more")
        return row

    def perform(self, event: Event, copy: Copy) -> bool:
        """One event of a copy; ``False`` if somebody refuses it."""
        moves = self._moves(event, copy)
        if moves is None:
            return False
        effects = [(part, effect) for part, target in moves for effect in self._effects_of(part, target)]
        for part, target in moves:
            part.state = target
        others = [part for part, _ in moves if isinstance(part, Copy) and part is not copy]
        told = self.effects.get(event.name)
        watch = self.watch
        if watch is not None:
            watch.calls.update((call, None) for call, _ in event.calls if copy.scopes[call.scope] is not None)
            watch.effects += (effect for _, effect in effects)
            watch.effects += [told] if told is not None else []
            watch.alone = watch.alone and not others
        for part, effect in effects:
            effect(part if isinstance(part, Copy) else copy)
        if told is not None:
            told(copy)
        for other in others:
            other.file()
            self.moved[other] = None
        if self.observer is not None:
            copy.file()
            self.observer(event, copy)
        return True

    def refuser(self, event: Event, copy: Copy) -> Part | None:
        """Who would refuse ``event`` now; ``None`` if nobody would."""
        return None if self.can(event, copy) or self._refused is None else self._refused[0]

    def can(self, event: Event, copy: Copy) -> bool:
        """Whether nobody would refuse ``event`` now."""
        return self._moves(event, copy) is not None

    def _moves(self, event: Event, copy: Copy) -> list[tuple[Part, int]] | None:
        """Where each participant would go; ``None`` if one refuses."""
        moves: list[tuple[Part, int]] = []
        for role in event.roles:
            if not self._ask(copy.part(role), event.own, moves):
                return None
        twin = copy.twin
        if twin is not None and _reaches(event, copy, twin) and not self._ask(twin, _heard_by_twin(event, copy), moves):
            return None
        for call, signal in event.calls:
            scope = copy.scopes[call.scope]
            filed = scope.filed[call.number] if scope is not None else None
            if filed is not None and filed.members:
                for other in list(filed.towards(copy, call)):
                    if other is not twin and not self._ask(other, signal, moves):
                        if self.watch is not None:
                            self.watch.alone = False
                        return None
        return moves

    def _ask(self, part: Part, signal: int, moves: list[tuple[Part, int]]) -> bool:
        column = part.columns[signal]
        if column is None:
            return True
        target = column[part.state]
        if target == UNKNOWN:
            target = part.automaton.fill(signal, part.state)
        if target == REFUSED:
            self._refused = (part, signal)
            return False
        if target != part.state:
            moves.append((part, target))
        return True

    def _effects_of(self, part: Part, target: int) -> tuple[Effect, ...]:
        """What is done as ``part`` comes to ``target``."""
        key = (id(part.automaton), part.state, target)
        found = self._entered.get(key)
        if found is None:
            names = part.automaton.names
            pairs = zip(part.automaton.fsms, names[part.state], names[target], strict=True)
            changed = [(fsm.name, was, now) for fsm, was, now in pairs if was != now]
            arrived = [(name, "undone" if Counter.is_undone(was, now) else now) for name, was, now in changed]
            found = self._entered[key] = tuple(e for at in arrived for e in self.arrivals.get(at, ()))
        return found

    def copies_of(self, session: Session) -> list[Copy]:
        """The copies that take part in events of a session or of the broker, in the order of their keys."""
        members = session.under(self.wiring.broadcast(session.kind)).members
        return [members[key] for key in sorted(members)]  # how they are filed depends on who observes

    def allows(self, event: Event, session: Session) -> bool:
        """Whether nobody would refuse ``event`` of a session or of the broker now."""
        return self._moves_of(event, session) is not None

    def _moves_of(self, event: Event, session: Session) -> tuple[list[tuple[Part, int]], list[tuple[Part, int]]] | None:
        """Where the copies and the parts would go; ``None`` if one refuses."""
        moves: list[tuple[Part, int]] = []
        copies: list[tuple[Part, int]] = []
        for copy in self.copies_of(session):
            if not self._ask(copy, event.own, copies):
                return None
        for _, part in self._parts(session):
            if not self._ask(part, event.own, moves):
                return None
        return copies, moves

    def happen(self, event: Event, session: Session) -> bool:
        """One event of a session or of the broker: its parts and every copy that it concerns take part."""
        asked = self._moves_of(event, session)
        if asked is None:
            return False
        copies, moves = asked
        owner = {id(part): of for of, part in self._parts(session)}
        effects = [(part, effect) for part, target in (*copies, *moves) for effect in self._effects_of(part, target)]
        for part, target in (*copies, *moves):
            part.state = target
        for part, _ in copies:
            if isinstance(part, Copy):
                part.file()
                self.moved[part] = None
        for part, effect in effects:
            effect(part if isinstance(part, Copy) else owner[id(part)])
        told = self.effects.get(event.name)
        if told is not None:
            told(session)
        if self.observer is not None:
            self.observer(event, session)
        return True

    def _parts(self, session: Session) -> Iterator[tuple[Session, Part]]:
        reached = self.sessions if session.kind == "broker" else (session, self.broker)
        for of in reached:
            for part in of.parts.values():
                yield of, part


def _reaches(event: Event, copy: Copy, twin: Copy) -> bool:
    """Whether the other copy of the message is where ``event`` is heard: it may have gone to another session."""
    calls = event.calls
    return not calls or any(copy.scopes[call.scope] is twin.scopes[call.scope] for call, _ in calls)


def _heard_by_twin(event: Event, copy: Copy) -> int:
    """What the other copy of the message hears: an event of the message is its own too."""
    if event.per is Per.MESSAGE:
        return event.own
    return event.twin if copy.number > 1 else event.own + 1
