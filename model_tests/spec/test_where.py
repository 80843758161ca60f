"""``ackfsm where``: the rows that it shows decide, all that decide are shown, and each stands where it says."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.cli import main
from ackfsm.driving.live.brokers import BROKERS
from ackfsm.showing.views import where
from ackfsm.showing.views.index import index_page
from ackfsm.tables import ALWAYS, Fsm, Specification, Value, load, parse_condition
from ackfsm.tables.lookup import (
    CALLS,
    SEEN,
    Answer,
    Cell,
    Lookup,
    Place,
    Space,
    TableRow,
    read_seen,
    row_keys,
    seen_text,
)
from ackfsm.tables.lookup._cells import cells_of
from ackfsm.terms import AckMode, Configuration, DeliveryMode, Fault, InputError, Profile, SendMode, SpecError
from model_tests.support.places import PROJECT, SPEC
from model_tests.support.tables import configurations, copy_of_spec, replace, shipped, small_spec
from model_tests.support.whole import WHOLE, few

MODES = (("ack_mode", AckMode), ("delivery_mode", DeliveryMode), ("send_mode", SendMode))


@pytest.fixture(autouse=True)
def tables_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(directory: Path | None = None, *, partial: bool = False) -> Specification:
        return shipped() if directory is None else load(directory, partial=partial)

    monkeypatch.setattr("ackfsm.tables.lookup.Lookup", lambda _: lookup())
    monkeypatch.setattr("ackfsm.showing.views.index.index_page", page_of)


@functools.cache
def lookup() -> Lookup:
    return Lookup(shipped())


page_of = functools.cache(index_page)
"""The index of a look-up is made once."""


@functools.cache
def lines_of(file: str) -> list[str]:
    return (PROJECT / file).read_text(encoding="utf-8").splitlines()


@functools.cache
def all_answers() -> tuple[tuple[str, Answer], ...]:
    """Of every word: the settings, events, modes, machines and what else there is; of a third of them in the suite."""
    words = [*lookup().words(), *(f"{key}={value}" for key, kind in MODES for value in kind)]
    return tuple((word, answer) for word in few(words, len(words) // 3) for answer in lookup().find(word))


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["where", *words]) == 0
    return capsys.readouterr().out


# the questions of a new user, each answered by one call, or by a second that the first names


def test_whether_the_redelivered_mark_survives_a_crash_of_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    short = ask(capsys, "redelivery_mark_persisted")
    (cell,) = [c for c in lookup().machines if c.name == "redelivery.marked" and "broker_crash" in c.events]
    stored, lost = cell.rows
    head, _, rest = short.partition("delivery_attempts (")
    assert f":{stored.place.line} marked, on broker_crash" in head
    assert "with the reasons, machine by machine: ackfsm where redelivery\n" in rest
    shown = ask(capsys, "redelivery")
    assert f"broker.yaml:{stored.place.line}  marked, on broker_crash" in shown
    assert "ignored when redelivery_mark_persisted; the mark is stored" in " ".join(shown.split())
    assert f"broker.yaml:{lost.place.line}  else to unsure; the mark was only in memory" in shown


def test_when_a_confirmation_may_be_sent_relative_to_the_sync(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(ask(capsys, "confirm").split())
    assert "record reads journal_sync_non_transactional" in shown
    assert "written: refused when answer_waits_for_sync; the response waits for the sync" in shown
    assert "else stays; the response does not wait for the sync" in shown
    assert "durable: stays; it is safe" in shown


def test_what_dups_ok_does_lazily(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "DUPS_OK_ACKNOWLEDGE")
    flat = " ".join(shown.split())
    assert re.search(r"execution\.yaml:\d+ acknowledge: called lazily when acks_lazily", flat)
    assert "AUTO_ACKNOWLEDGE: called by the library" in flat
    assert re.search(r"with consumption=receive\n", shown)
    assert "acks_lazily" in flat.partition("calls (")[0], "the answer begins with what the mode makes true"
    for word in (
        "DUPS_OK",
        "dups_ok",
        "ack_mode=DUPS_OK",
        "ack_mode=DUPS_OK_ACKNOWLEDGE",
        "Session.DUPS_OK_ACKNOWLEDGE",
    ):
        assert ask(capsys, word) == shown


# what is shown is there


@functools.cache
def groups() -> dict[str, str]:
    """The names under which events may stand in a row with others."""
    events = yaml.safe_load((SPEC / "events.yaml").read_text(encoding="utf-8"))
    return {name: event["group"] for name, event in events.items() if "group" in event}


def stands(row: TableRow, events: tuple[str, ...]) -> bool:
    """Whether at the row's line the file has one of the events, or one of several rows, and then its reason."""
    events = (*events, *(groups()[event] for event in events if event in groups()))
    text = lines_of(row.place.file)[row.place.line - 1 : row.place.line + 5]
    first = text[0].strip()
    if not first.startswith("- ") and not any(event in first for event in events):
        return False
    own = [
        line for number, line in enumerate(text) if not any(t.strip().startswith("- ") for t in text[1 : number + 1])
    ]
    return row.because in " ".join(" ".join(own).split())


