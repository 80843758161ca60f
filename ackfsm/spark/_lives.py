"""One summary row for each message, enough to decide which messages cannot show an anomaly.

Most messages of most histories go one of a few plain ways.  :data:`CLEAN_PATTERNS` says which: these
observables, each exactly once, in an order that it allows.  A message that went such a way ends
unmarked in every property machine whatever that order was, which a test proves from the tables; so
it is only counted.  The others are *suspects*, and their observables are folded.

Plain lives are found by one aggregation of numbers over all events, which is all that is done with most
of them.  What it cannot tell, since something is there twice, is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ackfsm.verify._expand import ENDS_FOR_SENDS
from ackfsm.verify._format import OBSERVED_AS, Event, Observable

__all__ = ["ANY_NUMBER", "CLEAN_PATTERNS", "DIRECT", "lives", "pre_aggregated"]

_BITS: Final = 4
"""Of a word, for each observable; a row adds at most 1 to each, so fewer than 16 rows cannot overflow.

A sum that is too large for a word is null, and shows no life.
"""

_SENT: Final = "event in ('send', 'resend')"

DIRECT: Final[Mapping[Observable, str]] = MappingProxyType(
    {observable: f"event = '{event}'" for event, observable in OBSERVED_AS.items()}
    | {
        Observable.SEND: "event = 'send' and tx is null",
        Observable.SEND_IN_TRANSACTION: f"{_SENT} and tx is not null",
        Observable.DELIVERED_CLEAR: "event = 'delivered' and not redelivered",
        Observable.DELIVERED_FLAGGED: "event = 'delivered' and redelivered",
    }
)
"""Which events are an observable of the message that they name."""

CLEAN_PATTERNS: Final[Mapping[str, Mapping[Observable, Observable | None]]] = MappingProxyType(
    {
        "sent": {
            Observable.SEND: None,
            Observable.CONFIRMED: Observable.SEND,
            Observable.DELIVERED_CLEAR: Observable.SEND,
            Observable.PROCESSED: Observable.DELIVERED_CLEAR,
        },
        "sent in a transaction": {
            Observable.SEND_IN_TRANSACTION: None,
            Observable.COMMIT_CALLED: Observable.SEND_IN_TRANSACTION,
            Observable.COMMITTED: Observable.COMMIT_CALLED,
            Observable.DELIVERED_CLEAR: Observable.COMMIT_CALLED,
            Observable.PROCESSED: Observable.DELIVERED_CLEAR,
        },
        "only named": {},
    }
)
"""The ways that need no fold: each observable once, and later than the one that it is mapped to."""

ANY_NUMBER: Final = (Observable.ACKNOWLEDGE, Observable.ACKNOWLEDGED, Observable.ACK_IN_DOUBT)
"""What may follow the delivery of a plain life, in any number and order.

