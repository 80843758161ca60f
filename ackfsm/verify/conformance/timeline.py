"""Faults that explain many messages at once: as few moments as a greedy choice finds.

Each message says by which faults it would be explained, and when each would have had to happen (an :class:`Option`).
The moment that explains the most messages is chosen first, and so on; then the moments of each fault and victim are
chosen again, the fewest that lie in all intervals that were chosen (sorted by their ends, each interval without a
moment gets one at its end).  The first choice is no optimum, the second one is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.terms import Fault
from ackfsm.verify.context.circumstances import OF_MESSAGES

__all__ = ["Family", "Moment", "Option", "Unrecorded", "UnrecordedFault", "joined", "together"]

_LIKELY: Final = (
    Fault.CONSUMER_LINK_LOSS,
    Fault.PRODUCER_LINK_LOSS,
    Fault.CONSUMER_CRASH,
    Fault.PRODUCER_CRASH,
    Fault.BROKER_KILL,
    Fault.LISTENER_EXCEPTION,
    Fault.BROKER_CRASH,
    Fault.REJECTION,
    Fault.JOURNAL_FAILURE,
)
"""Of faults that explain as many messages the first of these is told: what happens often, and does little else."""

_MOST_ROUNDS: Final = 1_000
"""So many moments are chosen by how many messages they explain; what is left is explained message by message."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnrecordedFault:
    """An unrecorded fault that explains messages.

    Attributes:
        fault: its kind.
        victim: the name of the process that it hit; ``None`` if that is the broker, or nobody knows.
        begin, end: nanoseconds; a line that tells of it would stand between them.
        messages: how many messages it explains.
        times: how often it happened; more than once only for faults of single messages.
    """

    fault: Fault
    victim: str | None
    begin: int
    end: int
    messages: int
    times: int = 1

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        names = {"begin": "from", "end": "to"}
        return {names.get(name, name): value for name, value in dataclasses.asdict(self).items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """The unrecorded faults that explain messages that are no run of the model.

    Attributes:
        kinds: the faults that may have happened unrecorded.
        assumed: whether the verdict rests on them; else they are what might be assumed.
        messages: how many messages they explain.
        unexplained: how many no number of them explains.
        undecided: of how many that is open.
        timeline: few faults that explain all these messages, in the order of time.
        actions: optional events of ``spec/events.yaml`` that these kinds bring about, where several consumers compete.
    """

    kinds: tuple[Fault, ...]
    assumed: bool
    messages: int
    unexplained: int
    undecided: int
    timeline: tuple[UnrecordedFault, ...]
    actions: tuple[str, ...] = ()

    @property
    def explained(self) -> bool | None:
        """Whether they explain every message; ``None`` if that is open."""
        return False if self.unexplained else None if self.undecided else True

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "kinds": [fault.value for fault in self.kinds],
            "assumed": self.assumed,
            "explained": self.explained,
            "messages": self.messages,
            "unexplained": self.unexplained,
            "undecided": self.undecided,
            "timeline": [each.as_json() for each in self.timeline],
        }


def together(parts: Sequence[Unrecorded]) -> Unrecorded:
    """Return the time line of several parts of one history, at least one; faults that may be the same are one."""
    found = list(parts[0].timeline)
    for part in parts[1:]:
        found = _met(found, part.timeline)
    return dataclasses.replace(
        parts[0],
        messages=sum(part.messages for part in parts),
        unexplained=sum(part.unexplained for part in parts),
        undecided=sum(part.undecided for part in parts),
        timeline=tuple(
            sorted(found, key=lambda each: (each.begin, each.end, _LIKELY.index(each.fault), each.victim or ""))
        ),
        actions=tuple(dict.fromkeys(action for part in parts for action in part.actions)),
    )


def _met(found: list[UnrecordedFault], more: Sequence[UnrecordedFault]) -> list[UnrecordedFault]:
    """Return the faults of two parts; two with a moment in common are one, except faults of single messages."""
    apart, left = list[UnrecordedFault](), list(found)
    for each in more:
        other = next((other for other in left if _may_be_same(each, other)), None)
        if other is None:
            apart.append(each)
            continue
        left.remove(other)
        begin, end = max(each.begin, other.begin), min(each.end, other.end)
        apart.append(dataclasses.replace(each, begin=begin, end=end, messages=each.messages + other.messages))
    return [*left, *apart]


def _may_be_same(one: UnrecordedFault, other: UnrecordedFault) -> bool:
    alike = (one.fault, one.victim) == (other.fault, other.victim) and one.fault not in OF_MESSAGES
    return alike and one.begin <= other.end and other.begin <= one.end


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """Faults that may be one and the same.

    Attributes:
        fault: of which kind.
        victim: the code of the process that it hit; negative if it is none, or unknown.
        message: the only message that such a fault concerns, if it is one of messages.
    """

    fault: Fault
    victim: int
    message: int | None = None

    @property
    def likely(self) -> tuple[int, int, int]:
        """The first of several has the least."""
        return _LIKELY.index(self.fault), self.victim, -1 if self.message is None else self.message


