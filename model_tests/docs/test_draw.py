"""Drawings say what the tables say: every format is read back by other means and compared with the machines."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib.metadata
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.showing.draw import Format, draw, overview, write_all
from ackfsm.tables import Fsm, Lane, Monitor, Relation, Row, RowKind, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, InputError
from model_tests.support.places import PROJECT
from model_tests.support.tables import actions, bounds, configurations, shipped, small_spec, values
from model_tests.support.whole import WHOLE, few, in_turn

SPEC = shipped()
EVERYTHING = Bounds(faults=frozenset(Fault), actions=frozenset(actions()))
SUBJECTS = [*SPEC.machines, *SPEC.properties]
CONFIGURATIONS = {
    "jms": SPEC.configure(),
    "pre": SPEC.configure(settings={"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": "true"}),
    "receive": SPEC.configure("ems", {"ack_mode": "DUPS_OK_ACKNOWLEDGE", "consumption": "receive"}),
    "no-ack": SPEC.configure("qpid", {"ack_mode": "NO_ACKNOWLEDGE", "delivery_mode": "NON_PERSISTENT"}),
    "two-copies": SPEC.configure(
        settings={"resend_in_doubt": "true", "send_mode": "asynchronous", "publish_window": "3"}
    ),
}
WHEEL = Path(sys.executable).parent / "graphviz-pure"

Moves = set[tuple[str, str, str]]
"""(from, to, event)"""


@functools.cache
def _composed(configuration: Configuration, bounds: Bounds) -> Network:
    return compose(SPEC, configuration, bounds)


@pytest.fixture(autouse=True)
def composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All drawings of a configuration are of one system."""
    for room in ("_diagram", "_system"):
        monkeypatch.setattr(f"ackfsm.showing.draw.{room}.compose", lambda _, *chosen: _composed(*chosen))


def _text(name: str, form: Format, configuration: Configuration | None = None) -> str:
    made = draw(SPEC, name, form, configuration)
    assert isinstance(made, str)
    return made


def _monitors(name: str) -> list[Monitor]:
    if name in SPEC.machines:
        return [Monitor(SPEC.machines[name], frozenset(), frozenset())]
    return list(SPEC.properties[Anomaly(name)].monitors)


def _panels(name: str, network: Network) -> dict[str, Fsm]:
    """The machines of a drawing by the prefix of their states: those of the network that differ."""
    panels: dict[str, Fsm] = {}
    anomaly = None if name in SPEC.machines else Anomaly(name)
    for monitor in _monitors(name):
        mine = [i for i in network.instances if i.fsm.name == monitor.machine.name and i.anomaly == anomaly]
        distinct = [i.fsm for n, i in enumerate(mine) if i.fsm not in [other.fsm for other in mine[:n]]]
        copies = itertools.count(1)
        for fsm in distinct:
            panels[fsm.name if len(distinct) == 1 else f"{fsm.name}, copy {next(copies)}"] = fsm
    return panels if len(panels) > 1 else {"": next(iter(panels.values()))}


def _moves(name: str, network: Network) -> Moves:
    """All moves of the machine, from the composed system alone."""
    return {
        (_state(panel, row.state), _state(panel, row.target), str(event))
        for panel, fsm in _panels(name, network).items()
        for (_, event), row in fsm.rows.items()
        if row.kind is RowKind.TO
    }


def _reached(fsm: Fsm, network: Network) -> set[str]:
    """The states to which possible moves of this machine lead."""
    possible = {event.name for event in network.events}
    steps = {s: {r.target for (_, e), r in fsm.rows.items() if r.state == s and e.name in possible} for s in fsm.states}
    reached = {fsm.initial}
    for _ in fsm.states:
        reached |= {target for state in reached for target in steps[state]}
    return reached


def _state(panel: str, state: str) -> str:
    return f"{panel}.{state}" if panel else state