def test_every_row_stands_where_it_is_said_to_stand() -> None:
    rows = 0
    for word, answer in all_answers():
        shown = [(cell, row) for cell in answer.cells for row in cell.rows]
        shown += [(each.cell, row) for each in answer.differences for row in (each.row, each.instead_of)]
        for cell, row in shown:
            assert stands(row, cell.events), f"{word}: {row.place}"
            rows += 1
        for reference in answer.references:
            if reference.kind == "glossary":
                continue  # the place of a term, which test_terms.py of the command line looks at
            text = lines_of(reference.place.file)[reference.place.line - 1]
            sought = answer.name.partition("=")[0] if reference.kind == "profile" else reference.name.rpartition(".")[2]
            assert sought in text, f"{word}: {reference}"
    assert rows > (3000 if WHOLE else 1000)


def test_a_row_that_stands_elsewhere_is_noticed() -> None:
    cell = next(cell for cell in lookup().machines if len(cell.rows) > 1)
    one, other = cell.rows[:2]
    assert stands(one, cell.events)
    moved = TableRow(one.outcome, one.when, one.because, one.source, other.place)
    assert not stands(moved, cell.events)


def test_a_screen_has_80_columns_and_names_the_lines_of_the_answer() -> None:
    for word, answer in all_answers():
        screen = where.screen([answer])
        assert max(map(len, screen.splitlines())) <= 80, word
        named = set(re.findall(r"[a-z_-]+\.yaml:\d+", screen))
        places = {row.place for cell in answer.cells for row in cell.rows}
        places |= {each.row.place for each in answer.differences} | {each.place for each in answer.references}
        assert named <= {str(place).rpartition("/")[2] for place in places}, word


def test_json_has_the_rows_of_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "confirm", "--json", "--profile", "artemis"))
    assert (said["word"], said["profile"]) == ("confirm", "artemis")
    answer = said["answers"][0]
    found, *_ = lookup().find("confirm", Profile.ARTEMIS)
    assert [(row["file"], row["line"]) for row in answer["rows"]] == [
        (row.place.file, row.place.line) for cell in found.cells for row in cell.rows
    ]
    (mode,) = json.loads(ask(capsys, "PRE", "--json"))["answers"]
    assert mode["instead_of"] == "AUTO_ACKNOWLEDGE"
    assert {row["instead_of"]["file"] for row in mode["differences"]} >= {"spec/machines/consumer.yaml"}


# all that decides is shown


def chosen(configuration: Configuration) -> dict[tuple[str, Place], TableRow]:
    environment = shipped().environment(configuration, faults=frozenset(Fault), max_faults=None)
    return {(cell.name, cell.place): cell.decide(environment) for cell in lookup().cells}


@settings(max_examples=40 if WHOLE else 14, deadline=None)
@given(st.data())
def test_a_setting_that_changes_a_row_is_said_to_decide_it(data: st.DataObject) -> None:
    one = data.draw(configurations())
    other = data.draw(configurations())
    key = data.draw(st.sampled_from(list(one.as_dict())))
    values = {name: getattr(one, name) for name in one.as_dict()}
    changed = Configuration(**{**values, key: getattr(other, key)})
    before, after = chosen(one), chosen(changed)
    deciding = {(cell.name, cell.place) for cell in lookup().deciding(key)}
    assert {place for place in before if before[place] != after[place]} <= deciding


