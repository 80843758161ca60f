"""The options of a search, and its batch sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import cast

from ackfsm.terms import InputError, check_names, check_number
from ackfsm.text import meant, quoted


class Reduction(StrEnum):
    """A way to search fewer states in which the same anomalies are reached."""

    PARTIAL_ORDER = "partial-order"
    """Ample sets: an event is expanded alone where it depends on nothing that may still happen."""


class SearchEngine(StrEnum):
    """How a state space was searched."""

    LOCAL = "local"
    """State by state, by this machine."""

    SYMBOLIC = "symbolic"
    """Sets of states at once, as decision diagrams."""

    SPARK = "spark"
    """State by state, on Spark."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The sizes at which a search changes its ways, without an effect on its result.

    Attributes:
        plain_states: up to so many states plain Python is done before compiled code would be loaded
            (docs/decisions/search.md); ``None``: compiled code is never used.
        parallel_states: of so many states a level is divided among processors.
        most_workers: so many processors a search uses at most.
        plain_chunk: states that are expanded, in plain Python, before their successors are inserted.
        chunk: the same in compiled code, for each lane.
        plain_block: states that are expanded together, in plain Python.
        block: the same in compiled code.
        first_bits: bits for the number of a local state, until more are needed.
    """

    plain_states: int | None = 4_000
    parallel_states: int = 1 << 15
    most_workers: int = 8
    plain_chunk: int = 1 << 8
    chunk: int = 1 << 16
    plain_block: int = 1 << 4
    block: int = 1 << 7
    first_bits: int = 4


DEFAULT_TUNING = Tuning()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How a state space is searched.

    Attributes:
        max_states: the search stops with what it knows once it has found more; ``None``: no limit.
        max_memory: it stops before the states take more bytes; ``None``: no limit.
        workers: the processors to use, with ``None`` all; what is found does not depend on it.
        only_witnesses: the search may end (not complete) once everything that is observed was reached.
        progress: called now and then with the number of states found so far.
        reductions: with some, fewer states are found, in which the same anomalies are reached, not always by a
            shortest run.
        every_step: no machine is sliced off and no sleep set is used (``spec/reductions.md``); what is found is the
            same.
        compiled: compiled code is used from the first state, if Numba is there, as it is once it is loaded: a
            program that searches many times loads it once.
        tuning: ``None``: the default.

    Raises :class:`ackfsm.terms.InputError` for limits and workers that are no whole numbers from 1, and for unknown
    reductions.
    """

    max_states: int | None = None
    max_memory: int | None = None
    workers: int | None = None
    only_witnesses: bool = False
    progress: Callable[[int], None] | None = None
    reductions: Collection[Reduction] = ()
    every_step: bool = False
    compiled: bool = False
    tuning: Tuning | None = None

    def __post_init__(self) -> None:
        _check_reductions(self.reductions)
        for name in ("max_states", "max_memory", "workers"):
            check_number(name, getattr(self, name))


def _check_reductions(reductions: object) -> None:
    check_names("reductions", reductions)
    for name in cast("Collection[str]", reductions):
        if name not in set(Reduction):
            raise InputError(
                f"there is no reduction {quoted(name)}{meant(name, Reduction)}; they are {', '.join(Reduction)}"
            )
