"""Conformance: whether each message of a history can be a run of the model, and where it stops to be one.

A message conforms if some order of what was recorded of it, with hidden events between, is a run of the network of one
message in the history's configuration (docs/decisions/conformance.md).  Equal lives are decided once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history_format import VOCABULARY, Event
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import (
    AckMode,
    Configuration,
    Consumption,
    DeliveryMode,
    Destination,
    Fault,
    ListenerException,
    Outcomes,
    SendMode,
)
from ackfsm.verify.conformance.life import Contradiction, Heard, Life, contradiction
from ackfsm.verify.conformance.lives import Facts, Lived, Lives, Recorded
from ackfsm.verify.conformance.observer import Observer, States, TooManyStatesError
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import (
    AT_REST,
    BOTH,
    BROKEN,
    CIRCUMSTANCES,
    DELIVERED_FLAGGED,
    DELIVERED_SOMEHOW,
    FAILED_WITH,
    Sign,
    of_consumer,
)

__all__ = [
    "ENDS_WITH_THE_LAST",
    "OUTCOMES_OF_CALLS",
    "Conformance",
    "Decision",
    "Judge",
    "Needed",
    "acknowledges_by_library",
    "conformance",
    "held",
    "in_mode",
    "untold",
]

Needed: TypeAlias = tuple[tuple[int, str], ...]
"""What a life needs to be a run of the model: the places and names of signs."""

_MOST_CONSUMERS: Final = 4
"""More of them in one life make a network that no search ends in."""

_MOST_TRIED: Final = 30
_MOST_FOLLOWED: Final = 200
"""So many states are tried, and followed from one, to show that a life is settled."""

ENDS_WITH_THE_LAST: Final = frozenset({Destination.NON_DURABLE_SUBSCRIPTION})
"""What is there as long as one of its consumers is, so that the others count although they have not had the message."""

_BY_THE_LIBRARY: Final = (
    Condition.ACKS_AUTOMATICALLY,
    Condition.ACKS_BEFORE_DELIVERY,
    Condition.ACKS_LAZILY,
    Condition.SETTLED_ON_DISPATCH,
)
"""Conditions under which no call of the application acknowledges: what is written of it is near the moment only."""


def acknowledges_by_library(specification: Specification, configuration: Configuration) -> bool:
    """Whether no call of the application acknowledges."""
    environment = specification.environment(configuration)
    return any(specification.conditions[name].holds(environment) for name in _BY_THE_LIBRARY)


_JOURNAL: Final = (Event.JOURNAL_WRITTEN, Event.JOURNAL_SYNCED)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What was decided of one life: where it stops to be a run of the model, or why nothing was decided, a clause."""

    contradiction: Contradiction | None
    undecided: str | None = None


