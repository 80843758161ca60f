"""The smallest explanation of a message by unrecorded faults, and the time line of all messages.

A life that is no run of the model may be one if a fault happened that no line tells.  Such a fault is heard as a
recorded one would be, at some moment between two signs, and costs 1; the states that so many of them lead to are found
level by level, so that the first level at which the life is a run has the fewest (a 0-1 breadth-first search).  Where
no level has anything new, no faults explain the life, however many.

A *gap* is a moment between signs: the cut of those that came before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import Events
from ackfsm.terms import Fault
from ackfsm.verify.conformance.life import Cut, Heard, Life, Walk
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance, Judge
from ackfsm.verify.conformance.observer import Belief, Observer, TooManyStatesError
from ackfsm.verify.conformance.timeline import Family, Moment, Option, Unrecorded, UnrecordedFault, joined
from ackfsm.verify.conformance.tokens import NOBODY, OTHERS
from ackfsm.verify.context.actions import TAKEN_ELSEWHERE
from ackfsm.verify.context.circumstances import EFFECT, OF_CONSUMERS, OF_MESSAGES, OF_PRODUCERS
from ackfsm.verify.context.signs import Sign

MOST_FAULTS: Final = 3
"""So many unrecorded faults may explain one message; that it takes more is told, and leaves the verdict open."""

_MOST_LARGE: Final = 20
"""Lives of a history that are searched with each kind of fault alone if all of them take too many states."""

_MOST_FOR_A_HINT: Final = 2_000
"""Messages that are looked at although nobody has asked which faults would explain them."""

_MOST_IN_VAIN: Final = 50
"""Different lives that no faults explain; once there are so many, the others are tried with a single fault."""

_AT_CONSUMERS: Final = OF_CONSUMERS | {Fault.LISTENER_EXCEPTION}


@dataclasses.dataclass(frozen=True, slots=True)
class Smallest:
    """The fewest unrecorded faults with which a life is a run of the model.

    Attributes:
        faults: how many.
        first: what may be the first of them, and in which gap.
    """

    faults: int
    first: tuple[tuple[Sign, Cut], ...]


def smallest(life: Life, observer: Observer, faults: Sequence[Sign], most: int | None = None) -> Smallest | None:
    """The fewest of ``faults`` (each may happen several times) that make ``life`` a run.

    ``None`` if no number of them does, or not ``most`` of them.

    Raises :class:`TooManyStatesError` as the observer does, and if there are too many orders of what was heard.
    """
    walk = _WithFaults(life, observer, faults)
    start = walk.first()
    fewest = walk.fewest(start, most)
    if fewest is None:
        return None
    return Smallest(fewest, tuple(walk.first_faults(start, fewest)) if 0 < fewest <= MOST_FAULTS else ())


class _WithFaults(Walk):
    """The walk of a life with faults that no line tells, at a price."""

    def __init__(self, life: Life, observer: Observer, faults: Sequence[Sign]) -> None:
        super().__init__(life, observer)
        self._faults = faults
        self._fewest: dict[tuple[Cut, Belief, int], bool] = {}

    def fewest(self, start: Mapping[Cut, Belief], most: int | None = None) -> int | None:
        """How many faults a run needs from ``start``; ``None`` if none is one, with any number or ``most``."""
        seen: dict[Cut, Belief] = {}
        level, count = self.spread(start, seen), 0
        while level and not self.rested(self.end(level)):
            if count == most:
                return None
            level, count = self.spread(self._after_a_fault(level), seen), count + 1
        return count if level else None

    def first_faults(self, start: Mapping[Cut, Belief], fewest: int) -> Iterator[tuple[Sign, Cut]]:
        """What may be the first of so many faults, and where."""
        for gap, belief in self.spread(start, {}).items():
            for fault in self._faults:
                after = self._observer.hear(belief, fault) - belief
                if after and self._suffices(gap, after, fewest - 1):
                    yield fault, gap

    def _suffices(self, gap: Cut, belief: Belief, most: int) -> bool:
        key = gap, belief, most
        if key not in self._fewest:
            self._fewest[key] = self.fewest({gap: belief}, most) is not None
        return self._fewest[key]

    def _after_a_fault(self, level: Mapping[Cut, Belief]) -> Mapping[Cut, Belief]:
        return {
            gap: frozenset[int]().union(*(self._observer.hear(belief, fault) for fault in self._faults))
            for gap, belief in level.items()
        }


def with_fault(lived: Lived, fault: Sign, gap: Cut) -> Lived:
    """``lived`` with one more sign, a ``fault`` in ``gap``; its row is -1."""
    heard = lived.life.heard
    before = [place for place in range(len(heard)) if gap >> place & 1]
    after = [place for place in range(len(heard)) if not gap >> place & 1]
    told = Heard(fault, max((each.lane for each in heard), default=0) + 1)
    order = [*before, None, *after]
    return dataclasses.replace(
        lived,
        life=Life((*lived.life.without(*after).heard, told, *lived.life.without(*before).heard), lived.life.at_rest),
        rows=tuple(_UNTOLD if place is None else lived.rows[place] for place in order),
    )


_UNTOLD: Final = -1
"""The row of what no line tells."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Detail:
    """What an option is of.

    Attributes:
        lived: the life of a message, with the faults that are chosen by now.
        chosen: from when to when these happened, in the order of their signs.
        fault: the next one.
        gaps: those that it may be in, each with its times.
        more: how many more are needed.
    """

    lived: Lived
    chosen: tuple[tuple[int, int], ...]
    fault: Sign
    gaps: tuple[tuple[Cut, int, int], ...]
    more: int


