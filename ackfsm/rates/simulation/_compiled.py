"""The kernel compiled by Numba; importing this module imports Numba."""

from __future__ import annotations

from ackfsm.rates.simulation import _kernel, _resources
from ackfsm.support.numba_cache import compiled_functions

run = compiled_functions(_resources, _kernel).run
