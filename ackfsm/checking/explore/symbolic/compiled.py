"""The kernel of symbolic search compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

import functools
from typing import Any

from ackfsm.checking.explore.symbolic import kernel, kernel_count
from ackfsm.support.numba_cache import compiled

__all__ = [
    "add_paths",
    "begin",
    "copy_children",
    "count_enabled",
    "count_paths",
    "list_nodes",
    "number_nodes",
    "rehash_cache",
    "rehash_nodes",
    "run",
]


_known: dict[str, Any] = {}
_compiled = functools.partial(compiled, known=_known)

for _function in (
    *(kernel.hash_of, kernel.hash_of_children, kernel.find, kernel.make),
    *(kernel.store_result, kernel.is_refused, kernel.known_result, kernel.next_changed),
    *(kernel.deliver, kernel.next_firing, kernel.next_child),
):
    _compiled(_function)

begin = _compiled(kernel.begin)
_compiled(kernel.finish)
_compiled(kernel.step)
run = _compiled(kernel.run)
rehash_nodes = _compiled(kernel.rehash_nodes)
rehash_cache = _compiled(kernel.rehash_cache)

_compiled(kernel_count.add)
list_nodes = _compiled(kernel_count.list_nodes)
number_nodes = _compiled(kernel_count.number_nodes)
copy_children = _compiled(kernel_count.copy_children)
count_paths = _compiled(kernel_count.count_paths)
add_paths = _compiled(kernel_count.add_paths)
count_enabled = _compiled(kernel_count.count_enabled)
