"""Conformance: whether each message of a history can be a run of the model, and where it stops to be one.

A message conforms if some order of what was recorded of it, with hidden events between, is a run of the network of one
message in the history's configuration (docs/decisions/conformance.md).  Equal lives are decided once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.tables import Fact, Of, Side, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import (
    Configuration,
    DeliveryMode,
    Destination,
)
from ackfsm.verify.conformance.life import Contradiction, Heard, Life, contradiction
from ackfsm.verify.conformance.lives import Facts, Lived, Lives, Recorded
from ackfsm.verify.conformance.observer import Hearing, Observer, States, TooManyStatesError
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import (
    AT_REST,
    Sign,
)

__all__ = [
    "Conformance",
    "Decision",
    "Judge",
    "Needed",
    "conformance",
    "in_mode",
    "names_of_each",
]

Needed: TypeAlias = tuple[tuple[int, str], ...]
"""What a life needs to be a run of the model: the places and names of signs."""

_MOST_TRIED: Final = 30
_MOST_FOLLOWED: Final = 200
"""So many states are tried, and followed from one, to show that a life is settled."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The decision on one life: its contradiction, or the reason why it is undecided, a clause."""

    contradiction: Contradiction | None
    undecided: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Conformance:
    """The decisions on all messages of a history, or on pairs of them; of several looks the last one counts.

    Attributes:
        recorded: what is recorded of them.
        judge: who decided.
        decisions: what was decided of each different life.
        numbers: for each message the number of its life, the same for equal ones; -1 where nothing is told of it.
    """

    recorded: Recorded
    judge: Judge
    decisions: Sequence[Decision]
    numbers: Ints
    _looks: Sequence[Lives]
    _look: Ints
    _place: Ints
    _needed: dict[int, Needed] = dataclasses.field(default_factory=dict)

    @property
    def messages(self) -> int:
        """How many messages were held to the model."""
        return len(self._looks[0].message)

    @property
    def held(self) -> Mask:
        """For each message whether it was held to the model."""
        return np.asarray(self.numbers != ABSENT)

    def contradicted(self) -> Ints:
        """The messages that are no run of the model, ascending."""
        return self._having([each.contradiction is not None for each in self.decisions])

    def undecided(self) -> Mapping[str, Ints]:
        """Return the undecided messages, ascending, by the reason."""
        reasons = sorted({each.undecided for each in self.decisions if each.undecided is not None})
        found = {why: self._having([each.undecided == why for each in self.decisions]) for why in reasons}
        return {why: its for why, its in found.items() if len(its)}

    def _having(self, chosen: Sequence[bool]) -> Ints:
        found: Ints = np.flatnonzero(np.array([*chosen, False])[self.numbers])
        return found

    def loose(self) -> Ints:
        """Return the messages that are no run of the model in the order of their lines."""
        return np.flatnonzero(self._look > 0)

    def stops(self) -> tuple[Ints, Ints]:
        """The messages that are no run of the model, and the row where each stops to be one; -1 where it is the end."""
        messages = self.contradicted()
        stops = np.array([each.contradiction.place if each.contradiction else 0 for each in self.decisions], np.int64)
        return messages, self._looks[-1].rows(self._place[messages], stops[self.numbers[messages]])

    def of(self, message: int) -> tuple[Decision, Lived]:
        """Return the decision on ``message``, and its life."""
        lived = self._looks[int(self._look[message])].lived(int(self._place[message]))
        return self.decisions[self.numbers[message]], lived

    def forms(self, message: int) -> Iterator[Lived]:
        """The lives of ``message`` that were decided: in the order of its lines, then as loose as they are."""
        for lives in self._looks[: self._look[message] + 1]:
            yield lives.lived(int(np.searchsorted(lives.message, message)))

    def alike(self, messages: Ints) -> Iterator[Ints]:
        """Yield for each different life the places of its messages in ``messages``."""
        numbers = self.numbers[messages]
        order = np.argsort(numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(numbers[order], prepend=ABSENT - 1))
        yield from np.split(order, bounds[1:]) if len(messages) else ()

    def needed(self, message: int) -> Needed:
        """What happened around ``message``, a run of the model, without which it would be none."""
        number = int(self.numbers[message])
        if number not in self._needed:
            self._needed[number] = self.judge.needed(self.of(message)[1])
        return self._needed[number]

    def rows(self, messages: Ints, place: int) -> Ints:
        """The row that tells the sign at ``place`` of each of ``messages``, which have the same life."""
        lives = self._looks[int(self._look[messages[0]])]
        return lives.rows(self._place[messages], np.full(len(messages), place))


