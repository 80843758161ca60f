"""The join of the expansion: for each row the first covering act.

A *moment* is the struct ``(t, line)``, which orders all events.  An act has a *cut*: it reaches the rows of its
group whose moment lies before it.  Sorted backwards, the acts that reach a row are those that stand before it, so
a running minimum of their moments finds the first, and nothing is compared pairwise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

__all__ = ["before", "first_covering", "through"]


def before(moment: str) -> Column:
    """The cut of an act that reaches what is earlier than ``moment``."""
    return _cut(moment, 0)


def through(moment: str) -> Column:
    """The cut of an act that reaches what is not later than ``moment``; null if that is."""
    return sf.when(sf.col(moment).isNotNull(), _cut(moment, 1))


def _cut(moment: str, side: int) -> Column:
    return sf.struct(sf.col(f"{moment}.t"), sf.col(f"{moment}.line"), sf.lit(side).alias("side"))


def first_covering(members: DataFrame, acts: DataFrame, keys: Sequence[str], kinds: Collection[str]) -> DataFrame:
    """``members`` with a column for each of ``kinds``: when the first act of that kind reaches it, or null.

    ``members`` have ``at``, their moment; ``acts`` have ``at``, ``cut`` and ``kind``; both have ``keys``, which make
    the groups.
    """
    placed = members.withColumn("cut", before("at"))
    rows = placed.unionByName(acts.select(*keys, "at", "cut", "kind"), allowMissingColumns=True)
    later = Window.partitionBy(*keys).orderBy(sf.desc("cut")).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first = {kind: sf.min(sf.when(sf.col("kind") == kind, sf.col("at"))).over(later) for kind in kinds}
    return rows.withColumns(first).where("kind is null").drop("cut", "kind")
