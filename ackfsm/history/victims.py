"""Whom a fault hit, which repair ends it, and which lines name somebody whom it cannot have hit.

A ``fault`` or ``recovered`` names its victim by ``session``, or by its own ``process`` unless that only tells of
others, and what it concerns there by ``queue``.  One that names nobody is of anybody, and so is its repair.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import EVENTS, TELLERS, VOCABULARY, Event
from ackfsm.history.joins import distinct_pairs
from ackfsm.terms import Fault, InputError
from ackfsm.text import quoted

FAULT_EVENTS: Final = (Event.FAULT, Event.RECOVERED)

OF_THE_BROKER: Final = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})


@dataclasses.dataclass(frozen=True, slots=True)
class FaultLine:
    """A line that tells of a fault, or of its repair.

    Attributes:
        moment: where it stands among the others.
        fault: the kind.
        repairs: whether it is the repair.
        victims: the processes that it names; none if it names nobody.
        queue: the only queue that it concerns, :data:`ABSENT` if it is any.
    """

    moment: tuple[int, ...]
    fault: str
    repairs: bool
    victims: frozenset[int]
    queue: int = ABSENT


def fault_lines(events: Events, rows: Ints, acts: Ints | None = None) -> tuple[FaultLine, ...]:
    """What ``rows`` of the events, faults and repairs, tell, in their order; a moment is a row.

    With ``acts`` only those who did one of them are victims; who tells of others, whatever its name is, did none.
    A line that names a session that no other line has is left out: nobody knows whom it hit.
    """
    tellers, sessions = _victims_of(events, rows)
    rows = rows[~_hits_strangers(events, rows, sessions)]
    among = None if acts is None else frozenset(np.unique(events.process[acts]).tolist())
    return tuple(
        FaultLine(
            moment=(row,),
            fault=VOCABULARY["fault"][events.fault[row]],
            repairs=EVENTS[events.event[row]] is Event.RECOVERED,
            victims=_among(
                among, sessions.get(int(events.session[row])) or frozenset({int(events.process[row])}) - tellers
            ),
            queue=int(events.queue[row]),
        )
        for row in rows.tolist()
    )


def _victims_of(events: Events, rows: Ints) -> tuple[frozenset[int], dict[int, frozenset[int]]]:
    """The processes that tell of others, and for each session that ``rows`` have the processes that had it."""
    names = events.names["process"].to_pylist()
    tellers = frozenset(number for number, name in enumerate(names) if name in TELLERS)
    found: dict[int, frozenset[int]] = {}
    if len(rows):
        acts = np.flatnonzero(~_tells(events) & np.isin(events.session, events.session[rows]))
        session, process, _ = distinct_pairs(events.session[acts], events.process[acts])
        for each, its in zip(session.tolist(), process.tolist(), strict=True):
            found[each] = found.get(each, frozenset()) | ({its} - tellers)
    return tellers, found


def _hits_strangers(events: Events, rows: Ints, sessions: Mapping[int, frozenset[int]]) -> Mask:
    """Return a mask of the ``rows`` that name a session without a line, not their process' unnamed one."""
    names, processes = (events.names[name].to_pylist() for name in ("session", "process"))
    each = zip(events.session[rows].tolist(), events.process[rows].tolist(), strict=True)
    strange = [session not in sessions and names[session] != processes[process] for session, process in each]
    return np.array(strange, bool)


def _tells(events: Events) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([event in FAULT_EVENTS for event in EVENTS])[events.event]


def _among(some: frozenset[int] | None, victims: frozenset[int]) -> frozenset[int]:
    return victims if some is None else victims & some


def hits(lines: FaultLine, process: int, queue: int) -> bool:
    """Whether ``lines`` may be of what ``process`` does with ``queue``."""
    return (not lines.victims or process in lines.victims) and lines.queue in {ABSENT, queue}


Outages: TypeAlias = Sequence[tuple[FaultLine, FaultLine | None]]
"""Faults, each with the repair that ends it, if there is one."""


