"""The overview as SVG, laid out here so that it can be read at the width of a page.

The processes stand side by side with the links between them and the journal below, as ``events.yaml`` has its lanes.
An arrow between two lanes stands for all events that go from one to the other.  A bracket joins two machines of a
lane of which one decides an event that moves the other.  What has no room is in the titles, which a browser shows
where the mouse rests.  Positions are computed from the tables: a new machine or event needs no change here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.showing.draw._diagram import Kind, Mark
from ackfsm.showing.draw._style import COLOURS, DIM, FILLS, INK, KIND_MEANS
from ackfsm.showing.draw._svg import document, lines_within, text, titled, width_of
from ackfsm.showing.draw._system import Shared, SyncEdge, System
from ackfsm.tables import IndexKind, Lane, Machine

_WIDTH: Final = 860
_MARGIN: Final = 6
_GAP: Final = 15
_PAD: Final = 6
_INSET: Final = 5
_LINE: Final = 14
_SMALL: Final = 11
_NAME: Final = 12
_HEAD: Final = 15
_TRACK: Final = 5
_MOST_BRACKETS: Final = 26
"""Pixels beside the machines of a lane that its brackets may take."""

_NAMED: Final = 9
"""Events of one arrow whose names are shown."""

_WIDEST_BOX: Final = 220
_LEAST_BOX: Final = 100
_WIDEST_LINK: Final = 156

_ROW: Final = (Lane.PRODUCER, Lane.PRODUCER_LINK, Lane.BROKER, Lane.CONSUMER_LINK, Lane.CONSUMER)
_LINKS: Final = (Lane.PRODUCER_LINK, Lane.CONSUMER_LINK)
_CHANNELS: Final[Mapping[frozenset[Lane], Lane]] = MappingProxyType(
    {
        frozenset(ends): link
        for process, link in zip((Lane.PRODUCER, Lane.CONSUMER), _LINKS, strict=True)
        for ends in ((process, link), (link, Lane.BROKER), (process, Lane.BROKER))
    }
)
"""The link whose frame names the events between two lanes; those of all other pairs are named above the journal."""

_BELOW: Final[Mapping[Lane, float]] = MappingProxyType({Lane.JOURNAL: 0.74, Lane.FAULT: 0.26})
"""The lanes below the processes, with their shares of the width."""

_MARKERS: Final = (
    '<defs><marker id="flow" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="5" markerHeight="5" orient="auto">'
    f'<path d="M0,0L10,5L0,10z" fill="{INK}"/></marker>'
    '<marker id="moved" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0,1L10,5L0,9z" fill="{COLOURS[Kind.INTERNAL]}"/></marker></defs>'
)


_LEGEND: Final = (
    "Box: a machine; stacked: one for each message or copy. Thick arrow: the events that go from lane to lane.",
    "Thin bracket: one machine decides an event that moves the machine at the arrowhead.",
)


def system_svg(system: System, pages: str | None = None) -> str:
    """``system`` as an SVG document; ``pages`` is the folder of the machines' own pages, ``None`` for no links."""
    return _Overview(system, pages).document()


@dataclasses.dataclass(frozen=True, slots=True)
class _Area:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def drawn(self, look: str, radius: int) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return f'<rect x="{self.x:g}" y="{self.y:g}" {size} rx="{radius}" {look}/>'


@dataclasses.dataclass(frozen=True, slots=True)
class _Bracket:
    """An edge between the machines number ``first`` and ``last`` of a lane, on a track of its own where it must be."""

    first: int
    last: int
    track: int
    title: str
    ends: str
    """The attributes that put an arrowhead on each end that is moved."""

    def port(self, box: int) -> tuple[bool, int]:
        """The order of the brackets at a machine in which none crosses another of that machine."""
        length = self.last - self.first
        return (False, length) if box == self.last else (True, -length)


