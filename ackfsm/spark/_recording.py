"""Anomalies that the recording may explain, found as by the local backend."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from ackfsm.spark._prepared import PreparedHistory
from ackfsm.verify._clocks import Clocks
from ackfsm.verify._recording import Early, Silent

__all__ = ["came_early", "silent_of"]

_FIRST: Final = {
    "consumed": "min(struct(at, process)) filter (where event = 'delivered')",
    "sent": "min(struct(at, process)) filter (where event in ('send', 'resend'))",
}


def came_early(study: PreparedHistory, clocks: Clocks) -> Early | None:
    """The messages that were delivered before another process sent them, if there are any."""
    if study.mine is None:
        return None
    first = study.mine.groupBy("message").agg(*(sf.expr(told).alias(name) for name, told in _FIRST.items()))
    early = first.where("consumed.at < sent.at and consumed.process != sent.process")
    pairs = early.groupBy("consumed.process", "sent.process").agg(
        sf.count("*").alias("number"), sf.expr("max(sent.at.t - consumed.at.t)").alias("gap")
    )
    names = study.names.of("process")
    named = (
        pairs.toDF("consumer", "producer", "number", "gap")
        .join(names.toDF("consumer", "consumer_name"), "consumer")
        .join(names.toDF("producer", "producer_name"), "producer")
    )
    rows = named.collect()
    if not rows:
        return None
    widest = min(rows, key=lambda row: (-_recorded(row, clocks), row.consumer_name, row.producer_name))
    number = sum(row.number for row in rows)
    return Early(number, _recorded(widest, clocks), widest.consumer_name, widest.producer_name)


def _recorded(row: Row, clocks: Clocks) -> int:
    """The gap as it was before the clocks were put right."""
    put_right = clocks.offsets.get(row.producer_name, 0) - clocks.offsets.get(row.consumer_name, 0)
    return int(row.gap) - put_right


def silent_of(study: PreparedHistory) -> tuple[Silent, DataFrame] | None:
    """Those who do not tell what they processed, if there are any, and what they were delivered.

    The latter are rows of ``message`` and ``times``: how often it was delivered in all.
    """
    told = "processed" in study.overview.kinds
    deliveries = study.events.where("event = 'delivered'").select("message", "process")
    silent = _suspicious(study, told=told)
    if silent is not None and told:
        silent = _never_told(study, deliveries.join(sf.broadcast(silent), "process", "left_semi"), deliveries)
    if silent is None or silent.isEmpty():
        return None
    names = study.names.of("process").join(silent, "process", "left_semi").select("name").collect()
    taken = deliveries.join(sf.broadcast(silent.withColumn("silent", sf.lit(1))), "process", "left")
    times = taken.groupBy("message").agg(sf.count("silent").alias("mine"), sf.count("*").alias("times"))
    return Silent(told, tuple(sorted(row.name for row in names))), times.where("mine > 0").select("message", "times")


def _suspicious(study: PreparedHistory, *, told: bool) -> DataFrame | None:
    """Each ``process`` that was delivered something (if others tell, twice), and itself told nothing; ``None`` without.

    That takes only how many events of each kind there are.
    """
    by_name = (
        study.names.kinds.where("readable")
        .groupBy("process")
        .agg(
            sf.expr("coalesce(sum(number) filter (where event = 'delivered'), 0)").alias("delivered"),
            sf.expr("coalesce(sum(number) filter (where event = 'processed'), 0)").alias("processed"),
        )
    )
    found = by_name.where(f"processed = 0 and delivered > {int(told)}").select(sf.col("process").alias("name"))
    numbered = study.names.of("process").join(found, "name", "left_semi").select("process")
    return None if numbered.isEmpty() else numbered


def _never_told(study: PreparedHistory, suspicious: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Of the processes of the deliveries ``suspicious`` those with two messages of which nobody told for them."""
    done = study.events.where("event = 'processed'").select("message", "process")
    for_others = done.join(deliveries, ["message", "process"], "left_anti").select("message").distinct()
    handed_over = suspicious.join(for_others, "message", "left_semi").select("process").distinct()
    several = suspicious.groupBy("process").agg(sf.expr("min(message) != max(message)").alias("several"))
    return several.where("several").select("process").join(handed_over, "process", "left_anti")
