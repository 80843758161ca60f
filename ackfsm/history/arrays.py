"""Types of the NumPy arrays of this package, and functions on any of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Small integers that stand for names: places in a table, -1 for none."""
States: TypeAlias = npt.NDArray[np.int32]
"""States of machines: one row a message, one column a machine."""
Mask: TypeAlias = npt.NDArray[np.bool_]


_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(number: Any) -> Any:
    """A number of 64 bits, or an array of them, in which each bit depends on all bits of ``number``.

    This is the finaliser of splitmix64.  It is also compiled, in :mod:`ackfsm.verify.folding.kernel`.
    """
    number = (number ^ (number >> _SHIFTS[0])) * _FACTORS[0]
    number = (number ^ (number >> _SHIFTS[1])) * _FACTORS[1]
    return number ^ (number >> _SHIFTS[2])


def among(values: npt.NDArray[Any], known: npt.NDArray[Any]) -> Mask:
    """Which ``values`` are in ``known``, which is ascending: looked up, for :func:`numpy.isin` sorts or hashes both."""
    if not len(known):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[places] == values)
