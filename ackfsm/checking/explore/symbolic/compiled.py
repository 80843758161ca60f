"""The kernel of symbolic search compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from typing import Any

from ackfsm.checking.explore.symbolic import kernel, kernel_count
from ackfsm.support.numba_cache import compiled_functions

_FUNCTIONS = compiled_functions(kernel, kernel_count)


def __getattr__(name: str) -> Any:
    return getattr(_FUNCTIONS, name)
