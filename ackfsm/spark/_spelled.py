"""Ranges of confirmations and acknowledgements that timed out as lines of their own, as in the local backend."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ackfsm.spark._covering import before, first_covering, through
from ackfsm.spark._events import Overview
from ackfsm.spark._observe import closed_sends
from ackfsm.terms import AckScope
from ackfsm.verify._format import ACKNOWLEDGE_TIMEOUT, Event

__all__ = ["spelled_out"]


def spelled_out(events: DataFrame, overview: Overview) -> DataFrame:
    """``events`` with a ``confirmed`` for each message of a range, and an ``ack_in_doubt`` for each call timed out."""
    added = functools.partial(DataFrame.unionByName, allowMissingColumns=True)
    return functools.reduce(added, _added(events, overview), events)


def _added(events: DataFrame, overview: Overview) -> Iterator[DataFrame]:
    if overview.ranged:
        yield _ranges(events, overview)
    if ACKNOWLEDGE_TIMEOUT in overview.of_calls:
        yield _timeouts(events)


def _ranges(events: DataFrame, overview: Overview) -> DataFrame:
    """See :func:`ackfsm.verify._spelled.spelled_out`."""
    named = events.where("message is not null")
    sends = _with_closes(closed_sends(named, events, overview), events)
    ranges = events.where(f"event = '{Event.CONFIRMED}' and scope = '{AckScope.UP_TO}'")
    ranges = ranges.select(sf.col("message").alias("named"), sf.col("at").alias("range_at"))
    sent = sends.select(sf.col("message").alias("named"), sf.struct("at", "session").alias("sent"))
    last = ranges.join(sent, "named").where("sent.at < range_at")
    last = last.groupBy("named", "range_at").agg(sf.max("sent").alias("last")).select("named", "range_at", "last.*")
    acts = last.select("session", sf.col("range_at").alias("at"), through("at").alias("cut"))
    covered = first_covering(sends, acts.withColumn("kind", sf.lit("range_at")), ["session"], ["range_at"])
    open_then = covered.where("range_at is not null and coalesce(range_at < end_at, true)").select(
        "message", "range_at"
    )
    pairs = open_then.distinct().join(last.select("named", "range_at"), "range_at").where("message != named")
    return pairs.select(
        *(sf.col(f"range_at.{name}").alias(name) for name in ("t", "line")),
        *(sf.lit(value).alias(name) for name, value in (("event", Event.CONFIRMED), ("scope", AckScope.UP_TO))),
        "message",
        *(sf.lit(col=False).alias(name) for name in ("errs", "teller")),
        sf.col("range_at").alias("at"),
    )


def _with_closes(sends: DataFrame, events: DataFrame) -> DataFrame:
    """``sends`` with ``end_at``: when each was no longer open, null if it stays so."""
    closes = events.where(f"event = '{Event.CLOSE}'").withColumns({"kind": sf.lit("close_at"), "cut": before("at")})
    closed = first_covering(sends, closes, ["session"], ["close_at"])
    return closed.withColumn("end_at", sf.least("outcome_at", "crash_at", "close_at"))


def _timeouts(events: DataFrame) -> DataFrame:
    """See :func:`ackfsm.verify._spelled.spelled_out`."""
    told = events.where(f"event = '{Event.FAULT}' and fault = '{ACKNOWLEDGE_TIMEOUT}'")
    told = told.select(
        sf.col("at").alias("told_at"), *(sf.col(name).alias(f"its_{name}") for name in ("session", "process", "teller"))
    )
    calls = events.where(f"event = '{Event.ACKNOWLEDGE}'")
    own = sf.col("session") == sf.col("its_session")
    same = own | (sf.col("process") == sf.col("its_process")) & ~sf.col("its_teller")
    found = calls.join(sf.broadcast(told), same & (sf.col("at") < sf.col("told_at")))
    kept = [name for name in events.columns if name not in {"t", "line", "event", "at"}]
    latest = found.groupBy("told_at").agg(sf.max(sf.struct(own.alias("own"), "at", *kept)).alias("call"))
    return latest.select(
        *(sf.col(f"told_at.{name}").alias(name) for name in ("t", "line")),
        sf.lit(Event.ACK_IN_DOUBT).alias("event"),
        *(sf.col(f"call.{name}").alias(name) for name in kept),
        sf.col("told_at").alias("at"),
    )
