"""The judgements in one table: each case of an anomaly, whether it is explained, and its causes.

Counts, findings, verdicts, result tables, stories and alerts are taken from these tables, and decide nothing again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.tables import Certainty
from ackfsm.terms import Anomaly
from ackfsm.verify.conformance.explain import Contradicted, Explained, Explainer
from ackfsm.verify.conformance.explain_pairs import PairExplainer
from ackfsm.verify.conformance.messages import Conformance
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import Sign

__all__ = [
    "CAUSES",
    "CONTRADICTION",
    "JUDGED",
    "Accusation",
    "Judgements",
    "codes_of",
    "flags_of",
    "found_in",
    "judged_of",
    "numbers_of",
]

CONTRADICTION: Final = "contradiction"
"""What it is called that a message is no run of the model though no anomaly says so."""

JUDGED: Final = pa.schema(
    [
        ("anomaly", pa.string()),
        ("case", pa.int64()),
        ("unexplained", pa.bool_()),
        ("undecided", pa.bool_()),
        ("by_kind", pa.bool_()),
        ("doubted", pa.bool_()),
    ]
)
"""A row for each case that was found.

``case`` is the code of a message, of ``torn_transaction`` of a transaction; ``unexplained`` whether nothing explains
it, null where no model decides that; ``undecided`` whether the model decided nothing; ``by_kind`` whether what the
kind of the anomaly is allowed decides; ``doubted`` whether it may be of the recording.
"""

CAUSES: Final = pa.schema([("place", pa.int64()), ("cause", pa.string()), ("row", pa.int64())])
"""What explains the case in a ``place`` of a table, and the row of the events that tells it (-1: no line does)."""

_NOTHING: Ints = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Accusation:
    """The impossible line of a message; ``unnamed`` if no unexplained anomaly has the message."""

    message: int
    why: Contradicted
    unnamed: bool


def judged_of(
    counted: Mapping[Anomaly, Ints], explained: Mapping[Anomaly, Explained], doubted: Mapping[Anomaly, Ints]
) -> pa.Table:
    """The rows of all that were ``counted``, as :data:`JUDGED`.

    Args:
        counted: the codes, ascending, of those that have each anomaly.
        explained: what the model says of them, of the anomalies of which it does.
        doubted: the codes of those, and of others, of which it may be of the recording.
    """
    tables = [JUDGED.empty_table()]
    for anomaly in (name for name in Anomaly if len(counted.get(name, ()))):
        codes, its = counted[anomaly], explained.get(anomaly)
        none, every = np.zeros(len(codes), bool), np.ones(len(codes), bool)
        flags = [none, none, every]
        if its is not None:
            flags = [np.isin(codes, each) for each in (its.unexplained, its.undecided, its.by_kind)]
        unexplained = pa.nulls(len(codes), pa.bool_()) if its is None else pa.array(flags[0])
        unsure = np.isin(codes, doubted.get(anomaly, _NOTHING))
        columns = [pa.repeat(anomaly.value, len(codes)), codes, unexplained, *flags[1:], unsure]
        tables.append(pa.table([pa.array(each) for each in columns], schema=JUDGED))
    return pa.concat_tables(tables)


def found_in(judged: pa.Table, anomalies: Collection[Anomaly]) -> pa.Table:
    """The rows of these ``anomalies``."""
    wanted = pa.array([each.value for each in anomalies], pa.string())
    return judged.filter(pc.is_in(judged["anomaly"], wanted)) if len(judged) else judged


def numbers_of(judged: pa.Table) -> Mapping[str, Mapping[str, Any]]:
    """For each anomaly that has rows how many they are, and how many of each kind, as a finding has them."""
    found = {}
    for anomaly in judged["anomaly"].unique().to_pylist():  # `group_by` would load Arrow's data sets
        rows = judged.filter(pc.equal(judged["anomaly"], anomaly))
        sums = {name: pc.sum(rows[name]).as_py() for name in ("unexplained", "undecided", "by_kind")}
        found[anomaly] = {"found": len(rows), **({} if sums["unexplained"] is None else sums)}
    return found


def with_allowed(rows: pa.Table, kinds: Mapping[Anomaly, bool | None]) -> pa.Table:
    """Rows as :data:`JUDGED`, with a column that says whether each case is ``allowed``, null where that is open.

    ``kinds`` are the answers of the configuration, for each anomaly whether it allows any number of them.
    """
    answers = pa.array([kinds.get(anomaly) for anomaly in Anomaly], pa.bool_())
    kind = answers.take(pc.index_in(rows["anomaly"].combine_chunks(), pa.array([each.value for each in Anomaly])))
    true, false, none = (pa.scalar(each, pa.bool_()) for each in (True, False, None))
    allowed = pc.if_else(rows["by_kind"], kind, true)
    allowed = pc.if_else(rows["undecided"], none, allowed)
    allowed = pc.if_else(rows["unexplained"].fill_null(false), false, allowed)
    allowed = pc.if_else(rows["doubted"], pc.if_else(kind.fill_null(false), true, none), allowed)
    return rows.append_column("allowed", allowed)


def codes_of(rows: pa.Table, column: str = "case") -> Ints:
    """A column of numbers."""
    return np.asarray(rows[column].to_numpy(), np.int64)


def flags_of(rows: pa.Table, column: str) -> Mask:
    """Where a column of flags is true, and not null."""
    return np.asarray(rows[column].fill_null(False).to_numpy(), bool)  # noqa: FBT003 - the value


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judgements:
    """The judgements on the messages of one configuration.

    Attributes:
        messages: for each message, by code, whether it is one of them.
        configured: whether a configuration is known.
        judged: a row for each case that was found, as in :data:`JUDGED`; by anomaly, and then ascending.
        counted: of every anomaly the codes of those that may have it, found or not.
        unrested: of every anomaly those that would have it if they were at rest, which nobody saw.
        unrecorded: of some anomalies those that may have it, for want of what nobody recorded.
        by_anomaly: what the model says of each, before it was asked whether they were seen at rest.
        conformance, explainer, pairs: what says why; ``None`` where no message, or no pair, was held to the model.
    """

    messages: Mask
    configured: bool
    judged: pa.Table
    counted: Mapping[Anomaly, Ints]
    unrested: Callable[[], Mapping[Anomaly, Ints]]
    unrecorded: Mapping[Anomaly, Ints]
    by_anomaly: Mapping[Anomaly, Explained]
    conformance: Conformance | None
    explainer: Explainer | None
    pairs: PairExplainer | None

    def of(self, anomaly: str) -> pa.Table:
        """The rows of one ``anomaly``."""
        return self.judged.filter(pc.equal(self.judged["anomaly"], str(anomaly)))

    def causes(self) -> pa.Table:
        """What explains the cases that are not ``unexplained``, as :data:`CAUSES`; it is searched for."""
        found = [self._causes(Anomaly(name)) for name in self.judged["anomaly"].unique().to_pylist()]
        return pa.concat_tables([CAUSES.empty_table(), *found])

    def _causes(self, anomaly: Anomaly) -> pa.Table:
        explainer = self.pairs if anomaly in {Anomaly.TORN_TRANSACTION, Anomaly.REORDER} else self.explainer
        if explainer is None or anomaly not in self.by_anomaly:
            return CAUSES.empty_table()
        its = pc.equal(self.judged["anomaly"], anomaly.value).to_numpy()
        places = np.flatnonzero(its & ~flags_of(self.judged, "unexplained"))
        codes = codes_of(self.judged)[places]
        needs = [*explainer.needs(anomaly, codes)]
        of, row = (np.concatenate([_NOTHING, *(need[column] for need in needs)]) for column in (0, 2))
        causes = [cause for cases, cause, _ in needs for _ in range(len(cases))]
        return pa.table([places[np.searchsorted(codes, of)], causes, row], schema=CAUSES)

    def accusations(self) -> Iterator[Accusation]:
        """Why messages are no runs of the model, by themselves and then with another one."""
        unnamed = set(self.unnamed().tolist())
        for message in self.accused().tolist():
            yield Accusation(message, self.impossible(message), message in unnamed)
        if self.pairs is not None:
            yield from (Accusation(*each) for each in self.pairs.accusations(self.by_anomaly))

    def accused(self) -> Ints:
        """The messages that are no runs of the model by themselves."""
        return _NOTHING if self.explainer is None else self.explainer.contradicted

    def impossible(self, message: int) -> Contradicted:
        """Return the impossible line of an accused message."""
        if self.explainer is None:
            raise ValueError(f"message {message} was not held to the model")
        return self.explainer.contradiction(message)

    def unnamed(self) -> Ints:
        """The messages that are no runs of the model by themselves, and have no anomaly that nothing explains."""
        if self.explainer is None:
            return _NOTHING
        of_messages = (each for name, each in self.by_anomaly.items() if name is not Anomaly.TORN_TRANSACTION)
        return self.explainer.unnamed(each.unexplained for each in of_messages)

    def undecided(self) -> Ints:
        """Return the messages that the model left undecided."""
        return _NOTHING if self.explainer is None else self.explainer.open

    def why_undecided(self, message: int) -> str | None:
        """Why the model decided nothing of a message, a clause; ``None`` if it did."""
        return None if self.explainer is None else self.explainer.why_undecided(message)

    def life(self, message: int) -> tuple[Sequence[int], str | None] | None:
        """Return the rows of a message's life, and why it is undecided; ``None`` if it was not held to a model.

        What only perhaps befell a consumer that never had it is left out.
        """
        found = None if self.explainer is None else self.explainer.life(message)
        if found is None:
            return None
        lived, undecided = found
        others = lived.consumers.index(OTHERS) + 1 if OTHERS in lived.consumers else None
        rows = [
            row
            for row, heard in zip(lived.rows, lived.life.heard, strict=True)
            if not (heard.sign.consumer == others and heard.sign.certainty is Certainty.PERHAPS)
        ]
        return rows, undecided

    # what a fold asks, which leaves messages out

    def not_runs(self) -> Ints:
        """Return the messages that are no run of the model, or are undecided."""
        held = self.conformance
        return _NOTHING if held is None else np.concatenate([held.contradicted(), *held.undecided().values()])

    def loose_pairs(self) -> Ints:
        """The pairs, two messages a row, that are no run of the model in the order of their lines."""
        return np.empty((0, 2), np.int64) if self.pairs is None else self.pairs.loose()

    def settled(self, message: int, circumstances: Collection[Sign], *, befallen: bool) -> bool:
        """Whether ``message`` stays a run of the model, at rest, whatever of these signs follows in any number.

        That is asked of its life as it is if it was ``befallen`` by something, else without what happened around it.
        """
        held = self.conformance
        if held is None or not held.held[message]:
            return False
        return held.judge.settled(held.of(message)[1], circumstances, befallen=befallen)
