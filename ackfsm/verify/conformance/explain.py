"""What conformance says of the anomalies of a history: which of them nothing explains, and what explains the others."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import Events
from ackfsm.history.joins import NONE
from ackfsm.history_format import Event
from ackfsm.tables import Certainty
from ackfsm.terms import Anomaly
from ackfsm.text import moment, quoted
from ackfsm.verify.conformance.life import Heard
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance, Needed
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.conformance.unrecorded import Assumption, unrecorded_cause
from ackfsm.verify.context.signs import AT_REST
from ackfsm.verify.counting.machines import Machines, fold
from ackfsm.verify.counting.observables import Stream

__all__ = [
    "SHOWN",
    "Contradicted",
    "Explained",
    "Explainer",
    "Explanation",
    "Needs",
    "anomalies_before",
    "called",
    "in_words",
    "name_of",
    "with_names",
]

_ANOTHER: Final = "another consumer"

_NAMED: Final = 64
"""How many characters of an id a sentence has."""

SHOWN: Final = 100
"""How many messages are told of that are no run of the model."""

_LIVES_EXPLAINED: Final = 500
"""Different lives with anomalies of which the cause is searched; what the others have is told without one."""


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
    """What was decided of those, by code, that have one anomaly.

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Needs:
    """What explains messages or transactions: each with one cause, and the row that tells it (:data:`NONE`: no line).

    One that needs several causes stands here with each of them.
    """

    of: Ints
    cause: tuple[str, ...]
    row: Ints

    @classmethod
    def joined(cls, parts: Iterable[tuple[Ints, str, Ints]]) -> Needs:
        """All that ``parts`` say: of whom, the cause, and the row for each of them."""
        told = list(parts)
        nothing = np.empty(0, np.int64)
        return cls(
            of=np.concatenate([nothing, *(of for of, _, _ in told)]),
            cause=tuple(cause for of, cause, _ in told for _ in range(len(of))),
            row=np.concatenate([nothing, *(row for _, _, row in told)]),
        )