def _parsed(source: str) -> dict[str, Any]:
    """DOT as Graphviz itself reads it."""
    done = subprocess.run([WHEEL, "-Tdot_json"], input=source.encode(), capture_output=True, check=True)
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def _edges(parsed: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    names = {item["_gvid"]: item["name"] for item in parsed["objects"]}
    for edge in parsed["edges"]:
        yield names[edge["tail"]], names[edge["head"]], edge


def _notes(parsed: Mapping[str, Any]) -> dict[str, str]:
    """The conditions that stand below a drawing, by the number that stands for them on its edges."""
    (legend,) = (item["label"] for item in parsed["objects"] if item["name"] == "cluster_legend")
    notes, number = dict[str, str](), ""
    for line in legend.split('<br align="left"/>'):
        if match := re.fullmatch(r"<i>(\[\d+\])</i>: (.*)", line):
            number, notes[match[1]] = match[1], f"[{html.unescape(match[2])}]"
        elif line.startswith("&#160;"):
            notes[number] = f"{notes[number][:-1]} {html.unescape(line).strip()}]"
    return notes


def _labelled(label: str, notes: Mapping[str, str]) -> list[tuple[str, str]]:
    """The events of an edge with their guard, from its HTML-like label."""
    found = []
    for cell in re.findall(r"<td align=\"left\">(.*?)</td>", label):
        guard = " ".join(html.unescape(part) for part in re.findall(r"<i>(.*?)</i>", cell))
        events = re.sub(r"<font point-size=\"10\"><i>.*?</i></font>", "", cell)
        words = re.split(r"<br align=\"left\"/>|, ", events)
        found += [(html.unescape(re.sub(r"<.*?>", "", word)), notes.get(guard, guard)) for word in words if word]
    return found


def _drawn(source: str) -> list[tuple[str, str, str, str]]:
    """(from, to, event, guard) of every edge; the arrow to the initial state is left out."""
    parsed = _parsed(source)
    return [
        (tail, head, event, guard)
        for tail, head, edge in _edges(parsed)
        if not tail.endswith("initial") and edge.get("style") != "invis"
        for event, guard in _labelled(edge["label"], _notes(parsed))
    ]


@pytest.mark.parametrize(("which", "name"), in_turn([*CONFIGURATIONS], SUBJECTS, 1))
def test_dot_has_the_moves_of_the_machine_and_no_others(which: str, name: str) -> None:
    configuration = CONFIGURATIONS[which]
    drawn = [(tail, head, event) for tail, head, event, _ in _drawn(_text(name, Format.DOT, configuration))]
    assert len(drawn) == len(set(drawn))
    network = _composed(configuration, EVERYTHING)
    reached = {
        _state(panel, state) for panel, fsm in _panels(name, network).items() for state in _reached(fsm, network)
    }
    assert set(drawn) == {move for move in _moves(name, network) if {*move[:2]} <= reached}


def _holds(condition: str, environment: Mapping[str, object]) -> bool:
    """A condition as Python itself evaluates it."""
    named = {name: named.holds(environment) for name, named in SPEC.conditions.items()}
    return bool(eval(condition, {}, {**environment, **named}))  # noqa: S307 - the tables' own text


def _allows(guard: str, environment: Mapping[str, object]) -> bool:
    """Whether the part of a guard that is not ``else`` holds."""
    first, *unless = re.split(r"(?:^|, )unless ", guard[1:-1]) if guard else [""]
    condition = first.removeprefix("else").strip()
    return (not condition or _holds(condition, environment)) and not any(_holds(u, environment) for u in unless)


def _rank(guard: str) -> int:
    """Edges without ``else`` come first, then those with a further condition, then the bare ``else``."""
    return 0 if not guard.startswith("[else") else 1 if re.match(r"\[else (?!,)", guard) else 2


@pytest.mark.parametrize("name", [n for n in SUBJECTS if not any(m.machine.counter for m in _monitors(n))])
def test_the_guards_of_the_general_machine_choose_the_moves_of_each_configuration(name: str) -> None:
    drawn = _drawn(_text(name, Format.DOT))
    for configuration in CONFIGURATIONS.values():
        environment = SPEC.environment(configuration, faults=EVERYTHING.faults, max_faults=1)
        for monitor in _monitors(name):
            fsm = monitor.machine.fsm(environment)
            prefix = fsm.name if len(_monitors(name)) > 1 else ""
            for (state, event), row in fsm.rows.items():
                own = [e for e in drawn if (e[0], e[2]) == (_state(prefix, state), str(event))]
                open_ = sorted((_rank(guard), head) for _, head, _, guard in own if _allows(guard, environment))
                chosen = {head for rank, head in open_ if rank == open_[0][0]}
                assert chosen == ({_state(prefix, row.target)} if row.kind is RowKind.TO else set())


def test_a_counter_is_drawn_up_to_the_name_of_its_bound() -> None:
    drawn = [(tail, head, event) for tail, head, event, _ in _drawn(_text("window_overrun", Format.DOT))]
    numbers = ["0", "1", "...", "window", "overrun"]
    up, down, reset = (
        ("send", "resend"),
        ("confirmed", "confirmed_by_range", "rejected", "in_doubt", "send_timed_out"),
        ("producer_crash",),
    )
    steps = {(a, b, event) for a, b in itertools.pairwise(numbers) for event in up}
    steps |= {(b, a, event) for a, b in itertools.pairwise(numbers[:-1]) for event in down}
    steps |= {(number, "0", event) for number in numbers[:-1] for event in reset}
    assert sorted(drawn) == sorted(steps | {("overrun", "overrun", event) for event in up + down + reset})


@pytest.mark.parametrize(("bound", "states"), [(None, 1), (0, 1), (3, 4), (255, 4)])
def test_a_counter_is_drawn_for_its_bound_and_shortened_if_that_is_large(bound: int | None, states: int) -> None:
    limits = dataclasses.replace(EVERYTHING, max_faults=bound)
    parsed = _parsed(str(draw(SPEC, "fault_budget", Format.DOT, SPEC.configure(), limits)))
    names = [item["name"] for item in parsed["objects"] if "_gvid" in item]
    shown = [name for name in names if not name.startswith(("cluster", "%"))]
    assert len(shown) - 1 == states
    assert ("..." in shown, "255" in shown) == (bound == 255, bound == 255)


@pytest.mark.parametrize("name", few(SUBJECTS, 30))
def test_svg_shows_every_state_and_every_event_that_moves_and_not_the_program_that_drew_it(name: str) -> None:
    configuration = CONFIGURATIONS["pre"]
    made = _text(name, Format.SVG, configuration)
    assert "<!--" not in made
    root = ET.fromstring(made)  # noqa: S314 - made here
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = {
        word.strip(", ")
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        for word in re.split(", |: ", "".join(text.itertext()))
    }
    network = _composed(configuration, EVERYTHING)
    for fsm in _panels(name, network).values():
        assert set(fsm.states) <= words, "those that are never reached in the legend"
        reached = _reached(fsm, network)
        moves = {
            str(event)
            for (_, event), row in fsm.rows.items()
            if row.kind is RowKind.TO and {row.state, row.target} <= reached
        }
        assert moves <= words


def test_png_is_png() -> None:
    for made in (draw(SPEC, "entry", Format.PNG), overview(SPEC, Format.PNG)):
        assert isinstance(made, bytes)
        assert made.startswith(b"\x89PNG\r\n\x1a\n")
        assert made.rstrip().endswith(b"IEND\xaeB`\x82")


def _arrows(source: str, arrow: str) -> Moves:
    """The edges of Mermaid or PlantUML text by the captions of their states."""
    captions = {match[2]: match[1] for match in re.finditer(r'state "(.*?)" as (\w+)', source)}
    assert len(captions) == len(re.findall(r'state "', source)), "two states share an identifier"
    found: Moves = set()
    for tail, head, label in re.findall(rf"^ *(\w+) {arrow} (\w+) ?: (.*)$", source, re.MULTILINE):
        plain = re.sub(r"<.*?>|\\n", " ", label)
        words = re.sub(r"\(fault\)|\(cannot\s+happen\)", "", plain)
        events = re.findall(rf"[a-z_]+(?:\((?:{'|'.join(Relation)})\))?", words)
        found |= {(_plain(captions[tail]), _plain(captions[head]), event) for event in events}
    return found


def _plain(caption: str) -> str:
    return re.split(r"<br/>|\\n", caption)[0]


def _without_panels(moves: Moves) -> Moves:
    return {(tail.rpartition(".")[2], head.rpartition(".")[2], event) for tail, head, event in moves}


@given(configuration=configurations(), name=st.sampled_from(SUBJECTS))
@settings(max_examples=40 if WHOLE else 13)
def test_mermaid_and_plantuml_have_the_moves_of_any_configuration(configuration: Configuration, name: str) -> None:
    expected = _without_panels(_moves(name, _composed(configuration, EVERYTHING)))
    assert _arrows(_text(name, Format.MERMAID, configuration), "-->") == expected
    assert _arrows(_text(name, Format.PLANTUML, configuration), r"-.*->") == expected


@pytest.mark.parametrize("name", SUBJECTS)
def test_mermaid_has_the_initial_state_and_names_the_marked_ones(name: str) -> None:
    source = _text(name, Format.MERMAID)
    assert source.startswith("stateDiagram-v2\n")
    assert source.count("[*] --> ") == len(_monitors(name))
    assert source.count("(anomaly)") == sum(len(m.marked) for m in _monitors(name))
    assert source.count("(anomaly at rest)") == sum(len(m.marked_at_rest) for m in _monitors(name))


def _table(text: str) -> dict[tuple[str, str, str], list[str]]:
    """The outcomes of every (machine, state, event) of a Markdown table, in their order."""
    found: dict[tuple[str, str, str], list[str]] = {}
    panel = state = ""
    for line in text.splitlines():
        if match := re.match(r"#+ State `(.*?)`", line):
            state = match[1]
        elif line.startswith("#"):
            panel, state = line.strip("# "), ""
        elif state and line.startswith("| `"):
            events, outcome = line.split(" | ")[:2]
            for event in re.findall(r"`(.*?)`", events):
                found.setdefault((panel, state, event), []).append(outcome)
    return found


def _outcome(row: Row) -> str:
    if row.kind is RowKind.TO:
        return "stays" if row.target == row.state else f"to `{row.target}`"
    word = {RowKind.IGNORE: "ignored", RowKind.REFUSE: "refused"}[row.kind]
    return f"{word} (`{row.error}`)" if row.error and row.kind is RowKind.REFUSE else word


@given(configuration=configurations(), name=st.sampled_from(SUBJECTS))
@settings(max_examples=40 if WHOLE else 13)
def test_table_lists_every_event_of_every_state_with_its_outcome(configuration: Configuration, name: str) -> None:
    expected = {
        (panel or name, state, str(event)): [_outcome(row)]
        for panel, fsm in _panels(name, _composed(configuration, EVERYTHING)).items()
        for (state, event), row in fsm.rows.items()
    }
    assert _table(_text(name, Format.TABLE, configuration)) == expected


@pytest.mark.parametrize("name", [n for n in SUBJECTS if not any(m.machine.counter for m in _monitors(n))])
def test_table_of_the_general_machine_lists_every_alternative_in_order(name: str) -> None:
    monitors = _monitors(name)
    expected = {
        (monitor.machine.name if len(monitors) > 1 else name, state, str(event)): [_outcome(row) for row in cell]
        for monitor in monitors
        for (state, event), cell in monitor.machine.cells.items()
    }
    text = _text(name, Format.TABLE)
    assert _table(text) == expected
    for row in (row for monitor in monitors for row in monitor.machine.rows()):
        assert row.because in text
        assert (row.source or "") in text


def test_table_puts_events_together_only_if_every_alternative_is_the_same(tmp_path: Path) -> None:
    first = "{to: bright, when: send_mode == 'blocking', because: x, source: model}"
    machine = f"""
lamp:
  per: system
  means: a lamp
  owns: [press, tap, pull]
  states:
    dark:
      press, tap: [{first}, {{ignore: never mind, source: model}}]
      pull: [{first}, {{refuse: no such thing, source: model}}]
    bright:
      press, tap, pull: {{ignore: it shines}}
"""
    events = "".join(f"{name}: {{per: system, lane: producer, means: x}}\n" for name in ("press", "tap", "pull"))
    text = str(draw(small_spec(tmp_path, machine, events), "lamp", Format.TABLE))
    assert "| `press`, `tap` | to `bright` | `send_mode == 'blocking'` | x | model |\n" in text
    assert "| `press`, `tap` | ignored | else | never mind | model |\n" in text
    assert _table(text)["lamp", "dark", "pull"] == ["to `bright`", "refused"]


@pytest.mark.parametrize("anomaly", SPEC.properties)
def test_marked_states_look_different_and_the_legend_says_so(anomaly: Anomaly) -> None:
    parsed = _parsed(_text(anomaly, Format.DOT))
    monitors = _monitors(anomaly)
    states = {item["name"]: item for item in parsed["objects"] if "tooltip" in item}
    prefix = "{}." if len(monitors) > 1 else ""
    marked = {prefix.format(m.machine.name) + state for m in monitors for state in m.marked}
    at_rest = {prefix.format(m.machine.name) + state for m in monitors for state in m.marked_at_rest}
    assert {name for name, item in states.items() if item.get("peripheries") == "2"} == marked
    assert {name for name, item in states.items() if "dashed" in item["style"]} == at_rest
    (legend,) = (item["label"] for item in parsed["objects"] if item["name"] == "cluster_legend")
    assert ("anomaly:" in legend, "anomaly at rest:" in legend) == (bool(marked), bool(at_rest))


def test_what_cannot_happen_in_a_configuration_is_dimmed_or_named() -> None:
    network = _composed(CONFIGURATIONS["pre"], EVERYTHING)
    possible = {event.name for event in network.events}
    dimmed, left_out = 0, set[str]()
    for name in SPEC.machines:
        parsed = _parsed(_text(name, Format.DOT, CONFIGURATIONS["pre"]))
        fsm = next(i.fsm for i in network.instances if i.fsm.name == name)
        (legend,) = (item["label"] for item in parsed["objects"] if item["name"] == "cluster_legend")
        named = re.search(r"never reached in this configuration: (.*)", legend.replace('<br align="left"/>', " "))
        missing = set(fsm.states) - _reached(fsm, network)
        assert set(re.findall(r"[\w.]+", named[1] if named else "")) == missing
        assert not missing & {item["name"] for item in parsed["objects"]}
        left_out |= missing
        for _, _, edge in _edges(parsed):
            events = set(re.findall(r"\w+", re.sub(r"<.*?>|\(.*?\)", " ", edge.get("label", ""))))
            assert (edge.get("style") == "dotted") == (bool(events) and not events & possible)
            grey = set(re.findall(r'<font color="#999999">(?:<b>)?(\w+)', edge.get("label", "")))
            assert grey == events - possible
            dimmed += len(grey)
    assert dimmed
    assert left_out


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_drawing_can_be_read_at_the_width_of_a_page(name: str) -> None:
    """Of a machine with more states or arrows than this only a configuration can be, or what happens there unasked."""
    states = sum(len(monitor.machine.states) for monitor in _monitors(name))
    configuration, limits = None, None
    if states > _MOST_STATES or _drawn_arrows(name, configuration) > _MOST_ARROWS:
        configuration = CONFIGURATIONS["jms"]
        if _drawn_arrows(name, configuration) > _MOST_ARROWS_CONFIGURED:
            limits = Bounds(faults=frozenset(Fault))
    root = ET.fromstring(str(draw(SPEC, name, Format.SVG, configuration, limits)))  # noqa: S314 - made here
    width = float(root.get("width", "").removesuffix("pt")) / _POINTS
    smallest = min(float(text.get("font-size", 0)) for text in root.iter(f"{SVG}text")) / _POINTS
    assert smallest * min(1, _COLUMN / width) >= LEGIBLE


def _drawn_arrows(name: str, configuration: Configuration | None) -> int:
    return sum(1 for _ in _edges(_parsed(_text(name, Format.DOT, configuration))))


_MOST_STATES, _MOST_ARROWS = 11, 20
_MOST_ARROWS_CONFIGURED = 20
_POINTS = 0.75
"""Points of a pixel."""

_COLUMN = 860


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_overview_has_an_arrow_for_every_event_by_which_one_machine_moves_another(configuration: Configuration) -> None:
    drawn = set()
    source = overview(SPEC, Format.DOT, configuration)
    assert isinstance(source, str)
    parsed = _parsed(source)
    for tail, head, edge in _edges(parsed):
        ends = (head, tail) if edge.get("dir") == "back" else (tail, head)
        drawn |= {(*ends, event) for event in re.findall(r">(\w+)</font>", edge["label"])}
    assert drawn == set(_moved(_composed(configuration, EVERYTHING)))
    assert set(SPEC.machines) <= {item["name"] for item in parsed["objects"]}


def _moved(network: Network) -> Iterator[tuple[str, str, str]]:
    for event in network.events:
        owner = SPEC.owner(event.name)
        assert owner is not None
        for part in event.participants:
            instance = network.instances[part.instance]
            rows = [instance.fsm.rows[state, part.event] for state in instance.fsm.states]
            moves = any(row.kind is RowKind.TO and row.target != row.state for row in rows)
            if moves and event.name not in set(Fault) and instance.anomaly is None and instance.fsm.name != owner.name:
                yield owner.name, instance.fsm.name, event.name


SVG = "{http://www.w3.org/2000/svg}"
OVERVIEWS = {"general": None, **CONFIGURATIONS}
PAGE = 900
LEGIBLE = 11


def _overview_svg(configuration: Configuration | None = None, specification: Specification = SPEC) -> ET.Element:
    return ET.fromstring(str(overview(specification, Format.SVG, configuration)))  # noqa: S314 - made here


def _boxes(root: ET.Element) -> dict[str, list[float]]:
    """Left, top, right and bottom of each machine."""
    boxes = {}
    for group in root.iter(f"{SVG}g"):
        if name := group.get("id"):
            x, y, width, height = (float(group.findall(f"{SVG}rect")[-1].get(key, "")) for key in _AREA)
            boxes[name] = [x, y, x + width, y + height]
    return boxes


_AREA = ("x", "y", "width", "height")


def _titles(root: ET.Element) -> list[str]:
    """All lines of all titles."""
    return [line for title in root.iter(f"{SVG}title") for line in (title.text or "").splitlines()]


@pytest.mark.parametrize("configuration", OVERVIEWS.values(), ids=OVERVIEWS)
def test_overview_fits_a_page_in_type_that_can_be_read(configuration: Configuration | None) -> None:
    root = _overview_svg(configuration)
    width, height = float(root.get("width", "inf")), float(root.get("height", "inf"))
    assert width <= PAGE
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"
    assert min(int(text.get("font-size", 0)) for text in root.iter(f"{SVG}text")) >= LEGIBLE
    for text in root.iter(f"{SVG}text"):
        left = float(text.get("x", -1)) - float(text.get("textLength", "inf")) * _ANCHORS[text.get("text-anchor")]
        assert 0 <= left <= left + float(text.get("textLength", "inf")) <= width, text.text
        assert 0 < float(text.get("y", -1)) < height, text.text


_ANCHORS = {None: 0, "middle": 0.5, "end": 1}


@pytest.mark.parametrize("configuration", OVERVIEWS.values(), ids=OVERVIEWS)
def test_overview_has_a_box_for_every_machine_and_none_covers_another(configuration: Configuration | None) -> None:
    root = _overview_svg(configuration)
    boxes = _boxes(root)
    assert boxes.keys() == SPEC.machines.keys()
    for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], f"{one} and {other}"
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("font-weight") == "bold"]
    assert all(names.count(name) >= 1 for name in SPEC.machines)


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_overview_names_every_two_machines_that_share_an_event(configuration: Configuration) -> None:
    """One line of some title has the event, the machine that decides it, and all others that take part."""
    lines = [(set(re.findall(r"\w+", line)), line) for line in _titles(_overview_svg(configuration))]
    network = _composed(configuration, EVERYTHING)
    for event in network.events:
        sharing = set(_sharing(network, event.name))
        assert any(sharing <= words and f"{event.name}:" in line for words, line in lines), (event.name, sharing)
    for owner, other, name in _moved(network):
        assert any(re.match(rf"{name}: {owner} decides; moves .*\b{other}\b", line) for _, line in lines)


