"""Clock skew in Spark SQL: the order that events demand, and events ordered by corrected clocks."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ackfsm.verify._clocks import COMMITTED, ESTIMATED, SENT, Clocks, Demands

__all__ = ["demands_of", "put_right"]

_SENT: Final = "event in ('send', 'resend')"

_RANK_BITS: Final = 48
"""Lines have numbers below this power of 2 (bytes, or rows); what is above tells who comes first at the same moment."""


def demands_of(rows: DataFrame, skew: int | None) -> Demands:
    """What ``rows`` (of :class:`ackfsm.spark._lines.Lines`) demand, as the local engine finds it."""
    within = ESTIMATED if skew is None else skew
    events = rows.where("readable")
    sends = events.where(_SENT).groupBy("message")
    first = sends.agg(
        sf.expr("min(struct(t, line, process, transaction))").alias("cause"), sf.count("*").alias("number")
    )
    sent = _effects(events, COMMITTED if skew is None else SENT).join(first.select("message", "cause"), "message")
    commits = events.where("event = 'commit'").groupBy("process", "transaction")
    calls = commits.agg(sf.expr("min(struct(t, line))").alias("call"))
    once = first.where("number = 1 and cause.transaction is not null")
    once = once.select("message", sf.col("cause.process").alias("process"), sf.col("cause.transaction"))
    called = once.join(calls, ["process", "transaction"])
    called = called.select("message", sf.struct("call.t", "call.line", "process").alias("cause"))
    committed = _effects(events, COMMITTED).join(called, "message")
    both = _late(sent) if skew is None else _late(sent).unionByName(_late(committed))
    both = both.where(f"before != after and abs(late) <= {within}")
    greatest = both.groupBy("before", "after").agg(sf.max("needed").alias("needed"))
    return {(row.before, row.after): row.needed for row in greatest.collect()}


def _effects(events: DataFrame, kinds: tuple[str, ...]) -> DataFrame:
    return events.where(sf.col("event").isin(*kinds)).select(
        "message", sf.struct("t", "line", "process").alias("effect")
    )


def _late(pairs: DataFrame) -> DataFrame:
    late = sf.col("cause.t") - sf.col("effect.t")
    strictly = (late != 0) | (sf.col("cause.line") > sf.col("effect.line"))
    return pairs.select(
        sf.col("cause.process").alias("before"),
        sf.col("effect.process").alias("after"),
        late.alias("late"),
        (2 * late + strictly.cast("int")).alias("needed"),
    )


def put_right(rows: DataFrame, clocks: Clocks) -> DataFrame:
    """``rows`` with other times, and at the same moment in another order, where ``clocks`` say so."""
    if not clocks.offsets:
        return rows
    shifts = [(name, offset, clocks.ranks[name]) for name, offset in clocks.offsets.items()]
    known = rows.sparkSession.createDataFrame(shifts, "process string, shift bigint, rank bigint")
    there = rows.join(sf.broadcast(known), "process", "left")
    t = sf.col("t") + _or_none("shift") - sf.lit(clocks.latest)
    line = sf.col("line") + sf.shiftleft(_or_none("rank"), _RANK_BITS)
    return there.withColumns({"t": t, "line": line}).select(*rows.columns)


def _or_none(column: str) -> Column:
    return sf.coalesce(sf.col(column), sf.lit(0).cast("bigint"))
