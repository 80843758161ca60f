"""The observer of one message: its network, with all hidden that no line tells, made deterministic step by step.

A *belief* is the set of the states in which the message may be after what was heard of it.  The observer begins with
the first state; each sign leads to the belief of those states that an event of the sign leads to, and of all that
hidden events lead to from there.  An empty belief says that no run of the model looks like what was heard.

Beliefs and the successors of states are found when they are first asked for, and kept: a history shows few different
lives, and each of them meets few states of a network that may have millions.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from ackfsm.explore import pack
from ackfsm.history.arrays import Ints
from ackfsm.history_format import Event
from ackfsm.network import Bounds, Network, NetworkEvent, compose
from ackfsm.tables import Lane, Specification, names
from ackfsm.terms import Configuration, Fault
from ackfsm.verify.conformance.successors import Successors, Vectors
from ackfsm.verify.context.signs import (
    AT_REST,
    BOTH,
    BROKEN,
    CONSUMER_BROKEN,
    FAULTS,
    SESSION_ENDS,
    Certainty,
    Sign,
    events_of_signs,
)

__all__ = ["Belief", "Observer", "States", "TooManyStatesError"]

Belief: TypeAlias = frozenset[int]

_REJECTS: Final = frozenset({names.Event.SETTLE_REJECTED})
"""What an application may have done before a message was dead-lettered, which alone may leave a line."""

_OUTCOMES: Final = (
    frozenset({names.Event.SETTLE_RELEASED, names.Event.SETTLE_FAILED, names.Event.SETTLE_UNDELIVERABLE}) | _REJECTS
)
"""What an application may say of a delivery that it failed to process."""

_DECIDED_BEFORE: Final[Mapping[str, str]] = MappingProxyType({names.Event.OUTCOME_FORGOTTEN: Event.RESEND.value})
"""What an application decides without a line, and the line of what it does then."""

_ACTIONS: Final = (
    frozenset(
        {
            names.Event.RECOVER,
            names.Event.ROLLBACK,
            names.Event.CONSUMER_CLOSE,
            names.Event.CONSUMER_CANCEL,
            names.Event.SEND_TIMED_OUT,
            names.Event.RETURNED,
            names.Event.LEASE_EXPIRED,
        }
    )
    | _DECIDED_BEFORE.keys()
    | _OUTCOMES
)
"""What an application may do and a line of the history tells; an optional event without a line never happens."""

_BETWEEN_MESSAGES: Final = frozenset({names.Event.POSTPONE})
"""What no line tells and an application does with the second of two messages: it sends it in a later transaction."""

_CALLS_OF_PRODUCERS: Final = frozenset({names.Event.SEND, names.Event.SEND_IN_TRANSACTION, names.Event.COMMIT_CALLED})
_CALLS_OF_CONSUMERS: Final = frozenset({names.Event.ACKNOWLEDGE, names.Event.CONSUMER_COMMIT_CALLED})
_CALLS_OF_APPLICATIONS: Final = _CALLS_OF_PRODUCERS | _CALLS_OF_CONSUMERS
"""What waits for an application's decision, so that a message to which it can still happen may be at rest.