def _sharing(network: Network, name: str) -> Iterator[str]:
    for event in network.events:
        for part in event.participants if event.name == name else ():
            fsm = network.instances[part.instance].fsm
            mine = network.instances[part.instance].anomaly is None
            if mine and any(fsm.rows[state, part.event].kind is not RowKind.IGNORE for state in fsm.states):
                yield fsm.name


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_overview_brackets_the_machines_of_a_lane_that_move_each_other(configuration: Configuration) -> None:
    root = _overview_svg(configuration)
    ends = {}
    for group in root.iter(f"{SVG}g"):
        path, title = group.find(f"{SVG}path"), group.findtext(f"{SVG}title", "")
        if path is not None and "; moves " in title and " decides " in title.splitlines()[0]:
            numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d", ""))]
            ends[title] = (numbers[:2], numbers[-2:], path)
    lanes = {machine.name: Path(machine.file).stem for machine in SPEC.machines.values()}
    boxes = _boxes(root)
    expected = {(a, b) for a, b, _ in _moved(_composed(configuration, EVERYTHING)) if lanes[a] == lanes[b] != "link"}
    drawn = set()
    for title, (_, _, path) in ends.items():
        for owner, other in re.findall(r"^(\w+) decides .*; moves (\w+)$", title, re.MULTILINE):
            drawn.add((owner, other))
            last = max(owner, other, key=lambda name: (boxes[name][1], boxes[name][0]))
            assert path.get("marker-end" if other == last else "marker-start"), title
    assert drawn == expected