def test_a_setting_is_said_to_decide_only_rows_that_depend_on_it() -> None:
    for key in Configuration.__dataclass_fields__:
        for cell in lookup().deciding(key):
            assert key in cell.settings()
        assert len(lookup().deciding(key)) == sum(key in cell.settings() for cell in lookup().cells)


def test_every_machine_that_takes_part_in_an_event_is_shown_with_all_its_states() -> None:
    for name in shipped().events:
        (answer,) = [answer for answer in lookup().find(name) if answer.kind == "event"]
        shown: dict[str, set[tuple[str, str]]] = {}
        for cell in answer.cells:
            shown.setdefault(cell.table, set()).update((s, e) for s in cell.states for e in cell.events)
        expected = {
            machine.name: {(s, str(e)) for s, e in machine.cells if e.name == name}
            for machine in shipped().machines.values()
            if any(event.name == name for event in machine.alphabet)
        }
        shown.pop(CALLS, None)
        assert shown == expected, name
        owner = shipped().owner(name)
        assert owner is None or next(cell.table for cell in answer.cells if cell.table != CALLS) == owner.name


def rows_of(fsm: Fsm) -> Mapping[tuple[str, str], tuple[str, str]]:
    return {(state, str(event)): (row.kind, row.target) for (state, event), row in fsm.rows.items()}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, kind in MODES for value in kind])
def test_a_mode_differs_where_its_machines_differ(key: str, value: Value) -> None:
    spec, other = shipped(), lookup().baseline(key)
    environments = [spec.environment(spec.configure(settings={key: each}), messages=2) for each in (value, other)]
    expected = set()
    for machine in spec.machines.values():
        if machine.counter is None:
            one, two = (rows_of(machine.fsm(environment)) for environment in environments)
            expected |= {(machine.name, *place) for place in one if one[place] != two[place]}
    shown = {
        (each.cell.table, state, event)
        for each in lookup().differences(key, value)
        if not each.given and each.cell.table != CALLS and spec.machines[each.cell.table].counter is None
        for state in each.cell.states
        for event in each.cell.events
    }
    assert shown == expected


@settings(max_examples=25 if WHOLE else 9, deadline=None)
@given(st.data())
def test_what_a_configuration_chooses_is_alive_in_its_profile(data: st.DataObject) -> None:
    profile = data.draw(st.sampled_from(Profile if WHOLE else [Profile.JMS, Profile.RABBITMQ]))
    drawn = data.draw(configurations()).as_dict() | {"profile": profile.value}
    try:
        configuration = shipped().configure(settings=drawn)
    except InputError:
        return
    space = living(profile)
    for cell in lookup().cells:
        if len(cell.rows) > 1:
            row = cell.decide(shipped().environment(configuration, faults=frozenset(Fault), max_faults=None))
            assert row in space[cell]


@functools.cache
def living(profile: Profile) -> dict[Cell, tuple[TableRow, ...]]:
    space = lookup()._space(profile)  # noqa: SLF001 - it has found out some of it already
    return {cell: space.living(cell) for cell in lookup().cells if len(cell.rows) > 1}


def test_rows_that_a_profile_never_has_are_left_out() -> None:
    def row(condition: str | None) -> TableRow:
        when = ALWAYS if condition is None else parse_condition(condition, shipped().conditions)
        return TableRow("refused", when, "x", None, Place("spec/machines/x.yaml", 1))

    never = row("ack_mode == 'AUTO_ACKNOWLEDGE' and ack_mode == 'DUPS_OK_ACKNOWLEDGE'")
    direct, last = row("delivery_mode == 'DIRECT'"), row(None)
    cell = Cell("x", ("y",), ("z",), (never, direct, last))
    assert Space(shipped(), Profile.JMS).living(cell) == (direct, last)
    assert Space(shipped(), Profile.ARTEMIS).living(cell) == (last,), "Artemis has no DIRECT"


