"""The events of a history as the pipeline needs them: names hashed to numbers, and which kinds occur.

Numbers are cheap to group by, to join by and to aggregate, names are not.  A name's number is its 64-bit hash;
that no two names of a history share one is not assumed but seen (:func:`overview_of`), and where it is not so,
another seed is taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ackfsm.terms import AckScope, Fault
from ackfsm.verify._format import TELLERS, VOCABULARY, Event

__all__ = ["NUMBERED", "Overview", "events_of", "is_collision_free", "kinds_of", "names_of", "overview_of"]

NUMBERED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "session": ("session",),
        "queue": ("queue",),
        "process": ("process",),
        "lane": ("queue", "delivery_mode", "process"),
        "tx": ("process", "transaction"),
    }
)
"""What is numbered, by which names: a session, a queue, a process, what keeps the order of a producer, a transaction.

There is no number where the last of the names is absent.
"""

_NAMING: Final = "event in ('fault', 'recovered') and coalesce(session != process or queue is not null, false)"
"""Whether a line names the session or the queue that a fault hit."""

_NAMES: Final = tuple(dict.fromkeys(name for names in NUMBERED.values() for name in names))
_SAME_IN_ALL: Final = ("readable", "event", "fault", "scope", "transacted", "counted", "naming")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What occurs in a history, so that nothing is joined to what is not there.

    Attributes:
        events: how many there are.
        complete: whether all rows are events.
        kinds, scopes: which events, which scopes of acknowledgements.
        faults: the kinds that were recorded, in the order of :class:`Fault`.
        of_calls: those of one call, in the order of the vocabulary.
        ranged: whether a line confirms a range.
        transacted: whether an event is in a transaction.
        counted: whether an event has a delivery count.
        naming: whether a fault or its repair names a session or a queue.
    """

    events: int
    complete: bool
    kinds: frozenset[Event]
    scopes: frozenset[AckScope]
    faults: tuple[Fault, ...]
    of_calls: tuple[str, ...]
    ranged: bool
    transacted: bool
    counted: bool
    naming: bool


def kinds_of(rows: DataFrame) -> DataFrame:
    """How many ``rows`` (of :class:`ackfsm.spark._lines.Lines`) there are of each kind, with all the names in them."""
    described = rows.select(
        "readable",
        "event",
        "fault",
        "scope",
        sf.col("transaction").isNotNull().alias("transacted"),
        sf.col("delivery_count").isNotNull().alias("counted"),
        sf.expr(_NAMING).alias("naming"),
        sf.coalesce("session", "process").alias("session"),
        *(name for name in _NAMES if name != "session"),
    )
    return described.groupBy(*described.columns).agg(sf.count("*").alias("number"))


def overview_of(kinds: DataFrame) -> Overview:
    """Sum up ``kinds``."""
    groups = kinds.groupBy(*_SAME_IN_ALL).agg(sf.sum("number").alias("number")).collect()
    events = [group for group in groups if group.readable]
    faults = {group.fault for group in events if group.event == Event.FAULT}
    return Overview(
        events=sum(group.number for group in events),
        complete=len(events) == len(groups),
        kinds=frozenset(Event(group.event) for group in events),
        scopes=frozenset(AckScope(group.scope) for group in events if group.scope is not None),
        faults=tuple(fault for fault in Fault if fault in faults),
        of_calls=tuple(fault for fault in VOCABULARY["fault"] if fault in faults.difference(Fault)),
        ranged=any(group.event == Event.CONFIRMED and group.scope == AckScope.UP_TO for group in events),
        transacted=any(group.transacted for group in events),
        counted=any(group.counted for group in events),
        naming=any(group.naming for group in events),
    )


def is_collision_free(kinds: DataFrame, seed: int) -> bool:
    """Whether, with this ``seed``, no two names in ``kinds`` have the same number."""
    named = sf.array(
        *(
            sf.struct(
                sf.lit(family).alias("family"), _number(names, seed).alias("number"), sf.array(*names).alias("names")
            )
            for family, names in NUMBERED.items()
        )
    )
    numbered = kinds.select(sf.inline(named)).where("number is not null").distinct()
    return numbered.groupBy("family", "number").count().where("count > 1").isEmpty()


def names_of(kinds: DataFrame, family: str, seed: int) -> DataFrame:
    """The numbers of ``family`` with their last name: rows of ``family`` and ``name``."""
    names = NUMBERED[family]
    return kinds.select(_number(names, seed).alias(family), sf.col(names[-1]).alias("name")).distinct()


def events_of(rows: DataFrame, overview: Overview, seed: int) -> DataFrame:
    """The events among ``rows``.

    Returns:
        their fields (a ``depth`` of nothing is a ``drained``, and a ``waiting`` befell no message), with the numbers of
        :data:`NUMBERED` for names (of the process where no session is named), ``errs``: whether they have an ``error``,
        ``teller``: whether their process tells of others, and ``at``: their moment, the struct ``(t, line)``.
    """
    events = rows if overview.complete else rows.where("readable")
    named = events.withColumn("session", sf.coalesce("session", "process"))
    numbers = (_number(names, seed).alias(family) for family, names in NUMBERED.items())
    empty = sf.expr("event = 'depth' and position = 0 and delivery_count = 0")
    return named.select(
        *("t", "line"),
        sf.when(empty, Event.DRAINED.value).otherwise(sf.col("event")).alias("event"),
        sf.expr("if(event = 'waiting', null, message)").alias("message"),
        *("redelivered", "delivery_count", "scope", "fault"),
        *numbers,
        sf.col("error").isNotNull().alias("errs"),
        sf.col("process").isin(*TELLERS).alias("teller"),
        sf.struct("t", "line").alias("at"),
    )


def _number(names: tuple[str, ...], seed: int) -> Column:
    marked = [part for name in names for part in (sf.coalesce(name, sf.lit("")), sf.col(name).isNull())]
    return sf.when(sf.col(names[-1]).isNotNull(), sf.xxhash64(sf.lit(seed), *marked))
