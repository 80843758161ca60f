"""The prepared frames of a history: its events, a row for each message, and the marks of suspects."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ackfsm.spark._events import Overview, events_of, is_collision_free, kinds_of, names_of, overview_of
from ackfsm.spark._lives import lives, pre_aggregated
from ackfsm.spark._marks import marks_of_suspects
from ackfsm.spark._observe import MOMENT, closed_sends, observables
from ackfsm.spark._spelled import spelled_out
from ackfsm.tables import Specification
from ackfsm.terms import Configuration
from ackfsm.verify._fold import Machines
from ackfsm.verify._watch import machines_of

__all__ = ["Names", "PreparedHistory", "keep", "names_in", "study_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Names:
    """The names in a history, as :func:`ackfsm.spark._events.kinds_of` lists them, and the seed of their numbers."""

    kinds: DataFrame
    seed: int

    def of(self, family: str) -> DataFrame:
        """Rows of ``family`` (the number) and ``name``."""
        return names_of(self.kinds, family, self.seed)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PreparedHistory:
    """What the counts of one history are taken from.

    Attributes:
        specification, configuration: what it is held against.
        machines: those that are folded over each message.
        overview: what occurs in the history.
        names: what its numbers stand for.
        events: its events (:func:`ackfsm.spark._events.events_of`).
        mine: those that name a message whose sketch does not tell its life, ``None`` if there is no such message.
        sketched, lived: one row for each message (:mod:`ackfsm.spark._lives`).
        marks: one row for each message of which something is observed in ``mine`` (:mod:`ackfsm.spark._marks`).
    """

    specification: Specification
    configuration: Configuration | None
    machines: Machines
    overview: Overview
    names: Names
    events: DataFrame
    mine: DataFrame | None
    sketched: DataFrame
    lived: DataFrame
    marks: DataFrame | None

    def sends(self) -> DataFrame:
        """All sends outside transactions, with what closed each: of plain lives from their pre-aggregates."""
        plain = self.sketched.where("life = 'sent'").select(
            "message",
            sf.col("sent_session").alias("session"),
            sf.expr("struct(send_t as t, sent_line as line)").alias("at"),
            sf.expr("struct(confirmed_t as t, confirmed_line as line)").alias("outcome_at"),
        )
        if self.mine is None:
            return plain.withColumn("crash_at", sf.lit(None).cast(MOMENT))
        return closed_sends(self.mine, self.events, self.overview).unionByName(plain, allowMissingColumns=True)


def names_in(rows: DataFrame, kept: contextlib.ExitStack) -> tuple[Overview, Names]:
    """Look through all ``rows`` (those of a :class:`ackfsm.spark._lines.Lines`) once."""
    kinds = keep(kinds_of(rows), kept)
    overview = overview_of(kinds)
    return overview, Names(kinds=kinds, seed=next(seed for seed in itertools.count() if is_collision_free(kinds, seed)))


def study_of(  # noqa: PLR0913, PLR0917 - it gathers all that a history is studied with
    rows: DataFrame,
    overview: Overview,
    names: Names,
    specification: Specification,
    configuration: Configuration | None,
    kept: contextlib.ExitStack,
) -> PreparedHistory:
    """Look at each message of a history; what is used more than once is kept in memory until ``kept`` is closed."""
    machines = machines_of(specification, configuration)
    events = spelled_out(events_of(rows, overview, names.seed), overview)
    sketched = keep(pre_aggregated(events, transacted=overview.transacted), kept)
    unclear = sketched.where("life is null").select("message")
    mine = (
        None if unclear.isEmpty() else keep(events.join(unclear, "message", "left_semi").repartition("message"), kept)
    )
    observed = None if mine is None else observables(mine, events, overview)
    return PreparedHistory(
        specification=specification,
        configuration=configuration,
        machines=machines,
        overview=overview,
        names=names,
        events=events,
        mine=mine,
        sketched=sketched,
        lived=keep(lives(sketched, mine, events), kept),
        marks=None if observed is None else keep(marks_of_suspects(observed, machines), kept),
    )


def keep(frame: DataFrame, kept: contextlib.ExitStack) -> DataFrame:
    """``frame``, which Spark keeps in memory (or on disk) from its first use until ``kept`` is closed."""
    kept.callback(frame.unpersist)
    return frame.persist()
