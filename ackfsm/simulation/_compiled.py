"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from typing import Any

from ackfsm.numba_cache import compiled
from ackfsm.simulation import _kernel

__all__ = ["run"]

_known: dict[str, Any] = {}
for _function in _kernel.FUNCTIONS:
    compiled(_function, _known)

run = _known["run"]
