"""The exported JSON fits its schema, and says enough for a search that knows nothing else of the project."""

from __future__ import annotations

import importlib.resources
import json
from collections import deque
from typing import Any

import jsonschema
import pytest

from ackfsm.checking.export import network_json
from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Fault
from model_tests.support.checker.exported import NAMES, Found, found, searched_by, system
from model_tests.support.tables import composed, shipped

SYSTEMS = searched_by("JSON")


def _search(document: dict[str, Any]) -> Found:
    """Breadth first, by the description in the schema alone."""
    place = {machine["name"]: number for number, machine in enumerate(document["machines"])}
    events = [
        [(place[part["machine"]], {row["from"]: row["to"] for row in part["rows"]}) for part in event["participants"]]
        for event in document["events"]
    ]
    waited_for = [not event["may_never_happen"] for event in document["events"]]
    first = tuple(machine["initial"] for machine in document["machines"])
    known, queue, transitions, reachable = {first}, deque([first]), 0, set[str]()
    while queue:
        state = queue.popleft()
        enabled = [number for number, event in enumerate(events) if all(state[m] in rows for m, rows in event)]
        transitions += len(enabled)
        reachable |= set(_anomalies(document, state, at_rest=not any(waited_for[number] for number in enabled)))
        for number in enabled:
            moved = list(state)
            for m, rows in events[number]:
                moved[m] = rows[state[m]]
            after = tuple(moved)
            if after not in known:
                known.add(after)
                queue.append(after)
    return Found(len(known), transitions, frozenset(reachable))


def _anomalies(document: dict[str, Any], state: tuple[str, ...], *, at_rest: bool) -> list[str]:
    return [
        machine["anomaly"]
        for machine, its in zip(document["machines"], state, strict=True)
        if "anomaly" in machine and its in machine["marked"] + (machine["marked_at_rest"] if at_rest else [])
    ]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(
        (importlib.resources.files("ackfsm.checking.export") / "network.schema.json").read_text("utf-8")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("number", SYSTEMS, ids=[NAMES[number] for number in SYSTEMS])
def test_the_json_fits_its_schema_and_searched_anew_gives_the_same(
    number: int, validator: jsonschema.Draft202012Validator
) -> None:
    document = json.loads(network_json(system(number).network))
    validator.validate(document)
    assert _search(document) == system(number).found


def test_configuration_and_bounds_stand_in_it_as_in_the_answer_of_check() -> None:
    bounds = Bounds(
        messages=2, faults=frozenset({Fault.REJECTION}), max_faults=None, without=frozenset({"timer_fires"})
    )
    document = json.loads(network_json(compose(shipped(), shipped().configure("ems"), bounds)))
    assert document["configuration"] == shipped().configure("ems").as_dict()
    assert document["bounds"] == {
        "messages": 2,
        "faults": ["rejection"],
        "max_faults": None,
        "without": ["timer_fires"],
    }


def test_a_changed_row_is_noticed() -> None:
    network = composed()
    document = json.loads(network_json(network))
    (accept,) = (event for event in document["events"] if event["name"] == "accept_m1")
    (row,) = next(part["rows"] for part in accept["participants"] if part["machine"] == "entry_m1")
    row["to"] = "removed"
    assert _search(document) != found(network)