def conformance(recorded: Recorded, judge: Judge) -> Conformance:
    """Hold all that is told, the messages of a history or pairs of them, to the model.

    A life that is no run of the model in the order of its lines is looked at in all orders that it allows, and then
    with all that happened after its last line too, since a message may be lost when nobody has to do with it.
    """
    numbers, look, place = (np.full(len(recorded.facts), ABSENT, np.int64) for _ in range(3))
    looks, decisions, again = list[Lives](), list[Decision](), np.empty(0, np.int64)
    for lives_of in (lambda _: recorded.in_order(), recorded.lives, functools.partial(recorded.lives, to_the_end=True)):
        lives = lives_of(again)
        found = _decided(lives, judge)
        numbers[lives.message] = lives.number + len(decisions)
        look[lives.message], place[lives.message] = len(looks), np.arange(len(lives.message))
        looks.append(lives)
        decisions += found
        again = lives.message[np.array([each.contradiction is not None for each in found], bool)[lives.number]]
        if not len(again):
            break
    return Conformance(recorded, judge, decisions, numbers, looks, look, place)


def _decided(lives: Lives, judge: Judge) -> list[Decision]:
    """What ``judge`` decides of each different one of ``lives``."""
    different = [lives.lived(place) for place in lives.first.tolist()]
    decided = {lived.message: judge.decide(lived) for lived in sorted(different, key=judge.turn)}
    return [decided[lived.message] for lived in different]


def in_mode(specification: Specification, configuration: Configuration, mode: int) -> Configuration:
    """``configuration`` as it is for messages of their own delivery mode, with what follows from that by default.

    ``mode`` is its place in the vocabulary, or :data:`ABSENT`.
    """
    own = configuration.delivery_mode if mode == ABSENT else DeliveryMode(VOCABULARY["delivery_mode"][mode])
    return (
        configuration if own is configuration.delivery_mode else specification.varied(configuration, delivery_mode=own)
    )


_TOLD_ROLLED_BACK: Final = (
    "a commit was answered with `rolled_back` after its connection broke, which some clients say "
    "whatever became of it; write commit_in_doubt where nobody knows"
)


def names_of_each(life: Life) -> tuple[Counter[str], ...]:
    """The names of the signs of the message of a life, or of each of two, with how many there are."""
    whose = (1, 2) if any(heard.sign.of for heard in life.heard) else (0,)
    return tuple(
        Counter(each.sign.name for each in life.heard if not of or not each.sign.of or each.sign.of & of)
        for of in whose
    )


_OF_SEVERAL_QUEUES: Final = (
    "a message was handed over from several queues, each of which has a copy of its own; "
    "write an id for each copy, such as id@queue"
)
_OF_SEVERAL_SUBSCRIPTIONS: Final = (
    "a message of a topic was handed to several consumers, whose subscriptions may each have a copy of their own; "
    "write an id for each copy, such as id@subscription"
)
_UNSEEN_DEAD_LETTER: Final = (
    "a message that nobody was handed is a dead letter, as if its time was over or its queue full; "
    "set time_to_live where that may be"
)

