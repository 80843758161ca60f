"""A parallel map on Spark: a piece of the work for each task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession  # noqa: TC002 - Spark is there wherever this module is

from ackfsm.spark._errors import rows_of, spark_errors_translated

_RESULTS: Final = pa.schema([("place", pa.int32()), ("result", pa.binary())])


def spread(
    function: Callable[[Any], Any], arguments: Sequence[Any], *, session: SparkSession
) -> Iterator[tuple[int, Any]]:
    """The results of ``function`` for all ``arguments``, with their places; each is a task of its own.

    The function, arguments and results are pickled; the workers of ``session`` need the modules that they are from.

    Raises:
        AckfsmError: as ``function`` raises it, or because Spark gave up.
    """
    if not arguments:
        return
    rows = [(place, pickle.dumps(argument)) for place, argument in enumerate(arguments)]
    frame = session.createDataFrame(rows, "place int, argument binary").repartitionById(len(rows), "place")
    with spark_errors_translated("the work"):
        results = rows_of(frame.mapInArrow(_applied(function), "place int, result binary"))
    for result in results:
        yield result["place"], pickle.loads(result["result"])  # noqa: S301 - this process sent what made it


def _applied(function: Callable[[Any], Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def applied(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in (row for batch in batches for row in batch.to_pylist()):
            result = pickle.dumps(function(pickle.loads(row["argument"])))  # noqa: S301 - as above
            yield pa.RecordBatch.from_pylist([{"place": row["place"], "result": result}], _RESULTS)

    return applied
