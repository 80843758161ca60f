"""Whether the lines of a small history are a run of the tables: a search that has nothing in common with ``verify``.

It holds all lines together to the network of all messages, state by state with names, where ``verify`` holds each
message, and some pairs, to networks of one and of two.  Lines stand for events in their order, with this latitude
alone, which docs/decisions/conformance.md gives them:

* what a client calls (``send``, ``acknowledge``, ``commit``) takes effect before the next line of its process, which
  no fault is;
* a fault takes effect before its repair;
* what no line tells may happen at any time; so may repairs, since nobody sees them;
* at rest nothing is left to happen but what applications do when they like;
* what a library or a transaction acknowledges by itself is not heard, nor is ``processed`` of what was acknowledged
  before; an answer that no line has may not have been written down, nor what the journal did if no line tells of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.tables import Event, Lane, RowKind
from ackfsm.terms import Fault
from model_tests.support.tables import shipped

__all__ = ["Oracle", "TooManyError"]

Line = Mapping[str, Any]
_State: TypeAlias = "tuple[str, ...]"
_Pending: TypeAlias = "tuple[tuple[int, int], ...]"
"""The lines whose events are still to happen, each with the line before which they have to."""

_Key: TypeAlias = "tuple[str, str, str | None, bool | str | None]"
"""What a line tells: its event, who tells it, of which message; how it is flagged, or which fault it is."""

_Kind: TypeAlias = "tuple[str, str, str | None]"

_MOST: Final = 20_000
_CALLS: Final = frozenset({"send", "resend", "acknowledge", "commit", "rollback", "recover"})
_OF_APPLICATIONS: Final = frozenset(
    {"send", "send_in_transaction", "commit_called", "acknowledge", "consumer_commit_called", "processed_in_vain"}
)
_DECIDED_BEFORE: Final = MappingProxyType({"outcome_forgotten": "resend"})
_ANSWERS: Final = (("acknowledged", "ack_in_doubt"), ("committed", "commit_in_doubt"))
_BY_THE_LIBRARY: Final = ("acks_automatically", "acks_before_delivery", "acks_lazily", "settled_on_dispatch")
_JOURNAL: Final = ("journal_written", "journal_synced")
_UNSEEN: Final = frozenset({"recovered", "begin"})
_OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
_SHOWS: Final = MappingProxyType({"rejected": Fault.REJECTION})
"""Lines that show a fault which no line of its own need tell."""

_OF_CONSUMERS: Final = frozenset({Lane.CONSUMER})


class TooManyError(Exception):
    """The search ended at its bound."""


class Oracle:
    """Decides lines of one network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._events, self._recording = shipped().events, shipped().recording
        self._of: dict[_Key, list[int]] = {}
        self._hidden: list[int] = []
        self._all_keys = [self._keys(event) for event in network.events]
        for number, keys in enumerate(self._all_keys):
            for key in keys:
                self._of.setdefault(key, []).append(number)
        environment = shipped().environment(network.configuration)
        self._transacted = shipped().conditions["transacted"].holds(environment)
        self._by_library = any(shipped().conditions[name].holds(environment) for name in _BY_THE_LIBRARY)
        self._due = [
            number
            for number, event in enumerate(network.events)
            if not event.may_never_happen and event.name not in _OF_APPLICATIONS
        ]
        self._refused: list[dict[str, int]] = [{} for _ in network.instances]
        self._enabled: dict[_State, int] = {}
        self._flags = True
        self._without: Collection[str] = ()
        self._mask = 0
        self._unheard: frozenset[_Kind] = frozenset()
        self._due_mask = sum(1 << number for number in self._due)

    def is_run(self, lines: Sequence[Line], *, flags: bool = True, without: Collection[str] = ()) -> bool:
        """Whether some run of the network leaves ``lines``, whichever of the messages is the first one.

        Without ``flags`` it is not heard how deliveries are flagged; lines of the events ``without`` are not heard.

        Raises :class:`TooManyError` at the bound of the search.
        """
        names = [f"m{number + 1}" for number in range(self._network.bounds.messages)]
        orders = [dict(zip(names, order, strict=True)) for order in itertools.permutations(names)]
        self._flags, self._without = flags, without
        return any(self._is_run([_with_names(line, order) for line in _effective(lines)]) for order in orders)

    def _is_run(self, lines: Sequence[Line]) -> bool:
        self._unheard = self._not_heard(lines)
        of_messages = _OF_MESSAGES & {line.get("fault", _SHOWS.get(line["event"])) for line in lines}
        told = {line["event"] for line in lines}
        self._hidden = [
            number
            for number, (event, keys) in enumerate(zip(self._network.events, self._all_keys, strict=True))
            if (event.name in of_messages)
            or (not event.may_never_happen and self._may_be_untold(event, keys))
            or _DECIDED_BEFORE.get(event.name) in told
        ]
        self._mask = sum(1 << number for number in self._hidden)
        lines = [line for line in lines if _key(line)[:3] not in self._unheard]
        limits = [self._limit(lines, place) for place in range(len(lines))]
        found: set[tuple[_State, int, _Pending]] = set()
        front: list[tuple[_State, int, _Pending]] = [(self._network.initial, 0, ())]
        while front:
            at = front.pop()
            if at in found:
                continue
            found.add(at)
            if len(found) > _MOST:
                raise TooManyError
            state, place, pending = at
            if place == len(lines) and not pending:
                return True
            front += [(after, place, pending) for after in self._unseen(state)]
            for its in pending:
                rest = tuple(each for each in pending if each is not its)
                front += [(after, place, rest) for after in self._told(state, lines[its[0]])]
            if place < len(lines) and all(limit > place for _, limit in pending):
                front += self._read(state, place, pending, lines, limits)
        return False

    def _may_be_untold(self, event: NetworkEvent, keys: Collection[_Key]) -> bool:
        """Whether it has no line of its own, or none that is heard."""
        return self._recording.line_of(event.name) is None or all(key[:3] in self._unheard for key in keys)

    def _not_heard(self, lines: Sequence[Line]) -> frozenset[_Kind]:
        """The kinds of lines that say nothing, or may not have been written down."""
        kinds = {key[:3] for keys in self._all_keys for key in keys}
        told = {line["event"] for line in lines}
        found = {kind for kind in kinds if kind[0] in _JOURNAL and kind[0] not in told}
        for answers in _ANSWERS:
            found |= {kind for kind in kinds if kind[0] in answers and _is_unanswered(kind, answers, lines)}
        if self._by_library:
            found |= {kind for kind in kinds if kind[0] in {"acknowledge", *_ANSWERS[0]}}
        if self._transacted:
            found |= {kind for kind in kinds if kind[0] == "acknowledge"}
        found |= {kind for kind in kinds if kind[0] == "processed" and _is_acknowledged_first(kind, lines)}
        return frozenset(found | {kind for kind in kinds if kind[0] in self._without})

    def _read(
        self, state: _State, place: int, pending: _Pending, lines: Sequence[Line], limits: Sequence[int]
    ) -> list[tuple[_State, int, _Pending]]:
        line = lines[place]
        if line["event"] in _UNSEEN or line.get("fault") in _OF_MESSAGES:
            return [(state, place + 1, pending)]
        if line["event"] == "drained":
            rests = place + 1 < len(lines) or not self._possible(state) & self._due_mask
            return [(state, place + 1, pending)] if rests else []
        if limits[place] > place:
            return [(state, place + 1, (*pending, (place, limits[place])))]
        return [(after, place + 1, pending) for after in self._told(state, line)]

    def _limit(self, lines: Sequence[Line], place: int) -> int:
        """Before which line the event of the line at ``place`` has to happen; ``place`` itself: with it."""
        line = lines[place]
        if line["event"] == "fault" and line["fault"] not in _OF_MESSAGES:
            following = range(place + 1, len(lines))
            return next(
                (n for n in following if lines[n]["event"] == "recovered" and lines[n]["fault"] == line["fault"]),
                len(lines) + 1,
            )
        if line["event"] in _CALLS:
            following = range(place + 1, len(lines))
            own = (n for n in following if lines[n]["process"] == line["process"] and "fault" not in lines[n])
            return next(own, len(lines) + 1)
        return place

    def _told(self, state: _State, line: Line) -> list[_State]:
        both = not self._flags and line["event"] == "delivered"
        lines = [{**line, "redelivered": flag} for flag in (False, True)] if both else [line]
        numbers = [number for each in lines for number in self._of.get(_key(each), [])]
        possible = self._possible(state)
        return [self._after(state, number) for number in numbers if possible >> number & 1]

    def _unseen(self, state: _State) -> list[_State]:
        possible = self._possible(state) & self._mask
        return [self._after(state, number) for number in self._hidden if possible >> number & 1]

    def _possible(self, state: _State) -> int:
        known = self._enabled.get(state)
        if known is None:
            refused = 0
            for instance, name in enumerate(state):
                if name not in self._refused[instance]:
                    self._refused[instance][name] = self._refusals(instance, name)
                refused |= self._refused[instance][name]
            known = self._enabled[state] = ((1 << len(self._network.events)) - 1) & ~refused
        return known

    def _refusals(self, instance: int, name: str) -> int:
        rows = self._network.instances[instance].fsm.rows
        return sum(
            1 << number
            for number, event in enumerate(self._network.events)
            if any(
                part.instance == instance and rows[name, part.event].kind is RowKind.REFUSE
                for part in event.participants
            )
        )

    def _after(self, state: _State, number: int) -> _State:
        after = self._network.step(state, self._network.events[number])
        assert after is not None
        return after

    def _keys(self, event: NetworkEvent) -> list[_Key]:
        """The lines that may tell of ``event``, as their keys."""
        table = self._events[event.name]
        message = f"m{event.index[0]}" if event.index else None
        process = self._process(table, event.consumer or 1)
        line = self._recording.line_of(event.name)
        if event.name in set(Fault) and line is None:
            return [("fault", process, message, event.name)]
        names = [] if line is None else [str(line["event"])]
        names += [row.line for row in self._recording.signs.values() if event.name in row.tells[row.leaving :]]
        flag = None if line is None else line.get("redelivered")
        return [(name, process, message, flag) for name in dict.fromkeys(names)]

    @staticmethod
    def _process(table: Event, consumer: int) -> str:
        if table.lane is Lane.FAULT:
            consumers = table.name in {Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION}
            producers = table.name in {Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS}
            return f"consumer-{consumer}" if consumers else "producer-1" if producers else "nemesis"
        if table.lane in _OF_CONSUMERS:
            return f"consumer-{consumer}"
        return "producer-1" if table.lane is Lane.PRODUCER else "broker"


