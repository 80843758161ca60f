"""Types of the NumPy arrays of this package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Codes", "Ints", "Mask", "States", "among"]

Ints: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Small integers that stand for names: places in a table, -1 for none."""
States: TypeAlias = npt.NDArray[np.int32]
"""States of machines: one row a message, one column a machine."""
Mask: TypeAlias = npt.NDArray[np.bool_]


def among(values: npt.NDArray[Any], known: npt.NDArray[Any]) -> Mask:
    """Which ``values`` are in ``known``, which is ascending: looked up, for :func:`numpy.isin` sorts or hashes both."""
    if not len(known):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[places] == values)
