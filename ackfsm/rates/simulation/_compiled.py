"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from typing import Any

from ackfsm.rates.simulation import _kernel
from ackfsm.support.numba_cache import compiled

__all__ = ["run"]

_known: dict[str, Any] = {}
for _function in _kernel.FUNCTIONS:
    compiled(_function, _known)

run = _known["run"]