class _Part:
    """Some lives of one history, decided."""

    def __init__(self, lives: Lives, judge: Judge) -> None:
        self.lives = lives
        self.judge = judge
        different = [lives.lived(place) for place in lives.first.tolist()]
        decided = {lived.message: judge.decide(lived) for lived in sorted(different, key=judge.turn)}
        self.decisions = tuple(decided[lived.message] for lived in different)

    def contradicted(self) -> Ints:
        """The messages that are no run of the model, ascending."""
        return self._having(lambda decision: decision.contradiction is not None)

    def undecided(self) -> Ints:
        """The messages of which nothing was decided, ascending."""
        return self._having(lambda decision: decision.undecided is not None)

    def _having(self, chosen: Callable[[Decision], bool]) -> Ints:
        has = np.array([*map(chosen, self.decisions), False])
        found: Ints = self.lives.message[has[self.lives.number]]
        return found


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Conformance:
    """What was decided of all messages of a history; those that were looked at twice count as the second time."""

    recorded: Recorded
    _parts: tuple[_Part, ...]
    _part: Ints
    _place: Ints

    @property
    def messages(self) -> int:
        """How many messages were held to the model."""
        return len(self._parts[0].lives.message)

    @property
    def held(self) -> Mask:
        """For each message whether it was held to the model."""
        return np.asarray(self._part != ABSENT)

    @property
    def lives(self) -> int:
        """How many different lives were decided."""
        return sum(len(part.decisions) for part in self._parts)

    @property
    def searches(self) -> int:
        """How many times a life was held to a network."""
        return self._parts[0].judge.searches

    @property
    def states(self) -> int:
        """How many states of networks were met."""
        return self._parts[0].judge.states

    def contradicted(self) -> Ints:
        """The messages that are no run of the model, ascending."""
        return self._parts[-1].contradicted()

    def loose(self) -> Ints:
        """Those that are no run of the model in the order of their lines, whatever they are in other orders."""
        return np.flatnonzero(self._part > 0)

    def stops(self) -> tuple[Ints, Ints]:
        """The messages that are no run of the model, and the row where each stops to be one; -1 where it is the end."""
        part = self._parts[-1]
        messages = part.contradicted()
        place = self._place[messages]
        signs = np.array(
            [0 if each.contradiction is None else each.contradiction.place for each in part.decisions], int
        )
        return messages, part.lives.rows(place, signs[part.lives.number[place]])

    def undecided(self) -> Mapping[str, Ints]:
        """The messages of which nothing was decided, ascending, by the reason."""
        found: dict[str, list[Ints]] = {}
        for number, part in enumerate(self._parts):
            its = np.flatnonzero(self._part[part.lives.message] == number)
            for why in {each.undecided for each in part.decisions if each.undecided is not None}:
                has = np.array([each.undecided == why for each in part.decisions])
                found.setdefault(why, []).append(part.lives.message[its[has[part.lives.number[its]]]])
        messages = {why: np.unique(np.concatenate(each)) for why, each in sorted(found.items())}
        return {why: its for why, its in messages.items() if len(its)}

    def of(self, message: int) -> tuple[Decision, Lived]:
        """What was decided of ``message``, and its life."""
        part, place = self._parts[self._part[message]], int(self._place[message])
        return part.decisions[int(part.lives.number[place])], part.lives.lived(place)

    def numbers(self) -> Ints:
        """For each message a number of its life, the same for equal ones; -1 where nothing is told of it."""
        width = np.int64(max((len(part.decisions) for part in self._parts), default=0) + 1)
        found = np.full(len(self._part), ABSENT, np.int64)
        for number, part in enumerate(self._parts):
            its = np.flatnonzero(self._part == number)
            found[its] = number * width + part.lives.number[self._place[its]]
        return found

    def forms(self, message: int) -> Iterator[Lived]:
        """The lives of ``message`` that were decided: in the order of its lines, then as loose as they are."""
        for part in self._parts:
            place = int(np.searchsorted(part.lives.message, message))
            if place < len(part.lives.message) and part.lives.message[place] == message:
                yield part.lives.lived(place)

    def judge(self) -> Judge:
        """A judge of the same history that has met no states yet."""
        return self._parts[0].judge.anew()

    def alike(self, messages: Ints) -> Iterator[Ints]:
        """Those of ``messages`` that have the same life, ascending; for each different life once."""
        numbers = self.numbers()[messages]
        order = np.argsort(numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(numbers[order], prepend=ABSENT - 1))
        yield from np.split(messages[order], bounds[1:]) if len(messages) else ()

    def needed(self, lived: Lived, circumstances: Collection[str]) -> Needed:
        """Of these signs those without which ``lived``, a run of the model, would be none."""
        return self._parts[0].judge.needed(lived, circumstances)

    def rows(self, messages: Ints, place: int) -> Ints:
        """The row that tells the sign at ``place`` of each of ``messages``, which have the same life."""
        lives = self._parts[int(self._part[messages[0]])].lives
        return lives.rows(self._place[messages], np.full(len(messages), place))

    def settled(self, message: int, circumstances: Collection[Sign]) -> bool:
        """Whether ``message`` stays a run of the model, at rest, whatever of these signs follows in any number."""
        return self._parts[0].judge.settled(self.of(message)[1], circumstances)


