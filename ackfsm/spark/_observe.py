"""Expand events to the observables of messages, in Spark SQL.

The expansion is that of the local engine: acknowledgements reach deliveries, the end of a transaction
reaches what was sent and what was delivered in it, and everything that is reached gets each observable
from the first act that reaches it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from ackfsm.spark._covering import before, first_covering, through
from ackfsm.spark._events import Overview
from ackfsm.spark._lives import DIRECT
from ackfsm.spark._victims import told_faults
from ackfsm.terms import AckScope, Fault
from ackfsm.verify._columns import ABSENT
from ackfsm.verify._expand import ACTS_FOR_DELIVERIES, ENDS_FOR_SENDS
from ackfsm.verify._format import Event, Observable
from ackfsm.verify._victims import outages_of

__all__ = ["MOMENT", "closed_sends", "covering_acks", "observables"]

MOMENT: Final = "struct<t: bigint, line: bigint>"
"""The type of a moment."""

_OUTCOMES: Final = (Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT)
_ACKNOWLEDGEMENTS: Final = MappingProxyType({event: kind for kind, (event, _) in ACTS_FOR_DELIVERIES.items()})
_ENDS_OF_DELIVERIES: Final = MappingProxyType({kind: ends for kind, (_, ends) in ACTS_FOR_DELIVERIES.items()})
_EARLIER: Final = (Window.unboundedPreceding, Window.currentRow)

_CRASH: Final = """
    if(exists(outages, out -> out.begin < at and coalesce(out.until > at, true) and ({hits})),
       at,
       array_min(transform(filter(outages, out -> out.begin > at and ({hits})), out -> out.begin)))
""".format(
    hits="""
    (size(out.victims) = 0 or array_contains(out.victims, process)) and coalesce(out.queue = queue, out.queue is null)
