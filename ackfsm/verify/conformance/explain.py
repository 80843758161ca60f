"""What conformance says of the anomalies of a history: which of them nothing explains, and what explains the others."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE
from ackfsm.tables import Certainty
from ackfsm.terms import Anomaly, Fault
from ackfsm.text import moment, quoted
from ackfsm.verify.conformance.life import Contradiction
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.conformance.unrecorded import unrecorded_cause
from ackfsm.verify.context.signs import AT_REST, BOTH, Sign
from ackfsm.verify.counting.machines import Machines, fold
from ackfsm.verify.counting.observables import Stream

_ANOTHER: Final = "another consumer"

_NAMED: Final = 64
"""How many characters of an id a sentence has."""

SHOWN: Final = 100
"""How many messages are told of that are no run of the model."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contradicted:
    """A message that is no run of the model.

    Attributes:
        message: its id.
        heard: what was heard of it until then, in words.
        impossible: what was heard then, or :data:`AT_REST`: that nothing followed is impossible.
        possible: what the model has there instead, as labels of events.
        t, line, process, session: of the line that tells it; ``None`` if it is that nothing followed.
        anomalies: the anomalies of the message that nothing explains.
        beside: the id of another message with which it is no run of the model; ``None`` if it is none by itself.
        after: what was heard last of that one before, in words; empty if nothing was.
    """

    message: str
    heard: tuple[str, ...]
    impossible: str
    possible: tuple[str, ...]
    t: int | None
    line: int | None
    process: str | None
    session: str | None
    anomalies: tuple[str, ...]
    beside: str | None = None
    after: str = ""

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        found = dataclasses.asdict(self)
        if self.beside is None:
            del found["beside"], found["after"]
        return found

    def __str__(self) -> str:
        name, instead = quoted(self.message, _NAMED), _or(self.possible)
        other = "" if self.beside is None else quoted(self.beside, _NAMED)
        if self.line is None:
            its = f"{name} and {other} were" if other else f"{name} was"
            return f"{its} at rest, where the model still allows {instead}"
        after = f" after {self.after} of {other}" if self.after else f" beside {other}" if other else ""
        return f"{self._where()}: {self.impossible} of {name}{after}, where the model allows {instead}"

    def _where(self) -> str:
        at = "" if self.t is None else f", {moment(self.t, 6)}"
        of = "" if self.session in {None, self.process} else f", session {quoted(str(self.session), _NAMED)}"
        return f"line {self.line}{at}{of}"


def _or(possible: Sequence[str]) -> str:
    return " or ".join(possible[:4]) or "nothing more of it"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What came of holding every message of a history to the model.

    Attributes:
        messages: how many messages were held to it.
        lives: how many different lives they have.
        states: how many states of the model were met.
        searches: how many times a life was held to the model: in an order of its lines, or without what explains it.
        contradicted: how many are no run of the model.
        unnamed: how many of these have no anomaly that says so.
        examples: the first :data:`SHOWN` of those that are no run of the model.
        undecided: for each reason why nothing was decided, of how many messages.
        pairs: the same of pairs of messages; ``None`` if they were not held to the model.
    """

    messages: int
    lives: int
    states: int
    searches: int
    contradicted: int
    unnamed: int
    examples: tuple[Contradicted, ...]
    undecided: Mapping[str, int]
    pairs: Explanation | None = None

    def as_json(self, of: str = "messages") -> dict[str, Any]:
        """As plain JSON values; ``of`` what they are counts."""
        return {
            of: self.messages,
            "lives": self.lives,
            "states": self.states,
            "searches": self.searches,
            "contradicted": self.contradicted,
            "unnamed": self.unnamed,
            "undecided": dict(self.undecided),
            "examples": [each.as_json() for each in self.examples],
            **({} if self.pairs is None else {"pairs": self.pairs.as_json("pairs")}),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The decisions on the codes that have one anomaly.

    Attributes:
        unexplained: those that nothing explains.
        undecided: those of which nothing was decided.
        causes: what explains the others, each with how many need it.
        by_kind: those that are judged by what their kind is allowed, since no pair of messages tells.
    """

    unexplained: Ints
    undecided: Ints
    causes: Mapping[str, int]
    by_kind: Ints = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))


Need: TypeAlias = tuple[Ints, str, Ints]
"""Messages or transactions, what explains them, and for each the row that tells it (:data:`NONE`: no line).

One that needs several causes stands beside each of them.
"""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class AnomalyCounts:
    """The messages, or the transactions, that have each of the ``anomalies``, and the events that were counted."""

    events: Index
    machines: Machines
    stream: Stream
    anomalies: Mapping[Anomaly, Ints]

    def before(self, stops: tuple[Ints, Ints]) -> Mapping[Anomaly, Ints]:
        """The messages that are no run of the model but had the anomaly before they stopped to be one.

        ``stops`` are those messages, and the row where each stopped to be one, :data:`NONE` where it is the end.
        """
        until = np.full(self.events.count_of("message"), NONE, np.int64)
        messages, rows = stops
        until[messages] = np.where(rows == NONE, len(self.events), rows)
        kept = np.flatnonzero(self.stream.place < until[self.stream.message])
        message = self.stream.message[kept]
        starts = np.flatnonzero(np.diff(message, prepend=NONE))
        states = fold(self.machines, starts, self.stream.observable[kept])
        rested = np.zeros(len(states), bool)
        return {
            anomaly: message[starts[self.machines.means(anomaly, states, rested)]]
            for anomaly in self.anomalies
            if anomaly in self.machines.names
        }


