"""Witnesses as diagrams, as tests, as traces: read back, each shows the same steps in the same lanes and order."""

from __future__ import annotations

import html
import itertools
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ackfsm import tables
from ackfsm.checking import explore, export
from ackfsm.checking.explore import Interpreter, NotReplayedError, Refused, Witness
from ackfsm.checking.export._model import model
from ackfsm.checking.export._tla import RESERVED
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.showing.draw import sequence_mermaid, sequence_plantuml, sequence_svg, witness_diagram
from ackfsm.tables import Lane, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, parse_value
from model_tests.support.checker.witnesses import drawn, known
from model_tests.support.tables import copy_of_spec, replace, shipped

pytest_plugins = ["pytester"]

_Arrow = tuple[str, str, str]


def expected(witness: Witness) -> list[_Arrow]:
    """Of each step from where it goes, to where, and its number and event: from the tables alone."""
    events = [shipped().events[step.event.name] for step in witness.steps]
    return [
        (event.start.value, event.end.value, f"{number} {step.event.label}")
        for number, (event, step) in enumerate(zip(events, witness.steps, strict=True), start=1)
    ]


def lanes(witness: Witness) -> list[str]:
    used = {lane for start, end, _ in expected(witness) for lane in (start, end)}
    return [lane.value for lane in Lane if lane in used] or [Lane.BROKER.value]


# diagrams


def test_mermaid_has_every_step_in_its_lanes_and_order() -> None:
    for name, witness in drawn():
        first, *lines = sequence_mermaid(witness_diagram(shipped(), witness)).splitlines()
        assert first == "sequenceDiagram"
        title, participants, arrows, notes = read_mermaid(lines)
        assert title.startswith(f"{witness.anomaly}: "), name
        assert list(participants.values()) == lanes(witness), name
        assert [(participants[a], participants[b], text[0]) for a, _, b, text in arrows] == expected(witness), name
        assert [" ".join(text[1:]) for *_, text in arrows] == [step.because for step in witness.steps], name
        assert [head == "-x" for _, head, _, _ in arrows] == [
            start == Lane.FAULT for start, _, _ in expected(witness)
        ], name
        assert [" ".join(note) for note in notes] == [" ".join(witness.ending)], name


def read_mermaid(
    lines: list[str],
) -> tuple[str, dict[str, str], list[tuple[str, str, str, list[str]]], list[list[str]]]:
    """Title, lanes by their names, arrows and notes; every line must be one of these."""
    title, participants, arrows, notes = (
        "",
        dict[str, str](),
        list[tuple[str, str, str, list[str]]](),
        list[list[str]](),
    )
    for line in lines:
        assert not re.search(r"#(?!\d+;)|(?<!\d);", line), "signs that Mermaid reads are written by their numbers"
        if found := re.fullmatch(r"    title (.+)", line):
            title = unmermaid(found[1])
        elif found := re.fullmatch(r"    participant (\w+)(?: as (.+))?", line):
            participants[found[1]] = found[2] or found[1]
        elif found := re.fullmatch(r"    (\w+?)(->>|-x)(\w+): (.+)", line):
            arrows.append((found[1], found[2], found[3], unmermaid(found[4]).split("<br/>")))
        else:
            found = re.fullmatch(r"    Note over (\w+)(?:,\w+)?: (.+)", line)
            assert found, line
            notes.append(unmermaid(found[2]).split("<br/>"))
    return title, participants, arrows, notes


def unmermaid(text: str) -> str:
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def test_plantuml_has_every_step_in_its_lanes_and_order() -> None:
    for name, witness in drawn():
        first, title, *lines, last = sequence_plantuml(witness_diagram(shipped(), witness)).splitlines()
        assert (first, last) == ("@startuml", "@enduml")
        assert title.startswith(f"title {witness.anomaly}: ")
        declared = [re.fullmatch(r'participant "(.+)" as (\w+)', line) for line in lines]
        names = {found[2]: found[1] for found in declared if found}
        assert list(names.values()) == lanes(witness), name
        arrows = [re.fullmatch(r"(\w+) (->x?) (\w+) : (.+?)\\n(.+)", line) for line in lines[len(names) :]]
        shown = [(names[found[1]], names[found[3]], found[4]) for found in arrows if found]
        assert shown == expected(witness), name
        note = lines[len(names) + len(shown) :]
        assert re.fullmatch(r"note over \w+(, \w+)?", note[0])
        assert (" ".join(note[1:-1]), note[-1]) == (" ".join(witness.ending), "end note"), name


