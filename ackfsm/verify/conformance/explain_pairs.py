"""What holding pairs of messages to the model says of the anomalies of a history."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import Event
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history.victims import OF_THE_BROKER
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration
from ackfsm.verify.conformance.explain import (
    AnomalyCounts,
    Cases,
    Contradicted,
    Explained,
    Explanation,
    Need,
    called,
    name_of,
    names_of,
    second_or_first,
    told_by,
)
from ackfsm.verify.conformance.messages import Conformance, Kept, conformance
from ackfsm.verify.conformance.pair_judge import PairJudge
from ackfsm.verify.conformance.pairs import Why, pairs_of
from ackfsm.verify.context.signs import AT_REST, DELIVERED_SOMEHOW
from ackfsm.verify.counting.count import Halved, reordered

_OTHER_SESSION: Final = "another session of its producer"
"""What explains that a message was overtaken by those that its own session did not send."""

_EXCLUSIVE: Final = "two consumers held messages of an exclusive queue at once, which the model could not be held to"


class PairExplainer(Cases):
    """Says what pairs explain of the anomalies of messages and transactions."""

    _most = 50

    def __init__(  # noqa: PLR0913, PLR0917 - what was counted, and what it is held to
        self,
        of_messages: Conformance,
        counted: AnomalyCounts,
        doubted: Ints,
        specification: Specification,
        configuration: Configuration,
        halved: Halved | None = None,
        kept: Kept | None = None,
    ) -> None:
        """``halved`` are transactions that no pair tells of, and that no run of the model has."""
        self._around = specification.recording.around
        self._halved = halved
        self._anomalies = counted.anomalies
        self._pairs = pairs_of(counted.events, of_messages, configuration, counted.anomalies, doubted)
        recorded = of_messages.recorded.of_pairs(self._pairs.first, self._pairs.second)
        decided = conformance(
            recorded, PairJudge(specification, configuration, counted.events, self._pairs.urgent, kept)
        )
        super().__init__(decided, counted, decided.contradicted(), decided.undecided())
        self._decided = np.setdiff1d(np.arange(len(self._pairs)), self.open)
        stops = self._stops()
        self._came_again = stops[0]
        self._lost = self._lost_beside()
        self._before = counted.before(stops)

    def _messages(self, case: int) -> tuple[int, ...]:
        return int(self._pairs.first[case]), int(self._pairs.second[case])

    def loose(self) -> Ints:
        """The pairs, two messages a row, that are no run of the model in the order of their lines."""
        places = self.held.loose()
        return np.column_stack([self._pairs.first[places], self._pairs.second[places]])

    def explained(
        self, explanation: Explanation, by_message: Mapping[Anomaly, Explained]
    ) -> tuple[Explanation, Mapping[Anomaly, Explained]]:
        """What came of messages alone, with what came of pairs."""
        found = {anomaly: self._with_pairs(anomaly, each) for anomaly, each in by_message.items()}
        found[Anomaly.REORDER] = self._reordered()
        found[Anomaly.TORN_TRANSACTION] = self._torn()
        pairs = self._explanation(self._accused(found), [told for _, told in self._halves()])
        undecided = {**explanation.undecided, **self._exclusive_undecided()}
        return dataclasses.replace(explanation, pairs=pairs, undecided=undecided), found

    def _exclusive_undecided(self) -> Mapping[str, int]:
        """Return how many messages of exclusive queues two consumers held at once, undecided, by reason."""
        held = self._pairs.having(Why.HELD_BESIDE)
        count = self._pairs.unheld + len(np.setdiff1d(held, self._decided))
        return {_EXCLUSIVE: count} if count else {}

    def _halves(self) -> Iterator[tuple[int, Contradicted]]:
        """Yield the input of each halved transaction, and its contradiction beside the output."""
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
            anomalies=(),
            beside=name_of(events, "message", sent),
            after="delivered" if told else "",
            **told_by(events, row),
        )

    def _stops(self) -> tuple[Ints, Ints]:
        """The messages that cannot have come again with another one as it was, and the row where each did."""
        found: dict[int, int] = {}
        for pair, row in zip(*map(np.ndarray.tolist, self.held.stops()), strict=True):
            if self._came_again_in(pair):
                message = self._impossible_of(pair)
                found[message] = min(row, found.get(message, row))
        messages, rows = np.array(sorted(found.items()), np.int64).reshape(-1, 2).T
        return messages, rows

    def _came_again_in(self, pair: int) -> bool:
        """Whether it is a repeated delivery that is impossible of a contradicted pair."""
        stop, lived, impossible = self._stop(pair)
        before = {(each.sign.name, each.sign.of) for each in lived.life.heard[: stop.place]}
        return impossible.name == DELIVERED_SOMEHOW and (impossible.name, impossible.of) in before

    def _impossible_of(self, pair: int) -> int:
        """Of which message of a contradicted pair the impossible line is."""
        return self._messages(pair)[second_or_first(self._stop(pair)[2]) - 1]

    def _lost_beside(self) -> Ints:
        """The lost messages that cannot be lost with another one as it was; of two of them the one sent first."""
        places = np.intersect1d(self._pairs.having(Why.LOST), self.contradicted)
        first, second = self._pairs.first[places], self._pairs.second[places]
        return np.unique(np.where(np.isin(first, self._anomalies[Anomaly.LOSS]), first, second))

    def _with_pairs(self, anomaly: Anomaly, alone: Explained) -> Explained:
        """Return ``alone`` with the messages that came again, or were lost, and that a pair contradicts."""
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
        """Return the decisions on the overtaken messages; without a pair that explains one it is unexplained.

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
        """Return the overtaken messages, of the pairs at ``places``, that another consumer must have had."""
        usable = np.isin(places, np.setdiff1d(self._decided, self.contradicted))
        chosen = np.flatnonzero(usable)
        needing = [
            of[chosen[its]]
            for its in itertools.islice(self.held.alike(places[chosen]), self._most)
            if self._needs_another_consumer(int(places[chosen[its[0]]]))
        ]
        return np.setdiff1d(np.concatenate([of[:0], *needing]), of[~usable])

    def _needs_another_consumer(self, pair: int) -> bool:
        """Whether the life of ``pair`` needs what befell another consumer than the first that had the overtaken one.

        A fault of the broker befalls all that there are.
        """
        _, lived = self.held.of(pair)
        heard = [each.sign for each in lived.life.heard]
        own = next((sign.consumer for sign in heard if sign.name == DELIVERED_SOMEHOW and sign.of == 1), 0)
        needed = [heard[place] for place, _ in self.held.needed(pair)]
        of_all = len(lived.consumers) > 1 and any(sign.name in OF_THE_BROKER for sign in needed)
        return of_all or any(sign.consumer not in {0, own} for sign in needed)

    def _torn(self) -> Explained:
        """Return the torn transactions; unexplained are those with two members that are no run of the model."""
        return self._of(
            self._anomalies[Anomaly.TORN_TRANSACTION],
            *self._telling(Anomaly.TORN_TRANSACTION),
            self._whole_transactions(),
        )

    def _whole_transactions(self) -> Ints:
        """Return the transactions all of whose adjacent members were decided as pairs."""
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
        """Return the explanation of ``codes`` by the pairs at ``places``, each ``of`` a message or transaction."""
        bad = np.isin(places, self.contradicted)
        unexplained = np.intersect1d(codes, of[bad])
        explained = np.setdiff1d(np.intersect1d(codes, decided), unexplained)
        causes = self._causes(np.unique(places[np.isin(of, explained) & ~bad]))
        return Explained(
            unexplained=unexplained.astype(np.int64),
            undecided=codes[:0],
            causes=dict(sorted(causes.items())),
            by_kind=np.setdiff1d(codes, np.concatenate([unexplained, explained])),
        )

    def needs(self, anomaly: Anomaly, codes: Ints) -> Iterator[Need]:
        """Yield the causes of all ``codes`` that have an anomaly between messages."""
        places, of = self._telling(anomaly)
        usable = np.isin(of, codes) & np.isin(places, self._decided)
        yield from self._needs(places[usable], of[usable])
        if anomaly is Anomaly.REORDER:
            across = np.intersect1d(codes, self._across_sessions())
            yield across, _OTHER_SESSION, np.full(len(across), NONE)

    def _telling(self, anomaly: Anomaly) -> tuple[Ints, Ints]:
        """Return the pairs that tell of an anomaly, and the message or transaction of each."""
        if anomaly is Anomaly.TORN_TRANSACTION:
            return self._pairs.member, self._pairs.transaction
        places = self._pairs.having(Why.OVERTAKEN)
        return places, self._pairs.first[places]

    def accusations(self, by_anomaly: Mapping[Anomaly, Explained]) -> Iterator[tuple[int, Contradicted, bool]]:
        """Yield for each contradicted pair the accused message and the impossible sign.

        The last says whether no anomaly that nothing explains says so.
        """
        accused = self._accused(by_anomaly)
        unexplained = [each.unexplained for name, each in by_anomaly.items() if name is not Anomaly.TORN_TRANSACTION]
        alone = np.unique(np.concatenate([self.contradicted[:0], *unexplained]))
        torn = accused.get(Anomaly.TORN_TRANSACTION, self.contradicted[:0])
        for pair in self.contradicted.tolist():
            names = names_of(pair, accused)
            its = [message for message in self._messages(pair) if pair in torn or message in alone]
            told = self.contradiction(pair, names)
            for message in its or [self._impossible_of(pair)]:
                yield message, told, not names
        yield from ((message, told, True) for message, told in self._halves())

    def _accused(self, by_anomaly: Mapping[Anomaly, Explained]) -> Mapping[Anomaly, Ints]:
        """Return for each anomaly the contradicted pairs that an unexplained case of it accuses."""
        both, found = self._pairs, dict[Anomaly, Ints]()
        for anomaly, each in by_anomaly.items():
            if anomaly is Anomaly.TORN_TRANSACTION:
                its = both.member[np.isin(both.transaction, each.unexplained)]
            else:
                its = np.flatnonzero(np.isin(both.first, each.unexplained) | np.isin(both.second, each.unexplained))
            found[anomaly] = np.intersect1d(its, self.contradicted)
        return found
