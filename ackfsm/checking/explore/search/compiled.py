"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ackfsm.checking.explore.search import kernel, kernel_ample, kernel_scc, kernel_serialize
from ackfsm.support.numba_cache import compiled

__all__ = [
    "array",
    "deserialize",
    "expand",
    "fill_missing_successors",
    "find_fair_components",
    "find_quiescent",
    "hash_states",
    "index_states",
    "insert_visited",
    "live_successors",
    "look_up_state",
    "mark_waiting",
    "path_in_scc",
    "rehash_local_states",
    "rehash_visited",
    "relayout_deltas",
    "repack",
    "restrict",
    "scan_unexpanded",
    "serialize",
    "set_find",
    "set_insert",
    "shard_of_states",
]


_known: dict[str, Any] = {}
_compiled = functools.partial(compiled, known=_known)

for _function in (
    *(kernel_ample.write_future_mask, kernel_ample.ample_event),
    *(kernel.hash_mix, kernel.add_local_state, kernel.is_full, kernel.intern),
    *(kernel.write_delta, kernel.local_successor),
    *(kernel.popcount, kernel.unwitnessed_mask, kernel.first_of, kernel.zobrist),
    *(kernel.look_up_block, kernel.sort_by_movers, kernel.enumerate_enabled),
    *(kernel.resolve_inline, kernel.request_successors, kernel.compute_successors, kernel.emit),
):
    _compiled(_function)

expand = _compiled(kernel.expand)
fill_missing_successors = _compiled(kernel.fill_missing_successors)
insert_visited = _compiled(kernel.insert_visited)
rehash_local_states = _compiled(kernel.rehash_local_states)
rehash_visited = _compiled(kernel.rehash_visited)
relayout_deltas = _compiled(kernel.relayout_deltas)
repack = _compiled(kernel.repack)
scan_unexpanded = _compiled(kernel.scan_unexpanded)
shard_of_states = _compiled(kernel.shard_of_states)

deserialize = _compiled(kernel_serialize.deserialize)
hash_states = _compiled(kernel_serialize.hash_states)
serialize = _compiled(kernel_serialize.serialize)
set_find = _compiled(kernel_serialize.set_find)
set_insert = _compiled(kernel_serialize.set_insert)

index_states = _compiled(kernel_scc.index_states)
look_up_state = _compiled(kernel_scc.look_up_state)
live_successors = _compiled(kernel_scc.live_successors)
mark_waiting = _compiled(kernel_scc.mark_waiting)
find_quiescent = _compiled(kernel_scc.find_quiescent)
restrict = _compiled(kernel_scc.restrict)
_compiled(kernel_scc.push_frame)
_compiled(kernel_scc.is_fair)
_compiled(kernel_scc.close_component)
find_fair_components = _compiled(kernel_scc.find_fair_components)
path_in_scc = _compiled(kernel_scc.path_in_scc)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
