"""The request for an advice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ackfsm.checking.network import Bounds
from ackfsm.rates.timing import Workload
from ackfsm.surveys.advice._needs import Need


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The request for an advice.

    Attributes:
        profiles: the systems that are looked at.
        settings: what is fixed, by keys of the configuration, for each of them.
        api: the programming interface that applications use, ``None`` for any.
        needs: what has to be given.
        work: the load and its network; its ``rate`` is what has to be carried, if there is one.
        bounds: what the needs are proved for.
        most: so many proposals are wanted.
        max_states: a search that meets more decides nothing.
    """

    profiles: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]
    api: str | None
    needs: tuple[Need, ...]
    work: Workload
    bounds: Bounds
    most: int = 3
    max_states: int = 4_000_000

    def levels(self) -> tuple[Bounds, ...]:
        """Return the bounds of the searches, one after the other; the last are the bounds of the proof."""
        most = self.bounds.max_faults
        first = _FIRST_FAULTS if most is None else min(_FIRST_FAULTS, most)
        one = dataclasses.replace(self.bounds, messages=1)
        return tuple(dict.fromkeys((dataclasses.replace(one, max_faults=first), one, self.bounds)))


_FIRST_FAULTS = 2
"""Faults of the first search, which meets most of what can go wrong."""
