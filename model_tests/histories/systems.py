"""Systems by chance: all profiles, few settings each, one message or two, one consumer or two, any faults."""

from __future__ import annotations

import random
from typing import Any, Final

from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Configuration, Fault, InputError, Profile
from model_tests.support.tables import shipped, values

__all__ = ["system"]

_TOLD_ACTIONS: Final = ("recover", "rollback", "consumer_close")
"""What an application may do beside what it has to, and a line of its history tells."""

_KEYS: Final = tuple(key for key in Configuration.__dataclass_fields__ if key != "profile")


def system(seed: int, number: int) -> Network:
    """System ``number`` of a seed, a legal one, with nothing that watches it: no line tells of that."""
    draw = random.Random(f"systems of histories {seed} {number}")
    while True:
        profile = draw.choice(list(Profile))
        chosen: dict[str, Any] = {key: draw.choice(values(key)) for key in draw.sample(_KEYS, draw.randint(1, 6))}
        try:
            configuration = shipped().configure(profile, chosen)
            return compose(shipped(), configuration, _bounds(draw), observers=())
        except InputError:
            continue


def _bounds(draw: random.Random) -> Bounds:
    return Bounds(
        messages=draw.choice((1, 2, 2)),
        consumers=draw.choice((1, 1, 2)),
        faults=frozenset(draw.sample(list(Fault), draw.choice((0, 1, 2, 3, len(Fault))))),
        max_faults=draw.choice((1, 2, 3, None)),
        actions=frozenset(draw.sample(_TOLD_ACTIONS, draw.choice((0, 0, 1, 2)))),
    )
