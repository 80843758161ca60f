"""Histories of Jepsen's queue workloads, in EDN: a vector of operations, or one operation a line (``history.edn``).

An operation is a map with ``:type`` (``:invoke``, ``:ok``, ``:fail``, ``:info``), ``:f``, ``:value``, ``:process`` and
``:time``.  By Jepsen's rules ``:ok`` has happened, ``:fail`` has not, and ``:info`` may have; the process of an
``:info`` is not used again.  The value that is enqueued is the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ackfsm.history.importing.edn import EdnError, Keyword, read_all
from ackfsm.history.importing.interface import Importer, Options, PlainImporter, Problems, UnreadError
from ackfsm.history.importing.rows import Rows
from ackfsm.history.importing.streams import lines
from ackfsm.terms import Fault, InputError
from ackfsm.text import quoted, shown

if TYPE_CHECKING:
    import pyarrow as pa

_QUEUE: Final = "queue"
"""What the queue is called: a history of Jepsen has one, and does not name it."""

_STEP: Final = 1_000
"""Nanoseconds between two operations of a history without times."""

_CLIENT: Final = "Jepsen's clients tell what they enqueued and dequeued, and nothing of how it was acknowledged"
_BROKER: Final = "the broker tells Jepsen nothing"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "redelivered": "a dequeue gives the value alone; each after the first is taken for flagged",
        "delivery_count": "a dequeue gives the value alone",
        **dict.fromkeys(("acknowledge", "acknowledged", "ack_in_doubt"), _CLIENT),
        **dict.fromkeys(("journal_written", "journal_synced", "depth"), _BROKER),
        "waiting": "an operation that never returned is crashed (:info) or missing",
        "delivery_mode": "operations do not say it",
    }
)

_FAULTS: Final[Mapping[str, tuple[Fault, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("start", "start-partition", "partition", "pause", "start-pause"),
            (Fault.PRODUCER_LINK_LOSS, Fault.CONSUMER_LINK_LOSS),
        ),
        **dict.fromkeys(("kill", "crash", "kill-node", "start-kill"), (Fault.BROKER_KILL,)),
    }
)
"""What nemeses do, by the ``:f`` that begins it."""

_ENDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "stop": ("start",),
        "stop-partition": ("start-partition", "partition"),
        "heal": ("start-partition", "partition"),
        "resume": ("pause", "start-pause"),
        "stop-pause": ("start-pause",),
        "restart": ("kill", "crash"),
        "stop-kill": ("start-kill",),
        "start": ("kill", "crash", "kill-node"),
    }
)
"""What ends what; ``:start`` begins a partition unless there is something killed that it can start."""


def importer(_: Options) -> Importer:
    """What reads Jepsen's histories of queue workloads."""
    return PlainImporter(_CANNOT_SHOW, _batches)


def _batches(paths: Sequence[Path], problems: Problems) -> Iterator[pa.RecordBatch]:
    for path in paths:
        history = _History(path, problems)
        for line, operation in _operations(path):
            history.take(line, operation)
            yield from history.rows.full()
        history.finish()
        yield from history.rows.rest()


