"""OpenTelemetry messaging spans, as OTLP JSON: one document, or one a line as the collector's file exporter writes.

What is read follows the semantic conventions for messaging spans, the present names and the older ones:

* a *send* (publish) span gives ``send`` at its start and ``confirmed`` at its end, with an error ``in_doubt``, and
  ``rejected`` if the error says that the broker refused the message;
* a *receive* span gives ``delivered`` at its end, a *process* (deliver) span ``delivered`` at its start unless a
  receive span has shown it, and ``processed`` at its end, with an error ``failed``;
* a *settle* span gives ``acknowledge`` at its start, with an error ``ack_in_doubt`` too; one that gives the message
  back gives ``failed``, one that dead-letters it ``dead_lettered``;
* a *create* span gives nothing but the context of its message.

A message is called by ``messaging.message.id``.  A span without it tells of the message whose context it is, has as
parent, or links to: such spans are held to the end, and then named by what other spans say of that context.  Spans that
have the id and tell of one message are the usual ones; they are handled a column at a time.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.format import EVENTS, Event
from ackfsm.history.importing.interface import Options, Problems
from ackfsm.history.importing.otlp_spans import (
    CREATE,
    NOT_OF_MESSAGING,
    PROCESS,
    RECEIVE,
    SEND,
    SPANS,
    TELLS_NOTHING,
    Contents,
    contents_of,
)
from ackfsm.history.importing.rows import batch_of
from ackfsm.history.importing.streams import Block, blocks, can_be_cut
from ackfsm.tables.batch import process_pool
from ackfsm.terms import InputError
from ackfsm.text import quoted, shown

_CHUNK: Final = 1 << 14
"""Spans of which the events are made at a time."""

_TOGETHER: Final = 1 << 8
"""Spans that are looked at together: among so many, a receive span may come after the process spans in it."""

_BLOCK: Final = 2 << 20
"""Bytes that become columns at a time."""

_WHOLE: Final = 256 << 20
"""Bytes that a document on several lines may have."""

_SHARE: Final = 256 << 20
"""Bytes for which a process is worth the second that it needs to start."""

_MOST_PROCESSES: Final = 4
"""More would wait: what they read becomes events in this one."""

_FROM_THE_BROKER: Final = "a trace holds what clients do; the broker has no span"
_NO_TRANSACTIONS: Final = "the conventions for messaging spans have no transactions"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("drained", "depth", "expired", "journal_written", "journal_synced"), _FROM_THE_BROKER),
        **dict.fromkeys(("fault", "recovered"), "no span tells that a process was killed or a connection broke"),
        **dict.fromkeys(
            ("begin", "commit", "committed", "commit_in_doubt", "rollback", "rolled_back", "transaction"),
            _NO_TRANSACTIONS,
        ),
        "waiting": "a span is exported when its call has ended",
        "acknowledged": "a span that settles ends when the call returns, whether the broker has answered or not",
        "recover": "the conventions have no span for it",
        "close": "the conventions have no span for it",
        "delivery_mode": "no attribute says whether a message is persistent",
    }
)


def importer(options: Options) -> Otlp:
    """What reads OTLP JSON."""
    return Otlp(options.jobs)


_Run: TypeAlias = "Callable[[Callable[[Block], Contents], Iterator[Block]], Iterator[Contents]]"
"""Calls a function for each block, in their order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Otlp:
    """Reads messaging spans.

    Attributes:
        jobs: how many processes may read files that are large.
        block: bytes that become columns at a time; ``share`` is those that each process has at least.
    """

    jobs: int = 1
    block: int = _BLOCK
    share: int = _SHARE

    @property
    def cannot_show(self) -> Mapping[str, str]:
        """What no trace shows."""
        return _CANNOT_SHOW

    def batches(self, paths: Sequence[Path], problems: Problems) -> Iterator[pa.RecordBatch]:
        """The events of the spans in these files.

        Spans without ``messaging.message.id`` are held to the end, and the files are then read once more for the names
        of their messages.  Raises :class:`InputError` where a file is no OTLP JSON.
        """
        trace = _Trace(problems)
        with self._runner(paths) as run:
            for path in paths:
                for rows in _chunks(path, run(contents_of, _documents(path, self.block)), problems):
                    yield from trace.told_by(path, rows)
            yield from trace.flushed()
            if trace.held:
                again = (block for path in paths for block in _documents(_readable_again(path), self.block))
                yield from trace.rest(run(functools.partial(contents_of, contexts=True), again))
        trace.finish()

    @contextlib.contextmanager
    def _runner(self, paths: Sequence[Path]) -> Iterator[_Run]:
        """What runs here, or in other processes if these files are large and can be read in parts."""
        size = sum(path.stat().st_size for path in paths if can_be_cut(path))
        number = min(self.jobs, _MOST_PROCESSES, size // self.share)
        if number > 1:
            with process_pool(number) as pool:
                yield functools.partial(pool.in_order, ahead=2 * number)
        else:
            yield map


def _readable_again(path: Path) -> Path:
    if not path.is_file():
        raise InputError(
            f"{shown(str(path))} has spans without messaging.message.id and cannot be read twice, as finding the names"
            " of their messages needs; write it to a file, and name that"
        )
    return path


def _documents(path: Path, size: int) -> Iterator[Block]:
    """The documents at ``path``: one a line, or all lines as one."""
    found = blocks(path, size)
    before = list[Block]()
    for block in found:
        before.append(block)
        first = next(filter(bytes.strip, block.lines()), None)
        if first is not None:
            break
    else:
        raise InputError(f"{shown(str(path))} is empty; export the trace again")
    every = itertools.chain(before, found)
    return iter([_joined(path, every)]) if first.rstrip().endswith((b"{", b"[", b",")) else every


def _joined(path: Path, parts: Iterator[Block]) -> Block:
    """One document on several lines as one line; the first that is not blank keeps its number."""
    whole, size = [], 0
    for part in parts:
        for line in part.lines():
            whole.append(line)
            size += len(line)
            if size > _WHOLE:
                raise InputError(
                    f"{shown(str(path))} is one document of more than {_WHOLE >> 20} MiB; write one document a line, as"
                    " the collector's file exporter does"
                )
    blank = len(whole) - len(list(itertools.dropwhile(lambda line: not line.strip(), whole)))
    text = b"\n" * blank + b"\r".join(whole[blank:])  # white space too, and no new line
    return Block(path, 0, len(text), text)


def _chunks(path: Path, contents: Iterator[Contents], problems: Problems) -> Iterator[pa.RecordBatch]:
    """The spans of a file, some whole documents at a time, in whatever blocks they were read.

    What could not be read of these is told to ``problems`` before.
    """
    rest, unread, before = pa.RecordBatch.from_pylist([], SPANS), collections.deque[tuple[int, str]](), 0
    found, why = False, ""
    for each in contents:
        if each.why is not None and not why:
            why = f"line {before + each.why[0]:,}: {each.why[1]}"
        found = found or each.found
        _note_lost(each, problems)
        unread += ((before + line, reason) for line, reason in each.unread)
        lines = pc.add(each.rows["line"], before)
        rows = pa.concat_batches([rest, each.rows.set_column(0, SPANS.field("line"), lines)])
        begin = 0
        for end in _ends(np.asarray(rows["line"])):
            chunk = rows.slice(begin, end - begin)
            _note_unread(problems, path, unread, chunk["line"][-1].as_py())
            yield chunk
            begin = end
        rest, before = rows.slice(begin), before + each.lines
    if not found:
        raise InputError(
            f"{shown(str(path))} is no OTLP JSON ({why}); it has resourceSpans, in one document or one a line"
        )
    _note_unread(problems, path, unread, None)
    yield rest


def _ends(lines: Any) -> Iterator[int]:
    """Yield the ends of groups of documents that are looked at together; ``lines`` has each span's."""
    ends = np.append(np.flatnonzero(np.diff(lines)) + 1, len(lines))
    at = int(np.searchsorted(ends, _TOGETHER))
    while at < len(ends):
        end = int(ends[at])
        yield end
        at = int(np.searchsorted(ends, end + _TOGETHER))


def _note_unread(problems: Problems, path: Path, unread: collections.deque[tuple[int, str]], last: int | None) -> None:
    """Tell what could not be read up to a line, or to the end."""
    while unread and (last is None or unread[0][0] <= last):
        line, reason = unread.popleft()
        problems.unread(reason, path, line=line)


def _note_lost(contents: Contents, problems: Problems) -> None:
    """Tell which documents are left out, and whether there are others that were not kept."""
    if contents.others:
        problems.left_out("documents of logs or metrics", contents.others)
    if contents.sampled:
        for name in ("send", "confirmed", "delivered", "processed", "acknowledge"):
            problems.not_shown(name, f"traces were sampled (tracestate {quoted(contents.sampled)})")


@dataclasses.dataclass(frozen=True, slots=True)
class _Held:
    """A span that does not name its message, or tells of several.

    Attributes:
        batch: how many messages it says that it tells of.
        own: its context; ``parent`` is that of its parent.
        links: the contexts that it links to, each with the message if the link says which.
    """

    operation: int
    batch: int | None
    own: str
    parent: str | None
    links: tuple[tuple[str, str | None], ...]
    message: str | None
    place: tuple[Path, int]

    @property
    def is_batch(self) -> bool:
        """Whether it says that it tells of several messages, or of none."""
        return self.batch is not None and self.batch != 1

    @property
    def nothing(self) -> bool:
        """Whether it says that there was no message: a receive() that came back with none."""
        return self.batch is None and not self.links and self.message is None


_OF_EVENTS: Final = (
    *("at_start", "at_end", "start", "end", "process", "session", "queue", "message", "error"),
    *("redelivered", "delivery_count"),
)
"""The columns of spans that make events."""


class _Trace:
    """The state of reading a trace."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.held: list[_Held] = []
        self.held_rows: list[pa.RecordBatch] = []
        self.waiting: list[pa.RecordBatch] = []
        self.rows = 0
        self.received: set[str] = set()
        self.sent: set[str] = set()
        self.delivered: set[str] = set()
        self.unflagged = False

    def told_by(self, path: Path, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The events of the spans that name their messages; the others are held."""
        rows = self._of_first_sight(self._usable(path, rows))
        if rows["alone"].false_count:
            self._hold(path, rows.filter(pc.invert(rows["alone"])))
            rows = rows.filter(rows["alone"])
        if rows.num_rows:
            self.waiting.append(rows.select(_OF_EVENTS))
            self.rows += rows.num_rows
        if self.rows >= _CHUNK:
            yield from self.flushed()

    def flushed(self) -> Iterator[pa.RecordBatch]:
        """The events of what waits to be told together."""
        if self.waiting:
            rows = pa.concat_batches(self.waiting)
            self.waiting, self.rows = [], 0
            yield from self._events(rows)

    def _usable(self, path: Path, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The spans that tell of messages and can be understood; the others are counted."""
        operation = np.asarray(rows["operation"])
        usable = operation >= 0
        if not usable.all():
            others = int((operation == NOT_OF_MESSAGING).sum())
            if others:
                self.problems.left_out("spans that are not of messaging", others)
            strange = rows.filter(rows["why"].is_valid())
            for line, why in zip(*map(pa.Array.to_pylist, (strange["line"], strange["why"])), strict=True):
                self.problems.unread(why, path, line=line)
            rows = rows.filter(pa.array(usable))
        if rows["lost_links"].null_count < rows.num_rows:
            lossy = rows.filter(pc.greater(rows["lost_links"], 0))
            for line, count in zip(*map(pa.Array.to_pylist, (lossy["line"], lossy["lost_links"])), strict=True):
                why = "links to messages that the SDK has dropped (droppedLinksCount)"
                self.problems.unread(why, path, line=line, count=count)
        return rows

    def _of_first_sight(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """With the deliveries at the start of process spans only where no receive span has shown them."""
        operation = np.asarray(rows["operation"])
        if rows["own"].null_count < rows.num_rows:
            self.received.update(rows["own"].filter(pa.array(operation == RECEIVE)).to_pylist())
        if not self.received or rows["parent"].null_count == rows.num_rows:
            return rows
        at_start = np.array(rows["at_start"])
        processes = np.flatnonzero(operation == PROCESS)
        parents = rows["parent"].take(pa.array(processes)).to_pylist()
        shown_before = [parent in self.received for parent in parents]
        at_start[processes[shown_before]] = TELLS_NOTHING
        return rows.set_column(rows.schema.get_field_index("at_start"), "at_start", pa.array(at_start))

    def _hold(self, path: Path, rows: pa.RecordBatch) -> None:
        self.held_rows.append(rows.select(_OF_EVENTS))
        for row in rows.select(("operation", "batch", "own", "parent", "links", "message", "line")).to_pylist():
            links = tuple((link["context"], link["message"]) for link in row["links"])
            one = len(links) <= 1 and (row["batch"] is None or row["batch"] <= 1)
            self.held.append(
                _Held(
                    operation=row["operation"],
                    batch=row["batch"],
                    own=row["own"],
                    parent=row["parent"],
                    links=links,
                    message=row["message"] if one else None,
                    place=(path, row["line"]),
                )
            )

    def _events(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The events of spans that name their message, a kind of event at a time."""
        at_start, at_end = np.asarray(rows["at_start"]), np.asarray(rows["at_end"])
        start, end = np.asarray(rows["start"]), np.asarray(rows["end"])
        for number, event in enumerate(EVENTS):
            then = at_end == number
            chosen = np.flatnonzero(then | (at_start == number))
            if len(chosen):
                its, times = rows.take(pa.array(chosen)), np.where(then, end, start)[chosen]
                columns = {name: its[name] for name in (*_OF_ALL, *_OF_SOME.get(event, ()))}
                if event is Event.DELIVERED:
                    columns["redelivered"] = self._flags(its, times)
                if event is Event.SEND:
                    yield from self._sends(times, columns)
                else:
                    yield _batch(event, times, columns)

    def _sends(self, times: Any, columns: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """The first span that sends a message, by time, as its send, and each other one as a resend."""
        again = _seen_before(self.sent, _objects(columns["message"]), times)
        for event, mask in (("send", ~again), ("resend", again)):
            if mask.any():
                yield _batch(event, times[mask], {name: each.filter(pa.array(mask)) for name, each in columns.items()})

    def _flags(self, rows: pa.RecordBatch, times: Any) -> pa.Array:
        """For each delivery whether its message was delivered before, by its attributes as far as they tell it."""
        flags = pc.coalesce(rows["redelivered"], pc.greater(rows["delivery_count"], 1))
        before = _seen_before(self.delivered, _objects(rows["message"]), times)
        if not flags.null_count:
            return flags
        self.unflagged = True
        return pc.coalesce(flags, pa.array(before))

    def rest(self, again: Iterator[Contents]) -> Iterator[pa.RecordBatch]:
        """The events of the spans that were held, with the names that the spans of ``again`` give to contexts."""
        names = _Names({context for held in self.held for context in _contexts_of(held)})
        for each in again:
            names.learn(each.rows)
        names.learn_held(self.held)
        rows = pa.Table.from_batches(self.held_rows)
        for begin in range(0, len(self.held), _CHUNK):
            places, messages = list[int](), list[str]()
            for place, held in enumerate(self.held[begin : begin + _CHUNK], begin):
                found = names.messages_of(held)
                self._note_unnamed(held, len(found))
                places += [place] * len(found)
                messages += found
            if messages:
                (told,) = rows.take(pa.array(places)).combine_chunks().to_batches()
                where = told.schema.get_field_index("message")
                yield from self._events(told.set_column(where, "message", pa.array(messages, pa.string())))

    def _note_unnamed(self, held: _Held, found: int) -> None:
        """Count the messages of a span that nothing names."""
        expected = held.batch if held.batch is not None else max(1, len(held.links))
        if held.operation != CREATE and found < expected and not (held.operation == RECEIVE and held.nothing):
            why = "a message without a name: neither its span nor anything that it links to has a messaging.message.id"
            file, line = held.place
            self.problems.unread(why, file, line=line, count=expected - found)

    def finish(self) -> None:
        """Note the events that the whole trace turned out not to show."""
        if self.unflagged:
            self.problems.not_shown(
                "redelivered",
                "the spans have no attribute for it; each delivery of a message after the first is taken for flagged",
            )
            self.problems.not_shown("delivery_count", "the spans have no attribute for it")
        strange = len(self.delivered - self.sent)
        if strange:
            self.problems.not_shown(
                "send",
                f"{strange:,} of the messages that were received have no span of their send: it was sampled away, or"
                " their producer is not instrumented",
            )


_OF_ALL: Final = ("process", "queue", "message", "session")
_OF_SOME: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "delivered": ("delivery_count",),
        **dict.fromkeys(("ack_in_doubt", "in_doubt", "rejected", "failed"), ("error",)),
    }
)
"""The columns that some events have beside those that all have."""


def _batch(event: str, times: Any, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Events of one kind."""
    count = len(times)
    columns["t"] = pa.array(times, pa.int64())
    columns["event"] = pa.repeat(pa.scalar(event, pa.string()), count)
    if event in {"acknowledge", "ack_in_doubt"}:
        columns["scope"] = pa.repeat(pa.scalar("message", pa.string()), count)
    return batch_of(columns, count)


def _seen_before(seen: set[str], messages: Sequence[str], times: Any) -> Any:
    """For each of ``messages`` whether it was in ``seen`` by its time; they all are afterwards."""
    these = set(messages)
    before = np.zeros(len(messages), bool)
    if len(these) == len(messages) and seen.isdisjoint(these):  # as a rule
        seen |= these
        return before
    for place in np.argsort(times, kind="stable"):
        before[place] = messages[place] in seen
        seen.add(messages[place])
    return before


def _objects(column: pa.Array) -> Sequence[Any]:
    """The values of a column of text, in less time than ``to_pylist`` takes."""
    objects: Sequence[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return objects


def _contexts_of(held: _Held) -> Iterator[str]:
    """All contexts by which the message of a span may be found."""
    yield held.own
    if held.parent is not None:
        yield held.parent
    for context, _ in held.links:
        yield context


class _Names:
    """The names of the messages of contexts."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.messages: dict[str, str] = {}

    def learn(self, rows: pa.RecordBatch) -> None:
        """Learn from the spans that name their message, of themselves and, as far as they do not, of their links."""
        messaging = pc.not_equal(rows["operation"], NOT_OF_MESSAGING)
        rows = rows.filter(pc.and_(rows["alone"], messaging))
        messages, links = _objects(rows["message"]), rows["links"]
        linked = _objects(links.flatten().field("context"))
        for context, row in zip(linked, pc.list_parent_indices(links).to_pylist(), strict=True):
            if context in self.wanted:
                self.messages.setdefault(context, messages[row])
        for context, message in zip(_objects(rows["own"]), messages, strict=True):
            if context in self.wanted:
                self.messages[context] = message

    def learn_held(self, held: Sequence[_Held]) -> None:
        """Learn from the spans that were held: links that name messages, contexts of sends, and what follows."""
        for each in held:
            for context, message in each.links:
                if message is not None:
                    self.messages.setdefault(context, message)
        for each in held:
            if each.operation in {CREATE, SEND} and not each.links and not each.is_batch:
                self.messages.setdefault(each.own, each.message or self.messages.get(each.own) or each.own)
        for each in sorted(held, key=lambda each: each.operation):
            known = self.messages_of(each)
            if len(known) == 1:
                self.messages.setdefault(each.own, known[0])

    def messages_of(self, held: _Held) -> Sequence[str]:
        """The messages that a span tells of, as far as their names are known."""
        if held.links:
            named = (message or self.messages.get(context) for context, message in held.links)
            found = list(dict.fromkeys(message for message in named if message is not None))
            if len(held.links) == 1 and held.message is not None:
                return [held.message]
            return found
        if held.message is not None:
            return [held.message]
        if held.is_batch:
            return []
        message = self.messages.get(held.own) or self.messages.get(held.parent or "")
        return [] if message is None else [message]
