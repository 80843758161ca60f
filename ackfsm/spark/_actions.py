"""What applications did of their own will that makes a broker deliver again, as the local engine finds it."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ackfsm.history._actions import RECOVERING
from ackfsm.spark._covering import before, first_covering

__all__ = ["repeated_by_recovery"]


def repeated_by_recovery(mine: DataFrame, events: DataFrame) -> DataFrame:
    """Each ``message`` that came again after the session of its delivery was recovered, rolled back or closed.

    ``mine`` are the events of the messages whose life is not plain: every message that came twice is among
    them.  ``events`` are those of all sessions.
    """
    again = sf.lead("at").over(Window.partitionBy("message").orderBy("t", "line"))
    taken = mine.where("event = 'delivered'").select("message", "session", "at", again.alias("again_at"))
    ends = events.where(sf.col("event").isin(*RECOVERING)).withColumns({"kind": sf.lit("end_at"), "cut": before("at")})
    ended = first_covering(taken.where("again_at is not null"), ends, ["session"], ["end_at"])
    return ended.where("end_at < again_at").select("message").distinct()