def test_the_cells_of_a_machine_are_its_cells() -> None:
    for machine in shipped().machines.values():
        cells = [cell for cell in lookup().machines if cell.table == machine.name]
        placed = [((s, e), cell) for cell in cells for s in cell.states for e in cell.events]
        assert len(placed) == len(dict(placed)) == len(machine.cells)
        for (state, event), rows in machine.cells.items():
            found = dict(placed)[state, str(event)].rows
            assert [(row.place.line, row.because) for row in found] == [(row.line, row.because) for row in rows]


def test_a_state_that_decides_one_event_of_a_line_takes_the_other_from_otherwise(tmp_path: Path) -> None:
    machine = """
lamp:
  per: system
  means: a lamp
  owns: [press, tap]
  states:
    dark:
      press: {to: bright, because: x, source: model}
    bright:
  otherwise:
    press, tap: {ignore: it shines}
"""
    events = "".join(f"{name}: {{per: system, lane: producer, means: x}}\n" for name in ("press", "tap"))
    shown = {(cell.states, cell.events) for cell in cells_of(small_spec(tmp_path, machine, events).machines["lamp"])}
    assert shown == {(("dark",), ("press",)), (("bright",), ("press",)), (("dark", "bright"), ("tap",))}


# words


def test_a_systems_own_name_is_its_setting(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "persist-delivery-count-before-delivery")
    assert "of artemis is redelivery_mark_persisted" in " ".join(shown.split())
    _, summary, rows = ask(capsys, "redelivery_mark_persisted").partition("a setting: ")
    assert " marked, on broker_crash" in rows
    assert shown.endswith(f"  {summary}{rows}")
    assert "but not the same: it counts bytes" in " ".join(ask(capsys, "ackBatchSize").split())
    same = ask(capsys, "blockOnAcknowledge=true", "--profile", "artemis")
    assert same == ask(capsys, "block_on_acknowledge=true", "--profile", "artemis")


def test_a_row_a_state_or_a_machine_shows_its_rows_and_spells_its_conditions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row, state, machine, event = (
        ask(capsys, word) for word in ("entry.absent.accept", "entry.absent", "entry", "entry.accept")
    )
    assert row.count("broker.yaml:") == 3
    assert "condition transacted" in row
    assert "ack_mode == 'SESSION_TRANSACTED'" in row
    assert row.count("broker.yaml:") < state.count("broker.yaml:") < machine.count("broker.yaml:")
    assert "otherwise, on accept: refused; the broker reads each copy once" in " ".join(event.split())


FIELD = """consumer_timeout visibility_timeout ack_wait mandatory priority x-delivery-limit x-single-active-consumer
    nack basic.nack basic.cancel basic.return basic.reject basic.ack redelivered modified abandon noAck exclusive
    waitForConfirms tx.commit tx.rollback basic.recover"""


@pytest.mark.parametrize("word", few(FIELD.split(), 4))
@pytest.mark.parametrize("profile", ["jms", "rabbitmq"])
def test_a_word_of_the_field_leads_to_rows(word: str, profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, word, "--profile", profile)
    assert re.search(r"\.yaml:\d+" if profile == "rabbitmq" else r"\.(yaml|md):\d+|of rabbitmq is", shown), shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_giving_back_is_what_it_says_of_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(ask(capsys, "nack", "--profile", "rabbitmq").split())
    for event in ("settle_released", "settle_rejected", "rejected"):
        assert f"of rabbitmq (AMQP 0-9-1) is {event}" in shown


def test_a_number_of_a_system_is_found_though_no_setting_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(ask(capsys, "delivery-limit of a quorum queue").split())
    assert "of rabbitmq is 20: so often a message may come again" in shown


@pytest.mark.parametrize("word", ["ack_weight", "settled_time", "proper_tea", "amused"])
def test_no_word_is_suggested_that_only_looks_a_little_like_it(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", word]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("redelivery_mark_persited", "did you mean redelivery_mark_persisted"),
        ("DUPS_OK_ACKNOWLEGE", "did you mean DUPS_OK_ACKNOWLEDGE"),
        ("entry.raedy", "entry has no row 'raedy' (did you mean ready?); its states are "),
        ("nonsense of nobody", "ask for a setting, an event, a mode or a machine"),
        ("ack_mode=LATER", "it is one of AUTO_ACKNOWLEDGE"),
        ("\x1b[2J", r"no table has the word '\\x1b[2J'"),
    ],
)
def test_an_unknown_word_is_refused_in_one_sentence(word: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says.replace("\\\\", "\\") in err


@pytest.mark.parametrize("option", [("--output", "x.md"), ("--as", "markdown")])
def test_a_page_of_one_word_is_refused(option: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "confirm", *option]) == 2
    assert f"{option[0]} is for the index of everything; leave WORD out" in capsys.readouterr().err


