"""The inner loops of views compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from typing import Any

from ackfsm.checking.unbounded import _kernel
from ackfsm.support.numba_cache import compiled_functions

_FUNCTIONS = compiled_functions(_kernel)


def __getattr__(name: str) -> Any:
    return getattr(_FUNCTIONS, name)