"""
)
"""From when nobody waits for a send any more: from itself if it was made during an outage, else from the next crash."""

_OUTAGES: Final = f"array<struct<begin: {MOMENT}, until: {MOMENT}, victims: array<bigint>, queue: bigint>>"
_PLAIN_SEND: Final = "event in ('send', 'resend') and tx is null"


def observables(mine: DataFrame, events: DataFrame, overview: Overview) -> DataFrame:
    """What was observed of some messages: different rows of ``message``, ``at`` and ``observable``.

    ``mine`` are all of the ``events`` that name one of the messages.
    """
    found = [_direct(mine), _crashes(closed_sends(mine, events, overview)), *_of_deliveries(mine, events, overview)]
    if overview.transacted:
        sends = _inside(mine, "event in ('send', 'resend')")
        found.append(_first(_reached(sends, _ends(events, ENDS_FOR_SENDS), ["tx"], ENDS_FOR_SENDS)))
    return functools.reduce(DataFrame.unionByName, found).distinct()


def closed_sends(mine: DataFrame, events: DataFrame, overview: Overview) -> DataFrame:
    """The sends outside transactions among ``mine`` (all events of some messages), with what closed each.

    Returns:
        rows of ``message``, ``session``, ``at``, ``outcome_at`` (the first outcome of its message after it) and
        ``crash_at`` (where there is no outcome: from when the crash of a producer leaves it without one).
    """
    sends = mine.where(_PLAIN_SEND).select("message", "session", "process", "queue", "at")
    outcomes = mine.where(sf.col("event").isin(*_OUTCOMES)).withColumns(
        {"kind": sf.lit("outcome_at"), "cut": before("at")}
    )
    closed = first_covering(sends, outcomes, ["message"], ["outcome_at"])
    columns = ("message", "session", "at", "outcome_at")
    if Fault.PRODUCER_CRASH not in overview.faults:
        return closed.select(*columns).withColumn("crash_at", sf.lit(None).cast(MOMENT))
    crash = sf.when(sf.col("outcome_at").isNull(), sf.expr(_CRASH))
    return closed.crossJoin(sf.broadcast(_outages(events))).select(*columns, crash.alias("crash_at"))


def _outages(events: DataFrame) -> DataFrame:
    """One row: from when to when producers were down, and which."""
    found = [
        (each.moment, repair and repair.moment, sorted(each.victims), None if each.queue == ABSENT else each.queue)
        for each, repair in outages_of(told_faults(events, [Fault.PRODUCER_CRASH], _PLAIN_SEND))
    ]
    return events.sparkSession.createDataFrame([(found,)], f"outages {_OUTAGES}")


def _direct(mine: DataFrame) -> DataFrame:
    """The events that are observables of the message that they name; a resend in a transaction is two."""
    seen = (sf.when(sf.expr(condition), sf.lit(observable)) for observable, condition in DIRECT.items())
    return mine.select("message", "at", sf.explode(sf.array_compact(sf.array(*seen))).alias("observable"))


def _crashes(sends: DataFrame) -> DataFrame:
    left = sends.where("crash_at is not null")
    return left.select("message", sf.col("crash_at").alias("at"), sf.lit(Observable.PRODUCER_CRASH).alias("observable"))


def _of_deliveries(mine: DataFrame, events: DataFrame, overview: Overview) -> Iterator[DataFrame]:
    """What acknowledgements and commits are to deliveries, once for each delivery and kind."""
    covered = list(covering_acks(mine, events, overview))
    if covered:
        yield _first(functools.reduce(DataFrame.unionByName, covered))


def covering_acks(mine: DataFrame, events: DataFrame, overview: Overview) -> Iterator[DataFrame]:
    """What acknowledgements (of one message by message, others by session) and commits are to deliveries in ``mine``.

    Returns:
        frames of ``message``, ``member_at`` (the delivery), ``observable``, and ``at`` (when an act first reaches it).
    """
    deliveries = mine.where("event = 'delivered'").select("message", "session", "at")
    kinds = tuple(ACTS_FOR_DELIVERIES)
    if AckScope.MESSAGE in overview.scopes:
        acts = _acts(mine, AckScope.MESSAGE).withColumn("cut", before("call"))
        yield _reached(deliveries, acts, ["message"], kinds)
    wide = [cut(_acts(events, scope), events) for scope, cut in _CUTS.items() if scope in overview.scopes]
    if wide:
        yield _reached(deliveries, functools.reduce(DataFrame.unionByName, wide), ["session"], kinds)
    if overview.transacted:
        inside = _inside(mine, "event = 'delivered'")
        yield _reached(inside, _ends(events, _ENDS_OF_DELIVERIES), ["tx"], kinds)


def _inside(mine: DataFrame, condition: str) -> DataFrame:
    return mine.where(f"tx is not null and {condition}").select("message", "at", "tx")


def _ends(events: DataFrame, table: Mapping[Observable, Sequence[Event]]) -> DataFrame:
    """The ends of transactions that are something to their members, by ``table``."""
    kind = _looked_up("event", {end: observable for observable, ends in table.items() for end in ends})
    ends = events.where("tx is not null").withColumns({"kind": kind, "cut": before("at")})
    return ends.where("kind is not null").select("tx", "at", "kind", "cut")


def _acts(events: DataFrame, scope: AckScope) -> DataFrame:
    """The acknowledgements of ``scope``, each with the ``call`` that it is or answers.

    An answer belongs to the latest call before it of the same session, message and scope, else it is its own call.
    """
    kind = _looked_up("event", _ACKNOWLEDGEMENTS)
    acts = events.where(sf.col("scope") == scope).withColumn("kind", kind).where("kind is not null")
    earlier = Window.partitionBy("session", "message").orderBy("at").rowsBetween(*_EARLIER)
    call = sf.last(sf.when(sf.col("event") == Event.ACKNOWLEDGE, sf.col("at")), ignorenulls=True).over(earlier)
    return acts.select("session", "message", "at", "kind", sf.coalesce(call, "at").alias("call"))


def _of_session(acts: DataFrame, _: DataFrame) -> DataFrame:
    return acts.withColumn("cut", before("call"))


def _up_to(acts: DataFrame, events: DataFrame) -> DataFrame:
    """``acts`` reach what is not later than the last delivery, before the call, of the message that they name."""
    taken = events.where("event = 'delivered'").select("session", "message", sf.col("at").alias("taken_at"))
    rows = acts.withColumn("place", sf.col("call")).unionByName(
        taken.withColumn("place", sf.col("taken_at")), allowMissingColumns=True
    )
    earlier = Window.partitionBy("session", "message").orderBy("place").rowsBetween(*_EARLIER)
    named = rows.withColumn("named_at", sf.last("taken_at", ignorenulls=True).over(earlier)).where("kind is not null")
    return named.withColumn("cut", through("named_at")).where("cut is not null").select(*acts.columns, "cut")


_CUTS: Final[Mapping[AckScope, Callable[[DataFrame, DataFrame], DataFrame]]] = MappingProxyType(
    {AckScope.SESSION: _of_session, AckScope.UP_TO: _up_to}
)
"""Up to where the acknowledgements reach that are not of one message."""


def _reached(members: DataFrame, acts: DataFrame, keys: Sequence[str], kinds: Collection[Observable]) -> DataFrame:
    """One row for each member and kind of act that reaches it: ``member_at``, and ``at`` of the first such act."""
    first = first_covering(members, acts, keys, kinds).withColumnRenamed("at", "member_at")
    pairs = sf.array(*(sf.struct(sf.lit(kind).alias("observable"), sf.col(kind).alias("at")) for kind in kinds))
    return first.select("message", "member_at", sf.inline(pairs)).where("at is not null")


def _first(reached: DataFrame) -> DataFrame:
    """What is observed of each member, once for each kind."""
    once = reached.groupBy("message", "member_at", "observable").agg(sf.min("at").alias("at"))
    return once.select("message", "at", "observable")


def _looked_up(column: str, table: Mapping[Event, Observable]) -> Column:
    """The entry of ``table`` for a column's value, null if it has none."""
    return functools.reduce(
        lambda so_far, entry: so_far.when(sf.col(column) == entry[0], sf.lit(entry[1])),
        table.items(),
        sf.when(sf.lit(col=False), sf.lit("")),
    )