But what an application holds and has not acknowledged is in flight, of which a queue that is drained has nothing.
"""

_REPORTS: Final = frozenset(
    {
        names.Event.ACK_IN_DOUBT,
        names.Event.COMMIT_FAILED,
        names.Event.CONSUMER_COMMIT_FAILED,
        names.Event.ROLLBACK_RETURNED,
        names.Event.TRANSACTION_LOST,
        names.Event.PROCESSED_IN_VAIN,
    }
)
"""What only tells that something is over, has failed or was in vain: a process may end without writing it down."""

_LANE_OF_CRASH: Final = {Fault.PRODUCER_CRASH.value: Lane.PRODUCER, Fault.CONSUMER_CRASH.value: Lane.CONSUMER}

_AFTER_A_BREAK: Final = MappingProxyType(
    {
        CONSUMER_BROKEN: frozenset({names.Event.CONSUMER_ROLLBACK, names.Event.CONSUMER_RECOVER}),
        Fault.CONSUMER_LINK_LOSS.value: frozenset({names.Event.CONSUMER_ROLLBACK}),
        Fault.BROKER_KILL.value: frozenset({names.Event.CONSUMER_ROLLBACK}),
        Fault.BROKER_CRASH.value: frozenset({names.Event.CONSUMER_ROLLBACK}),
    }
)
"""What a client does with its transaction or session, without a line, when it finds its connection broken."""

_SET_ASIDE: Final = (names.Entry.SET_ASIDE, names.Entry.FOR_OTHERS)
"""The states of a copy that its consumers have turned away, and that a queue which is drained has not."""

_DONE: Final = frozenset({names.Event.PROCESSED})

_CALL_FOR_BOTH: Final = names.Event.ACKNOWLEDGE
_ANSWERED_FOR_EACH: Final = frozenset({_CALL_FOR_BOTH, names.Event.ACKNOWLEDGED})
"""What one line tells of all messages that it covers, and is an event of each of them."""

_MOST_STATES: Final = 30_000
_MOST_BELIEVED: Final = 2_000_000
"""States of one network that are kept with their successors, and in all beliefs: about 200 megabytes each."""


_MOST_NETWORKS: Final = 64
"""Networks that are kept for the next history, or the next part of one: of some hundred kilobytes each."""


class TooManyStatesError(Exception):
    """A search met its bound, which the text names: a clause about a message."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Tables:
    """The tables, which are the same if they are the same object."""

    specification: Specification

    def __hash__(self) -> int:
        return id(self.specification)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and other.specification is self.specification


@functools.lru_cache(maxsize=_MOST_NETWORKS)
def _network(
    tables: _Tables, configuration: Configuration, consumers: int, messages: int
) -> tuple[Network, Successors]:
    """The network of so many messages and consumers, with any fault any number of times, and where its events lead."""
    bounds = Bounds(
        messages=messages,
        faults=frozenset(Fault),
        max_faults=None,
        consumers=consumers,
        actions=_ACTIONS | (_BETWEEN_MESSAGES if messages > 1 else frozenset()),
    )
    network = compose(tables.specification, configuration, bounds, observers=())
    return network, Successors(pack(network))


class States:
    """The states of the network of one message, or two, that were met, with their successors; observers share them."""

    def __init__(
        self, specification: Specification, configuration: Configuration, consumers: int, messages: int = 1
    ) -> None:
        """The network of so many messages and consumers, in which any fault may happen any number of times."""
        self.network, self._successors = _network(_Tables(specification), configuration, consumers, messages)
        self.transacted = specification.conditions[names.Condition.TRANSACTED].holds(
            specification.environment(configuration)
        )
        self.lanes: Mapping[str, Lane] = {name: event.lane for name, event in specification.events.items()}
        self._set_aside = [
            (place, number)
            for place, instance in enumerate(self.network.instances)
            for number, state in enumerate(instance.fsm.states)
            if state in _SET_ASIDE
        ]
        self._vectors = [self._successors.initial.tobytes()]
        self._numbers = {self._vectors[0]: 0}
        self._after: dict[frozenset[int], dict[int, tuple[int, ...]]] = {}
        self.believed = 0
        """How many states are kept in the beliefs of all observers."""

    def __len__(self) -> int:
        return len(self._vectors)

    def after(self, states: Iterable[int], events: frozenset[int]) -> Mapping[int, tuple[int, ...]]:
        """For each of ``states`` the states that ``events`` lead to: none if none of them is enabled.

        What other events lead to is not looked at, and mostly never met.  The answer may have other states too.
        Raises :class:`TooManyStatesError` when there are too many states by now.
        """
        after = self._after.setdefault(events, {})
        new = [state for state in states if state not in after]
        if new:
            if len(self._vectors) > _MOST_STATES:
                raise TooManyStatesError(f"a message may be in more than {_MOST_STATES:,} states")
            begin = 0
            for counts, moved in self._successors.of(self._rows(new), events):
                self._keep(after, new[begin : begin + len(counts)], counts, self._numbered(moved))
                begin += len(counts)
        return after

    def enabled(self, states: Collection[int]) -> frozenset[int]:
        """The events that are enabled in one of ``states``, of which there is one."""
        enabled = self._successors.enabled(self._rows(states), range(len(self.network.events)))
        return frozenset(np.flatnonzero(enabled.any(axis=0)).tolist())

    def in_its_queue(self, state: int) -> bool:
        """Whether a copy is in its queue in this state, though no consumer that is there is sent it."""
        row = self._rows([state])[0]
        return any(row[place] == number for place, number in self._set_aside)

    def _rows(self, states: Iterable[int]) -> Vectors:
        data = b"".join(self._vectors[state] for state in states)
        initial = self._successors.initial
        return np.frombuffer(data, initial.dtype).reshape(-1, initial.shape[1])

    def _numbered(self, vectors: Vectors) -> list[int]:
        """The number of each row; of a new one, the next."""
        keys = vectors.view(f"V{vectors.strides[0]}").ravel().tolist()
        new = [key for key in dict.fromkeys(keys) if key not in self._numbers]
        self._numbers.update(zip(new, itertools.count(len(self._vectors))))
        self._vectors += new
        return list(map(self._numbers.__getitem__, keys))

    @staticmethod
    def _keep(after: dict[int, tuple[int, ...]], states: list[int], counts: Ints, targets: list[int]) -> None:
        """Of each of ``states`` its part of the ``targets``, which are so many."""
        ends = np.cumsum(counts).tolist()
        for state, begin, end in zip(states, [0, *ends], ends, strict=False):
            after[state] = tuple(targets[begin:end])


