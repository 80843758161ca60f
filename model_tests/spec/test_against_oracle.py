"""The tables against the independent oracle: the same anomalies reachable, in every configuration drawn."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.terms import Anomaly, Fault, ListenerException
from model_tests.support.spec import oracle
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE

SETTINGS: dict[str, list[object]] = {
    "delivery_mode": ["PERSISTENT", "NON_PERSISTENT"],
    "ack_mode": list(oracle.ACK_MODES),
    "consumption": ["receive", "listener"],
    "send_mode": ["blocking", "asynchronous", "unconfirmed"],
    "journal_sync_non_transactional": [True, "written", False],
    "block_on_acknowledge": [True, False],
    "resend_in_doubt": [False, True],
    "redelivery_mark_persisted": [True, False],
    "queue_durable": [True, False],
    "listener_exception": [each for each in ListenerException if each is not ListenerException.RECOVER],
    "restart_marks_redelivered": [False, True, "maybe"],
}
DRAWN_PER_FAULT = 40 if WHOLE else 16
DRAWN_WITH_TWO_FAULTS = 12 if WHOLE else 6


def _settings(seed: int, count: int) -> list[dict[str, object]]:
    space = list(itertools.product(*SETTINGS.values()))
    return [dict(zip(SETTINGS, values, strict=True)) for values in random.Random(seed).sample(space, count)]


def _compare(
    specification: tables.Specification, settings: dict[str, object], faults: frozenset[Fault], budget: int | None
) -> None:
    configuration = specification.configure("jms", settings)
    bounds = Bounds(faults=faults, max_faults=budget)
    answer = explore.check(specification, configuration, bounds)
    tables_say = {anomaly for anomaly, finding in answer.findings.items() if finding.reachable}
    oracle_says = oracle.explore(oracle.Setting.of(configuration), faults, budget).reachable
    assert answer.exploration.complete
    assert tables_say & set(oracle.ANOMALIES) == oracle_says, dataclasses.asdict(configuration)


@pytest.fixture(scope="module")
def specification() -> tables.Specification:
    return shipped()


@pytest.mark.parametrize("fault", Fault)
def test_single_faults(specification: tables.Specification, fault: Fault) -> None:
    for settings in _settings(list(Fault).index(fault), DRAWN_PER_FAULT):
        _compare(specification, settings, frozenset({fault}), 1)


def test_a_library_that_recovers_the_session(specification: tables.Specification) -> None:
    for settings in _settings(102, DRAWN_PER_FAULT):
        recovers = settings | {"consumption": "listener", "listener_exception": ListenerException.RECOVER}
        _compare(specification, recovers, frozenset({Fault.LISTENER_EXCEPTION}), 1)


def test_without_faults(specification: tables.Specification) -> None:
    for settings in _settings(99, DRAWN_PER_FAULT):
        _compare(specification, settings, frozenset(), 0)


def test_two_faults_of_two_kinds(specification: tables.Specification) -> None:
    draw = random.Random(7)
    for settings in _settings(100, DRAWN_WITH_TWO_FAULTS):
        _compare(specification, settings, frozenset(draw.sample(list(Fault), 2)), 2)


def test_any_number_of_faults(specification: tables.Specification) -> None:
    """What verify asks: kinds of faults, however often."""
    for settings in _settings(101, DRAWN_WITH_TWO_FAULTS):
        one_send = settings | {"resend_in_doubt": False}
        _compare(specification, one_send, frozenset({Fault.BROKER_KILL, Fault.CONSUMER_CRASH}), None)


def test_an_injected_slip_is_noticed(specification: tables.Specification) -> None:
    """The comparison can fail: the tables of another configuration do not agree with the oracle of this one."""
    configuration = specification.configure("jms", {"redelivery_mark_persisted": False})
    bounds = Bounds(faults=frozenset({Fault.BROKER_CRASH}))
    answer = explore.check(specification, configuration, bounds)
    other = dataclasses.replace(oracle.Setting.of(configuration), redelivery_mark_persisted=True)
    assert answer.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable
    assert Anomaly.UNFLAGGED_DUPLICATE not in oracle.explore(other, {Fault.BROKER_CRASH}, 1).reachable