def test_signs_that_a_text_format_reads_are_not_read_as_such() -> None:
    from ackfsm.showing.draw import Arrow, SequenceDiagram

    text = "m1#2; a -- b // <c> \\n ~~"
    diagram = SequenceDiagram("t", ("one", "two"), (Arrow(1, "one", "two", text, ""),))
    assert unmermaid(sequence_mermaid(diagram).splitlines()[-1]) == f"    one->>two: 1 {text}"
    assert sequence_plantuml(diagram).splitlines()[-2] == "one -> two : 1 m1#2; a ~-- b ~// ~<c> ~\\n ~~~"
    assert html.escape(text) in sequence_svg([diagram])


SVG = "{http://www.w3.org/2000/svg}"


def test_svg_has_every_step_in_its_lanes_and_order() -> None:
    for name, witness in drawn():
        root = ET.fromstring(sequence_svg([witness_diagram(shipped(), witness)]))  # noqa: S314 - our own
        (group,) = root.findall(f"{SVG}g")
        at = {lane.get("x1"): text.text for lane, text in zip(lines_of(group), heads_of(group), strict=True)}
        assert list(at.values()) == lanes(witness), name
        ways = [way for path in group.findall(f"{SVG}path") if (way := re.findall(r"-?\d+", path.get("d", "")))]
        ends = [(at[way[0]], at[way[0] if len(way) > 3 else way[2]]) for way in ways]
        numbered = [text.text or "" for text in group.findall(f"{SVG}text") if re.match(r"\d+ \w", text.text or "")]
        assert [(*end, text) for end, text in zip(ends, numbered, strict=True)] == expected(witness), name
        heights = [int(way[1]) for way in ways]
        assert all(above < below for above, below in itertools.pairwise(heights)), name
        inside(root)


def lines_of(group: ET.Element) -> list[ET.Element]:
    return group.findall(f"{SVG}line")


def heads_of(group: ET.Element) -> list[ET.Element]:
    return [text for text in group.findall(f"{SVG}text") if text.get("text-anchor") == "middle"]


def inside(root: ET.Element) -> None:
    """Nothing lies beyond the edge."""
    width, height = int(root.get("width", 0)), int(root.get("height", 0))
    for text in root.iter(f"{SVG}text"):
        assert 0 <= int(text.get("x", -1)) + 6 * len(text.text or "") * (text.get("text-anchor") is None) <= width
        assert 0 < int(text.get("y", -1)) <= height


def test_several_witnesses_are_one_svg_one_below_the_other() -> None:
    root = ET.fromstring(sequence_svg([witness_diagram(shipped(), one) for one in known().values()]))  # noqa: S314
    tops = [re.fullmatch(r"translate\(0,(\d+)\)", group.get("transform", "")) for group in root.findall(f"{SVG}g")]
    numbers = [int(top[1]) for top in tops if top]
    assert len(numbers) == len(known())
    assert sorted(set(numbers)) == numbers
    inside(root)


# tests