class Explainer:
    """Says what explains the ``anomalies``, given as the messages that have them.

    Accused are the ``contradicted`` messages, but those that an ``assumption`` explains or leaves open, and those that
    what is ``unseen`` may explain: the messages, by the reason why nothing is decided of them.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what was counted, and from what
        self,
        conformance: Conformance,
        events: Events,
        machines: Machines,
        stream: Stream,
        anomalies: Mapping[Anomaly, Ints],
        contradicted: Ints,
        assumption: Assumption | None = None,
        unseen: Mapping[str, Ints] = MappingProxyType({}),
    ) -> None:
        self._conformance = conformance
        self._events = events
        self._anomalies = anomalies
        self._assumption = assumption
        self.contradicted = contradicted
        """The messages that are no run of the model, ascending, but those that are assumed to be one."""
        self._open = dict(unseen)
        self._assumed = np.concatenate([contradicted[:0], *unseen.values()])
        if assumption is not None:
            self._open |= assumption.undecided
            self._assumed = np.concatenate([self._assumed, assumption.explained, *assumption.undecided.values()])
        self.contradicted = np.setdiff1d(contradicted, self._assumed)
        self._before = anomalies_before(events, machines, stream, anomalies, conformance.stops())
        self._needed: dict[int, Needed] = {}

    def life(self, message: int) -> tuple[Lived, str | None] | None:
        """The life of ``message``, and why nothing was decided of it; ``None`` if it was not held to the model."""
        if not self._conformance.held[message]:
            return None
        decision, lived = self._conformance.of(message)
        unseen = (why for why, messages in self._open.items() if message in messages)
        return lived, next(unseen, decision.undecided)

    def needs(self, messages: Ints) -> Needs:
        """What explains these ``messages``; those that are no runs of the model, or undecided, are not among them."""
        return Needs.joined(self._needs(messages))

    def _needs(self, messages: Ints) -> Iterator[tuple[Ints, str, Ints]]:
        if self._assumption is not None:
            for message in np.intersect1d(messages, self._assumption.explained).tolist():
                for fault in sorted(self._assumption.causes[message]):
                    yield np.array([message]), unrecorded_cause(fault), np.array([NONE])
        for alike in self._conformance.alike(self._runs(messages)):
            if self._conformance.of(int(alike[0]))[0].undecided is None:
                for place, cause in self._needed_by(int(alike[0])):
                    yield alike, cause, self._conformance.rows(alike, place)

    def _runs(self, messages: Ints) -> Ints:
        return np.setdiff1d(messages, np.concatenate([self.contradicted, self._assumed]))

    def _needed_by(self, message: int) -> Needed:
        """What the life of ``message`` needs; messages of equal lives need the same, and the first was asked before."""
        if message not in self._needed:
            _, lived = self._conformance.of(message)
            self._needed[message] = self._conformance.needed(lived, (Event.RESEND.value,))
        return self._needed[message]

    def undecided(self) -> Ints:
        """The messages of which nothing was decided, ascending."""
        found = [*self._conformance.undecided().values(), *self._open.values()]
        return np.unique(np.concatenate([self.contradicted[:0], *found]))

    def explained(self) -> tuple[Explanation, Mapping[Anomaly, Explained]]:
        """What came of it for the history, and for each anomaly."""
        by_anomaly = {anomaly: self._of(anomaly, messages) for anomaly, messages in self._anomalies.items()}
        explanation = Explanation(
            messages=self._conformance.messages,
            lives=self._conformance.lives,
            states=self._conformance.states,
            searches=self._conformance.searches,
            contradicted=len(self.contradicted),
            unnamed=len(self.unnamed(by_anomaly.values())),
            examples=tuple(self._examples(by_anomaly)),
            undecided=dict(self._undecided()),
        )
        return explanation, by_anomaly

    def unnamed(self, by_anomaly: Iterable[Explained]) -> Ints:
        """The messages that are no run of the model although no anomaly says so that nothing explains."""
        return np.setdiff1d(
            self.contradicted, np.concatenate([self.contradicted[:0], *(each.unexplained for each in by_anomaly)])
        )

    def _undecided(self) -> Mapping[str, int]:
        found = Counter({why: len(messages) for why, messages in self._conformance.undecided().items()})
        found.update({why: len(messages) for why, messages in self._open.items()})
        return found

    def _of(self, anomaly: Anomaly, messages: Ints) -> Explained:
        unexplained = np.setdiff1d(np.intersect1d(messages, self.contradicted), self._before.get(anomaly, []))
        causes, undecided = Counter[str](), [np.intersect1d(messages, each) for each in self._open.values()]
        if self._assumption is not None:
            causes = self._assumption.count_causes(messages)
        for number, alike in enumerate(self._conformance.alike(self._runs(messages))):
            message = int(alike[0])
            if self._conformance.of(message)[0].undecided is not None:
                undecided.append(alike)
            elif number < _LIVES_EXPLAINED:
                for cause in {name for _, name in self._needed_by(message)}:
                    causes[cause] += len(alike)
        return Explained(
            unexplained=unexplained,
            undecided=np.concatenate([messages[:0], *undecided]),
            causes=dict(sorted(causes.items())),
        )

    def _examples(self, by_anomaly: Mapping[Anomaly, Explained]) -> Iterable[Contradicted]:
        for message in self.contradicted[:SHOWN].tolist():
            anomalies = tuple(anomaly.value for anomaly, each in by_anomaly.items() if message in each.unexplained)
            yield self.contradiction(message, anomalies)

    def contradiction(self, message: int, anomalies: tuple[str, ...] = ()) -> Contradicted:
        """What is impossible of a contradicted ``message``, which has these ``anomalies``."""
        decision, lived = self._conformance.of(message)
        stop = decision.contradiction
        if stop is None:
            raise ValueError(f"message {message} is a run of the model")
        heard, events = lived.life.heard, self._events
        names = [called(events, process) for process in lived.consumers]
        row = lived.rows[stop.place] if stop.place < len(heard) else None
        return Contradicted(
            message=name_of(events, "message", message),
            heard=tuple(in_words(each, names) for each in heard[: stop.place]),
            impossible=AT_REST if row is None else in_words(heard[stop.place], names),
            possible=tuple(dict.fromkeys(with_names(label, names) for label in stop.possible)),
            t=None if row is None else int(events.t[row]),
            line=None if row is None else int(events.line[row]),
            process=None if row is None else name_of(events, "process", int(events.process[row])),
            session=None if row is None else name_of(events, "session", int(events.session[row])),
            anomalies=anomalies,
        )


def called(events: Events, process: int) -> str:
    """The consumer of that number, in sentences."""
    return _ANOTHER if process == OTHERS else quoted(name_of(events, "process", process), _NAMED)


def name_of(events: Events, column: str, code: int) -> str:
    """The name that stands in ``column`` for ``code``."""
    return str(events.names[column][code].as_py())


def anomalies_before(
    events: Events, machines: Machines, stream: Stream, anomalies: Collection[Anomaly], stops: tuple[Ints, Ints]
) -> Mapping[Anomaly, Ints]:
    """The messages that are no run of the model but had the anomaly before they stopped to be one.

    ``stops`` are those messages, and the row where each stopped to be one, :data:`NONE` where it is the end.
    """
    until = np.full(events.count_of("message"), NONE, np.int64)
    messages, rows = stops
    until[messages] = np.where(rows == NONE, len(events), rows)
    kept = np.flatnonzero(stream.place < until[stream.message])
    message = stream.message[kept]
    starts = np.flatnonzero(np.diff(message, prepend=NONE))
    states = fold(machines, starts, stream.observable[kept])
    rested = np.zeros(len(states), bool)
    return {
        anomaly: message[starts[machines.means(anomaly, states, rested)]]
        for anomaly in anomalies
        if anomaly in machines.names
    }


def in_words(heard: Heard, names: Sequence[str]) -> str:
    """What was heard, with the ``names`` of consumers."""
    sign = heard.sign
    at = f" at {names[sign.consumer - 1]}" if sign.consumer else ""
    return f"{'perhaps ' if sign.certainty is Certainty.PERHAPS else ''}{sign.name}{at}"


def with_names(label: str, names: Sequence[str]) -> str:
    """The label of an event with the consumer's name for its number; a number after those of ``names`` is another's."""
    event, _, index = label.partition("(")
    consumers = [int(part[1:]) for part in index.rstrip(")").split(",") if part.startswith("c")]
    if not (consumers and names):
        return event
    return f"{event} at {dict(enumerate(names, start=1)).get(consumers[0], _ANOTHER)}"