def conformance(
    recorded: Recorded, events: Events, specification: Specification, configuration: Configuration
) -> Conformance:
    """Hold every message of ``events`` that is told of to the model.

    A life that is no run of the model in the order of its lines is looked at in all orders that it allows, and then
    with all that happened after its last line too, since a message may be lost when nobody has to do with it.
    """
    judge = Judge(specification, configuration, untold(events))
    return held(recorded, judge, events.count_of("message"))


def held(recorded: Recorded, judge: Judge, count: int) -> Conformance:
    """Hold all that is told, the ``count`` messages of a history or pairs of them, to the model."""
    parts = [_Part(recorded.in_order(), judge)]
    for to_the_end in (False, True):
        again = parts[-1].contradicted()
        if len(again):
            parts.append(_Part(recorded.lives(again, to_the_end=to_the_end), judge))
    part, place = (np.full(count, ABSENT, np.int64) for _ in range(2))
    for number, each in enumerate(parts):
        part[each.lives.message], place[each.lives.message] = number, np.arange(len(each.lives.message))
    return Conformance(recorded, tuple(parts), part, place)


def untold(events: Events) -> frozenset[str]:
    """What this history never tells."""
    return frozenset(event.value for event in _JOURNAL if not len(events.places(event)))


def in_mode(specification: Specification, configuration: Configuration, mode: int) -> Configuration:
    """``configuration`` as it is for messages of their own delivery mode, with what follows from that by default.

    ``mode`` is its place in the vocabulary, or :data:`ABSENT`.
    """
    own = configuration.delivery_mode if mode == ABSENT else DeliveryMode(VOCABULARY["delivery_mode"][mode])
    return (
        configuration if own is configuration.delivery_mode else specification.varied(configuration, delivery_mode=own)
    )


_CONSUMED_PLAINLY: Final = MappingProxyType(
    {
        Event.ACKNOWLEDGE.value: of_consumer(Event.COMMIT),
        Event.ACKNOWLEDGED.value: of_consumer(Event.COMMITTED),
        Event.ACK_IN_DOUBT.value: of_consumer(Event.COMMIT_IN_DOUBT),
        Event.RECOVER.value: of_consumer(Event.ROLLBACK),
    }
)
_SENT_PLAINLY: Final = MappingProxyType(
    {
        Event.CONFIRMED.value: Event.COMMITTED.value,
        Event.IN_DOUBT.value: Event.COMMIT_IN_DOUBT.value,
        Event.REJECTED.value: Event.ROLLED_BACK.value,
    }
)
"""The tables have transactions on both sides or on neither: a side without one has transactions of one message."""


_ANSWERS_TO_COMMIT: Final = (Event.COMMITTED.value, Event.COMMIT_IN_DOUBT.value)
_ANSWERS: Final = (
    (Event.ACKNOWLEDGED.value, Event.ACK_IN_DOUBT.value),
    _ANSWERS_TO_COMMIT,
    (of_consumer(Event.COMMITTED), of_consumer(Event.COMMIT_IN_DOUBT)),
)
"""Answers that nobody may have written down: then the outcome is unknown, which contradicts nothing."""

_SEND_IN_DOUBT: Final = frozenset({Event.IN_DOUBT.value, Event.COMMIT_IN_DOUBT.value})
_IN_DOUBT: Final = frozenset({Event.ACK_IN_DOUBT.value, of_consumer(Event.COMMIT_IN_DOUBT)})

OUTCOMES_OF_CALLS: Final = frozenset({Event.CONFIRMED.value, Event.IN_DOUBT.value})
"""What a recorder writes when a send returns that nobody answers, or fails since its connection is dead."""

_TOLD_ROLLED_BACK: Final = (
    "a commit was answered with `rolled_back` after its connection broke, which some clients say "
    "whatever became of it; write commit_in_doubt where nobody knows"
)
_BREAKING_COMMITS: Final = frozenset({Fault.PRODUCER_LINK_LOSS, Fault.BROKER_CRASH, Fault.BROKER_KILL, BROKEN})


