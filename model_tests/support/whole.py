"""A product of many cases: a few of them in the suite, all of them before a release (``make whole``)."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from typing import TypeVar

import pytest

S = TypeVar("S")
T = TypeVar("T")

WHOLE = bool(os.environ.get("ACKFSM_TESTS_WHOLE"))
"""Whether products are run whole."""

before_a_release = pytest.mark.skipif(not WHOLE, reason="takes long: make whole")
"""Marks a test that asks at a large size, or of another environment, what others of its file ask of a small one."""


def few(cases: Sequence[T], number: int, of: str = "") -> list[T]:
    """``number`` of the cases ``of`` something, in their order, the same on every day; all where products are whole."""
    if WHOLE or number >= len(cases):
        return list(cases)
    kept = sorted(random.Random(f"{of}{len(cases)}").sample(range(len(cases)), number))
    return [cases[place] for place in kept]


def in_turn(some: Sequence[S], many: Sequence[T], times: int) -> list[tuple[S, T]]:
    """Each of ``many`` with ``times`` of ``some``, which take turns; with each of them where products are whole."""
    if WHOLE or times >= len(some):
        return list(itertools.product(some, many))
    return [
        (some[(place + turn * len(some) // times) % len(some)], each)
        for place, each in enumerate(many)
        for turn in range(times)
    ]
