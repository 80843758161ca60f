"""The part of the kernel that chooses ample sets of one event (``spec/reductions.md``).

The head of a local state has, beside the mask of the events that it does not refuse, for each phase of the search a
mask of the events that may still happen, and last the number of the phase that its component is in.  An event depends
only on events that every component may still let happen.  As in the kernel, all functions mean the same to Python, on
lists, and to Numba, on arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class AmpleSets(NamedTuple):
    """The ample sets of a system's events, made before a search; constant during one.

    There are as many ``phases``, 0 for a search without partial-order reduction.  A mask of events has ``masks`` words
    of ``bits`` bits.  In the head of a local state the mask of what it does not refuse begins at ``enabled``, those of
    what may still happen at ``future``.

    Component ``c`` has the machines ``members[c] <= j < members[c + 1]``, from bit ``shift[j]`` of word ``word[j]`` of
    its local state.  State ``s`` of machine ``j`` has the ``width`` numbers from ``futures[(first[j] + s) * width]``:
    the events that it may still let happen, in each phase, then the phase; the component ``counter`` knows that of the
    whole state.  ``candidates`` has the events that may be an ample set, in each phase, and ``dependent``, from
    ``(phase * events + e) * masks``, those on which event ``e`` depends.
    """

    phases: int
    masks: int
    bits: int
    events: int
    enabled: int
    future: int
    width: int
    counter: int
    members: Any
    word: Any
    shift: Any
    mask: Any
    first: Any
    futures: Any
    candidates: Any
    dependent: Any


NO_POR = AmpleSets(0, 0, 1, 0, 0, 0, 0, 0, *(() for _ in range(8)))
"""Of a search without partial-order reduction."""


def future_words(phases: int, masks: int) -> int:
    """The length of the masks of future events in the head of a local state."""
    return phases * masks + 1 if phases else 0


def write_future_mask(  # noqa: PLR0913, PLR0917 - the arrays it works on
    ample: AmpleSets, component: int, machines: Any, begin: int, head: Any, offset: int
) -> None:
    """Write the future events of the local state ``machines[begin:]`` into its ``head``, which begins at ``offset``."""
    if ample.phases == 0:
        return
    last = ample.width - 1
    at = offset + ample.future
    for j in range(ample.members[component], ample.members[component + 1]):
        state = (machines[begin + ample.word[j]] >> ample.shift[j]) & ample.mask[j]
        entry = (ample.first[j] + state) * ample.width
        first = j == ample.members[component]
        for w in range(last):
            head[at + w] = ample.futures[entry + w] & (-1 if first else head[at + w])
        head[at + last] = ample.futures[entry + last] | (0 if first else head[at + last])


def ample_event(  # noqa: PLR0913, PLR0917 - the arrays it works on
    ample: AmpleSets, head: Any, heads: Any, begin: int, components: int, lowest_bit: Any
) -> int:
    """The first event that is an ample set of a state, or -1; ``heads[begin + c]`` is the head of each local state.

    It is a candidate, enabled, and depends on nothing that may still happen.
    """
    if ample.phases == 0:
        return -1
    masks, phase = ample.masks, head[heads[begin + ample.counter] + ample.future + ample.width - 1]
    for m in range(masks):
        enabled = ample.candidates[phase * masks + m]
        for c in range(components):
            enabled &= head[heads[begin + c] + ample.enabled + m]
        while enabled > 0:
            low = enabled & -enabled
            enabled ^= low
            event = m * ample.bits + lowest_bit[low % 67]
            conflicting = 0
            for w in range(masks):
                dependent = ample.dependent[(phase * ample.events + event) * masks + w]
                for c in range(components):
                    dependent &= head[heads[begin + c] + ample.future + phase * masks + w]
                conflicting |= dependent
            if conflicting == 0:
                return int(event)
    return -1
