"""The bit layout of states and local states, and an encoded network by its components, for the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ackfsm.checking.explore.reduction.sleep import awake_events
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import (
    EMPTY,
    HEAD,
    MASK_BITS,
    UNKNOWN,
    WORD_BITS,
    EncodedSystem,
    Layout,
    LocalStates,
    add_local_state,
    rehash_local_states,
)
from ackfsm.checking.explore.search.kernel_ample import AmpleSets, future_words

__all__ = [
    "LocalLayout",
    "encode_system",
    "event_masks",
    "initial_local_states",
    "machine_bits",
    "machine_states_of",
    "state_layout",
]


def members_of(packed: PackedNetwork) -> list[list[int]]:
    """The machines of each component, by number."""
    members: list[list[int]] = [[] for _ in range(max(packed.component, default=0) + 1)]
    for instance, component in enumerate(packed.component):
        members[component].append(instance)
    return members


def pack_bits(widths: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
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


def state_layout(widths: Sequence[int]) -> Layout:
    """The layout of states whose components have numbers of so many bits."""
    word, shift, mask = pack_bits(widths)
    return Layout(max(word, default=0) + 1, word, shift, mask)


def event_masks(events: Iterable[int], masks: int) -> list[int]:
    """The set of ``events`` as words of bits."""
    words = [0] * masks
    for event in events:
        words[event // MASK_BITS] |= 1 << event % MASK_BITS
    return words


class LocalLayout:
    """The bits of each machine in the local state of its component."""

    def __init__(self, packed: PackedNetwork) -> None:
        self.members = members_of(packed)
        self.words = 1
        count = len(packed.component)
        self.word, self.shift, self.mask = [0] * count, [0] * count, [0] * count
        for members in self.members:
            fields = pack_bits((packed.size[i] - 1).bit_length() for i in members)
            for i, word, shift, mask in zip(members, *fields, strict=True):
                self.word[i], self.shift[i], self.mask[i] = word, shift, mask
                self.words = max(self.words, word + 1)


def _participants(packed: PackedNetwork) -> Iterator[tuple[int, int, list[int]]]:
    """Component, event and participants, in the order of components and events."""
    found: dict[tuple[int, int], list[int]] = {}
    for event in range(len(packed.free)):
        for p in range(packed.first[event], packed.first[event + 1]):
            found.setdefault((packed.component[packed.instance[p]], event), []).append(p)
    for (component, event), parts in sorted(found.items()):
        yield component, event, parts


def _starts(numbers: Iterable[int], count: int) -> list[int]:
    """Where the run of each number begins in a sorted list of numbers below ``count``, and where the last one ends."""
    lengths = [0] * count
    for number in numbers:
        lengths[number] += 1
    return [0, *accumulate(lengths)]


def _moves(packed: PackedNetwork, participants: Iterable[int]) -> bool:
    """Whether one of the participants is ever moved by the event."""
    for p in participants:
        column = packed.table[packed.offset[p] : packed.offset[p] + packed.size[packed.instance[p]]]
        if any(after not in {EMPTY, state} for state, after in enumerate(column)):
            return True
    return False


def encode_system(packed: PackedNetwork, ample: AmpleSets, *, every_step: bool) -> EncodedSystem:
    """``packed`` by its components, as the kernel wants it.

    Sleep sets are used unless ``every_step`` is wanted or there are ``ample`` sets.
    """
    local = LocalLayout(packed)
    parts = list(_participants(packed))
    flat = [p for _, _, participants in parts for p in participants]
    instances = [packed.instance[p] for p in flat]
    ordinals = [0] * len(local.members)
    own_ordinal = [EMPTY] * len(parts)
    movers = []
    for k, (component, event, participants) in enumerate(parts):
        if _moves(packed, participants):
            movers.append((event, component, ordinals[component], k))
            own_ordinal[k] = ordinals[component]
            ordinals[component] += 1
    movers.sort()
    observed = sorted((packed.component[i], i, mark) for i, mark in zip(packed.observers, packed.mark, strict=True))
    events = len(packed.free)
    masks = max(1, -(-events // MASK_BITS))
    return EncodedSystem(
        components=len(local.members),
        events=events,
        widest=max(ordinals),
        masks=masks,
        head=HEAD + masks + future_words(ample.phases, masks),
        local_words=local.words,
        own=_starts((component for component, _, _ in parts), len(local.members)),
        event=[event for _, event, _ in parts],
        first=[0, *accumulate(len(participants) for _, _, participants in parts)],
        word=[local.word[i] for i in instances],
        shift=[local.shift[i] for i in instances],
        mask=[local.mask[i] for i in instances],
        offset=[packed.offset[p] for p in flat],
        table=packed.table,
        moves=_starts((event for event, _, _, _ in movers), events),
        mover=[component for _, component, _, _ in movers],
        ordinal=[ordinal for _, _, ordinal, _ in movers],
        own_of=[k for _, _, _, k in movers],
        own_ordinal=own_ordinal,
        observed=_starts((component for component, _, _ in observed), len(local.members)),
        observer_word=[local.word[i] for _, i, _ in observed],
        observer_shift=[local.shift[i] for _, i, _ in observed],
        observer_mask=[local.mask[i] for _, i, _ in observed],
        mark=[mark for _, _, mark in observed],
        always=packed.always,
        at_rest=packed.at_rest,
        everything=event_masks(range(events), masks),
        must=event_masks((event for event in range(events) if not packed.free[event]), masks),
        awake=[
            word
            for words in _awake_masks(packed, masks, sleep_sets=not every_step and ample.phases == 0)
            for word in words
        ],
        lowest_bit=[next((bit for bit in range(MASK_BITS) if (1 << bit) % 67 == rest), 0) for rest in range(67)],
        ample=ample,
    )


def _awake_masks(packed: PackedNetwork, masks: int, *, sleep_sets: bool) -> Iterator[list[int]]:
    """The masks of the events to take after each event, and in the first state."""
    everything = (1 << len(packed.free)) - 1
    awake = awake_events(packed) if sleep_sets else [everything] * (len(packed.free) + 1)
    for events in awake:
        yield [events >> MASK_BITS * m & (1 << MASK_BITS) - 1 for m in range(masks)]


def initial_local_states(packed: PackedNetwork, system: EncodedSystem, layout: Layout) -> LocalStates:
    """The local states of the first state: number ``c`` is that of component ``c``."""
    local = LocalLayout(packed)
    count, words = system.components, system.local_words
    flat = [0] * (count * words)
    for i, state in enumerate(packed.initial):
        flat[packed.component[i] * words + local.word[i]] += state << local.shift[i]
    names = ("number", "id_of", "shifted", "at_rest")
    interned = LocalStates(
        most=1,
        component=list(range(count)),
        machines=flat,
        head=[0] * (count * system.head),
        nth=[0] * (count * system.widest),
        after=[UNKNOWN] * len(system.mover),
        delta=[UNKNOWN] * (len(system.mover) * (layout.words + 1)),
        count=[0] * (count + 2),
        slots=[EMPTY] * (1 << (2 * count).bit_length()),
        **{name: [0] * count for name in names},
    )
    for local_id in range(count):
        add_local_state(system, layout, interned, local_id)
    rehash_local_states(system, interned)
    return interned


def machine_states_of(packed: PackedNetwork, words: Sequence[int]) -> list[int]:
    """The state of each machine, by its number, in a serialised state (:mod:`.kernel_serialize`)."""
    local = LocalLayout(packed)
    return [
        words[component * local.words + local.word[i]] >> local.shift[i] & local.mask[i]
        for i, component in enumerate(packed.component)
    ]


def machine_bits(packed: PackedNetwork, machine: int) -> tuple[int, int, int, int]:
    """The component of a machine, and the word, shift and mask of its state in a local state of that."""
    local = LocalLayout(packed)
    return packed.component[machine], local.word[machine], local.shift[machine], local.mask[machine]
