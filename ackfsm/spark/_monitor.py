"""Watch a stream of events: each batch is folded with the kept rows before it, and new alerts are written.

The state after a batch and its alerts are files with the number of the batch.  One that Spark hands over once more,
after a restart, writes the same files again, so that nothing is lost and nothing is told twice.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame  # noqa: TC002 - Spark is there wherever this module is

from ackfsm import tables
from ackfsm.spark._batches import batched
from ackfsm.spark._tables import columns_read, configured, not_here
from ackfsm.support import files, throughput
from ackfsm.terms import Configuration, InputError
from ackfsm.text import shown
from ackfsm.verify import Configurations
from ackfsm.verify.folding.chunks import ROWS_AT_ONCE
from ackfsm.verify.folding.monitor import Alert, State, advanced
from ackfsm.verify.folding.passes import Asked, Folder

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from ackfsm.tables import Specification

ALERT_SCHEMA: Final = "batch bigint, t bigint, message string, kind string, verdict string, why string"
"""The columns of the alerts, as Spark takes a schema."""

_ALERTS: Final = pa.schema(
    [("batch", pa.int64()), ("t", pa.int64()), *((name, pa.string()) for name in ("message", "kind", "verdict", "why"))]
)
_OVER: Final = re.compile(r"over-(\d{9})\.parquet")
_KEPT_STATES: Final = 2


def monitor(  # noqa: PLR0913 - a stream, where to write, and what is asked
    events: DataFrame,
    config: Configurations | Configuration | Mapping[str, Any] | None,
    *,
    state: str | Path,
    alerts: str | Path,
    delay: str = "10s",
    horizon: str = "600s",
    specification: Specification | None = None,
    skew: int | None = 0,
    rows: int = ROWS_AT_ONCE,
    **trigger: Any,
) -> StreamingQuery:
    """Hold the messages of a stream to the model, and write alerts as they arise.

    Args:
        events: a streaming table with the columns of :data:`ackfsm.spark.EVENT_SCHEMA`.
        config: what is recorded, as for :func:`ackfsm.spark.verify`.
        state: a folder of this process for what is remembered; a query that is started with it again goes on there.
        alerts: a folder of this process for the alerts: Parquet with the columns of :data:`ALERT_SCHEMA`, one file for
            each batch that has some.  What they mean :class:`ackfsm.verify.folding.monitor.Alert` says.
        delay: by how much a line may come later than others of its time; so long nothing is told of its message.
        horizon: when nothing was told of a message for so long it is forgotten.
        specification: the tables; ``None`` for those that come with the package.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it in each batch.
        rows: about how many a chunk has.
        trigger: when a batch is taken, as Spark's ``DataStreamWriter.trigger`` has it: ``availableNow=True``.

    Returns:
        the query, which runs; stop it, or wait for it.

    Raises:
        InputError: a duration is none, ``config`` is not one, ``horizon`` is shorter than ``delay``, ``events`` is no
            stream, or a column is missing or has another type.  The query ends with one if ``state`` is damaged or not
            that of its checkpoint.
    """
    if not events.isStreaming:
        raise InputError("the table is no stream; read it with spark.readStream, or judge it with ackfsm.spark.verify")
    columns_read(events)
    known = specification or tables.load()
    lag, memory = _nanoseconds("delay", delay), _nanoseconds("horizon", horizon)
    if memory < lag:
        raise InputError(f"horizon ({horizon}) is shorter than delay ({delay}); make it longer")
    place = Path(state)
    files.make_folder(place)
    files.make_folder(Path(alerts))
    asked = Asked(specification=known, configuration=configured(config, known), skew=skew)
    watch = _Watch(place, Path(alerts), Folder(not_here, asked), lag, memory, rows)
    writer = events.writeStream.foreachBatch(watch.take).option("checkpointLocation", str(place / "checkpoint"))
    return (writer.trigger(**trigger) if trigger else writer).start()


def monitored(state: str | Path) -> Mapping[str, int | str]:
    """Return the counts of the monitor with this ``state``, and in ``unseen`` the things that it cannot see.

    Raises :class:`InputError` if there is none.
    """
    place = Path(state)
    batch = max(_batches(place), default=None)
    if batch is None:
        raise InputError(f"{shown(str(place))} has no state of a monitor; name the folder that was its `state`")
    known = _load(place, batch)
    numbers = {
        name: getattr(known, name) for name in ("latest", "events", "messages", "parse_errors", "late", "overdue")
    }
    return {
        "batch": batch,
        **numbers,
        "kept_lines": 0 if known.rows is None else len(known.rows),
        "unseen": _unseen(known),
    }


def _unseen(state: State) -> str:
    return (
        f"{state.messages} messages were counted or forgotten: of a line about one of them that comes now, only"
        f" that it is late is told. So it was with {state.late}; {state.overdue} were forgotten before they had"
        " come to rest."
    )


def _nanoseconds(name: str, text: object) -> int:
    if not isinstance(text, str):
        raise InputError(f"{name}: {text!r} has no unit; say it as text, such as '10s'")
    try:
        return int(throughput.parse_duration(text) * 10**9)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


@dataclasses.dataclass(frozen=True, slots=True)
class _Watch:
    """The work on each batch."""

    state: Path
    alerts: Path
    folder: Folder
    delay: int
    horizon: int
    rows: int

    def take(self, events: DataFrame, batch: int) -> None:
        """Take one batch: its alerts are written first, so that a batch is done when its state is there."""
        done = _batches(self.state)
        if batch == max(done, default=None):
            return
        if batch != max(done, default=-1) + 1:
            raise _not_that_of_its_checkpoint(self.state, batch, done)
        state = _load(self.state, batch - 1) if done else State()
        with batched(events, self.rows) as (count, each):
            after, alerts = state, tuple[Alert, ...]()
            if count:
                after, alerts = advanced(state, count, self.folder, each, delay=self.delay, horizon=self.horizon)
        if alerts:
            self._write(alerts, batch)
        files.write_files(
            {
                self.state / f"{name}-{batch:09}.parquet": _parquet(its)
                for name, its in sorted(after.saved().items(), reverse=True)
            }
        )
        for old in sorted(_batches(self.state))[:-_KEPT_STATES]:
            for name in ("over", "rows"):
                (self.state / f"{name}-{old:09}.parquet").unlink(missing_ok=True)

    def _write(self, alerts: tuple[Alert, ...], batch: int) -> None:
        rows = [{"batch": batch, **dataclasses.asdict(each)} for each in alerts]
        files.write_file(self.alerts / f"{batch:09}.parquet", _parquet(pa.Table.from_pylist(rows, _ALERTS)))


def _batches(state: Path) -> set[int]:
    """The numbers of the batches that were done; ``over`` is written last."""
    found = (_OVER.fullmatch(path.name) for path in state.iterdir()) if state.is_dir() else ()
    return {int(match[1]) for match in found if match}


_RESTORE: Final = "restore the whole folder, or start with a new one"


def _not_that_of_its_checkpoint(state: Path, batch: int, done: set[int]) -> InputError:
    known = f"is that after batch {max(done)}" if done else "is gone"
    return InputError(f"{shown(str(state))}: Spark goes on with batch {batch}, and the state {known}; {_RESTORE}")


def _load(state: Path, batch: int) -> State:
    """The state after a ``batch``.  Raises :class:`InputError` if it is damaged."""
    read = {name: state / f"{name}-{batch:09}.parquet" for name in ("over", "rows")}
    try:
        return State.loaded({name: pq.read_table(path) for name, path in read.items() if path.exists()})
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{shown(str(state))}: the state after batch {batch} is damaged ({why}); {_RESTORE}") from None
    except OSError as error:
        raise files.cannot_read(shown(str(state)), error, "a folder that can be read") from None


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())