def outages_of(lines: Sequence[FaultLine]) -> Outages:
    """Each fault in ``lines`` (in the order of their moments) with its repair.

    That is the first later one of its kind, if it is of the same victim or of nobody.  What hit nobody by name is over
    when that is said without a name, else with the last repair of somebody before the next such fault.
    """
    same = {kind: [each for each in lines if each.fault == kind] for kind in {each.fault for each in lines}}
    places = defaultdict[str, int](int)
    found = []
    for each in lines:
        places[each.fault] += 1
        if not each.repairs:
            found.append((each, _repair(each, itertools.islice(same[each.fault], places[each.fault], None))))
    return found


def _repair(fault: FaultLine, later: Iterable[FaultLine]) -> FaultLine | None:
    last: FaultLine | None = None
    for each in later:
        if each.repairs and _is_of(each, fault):
            if fault.victims or not each.victims:
                return each
            last = each
        elif not fault.victims and not each.repairs and last is not None:
            break
    return last


def _is_of(repair: FaultLine, fault: FaultLine) -> bool:
    meets = not repair.victims or not fault.victims or bool(repair.victims & fault.victims)
    return meets and (ABSENT in {repair.queue, fault.queue} or repair.queue == fault.queue)


@dataclasses.dataclass(frozen=True, slots=True)
class NamedVictim:
    """A line of a fault or repair that names a session or a queue: its number, and the file in which it stands."""

    file: str
    line: int
    process: str
    fault: str
    session: str | None
    queue: str | None


def named_victims(batch: pa.RecordBatch, lines: Ints, name: str) -> Iterator[NamedVictim]:
    """Those in a batch of the file ``name``, whose rows are the ``lines`` of it."""
    tells = pc.is_in(batch["event"], value_set=pa.array(FAULT_EVENTS, pa.string()))
    named = pc.and_(tells, pc.or_(batch["session"].is_valid(), batch["queue"].is_valid()))
    for row in np.flatnonzero(np.asarray(named)).tolist():
        fields = {key: batch[key][row].as_py() for key in ("process", "fault", "session", "queue")}
        yield NamedVictim(file=name, line=int(lines[row]), **fields)


def refuse_impossible(named: Sequence[NamedVictim], events: Events, queues_left_out: Collection[str] = ()) -> None:
    """Raise :class:`InputError` for the first of the lines that names what no fault of its kind can have hit.

    That is a session of a broker's fault, a session or a queue that no other line has, a session of another process
    than the one that tells of its own.  Lines that ``events`` do not have may have named some queues.
    """
    if not named:
        return
    others = np.flatnonzero(~_tells(events))
    process, session, queue = ([*events.names[name].to_pylist(), None] for name in ("process", "session", "queue"))
    pairs = distinct_pairs(events.session[others], events.process[others])
    used = {(session[one], process[other]) for one, other in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)}
    queues = {*queues_left_out, *(queue[code] for code in np.unique(events.queue[others]).tolist())}
    for each in named:
        why = _impossible(each, used, queues)
        if why is not None:
            raise InputError(f"{each.file}, line {each.line}: {why}")


def _impossible(line: NamedVictim, used: set[tuple[str, str]], queues: set[str]) -> str | None:
    if line.queue is not None and line.queue not in queues:
        return f"{line.fault} names the queue {quoted(line.queue)}, which no other line has; correct it or leave it out"
    if line.session in {None, line.process}:
        return None
    session = quoted(str(line.session))
    if line.fault in OF_THE_BROKER:
        return f"{line.fault} hits the broker and not the session {session}; leave `session` out"
    whose = {process for one, process in used if one == line.session}
    if not whose:
        return f"{line.fault} names the session {session}, which no other line has; correct it or leave it out"
    if line.process not in {*whose, *TELLERS} and any(process == line.process for _, process in used):
        return (
            f"{line.fault} names {quoted(line.process)}, whose session {session} is not; name one of them,"
            " or let 'nemesis' tell of it"
        )
    return None