class _Overview:
    """The picture, drawn from top to bottom; ``y`` is where the next line starts."""

    def __init__(self, system: System, pages: str | None) -> None:
        self.system = system
        self.pages = pages
        self.machines = system.by_lane()
        self.flows = system.flows()
        self.edges = [edge for edge in system.sync_edges() if edge.moves]
        self.y: float = _MARGIN
        self.ground = list[str]()
        self.front = list[str]()

    def document(self) -> str:
        """The processes and links in a row, the other lanes below."""
        self._title()
        row = self._widths()
        self._side_by_side(row, self._column)
        self._down(_MARGIN + sum(row[lane] + _GAP for lane in _ROW[:2]) + row[Lane.BROKER] / 2)
        room = _WIDTH - 2 * _MARGIN - _GAP
        self._side_by_side({lane: share * room for lane, share in _BELOW.items()}, self._across)
        self._legend()
        return document(_WIDTH, round(self.y + _MARGIN), [_MARKERS, *self.ground, *self.front])

    def _title(self) -> None:
        self._words(_MARGIN, "ackfsm", _WIDTH, size=18, bold=True)
        self._lines(_MARGIN, self.system.means.split(), _WIDTH - 2 * _MARGIN)
        self._lines(_MARGIN, ", ".join(self.system.settings).split(), _WIDTH - 2 * _MARGIN)
        self.y += _PAD

    def _side_by_side(self, widths: Mapping[Lane, float], fill: Callable[[Lane, float, float], None]) -> None:
        """Lanes of these widths from left to right, each filled from the top, all as high as the highest."""
        top, bottom, x = self.y, self.y, float(_MARGIN)
        places = dict[Lane, tuple[float, float]]()
        for lane, width in widths.items():
            self.y, places[lane] = top, (x, width)
            self._words(x + _PAD, lane.value, width - 2 * _PAD, size=_HEAD, bold=True)
            fill(lane, x, width)
            bottom, x = max(bottom, self.y), x + width + _GAP
        self.y = bottom + _PAD
        for lane, (x, width) in places.items():
            self._frame(lane, _Area(x, top, width, self.y - top))

    def _widths(self) -> Mapping[Lane, float]:
        """A link is as wide as the longest name that it shows; the processes have what they need and share the rest."""
        names = [s.event.name for ends, flow in self.flows.items() if frozenset(ends) in _CHANNELS for s in flow]
        link = min(max((width_of(name, _SMALL) for name in names), default=0) + 20, _WIDEST_LINK)
        needs = {lane: self._needed(lane) for lane in _ROW if lane not in _LINKS}
        room = _WIDTH - 2 * _MARGIN - (len(_ROW) - 1) * _GAP - len(_LINKS) * link
        spare = (room - sum(needs.values())) / len(needs)
        return {lane: link if lane in _LINKS else needs[lane] + spare for lane in _ROW}

    def _needed(self, lane: Lane) -> float:
        machines = self.machines[lane]
        longest = max((width_of(machine.name, _NAME, bold=True) for machine in machines), default=0)
        return max(longest, _LEAST_BOX) + 2 * _INSET + self._beside(self._brackets(machines)) + 2 * _PAD

    def _column(self, lane: Lane, x: float, width: float) -> None:
        room = width - 2 * _PAD
        machines = self.machines[lane]
        brackets = self._brackets(machines)
        beside = self._beside(brackets)
        boxes = []
        for machine in machines:
            self.y += 7
            lines = lines_within(_gloss(machine).split(), room - beside - 2 * _INSET, _SMALL)
            boxes.append(_Area(x + _PAD, self.y, room - beside, _box_height(lines)))
            self._box(machine, boxes[-1], lines)
            self.y += boxes[-1].height
        for bracket in brackets:
            self._draw(bracket, brackets, boxes, upright=True)
        for ends in sorted(self.flows, key=_turn):
            if _CHANNELS.get(frozenset(ends)) is lane:
                self._flow(ends, x, width)
        self._inside(lane, x + _PAD, room)

    def _flow(self, ends: tuple[Lane, Lane], x: float, width: float) -> None:
        """The events that go over a link from one lane to another, with an arrow at each border that they cross."""
        order = [_ROW.index(lane) for lane in ends]
        crossed = [number for number in (0, 1) if _ROW[sorted(order)[number]] not in _LINKS]
        names = _named(self.flows[ends])
        top, height = self.y + 20, _LINE * len(names)
        at, anchor = (x + 12, "start") if crossed == [0] else (x + width - 12, "end")
        if len(crossed) > 1:
            at, anchor = x + width / 2, "middle"
        elements = [
            text(at, top + _LINE * number - 3, name, width - 24, fill=fill, anchor=anchor)
            for number, (name, fill) in enumerate(names, 1)
        ]
        for number in crossed:
            inward = -1 if number else 1
            border = x + width * number
            bar, inner, outer = border + 7 * inward, border + 5 * inward, border - _GAP * inward
            tail, head = (outer, inner) if (order[0] < order[1]) == (number == 0) else (bar, outer)
            elements.append(f'<path d="M{bar:g},{top:g}v{height}" stroke="{INK}" stroke-width="2"/>')
            elements.append(_arrow(f"M{tail:g},{top + height / 2:g}H{head:g}"))
        self.front.append(titled(_flow_title(ends, self.flows[ends]), elements))
        self.y = top + height

    def _inside(self, lane: Lane, x: float, room: float) -> None:
        """The events that stay in a lane, and the faults that affect it."""
        for start in dict.fromkeys((lane, Lane.FAULT)):
            if (start, lane) in self.flows:
                self.y += 6
                self._names((start, lane), "local events:" if start is lane else "faults:", x, room)

    def _names(self, ends: tuple[Lane, Lane], heading: str, x: float, room: float) -> None:
        """The names of the events of a flow in lines, each in the colour of its kind, after a heading."""
        flow = self.flows[ends]
        words = [shared.event.name + "," * (shared is not flow[-1]) for shared in flow]
        colours = {word: COLOURS[shared.kind] for word, shared in zip(words, flow, strict=True)}
        elements = []
        for line in lines_within([*heading.split(), *words], room, _SMALL):
            self.y += _LINE
            at = x
            for word in line.split():
                elements.append(text(at, self.y - 3, word, room, fill=colours.get(word, INK)))
                at += width_of(f"{word} ", _SMALL)
        self.front.append(titled(_flow_title(ends, flow), elements))

    def _down(self, centre: float) -> None:
        """The arrows between the row and the lanes below it, each with its events beside it."""
        flows = [
            ends
            for ends in self.flows
            if ends[0] is not ends[1] and ends[0] is not Lane.FAULT and frozenset(ends) not in _CHANNELS
        ]
        top, bottom = self.y, self.y + 2 * _LINE
        for downward in (True, False):
            mine = [ends for ends in flows if (ends[1] in _ROW) is not downward]
            x = _MARGIN + _PAD if downward else centre + 26
            self.y = top + 4
            for ends in mine:
                self._names(ends, f"{ends[0]} to {ends[1]}:", x, (centre if downward else _WIDTH) - 20 - x)
            bottom = max(bottom, self.y + 6)
        if any(ends[1] not in _ROW for ends in flows):
            self.front.append(_arrow(f"M{centre - 10:g},{top:g}V{bottom:g}"))
        if any(ends[1] in _ROW for ends in flows):
            self.front.append(_arrow(f"M{centre + 10:g},{bottom:g}V{top:g}"))
        self.y = bottom

    def _across(self, lane: Lane, x: float, width: float) -> None:
        """A lane with its machines side by side."""
        room, machines = width - 2 * _PAD, self.machines[lane]
        brackets = self._brackets(machines)
        if machines:
            each = min((room + _PAD) / len(machines) - _PAD, _WIDEST_BOX)
            lines = [lines_within(_gloss(machine).split(), each - 2 * _INSET, _SMALL) for machine in machines]
            height = max(map(_box_height, lines))
            self.y += 7
            boxes = [_Area(x + _PAD + n * (each + _PAD), self.y, each, height) for n in range(len(machines))]
            for machine, box, words in zip(machines, boxes, lines, strict=True):
                self._box(machine, box, words)
            for bracket in brackets:
                self._draw(bracket, brackets, boxes, upright=False)
            self.y += height + self._beside(brackets)
        self._inside(lane, x + _PAD, room)

    def _box(self, machine: Machine, box: _Area, lines: Sequence[str]) -> None:
        x, room = box.x + _INSET, box.width - 2 * _INSET
        look = f'fill="white" stroke="{INK}"'
        behind = dataclasses.replace(box, x=box.x + 3, y=box.y + 3).drawn(look, 4)
        elements = [behind] * (machine.per.whole is not IndexKind.SYSTEM) + [box.drawn(look, 4)]
        elements.append(text(x, box.y + 15, machine.name, room, size=_NAME, bold=True))
        elements += [
            text(x, box.y + 15 + 13 * number, line, room, fill=COLOURS[Kind.INTERNAL])
            for number, line in enumerate(lines, 1)
        ]
        drawn = titled(self._machine_title(machine), elements, id=machine.name)
        self.front.append(drawn if self.pages is None else f'<a href="{self.pages}/{machine.name}.md">{drawn}</a>')

    def _machine_title(self, machine: Machine) -> str:
        decides = [s.event.name for s in self.system.events if s.owner == machine.name]
        moved = [s.event.name for s in self.system.events if machine.name in s.moves and s.owner != machine.name]
        lines = [f"{machine.name}: {machine.means} (one for each {machine.per})"]
        lines += [f"decides {', '.join(decides)}"] * bool(decides) + [f"moved by {', '.join(moved)}"] * bool(moved)
        return "\n".join(lines)

    def _brackets(self, machines: Sequence[Machine]) -> list[_Bracket]:
        """The edges among the machines of a lane, the shorter nearer to the machines, none on top of another."""
        order = {machine.name: number for number, machine in enumerate(machines)}
        pairs: dict[tuple[int, int], list[SyncEdge]] = {}
        for edge in self.edges:
            if edge.owner in order and edge.other in order:
                first, last = sorted((order[edge.owner], order[edge.other]))
                pairs.setdefault((first, last), []).append(edge)
        brackets: list[_Bracket] = []
        for first, last in sorted(pairs, key=lambda pair: (pair[1] - pair[0], pair)):
            taken = {b.track for b in brackets if max(first, b.first) < min(last, b.last)}
            track = next(number for number in range(len(pairs)) if number not in taken)
            edges = pairs[first, last]
            moved = {order[edge.other] for edge in edges}
            ends = ' marker-start="url(#moved)"' * (first in moved) + ' marker-end="url(#moved)"' * (last in moved)
            title = "\n".join(f"{e.owner} decides {', '.join(e.moves)}; moves {e.other}" for e in edges)
            brackets.append(_Bracket(first, last, track, title, ends))
        return brackets

    @staticmethod
    def _beside(brackets: Sequence[_Bracket]) -> float:
        return min(_MOST_BRACKETS, 8 + _TRACK * (1 + max(b.track for b in brackets))) if brackets else 0

    def _draw(self, bracket: _Bracket, brackets: Sequence[_Bracket], boxes: Sequence[_Area], *, upright: bool) -> None:
        tracks = 1 + max(b.track for b in brackets)
        out = 8 + (self._beside(brackets) - 8) * (bracket.track + 0.5) / tracks
        ports = []
        for number in (bracket.first, bracket.last):
            mine = sorted((b for b in brackets if number in (b.first, b.last)), key=lambda b: b.port(number))
            box = boxes[number]
            at, length = (box.y, box.height) if upright else (box.x, box.width)
            ports.append(at + length * (mine.index(bracket) + 1) / (len(mine) + 1))
        box = boxes[bracket.first]
        if upright:
            edge = box.x + box.width
            path = f"M{edge:g},{ports[0]:g}H{edge + out:g}V{ports[1]:g}H{edge:g}"
        else:
            edge = box.y + box.height
            path = f"M{ports[0]:g},{edge:g}V{edge + out:g}H{ports[1]:g}V{edge:g}"
        line = f'<path d="{path}" fill="none" stroke="{COLOURS[Kind.INTERNAL]}"{bracket.ends}/>'
        self.front.append(titled(bracket.title, [line]))

    def _frame(self, lane: Lane, area: _Area) -> None:
        process = f'fill="{FILLS[Mark.NONE]}"'
        look = process if lane not in _LINKS else f'fill="white" stroke="{DIM}" stroke-dasharray="5,4"'
        self.ground.append(area.drawn(look, 6))

    def _legend(self) -> None:
        self.y += 4
        for line in _LEGEND:
            self._lines(_MARGIN, line.split(), _WIDTH - 2 * _MARGIN)
        self.y += _LINE
        for number, kind in enumerate(Kind):
            words = f"{kind}: {KIND_MEANS[kind].partition(';')[0]}"
            self.front.append(text(_MARGIN + number * 200, self.y, words, 190, fill=COLOURS[kind]))

    def _lines(self, x: float, words: Iterable[str], room: float) -> None:
        for line in lines_within(words, room, _SMALL):
            self._words(x, line, room)

    def _words(self, x: float, words: str, room: float, *, size: int = _SMALL, bold: bool = False) -> None:
        self.y += size + 3
        self.front.append(text(x, self.y, words, room, size=size, bold=bold))


