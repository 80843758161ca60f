"""The inner loops of views compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

import functools
from typing import Any

from ackfsm.checking.unbounded import _kernel
from ackfsm.support.numba_cache import compiled

__all__ = [
    "add_states",
    "allowed_as_bits",
    "begin",
    "close",
    "expand_all",
    "find_edges",
    "gather",
    "index_of",
    "look_up",
    "look_up_states",
    "number_of",
    "redirect",
    "refine",
    "spread",
    "trace",
    "track",
    "watch",
]

_known: dict[str, Any] = {}
_compiled = functools.partial(compiled, known=_known)

for _function in (
    *(_kernel.hash_of, _kernel.share_of, _kernel.hash_of_states, _kernel.is_after, _kernel.find_state),
    *(_kernel.insert, _kernel.find_targets, _kernel.allowed_at, _kernel.has_step),
    *(_kernel.expand, _kernel.note_possible, _kernel.note_stays, _kernel.is_expanded),
):
    _compiled(_function)

expand_all = _compiled(_kernel.expand_all)
refine = _compiled(_kernel.refine)
redirect = _compiled(_kernel.redirect)
allowed_as_bits = _compiled(_kernel.allowed_as_bits)
look_up = _compiled(_kernel.look_up)
look_up_states = _compiled(_kernel.look_up_states)
begin = _compiled(_kernel.begin)
number_of = _compiled(_kernel.number_of)
_compiled(_kernel.add_state)
add_states = _compiled(_kernel.add_states)
index_of = _compiled(_kernel.index_of)
close = _compiled(_kernel.close)
gather = _compiled(_kernel.gather)
spread = _compiled(_kernel.spread)
find_edges = _compiled(_kernel.find_edges)
watch = _compiled(_kernel.watch)
trace = _compiled(_kernel.trace)
track = _compiled(_kernel.track)