def test_pytest_runs_the_printed_tests_as_they_stand(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(export.pytest_file(shipped(), list(known().values())))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v")
    result.assert_outcomes(passed=len(known()))
    result.stdout.fnmatch_lines([f"*::test_{anomaly} PASSED*" for anomaly in known()])


def test_they_fail_once_the_tables_keep_the_promise(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An answer that waits for the sync, whatever the setting says: what is confirmed or settled is stored."""
    spec = copy_of_spec(tmp_path)
    answers = "{to: written, because: the response does not wait for the sync, source: "
    sends, acknowledgements = "004 non-transactional sends; EMS-STORE}", "ART persistence}"
    waits = "{refuse: it waits, source: model}"
    replace(spec, "machines/journal.yaml", (answers + sends, waits), (answers + acknowledgements, waits))
    changed = tables.load(spec)
    monkeypatch.setattr("ackfsm.tables.load", lambda: changed)
    pytester.makepyfile(export.pytest_file(shipped(), list(known().values())))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*Refused: confirm(m1) is refused by record(m1) in state written: it waits*",
            "*Refused: confirm_acknowledgement(m1) is refused by ack_record(m1) in state written: it waits*",
        ]
    )


def run(source: str, anomaly: str, specification: Specification, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of ``anomaly`` in a printed file, without pytest around it."""
    monkeypatch.setattr("ackfsm.tables.load", lambda: specification)
    names: dict[str, Any] = {}
    exec(compile(source, "printed.py", "exec"), names)  # noqa: S102 - what this package has printed
    names[f"test_{anomaly}"]()


def test_a_printed_test_without_one_of_its_steps_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for anomaly in (Anomaly.LOSS, Anomaly.DUPLICATE):
        witness = known()[anomaly]
        lines = export.pytest_file(shipped(), [witness]).splitlines()
        events = {f'        "{step.event.label}",' for step in witness.steps}
        steps = [number for number, line in enumerate(lines) if line in events]
        assert len(steps) == len(witness.steps)
        run("\n".join(lines), anomaly, shipped(), monkeypatch)
        for step in steps:
            with pytest.raises((Refused, AssertionError)):
                run("\n".join(lines[:step] + lines[step + 1 :]), anomaly, shipped(), monkeypatch)


CONFIGURATIONS: list[tuple[str, dict[str, object], Bounds]] = [
    ("jms", {}, Bounds(faults=frozenset(Fault), max_faults=1)),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, Bounds(max_faults=0, actions=frozenset({"recover"}))),
    ("artemis", {"ack_mode": "PRE_ACKNOWLEDGE"}, Bounds(faults=frozenset({Fault.CONSUMER_CRASH}), max_faults=None)),
    ("solace", {"delivery_mode": "DIRECT"}, Bounds(faults=frozenset(Fault))),
    ("qpid", {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 1}, Bounds(messages=2, without=frozenset({"acknowledge"}))),
    ("ems", {"ack_mode": "NO_ACKNOWLEDGE"}, Bounds(faults=frozenset({Fault.CONSUMER_LINK_LOSS}))),
    ("jms", {"resend_in_doubt": True}, Bounds(faults=frozenset({Fault.PRODUCER_LINK_LOSS}))),
]


@pytest.mark.parametrize(("profile", "settings", "bounds"), CONFIGURATIONS)
def test_a_printed_test_composes_the_same_system(
    profile: str, settings: dict[str, object], bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = explore.check(shipped(), shipped().configure(profile, settings), bounds)
    witnesses = answer.witnesses()
    assert witnesses
    source = export.pytest_file(shipped(), witnesses)
    composed: list[Network] = []

    def system(network: Network) -> Interpreter:
        composed.append(network)
        return Interpreter(network)

    monkeypatch.setattr("ackfsm.checking.explore.Interpreter", system)
    for witness in witnesses:
        run(source, witness.anomaly, shipped(), monkeypatch)
    assert {(network.configuration, network.bounds) for network in composed} == {(answer.configuration, bounds)}
    written = re.findall(r'^ {12}"(\w+)": ', source, flags=re.MULTILINE)
    assert set(written) <= set(settings), "what the profile says by itself is not repeated"
    assert ("import Fault" in source) == ("Fault." in source or "(Fault)" in source)
    assert max(map(len, source.splitlines())) <= 120


def test_a_configuration_that_its_profile_refuses_is_no_test() -> None:
    """Nobody could compose it from a profile and settings."""
    fields: dict[str, Any] = shipped().configure("solace").as_dict() | {"ack_mode": "PRE_ACKNOWLEDGE"}
    network = compose(shipped(), configuration_of(fields), Bounds(faults=frozenset(Fault)))
    anomaly, steps = next(iter(explore.explore(network).witnesses.items()))
    witness = explore.replay(network, Anomaly(anomaly), [event.label for event in steps])
    with pytest.raises(InputError, match="PRE_ACKNOWLEDGE"):
        export.pytest_file(shipped(), [witness])


# traces

ITF: dict[str, Any] = {
    "type": "object",
    "required": ["vars", "states"],
    "properties": {
        "#meta": {"type": "object"},
        "params": {"type": "array", "items": {"type": "string"}},
        "vars": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "states": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"#meta": {"type": "object"}},
                "patternProperties": {"^[^#]": {"$ref": "#/$defs/expression"}},
                "additionalProperties": False,
            },
        },
        "loop": {"type": "integer"},
    },
    "additionalProperties": False,
    "$defs": {"expression": {"type": ["string", "integer"]}},
}
"""The rules of Apalache's ADR-015, with those expressions alone that a trace of plain machines needs."""


