"""Whom faults hit, found as by the local backend; faults are few, and who was hit is told on the driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ackfsm.terms import Fault
from ackfsm.verify._columns import ABSENT
from ackfsm.verify._format import TELLERS, Event
from ackfsm.verify._victims import OF_THE_BROKER, Told

__all__ = ["impossible", "told_faults"]

_TELLS: Final = "event in ('fault', 'recovered')"


def told_faults(events: DataFrame, kinds: Iterable[Fault], acts: str) -> tuple[Told, ...]:
    """What the faults of these ``kinds`` and their repairs tell, in the order of their moments ``(t, line)``.

    The victims are numbers of processes that did one of the ``acts`` (a condition on ``events``).
    """
    told = events.where(_TELLS).where(sf.col("fault").isin(*kinds))
    rows = told.select("t", "line", "event", "fault", "process", "session", "queue", "teller").collect()
    naming = [row for row in rows if not row.teller or row.session != row.process]
    owners: dict[int, set[int]] = {}
    actors: set[int] = set()
    if naming:
        sessions = sorted({row.session for row in naming})
        had = events.where(f"not ({_TELLS}) and not teller").where(sf.col("session").isin(*sessions))
        for row in had.select("session", "process").distinct().collect():
            owners.setdefault(row.session, set()).add(row.process)
        named = {row.process for row in naming if not row.teller}.union(*owners.values())
        did = events.where(sf.expr(acts) & sf.col("process").isin(*sorted(named)))
        actors = {row.process for row in did.select("process").distinct().collect()}
    return tuple(
        Told(
            moment=(row.t, row.line),
            fault=row.fault,
            repairs=row.event == Event.RECOVERED,
            victims=frozenset(owners.get(row.session) or ([] if row.teller else [row.process])) & actors,
            queue=ABSENT if row.queue is None else row.queue,
        )
        for row in sorted(rows, key=lambda row: (row.t, row.line))
    )


def impossible(kinds: DataFrame) -> bool:
    """Whether a line in ``kinds`` (:func:`ackfsm.spark._events.kinds_of`) names what no fault of its kind can have hit.

    :func:`ackfsm.verify._victims.refuse_impossible` says which, and why.
    """
    readable = kinds.where("readable")
    others = readable.where(f"not ({_TELLS})")
    naming = readable.where("naming")
    queues = others.select(sf.col("queue").alias("known_queue")).distinct()
    sessions = others.select(sf.col("session").alias("known_session"), sf.col("process").alias("owner")).distinct()
    lost = naming.join(queues, sf.col("queue") == sf.col("known_queue"), "left_anti").where("queue is not null")
    named = naming.where("session != process")
    unknown = named.join(sessions, sf.col("session") == sf.col("known_session"), "left_anti")
    acting = others.select(sf.col("process").alias("actor")).distinct()
    own = (sf.col("session") == sf.col("known_session")) & (sf.col("process") == sf.col("owner"))
    others_own = (
        named.where(~sf.col("process").isin(*TELLERS))
        .join(acting, sf.col("process") == sf.col("actor"), "left_semi")
        .join(sessions, own, "left_anti")
    )
    of_the_broker = named.where(sf.col("fault").isin(*OF_THE_BROKER))
    found = [each.select(sf.lit(1)) for each in (lost, unknown, others_own, of_the_broker)]
    return not found[0].union(found[1]).union(found[2]).union(found[3]).isEmpty()