def unrecorded_cause(fault: Fault) -> str:
    """What an unrecorded ``fault`` is called among causes."""
    return f"unrecorded {fault}"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Assumption:
    """The result of assuming unrecorded faults.

    Attributes:
        summary: for people, with the time line.
        undecided: for each reason the messages of which that is open, ascending.
        causes: for each message that is a run of the model with some of them, the kinds of these.
    """

    summary: Unrecorded
    undecided: Mapping[str, Ints]
    causes: Mapping[int, frozenset[Fault]]


def assumption_of(
    conformance: Conformance, events: Events, messages: Ints, assumed: Collection[Fault]
) -> Assumption | None:
    """Return the fewest ``assumed`` faults that explain ``messages``, none of them a run of the model.

    If none are assumed and the history records none either, what any single fault would explain is a hint; there is
    none (``None``) if the history records faults, or nothing is to be explained, or too many messages.
    """
    if not assumed and (events.faults() or not 0 < len(messages) <= _MOST_FOR_A_HINT):
        return None
    faults = assumed or frozenset(Fault)
    search = _Search(conformance, events, faults, thoroughly=bool(assumed))
    options, undecided = dict[int, Sequence[Option[_Detail]]](), dict[str, list[int]]()
    for message in messages.tolist():
        found = search.explain(message)
        if isinstance(found, str):
            undecided.setdefault(found, []).append(message)
        elif found:
            options[message] = found
    moments = joined(options, search.further)
    causes: dict[int, set[Fault]] = {}
    for moment in moments:
        for message in moment.messages:
            causes.setdefault(message, set()).add(moment.family.fault)
    summary = Unrecorded(
        kinds=tuple(fault for fault in Fault if fault in faults),
        assumed=bool(assumed),
        messages=len(options),
        unexplained=len(messages) - len(options) - sum(map(len, undecided.values())),
        undecided=sum(map(len, undecided.values())),
        timeline=tuple(_told(moments, events)),
        actions=(TAKEN_ELSEWHERE,) if not OF_CONSUMERS.isdisjoint(faults) and conformance.recorded.compete() else (),
    )
    return Assumption(
        summary=summary,
        undecided=MappingProxyType({why: np.array(each, np.int64) for why, each in undecided.items()}),
        causes=MappingProxyType({message: frozenset(each) for message, each in causes.items()}),
    )


def _told(moments: Sequence[Moment], events: Events) -> Iterator[UnrecordedFault]:
    """The moments for people: faults of single messages are counted for each victim."""
    groups: dict[object, list[Moment]] = {}
    for number, moment in enumerate(moments):
        family = moment.family
        groups.setdefault(number if family.message is None else (family.fault, family.victim), []).append(moment)
    names = events.names["process"]
    for its in groups.values():
        victim = its[0].family.victim
        yield UnrecordedFault(
            fault=its[0].family.fault,
            victim=None if victim < 0 else str(names[victim].as_py()),
            begin=min(moment.low for moment in its),
            end=max(moment.high for moment in its),
            messages=sum(len(moment.messages) for moment in its),
            times=len(its),
        )


