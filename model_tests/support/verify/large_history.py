"""A large history of ordinary traffic with anomalies in known places, written as Parquet in row groups or as JSONL.

Everything is made from arrays: some million events a second.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CLIENTS: Final = 8
"""Producers, consumers and queues."""

SPACING: Final = 1_000
"""Nanoseconds between two sends of any producer."""

CONFIG: Final = {"profile": "jms", "send_mode": "asynchronous", "consumption": "receive"}
"""A producer sends before earlier messages are confirmed, and a consumer has several messages at once."""

HEADER: Final = {"ackfsm_history": 1, "config": CONFIG}

_LINES: Final = ("send", "confirmed", "delivered", "processed")
_AFTER: Final = (0, 180_000, 420_000, 610_000)
"""How long after its send each line of a message is written, in nanoseconds."""


@dataclasses.dataclass(frozen=True)
class Planted:
    """The numbers of the messages that have each anomaly."""

    loss: tuple[int, ...]
    unprocessed: tuple[int, ...]
    unflagged_duplicate: tuple[int, ...]
    missing_outcome: tuple[int, ...]

    @staticmethod
    def of(messages: int, each: int, seed: int) -> Planted:
        """So many of each anomaly, among so many messages."""
        chosen = np.random.default_rng(seed).choice(messages, 4 * each, replace=False).reshape(4, each)
        return Planted(*(tuple(sorted(some.tolist())) for some in chosen))

    def as_mapping(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers by the name of the anomaly."""
        return dataclasses.asdict(self)


def blocks(messages: int, planted: Planted, rows: int, *, clients: int = CLIENTS) -> Iterator[pa.Table]:
    """The events in the order of time, about ``rows`` at a time, and at last the ``drained``."""
    per_block = rows // len(_LINES)
    left: dict[str, npt.NDArray[np.int64]] = {name: np.empty(0, np.int64) for name in ("t", "kind", "number")}
    for begin in range(0, messages, per_block):
        end = min(messages, begin + per_block)
        new = _lines_of(np.arange(begin, end), planted)
        columns = {name: np.concatenate([left[name], new[name]]) for name in left}
        order = np.argsort(columns["t"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        until = len(order) if end == messages else int(np.searchsorted(columns["t"], end * SPACING))
        left = {name: column[until:] for name, column in columns.items()}
        yield _table({name: column[:until] for name, column in columns.items()}, clients)
    yield _drained(messages * SPACING + 10**7, clients)


def _lines_of(number: npt.NDArray[np.int64], planted: Planted) -> dict[str, npt.NDArray[np.int64]]:
    missing = {1: planted.missing_outcome, 2: planted.loss, 3: (*planted.loss, *planted.unprocessed)}
    found: dict[str, list[npt.NDArray[np.int64]]] = {"t": [], "kind": [], "number": []}
    for kind, after in enumerate(_AFTER):
        its = number[~np.isin(number, missing.get(kind, ()))]
        found["t"].append(its * SPACING + after + 1)
        found["kind"].append(np.full(len(its), kind))
        found["number"].append(its)
    again = np.intersect1d(number, planted.unflagged_duplicate)
    found["t"].append(again * SPACING + _AFTER[-1] + 90_001)
    found["kind"].append(np.full(len(again), 2))
    found["number"].append(again)
    return {name: np.concatenate(columns) for name, columns in found.items()}


def _table(columns: dict[str, npt.NDArray[np.int64]], clients: int) -> pa.Table:
    kind, number = columns["kind"], columns["number"]
    client, consumes = number % clients, kind >= 2
    names = [f"{role}-{n}" for role in ("producer", "consumer") for n in range(1, clients + 1)]
    queues = [f"orders.{n}" for n in range(1, clients + 1)]
    delivered = kind == 2
    return pa.table(
        {
            "t": columns["t"],
            "process": _named(client + clients * consumes, names),
            "event": _named(kind, list(_LINES)),
            "queue": _named(client, queues),
            "message": pc.binary_join_element_wise("order-", pa.array(number).cast(pa.string()), "-7f3a", ""),
            "session": _named(client + clients * consumes, [f"{name}.s1" for name in names]),
            "delivery_mode": pc.if_else(pa.array(kind == 0), "PERSISTENT", pa.scalar(None, pa.string())),
            "redelivered": pc.if_else(pa.array(delivered), False, pa.scalar(None, pa.bool_())),  # noqa: FBT003
        },
        schema=SCHEMA,
    )


SCHEMA: Final = pa.schema(
    [
        ("t", pa.int64()),
        *((name, pa.string()) for name in ("process", "event", "queue", "message", "session", "delivery_mode")),
        ("redelivered", pa.bool_()),
    ],
    metadata={"ackfsm_history": json.dumps(HEADER)},
)


def _named(codes: npt.NDArray[np.int64], names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _drained(t: int, clients: int) -> pa.Table:
    rows = [{"t": t, "process": "nemesis", "event": "drained", "queue": f"orders.{n}"} for n in range(1, clients + 1)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write_parquet(path: Path, messages: int, planted: Planted, rows: int = 1 << 20) -> int:
    """Write the history, a block in each row group; returns how many events it has."""
    events = 0
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for block in blocks(messages, planted, rows):
            writer.write_table(block, row_group_size=len(block) or None)
            events += len(block)
    return events


def write_lines(path: Path, messages: int, planted: Planted, rows: int = 1 << 20) -> int:
    """The same as JSONL."""
    events = 0
    with path.open("wb") as file:
        file.write(json.dumps(HEADER).encode() + b"\n")
        for block in blocks(messages, planted, rows):
            texts = []
            for name in SCHEMA.names:
                column = block[name].cast(pa.string()).combine_chunks()
                quote = "" if name in {"t", "redelivered"} else '"'
                before = f'"{name}": {quote}' if name == "t" else f', "{name}": {quote}'
                field = pc.binary_join_element_wise(before, column, quote, "")
                texts.append(pc.fill_null(field, ""))
            lines = pc.binary_join_element_wise("{", *texts, "}\n", "")
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "")
            file.write(joined[0].as_py().encode())
            events += len(block)
    return events