def _operations(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        yield from read_all((number, _decoded(path, number, line)) for number, line in lines(path))
    except EdnError as error:
        raise InputError(
            f"{shown(str(path))}, line {error.line:,}: {shown(str(error))}; it has to be Jepsen's history as EDN"
            " (history.edn), a vector of operations or one a line"
        ) from None


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise InputError(f"{shown(str(path))}, line {number:,}: it is not UTF-8; save it as UTF-8") from None


class _History:
    """One history, as far as it was read."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self.rows = Rows()
        self.sent: set[str] = set()
        self.dequeued: set[str] = set()
        self.going_on: dict[str, int] = {}
        self.nemesis_steps: dict[str, int] = {}
        self.known = 0
        self.number = 0
        self.now = 0
        self.drained: int | None = None

    def take(self, line: int, operation: Any) -> None:
        """Take the next operation."""
        self.number += 1
        try:
            self._take(operation)
        except UnreadError as error:
            self.problems.unread(str(error), self.path, line=line)

    def _take(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise UnreadError("a value that is no map, and so no operation")
        kind, name = operation.get("type"), operation.get("f")
        if kind not in _KINDS:
            raise UnreadError("an operation of which :type is not :invoke, :ok, :fail or :info")
        self.now = self._time(operation)
        process = operation.get("process")
        if process == "nemesis":
            self._nemesis(str(name))
            return
        take = _OPERATIONS.get(str(name))
        if take is None:
            raise UnreadError(f"an operation :f {quoted(str(name))}, which is none of a queue workload")
        self.known += 1
        take(self, f"process-{_text(process)}", str(kind), operation)

    def _time(self, operation: Mapping[str, Any]) -> int:
        time = operation.get("time")
        if time is None:
            return self.number * _STEP
        if not isinstance(time, int) or isinstance(time, bool) or not 0 <= time < 2**63:
            raise UnreadError("an operation of which :time is no whole number of nanoseconds from 0")
        return time

    def enqueue(self, process: str, kind: str, operation: Mapping[str, Any]) -> None:
        """A message is sent, or its send has ended."""
        message = _text(operation.get("value"))
        if kind == "invoke":
            if message in self.sent:
                raise UnreadError("an enqueue of a value that was enqueued before: its messages cannot be told apart")
            self.sent.add(message)
            self.drained = None
        elif message not in self.sent:
            raise UnreadError("an end of an enqueue that was not invoked")
        event = {"invoke": "send", "ok": "confirmed", "fail": "rejected", "info": "in_doubt"}[kind]
        self.add(process, event, message, error=_reason(operation) if kind in {"fail", "info"} else None)

    def dequeue(self, process: str, kind: str, operation: Mapping[str, Any]) -> None:
        """A message was taken, and the client has done with it; if it crashed, it may have taken one that is gone."""
        if kind == "ok":
            self._delivered(process, operation.get("value"))
        elif kind == "info":
            self.add(process, "close", error=_reason(operation) or "crashed")

    def drain(self, process: str, kind: str, operation: Mapping[str, Any]) -> None:
        """Messages were taken until the queue was seen empty."""
        if kind == "info":
            self.add(process, "close", error=_reason(operation) or "crashed")
            self.drained = None
        if kind != "ok":
            return
        values = operation.get("value")
        if not isinstance(values, tuple | frozenset):
            raise UnreadError("a drain of which :value is no collection")
        for value in values:
            self._delivered(process, value)
        self.drained = self.now

    def _delivered(self, process: str, value: Any) -> None:
        message = _text(value)
        self.add(process, "delivered", message, redelivered=message in self.dequeued)
        self.add(process, "processed", message)
        self.dequeued.add(message)

    def _nemesis(self, name: str) -> None:
        """Nemeses write each operation twice, when it begins and when it has taken effect."""
        step = self.nemesis_steps[name] = self.nemesis_steps.get(name, 0) + 1
        begins = step % 2 == 1
        ended = [fault for each in _ENDS.get(name, ()) for fault in _FAULTS[each] if self.going_on.get(each)]
        if ended:
            if not begins:
                for each in _ENDS[name]:
                    self.going_on[each] = 0
                for fault in dict.fromkeys(ended):
                    self.add("nemesis", "recovered", fault=fault)
        elif name in _FAULTS:
            if begins:
                self.going_on[name] = 1
                for fault in _FAULTS[name]:
                    self.add("nemesis", "fault", fault=fault, error=name)
        elif name not in _ENDS:
            raise UnreadError(f"a nemesis operation :f {quoted(name)}, for which format 1 has no fault")

    def add(self, process: str, event: str, message: str | None = None, **fields: Any) -> None:
        """Add an event."""
        queue = None if process == "nemesis" else _QUEUE
        self.rows.add(t=self.now, process=process, event=event, message=message, queue=queue, **fields)

    def finish(self) -> None:
        """The end of the history: it counts as drained if it ends with drains that have all returned."""
        if not self.known:
            raise InputError(
                f"{shown(str(self.path))} has no operation of a queue; a history of Jepsen has maps like"
                " {:type :invoke, :f :enqueue, :value 1, :process 0, :time 0}"
            )
        if self.drained is None:
            self.problems.not_shown("drained", "no :drain was :ok after the last :enqueue, or one has crashed since")
        else:
            self.now = max(self.now, self.drained)
            self.rows.add(t=self.now, process="nemesis", event="drained", queue=_QUEUE)


_KINDS: Final = ("invoke", "ok", "fail", "info")
_OPERATIONS: Final[Mapping[str, Callable[[_History, str, str, Mapping[str, Any]], None]]] = MappingProxyType(
    {"enqueue": _History.enqueue, "dequeue": _History.dequeue, "drain": _History.drain}
)


def _reason(operation: Mapping[str, Any]) -> str | None:
    error = operation.get("error")
    return None if error is None else _text(error)


def _text(value: Any) -> str:
    """A value as EDN writes it; a string as it is, for it is mostly an id."""
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"[{' '.join(map(_text, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "nil", True: "true", False: "false"}[value]
    return str(value)
