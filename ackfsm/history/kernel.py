"""Names and times of a history, one compiled pass over their columns each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ackfsm.history.arrays import mixed
from ackfsm.history.joins import NEVER
from ackfsm.history.loops import compiled

_WORD: Final = 8

mix: Final = compiled(mixed)


@compiled
def hash_names(offsets: Any, data: Any, hashes: Any) -> None:
    """A number of 64 bits for each name, whose bytes are ``data[offsets[i]:offsets[i + 1]]``."""
    for name in range(len(hashes)):
        begin, end = offsets[name], offsets[name + 1]
        found = mix(np.uint64(end - begin) + np.uint64(0x9E3779B97F4A7C15))
        word, filled = np.uint64(0), 0
        for place in range(begin, end):
            word |= np.uint64(data[place]) << np.uint64(8 * filled)
            filled += 1
            if filled == _WORD:
                found = mix(found ^ word)
                word, filled = np.uint64(0), 0
        hashes[name] = mix(found ^ word)


@compiled
def number_by_appearance(codes: Any, order: Any, into: Any) -> Any:
    """``codes`` (-1 for none) numbered as they come first, ``into``; returns how many, the old ones in ``order``."""
    number = np.full(len(order), -1, np.int32)
    count = 0
    for row in range(len(codes)):
        code = codes[row]
        if code >= 0 and number[code] < 0:
            number[code] = count
            order[count] = code
            count += 1
        into[row] = number[code] if code >= 0 else -1
    return count


@compiled
def times_after(t: Any, process: Any, processes: Any, after: Any) -> None:
    """For each row the time of the next one of its process, :data:`NEVER` without one."""
    following = np.full(processes, NEVER, np.int64)
    for row in range(len(t) - 1, -1, -1):
        after[row] = following[process[row]]
        following[process[row]] = t[row]