def test_a_mode_that_the_system_lacks_is_refused_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "NO_ACKNOWLEDGE", "--profile", "artemis"]) == 2
    assert "does not have ack_mode=NO_ACKNOWLEDGE" in capsys.readouterr().err


# the pages that are made


def test_the_index_of_the_tables_is_fresh(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = (PROJECT / "spec" / "INDEX.md").read_text(encoding="utf-8")
    assert page == page_of(lookup()), "run make pages"
    assert ask(capsys, "--as", "markdown") == page
    assert ask(capsys, "--output", "-") == page
    ask(capsys, "--output", str(tmp_path / "INDEX.md"))
    assert (tmp_path / "INDEX.md").read_text(encoding="utf-8") == page


def test_every_link_of_the_index_leads_to_its_line() -> None:
    links = list(_links((PROJECT / "spec" / "INDEX.md").read_text(encoding="utf-8")))
    assert len(links) > 500
    for label, file, line in links:
        assert label == line
        assert lines_of(f"spec/{file}")[int(line) - 1].strip()


def _links(page: str) -> Iterator[tuple[str, str, str]]:
    yield from re.findall(r"\[(\d+)\]\(([a-z_/-]+\.yaml)#L(\d+)\)", page)


def test_the_page_of_a_mode_begins_with_what_differs() -> None:
    for key, kind in MODES:
        for value in kind:
            page = (PROJECT / "diagrams" / "modes" / f"{key}-{value}.md").read_text(encoding="utf-8")
            first = next(line for line in page.splitlines() if line.startswith("## "))
            other = lookup().baseline(key)
            assert first == f"## What differs from {other}" if value != other else first.startswith("## State")
            for each in lookup().differences(key, value):
                assert f"(`{each.row.place}`): {each.row.because} |" in page, "run make draw"


def test_changed_tables_are_looked_up_where_they_are(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "conditions.yaml", ("transacted:\n", "# one line more\ntransacted:\n"))
    moved = Lookup(load(spec), spec).place_of_condition("transacted").line
    assert moved == lookup().place_of_condition("transacted").line + 1


def test_who_was_seen_is_told_of_rows_that_there_are() -> None:
    rows = {key for machine in shipped().machines.values() for key in row_keys(machine)}
    seen = read_seen()
    assert seen
    assert not seen.keys() - rows
    assert {broker.partition(" ")[0] for brokers in seen.values() for broker in brokers} == {*BROKERS}


@pytest.mark.parametrize(
    "damaged", [b"ack_call,absent\n", b"\xff\n", b"\n", b"a,b,c,d,e,f\n"], ids=["columns", "no UTF-8", "empty", "six"]
)
def test_a_damaged_file_of_who_was_seen_is_refused(damaged: bytes, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / SEEN).write_bytes(damaged)
    with pytest.raises(
        SpecError, match=r"seen\.csv: its rows are not machine, state, .*; take the file of the package"
    ):
        Lookup(load(spec), spec).find("ack_call.with_listener.listener_exception")


def test_a_row_says_who_was_seen_to_perform_it_and_the_other_rows_of_its_cell_do_not(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    keys = [
        key for key in row_keys(shipped().machines["ack_call"]) if key[1:3] == ("with_listener", "listener_exception")
    ]
    (spec / SEEN).write_text(seen_text([(keys[1], ["artemis 2.56.0", "qpid 10.1.0"])]), encoding="utf-8")
    (answer,) = Lookup(load(spec), spec).find("ack_call.with_listener.listener_exception")
    (cell,) = answer.cells
    assert [row.seen for row in cell.rows] == [(), ("artemis 2.56.0", "qpid 10.1.0"), *[()] * (len(keys) - 2)]
    assert "seen: artemis 2.56.0, qpid 10.1.0" in " ".join(where.screen([answer]).split())
