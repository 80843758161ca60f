"""The exported SCXML, run by another library, moves as the network does; and what it holds is counted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from statemachine.io.scxml.processor import SCXMLProcessor

from ackfsm.checking.export import scxml
from ackfsm.checking.export._model import Model, model
from model_tests.support.checker.exported import FEW, NAMES, system
from model_tests.support.tables import composed
from model_tests.support.whole import few

_NAMESPACE = "{http://www.w3.org/2005/07/scxml}"
_WALKED = (0, 3, 6, 12, 20)
"""Which systems are walked through: the library takes about 10 ms an event."""
_EVENTS = 120


def _charts(text: str) -> Iterator[Any]:
    """The chart at its beginning, over and over."""
    processor = SCXMLProcessor()
    processor.parse_scxml("system", text)
    while True:
        yield processor.start()  # type: ignore[no-untyped-call]


def _where(chart: Any, written: Model) -> tuple[str, ...]:
    """The present state of each machine."""
    active = {state.id for state in chart.configuration}
    return tuple(
        next(state for state in variable.states if f"{variable.name}_{state}" in active)
        for variable in written.variables
    )


def _walk(text: str, written: Model, seed: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Random events, those that cannot happen too: where the chart is, and where the network; anew from each end."""
    draw, charts, network = random.Random(seed), _charts(text), written.network
    chart, state = next(charts), network.initial
    for _ in range(_EVENTS):
        enabled = [action for action in written.actions if network.step(state, action.event) is not None]
        if not enabled:
            chart, state = next(charts), network.initial
            continue
        action = draw.choice(enabled if draw.random() < 0.7 else written.actions)
        chart.send(action.name)
        state = network.step(state, action.event) or state
        yield _where(chart, written), state


@pytest.mark.parametrize("number", few(_WALKED, 3))
def test_another_library_runs_it_as_the_network_moves(number: int) -> None:
    network = system(number).network
    places = list(_walk(scxml(network), model(network, {"system"}), number))
    assert all(chart == state for chart, state in places)
    assert len({state for _, state in places}) > 10


def test_a_changed_row_is_noticed() -> None:
    network = composed()
    text = scxml(network)
    changed = text.replace('target="entry_m1_ready"', 'target="entry_m1_removed"')
    assert changed != text
    assert any(chart != state for chart, state in _walk(changed, model(network, {"system"}), 1))


@pytest.mark.parametrize("number", FEW, ids=[NAMES[number] for number in FEW])
def test_it_is_well_formed_and_has_every_state_and_every_row_that_moves(number: int) -> None:
    network = system(number).network
    written, root = model(network, {"system"}), ET.fromstring(scxml(network))  # noqa: S314 - we wrote it
    states = {state.get("id") for state in root.iter(f"{_NAMESPACE}state")}
    transitions = list(root.iter(f"{_NAMESPACE}transition"))
    if written.variables:
        assert len(states) == sum(1 + len(variable.states) for variable in written.variables)
    assert len(transitions) == sum(len(part.moving) for action in written.actions for part in action.parts)
    assert {transition.get("target") for transition in transitions} <= states
    assert {transition.get("event") for transition in transitions} <= {action.name for action in written.actions}
