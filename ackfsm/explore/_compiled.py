"""The kernel compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from ackfsm.explore import _kernel

__all__ = ["array", "rehash", "search"]

search = numba.njit(cache=True)(_kernel.search)
rehash = numba.njit(cache=True)(_kernel.rehash)


def array(numbers: list[int]) -> npt.NDArray[np.int64]:
    """``numbers`` as the kernel wants them."""
    return np.array(numbers, dtype=np.int64)
