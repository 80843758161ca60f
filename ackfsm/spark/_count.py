"""Anomalies that no machine of a single message can find (order, window, transactions, counts), in Spark SQL.

Each is counted as the local engine counts it, from the events in the order of time.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

__all__ = ["count_regressions", "over_delivered", "reordered", "torn_transactions", "window_overruns"]

_BEFORE: Final = (Window.unboundedPreceding, -1)


def reordered(lived: DataFrame) -> DataFrame:
    """Each ``message`` that came after a later-sent one, neither of them a repetition.

    Of messages that were never resent and whose first delivery is unflagged: those that were first
    delivered in a session after a later-sent one of the same producer, queue and delivery mode.
    """
    first = lived.where("sent is not null and not resent and not delivered.redelivered")
    lanes = Window.partitionBy("delivered.session", "sent.lane").orderBy("delivered.at.t", "delivered.at.line")
    latest = sf.max("sent.at").over(lanes.rowsBetween(*_BEFORE))
    return first.select("message", "sent.at", latest.alias("latest")).where("latest > at").select("message")


def window_overruns(sends: DataFrame, events: DataFrame, window: int) -> DataFrame:
    """Each ``message`` that was sent while ``window`` sends of its session were open.

    ``sends`` are those of all messages outside transactions, with ``outcome_at`` and ``crash_at``.  A send is open
    until an outcome of its message, the close of its session or the crash that leaves it without.
    """
    ended = _by_life(sends, events).withColumn("end_at", sf.coalesce("outcome_at", "crash_at"))
    steps = sf.expr("array(struct(at.t, at.line, 1 as step), struct(end_at.t, end_at.line, -1 as step))")
    rows = ended.select("message", "session", "life", sf.inline(steps)).where("t is not null")
    earlier = Window.partitionBy("session", "life").orderBy("t", "line", sf.desc("step")).rowsBetween(*_BEFORE)
    counted = rows.select("message", "step", sf.sum("step").over(earlier).alias("open"))
    return counted.where((sf.col("step") == 1) & (sf.col("open") >= window)).select("message").distinct()


def _by_life(sends: DataFrame, events: DataFrame) -> DataFrame:
    """``sends`` with how often their session had been closed before: a close ends whatever was open."""
    closes = events.where("event = 'close'").select("session", "at", sf.lit(1).alias("close"))
    rows = sends.unionByName(closes, allowMissingColumns=True)
    earlier = Window.partitionBy("session").orderBy("at.t", "at.line")
    before = sf.count("close").over(earlier.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return rows.withColumn("life", before).where("close is null")


def torn_transactions(events: DataFrame, lived: DataFrame) -> DataFrame:
    """The transactions with members, and whether only a part of them took effect.

    The members are the messages that were sent in the transaction, which took effect if they came; or, where it is
    in doubt whether it was committed, those that were delivered in it, which did not take effect if they came again
    or were dead-lettered or expired; but not those that were sent again, of which a second copy may have come.

    Returns:
        rows of ``tx`` and ``in_doubt`` (which of the two), with ``judged`` (whether all members are at rest) and
        ``torn`` (judged, and a part took effect).
    """
    inside = events.where("tx is not null")
    fates = lived.select("message", "came_at", "ended", "judged", "drained_at", "resent")
    members = _sent_in(inside, fates).unionByName(_taken_in_doubt(inside, fates))
    whole = members.groupBy("tx", "in_doubt").agg(
        sf.bool_and("judged").alias("judged"), sf.bool_or("came").alias("some"), sf.bool_and("came").alias("all")
    )
    return whole.select("tx", "in_doubt", "judged", sf.expr("judged and some and not all").alias("torn"))


def _sent_in(inside: DataFrame, fates: DataFrame) -> DataFrame:
    sent = inside.where("event in ('send', 'resend')").select("tx", "message").join(fates, "message")
    return _members(sent, sf.col("came_at").isNotNull(), sf.col("judged"), in_doubt=False)


def _taken_in_doubt(inside: DataFrame, fates: DataFrame) -> DataFrame:
    doubt = (
        inside.where("event in ('commit_in_doubt', 'committed')")
        .groupBy("tx")
        .agg(
            sf.expr("max(at) filter (where event = 'commit_in_doubt')").alias("doubt_at"),
            sf.bool_or(sf.col("event") == "committed").alias("committed"),
        )
    )
    taken = inside.where("event = 'delivered'").groupBy("tx", "message").agg(sf.max("at").alias("taken_at"))
    rows = taken.join(doubt.where("not committed"), "tx").join(fates.where("not resent"), "message")
    judged = sf.col("judged") & (sf.col("drained_at") > sf.col("doubt_at"))
    return _members(rows, sf.expr("ended or came_at > taken_at"), judged, in_doubt=True)


def _members(rows: DataFrame, came: Column, judged: Column, *, in_doubt: bool) -> DataFrame:
    return rows.select("tx", came.alias("came"), judged.alias("judged"), sf.lit(in_doubt).alias("in_doubt"))


def count_regressions(events: DataFrame) -> DataFrame:
    """Each ``message`` whose delivery count fell, or disagrees with the flag (above 1, flag clear, or the reverse)."""
    counted = events.where("event = 'delivered' and delivery_count is not null")
    before = sf.lag("delivery_count").over(Window.partitionBy("message").orderBy("t", "line"))
    fell = sf.coalesce(before > sf.col("delivery_count"), sf.lit(col=False))
    disagrees = (sf.col("delivery_count") > 1) != sf.col("redelivered")
    return counted.select("message", (fell | disagrees).alias("bad")).where("bad").select("message").distinct()


def over_delivered(mine: DataFrame, limit: int) -> DataFrame:
    """Each ``message`` of ``mine`` that was delivered more than ``limit`` times (0: no limit), or after it had expired.

    ``mine`` are the events of the messages that have no plain life, of which every other is delivered once at most.
    One that was sent again has several copies, each with attempts of its own, and is not counted by their number.
    """
    fates = mine.groupBy("message").agg(
        sf.expr("count_if(event = 'delivered')").alias("deliveries"),
        sf.expr("max(at) filter (where event = 'delivered')").alias("delivered_at"),
        sf.expr("min(at) filter (where event = 'expired')").alias("expired_at"),
        sf.expr("bool_or(event = 'resend')").alias("resent"),
    )
    often = (sf.col("deliveries") > limit) & ~sf.col("resent") if limit else sf.lit(col=False)
    return fates.where(often | sf.expr("coalesce(delivered_at > expired_at, false)")).select("message")
