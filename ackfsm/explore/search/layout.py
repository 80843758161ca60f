"""A packed network by its components, as the kernel wants it: flat lists of integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ackfsm.explore.reduction.sleep import worth_taking
from ackfsm.explore.search.kernel import (
    EMPTY,
    HEAD,
    MASK_BITS,
    UNKNOWN,
    WORD_BITS,
    Layout,
    Rows,
    System,
    describe,
    enter,
)
from ackfsm.explore.search.kernel_ample import Foresight, tail_of
from ackfsm.network import Packed

__all__ = [
    "Locals",
    "first_rows",
    "layout_for",
    "machine_states",
    "machines_in",
    "masks_of",
    "place_of",
    "system_of",
]


def members_of(packed: Packed) -> list[list[int]]:
    """The machines of each component, by number."""
    members: list[list[int]] = [[] for _ in range(max(packed.component, default=0) + 1)]
    for instance, component in enumerate(packed.component):
        members[component].append(instance)
    return members


def lay_out(widths: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
    """Word, shift and mask of numbers of so many bits, packed into words in their order."""
    word, shift, mask = [], [], []
    at, used = 0, 0
    for bits in widths:
        if used + bits > WORD_BITS:
            at, used = at + 1, 0
        word.append(at)
        shift.append(used)
        mask.append((1 << bits) - 1)
        used += bits
    return word, shift, mask


def layout_for(widths: Sequence[int]) -> Layout:
    """States whose components have numbers of so many bits."""
    word, shift, mask = lay_out(widths)
    return Layout(max(word, default=0) + 1, word, shift, mask)


def masks_of(events: Iterable[int], masks: int) -> list[int]:
    """The set of ``events`` as words of bits."""
    words = [0] * masks
    for event in events:
        words[event // MASK_BITS] |= 1 << event % MASK_BITS
    return words


class Locals:
    """Where each machine stands in the local state of its component."""

    def __init__(self, packed: Packed) -> None:
        self.members = members_of(packed)
        self.words = 1
        count = len(packed.component)
        self.word, self.shift, self.mask = [0] * count, [0] * count, [0] * count
        for members in self.members:
            places = lay_out((packed.size[i] - 1).bit_length() for i in members)
            for i, word, shift, mask in zip(members, *places, strict=True):
                self.word[i], self.shift[i], self.mask[i] = word, shift, mask
                self.words = max(self.words, word + 1)


def _participants(packed: Packed) -> Iterator[tuple[int, int, list[int]]]:
    """Component, event and participants, in the order of components and events."""
    found: dict[tuple[int, int], list[int]] = {}
    for event in range(len(packed.free)):
        for p in range(packed.first[event], packed.first[event + 1]):
            found.setdefault((packed.component[packed.who[p]], event), []).append(p)
    for (component, event), parts in sorted(found.items()):
        yield component, event, parts


def _starts(places: Iterable[int], count: int) -> list[int]:
    """Where the run of each number begins in a sorted list of numbers below ``count``, and where the last one ends."""
    lengths = [0] * count
    for place in places:
        lengths[place] += 1
    return [0, *accumulate(lengths)]


def _moves(packed: Packed, participants: Iterable[int]) -> bool:
    """Whether one of the participants is ever moved by the event."""
    for p in participants:
        column = packed.table[packed.where[p] : packed.where[p] + packed.size[packed.who[p]]]
        if any(after not in {EMPTY, state} for state, after in enumerate(column)):
            return True
    return False


def system_of(packed: Packed, foresight: Foresight, *, every_step: bool) -> System:
    """``packed`` as the kernel wants it, with what is known of its events.

    Steps that lead to nothing new are spared, unless ``every_step`` is wanted or ``foresight`` leaves others out.
    """
    local = Locals(packed)
    parts = list(_participants(packed))
    flat = [p for _, _, participants in parts for p in participants]
    who = [packed.who[p] for p in flat]
    places = [0] * len(local.members)
    own_place = [EMPTY] * len(parts)
    movers = []
    for k, (component, event, participants) in enumerate(parts):
        if _moves(packed, participants):
            movers.append((event, component, places[component], k))
            own_place[k] = places[component]
            places[component] += 1
    movers.sort()
    watched = sorted((packed.component[i], i, mark) for i, mark in zip(packed.watchers, packed.mark, strict=True))
    events = len(packed.free)
    masks = max(1, -(-events // MASK_BITS))
    return System(
        components=len(local.members),
        events=events,
        widest=max(places),
        masks=masks,
        head=HEAD + masks + tail_of(foresight.phases, masks),
        local_words=local.words,
        own=_starts((component for component, _, _ in parts), len(local.members)),
        event=[event for _, event, _ in parts],
        first=[0, *accumulate(len(participants) for _, _, participants in parts)],
        word=[local.word[i] for i in who],
        shift=[local.shift[i] for i in who],
        mask=[local.mask[i] for i in who],
        where=[packed.where[p] for p in flat],
        table=packed.table,
        moves=_starts((event for event, _, _, _ in movers), events),
        mover=[component for _, component, _, _ in movers],
        place=[place for _, _, place, _ in movers],
        own_of=[k for _, _, _, k in movers],
        own_place=own_place,
        watched=_starts((component for component, _, _ in watched), len(local.members)),
        watch_word=[local.word[i] for _, i, _ in watched],
        watch_shift=[local.shift[i] for _, i, _ in watched],
        watch_mask=[local.mask[i] for _, i, _ in watched],
        mark=[mark for _, _, mark in watched],
        always=packed.always,
        at_rest=packed.at_rest,
        everything=masks_of(range(events), masks),
        must=masks_of((event for event in range(events) if not packed.free[event]), masks),
        worth=[
            word for worth in _worth(packed, masks, spared=not every_step and foresight.phases == 0) for word in worth
        ],
        position=[next((bit for bit in range(MASK_BITS) if (1 << bit) % 67 == rest), 0) for rest in range(67)],
        foresight=foresight,
    )


def _worth(packed: Packed, masks: int, *, spared: bool) -> Iterator[list[int]]:
    """The masks of the events to take after each event, and in the first state."""
    everything = (1 << len(packed.free)) - 1
    worth = worth_taking(packed) if spared else [everything] * (len(packed.free) + 1)
    for events in worth:
        yield [events >> MASK_BITS * m & (1 << MASK_BITS) - 1 for m in range(masks)]


def first_rows(packed: Packed, system: System, layout: Layout) -> Rows:
    """The rows of the first state: row ``c`` is that of component ``c``."""
    local = Locals(packed)
    count, words = system.components, system.local_words
    flat = [0] * (count * words)
    for i, state in enumerate(packed.initial):
        flat[packed.component[i] * words + local.word[i]] += state << local.shift[i]
    names = ("number", "row_of", "placed", "at_rest")
    rows = Rows(
        most=1,
        component=list(range(count)),
        local=flat,
        head=[0] * (count * system.head),
        nth=[0] * (count * system.widest),
        after=[UNKNOWN] * len(system.mover),
        step=[UNKNOWN] * (len(system.mover) * (layout.words + 1)),
        count=[0] * (count + 2),
        slots=[EMPTY] * (1 << (2 * count).bit_length()),
        **{name: [0] * count for name in names},
    )
    for row in range(count):
        describe(system, layout, rows, row)
    enter(system, rows)
    return rows


def machine_states(local: Locals, system: System, rows: Rows, row: int) -> Iterator[tuple[int, int]]:
    """The machines of a local state, each with its state, by their numbers."""
    for machine in local.members[int(rows.component[row])]:
        word = int(rows.local[row * system.local_words + local.word[machine]])
        yield machine, word >> local.shift[machine] & local.mask[machine]


def machines_in(packed: Packed, words: Sequence[int]) -> list[int]:
    """The state of each machine, by its number, in a state that is spelled out (:mod:`ackfsm.explore.search.kernel_serialize`)."""
    local = Locals(packed)
    return [
        words[component * local.words + local.word[i]] >> local.shift[i] & local.mask[i]
        for i, component in enumerate(packed.component)
    ]


def place_of(packed: Packed, machine: int) -> tuple[int, int, int, int]:
    """The component of a machine, and the word, shift and mask of its state in a local state of that."""
    local = Locals(packed)
    return packed.component[machine], local.word[machine], local.shift[machine], local.mask[machine]
