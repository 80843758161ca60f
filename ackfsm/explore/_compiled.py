"""The kernel compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np

from ackfsm.explore import _kernel

__all__ = ["array", "enter", "expand", "insert", "laid", "moved", "rehash", "resolve", "widened"]


def _compiled(function: Any) -> Any:
    """``function`` compiled, calling others of the kernel in their compiled form: those that were compiled before it.

    It does not hold the lock of the interpreter, so that shards are searched at the same time.
    """
    bound = FunctionType(function.__code__, vars(_kernel) | _known)
    _known[function.__name__] = numba.njit(cache=True, nogil=True)(bound)
    return _known[function.__name__]


_known: dict[str, Any] = {}

_compiled(_kernel.mixed)
_compiled(_kernel.describe)
_compiled(_kernel.key_of)
enter = _compiled(_kernel.enter)
expand = _compiled(_kernel.expand)
insert = _compiled(_kernel.insert)
laid = _compiled(_kernel.laid)
moved = _compiled(_kernel.moved)
rehash = _compiled(_kernel.rehash)
resolve = _compiled(_kernel.resolve)
widened = _compiled(_kernel.widened)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
