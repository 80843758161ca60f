"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba

from ackfsm.numba_cache import cache_of
from ackfsm.simulation import _kernel

__all__ = ["run"]


def _compiled() -> Any:
    """The functions of the kernel, each calling others in their compiled form: those before it."""
    known: dict[str, Any] = {}
    for function in _kernel.FUNCTIONS:
        bound = FunctionType(function.__code__, function.__globals__ | known)
        made = numba.njit(nogil=True)(bound)
        if hasattr(made, "_cache"):  # it is the function itself where NUMBA_DISABLE_JIT is set
            made._cache = cache_of(bound)  # noqa: SLF001 - njit(cache=True) takes no cache of ours
        known[function.__name__] = made
    return known["run"]


run = _compiled()
