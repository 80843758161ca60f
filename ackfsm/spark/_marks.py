"""The marks of messages: suspects by the fold, in Python workers; clean patterns on the driver.

The observables of a message may straddle two batches; the shared fold carries its states over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ackfsm.spark._lives import CLEAN_PATTERNS
from ackfsm.verify._arrays import States
from ackfsm.verify._fold import Machines, fold, fold_batches
from ackfsm.verify._format import OBSERVABLES, observable_code

__all__ = ["marks_of_clean_patterns", "marks_of_suspects", "names_of", "shown"]

Batches = Iterator[pa.RecordBatch]


def names_of(machines: Machines) -> tuple[str, ...]:
    """What messages can be marked with, each once."""
    return tuple(dict.fromkeys(machines.names))


def marks_of_suspects(observed: DataFrame, machines: Machines) -> DataFrame:
    """Fold ``observed``: rows of ``message``, ``at`` and ``observable``, all different.

    Returns:
        one row for each ``message``, with a struct ``marks`` of all names: 2 if the message is marked with it, 1 if
        only at rest, else 0.
    """
    codes = sf.array(*(sf.lit(each) for each in OBSERVABLES))
    code = sf.array_position(codes, sf.col("observable")) - 1
    rows = observed.select("message", "at", code.cast("tinyint").alias("code"))
    ordered = rows.repartition("message").sortWithinPartitions("message", "at", "code").select("message", "code")
    marks = ", ".join(f"{name}: tinyint" for name in names_of(machines))
    return ordered.mapInArrow(_folder(machines), f"message string, marks struct<{marks}>")


def marks_of_clean_patterns(machines: Machines) -> Mapping[str, Mapping[str, int]]:
    """For each plain life, how much a message is marked with each name in the end: 2, 1 or 0 as above."""
    return {
        life: _marks_of_word([observable_code(each) for each in word], machines)
        for life, word in CLEAN_PATTERNS.items()
    }


def shown(name: str, judged: Column) -> Column:
    """Whether a message is marked with ``name``, where ``judged`` says if its marks at rest count."""
    return sf.col("marks")[name] + judged.cast("int") > 1


def _marks_of_word(word: list[int], machines: Machines) -> Mapping[str, int]:
    states = fold(machines, np.zeros(1, np.int64), np.array(word, np.uint8)) if word else machines.initial[None, :]
    return {name: _marks(machines, name, states)[0].as_py() for name in names_of(machines)}


def _marks(machines: Machines, name: str, states: States) -> pa.Array:
    nobody = np.zeros(len(states), bool)
    always, at_rest = machines.means(name, states, nobody), machines.means(name, states, ~nobody)
    return pa.array(always.astype(np.int8) + at_rest)


def _folder(machines: Machines) -> Callable[[Batches], Batches]:
    """Rows of messages and codes, ordered by message, to rows of marks."""
    names = names_of(machines)

    def folded(batches: Batches) -> Batches:
        pairs = ((batch["message"], np.asarray(batch["code"]).astype(np.uint8)) for batch in batches)
        for messages, states in fold_batches(machines, pairs):
            marks = pa.StructArray.from_arrays([_marks(machines, name, states) for name in names], names)
            yield pa.RecordBatch.from_arrays([messages, marks], names=["message", "marks"])

    return folded