class Observer:
    """Hears the signs of one message or two, but those that are unheard: what they tell of may have happened unseen."""

    def __init__(
        self,
        states: States,
        specification: Specification,
        *unheard: Collection[str],
        together: bool = False,
        settles: bool = False,
        unseen: Collection[str] = (),
    ) -> None:
        """``unheard`` are signs of the one message; or of what is of no message, and then of the first and second.

        Two messages that were sent ``together`` were so in one transaction.  With ``settles`` applications tell of what
        they acknowledge, so that what they hold is not at rest.  What signs that are ``unseen`` tell of may have
        happened too where it need not: what no line of this history can tell.
        """
        self._states = states
        self._unheard = tuple(map(frozenset, unheard)) or (frozenset[str](),)
        signs = events_of_signs(specification)
        heard = [
            frozenset[str]().union(*(events for sign, events in signs.items() if sign not in its))
            for its in self._unheard
        ]
        events = states.network.events
        self._of_sign = {
            sign: tuple(number for number, event in enumerate(events) if event.name in names)
            for sign, names in signs.items()
        }
        happens = frozenset[str]().union(*(signs[sign] for sign in unseen))
        self._hidden = frozenset(
            number
            for number, event in enumerate(events)
            if (event.name in _BETWEEN_MESSAGES and not together)
            or event.name in happens
            or (event.name in _DECIDED_BEFORE and _DECIDED_BEFORE[event.name] not in self._unheard[self._whose(event)])
            or (event.name not in heard[self._whose(event)] and not event.may_never_happen)
        )
        calls = _CALLS_OF_PRODUCERS if settles else _CALLS_OF_APPLICATIONS
        if len(heard) > 1:
            calls |= {names.Event.RESEND}
        self._due = frozenset(
            number
            for number, event in enumerate(events)
            if not event.may_never_happen
            and event.name not in calls & heard[self._whose(event)] | _REPORTS  # what is not heard the library does
        )
        self._transacted = states.transacted
        self._steps: dict[tuple[Belief, Sign], Belief] = {}
        self._closures: dict[Belief, Belief] = {}

    def _whose(self, event: NetworkEvent) -> int:
        """Of which message of a pair ``event`` is: 1 or 2, and 0 where it is of no message, or there is one."""
        return event.index[0] if event.index and len(self._unheard) > 1 else 0

    def _is_of(self, event: NetworkEvent, of: int) -> bool:
        return of in {0, BOTH} or self._whose(event) in {0, of}

    def first(self) -> Belief:
        """What is believed before anything was heard."""
        return self._closure(frozenset({0}))

    def hear(self, belief: Belief, sign: Sign) -> Belief:
        """What is believed after ``sign``; empty if it is impossible."""
        key = belief, sign
        if key not in self._steps:
            self._steps[key] = self._heard(belief, sign)
        return self._steps[key]

    def possible(self, belief: Belief) -> tuple[str, ...]:
        """What might have been heard instead, as labels of events, without faults and what applications choose."""
        events = self._states.network.events
        numbers = self._states.enabled(belief) - self._hidden
        return tuple(sorted(events[number].label for number in numbers if not events[number].may_never_happen))

    def _heard(self, belief: Belief, sign: Sign) -> Belief:
        if sign.of == BOTH and sign.name in _ANSWERED_FOR_EACH:
            return self._in_either_order(belief, sign)
        if sign.name in self._unheard[0 if sign.of == BOTH else sign.of]:
            return belief
        if sign.name == AT_REST:
            return self._at_rest(belief)
        before = self._with_last_words(belief, sign) if sign.name in _LANE_OF_CRASH else belief
        if sign.name in SESSION_ENDS:  # what the application was doing it has given up
            before = self._closure(before | self._fired(before, self._named(_DONE, sign.consumer)))
        if sign.name == Event.DEAD_LETTERED:
            before = self._closure(before | self._fired(before, self._named(_REJECTS, sign.consumer)))
        events = self._events(sign)
        after = self._fired(before, events)
        if sign.certainty is Certainty.PERHAPS:
            after |= belief
        elif sign.certainty is Certainty.IF_POSSIBLE or sign.name in FAULTS or sign.name in {BROKEN, CONSUMER_BROKEN}:
            possible = self._states.after(before, events)
            after |= {state for state in before if not possible[state]}
        if sign.name in _AFTER_A_BREAK:
            after |= self._after_a_break(after if sign.name == CONSUMER_BROKEN else self._fired(before, events), sign)
        return self._closure(frozenset(after))

    def _after_a_break(self, hit: set[int], sign: Sign) -> set[int]:
        """What its client leads to when it finds the connection broken, from the states ``hit``."""
        given_up = self._named(_AFTER_A_BREAK[sign.name], sign.consumer)
        if sign.name != CONSUMER_BROKEN and not self._transacted:
            return set()
        broken = self._closure(frozenset(hit))
        return self._fired(broken, given_up) | broken

    def _in_either_order(self, belief: Belief, sign: Sign) -> Belief:
        """One call, or its answer, is an event of each of two messages, unless that of one covers the other."""
        covers = sign.name == _CALL_FOR_BOTH and sign.certainty is Certainty.CERTAIN
        found: set[int] = set()
        for one in (1, BOTH - 1):
            other = dataclasses.replace(sign, of=BOTH - one)
            if covers:
                other = dataclasses.replace(other, certainty=Certainty.IF_POSSIBLE)
            found |= self.hear(self.hear(belief, dataclasses.replace(sign, of=one)), other)
        return frozenset(found)

    def _at_rest(self, belief: Belief) -> Belief:
        due = self._states.after(belief, self._due)
        return frozenset(state for state in belief if not due[state] and not self._states.in_its_queue(state))

    def _with_last_words(self, belief: Belief, sign: Sign) -> Belief:
        """A process may die between what it did last and the line that would tell of it, which stands before calls."""
        lane, events = _LANE_OF_CRASH[sign.name], self._states.network.events
        last = frozenset(
            number
            for number, event in enumerate(events)
            if self._states.lanes[event.name] is lane
            and not event.may_never_happen
            and event.name not in _CALLS_OF_APPLICATIONS
            and _concerns(event, sign.consumer)
        )
        return self._closure(belief | self._fired(belief, last))

    def _events(self, sign: Sign) -> frozenset[int]:
        events = self._states.network.events
        return frozenset(
            number
            for number in self._of_sign[sign.name]
            if _concerns(events[number], sign.consumer) and self._is_of(events[number], sign.of)
        )

    def _named(self, names: Collection[str], consumer: int) -> frozenset[int]:
        events = enumerate(self._states.network.events)
        return frozenset(number for number, event in events if event.name in names and _concerns(event, consumer))

    def _fired(self, belief: Collection[int], events: frozenset[int]) -> set[int]:
        after = self._states.after(belief, events)
        return set(itertools.chain.from_iterable(map(after.__getitem__, belief)))

    def _closure(self, belief: Belief) -> Belief:
        """``belief`` and all that hidden events lead to."""
        if belief not in self._closures:
            found, front = set(belief), set(belief)
            while front:
                front = self._fired(front, self._hidden) - found
                found |= front
            self._states.believed += len(belief) + len(found)
            if self._states.believed > _MOST_BELIEVED:
                raise TooManyStatesError(f"a message may be in too many states at once (more than {_MOST_BELIEVED:,})")
            self._closures[belief] = frozenset(found)
        return self._closures[belief]


def _concerns(event: NetworkEvent, consumer: int) -> bool:
    return not event.consumer or not consumer or event.consumer == consumer