@dataclasses.dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """A fault of a ``family`` from ``low`` to ``high`` would explain a message; ``detail`` is the caller's."""

    family: Family
    low: int
    high: int
    detail: T


@dataclasses.dataclass(slots=True)
class Moment:
    """One fault that happened from ``low`` to ``high`` and explains ``messages``."""

    family: Family
    low: int
    high: int
    messages: set[int] = dataclasses.field(default_factory=set)


Further = Callable[[int, Option[T], Moment], Sequence[Option[T]]]


def joined(options: Mapping[int, Sequence[Option[T]]], further: Further[T]) -> list[Moment]:
    """Few moments that explain every message of ``options``, in the order of time.

    ``further`` is told of each option that was taken, with its moment, and has the options for the next fault of that
    message, if it takes one more.
    """
    joining = _Joining(dict(options), further)
    joining.join()
    return sorted(joining.moments(), key=lambda each: (each.low, each.high, each.family.likely))


class _Joining(Generic[T]):
    def __init__(self, pending: dict[int, Sequence[Option[T]]], further: Further[T]) -> None:
        self._pending = pending
        self._further = further
        self._moments: dict[Family, list[Moment]] = {}
        self._taken: dict[Family, list[tuple[int, Option[T]]]] = {}

    def join(self) -> None:
        for _ in range(_MOST_ROUNDS):
            best = self._best()
            if best is None or best[0] == 1:
                break
            self._choose(best[2], best[1])
        while self._pending:
            message = next(iter(self._pending))
            option = min(self._pending[message], key=lambda each: (each.family.likely, each.low))
            self._take(message, option, self._new(option))

    def moments(self) -> Iterator[Moment]:
        """Yield the moments of each family, chosen once more if that makes them fewer."""
        for family, moments in self._moments.items():
            taken = self._taken[family]
            again = _stabbed(family, taken) if len({message for message, _ in taken}) == len(taken) else moments
            yield from min(moments, again, key=len)

    def _best(self) -> tuple[int, int, Family] | None:
        """What explains the most messages: how many, when, and which faults."""
        intervals: dict[Family, list[tuple[int, int]]] = {}
        for options in self._pending.values():
            for each in options:
                intervals.setdefault(each.family, []).append((each.low, each.high))
        found = ((*_deepest(np.array(its, np.int64)), family) for family, its in intervals.items())
        return min(found, key=lambda each: (-each[0], each[2].likely), default=None)

    def _choose(self, family: Family, at: int) -> None:
        chosen = [
            (message, option)
            for message, options in self._pending.items()
            for option in options[:]
            if option.family == family and option.low <= at <= option.high
        ]
        moment = self._new(chosen[0][1])
        for message, option in chosen:
            _narrow(moment, message, option)
        for message, option in dict(chosen).items():
            self._take(message, option, moment)

    def _new(self, option: Option[T]) -> Moment:
        moment = Moment(option.family, option.low, option.high)
        self._moments.setdefault(option.family, []).append(moment)
        return moment

    def _take(self, message: int, option: Option[T], moment: Moment) -> None:
        """Explain ``message`` by ``moment``, and the rest of it by the moments that exist."""
        _narrow(moment, message, option)
        self._taken.setdefault(option.family, []).append((message, option))
        self._pending[message] = self._further(message, option, moment)
        if not self._pending[message]:
            del self._pending[message]
            return
        for each in self._pending[message]:
            for other in self._moments.get(each.family, ()):
                if message not in other.messages and each.low <= other.high and other.low <= each.high:
                    self._take(message, each, other)
                    return


def _narrow(moment: Moment, message: int, option: Option[T]) -> None:
    moment.low, moment.high = max(moment.low, option.low), min(moment.high, option.high)
    moment.messages.add(message)


def _deepest(intervals: Ints) -> tuple[int, int]:
    """In how many of ``intervals`` one moment can lie, and that moment."""
    low, high = np.sort(intervals[:, 0]), np.sort(intervals[:, 1])
    depth = np.searchsorted(low, high, side="right") - np.searchsorted(high, high, side="left")
    best = int(depth.argmax())
    return int(depth[best]), int(high[best])


def _stabbed(family: Family, taken: Sequence[tuple[int, Option[T]]]) -> list[Moment]:
    """Return the fewest moments such that each interval has one."""
    found: list[Moment] = []
    for message, option in sorted(taken, key=lambda each: each[1].high):
        if not found or option.low > found[-1].high:
            found.append(Moment(family, option.low, option.high))
        _narrow(found[-1], message, option)
    return found