class Cases:
    """The cases that were ``held`` to the model: messages of a history or pairs of them.

    Attributes:
        held: the decisions on all of them.
        contradicted: those that are no run of the model, ascending.
        undecided: those of which nothing was decided, ascending, by the reason.
        open: all of these, ascending.
    """

    _most: int
    """So many different lives are searched for their causes; what the others have is told without one."""
    _around: frozenset[str] = frozenset()
    """The signs of what happens around messages, which no sentence about a pair says of one of them."""

    def __init__(
        self, held: Conformance, counted: AnomalyCounts, contradicted: Ints, undecided: Mapping[str, Ints]
    ) -> None:
        self.held, self._counted, self._events = held, counted, counted.events
        self.contradicted, self.undecided = contradicted, undecided
        self.open = np.unique(np.concatenate([contradicted[:0], *undecided.values()]))

    def _messages(self, case: int) -> tuple[int, ...]:
        """The messages of a case."""
        return (case,)

    def _causes(self, cases: Ints) -> Counter[str]:
        """What explains ``cases``, which are runs of the model, each with how many need it."""
        found = Counter[str]()
        for places in itertools.islice(self.held.alike(cases), self._most):
            for cause in {name for _, name in self.held.needed(int(cases[places[0]]))}:
                found[cause] += len(places)
        return found

    def _needs(self, cases: Ints, of: Ints) -> Iterator[Need]:
        """What explains ``cases``, each ``of`` a message or transaction."""
        for places in self.held.alike(cases):
            for place, cause in self.held.needed(int(cases[places[0]])):
                yield of[places], cause, self.held.rows(cases[places], place)

    def unnamed(self, named: Iterable[Ints]) -> Ints:
        """The contradicted cases that are none of those ``named`` by an anomaly that nothing explains."""
        return np.setdiff1d(self.contradicted, np.concatenate([self.contradicted[:0], *named]))

    def _explanation(self, accused: Mapping[Anomaly, Ints], more: Sequence[Contradicted] = ()) -> Explanation:
        """What came of it: the contradicted cases that anomalies have ``accused``, and ``more`` without an anomaly."""
        examples = (self.contradiction(case, names_of(case, accused)) for case in self.contradicted[:SHOWN].tolist())
        return Explanation(
            messages=self.held.messages,
            lives=len(self.held.decisions),
            states=self.held.judge.states,
            searches=self.held.judge.searches,
            contradicted=len(self.contradicted) + len(more),
            unnamed=len(self.unnamed(accused.values())) + len(more),
            examples=(*examples, *more)[:SHOWN],
            undecided={why: len(cases) for why, cases in self.undecided.items()},
        )

    def _stop(self, case: int) -> tuple[Contradiction, Lived, Sign]:
        """Return the contradiction of a contradicted case, its life, and the impossible sign."""
        decision, lived = self.held.of(case)
        stop, heard = decision.contradiction, lived.life.heard
        if stop is None:
            raise ValueError(f"case {case} is a run of the model")
        return stop, lived, heard[stop.place].sign if stop.place < len(heard) else Sign(AT_REST)

    def contradiction(self, case: int, anomalies: tuple[str, ...] = ()) -> Contradicted:
        """Return the impossible sign of a contradicted case, which has these ``anomalies``."""
        stop, lived, impossible = self._stop(case)
        names = [called(self._events, process) for process in lived.consumers]
        ids = [name_of(self._events, "message", message) for message in self._messages(case)]
        whose = second_or_first(impossible)
        other = BOTH - whose
        before = [each.sign for each in lived.life.heard[: stop.place]]
        last = next((sign for sign in reversed(before) if sign.of & other and sign.name not in self._around), None)
        return Contradicted(
            message=ids[whose - 1],
            heard=tuple(_in_words(sign, names, ids) for sign in before),
            impossible=_in_words(impossible, names),
            possible=tuple(dict.fromkeys(_labelled(label, names, ids) for label in stop.possible)),
            anomalies=anomalies,
            beside=ids[other - 1] if len(ids) > 1 else None,
            after="" if last is None else _in_words(last, names),
            **told_by(self._events, lived.rows[stop.place] if stop.place < len(lived.rows) else NONE),
        )


def second_or_first(sign: Sign) -> int:
    """Of which message of a pair ``sign`` is, 1 or 2; of the first, if it is of both or there is one."""
    return 2 if sign.of == BOTH - 1 else 1


def names_of(case: int, accused: Mapping[Anomaly, Ints]) -> tuple[str, ...]:
    """The anomalies that have ``accused`` a case."""
    return tuple(anomaly.value for anomaly, cases in accused.items() if case in cases)


