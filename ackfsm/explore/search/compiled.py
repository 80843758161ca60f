"""The kernel compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np

from ackfsm.explore.search import kernel, kernel_ample, kernel_serialize
from ackfsm.explore.search.cache import cache_of

__all__ = [
    "added",
    "array",
    "compiled",
    "enter",
    "expand",
    "insert",
    "laid",
    "moved",
    "noted",
    "recognised",
    "rehash",
    "resolve",
    "signed",
    "sought",
    "spelled",
    "widened",
]


def compiled(function: Any) -> Any:
    """``function`` compiled, calling others in their compiled form: those that were compiled before it.

    It does not hold the lock of the interpreter, so that shards are searched at the same time.
    """
    bound = FunctionType(function.__code__, function.__globals__ | _known)
    made = numba.njit(nogil=True)(bound)
    if hasattr(made, "_cache"):  # it is the function itself where NUMBA_DISABLE_JIT is set
        made._cache = cache_of(bound)  # noqa: SLF001 - njit(cache=True) takes no cache of ours
    _known[function.__name__] = made
    return made


_known: dict[str, Any] = {}

for function in (
    *(kernel_ample.foresee, kernel_ample.preferred),
    *(kernel.mixed, kernel.describe, kernel.crowded, kernel.entered, kernel.describe_step, kernel.resolved),
    *(kernel.counted, kernel.unfound, kernel.first_of, kernel.key_of),
    *(kernel.look_up, kernel.sort, kernel.listed, kernel.find_out, kernel.want, kernel.steps, kernel.put_away),
):
    compiled(function)

enter = compiled(kernel.enter)
expand = compiled(kernel.expand)
insert = compiled(kernel.insert)
laid = compiled(kernel.laid)
moved = compiled(kernel.moved)
noted = compiled(kernel.noted)
rehash = compiled(kernel.rehash)
resolve = compiled(kernel.resolve)
widened = compiled(kernel.widened)

signed = compiled(kernel_serialize.signed)
recognised = compiled(kernel_serialize.recognised)
spelled = compiled(kernel_serialize.spelled)
added = compiled(kernel_serialize.added)
sought = compiled(kernel_serialize.sought)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