def _turn(ends: tuple[Lane, Lane]) -> tuple[bool, int, int]:
    """The order of flows as a conversation has it: there from left to right, then back."""
    start, end = (list(Lane).index(lane) for lane in ends)
    return (False, start, end) if start < end else (True, -start, -end)


def _named(flow: Sequence[Shared]) -> list[tuple[str, str]]:
    """The names that an arrow shows, with their colours."""
    most = _NAMED if len(flow) <= _NAMED else _NAMED - 1
    more = [(f"and {len(flow) - most} more", INK)] * (len(flow) > most)
    return [(shared.event.name, COLOURS[shared.kind]) for shared in flow[:most]] + more


def _flow_title(ends: tuple[Lane, Lane], flow: Sequence[Shared]) -> str:
    start, end = ends
    return "\n".join([start if start is end else f"{start} to {end}", *map(_event_title, flow)])


def _event_title(shared: Shared) -> str:
    moves = [name for name in shared.moves if name != shared.owner]
    parts = [f"moves {', '.join(moves)}"] * bool(moves) + [f"needs {', '.join(shared.permits)}"] * bool(shared.permits)
    return f"{shared.event.name}: {shared.owner} decides{''.join(f'; {part}' for part in parts)}"


def _gloss(machine: Machine) -> str:
    """Return the meaning of a machine up to the first pause, as far as a box has room."""
    return re.split(r"[,;:(]", machine.means)[0].strip()


def _box_height(lines: Sequence[str]) -> float:
    return 23 + 13 * len(lines)


def _arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="2" marker-end="url(#flow)"/>'