def _may_be_committed(lived: Lived) -> bool:
    """Whether its producer was told that a commit is rolled back of which it may not know the outcome."""
    return Facts.COMMIT_UNDONE in lived.facts and any(
        heard.sign.name in _BREAKING_COMMITS for heard in lived.life.heard
    )


_RETURNED: Final = Event.RETURNED.value
_HANDED_OVER: Final = frozenset({Event.DELIVERED.value, DELIVERED_FLAGGED, DELIVERED_SOMEHOW})
_KEEPING: Final = frozenset({ListenerException.NEXT_MESSAGE, ListenerException.SWALLOW})
"""Where a session keeps a message whose listener failed, neither given back nor acknowledged."""

_WITH_OUTCOMES: Final = frozenset(FAILED_WITH.values())
_AMQP_1_0: Final = MappingProxyType({"outcomes": Outcomes.UNDELIVERABLE, "requeue_clears_mark": True})
"""What whoever tells an outcome speaks, where the API of the configuration has none: there a release counts nothing."""

_NO_OUTCOMES: Final = "`outcome` says what became of a delivery, and in this acknowledgement mode nobody can say it"

_KNOWN_TO_BE_THERE: Final = _HANDED_OVER | {Event.CONFIRMED.value}


def _names_of_each(life: Life) -> Mapping[int, frozenset[str]]:
    """The names of the signs of the message of a life, or of each of two: by what :attr:`Sign.of` says."""
    whose = {heard.sign.of for heard in life.heard} - {BOTH}
    return {of: frozenset(heard.sign.name for heard in life.heard if heard.sign.of in {of, BOTH}) for of in whose}