def test_overview_draws_an_arrow_with_its_events_from_lane_to_lane() -> None:
    root = _overview_svg()
    shown: dict[str, set[str]] = {}
    for group in root.iter(f"{SVG}g"):
        words = {word.rstrip(",") for text in group.iter(f"{SVG}text") for word in (text.text or "").split()}
        shown.setdefault(group.findtext(f"{SVG}title", "").partition("\n")[0], set()).update(words)
    for event in SPEC.events.values():
        if SPEC.owner(event.name) is not None:
            way = event.start.value if event.start is event.end else f"{event.start} to {event.end}"
            assert event.name in shown[way]
    arrows = [path for path in root.iter(f"{SVG}path") if "flow" in path.get("marker-end", "")]
    ways = {(e.start, e.end) for e in SPEC.events.values() if e.start is not e.end and e.lane is not Lane.FAULT}
    owned = {(e.start, e.end) for e in SPEC.events.values() if SPEC.owner(e.name) is not None}
    across = {(Lane.CONSUMER, Lane.BROKER), (Lane.BROKER, Lane.CONSUMER)}
    assert len(arrows) == len(ways & owned) + len(ways & owned & across)


def test_overview_takes_up_a_new_machine_without_a_change_of_code(tmp_path: Path) -> None:
    """In tables that this package has never seen, also with more events between two lanes than it names."""
    many = [f"send_{letter}" for letter in "abcdefghijkl"]
    machine = f"""
lamp:
  means: a lamp
  per: system
  owns: [press, {", ".join(many)}]
  states:
    dark:
      press: {{to: bright, because: x, source: model}}
      {", ".join(many)}: {{ignore: x}}
    bright:
      press, {", ".join(many)}: {{ignore: x}}
"""
    ways = {"press": "broker", **dict.fromkeys(many, "producer, to: producer link")}
    events = "".join(f"{name}: {{per: system, lane: {way}, means: x}}\n" for name, way in ways.items())
    spec = small_spec(tmp_path, machine, events)
    root = _overview_svg(None, spec)
    assert _boxes(root).keys() == {"lamp"}
    assert set(many) <= {line.partition(":")[0] for line in _titles(root)}
    assert "and 4 more" in [text.text for text in root.iter(f"{SVG}text")]