def _is_unanswered(answer: _Kind, answers: Sequence[str], lines: Sequence[Line]) -> bool:
    """Whether an answer is missing; where some are, nothing is made of the others."""
    mine = [line["event"] for line in lines if _key(line)[1:3] == answer[1:]]
    return not {*answers} & {*mine} or mine.count("commit") > sum(event in answers for event in mine)


def _is_acknowledged_first(processed: _Kind, lines: Sequence[Line]) -> bool:
    _, process, message = processed
    mine = [line["event"] for line in lines if (line["process"], line.get("message")) == (process, message)]
    return "acknowledge" in mine and "processed" in mine[mine.index("acknowledge") :]


def _with_names(line: Line, names: Mapping[str, str]) -> Line:
    return {**line, "message": names[line["message"]]} if "message" in line else line


def _effective(lines: Sequence[Line]) -> list[Line]:
    """Without the acknowledgements that cover nothing, of what the process was not handed since, and their answers.

    An answer to no call is one to a call that nobody wrote down.
    """
    found, open_deliveries, open_calls = list[Line](), set[tuple[str, str]](), set[tuple[str, str]]()
    for line in lines:
        mine = (line["process"], line.get("message", ""))
        if line["event"] == "delivered":
            open_deliveries.add(mine)
        answers = line["event"] in _ANSWERS[0]
        covers = mine in open_deliveries or (answers and mine in open_calls)
        if answers and covers and mine not in open_calls:
            found.append({**line, "event": "acknowledge"})
            open_deliveries.discard(mine)
        if covers or not (answers or line["event"] == "acknowledge"):
            found.append(line)
        if answers:
            open_calls.discard(mine)
        if line["event"] == "acknowledge":
            open_calls |= {mine} & open_deliveries
            open_deliveries.discard(mine)
    return found


def _key(line: Line) -> _Key:
    if line["event"] == "fault":
        return ("fault", line["process"], line.get("message"), line["fault"])
    return (line["event"], line["process"], line.get("message"), line.get("redelivered"))
