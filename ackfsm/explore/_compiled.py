"""The kernel compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np

from ackfsm.explore import _exchange, _foresight, _kernel
from ackfsm.explore._cache import cache_of

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
    *(_foresight.foresee, _foresight.preferred),
    *(_kernel.mixed, _kernel.describe, _kernel.crowded, _kernel.entered, _kernel.describe_step, _kernel.resolved),
    *(_kernel.counted, _kernel.unfound, _kernel.first_of, _kernel.key_of),
    *(_kernel.look_up, _kernel.sort, _kernel.listed, _kernel.find_out, _kernel.want, _kernel.steps, _kernel.put_away),
):
    compiled(function)

enter = compiled(_kernel.enter)
expand = compiled(_kernel.expand)
insert = compiled(_kernel.insert)
laid = compiled(_kernel.laid)
moved = compiled(_kernel.moved)
noted = compiled(_kernel.noted)
rehash = compiled(_kernel.rehash)
resolve = compiled(_kernel.resolve)
widened = compiled(_kernel.widened)

signed = compiled(_exchange.signed)
recognised = compiled(_exchange.recognised)
spelled = compiled(_exchange.spelled)
added = compiled(_exchange.added)
sought = compiled(_exchange.sought)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
