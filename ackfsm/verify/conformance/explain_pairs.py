"""What holding pairs of messages to the model says of the anomalies of a history."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history.victims import OF_THE_BROKER
from ackfsm.history_format import Event
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration
from ackfsm.text import quoted
from ackfsm.verify.conformance.explain import (
    SHOWN,
    Contradicted,
    Explained,
    Explanation,
    Needs,
    anomalies_before,
    called,
    in_words,
    name_of,
    with_names,
)
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance, Needed, held, untold
from ackfsm.verify.conformance.pair_judge import PairJudge
from ackfsm.verify.conformance.pairs import Why, pairs_of
from ackfsm.verify.context.signs import AT_REST, BOTH, DELIVERED_SOMEHOW
from ackfsm.verify.counting.count import Halved, reordered
from ackfsm.verify.counting.machines import Machines
from ackfsm.verify.counting.observables import Stream

__all__ = ["PairExplainer"]

_NAMED: Final = 64
"""How many characters of an id a sentence has."""

_OTHER_SESSION: Final = "another session of its producer"
"""What explains that a message was overtaken by those that its own session did not send."""

_LIVES_EXPLAINED: Final = 50
"""Different lives of pairs of which the cause is searched."""


_EXCLUSIVE: Final = "two consumers held messages of an exclusive queue at once, which the model could not be held to"


class PairExplainer:
    """Says what pairs explain of the ``anomalies``, given as the messages or transactions that have them."""

    def __init__(  # noqa: PLR0913, PLR0917 - what was counted, from what, and what it is held to
        self,
        conformance: Conformance,
        events: Index,
        machines: Machines,
        stream: Stream,
        anomalies: Mapping[Anomaly, Ints],
        doubted: Ints,
        specification: Specification,
        configuration: Configuration,
        halved: Halved | None = None,
    ) -> None:
        """``halved`` are transactions that no pair tells of, and that no run of the model has."""
        self._events = events
        self._around = specification.recording.around
        self._halved = halved
        self._anomalies = anomalies
        self._pairs = pairs_of(events, conformance, configuration, anomalies, doubted)
        recorded = conformance.recorded.of_pairs(self._pairs.first, self._pairs.second)
        judge = PairJudge(specification, configuration, untold(events), self._pairs.urgent)
        self._held = held(recorded, judge, len(self._pairs))
        self._contradicted = self._held.contradicted()
        undecided = self._held.undecided().values()
        self._decided = np.setdiff1d(np.arange(len(self._pairs)), np.concatenate([self._contradicted[:0], *undecided]))
        stops = self._stops()
        self._came_again = stops[0]
        self._lost = self._lost_beside()
        self._needed: dict[int, Needed] = {}
        self._before = anomalies_before(events, machines, stream, anomalies, stops)

    def loose(self) -> Ints:
        """The pairs, two messages a row, that are no run of the model in the order of their lines."""
        places = self._held.loose()
        return np.column_stack([self._pairs.first[places], self._pairs.second[places]])

    def explained(
        self, explanation: Explanation, by_message: Mapping[Anomaly, Explained]
    ) -> tuple[Explanation, Mapping[Anomaly, Explained]]:
        """What came of messages alone, with what came of pairs."""
        found = {anomaly: self._with_pairs(anomaly, each) for anomaly, each in by_message.items()}
        found[Anomaly.REORDER] = self._reordered()
        found[Anomaly.TORN_TRANSACTION] = self._torn()
        accused = {anomaly: self._accused(anomaly, each) for anomaly, each in found.items()}
        named = np.concatenate([self._contradicted[:0], *accused.values()])
        unnamed = np.setdiff1d(self._contradicted, named)
        shown = self._contradicted[:SHOWN]
        halves = tuple(told for _, told in self._halves())
        pairs = Explanation(
            messages=len(self._pairs),
            lives=self._held.lives,
            states=self._held.states,
            searches=self._held.searches,
            contradicted=len(self._contradicted) + len(halves),
            unnamed=len(unnamed) + len(halves),
            examples=(
                *(
                    self._told(pair, tuple(anomaly.value for anomaly, its in accused.items() if pair in its))
                    for pair in shown.tolist()
                ),
                *halves,
            )[:SHOWN],
            undecided={why: len(pairs) for why, pairs in self._held.undecided().items()},
        )
        undecided = {**explanation.undecided, **self._exclusive_undecided()}
        return dataclasses.replace(explanation, pairs=pairs, undecided=undecided), found

    def _exclusive_undecided(self) -> Mapping[str, int]:
        """How many messages of exclusive queues two consumers had at once of which it is open whether they may."""
        held = self._pairs.having(Why.HELD_BESIDE)
        count = self._pairs.unheld + len(np.setdiff1d(held, self._decided))
        return {_EXCLUSIVE: count} if count else {}

    def _halves(self) -> Iterator[tuple[int, Contradicted]]:
        """What was consumed in each halved transaction, and what is impossible of it beside what was sent in it."""
        if self._halved is None:
            return
        for consumed, sent, row in zip(*map(np.ndarray.tolist, dataclasses.astuple(self._halved)), strict=True):
            yield consumed, self._half(consumed, sent, row)

    def _half(self, consumed: int, sent: int, row: int) -> Contradicted:
        """``row`` is :data:`NONE` if that nothing followed is impossible."""
        events, told = self._events, row != NONE
        return Contradicted(
            message=name_of(events, "message", consumed),
            heard=(),
            impossible=f"delivered again at {called(events, int(events.process[row]))}" if told else AT_REST,
            possible=("what one transaction consumed and sent as a whole or not at all",),
            t=int(events.t[row]) if told else None,
            line=int(events.line[row]) if told else None,
            process=name_of(events, "process", int(events.process[row])) if told else None,
            session=name_of(events, "session", int(events.session[row])) if told else None,
            anomalies=(),
            beside=name_of(events, "message", sent),
            after="delivered" if told else "",
        )

    def _stops(self) -> tuple[Ints, Ints]:
        """The messages that cannot have come again with another one as it was, and the row where each did."""
        pairs, rows = self._held.stops()
        found: dict[int, int] = {}
        for pair, row in zip(pairs.tolist(), rows.tolist(), strict=True):
            message = self._came_again_in(pair)
            if message is not None:
                found[message] = min(row, found.get(message, row))
        messages = np.array(sorted(found), np.int64)
        return messages, np.array([found[message] for message in messages.tolist()], np.int64)

    def _came_again_in(self, pair: int) -> int | None:
        """The message of a contradicted pair of which a repeated delivery is impossible; ``None`` if that is not it."""
        decision, lived = self._held.of(pair)
        stop, heard = decision.contradiction, lived.life.heard
        if stop is None or stop.place >= len(heard) or heard[stop.place].sign.name != DELIVERED_SOMEHOW:
            return None
        of = heard[stop.place].sign.of
        times = sum(each.sign.name == DELIVERED_SOMEHOW and each.sign.of == of for each in heard[: stop.place])
        return self._message(pair, of) if times else None

    def _message(self, pair: int, of: int) -> int:
        return int((self._pairs.second if of == BOTH - 1 else self._pairs.first)[pair])

    def _lost_beside(self) -> Ints:
        """The lost messages that cannot be lost with another one as it was; of two of them the one sent first."""
        places = np.intersect1d(self._pairs.having(Why.LOST), self._contradicted)
        first, second = self._pairs.first[places], self._pairs.second[places]
        return np.unique(np.where(np.isin(first, self._anomalies[Anomaly.LOSS]), first, second))

    def _with_pairs(self, anomaly: Anomaly, alone: Explained) -> Explained:
        """Also those of messages that came again, or were lost, although another message says that they could not."""
        if anomaly not in self._before:
            return alone
        bad = np.setdiff1d(self._came_again, self._before[anomaly])
        bad = np.intersect1d(self._anomalies[anomaly], self._lost if anomaly is Anomaly.LOSS else bad)
        unexplained = np.union1d(alone.unexplained, bad).astype(np.int64)
        if len(unexplained) == len(alone.unexplained):
            return alone
        left = len(self._anomalies[anomaly]) - len(unexplained)  # a cause explains no more than are left
        causes = {cause: min(count, left) for cause, count in alone.causes.items() if left}
        return dataclasses.replace(alone, unexplained=unexplained, causes=causes)

    def _reordered(self) -> Explained:
        """Of the messages that came after a later-sent one those that no pair explains.

        What another consumer had and gave back unseen comes late, marked or not: no application has seen it.  Neither
        has what two sessions of a producer send an order (JMS 6.2.9).  The others are judged by their kind as well:
        pairs are not told whether the delivery was flagged.
        """
        codes = self._anomalies[Anomaly.REORDER]
        places, of = self._telling(Anomaly.REORDER)
        found = self._of(codes, places, of, np.unique(of[np.isin(places, self._decided)]))
        across = self._across_sessions()
        causes = {**found.causes, **({_OTHER_SESSION: len(across)} if len(across) else {})}
        settled = np.concatenate([found.unexplained, across, self._given_back_elsewhere(places, of)])
        return dataclasses.replace(found, causes=causes, by_kind=np.setdiff1d(codes, settled))

    def _across_sessions(self) -> Ints:
        """The overtaken messages that nothing of their own session overtook."""
        its: Ints = np.setdiff1d(self._anomalies[Anomaly.REORDER], reordered(self._events, in_one_session=True))
        return its

    def _given_back_elsewhere(self, places: Ints, of: Ints) -> Ints:
        """The overtaken messages, of those that pairs at ``places`` are ``of``, that another consumer must have had."""
        usable = np.isin(places, self._decided) & ~np.isin(places, self._contradicted)
        lives = itertools.islice(self._held.alike(np.unique(places[usable])), _LIVES_EXPLAINED)
        needing = [alike for alike in lives if self._needs_another_consumer(int(alike[0]))]
        found = [of[usable & np.isin(places, alike)] for alike in (self._contradicted[:0], *needing)]
        return np.setdiff1d(np.concatenate(found), of[~usable])

    def _needs_another_consumer(self, pair: int) -> bool:
        """Whether the life of ``pair`` needs what befell another consumer than the first that had the overtaken one.

        A fault of the broker befalls all that there are.
        """
        _, lived = self._held.of(pair)
        heard = [each.sign for each in lived.life.heard]
        own = next((sign.consumer for sign in heard if sign.name == DELIVERED_SOMEHOW and sign.of == 1), 0)
        needed = [heard[place] for place, _ in self._needed_by(pair)]
        of_all = len(lived.consumers) > 1 and any(sign.name in OF_THE_BROKER for sign in needed)
        return of_all or any(sign.consumer not in {0, own} for sign in needed)

    def _torn(self) -> Explained:
        """Of the torn transactions those of which two members are no run of the model."""
        return self._of(
            self._anomalies[Anomaly.TORN_TRANSACTION],
            *self._telling(Anomaly.TORN_TRANSACTION),
            self._whole_transactions(),
        )

    def _whole_transactions(self) -> Ints:
        """The transactions of which every two members that follow each other were decided."""
        count, members = self._events.count_of("transaction"), self._pairs.member
        expected = np.zeros(count, np.int64)
        for rows in (self._events.places(Event.SEND, Event.RESEND), self._events.places(Event.DELIVERED)):
            inside = rows[self._events.transaction[rows] != ABSENT]
            transaction, _, _ = distinct_pairs(self._events.transaction[inside], self._events.message[inside])
            each = np.bincount(transaction, minlength=count)
            expected += np.maximum(0, each - 1)
        decided = np.isin(members, self._decided)
        return np.flatnonzero(
            (np.bincount(self._pairs.transaction[decided], minlength=count) >= expected) & (expected > 0)
        )

    def _of(self, codes: Ints, places: Ints, of: Ints, decided: Ints) -> Explained:
        """What the pairs at ``places``, each ``of`` a message or transaction, say of those that have an anomaly."""
        bad = np.isin(places, self._contradicted)
        unexplained = np.intersect1d(codes, of[bad])
        explained = np.setdiff1d(np.intersect1d(codes, decided), unexplained)
        causes: Counter[str] = Counter()
        used = places[np.isin(of, explained) & ~bad]
        for alike in itertools.islice(self._held.alike(np.unique(used)), _LIVES_EXPLAINED):
            for cause in {name for _, name in self._needed_by(int(alike[0]))}:
                causes[cause] += len(alike)
        return Explained(
            unexplained=unexplained.astype(np.int64),
            undecided=codes[:0],
            causes=dict(sorted(causes.items())),
            by_kind=np.setdiff1d(codes, np.concatenate([unexplained, explained])),
        )

    def _needed_by(self, pair: int) -> Needed:
        """What the life of ``pair`` needs; pairs of equal lives need the same, and the first was asked before."""
        if pair not in self._needed:
            _, lived = self._held.of(pair)
            self._needed[pair] = self._held.needed(lived)
        return self._needed[pair]

    def needs(self, anomaly: Anomaly, codes: Ints) -> Needs:
        """What explains those of ``codes`` that have an anomaly of which pairs tell."""
        places, of = self._telling(anomaly)
        usable = np.isin(of, codes) & np.isin(places, self._decided)
        places, of = places[usable], of[usable]
        found = [
            (of[its], cause, self._held.rows(places[its], place))
            for alike in self._held.alike(np.unique(places))
            for its in [np.isin(places, alike)]
            for place, cause in self._needed_by(int(alike[0]))
        ]
        if anomaly is Anomaly.REORDER:
            across = np.intersect1d(codes, self._across_sessions())
            found.append((across, _OTHER_SESSION, np.full(len(across), NONE)))
        return Needs.joined(found)

    def _telling(self, anomaly: Anomaly) -> tuple[Ints, Ints]:
        """The pairs that tell of an anomaly between messages, each with the message or transaction of which it does."""
        if anomaly is Anomaly.TORN_TRANSACTION:
            return self._pairs.member, self._pairs.transaction
        places = self._pairs.having(Why.OVERTAKEN)
        return places, self._pairs.first[places]

    def accusations(self, by_anomaly: Mapping[Anomaly, Explained]) -> Iterator[tuple[int, Contradicted, bool]]:
        """Of each pair that is no run of the model the messages against whom that is held, and what is impossible.

        The last says whether no anomaly that nothing explains says so.
        """
        accused = {anomaly: self._accused(anomaly, each) for anomaly, each in by_anomaly.items()}
        unexplained = [each.unexplained for name, each in by_anomaly.items() if name is not Anomaly.TORN_TRANSACTION]
        alone = np.unique(np.concatenate([self._contradicted[:0], *unexplained]))
        torn = accused.get(Anomaly.TORN_TRANSACTION, self._contradicted[:0])
        for pair in self._contradicted.tolist():
            names = tuple(anomaly.value for anomaly, its in accused.items() if pair in its)
            both = [int(self._pairs.first[pair]), int(self._pairs.second[pair])]
            its = both if pair in torn else [message for message in both if message in alone]
            told = self._told(pair, names)
            for message in its or [both[self._impossible_of(pair) - 1]]:
                yield message, told, not names
        yield from ((message, told, True) for message, told in self._halves())

    def _impossible_of(self, pair: int) -> int:
        """Of which message of a contradicted pair the impossible line is: 1 or 2."""
        decision, lived = self._held.of(pair)
        place = len(lived.life.heard) if decision.contradiction is None else decision.contradiction.place
        return 2 if place < len(lived.life.heard) and lived.life.heard[place].sign.of == BOTH - 1 else 1

    def _accused(self, anomaly: Anomaly, each: Explained) -> Ints:
        """The contradicted pairs of which an anomaly that nothing explains says so."""
        if anomaly is Anomaly.TORN_TRANSACTION:
            its = self._pairs.member[np.isin(self._pairs.transaction, each.unexplained)]
            return np.intersect1d(its, self._contradicted)
        pairs = self._contradicted
        first, second = (np.isin(side[pairs], each.unexplained) for side in (self._pairs.first, self._pairs.second))
        return pairs[first | second]

    def _told(self, pair: int, anomalies: tuple[str, ...]) -> Contradicted:
        decision, lived = self._held.of(pair)
        stop, events, heard = decision.contradiction, self._events, lived.life.heard
        if stop is None:
            raise ValueError(f"pair {pair} is a run of the model")
        names = [called(events, process) for process in lived.consumers]
        ids = [name_of(events, "message", self._message(pair, of)) for of in (1, 2)]
        row = lived.rows[stop.place] if stop.place < len(heard) else None
        of = self._impossible_of(pair)
        return Contradicted(
            message=ids[of - 1],
            heard=tuple(self._heard(lived, stop.place, names, ids)),
            impossible=AT_REST if row is None else in_words(heard[stop.place], names),
            possible=tuple(_of_message(label, with_names(label, names), ids) for label in stop.possible),
            t=None if row is None else int(events.t[row]),
            line=None if row is None else int(events.line[row]),
            process=None if row is None else name_of(events, "process", int(events.process[row])),
            session=None if row is None else name_of(events, "session", int(events.session[row])),
            anomalies=anomalies,
            beside=ids[BOTH - of - 1],
            after=next(
                (
                    in_words(each, names)
                    for each in reversed(heard[: stop.place])
                    if each.sign.of & (BOTH - of) and each.sign.name not in self._around
                ),
                "",
            ),
        )

    @staticmethod
    def _heard(lived: Lived, until: int, names: list[str], ids: list[str]) -> Iterator[str]:
        for each in lived.life.heard[:until]:
            whose = [quoted(name, _NAMED) for of, name in enumerate(ids, start=1) if each.sign.of & of]
            yield in_words(each, names) + (f" of {' and '.join(whose)}" if whose else "")


def _of_message(label: str, told: str, ids: list[str]) -> str:
    """``told`` with the id of the message that the ``label`` of its event numbers."""
    _, _, index = label.partition("(")
    if not index.startswith("m"):
        return told
    name = quoted(ids[int(index[1]) - 1], _NAMED)
    event, at, consumer = told.partition(" at ")
    return f"{event} of {name}{at}{consumer}"