class Judge:
    """Decides lives, with one observer for each kind."""

    def __init__(self, specification: Specification, configuration: Configuration, untold: frozenset[str]) -> None:
        self._specification = specification
        self._configuration = configuration
        self._untold = untold
        environment = specification.environment(configuration)
        self._by_library = acknowledges_by_library(specification, configuration)
        self._may_hold_several = not self._by_library or configuration.consumption is Consumption.RECEIVE
        """Whether an application may have another message before it is done with one; a listener, which the library
        calls and acknowledges for, may not (JMS 6.2.5)."""
        self._transacted = specification.conditions[Condition.TRANSACTED].holds(environment)
        self._forgotten = 0
        self.searches = 0
        """How many times a life was held to a network."""
        self._networks: dict[tuple[Configuration, int], States] = {}
        self._observers: dict[tuple[Configuration, int, tuple[frozenset[str], ...], bool, bool], Observer] = {}

    @property
    def states(self) -> int:
        """How many states of networks were met."""
        return self._forgotten + sum(len(states) for states in self._networks.values())

    def forget(self) -> None:
        """Keep no network, to have memory for others."""
        self._forgotten = self.states
        self._networks.clear()
        self._observers.clear()

    def turn(self, lived: Lived) -> tuple[int, ...]:
        """Lives are decided in this order."""
        return (lived.message,)

    def decide(self, lived: Lived) -> Decision:
        """Whether ``lived`` is a run of the model."""
        why = self.why_not(lived)
        if why is not None:
            return Decision(None, why)
        try:
            stop = self.contradiction(*self.hearing(lived))
        except TooManyStatesError as error:
            return Decision(None, str(error))
        if stop is not None and _may_be_committed(lived):
            return Decision(None, _TOLD_ROLLED_BACK)
        return Decision(stop)

    def contradiction(self, life: Life, observer: Observer) -> Contradiction | None:
        """Why no run of the model looks like ``life``; ``None`` if one does."""
        self.searches += 1
        return contradiction(life, observer)

    def why_not(self, lived: Lived) -> str | None:
        """Why the model decides nothing of ``lived``, a clause; ``None`` if it does."""
        if len(lived.consumers) > _MOST_CONSUMERS:
            return f"more than {_MOST_CONSUMERS} consumers had to do with one message"
        if sum(heard.sign.name == Event.RESEND for heard in lived.life.heard) > 1:
            return "a message was sent more than twice, and the model has two copies"
        names = frozenset(heard.sign.name for heard in lived.life.heard)
        if names & _WITH_OUTCOMES and not self.holds(Condition.STATES_OUTCOMES, self._of_message(lived, names)):
            return _NO_OUTCOMES
        return None

    def hearing(self, lived: Lived) -> tuple[Life, Observer]:
        """What is heard of ``lived``, and who hears it.

        It is read in another way where no run is found.  Of two copies one may have been refused and the other one
        handed over: then a ``rejected`` is what it says, and the broker never had both.  And see :meth:`_kept` and
        :meth:`otherwise`.
        """
        hearings = list(self._hearings(lived))
        if len(hearings) == 1:
            return hearings[0]
        return next((each for each in hearings if self.contradiction(*each) is None), hearings[-1])

    def _hearings(self, lived: Lived) -> Iterator[tuple[Life, Observer]]:
        life = self.life(lived)
        lives = [life]
        if {Event.RESEND.value, Event.REJECTED.value} <= {heard.sign.name for heard in lived.life.heard}:
            lives.append(self.life(lived, rejected_as_told=True))
        lives += self._kept(life, lived.facts)
        for settings in self.otherwise(lived, life):
            yield from ((each, self.who_hears(each, lived, settings)) for each in lives)

    def otherwise(self, lived: Lived, life: Life) -> list[Mapping[str, bool]]:
        """The settings with which it is read, each set beside those of the message.

        Whoever was left in doubt may have ended before he sent again, though he does so in this configuration.
        """
        ended = any(names & _SEND_IN_DOUBT and Event.RESEND not in names for names in _names_of_each(life).values())
        resends = self._of_mode(lived.mode).resend_in_doubt
        return [{}, {"resend_in_doubt": False}] if ended and resends else [{}]

    def _kept(self, life: Life, facts: Facts) -> Iterator[Life]:
        """A life whose listener failed, and whose application acknowledged all the same, as if it had not failed.

        The session has kept the message, which a call that names another one may cover; or it had been acknowledged,
        with the others of its session, before the listener failed.
        """
        failed_and_acknowledged = {Event.FAILED.value, Event.ACKNOWLEDGE.value}
        keeps = self._configuration.listener_exception in _KEEPING or Facts.ACKNOWLEDGED_FIRST in facts
        if keeps and failed_and_acknowledged <= {heard.sign.name for heard in life.heard}:
            yield life.renamed({Event.FAILED.value: Event.PROCESSED.value})

    def anew(self) -> Judge:
        """The same with no states."""
        return Judge(self._specification, self._configuration, self._untold)

    def needed(self, lived: Lived, circumstances: Collection[str]) -> Needed:
        """A smallest part of the ``circumstances`` in ``lived`` that keeps it a run of the model.

        Empty as well if finding it out takes too many states.
        """
        try:
            return tuple(self._needed(*self.hearing(lived), circumstances))
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

    def settled(self, lived: Lived, circumstances: Collection[Sign]) -> bool:
        """Whether ``lived``, without what happened around it, is a run of the model whatever of these signs follows.

        That is asked of its own consumer alone, and with others of whom nobody knows whether they had the message.
        """
        own = tuple(heard for heard in lived.life.heard if heard.sign.name not in CIRCUMSTANCES)
        followed = dataclasses.replace(lived.life, heard=(*own, *(Heard(sign, 0) for sign in circumstances)))
        consumers = tuple(each for each in lived.consumers if each != OTHERS)
        alone = dataclasses.replace(lived, life=followed, consumers=consumers)
        try:
            return all(self._settled(its, len(own)) for its in (alone, alone.with_others()))
        except TooManyStatesError:
            return False

    def _settled(self, lived: Lived, own: int) -> bool:
        """Whether one of the states in which the message may be is left at rest by every sign, again and again.

        What is believed after a sign is what is believed after it of each state: so one state is enough.
        """
        observer, heard = self._observer(lived), self.life(lived).heard
        belief = observer.first()
        for each in heard[:own]:
            belief = observer.hear(belief, each.sign)
        signs = [each.sign for each in heard[own:]]
        rested = sorted(observer.hear(belief, Sign(AT_REST)))
        return any(_stays(observer, state, signs) for state in rested[:_MOST_TRIED])

    def life(self, lived: Lived, *, rejected_as_told: bool = False) -> Life:
        """The life of a message as a network hears it that has transactions on both sides, or on neither.

        What was handed over the broker had, whatever an error said of it, unless that is to be taken as it was told;
        what nobody answers for may be dropped.
        """
        life = lived.life.renamed({old: new for plain in self._plainly(lived) for old, new in plain.items()})
        general, names = self._of_mode(lived.mode), _names_of_each(life)
        if not (general.rejection_excludes_delivery or rejected_as_told):
            taken = [of for of, its in names.items() if its & _HANDED_OVER]
            life = life.renamed({Event.REJECTED.value: Event.CONFIRMED.value}, taken)
        if self.holds(Condition.DROPPED_UNTOLD, general) and not all(
            its & _KNOWN_TO_BE_THERE for its in names.values()
        ):
            life = dataclasses.replace(life, at_rest=False)
        return life

    def holds(self, condition: str, configuration: Configuration) -> bool:
        """Whether the ``condition`` of that name holds in ``configuration``."""
        return self._specification.conditions[condition].holds(self._specification.environment(configuration))

    def _plainly(self, lived: Lived) -> Iterator[Mapping[str, str]]:
        """What is to be read as a transaction of one message."""
        facts = lived.facts
        if not self._in_transactions(facts):
            return
        if Facts.SENT in facts and Facts.SENT_IN_TRANSACTION not in facts:
            yield _SENT_PLAINLY
        if Facts.HANDED_OVER in facts and Facts.CONSUMED_IN_TRANSACTION not in facts:
            yield _CONSUMED_PLAINLY

    def _in_transactions(self, facts: Facts) -> bool:
        return self._transacted or bool(facts & (Facts.SENT_IN_TRANSACTION | Facts.CONSUMED_IN_TRANSACTION))

    def _observer(self, lived: Lived) -> Observer:
        return self.who_hears(self.life(lived), lived)

    def who_hears(self, life: Life, lived: Lived, settings: Mapping[str, bool] = MappingProxyType({})) -> Observer:
        """The observer of ``life``, one of the readings of ``lived``, with ``settings`` beside those of the message."""
        names = frozenset(heard.sign.name for heard in life.heard)
        configuration = dataclasses.replace(self._of_message(lived, names), **settings)  # type: ignore[arg-type]
        return self._observer_of(configuration, lived, self._unheard(lived, names, configuration))

    def _observer_of(self, configuration: Configuration, lived: Lived, *unheard: frozenset[str]) -> Observer:
        """The observer with these signs ``unheard``: of one message, or of none, the first and the second."""
        consumers = max(1, len(lived.consumers))
        if Facts.BESIDE in lived.facts and consumers < _MOST_CONSUMERS:
            consumers += 1
        together = Facts.SENT_TOGETHER in lived.facts
        settles = len(unheard) == 1 and self._settles_once(configuration, lived)
        key = configuration, consumers, unheard, together, settles
        if key not in self._observers:
            network = self._networks.get(key[:2])
            if network is None:
                messages = max(1, len(unheard) - 1)
                network = self._networks[key[:2]] = States(self._specification, configuration, consumers, messages)
            self._observers[key] = self._made(network, *unheard, together=together, settles=settles)
        return self._observers[key]

    def _made(self, network: States, *unheard: frozenset[str], together: bool, settles: bool) -> Observer:
        return Observer(network, self._specification, *unheard, together=together, settles=settles)

    def _settles_once(self, configuration: Configuration, lived: Lived) -> bool:
        """Whether a line says when it is settled: not where a call covers two copies, nor where the call is in doubt.

        Who does not know what became of a call still holds the message, which may be gone from its queue.  Where what
        was consumed plainly is read as a transaction of its own, its acknowledgement may come before its delivery.
        """
        as_it_is = Facts.CONSUMED_IN_TRANSACTION in lived.facts or not self._in_transactions(lived.facts)
        one_copy = Facts.SETTLED_IN_LINES in lived.facts and not configuration.resend_in_doubt
        return as_it_is and one_copy and all(each.sign.name not in _IN_DOUBT for each in lived.life.heard)

    def _of_message(self, lived: Lived, names: frozenset[str]) -> Configuration:
        """The configuration with the settings that are the message's own."""
        general = self._of_mode(lived.mode)
        own: dict[str, object] = {}
        if Event.RESEND in names and general.send_mode is SendMode.UNCONFIRMED:
            own["send_mode"] = SendMode.BLOCKING  # who sends again was told that the first attempt failed
        if Event.RESEND in names:
            own["resend_in_doubt"] = True  # whoever sends again, the application or its library, the copy is there
        if Event.EXPIRED in names:
            own["time_to_live"] = True
        if names & _WITH_OUTCOMES and general.outcomes is Outcomes.ACCEPTED:
            own |= _AMQP_1_0
        if self._in_transactions(lived.facts):
            own["ack_mode"] = AckMode.SESSION_TRANSACTED
        return dataclasses.replace(general, **own)  # type: ignore[arg-type]

    def _of_mode(self, mode: int) -> Configuration:
        return in_mode(self._specification, self._configuration, mode)

    def _unheard(self, lived: Lived, names: frozenset[str], configuration: Configuration) -> frozenset[str]:
        """What may have happened to a message although no sign of its life, which has these ``names``, tells so."""
        plain = {old: new for each in self._plainly(lived) for old, new in each.items()}
        found = {*self._untold}
        found |= {sign for answers in _ANSWERS if not names.intersection(answers) for sign in answers}
        if Event.CONFIRMED.value in plain:  # nobody commits it
            found.add(Event.COMMIT.value)
            # its outcome is one of a send, which has to be there
            if configuration.send_mode is not SendMode.UNCONFIRMED:
                found -= set(_ANSWERS_TO_COMMIT)
        if self._by_library:
            found |= {plain.get(sign, sign) for sign in (Event.ACKNOWLEDGE.value, *_ANSWERS[0])}
        listens = configuration.consumption is Consumption.LISTENER
        if listens and Event.FAILED in names and configuration.listener_exception is ListenerException.ACKNOWLEDGE:
            found.add(Event.ACKNOWLEDGE.value)  # the library acknowledges what failed
        if self._in_transactions(lived.facts):
            found.add(Event.ACKNOWLEDGE.value)  # what a transaction consumes is acknowledged with it
        if _RETURNED in names and not names & {Event.CONFIRMED.value, Event.REJECTED.value}:
            found.add(Event.CONFIRMED.value)  # it is all the answer that the producer waits for
        found |= self._unheard_of_sends(lived, names, configuration)
        in_hand = Facts.HANDED_TOGETHER in lived.facts and self._may_hold_several
        if in_hand or lived.facts & (Facts.NOT_PROCESSED | Facts.ACKNOWLEDGED_FIRST):
            found.add(Event.PROCESSED.value)
        return frozenset(found)

    def _unheard_of_sends(self, lived: Lived, names: frozenset[str], configuration: Configuration) -> frozenset[str]:
        """The same of what becomes of its sends."""
        found = set[str]()
        if not (self.holds(Condition.CONFIRMS_PLAIN_SENDS, configuration) or names.intersection(OUTCOMES_OF_CALLS)):
            found |= OUTCOMES_OF_CALLS
        if Event.REJECTED.value in {heard.sign.name for heard in lived.life.heard} - names:
            found.add(Fault.REJECTION.value)  # it was none
        if Event.RESEND not in names:
            found.add(Event.RESEND.value)
            if configuration.resend_in_doubt and Event.IN_DOUBT not in names:
                found.add(Event.IN_DOUBT.value)
        return frozenset(found)


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