class Explainer(Cases):
    """Says what explains the anomalies of messages.

    Accused are the ``contradicted`` messages, but those that ``assumed`` faults explain, by message, and those of which
    that is ``open_``, by the reason.
    """

    _most = 500

    def __init__(
        self,
        held: Conformance,
        counted: AnomalyCounts,
        contradicted: Ints,
        assumed: Mapping[int, frozenset[Fault]] = MappingProxyType({}),
        open_: Mapping[str, Ints] = MappingProxyType({}),
    ) -> None:
        self._assumed = assumed
        self._explained = np.array([*assumed], np.int64)
        reasons = held.undecided()
        undecided = {
            why: np.union1d(reasons.get(why, _NOBODY), open_.get(why, _NOBODY)) for why in {**reasons, **open_}
        }
        accused = np.setdiff1d(contradicted, np.concatenate([self._explained, *open_.values()]))
        super().__init__(held, counted, accused, undecided)
        self._before = counted.before(held.stops())

    def life(self, message: int) -> tuple[Lived, str | None] | None:
        """The life of ``message``, and why nothing was decided of it; ``None`` if it was not held to the model."""
        return (self.held.of(message)[1], self.why_undecided(message)) if self.held.held[message] else None

    def why_undecided(self, message: int) -> str | None:
        """Why nothing was decided of ``message``, a clause; ``None`` if something was."""
        return next((why for why, messages in self.undecided.items() if message in messages), None)

    def needs(self, _: Anomaly, messages: Ints) -> Iterator[Need]:
        """Yield the causes of these ``messages``, except undecided ones and ones that are no runs of the model."""
        for message in np.intersect1d(messages, self._explained).tolist():
            for fault in sorted(self._assumed[message]):
                yield np.array([message]), unrecorded_cause(fault), np.array([NONE])
        runs = self._runs(messages)
        yield from self._needs(runs, runs)

    def _runs(self, messages: Ints) -> Ints:
        return np.setdiff1d(messages, np.concatenate([self.contradicted, self._explained, self.open]))

    def explained(self) -> tuple[Explanation, Mapping[Anomaly, Explained]]:
        """What came of it for the history, and for each anomaly."""
        found = {anomaly: self._of(anomaly, messages) for anomaly, messages in self._counted.anomalies.items()}
        return self._explanation({anomaly: each.unexplained for anomaly, each in found.items()}), found

    def _of(self, anomaly: Anomaly, messages: Ints) -> Explained:
        assumed = (self._assumed[message] for message in np.intersect1d(messages, self._explained).tolist())
        causes = Counter(unrecorded_cause(fault) for faults in assumed for fault in faults)
        return Explained(
            unexplained=np.setdiff1d(np.intersect1d(messages, self.contradicted), self._before.get(anomaly, _NOBODY)),
            undecided=np.intersect1d(messages, self.open),
            causes=dict(sorted((causes + self._causes(self._runs(messages))).items())),
        )


_NOBODY: Final = np.empty(0, np.int64)


def called(events: Index, process: int) -> str:
    """The consumer of that number, in sentences."""
    return _ANOTHER if process == OTHERS else quoted(name_of(events, "process", process), _NAMED)


def name_of(events: Index, column: str, code: int) -> str:
    """The name that stands in ``column`` for ``code``."""
    return str(events.names[column][code].as_py())


def told_by(events: Index, row: int) -> Mapping[str, Any]:
    """The line of a ``row``, as the fields of :class:`Contradicted`; nothing if that is :data:`NONE`."""
    if row == NONE:
        return dict.fromkeys(("t", "line", "process", "session"))
    whose = {column: name_of(events, column, int(getattr(events, column)[row])) for column in ("process", "session")}
    return {"t": int(events.t[row]), "line": int(events.line[row]), **whose}


def _in_words(sign: Sign, names: Sequence[str], ids: Sequence[str] = ()) -> str:
    """Return the words for a sign, with the ``names`` of consumers, and the ``ids`` of its messages of a pair."""
    at = f" at {names[sign.consumer - 1]}" if sign.consumer else ""
    whose = " and ".join(quoted(name, _NAMED) for of, name in enumerate(ids, start=1) if sign.of & of)
    perhaps = "perhaps " if sign.certainty is Certainty.PERHAPS else ""
    return f"{perhaps}{sign.name}{at}{f' of {whose}' if whose else ''}"


def _labelled(label: str, names: Sequence[str], ids: Sequence[str]) -> str:
    """The label of an event with the consumer's name for its number, and of a pair the message's id.

    A number after those of ``names`` is another's.
    """
    event, _, index = label.partition("(")
    parts = index.rstrip(")").split(",")
    whose = f" of {quoted(ids[int(index[1]) - 1], _NAMED)}" if index.startswith("m") and len(ids) > 1 else ""
    consumer = next((int(part[1:]) for part in parts if part.startswith("c")), 0)
    at = f" at {dict(enumerate(names, start=1)).get(consumer, _ANOTHER)}" if consumer and names else ""
    return f"{event}{whose}{at}"