_MOST_KEPT: Final = 20_000
"""States that are kept from one history to the next."""
_ALONE: Final = MappingProxyType({Fact.SENT_PLAINLY: Side.PRODUCER, Fact.CONSUMED_PLAINLY: Side.CONSUMER})


class Kept:
    """Networks with the states that were met, and their observers, for one history after the other."""

    def __init__(self) -> None:
        self.networks: dict[tuple[Configuration, int], States] = {}
        self.observers: dict[tuple[Configuration, int, Hearing, frozenset[str]], Observer] = {}

    @property
    def states(self) -> int:
        """How many states were met."""
        return sum(map(len, self.networks.values()))

    def clear(self) -> None:
        """Keep nothing, to have memory for others."""
        self.networks.clear()
        self.observers.clear()

    def begun(self) -> Kept:
        """The same for one more history; without what would leave too few states for that."""
        if self.states > _MOST_KEPT:
            self.clear()
        return self


class Judge:
    """Decides lives, with one observer for each kind."""

    explaining = frozenset({Event.RESEND.value})
    """Signs that explain a life, beside those of what happened around it."""

    most_consumers, whom = 4, "one message"
    """More consumers in one life make a network that no search ends in."""

    def __init__(
        self, specification: Specification, configuration: Configuration, events: Events, kept: Kept | None = None
    ) -> None:
        """Judge with what was ``kept`` of histories before."""
        self._specification = specification
        self._configuration = configuration
        self._kept = Kept() if kept is None else kept.begun()
        self._met = self._kept.states
        self._recording = specification.recording
        self._events = events
        rows = self._recording.signs.values()
        self._said = frozenset(row.name for row in rows if row.said)
        """The rows that the header of the history has asked for."""
        self._untold = frozenset(row.name for row in rows if not len(events.places(Event(row.line))))
        environment = specification.environment(configuration)
        self._by_library = self._recording.by_library.holds(environment)
        self._may_hold_several = bool(self._recording.late(environment))
        """Whether an application may have another message before it is done with one; a listener, which the library
        calls and acknowledges for, may not (JMS 6.2.5)."""
        self._transacted = specification.conditions[Condition.TRANSACTED].holds(environment)
        self._forgotten = 0
        self.searches = 0
        """How many times a life was held to a network."""

    @property
    def states(self) -> int:
        """How many states of networks were met, beside those that were kept."""
        return self._forgotten + self._kept.states - self._met

    def forget(self) -> None:
        """Keep no network, to have memory for others."""
        self._forgotten, self._met = self.states, 0
        self._kept.clear()

    def turn(self, lived: Lived) -> tuple[int, ...]:
        """Lives are decided in this order."""
        return (lived.message,)

    def decide(self, lived: Lived) -> Decision:
        """Whether ``lived`` is a run of the model."""
        why = self.why_not(lived)
        if why is not None:
            return Decision(None, why)
        try:
            stop = self.stop(lived)
            why = None if stop is None else self._may_be_right(lived)
        except TooManyStatesError as error:
            return Decision(None, str(error))
        return Decision(stop) if why is None else Decision(None, why)

    def _may_be_right(self, lived: Lived) -> str | None:
        """Why ``lived``, which is no run of the model, need not be wrong, a clause; ``None`` if it has to be."""
        topic = self.configuration_of(lived).destination is not Destination.QUEUE
        lines = [(self._line(each), each.sign.consumer) for each in lived.life.heard]
        handed = {consumer for line, consumer in lines if line == Event.DELIVERED}
        reasons = {
            _TOLD_ROLLED_BACK: self._may_be_committed(lived),
            _OF_SEVERAL_QUEUES: Facts.OF_SEVERAL_QUEUES in lived.facts,
            _OF_SEVERAL_SUBSCRIPTIONS: topic and len(handed) > 1,
            _UNSEEN_DEAD_LETTER: not handed and any(line == Event.DEAD_LETTERED for line, _ in lines),
        }
        return next((why for why, holds in reasons.items() if holds), None) or self._of_a_deviation(lived)

    def _of_a_deviation(self, lived: Lived) -> str | None:
        """Which deviation of the system, that the tables do not model, ``lived`` may be of, a clause."""
        configuration, names = self.configuration_of(lived), lived.life.names
        environment = self._specification.environment(configuration)
        for row in self._specification.profiles[configuration.profile].deviates:
            its = row.left_open
            if its is None or its.after.isdisjoint(names) or not its.where.holds(environment):
                continue
            if self.contradiction(lived.life, self.who_hears(lived, its.as_if)) is None:
                return f"the tables have not that {row.what}"
        return None

    def _line(self, heard: Heard) -> str:
        """The event of the line that tells a sign."""
        return self._recording.signs[heard.sign.name].line

    def stop(self, lived: Lived) -> Contradiction | None:
        """Where ``lived`` stops to be a run of the model; ``None`` if it is one.

        Raises :class:`TooManyStatesError` if nothing is decided.
        """
        return self.contradiction(*self.hearing(lived))

    def contradiction(self, life: Life, observer: Observer) -> Contradiction | None:
        """Why no run of the model looks like ``life``; ``None`` if one does."""
        self.searches += 1
        return contradiction(life, observer)

    def why_not(self, lived: Lived) -> str | None:
        """Why the model decides nothing of ``lived``, a clause; ``None`` if it does."""
        if len(lived.consumers) > self.most_consumers:
            return f"more than {self.most_consumers} consumers had to do with {self.whom}"
        if any(names[Event.RESEND] > 1 for names in names_of_each(lived.life)):
            return "a message was sent more than twice, and the model has two copies"
        environment = self._specification.environment(self.configuration_of(lived))
        rows = (self._recording.signs[name] for name in sorted(lived.life.names))
        return next((row.undecided for row in rows if not row.wants.holds(environment)), None)

    def hearing(self, lived: Lived) -> tuple[Life, Observer]:
        """Return the life of ``lived``, as it is heard, and its observer."""
        return lived.life, self.who_hears(lived)

    def anew(self) -> Judge:
        """The same with no states."""
        return Judge(self._specification, self._configuration, self._events)

    def needed(self, lived: Lived) -> Needed:
        """A smallest part of what happened around ``lived``, and of ``explaining``, that keeps it a run of the model.

        Empty as well if finding it out takes too many states.
        """
        try:
            return tuple(self._needed(*self.hearing(lived), self._recording.around | self.explaining))
        except TooManyStatesError:
            return ()

    def _needed(self, life: Life, observer: Observer, circumstances: Collection[str]) -> Iterator[tuple[int, str]]:
        """From the last to the first, many at a time: of hundreds of faults few are needed."""
        groups = [[place for place, heard in enumerate(life.heard) if heard.sign.name in circumstances]]
        while groups and groups[-1]:
            group = groups.pop()
            without = life.without(*group)
            if self.contradiction(without, observer) is None:
                life = without
            elif len(group) == 1:
                yield group[0], life.heard[group[0]].sign.name
            else:
                groups += group[: len(group) // 2], group[len(group) // 2 :]

    def settled(self, lived: Lived, circumstances: Collection[Sign], *, befallen: bool) -> bool:
        """Whether ``lived`` is a run of the model whatever of these signs follows.

        If it was not ``befallen`` by anything, what happened around it is left out.  That is asked of its own consumers
        alone, and with others of whom nobody knows whether they had the message.
        """
        around = frozenset[str]() if befallen else self._recording.around
        own = tuple(heard for heard in lived.life.heard if heard.sign.name not in around)
        followed = dataclasses.replace(lived.life, heard=(*own, *(Heard(sign, 0) for sign in circumstances)))
        consumers = tuple(each for each in lived.consumers if befallen or each != OTHERS)
        alone = dataclasses.replace(lived, life=followed, consumers=consumers)
        both = (alone,) if OTHERS in consumers else (alone, alone.with_others())
        try:
            return all(self._settled(its, len(own)) for its in both)
        except TooManyStatesError:
            return False

    def _settled(self, lived: Lived, own: int) -> bool:
        """Whether one of the states in which the message may be is left at rest by every sign, again and again.

        What is believed after a sign is what is believed after it of each state: so one state is enough.
        """
        life, observer = self.hearing(lived)
        heard = life.heard
        belief = observer.first()
        for each in heard[:own]:
            belief = observer.hear(belief, each.sign)
        signs = [each.sign for each in heard[own:]]
        rested = sorted(observer.hear(belief, Sign(AT_REST)))
        return any(_stays(observer, state, signs) for state in rested[:_MOST_TRIED])

    def holds(self, condition: str, configuration: Configuration) -> bool:
        """Whether the ``condition`` of that name holds in ``configuration``."""
        return self._specification.conditions[condition].holds(self._specification.environment(configuration))

    def who_hears(self, lived: Lived, settings: Mapping[str, Any] = MappingProxyType({})) -> Observer:
        """Return the observer of ``lived``, with ``settings`` beside the settings of the message."""
        configuration = dataclasses.replace(self.configuration_of(lived), **settings)
        hearing = self.heard(lived, configuration)
        consumers = max(1, len(lived.consumers))
        if Facts.BESIDE in lived.facts and consumers < self.most_consumers:
            consumers += 1
        key = configuration, consumers, hearing, self._said
        if key not in self._kept.observers:
            network = self._kept.networks.get(key[:2])
            if network is None:
                messages = max(1, len(hearing.unheard) - 1)
                network = self._kept.networks[key[:2]] = States(self._specification, configuration, consumers, messages)
            self._kept.observers[key] = Observer(network, self._specification, hearing)
        return self._kept.observers[key]

    def heard(self, lived: Lived, configuration: Configuration) -> Hearing:
        """How the signs of ``lived`` are heard."""
        facts, unheard, also = self.facts(lived), list[frozenset[str]](), set[tuple[str, str]]()
        environment = self._specification.environment(configuration)
        for names in names_of_each(lived.life):
            unheard.append(self._free(names, facts, environment))
            also |= {
                (name, event)
                for name in names
                for reason in self._recording.signs[name].choices
                if reason.holds(environment, names, facts)
                for event in reason.tells
            }
        return Hearing(
            unheard=tuple(unheard),
            alone=frozenset(side for fact, side in _ALONE.items() if fact in facts),
            also=frozenset(also),
            settles=self._settles_once(configuration, lived),
        )

    def _free(self, names: Collection[str], facts: frozenset[Fact], environment: Mapping[str, Any]) -> frozenset[str]:
        """What may have happened to a message although no sign of its life, which has these ``names``, tells so."""
        never = facts | {Fact.NEVER_TOLD}
        return frozenset(
            row.name
            for row in self._recording.signs.values()
            for its in [never if row.name in self._untold else facts]
            if any(reason.holds(environment, names, its) for reason in row.free)
        )

    def facts(self, lived: Lived) -> frozenset[Fact]:
        """Return the facts of ``lived`` beside its signs."""
        bits, inside = lived.facts, self._in_transactions(lived.facts)
        told = {
            Fact.SILENT: Facts.NOT_PROCESSED in bits,
            Fact.ACKNOWLEDGED_FIRST: self._acknowledged_first(lived),
            Fact.BY_LIBRARY: self._by_library,
            Fact.IN_HAND: Facts.HANDED_TOGETHER in bits and self._may_hold_several,
            Fact.IN_TRANSACTION: inside,
            Fact.SENT_PLAINLY: inside and Facts.SENT in bits and Facts.SENT_IN_TRANSACTION not in bits,
            Fact.CONSUMED_PLAINLY: inside and Facts.HANDED_OVER in bits and Facts.CONSUMED_IN_TRANSACTION not in bits,
        }
        return frozenset(fact for fact, holds in told.items() if holds)

    def _acknowledged_first(self, lived: Lived) -> bool:
        """Whether a consumer acknowledged a message that it was not done with, or failed with it before or after.

        What was processed more often than it was handed over says nothing of that.
        """
        called, done, failed = set[int](), set[int](), set[int]()
        first, left = False, 0
        for heard in lived.life.heard:
            line, consumer = self._line(heard), heard.sign.consumer
            if line == Event.DELIVERED:
                left += 1
                for each in (called, done, failed):
                    each.discard(consumer)
            elif line == Event.PROCESSED:
                left -= 1
                done.add(consumer)
            elif line == Event.FAILED:
                failed.add(consumer)
            elif line == Event.ACKNOWLEDGE:
                called.add(consumer)
            first |= consumer in called and (consumer in failed or consumer not in done)
        return first and left >= 0

    def _in_transactions(self, facts: Facts) -> bool:
        return self._transacted or bool(facts & (Facts.SENT_IN_TRANSACTION | Facts.CONSUMED_IN_TRANSACTION))

    def _settles_once(self, configuration: Configuration, lived: Lived) -> bool:
        """Whether a line says when it is settled: not where a call covers two copies, nor where the call is in doubt.

        Who does not know what became of a call still holds the message, which may be gone from its queue.  Where what
        was consumed plainly is read as a transaction of its own, its acknowledgement may come before its delivery.
        """
        as_it_is = Facts.CONSUMED_IN_TRANSACTION in lived.facts or not self._in_transactions(lived.facts)
        one_copy = Facts.SETTLED_IN_LINES in lived.facts and not configuration.resend_in_doubt
        return as_it_is and one_copy and not any(self._is_doubt(each.sign.name) for each in lived.life.heard)

    def covers(self, sign: Sign) -> bool:
        """Whether it is a call that covers messages, or an answer to one."""
        return self._recording.signs[sign.name].of is Of.COVERED

    def _may_be_committed(self, lived: Lived) -> bool:
        """Return whether its producer was told of a rollback of a commit that may have succeeded."""
        rows = [self._recording.signs[each.sign.name] for each in lived.life.heard]
        undone = any(row.undone and row.side is Side.PRODUCER for row in rows)
        return undone and any(row.is_around and row.side is not Side.CONSUMER for row in rows)

    def _is_doubt(self, name: str) -> bool:
        """Return whether the sign tells a consumer of a failed call with unknown outcome."""
        row = self._recording.signs[name]
        return row.side is Side.CONSUMER and self._recording.not_awaited.issuperset(row.tells)

    def configuration_of(self, lived: Lived, unseen: Collection[str] = ()) -> Configuration:
        """Return the configuration of a life, with the settings of its signs and of ``unseen`` ones."""
        general = self.of_mode(lived.mode)
        environment = self._specification.environment(general)
        own: dict[str, Any] = {}
        for name in sorted(lived.life.names.union(unseen)):
            for where, settings in self._recording.signs[name].sets:
                own |= settings if where.holds(environment) else {}
        if self._in_transactions(lived.facts):
            own |= self._recording.in_transaction
        return dataclasses.replace(general, **own)

    def of_mode(self, mode: int) -> Configuration:
        """The configuration of messages of that delivery mode."""
        return in_mode(self._specification, self._configuration, mode)


def _stays(observer: Observer, state: int, signs: Collection[Sign]) -> bool:
    """Whether every sign leads from ``state`` to a state at rest, and from that one too."""
    found, front = {state}, [state]
    while front:
        state = front.pop()
        for sign in signs:
            rested = observer.hear(observer.hear(frozenset({state}), sign), Sign(AT_REST))
            if not rested or len(found) > _MOST_FOLLOWED:
                return False
            if not rested & found:
                front.append(min(rested))
                found.add(min(rested))
    return True
