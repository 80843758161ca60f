"""Spark finds the state space that one process finds, also if it was interrupted; a checkpoint that is not its own it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import explore, spark
from ackfsm.explore import Exploration, System
from ackfsm.network import Bounds, Network, compose
from ackfsm.spark._levels import Levels
from ackfsm.terms import Fault, InputError
from model_tests._tables import shipped

SPEC = shipped()
SETTINGS = {
    "jms": {"ack_mode": "CLIENT_ACKNOWLEDGE"},
    "artemis": {"ack_mode": "PRE_ACKNOWLEDGE"},
    "solace": {},
}


def _network(profile: str, *, messages: int = 1) -> Network:
    configuration = SPEC.configure(None, SPEC.in_vocabulary(profile, SETTINGS[profile]))
    return compose(SPEC, configuration, Bounds(messages=messages, faults=frozenset(Fault), max_faults=1))


def _same(network: Network, found: Exploration, local: Exploration) -> None:
    """The same counts, and witnesses that can happen and are as short."""
    assert (found.states, found.transitions, found.depth) == (local.states, local.transitions, local.depth)
    assert (found.complete, found.stopped_by) == (True, None)
    assert {a: len(steps) for a, steps in found.witnesses.items()} == {a: len(s) for a, s in local.witnesses.items()}
    for anomaly, steps in found.witnesses.items():
        system = System(network)
        for event in steps:
            system.fire(event.label)
        ends = zip(network.instances, system.state, strict=True)
        at_rest = all(event.free for event in system.enabled())
        assert any(_shows(instance, state, anomaly, at_rest=at_rest) for instance, state in ends)
