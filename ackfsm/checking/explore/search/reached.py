"""The states that a search found, as a table, and the shortest run to each: for what is asked of each step."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackfsm.checking.explore.search.explore import finished_search
from ackfsm.checking.explore.search.layout import LocalLayout
from ackfsm.checking.explore.search.options import SearchOptions
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Network

_Table: TypeAlias = npt.NDArray[np.unsignedinteger]


class Reached:
    """The states of a network, nearest first, as far as ``most`` of them.

    Attributes:
        states: a row each, the first one first; a column for each machine, the number of its state.
        complete: whether these are all that can be reached.
    """

    def __init__(self, network: Network, most: int) -> None:
        """Search; states are numbered in the order in which they are met, breadth first."""
        self._search, _ = finished_search(network, SearchOptions(max_states=most, every_step=True))
        self.complete = self._search.complete
        self.states = state_table(self._search)

    def parent(self, state: int) -> tuple[int, int] | None:
        """Return the event that led to ``state`` first, and the state before; ``None`` of the first one."""
        return self._search.parent_of(state)

    def run(self, state: int) -> list[int]:
        """Return the events of the shortest run to ``state``, in their order."""
        return self._search.path(state)


def state_table(search: Search) -> _Table:
    """The states that were found, a row each, with the number of the state of each machine."""
    layout, interned, local = search.layout, search.interned, LocalLayout(search.packed)
    count = search.found_states
    words = np.asarray(search.visited.states[: count * layout.words], np.uint64).reshape(count, layout.words)
    id_of, machines = np.asarray(interned.id_of), np.asarray(interned.machines).reshape(-1, search.system.local_words)
    table = np.empty((count, len(search.packed.size)), np.min_scalar_type(max(search.packed.size, default=1)))
    for component, members in enumerate(local.members):
        shift, mask = np.uint64(layout.shift[component]), np.uint64(layout.mask[component])
        numbers = (words[:, layout.word[component]] >> shift & mask).astype(np.int64)
        ids = id_of[component * interned.most + numbers]
        for machine in members:
            table[:, machine] = machines[ids, local.word[machine]] >> local.shift[machine] & local.mask[machine]
    return table
