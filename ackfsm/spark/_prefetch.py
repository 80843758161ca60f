"""Deliveries beyond the prefetch bound, counted as by the local backend."""

from __future__ import annotations

import functools
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ackfsm.spark._covering import before, first_covering
from ackfsm.spark._events import Overview
from ackfsm.spark._observe import MOMENT, covering_acks
from ackfsm.verify._format import Event
from ackfsm.verify._prefetch import OF_ITS_MESSAGE, OF_ITS_SESSION, OF_ITS_TRANSACTION, Prefetch

__all__ = ["prefetch_overruns"]

_BEFORE: Final = (Window.unboundedPreceding, -1)


def prefetch_overruns(events: DataFrame, overview: Overview, prefetch: Prefetch) -> DataFrame:
    """Each ``message`` that was delivered while ``prefetch.bound`` deliveries of its session and queue were open.

    What ends a delivery, and which are counted together, is told in :mod:`ackfsm.verify._prefetch`.
    """
    ended = _ended(_certain(events, prefetch), events, overview)
    steps = sf.expr("array(struct(at.t, at.line, 1 as step), struct(end_at.t, end_at.line, -1 as step))")
    rows = ended.select("message", "session", "queue", "era", sf.inline(steps)).where("t is not null")
    earlier = Window.partitionBy("session", "queue", "era").orderBy("t", "line", "step").rowsBetween(*_BEFORE)
    counted = rows.select("message", "step", sf.sum("step").over(earlier).alias("open"))
    return counted.where((sf.col("step") == 1) & (sf.col("open") >= prefetch.bound)).select("message").distinct()


def _certain(events: DataFrame, prefetch: Prefetch) -> DataFrame:
    """The deliveries that came by a connection of their ``era`` for certain, each with the next one of its message."""
    of_message = Window.partitionBy("message")
    told = events.where("event in ('send', 'delivered')").select(
        *("event", "message", "session", "queue", "tx", "at", "t", "line"),
        sf.min(sf.expr("if(event = 'send', at, null)")).over(of_message).alias("sent_at"),
    )
    again = sf.lead("at").over(of_message.orderBy("t", "line")).alias("again_at")
    deliveries = told.where("event = 'delivered'").select("message", "session", "queue", "tx", "at", "sent_at", again)
    broken = events.where(sf.col("event").isin("fault", "recovered") & sf.col("fault").isin(*prefetch.interruptions))
    timed = deliveries.crossJoin(sf.broadcast(broken.agg(sf.collect_list("at").alias("moments"))))
    era, sent_era = (sf.expr(f"size(filter(moments, moment -> moment < {at}))") for at in ("at", "sent_at"))
    return timed.withColumn("era", era).where(era == sent_era).drop("sent_at", "moments")


def _ended(deliveries: DataFrame, events: DataFrame, overview: Overview) -> DataFrame:
    """``deliveries`` with ``end_at``, when each is no longer open; null if it stays so."""
    bounds: dict[str, tuple[Event, ...]] = {"message": OF_ITS_MESSAGE, "session": OF_ITS_SESSION}
    if overview.transacted:
        bounds["tx"] = OF_ITS_TRANSACTION
    for key, kinds in bounds.items():
        others = [kind for kind in kinds if kind is not Event.DELIVERED]  # the next delivery is known already
        ends = events.where(sf.col("event").isin(*others) & sf.col(key).isNotNull())
        acts = ends.withColumns({"kind": sf.lit(f"{key}_at"), "cut": before("at")})
        deliveries = first_covering(deliveries, acts, [key], [f"{key}_at"])
    acted = _acted(events, overview)
    together = deliveries.join(acted, (deliveries.message == acted.its) & (deliveries.at == acted.member_at), "left")
    return together.withColumn("end_at", sf.least("again_at", "acted_at", *(f"{key}_at" for key in bounds)))


def _acted(events: DataFrame, overview: Overview) -> DataFrame:
    """When each delivery (``its`` message, ``member_at``) was first acknowledged, committed, or that was answered."""
    nothing = events.where("false").select(
        "message", sf.col("at").alias("member_at"), sf.lit("").alias("observable"), "at"
    )
    covered = functools.reduce(DataFrame.unionByName, covering_acks(events, events, overview), nothing)
    first = covered.groupBy(sf.col("message").alias("its"), "member_at").agg(sf.min("at").alias("acted_at"))
    return first.withColumn("acted_at", sf.col("acted_at").cast(MOMENT))
