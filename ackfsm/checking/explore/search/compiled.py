"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from ackfsm.checking.explore.search import kernel, kernel_ample, kernel_scc, kernel_serialize
from ackfsm.support.numba_cache import compiled_functions

_FUNCTIONS = compiled_functions(kernel_ample, kernel, kernel_serialize, kernel_scc)


def __getattr__(name: str) -> Any:
    return getattr(_FUNCTIONS, name)


def array(numbers: Any, kind: str) -> Any:
    """``numbers`` as the kernel wants them; ``kind`` is NumPy's name of their type."""
    return np.array(numbers, dtype=kind)
