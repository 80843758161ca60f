"""Witnesses of systems that are drawn, and those of one that every reader knows."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from ackfsm.checking import explore
from ackfsm.checking.explore import CandidateWitness, Witness
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import AckMode, Anomaly, Configuration, DeliveryMode, Fault
from model_tests.support.tables import actions, shipped, values
from model_tests.support.whole import WHOLE

LOSS = "--set journal_sync_non_transactional=written --fault broker_crash"
"""With these options ``loss``, ``resurrection`` (promised absent), ``duplicate`` and ``reprocessed`` are reachable."""

_DRAWN = 63 if WHOLE else 21
_MOST_STATES = 8000
"""Where a search stops; what it found up to there are witnesses all the same."""


@functools.cache
def drawn() -> tuple[tuple[str, Witness], ...]:
    """A name, and every witness that the search finds in every drawn system, as it is performed."""
    return tuple(
        (f"{number}-{witness.anomaly}", witness)
        for number, network in enumerate(_networks(random.Random(9)))
        for witness in explore.replay_all(network, list(_ways(network)))
    )


def _ways(network: Network) -> Iterator[CandidateWitness]:
    for anomaly, steps in explore.explore(network, explore.SearchOptions(max_states=_MOST_STATES)).witnesses.items():
        yield CandidateWitness(anomaly, tuple(event.label for event in steps), None)


def _networks(draw: random.Random) -> Iterator[Network]:
    """Every acknowledgement mode and delivery mode with everything else at random."""
    for number in range(_DRAWN):
        chosen: dict[str, Any] = {key: draw.choice(values(key)) for key in Configuration.__dataclass_fields__}
        chosen["ack_mode"] = list(AckMode)[number % len(AckMode)]
        chosen["delivery_mode"] = list(DeliveryMode)[number % len(DeliveryMode)]
        bounds = Bounds(
            messages=draw.choice((1, 1, 2)),
            faults=frozenset(draw.sample(list(Fault), draw.choice((1, 2, len(Fault))))),
            max_faults=draw.choice((0, 1, 2, None)),
            actions=frozenset(draw.sample(actions(), draw.choice((0, 0, 1)))),
        )
        yield compose(shipped(), Configuration(**chosen), bounds)


@functools.cache
def known() -> Mapping[Anomaly, Witness]:
    """The witnesses that :data:`LOSS` asks for."""
    configuration = shipped().configure("jms", {"journal_sync_non_transactional": "written"})
    answer = explore.check(shipped(), configuration, Bounds(faults=frozenset({Fault.BROKER_CRASH})))
    return {Anomaly(witness.anomaly): witness for witness in answer.witnesses()}
