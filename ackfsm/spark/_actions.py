"""Optional events that explain redeliveries or another order, found as by the local backend."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from ackfsm.spark._covering import before, first_covering
from ackfsm.spark._observe import MOMENT
from ackfsm.spark._victims import told_faults
from ackfsm.verify._actions import CONSUMER_FAULTS, RECOVERING

__all__ = ["closed_early", "competing_consumer_failed", "redelivered_after_recover"]

_BROKEN = "event = 'close' and errs"

_SENT = "event in ('send', 'resend')"

_DONE = "event in ('rejected', 'delivered', 'expired', 'dead_lettered')"


def redelivered_after_recover(mine: DataFrame, events: DataFrame) -> DataFrame:
    """Each ``message`` that came again after the session of its delivery was recovered, rolled back or closed.

    A ``close`` with an ``error`` is none: the connection broke.  ``mine`` are the events of the messages whose life is
    not plain: every message that came twice is among them.  ``events`` are those of all sessions.
    """
    again = sf.lead("at").over(Window.partitionBy("message").orderBy("t", "line"))
    taken = mine.where("event = 'delivered'").select("message", "session", "at", again.alias("again_at"))
    chosen = events.where(sf.col("event").isin(*RECOVERING) & ~sf.expr(_BROKEN))
    ends = chosen.withColumns({"kind": sf.lit("end_at"), "cut": before("at")})
    ended = first_covering(taken.where("again_at is not null"), ends, ["session"], ["end_at"])
    return ended.where("end_at < again_at").select("message").distinct()


def closed_early(mine: DataFrame, events: DataFrame) -> DataFrame:
    """One row if a consumer's session was closed after a message was sent to its queue that nobody was ever given.

    Of a session that neither sent nor was delivered anything the queue is not known: it may be any.  ``mine`` and
    ``events`` are those of :func:`redelivered_after_recover`.
    """
    known = events.where(f"{_SENT} or event = 'delivered'")
    known = known.select("session", "queue", sf.expr("event = 'delivered'").alias("consumes")).distinct()
    closes = events.where(f"event = 'close' and not ({_BROKEN})").groupBy("session").agg(sf.max("at").alias("close_at"))
    suspects = closes.join(known, "session", "left").where("consumes or consumes is null")
    same = sf.col("consumes").isNull() | sf.col("queue").eqNullSafe(sf.col("its_queue"))
    found = suspects.join(sf.broadcast(_owed_since(mine)), same & (sf.col("close_at") > sf.col("since")))
    return found.select(sf.lit("")).limit(1)


def _owed_since(mine: DataFrame) -> DataFrame:
    """For each queue (``its_queue``) the first send of a message that was neither refused nor delivered nor at its end.

    A send in a transaction does not count: that may have been rolled back.
    """
    plainly = f"{_SENT} and tx is null"
    messages = mine.where(f"{_SENT} or {_DONE}").groupBy("message")
    owed = messages.agg(
        sf.expr(f"min(at) filter (where {plainly})").alias("since"),
        sf.expr(f"max(struct(at, queue)) filter (where {plainly}).queue").alias("its_queue"),
        sf.expr(f"bool_or({_DONE})").alias("done"),
    )
    return owed.where("not done and since is not null").groupBy("its_queue").agg(sf.min("since").alias("since"))


def competing_consumer_failed(events: DataFrame) -> DataFrame:
    """One row if a process was delivered from a queue after the session of another process consuming from it broke.

    A session breaks with its own ``close`` that has an ``error``, or with a fault that may be of this consumer.
    """
    consumers = events.where("event = 'delivered'").groupBy("queue", "process").agg(sf.max("at").alias("last_at"))
    breaks = events.where(_BROKEN).groupBy("process").agg(sf.min("at").alias("broke_at"))
    told = [each for each in told_faults(events, CONSUMER_FAULTS, "event = 'delivered'") if not each.repairs]
    of_all = min((each.moment for each in told if not each.victims), default=None)
    mine: dict[int, tuple[int, ...]] = {}
    for each in told:
        mine |= {victim: min(each.moment, mine.get(victim, each.moment)) for victim in each.victims}
    hit = events.sparkSession.createDataFrame(list(mine.items()), f"process bigint, hit_at {MOMENT}")
    broken = consumers.join(breaks, "process", "left").join(sf.broadcast(hit), "process", "left")
    broken = broken.withColumn("fault_at", sf.lit(of_all).cast(MOMENT) if of_all is None else _moment(of_all))
    one = broken.select("queue", "process", sf.least("broke_at", "fault_at", "hit_at").alias("end_at"))
    other = consumers.select(
        sf.col("queue").alias("its_queue"), sf.col("process").alias("its_process"), sf.col("last_at").alias("its_last")
    )
    same = sf.col("queue").eqNullSafe(sf.col("its_queue")) & (sf.col("process") != sf.col("its_process"))
    return one.join(other, same).where("its_last > end_at").select(sf.lit("")).limit(1)


def _moment(told: tuple[int, ...]) -> Column:
    t, line = told
    return sf.struct(sf.lit(t).cast("bigint").alias("t"), sf.lit(line).cast("bigint").alias("line"))
