"""A history as a picture: what went on in bins of time, the faults, where anomalies are, and their stories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.joins import distinct_pairs
from ackfsm.showing.views.history.stories import Stories
from ackfsm.showing.views.history.told import Story
from ackfsm.verify import MOST_GROUPS, Bins, By, Examination, Grouped, Result
from ackfsm.verify.results.tables import ResultTables

STORIES: Final = 200
"""Of each anomaly the stories of so many messages are told."""

BANDS: Final = 500
"""So many faults are shown."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A fault, from ``since`` to ``until`` (``None``: no repair is recorded), as the table ``timeline`` has it.

    One that is not ``recorded`` is a connection that was found broken, or is ``assumed``.
    """

    fault: str
    victim: str | None
    queue: str | None
    since: int
    until: int | None
    recorded: bool
    assumed: bool | None
    messages: int
    times: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Marks:
    """Where the messages with one anomaly are: each stands where the first line tells of it.

    Attributes:
        name: the anomaly.
        messages: how many messages have it.
        bins: each bin that has some, how many, and the id of the first of them; ascending.
        counts: how many by queue, by session, and by pairs of them; a message is of every session that names it.
            Missing is what there is too much of to tell apart.
        stories: places in :attr:`Picture.stories`, the worst first.
    """

    name: str
    messages: int
    bins: tuple[tuple[int, int, str], ...]
    counts: Mapping[By, Grouped]
    stories: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shown:
    """The story of a message in question, its bin, its queue (``""``: none is named), and its sessions."""

    story: Story
    bin: int
    queue: str
    sessions: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Picture:
    """A history as a picture.

    Attributes:
        bins: what went on over time.
        bands: the faults, the first :data:`BANDS` of them; assumed ones only if the verdict rests on them.
        bands_left: how many more there are.
        marks: for each anomaly that was found where it is.
        stories: of messages in question, each once.
    """

    bins: Bins
    bands: tuple[Band, ...]
    bands_left: int
    marks: tuple[Marks, ...]
    stories: tuple[Shown, ...]


def picture_of(examination: Examination, result: Result, most: int = STORIES) -> Picture:
    """The picture of a history, with the stories of ``most`` messages of each anomaly; ``result`` is the verdict.

    Raises :class:`ValueError` if the history was folded and :func:`ackfsm.verify.examination` was not told that it has
    one.
    """
    bins, tables = examination.bins(), examination.result_tables(result)
    elsewhere = (bins.consumers, bins.begun) if examination.folded else ()
    return _picture_of(Stories(tables, *elsewhere), bins, most)


def _picture_of(stories: Stories, bins: Bins, most: int) -> Picture:
    tables, events = stories.tables, stories.tables.outcome.examined.events
    found = tables.in_question()
    chosen = dict.fromkeys(code for codes in found.values() for code in codes[:most].tolist())
    place = {code: number for number, code in enumerate(chosen)}
    in_question = np.unique(np.concatenate([np.empty(0, np.int64), *found.values()]))
    placing = _Placing(events, tables, bins, _sessions(events, in_question))
    bands = list(_bands(tables))
    return Picture(
        bins=bins,
        bands=tuple(bands[:BANDS]),
        bands_left=max(0, len(bands) - BANDS),
        marks=tuple(
            placing.marks(name, codes, tuple(place[code] for code in codes[:most].tolist()))
            for name, codes in found.items()
        ),
        stories=tuple(placing.shown(code, stories.told(code)) for code in chosen),
    )


def _bands(tables: ResultTables) -> Iterator[Band]:
    for row in tables.timeline().to_pylist():
        if row["assumed"] is not False:
            del row["history"]
            yield Band(**row)


def _sessions(events: Events, messages: Ints) -> tuple[Ints, Ints]:
    """Each of ``messages`` with each session of a line that names it; by message, ascending."""
    wanted = np.zeros(events.count_of("message") + 1, bool)  # the last is what ABSENT finds
    wanted[messages] = True
    rows = np.flatnonzero(wanted[events.message])
    message, session, _ = distinct_pairs(events.message[rows], events.session[rows])
    return message, session


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Placing:
    """Finds where messages stand in a picture."""

    events: Events
    tables: ResultTables
    bins: Bins
    sessions: tuple[Ints, Ints]

    def marks(self, name: str, codes: Ints, stories: Sequence[int]) -> Marks:
        its = self._bin(codes)
        order = np.lexsort((self.tables.first_told(codes), its))
        which, first, count = np.unique(its[order], return_index=True, return_counts=True)
        ids = self.events.names["message"].take(codes[order][first]).to_pylist()
        return Marks(
            name=name,
            messages=len(codes),
            bins=tuple(zip(which.tolist(), count.tolist(), ids, strict=True)),
            counts={by: each for by, each in self._counts(codes) if each is not None},
            stories=tuple(stories),
        )

    def shown(self, code: int, story: Story) -> Shown:
        message, session = self.sessions
        begin, end = np.searchsorted(message, [code, code + 1])
        names = self.events.names["session"]
        return Shown(
            story=story,
            bin=int(self._bin(np.array([code]))[0]),
            queue=self._queue(int(self.tables.queues_of(np.array([code]))[0])),
            sessions=tuple(str(names[each]) for each in session[begin:end].tolist()),
        )

    def _bin(self, codes: Ints) -> Ints:
        return np.asarray(self.events.t[self.tables.first_told(codes)] // self.bins.width - self.bins.first)

    def _queue(self, code: int) -> str:
        return "" if code == ABSENT else str(self.events.names["queue"][code])

    def _counts(self, codes: Ints) -> Iterator[tuple[By, Grouped | None]]:
        queue = self.tables.queues_of(codes)
        yield By.QUEUE, self._grouped(queue, np.full(len(codes), ABSENT), self._bin(codes))
        message, session = self.sessions
        its = np.flatnonzero(np.isin(message, codes))
        bins, session = self._bin(message[its]), session[its]
        yield By.SESSION, self._grouped(np.full(len(its), ABSENT), session, bins, told=By.SESSION)
        yield By.PAIR, self._grouped(self.tables.queues_of(message[its]), session, bins, told=By.PAIR)

    def _grouped(self, queue: Ints, session: Ints, bins: Ints, told: By = By.QUEUE) -> Grouped | None:
        columns = np.stack([queue, session, bins]).astype(np.int64)
        distinct, count = np.unique(columns, axis=1, return_counts=True)
        groups, group = np.unique(distinct[:2], axis=1, return_inverse=True)
        if groups.shape[1] > MOST_GROUPS:
            return None
        names = self.events.names["session"]
        of = tuple(
            (
                None if told is By.SESSION else self._queue(one),
                None if told is By.QUEUE else str(names[other]),
            )
            for one, other in groups.T.tolist()
        )
        return Grouped(group.ravel(), np.zeros(len(count), np.int64), distinct[2], count, of)
