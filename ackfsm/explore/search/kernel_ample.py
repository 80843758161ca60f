"""What the kernel needs to expand a single event where that is enough: which events may still come, and disturb it.

A row has, beside the mask of the events that its local state does not refuse, for each phase of the search a mask of
those that may still come, and last the number of the phase that its component says the search is in.  An event that
some component lets never come again disturbs nobody.  As in the kernel, all functions mean the
same to Python, on lists, and to Numba, on arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["BLIND", "Foresight", "foresee", "preferred", "tail_of"]


class Foresight(NamedTuple):
    """What is known of the events of a system before a search; nothing in it changes during one.

    There are as many ``phases``, 0 for a search that expands everything.  A mask of events has ``masks`` words of
    ``bits`` bits.  In the head of a row what it does not refuse begins at ``able``, what is to come at ``tail``.

    Component ``c`` has the machines ``members[c] <= j < members[c + 1]``, from bit ``shift[j]`` of word ``word[j]`` of
    its local state.  What state ``s`` of machine ``j`` says are the ``width`` numbers from
    ``says[(first[j] + s) * width]``: the events that it may still let come, in each phase, then the phase; of a whole
    state the component ``counter`` tells the phase.  ``eligible`` has the events that may be
    preferred, in each phase, and ``conflicts``, from ``(phase * events + e) * masks``, those that disturb event ``e``.
    """

    phases: int
    masks: int
    bits: int
    events: int
    able: int
    tail: int
    width: int
    counter: int
    members: Any
    word: Any
    shift: Any
    mask: Any
    first: Any
    says: Any
    eligible: Any
    conflicts: Any


BLIND = Foresight(0, 0, 1, 0, 0, 0, 0, 0, *(() for _ in range(8)))
"""That of a search which expands everything."""


def tail_of(phases: int, masks: int) -> int:
    """How many numbers the head of a row has for what is to come."""
    return phases * masks + 1 if phases else 0


def foresee(  # noqa: PLR0913, PLR0917 - the arrays it works on
    foresight: Foresight, component: int, local: Any, begin: int, head: Any, row: int
) -> None:
    """Write what is to come into the ``head`` of a row, from ``row``; its local state begins at ``local[begin]``."""
    if foresight.phases == 0:
        return
    last = foresight.width - 1
    at = row + foresight.tail
    for j in range(foresight.members[component], foresight.members[component + 1]):
        state = (local[begin + foresight.word[j]] >> foresight.shift[j]) & foresight.mask[j]
        says = (foresight.first[j] + state) * foresight.width
        first = j == foresight.members[component]
        for w in range(last):
            head[at + w] = foresight.says[says + w] & (-1 if first else head[at + w])
        head[at + last] = foresight.says[says + last] | (0 if first else head[at + last])


def preferred(  # noqa: PLR0913, PLR0917 - the arrays it works on
    foresight: Foresight, head: Any, here: Any, begin: int, components: int, position: Any
) -> int:
    """The first event that alone is enough to expand in a state, or -1; ``here[begin + c]`` begins its rows.

    It is one that is eligible, can happen, and conflicts with nothing that may still come.
    """
    if foresight.phases == 0:
        return -1
    masks, phase = foresight.masks, head[here[begin + foresight.counter] + foresight.tail + foresight.width - 1]
    for m in range(masks):
        able = foresight.eligible[phase * masks + m]
        for c in range(components):
            able &= head[here[begin + c] + foresight.able + m]
        while able > 0:
            low = able & -able
            able ^= low
            event = m * foresight.bits + position[low % 67]
            disturbed = 0
            for w in range(masks):
                conflicts = foresight.conflicts[(phase * foresight.events + event) * masks + w]
                for c in range(components):
                    conflicts &= head[here[begin + c] + foresight.tail + phase * masks + w]
                disturbed |= conflicts
            if disturbed == 0:
                return int(event)
    return -1