def states_of(trace: dict[str, Any]) -> Iterator[dict[str, str]]:
    for state in trace["states"]:
        yield {name: value for name, value in state.items() if name != "#meta"}


def test_a_trace_keeps_the_rules_of_itf() -> None:
    for name, witness in drawn()[::2]:
        line = export.itf(witness)
        assert line.count("\n") == 1 == len(line.splitlines())
        trace = json.loads(line)
        jsonschema.validate(trace, ITF)
        assert all(list(state) == trace["vars"] for state in states_of(trace)), name
        assert [state["#meta"]["index"] for state in trace["states"]] == list(range(len(witness.steps) + 1)), name
        actions = ["init", *(step.event.label for step in witness.steps)]
        assert [state["mbt::actionTaken"] for state in states_of(trace)] == actions, name


def test_a_trace_is_replayed_from_its_json_alone() -> None:
    for name, witness in drawn()[::3]:
        trace = json.loads(export.itf(witness))
        network = network_of(trace["#meta"])
        system = Interpreter(network)
        where = {variable.name: variable.instance for variable in model(network, RESERVED).variables}
        places = {(instance.anomaly, instance.label): i for i, instance in enumerate(network.instances)}
        for state in trace["states"]:
            if state["#meta"]["index"]:
                system.fire(state["#meta"]["event"])
            shown = {variable: system.state[places[i.anomaly, i.label]] for variable, i in where.items()}
            assert {key: value for key, value in state.items() if key in shown} == shown, name
            assert trace["vars"] == ["mbt::actionTaken", *shown]
        assert trace["#meta"]["anomaly"] in system.anomalies(), name
        assert trace["#meta"]["at_rest"] <= system.at_rest, name


def network_of(meta: dict[str, Any]) -> Network:
    bounds = meta["bounds"]
    faults = frozenset(Fault(fault) for fault in bounds["faults"])
    told = Bounds(
        messages=bounds["messages"],
        faults=faults,
        max_faults=bounds["max_faults"],
        actions=frozenset(bounds.get("actions", ())),
        without=frozenset(bounds.get("without", ())),
    )
    return compose(shipped(), configuration_of(meta["configuration"]), told)


def configuration_of(written: dict[str, Any]) -> Configuration:
    fields: dict[str, Any] = {key: parse_value(key, value) for key, value in written.items()}
    return Configuration(**fields)


def test_its_variables_are_those_of_the_exported_tla() -> None:
    witness = known()[Anomaly.LOSS]
    module = export.tla(witness.network, "Loss")
    _, _, declared = module.partition("VARIABLES")
    named = re.findall(r"\w+", declared.partition("machines ==")[0])
    assert json.loads(export.itf(witness))["vars"] == ["mbt::actionTaken", *named]


def test_a_trace_that_is_changed_is_no_witness() -> None:
    trace = json.loads(export.itf(known()[Anomaly.LOSS]))
    events = [state["#meta"]["event"] for state in trace["states"][1:]]
    with pytest.raises(NotReplayedError):
        explore.replay(network_of(trace["#meta"]), Anomaly.LOSS, events[:-1])