@pytest.mark.usefixtures("no_wheel")
def test_overview_as_svg_needs_no_graphviz() -> None:
    assert _overview_svg().tag == f"{SVG}svg"


def test_overview_groups_machines_by_their_file() -> None:
    source = overview(SPEC, Format.DOT)
    assert isinstance(source, str)
    objects = _parsed(source)["objects"]
    names = {item["_gvid"]: item["name"] for item in objects}
    lanes = {item["name"]: {names[node] for node in item.get("nodes", ())} for item in objects if "nodes" in item}
    for machine in SPEC.machines.values():
        assert machine.name in lanes[f"cluster_{Path(machine.file).stem}"]


def test_overview_table_lists_every_event_that_somebody_decides() -> None:
    text = overview(SPEC, Format.TABLE)
    assert isinstance(text, str)
    events = re.findall(r"^\| `(\w+)` \| \w+ \| `(\w+)` ", text, re.MULTILINE)
    assert dict(events) == {event: machine.name for machine in SPEC.machines.values() for event in machine.owns}
    for form in (Format.MERMAID, Format.PLANTUML):
        assert all(f'"{name}"' in str(overview(SPEC, form)) for name in SPEC.machines)


@given(configuration=configurations(), limits=bounds(), name=st.sampled_from([*SPEC.machines]))
@settings(max_examples=40 if WHOLE else 13)
def test_bounds_decide_which_events_can_happen(configuration: Configuration, limits: Bounds, name: str) -> None:
    possible = {event.name for event in compose(SPEC, configuration, limits).events}
    text = str(draw(SPEC, name, Format.TABLE, configuration, limits))
    gone = re.search(r"In this configuration the model has no (.*)\.$", text, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", gone[1])) if gone else set()
    assert named == {event.name for event in SPEC.machines[name].alphabet} - possible


def test_what_cannot_be_drawn_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"there is no machine or property 'brokr' \(did you mean broker\?\); there are .*broker.*loss"
    ):
        draw(SPEC, "brokr", Format.DOT)


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without the wheel; the folder returned is all of its path."""

    def missing(name: str) -> list[importlib.metadata.PackagePath]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.usefixtures("no_wheel")
def test_without_graphviz_the_remedy_is_named_and_text_is_drawn_all_the_same(tmp_path: Path) -> None:
    for form in (Format.SVG, Format.PNG):
        with pytest.raises(InputError) as refused:
            draw(SPEC, "entry", form)
        assert str(refused.value) == "svg and png need Graphviz: pip install 'ackfsm[draw]'"
    with pytest.raises(InputError):
        write_all(SPEC, tmp_path / "folder_of_pages")
    assert not (tmp_path / "folder_of_pages").exists()
    for form in (Format.DOT, Format.MERMAID, Format.PLANTUML, Format.TABLE):
        assert draw(SPEC, "entry", form)


def test_a_dot_on_the_path_serves_where_there_is_no_wheel(no_wheel: Path) -> None:
    _program(no_wheel / "dot", f'exec {WHEEL} "$@"')
    assert "ready" in _text("entry", Format.SVG)


def test_the_wheel_goes_before_a_dot_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _program(tmp_path / "dot", "echo from the path")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert _text("entry", Format.SVG).startswith("<?xml")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '<svg/>'; exit 3", "exit code 3"),
        ("echo 'cannot open font' >&2; exit 1", "cannot open font"),
        ("exit 0", "exit code 0"),
    ],
)
def test_a_graphviz_that_fails_is_named(no_wheel: Path, script: str, said: str) -> None:
    _program(no_wheel / "dot", script)
    with pytest.raises(InputError, match=rf"{no_wheel / 'dot'} cannot draw \({said}\); pip install"):
        draw(SPEC, "entry", Format.SVG)


def test_a_graphviz_that_cannot_be_started_is_named(no_wheel: Path) -> None:
    _program(no_wheel / "dot", "")
    (no_wheel / "dot").write_bytes(b"\x7fELF\x00")
    with pytest.raises(InputError, match=r"cannot be started \(.*\); pip install"):
        draw(SPEC, "entry", Format.SVG)


@pytest.fixture(scope="module")
def folder_of_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder_of_pages")
    written = write_all(SPEC, folder)
    assert sorted(written) == sorted(path for path in folder.rglob("*") if path.is_file())
    return folder


def test_the_folder_has_a_page_and_a_picture_of_everything(folder_of_pages: Path) -> None:
    for name in SUBJECTS:
        folder = folder_of_pages / ("machines" if name in SPEC.machines else "properties")
        ET.parse(folder / f"{name}.svg")  # noqa: S314 - made here
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert _text(name, Format.MERMAID) in page
        assert _table(page).items() == _table(_text(name, Format.TABLE)).items()


def test_the_folder_shows_every_mode_that_the_tables_have(folder_of_pages: Path) -> None:
    shown = {path.stem for path in (folder_of_pages / "modes").glob("*.svg")}
    modes = [(key, value) for key in ("ack_mode", "send_mode", "delivery_mode") for value in _modelled(key)]
    assert shown == {f"{key}-{value}" for key, value in modes}


def _modelled(key: str) -> list[str]:
    return [str(value) for value in values(key)]


def test_every_link_of_the_folder_leads_somewhere(folder_of_pages: Path) -> None:
    targets = 0
    for page in folder_of_pages.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page}: {link}"
            targets += 1
    assert targets > 2 * len(SUBJECTS)


def test_the_machines_of_the_overview_lead_to_their_pages(folder_of_pages: Path) -> None:
    root = ET.parse(folder_of_pages / "overview.svg").getroot()  # noqa: S314 - made here
    links = {link.get("href", ""): link for link in root.iter(f"{SVG}a")}
    assert {Path(link).stem for link in links} == SPEC.machines.keys()
    assert all((folder_of_pages / link).is_file() for link in links)
    assert not list(_overview_svg().iter(f"{SVG}a")), "a picture on its own has no pages beside it"


def test_the_folder_is_the_same_bytes_on_another_day_and_machine(folder_of_pages: Path, tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from ackfsm import tables; from ackfsm.showing import draw; "
        "draw.write_all(tables.load(), pathlib.Path(sys.argv[1]))"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONHASHSEED": "1",
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
        "HOME": str(tmp_path),
    }
    environment["PYTHONPATH"] = str(PROJECT)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "again")], cwd=tmp_path, env=environment, check=True)
    first, second = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*.*")} for f in (folder_of_pages, tmp_path / "again")
    )
    assert first == second


@pytest.fixture
def made_already(folder_of_pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages are those of the folder, and not made anew."""
    files = [path for path in folder_of_pages.rglob("*") if path.is_file()]
    pages = {str(path.relative_to(folder_of_pages)): path.read_text(encoding="utf-8") for path in files}
    monkeypatch.setattr("ackfsm.showing.draw._pages.generated_pages", lambda *_: pages)


@pytest.mark.usefixtures("made_already")
def test_pages_of_machines_that_are_gone_are_removed_and_nothing_else(folder_of_pages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder_of_pages"
    shutil.copytree(folder_of_pages, folder)
    for suffix in (".md", ".svg"):
        shutil.copy(folder / f"machines/entry{suffix}", folder / f"machines/retired{suffix}")
    foreign = [folder / "notes.md", folder / "machines/photo.svg", folder / "data.json"]
    for path in foreign:
        path.write_text("mine", encoding="utf-8")
    write_all(SPEC, folder)
    assert not list(folder.glob("machines/retired.*"))
    assert all(path.read_text(encoding="utf-8") == "mine" for path in foreign)


def test_the_pages_of_a_configuration_are_drawn_for_it(tmp_path: Path) -> None:
    write_all(SPEC, tmp_path, CONFIGURATIONS["pre"])
    assert "ack_mode=PRE_ACKNOWLEDGE" in (tmp_path / "machines/delivery.md").read_text(encoding="utf-8")
    assert not (tmp_path / "modes").exists()


@pytest.mark.usefixtures("made_already")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"file.* cannot be written \(.*\); name another folder"):
        write_all(SPEC, tmp_path / "file")
