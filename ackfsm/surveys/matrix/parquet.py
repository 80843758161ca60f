"""The whole matrix as Parquet: one row for each configuration, scenario and anomaly."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa
from pyarrow import parquet as pq

from ackfsm.surveys.matrix._result import AnyNumber, Cell, Matrix
from ackfsm.tables import format_value
from ackfsm.terms import Anomaly, Configuration, is_optional, key_type, legal_values

_WORD = pa.dictionary(pa.int16(), pa.string())

_ROWS_A_GROUP = 1 << 16


def _setting(key: str) -> pa.Field:
    type_ = _WORD if _is_word(key) else pa.bool_() if key_type(key) is bool else pa.int64()
    return pa.field(key, type_, nullable=is_optional(key))


def _is_word(key: str) -> bool:
    """Whether some value of it is a word."""
    return any(isinstance(value, StrEnum) for value in legal_values(key))


def _schema(*, any_number: bool) -> pa.Schema:
    settings = [_setting(field.name) for field in dataclasses.fields(Configuration)]
    cell = [
        pa.field("messages", pa.int32(), nullable=any_number),
        pa.field("faults", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("max_faults", pa.int32(), nullable=any_number),
        pa.field("states", pa.int64(), nullable=False),
        pa.field("transitions", pa.int64(), nullable=False),
        pa.field("complete", pa.bool_(), nullable=False),
        pa.field("strongest", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
    ]
    finding = [
        pa.field("anomaly", _WORD, nullable=False),
        pa.field("reachable", pa.bool_()),
        pa.field("promised_absent", pa.bool_(), nullable=False),
        pa.field("length", pa.int32()),
        pa.field("witness", pa.list_(pa.field("element", pa.string(), nullable=False))),
    ]
    decided = [
        pa.field("proved_at", pa.string()),
        pa.field("undecided", pa.string()),
        pa.field("witness_messages", pa.int32()),
    ]
    return pa.schema([*settings, *cell, *finding, *(decided if any_number else [])])


def parquet(matrix: Matrix) -> bytes:
    """A Parquet file of ``matrix``.

    ``length`` and ``witness`` are null where the anomaly cannot happen; ``reachable`` is null where
    the search stopped before it could tell.  For any number of messages ``messages`` and ``max_faults`` are null, and
    three columns tell where it is proved, why it is undecided, and how many messages the witness takes.
    """
    schema, made = _schema(any_number=matrix.plan.messages is None), pa.BufferOutputStream()
    batches: list[pa.RecordBatch] = []
    with pq.ParquetWriter(made, schema, compression="zstd") as writer:
        for cells in matrix.rows():
            batches.append(_batch(cells, matrix, schema))
            if sum(batch.num_rows for batch in batches) >= _ROWS_A_GROUP:
                writer.write_table(pa.Table.from_batches(batches))
                batches = []
        if batches:
            writer.write_table(pa.Table.from_batches(batches))
    return bytes(made.getvalue())


def _batch(cells: Sequence[Cell], matrix: Matrix, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of one configuration."""
    anomalies = matrix.anomalies
    settings = cells[0].configuration.as_dict()
    columns: dict[str, list[object]] = {
        key: [format_value(value) if _is_word(key) else value for _ in cells for _ in anomalies]
        for key, value in settings.items()
    }
    of_cells = [_cell(cell, matrix.plan.messages) for cell in cells]
    columns |= {key: [cell[key] for cell in of_cells for _ in anomalies] for key in of_cells[0]}
    found = [_finding(cell, anomaly) for cell in cells for anomaly in anomalies]
    columns |= {key: [finding[key] for finding in found] for key in found[0]}
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def _cell(cell: Cell, messages: int | None) -> dict[str, object]:
    return {
        "messages": messages,
        "faults": [fault.value for fault in cell.scenario.faults],
        "max_faults": cell.scenario.max_faults,
        "states": cell.outcome.states,
        "transitions": cell.outcome.transitions,
        "complete": cell.outcome.complete,
        "strongest": cell.strongest,
    }


def _finding(cell: Cell, anomaly: Anomaly) -> dict[str, object]:
    witness = cell.outcome.witnesses.get(anomaly)
    return {
        "anomaly": anomaly.value,
        "reachable": cell.outcome.reachable(anomaly),
        "promised_absent": anomaly in cell.promised,
        "length": None if witness is None else len(witness),
        "witness": witness,
        **(_decided(cell.outcome, anomaly) if isinstance(cell.outcome, AnyNumber) else {}),
    }


def _decided(outcome: AnyNumber, anomaly: Anomaly) -> dict[str, object]:
    level = outcome.proved.get(anomaly)
    return {
        "proved_at": None if level is None else level.value,
        "undecided": outcome.undecided.get(anomaly),
        "witness_messages": outcome.messages.get(anomaly),
    }
