"""The kernel compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np

from ackfsm.explore import _exchange, _kernel

__all__ = [
    "added",
    "array",
    "enter",
    "expand",
    "insert",
    "laid",
    "moved",
    "recognised",
    "rehash",
    "resolve",
    "signed",
    "sought",
    "spelled",
    "widened",
]


def _compiled(function: Any) -> Any:
    """``function`` compiled, calling others of the kernel in their compiled form: those that were compiled before it.

    It does not hold the lock of the interpreter, so that shards are searched at the same time.
    """
    bound = FunctionType(function.__code__, function.__globals__ | _known)
    _known[function.__name__] = numba.njit(cache=True, nogil=True)(bound)
    return _known[function.__name__]


_known: dict[str, Any] = {}

_compiled(_kernel.mixed)
_compiled(_kernel.describe)
_compiled(_kernel.crowded)
_compiled(_kernel.entered)
_compiled(_kernel.key_of)
enter = _compiled(_kernel.enter)
expand = _compiled(_kernel.expand)
insert = _compiled(_kernel.insert)
laid = _compiled(_kernel.laid)
moved = _compiled(_kernel.moved)
rehash = _compiled(_kernel.rehash)
resolve = _compiled(_kernel.resolve)
widened = _compiled(_kernel.widened)

signed = _compiled(_exchange.signed)
recognised = _compiled(_exchange.recognised)
spelled = _compiled(_exchange.spelled)
added = _compiled(_exchange.added)
sought = _compiled(_exchange.sought)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