class _Search:
    """Finds the smallest explanations of the messages of one history; equal lives are searched once."""

    def __init__(
        self, conformance: Conformance, events: Events, faults: Collection[Fault], *, thoroughly: bool
    ) -> None:
        """``thoroughly`` is with more than a single fault for each message, however many states that takes."""
        self._most_in_vain = _MOST_IN_VAIN if thoroughly else 0
        self._in_vain = 0
        self._conformance = conformance
        self._events = events
        self._recorded = conformance.recorded
        self._faults = tuple(fault for fault in Fault if fault in faults)
        self._span = (int(events.t.min()), int(events.t.max())) if len(events) else (0, 0)
        self._judge: Judge = conformance.judge.anew()
        self._large = 0 if thoroughly else _MOST_LARGE
        self._known: dict[tuple[Life, int, int, int], Smallest | str | None] = {}

    def explain(self, message: int) -> Sequence[Option[_Detail]] | str:
        """What may be the first fault of a smallest explanation; none if no faults explain it, or why that is open.

        The signs in the order of their lines are tried first, then every order that they allow.
        """
        best: tuple[Lived, Smallest] | None = None
        why = None
        for form in self._conformance.forms(message):
            lived, found = self._smallest_with_others(self._with_uncertain_calls(form))
            if isinstance(found, str):
                why = found
            elif found is not None and (best is None or found.faults < best[1].faults):
                best = lived, found
            if best is not None and best[1].faults <= 1:
                break
        if best is None:
            return () if why is None else why
        lived, found = best
        if found.faults > MOST_FAULTS:
            return f"it takes more than {MOST_FAULTS} unrecorded faults to explain"
        return tuple(self._options(lived, (), found))

    def further(self, _: int, option: Option[_Detail], moment: Moment) -> Sequence[Option[_Detail]]:
        """What may be the next fault of a message when ``option`` was chosen, in the last gap that ``moment`` allows.

        The states of this search are among those of the search before, so that it ends as that one did.
        """
        detail = option.detail
        if not detail.more:
            return ()
        gap = max(gap for gap, low, high in detail.gaps if low <= moment.high and moment.low <= high)
        earlier = sum(row == _UNTOLD for place, row in enumerate(detail.lived.rows) if gap >> place & 1)
        chosen = (*detail.chosen[:earlier], (moment.low, moment.high), *detail.chosen[earlier:])
        lived = with_fault(detail.lived, detail.fault, gap)
        for faults in (self._faults, (Fault(detail.fault.name),)):
            found = self._held(lived, faults, most=detail.more)
            if isinstance(found, Smallest):
                return tuple(self._options(lived, chosen, found))
        return ()

    def _smallest_with_others(self, form: Lived) -> tuple[Lived, Smallest | str | None]:
        """Among consumers that the message was never handed to as well, unless that takes too many states."""
        beside = not form.consumers or (OTHERS not in form.consumers and self._recorded.others(form))
        if beside and not _AT_CONSUMERS.isdisjoint(self._faults):
            more = form.with_others()
            found = self._smallest(more)
            if found is None or (isinstance(found, Smallest) and found.faults):
                return more, found
        return form, self._smallest(form)

    def _with_uncertain_calls(self, lived: Lived) -> Lived:
        """A call that does not name the message covers nothing of it where its connection broke unseen before."""
        signs = (
            each.sign.if_possible()
            if self._judge.covers(each.sign) and self._events.message[row] != lived.message
            else each.sign
            for each, row in zip(lived.life.heard, lived.rows, strict=True)
        )
        return dataclasses.replace(lived, life=lived.life.with_signs(signs))

    def _smallest(self, lived: Lived) -> Smallest | str | None:
        key = lived.life, int(lived.facts), lived.mode, len(lived.consumers)
        if key not in self._known:
            self._known[key] = self._searched(lived)
        return self._known[key]

    def _searched(self, lived: Lived) -> Smallest | str | None:
        """With all faults; if that takes too many states, with each kind alone: these may not be the fewest."""
        why = self._judge.why_not(lived)
        if why is not None:
            return why
        alone = self._in_vain >= self._most_in_vain
        found = self._held(lived, self._faults, most=1 if alone else None)
        if found is None and alone:
            return "no single unrecorded fault explains it, and no more were tried"
        self._in_vain += found is None
        if not isinstance(found, str) or len(self._faults) == 1 or self._large >= _MOST_LARGE:
            return found
        self._large += 1
        return self._of_one_kind(lived, 1) or (None if alone else self._of_one_kind(lived, MOST_FAULTS)) or found

    def _of_one_kind(self, lived: Lived, most: int) -> Smallest | None:
        """Return the fewest faults of one kind that explain ``lived``, at ``most`` so many; ``None`` if none do."""
        by_kind = [self._held(lived, (fault,), most) for fault in self._faults]
        found = [each for each in by_kind if isinstance(each, Smallest)]
        fewest = min((each.faults for each in found), default=0)
        first = tuple(first for each in found if each.faults == fewest for first in each.first)
        return Smallest(fewest, first) if first else None

    def _held(self, lived: Lived, faults: Sequence[Fault], most: int | None = None) -> Smallest | str | None:
        """A search that runs out of states may have had them from others: then it begins anew, once."""
        why = ""
        for _ in range(1 + (self._judge.states > 0)):
            try:
                return smallest(*self._judge.hearing(lived), self._signs(lived, faults), most)
            except TooManyStatesError as error:
                self._judge, why = self._judge.anew(), str(error)
        return why

    @staticmethod
    def _signs(lived: Lived, faults: Sequence[Fault]) -> Sequence[Sign]:
        """The ``faults`` that may have happened unseen, at each consumer."""
        consumers = range(1, max(1, len(lived.consumers)) + 1)
        return [
            Sign(fault.value, consumer)
            for fault in faults
            for consumer in (consumers if fault in _AT_CONSUMERS else (0,))
        ]

    def _options(self, lived: Lived, chosen: tuple[tuple[int, int], ...], found: Smallest) -> Iterator[Option[_Detail]]:
        """Each fault with its victim and its interval; gaps whose times meet make one interval."""
        low, high = self._moments(lived, chosen)
        by_family: dict[Family, list[Option[_Detail]]] = {}
        for fault, gap in found.first:
            begin, end = self._between(low, high, gap)
            detail = _Detail(lived, chosen, fault, ((gap, begin, end),), found.faults - 1)
            for family in self._families(lived, fault):
                by_family.setdefault(family, []).append(Option(family, begin, end, detail))
        for options in by_family.values():
            yield from _merged(options)

    def _moments(self, lived: Lived, chosen: Iterable[tuple[int, int]]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the first and the last moment of each sign of a life, with the times of the ``chosen`` faults."""
        low, high = (each.tolist() for each in self._recorded.when(lived.rows))
        untold = (place for place, row in enumerate(lived.rows) if row == _UNTOLD)
        for place, (begin, end) in zip(untold, chosen, strict=True):
            low[place], high[place] = begin, end
        return low, high

    def _between(self, low: Sequence[int], high: Sequence[int], gap: Cut) -> tuple[int, int]:
        """When a fault in ``gap`` happened: like a recorded one, up to :data:`EFFECT` before clients notice it."""
        first, last = self._span
        begin = max((each for place, each in enumerate(low) if gap >> place & 1), default=first)
        end = min((each for place, each in enumerate(high) if not gap >> place & 1), default=last)
        end = max(first, min(end, last))
        return min(max(begin - EFFECT, first), end), end

    def _families(self, lived: Lived, fault: Sign) -> Iterator[Family]:
        kind = Fault(fault.name)
        message = lived.message if kind in OF_MESSAGES else None
        victims: Sequence[int] = (NOBODY,)
        if kind in OF_PRODUCERS:
            victims = (self._recorded.producer(lived.message),)
        elif fault.consumer:
            process = lived.consumers[fault.consumer - 1] if lived.consumers else OTHERS
            victims = (process,) if process != OTHERS else self._recorded.others(lived) or victims
        for victim in victims:
            yield Family(kind, victim, message)


def _merged(options: Sequence[Option[_Detail]]) -> Sequence[Option[_Detail]]:
    """Return the ``options`` of one family with overlapping ones joined."""
    found = list[Option[_Detail]]()
    for each in sorted(options, key=lambda option: (option.low, option.high)):
        if found and each.low <= found[-1].high:
            last = found.pop()
            detail = dataclasses.replace(last.detail, gaps=last.detail.gaps + each.detail.gaps)
            found.append(dataclasses.replace(last, high=max(last.high, each.high), detail=detail))
        else:
            found.append(each)
    return found