They are expanded from deliveries, so that none can stand before the delivery, or without one.
"""

_ONCE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "sent": (_SENT, ("line", "lane", "session", "queue", "tx")),
        "delivered": ("event = 'delivered'", ("line", "session")),
        "confirmed": ("event = 'confirmed'", ("line",)),
    }
)
"""What a sketch keeps of which events; it is that of the only one, if there is one."""

_SUMMARY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "anchor": f"coalesce(max(struct(at, queue)) filter (where {_SENT}), max(struct(at, queue)))",
        "sent": f"min(struct(at, lane, session)) filter (where {_SENT})",
        "resent": "bool_or(event = 'resend')",
        "delivered": "min(struct(at, session, redelivered)) filter (where event = 'delivered')",
        "came_at": "max(at) filter (where event in ('delivered', 'expired', 'dead_lettered'))",
        "ended": "bool_or(event in ('expired', 'dead_lettered'))",
    }
)
"""What is known of a message that any number of things happened to."""


def pre_aggregated(events: DataFrame, *, transacted: bool) -> DataFrame:
    """A few numbers of each message, by one aggregation; ``transacted`` says whether an event is in a transaction.

    Returns:
        one row for each ``message`` that ``events`` name, with ``life``: a name in :data:`CLEAN_PATTERNS`, null where
        the numbers do not tell.  Of the others, ``send_t``, ``sent_line``, ``sent_session`` and so on say when and
        where.
    """
    rows = events.where("message is not null").withColumn("word", sf.expr(_word()))
    counts = (sf.try_sum("word").alias("word"), sf.count_if(sf.col("word") > 0).alias("rows"))
    sketched = rows.groupBy("message").agg(*counts, *_times(), *_once())
    return _with_ends(sketched, events, transacted=transacted).withColumn("life", _life())


def lives(sketched: DataFrame, mine: DataFrame | None, events: DataFrame) -> DataFrame:
    """What became of each message.

    Args:
        sketched: their pre_aggregated.
        mine: all events that name the messages of which the sketch does not tell the life, ``None`` if it tells of all.
        events: all events.

    Returns:
        one row a message: ``life`` (a name in :data:`CLEAN_PATTERNS`, null for a suspect), ``judged`` (whether its
        queue was seen drained after its last send), ``drained_at`` (when last), ``queue`` (that of its last send, or
        if it has none of the last event that names it), ``came_at`` (its last delivery or permitted end), ``ended``
        (whether it had such an end), ``resent``, and the structs ``sent`` and ``delivered``, its first send and first
        delivery (null if there is none).
    """
    plain = sketched.where("life is not null").select("message", "life", *_named(_PLAIN))
    found = plain if mine is None else plain.unionByName(mine.groupBy("message").agg(_silent(), *_named(_SUMMARY)))
    rested = _with_drained(found.withColumn("queue", sf.col("anchor.queue")), events)
    judged = sf.coalesce(sf.col("drained_at") > sf.col("anchor.at"), sf.lit(col=False))
    return rested.withColumn("judged", judged).drop("anchor")


def _named(expressions: Mapping[str, str]) -> Iterator[Column]:
    return (sf.expr(expression).alias(name) for name, expression in expressions.items())


_SENT_AT: Final = "struct(coalesce(send_t, send_in_transaction_t) as t, sent_line as line)"
_DELIVERED_AT: Final = "struct(delivered_clear_t as t, delivered_line as line)"
_PLAIN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "anchor": f"struct({_SENT_AT} as at, sent_queue as queue)",
        "sent": f"struct({_SENT_AT} as at, sent_lane as lane, sent_session as session)",
        "resent": "false",
        "delivered": f"struct({_DELIVERED_AT} as at, delivered_session as session, false as redelivered)",
        "came_at": _DELIVERED_AT,
        "ended": "false",
    }
)
"""The same of a message with a plain life, from its sketch."""


def _word() -> str:
    """Which observables an event is, each in a field of its own of one number."""
    return " + ".join(f"if({condition}, {_field(observable)}L, 0L)" for observable, condition in DIRECT.items())


def _field(observable: Observable) -> int:
    return 1 << _BITS * list(DIRECT).index(observable)


def _times() -> Iterator[Column]:
    """When each observable of a plain life was seen."""
    for observable in dict.fromkeys(each for life in CLEAN_PATTERNS.values() for each in life if each in DIRECT):
        yield sf.expr(f"max(t) filter (where {DIRECT[observable]})").alias(f"{observable}_t")


def _once() -> Iterator[Column]:
    for prefix, (condition, columns) in _ONCE.items():
        for column in columns:
            yield sf.expr(f"max({column}) filter (where {condition})").alias(f"{prefix}_{column}")


def _with_ends(messages: DataFrame, events: DataFrame, *, transacted: bool) -> DataFrame:
    """``messages`` with how often each end came of the transaction in which they were sent, and when."""
    conditions = {each: f"event in ({_quoted(ends)})" for each, ends in ENDS_FOR_SENDS.items()}
    counts = [f"{observable}_count" for observable in conditions]
    if not transacted:
        times = {f"{observable}_t": sf.lit(None).cast("bigint") for observable in conditions}
        return messages.withColumns({count: sf.lit(0).cast("bigint") for count in counts} | times)
    columns = [sf.expr(f"count_if({condition})").alias(f"{each}_count") for each, condition in conditions.items()]
    columns += [
        sf.expr(f"max(t) filter (where {condition})").alias(f"{each}_t") for each, condition in conditions.items()
    ]
    ends = events.where("tx is not null").groupBy(sf.col("tx").alias("sent_tx")).agg(*columns)
    return messages.join(ends, "sent_tx", "left").fillna(0, counts)


def _quoted(events: Iterable[Event]) -> str:
    return ", ".join(f"'{event}'" for event in events)


def _life() -> Column:
    """The name of the plain life that a sketch shows, null if it shows none."""
    return sf.coalesce(*(sf.when(sf.expr(_shows(life)), name) for name, life in CLEAN_PATTERNS.items() if life))


def _shows(life: Mapping[Observable, Observable | None]) -> str:
    direct = [each for each in life if each in DIRECT]
    conditions = [f"rows = {len(direct)}", f"word = {sum(map(_field, direct))}"]
    conditions += [f"{end}_count = {int(end in life)}" for end in ENDS_FOR_SENDS]
    return " and ".join([*conditions, *(f"{each}_t > {first}_t" for each, first in life.items() if first)])


def _silent() -> Column:
    """The life of a message that events name, but of which none is an observable."""
    silent = next(name for name, life in CLEAN_PATTERNS.items() if not life)
    return sf.when(sf.expr(f"max({_word()}) = 0"), silent).alias("life")


def _with_drained(messages: DataFrame, events: DataFrame) -> DataFrame:
    """``messages`` with when the ``queue`` of each was last seen drained; a ``drained`` without a queue is of all."""
    drained = events.where("event = 'drained'").groupBy("queue").agg(sf.max("at").alias("drained_at"))
    everywhere = events.where("event = 'drained' and queue is null").agg(sf.max("at")).scalar()
    there = messages.join(sf.broadcast(drained), "queue", "left")
    return there.withColumn("drained_at", sf.greatest("drained_at", everywhere))
