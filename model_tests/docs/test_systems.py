"""The pages of the systems: what is surveyed is what a check says, and a page says all of it and of the profile."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.cli import main
from ackfsm.showing.views import systems
from ackfsm.showing.views._modes_in_words import where
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import DecidedMode, ModeResult, Undecided
from ackfsm.tables import Promise, Specification
from ackfsm.tables._conditions import ALWAYS
from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.support.tables import shipped
from model_tests.support.whole import few

SMALL = Profile.SOLACE
"""The system with the fewest modes."""


@functools.cache
def surveyed() -> tuple[ModeResult, ...]:
    """The modes of the small system."""
    return matrix.mode_sweep(shipped(), [SMALL])[SMALL]


@functools.cache
def page() -> str:
    return systems.system_page(shipped(), SMALL, surveyed())


def test_every_mode_that_the_system_has_is_surveyed_once() -> None:
    modes = [
        (config.delivery_mode, config.ack_mode, config.consumption)
        for mode in surveyed()
        for config in (mode.configuration,)
    ]
    assert len(set(modes)) == len(modes)
    assert {delivery for delivery, *_ in modes} == set(shipped().supported_values(SMALL, "delivery_mode"))
    for delivery in shipped().supported_values(SMALL, "delivery_mode"):
        supported_values = set(shipped().supported_values(SMALL, "ack_mode", {"delivery_mode": delivery}))
        assert {ack for sent, ack, _ in modes if sent == delivery} == supported_values
    assert ("DIRECT", "SESSION_TRANSACTED", "listener") not in modes


def test_what_is_surveyed_is_what_a_check_says() -> None:
    for mode in few(surveyed(), 4):
        assert mode.promised == shipped().promised_absent(mode.configuration)
        assert mode.causes.keys() == {None, *Fault}
        for fault, found in mode.causes.items():
            bounds = Bounds(faults=frozenset({fault} if fault else ()), max_faults=1 if fault else 0)
            answer = explore.check(shipped(), mode.configuration, bounds)
            assert found.states == answer.exploration.states
            assert set(found.anomalies) == {f.anomaly for f in answer.findings.values() if f.reachable}


def test_systems_that_share_searches_get_the_answers_that_each_gets_alone() -> None:
    other = Profile.RABBITMQ
    asked: list[tuple[str, int, int]] = []
    found = matrix.mode_sweep(shipped(), [SMALL, other], progress_bar=lambda *part: asked.append(part))
    assert found[SMALL] == surveyed()
    assert found[other] == matrix.mode_sweep(shipped(), [other])[other]
    what, done, total = asked[-1]
    assert (what, done) == ("searching", total)
    assert total < sum(len(mode.causes) for modes in found.values() for mode in modes)


def test_processes_find_what_one_finds() -> None:
    assert matrix.mode_sweep(shipped(), [SMALL], jobs=2)[SMALL] == surveyed()


def test_a_page_is_the_same_every_time() -> None:
    assert systems.system_page(tables.load(), SMALL, surveyed()) == page()


@pytest.mark.parametrize("profile", Profile)
def test_a_page_says_all_that_the_profile_does(profile: Profile) -> None:
    """Also without a survey, which takes its time."""
    told = systems.system_page(shipped(), profile, ())
    table = shipped().profiles[profile]
    assert told.startswith(systems.MADE)
    said = [f"`{mode}`" for mode in shipped().supported_values(profile, "ack_mode")]
    said += [f"`{constant.name}`" for constant in table.constants]
    said += [f"`{name}`" for own in table.names.values() for name in (own.name, *own.keys)]
    said += [row.because for row in table.defaults] + [row.because for row in table.unsupported]
    said += [row.instead for rows in (table.unsupported, *table.apis.values()) for row in rows]
    said += [f"### {api}" for api in table.apis]
    said += [row.what for row in table.deviates]
    missing = [text for text in said if text.replace("|", "&#124;") not in told]
    assert missing == []


def test_a_page_says_what_faults_cause() -> None:
    for mode in surveyed():
        section = page().split(f"### {mode.configuration.delivery_mode}\n")[1].split("\n#")[0]
        (head, _, *rows) = [cells(line) for line in section.splitlines() if line.startswith("|")]
        config = mode.configuration
        names = {config.ack_mode, f"{config.ack_mode} ({config.consumption})"}
        (row,) = [row for row in rows if row[0] in names]
        for fault, found in mode.causes.items():
            column = f"`{fault}`" if fault else "no fault"
            told = row[head.index(column)] if column in head else ""
            assert told == ", ".join(found.anomalies)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_a_page_says_who_promises_what_and_where() -> None:
    told = surveyed()
    section = page().split("## What each mode promises")[1].split("\n## ")[0]
    (_, _, *rows) = [cells(line) for line in section.splitlines() if line.startswith("|")]
    given = {
        (f"`{anomaly}`", promise.because, promise.source) for mode in told for anomaly, promise in mode.promised.items()
    }
    assert {(row[0], row[2], row[4]) for row in rows} == given
    assert len(rows) == len(given)
    everywhere = {f"`{a}`" for a in Anomaly if len({mode.promised.get(a) for mode in told} - {None}) == 1}
    everywhere -= {f"`{a}`" for mode in told for a in Anomaly if a not in mode.promised}
    assert {row[0] for row in rows if row[1] == "every mode"} == everywhere
    (loss,) = [row[1] for row in rows if row[0] == "`loss`"]
    assert loss.startswith("PERSISTENT: AUTO_ACKNOWLEDGE (listener), CLIENT_ACKNOWLEDGE")


DECIDED = DecidedMode({"duplicate": 1, "loss": 501}, {"stuck": Undecided(2, "many"), "reorder": Undecided(0, "many")})


def told_of(decided: dict[int, DecidedMode | None]) -> str:
    """The page if these of its modes, by their number, are decided so, and the others have nothing but proofs."""
    proved = DecidedMode({}, {})
    modes = [
        dataclasses.replace(mode, any_number=decided.get(number, proved)) for number, mode in enumerate(surveyed())
    ]
    return systems.system_page(shipped(), SMALL, modes)


def table_of(text: str, title: str) -> dict[str, list[str]]:
    """The rows of the table of a section, by their first cell."""
    (_, _, *rows) = [
        cells(line) for line in text.split(f"## {title}")[1].split("\n## ", maxsplit=1)[0].splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row for row in rows}


def test_a_promise_says_for_how_many_messages_it_is_shown() -> None:
    assert {row[3] for row in table_of(told_of({}), "What each mode promises").values()} == {"any number of messages"}
    nothing = dict.fromkeys(range(len(surveyed())))
    rows = table_of(told_of(dict(nothing)), "What each mode promises")
    assert {row[3] for row in rows.values()} == {"one message and one fault"}
    some = table_of(told_of({0: DECIDED}), "What each mode promises")
    first = surveyed()[0].configuration
    name = f"{first.delivery_mode}: {first.ack_mode} ({first.consumption})"
    assert some["stuck"][3] == f"any number of messages ({rest(0)}); 2 messages and any faults ({name})"
    assert some["reorder"][3] == f"any number of messages ({rest(0)}); one message and one fault ({name})"
    assert some["phantom"][3] == "any number of messages"


def rest(without: int) -> str:
    every = surveyed()
    return where([mode for number, mode in enumerate(every) if number != without], every)


def test_a_promise_that_many_messages_break_is_broken() -> None:
    promising = next(number for number, mode in enumerate(surveyed()) if Anomaly.LOSS in mode.promised)
    modes = [dataclasses.replace(mode, any_number=DECIDED) for mode in surveyed()]
    assert modes[promising].broken == {Anomaly.LOSS}
    assert (
        "**broken** with 501 messages" in table_of(told_of({promising: DECIDED}), "What each mode promises")["loss"][3]
    )


def test_what_is_proved_possible_and_open_is_told_apart() -> None:
    title = "What can happen with any number of messages"
    rows = table_of(told_of({0: DECIDED, 1: None}), title)
    others = [mode for number, mode in enumerate(surveyed()) if number != 1]
    first = where(others[:1], others)
    assert rows["phantom"][1:] == ["every mode", "", ""]
    assert rows["loss"][1:] == [where(others[1:], others), f"501 messages: {first}", ""]
    assert rows["stuck"][1:] == [where(others[1:], others), "", f"2 messages: {first}"]
    assert f"Not asked yet: {where(surveyed()[1:2], surveyed())}." in told_of({0: DECIDED, 1: None})
    assert title not in told_of(dict.fromkeys(range(len(surveyed()))))


@functools.cache
def promising_never_a_duplicate() -> Specification:
    never = Promise("never", Anomaly.DUPLICATE, ALWAYS, "a test", "model")
    small = dataclasses.replace(shipped().profiles[SMALL], promises=frozenset({"never"}))
    return dataclasses.replace(shipped(), promises={"never": never}, profiles={**shipped().profiles, SMALL: small})


def test_a_broken_promise_stands_out_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "load", promising_never_a_duplicate)
    assert ackfsm(f"systems {SMALL} --jobs 1") == 1
    assert "**duplicate**" in capsys.readouterr().out
    assert "**" not in page().replace("**bold**", "")


@pytest.mark.parametrize("profile", Profile)
def test_the_drawings_that_a_page_links_to_are_those_of_the_modes_with_rows(profile: Profile) -> None:
    links = re.findall(r"\(\.\./\.\./diagrams/modes/(.*?)\.md\)", systems.system_page(shipped(), profile, ()))
    modes = {
        f"{key}-{v}"
        for key in ("ack_mode", "delivery_mode", "send_mode")
        for v in shipped().supported_values(profile, key)
    }
    assert set(links) == modes


# the command


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are read once, and nothing is searched."""
    monkeypatch.setattr(matrix, "mode_sweep", lambda _, profiles, **__: dict.fromkeys(profiles, ()))


def ackfsm(line: str) -> int:
    try:
        return main(line.split())
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.usefixtures("quick")
def test_the_pages_are_written_and_stale_ones_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hornetq.md").write_text(f"{systems.MADE}\n# hornetq\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("# mine\n", encoding="utf-8")
    assert ackfsm(f"systems --output {tmp_path} --json") == 0
    written = {*(f"{profile}.md" for profile in Profile), "README.md"}
    assert {Path(path).name for path in json.loads(capsys.readouterr().out)["written"]} == written
    assert {path.name for path in tmp_path.iterdir()} == {*written, "notes.md"}
    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert all(f"[{profile}]({profile}.md)" in index for profile in Profile)


@pytest.mark.usefixtures("quick")
def test_the_systems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ackfsm("systems --json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["profile"] for one in found] == [profile.value for profile in Profile]
    assert found[1]["modes"]["delivery_mode"] == ["PERSISTENT", "NON_PERSISTENT", "RELIABLE"]
    assert ackfsm("systems --as markdown") == 0
    assert "| [ems](ems.md) | TIBCO EMS |" in capsys.readouterr().out


def test_one_system_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = surveyed()  # before it is replaced, as it asks the same
    monkeypatch.setattr(matrix, "mode_sweep", lambda *_, **__: {SMALL: found})
    assert ackfsm(f"systems {SMALL} --as markdown") == 0
    assert capsys.readouterr().out == page()
    assert ackfsm(f"systems {SMALL} --json") == 0
    found = json.loads(capsys.readouterr().out)
    table = shipped().profiles[SMALL]
    assert [row["because"] for row in found["refuses"]] == [row.because for row in table.unsupported]
    (threshold,) = [row for row in found["defaults"] if row["key"] == "confirm_threshold"]
    assert (threshold["third_of"], threshold["own"], "value" in threshold) == ("publish_window", True, False)
    assert [name["name"] for name in found["names"] if name["synonym"]][:2] == [
        "PUB_ACK_WINDOW_SIZE",
        "ADPublishWindowSize",
    ]
    assert found["constants"][3]["number"] == 16
    told = found["checked"]
    assert told
    assert all(mode["gaps"] == [] for mode in told)
    assert all(mode["causes"]["none"]["anomalies"] == [] for mode in told)
    assert told[0]["causes"]["consumer_crash"]["anomalies"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("systems kafka", "profile cannot be 'kafka'; it is one of jms, ems, "),
        ("systems ems --output out", "--output is for the pages of all systems; leave PROFILE out"),
        ("systems ems --jobs 0", "argument --jobs: '0' is not a whole number from 1"),
        ("systems ems --jobs two", "'two' is not a whole number"),
        ("systems --profile ems", "unrecognized arguments: --profile"),
        (
            "systems --output /dev/null/pages",
            "/dev/null/pages: cannot be written (Not a directory); name another folder",
        ),
    ],
)
def test_bad_input_is_one_sentence(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ackfsm(line) == 2
    run = capsys.readouterr()
    assert said in run.err
    assert (run.out, run.err.count("\n")) == ("", 1)


# own names elsewhere on the command line


def test_a_check_takes_the_systems_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert ackfsm("check --profile artemis --set blockOnAcknowledge=true --max-faults 0 --json") == 0
    run = capsys.readouterr()
    assert json.loads(run.out)["config"]["block_on_acknowledge"] is True
    assert run.err == "", "it is a setting that the rows read, under its other name"


def test_a_name_on_the_command_line_wins_over_the_header_of_a_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = {"ackfsm_history": 1, "config": {"profile": "artemis", "block_on_acknowledge": False, "prefetch": 7}}
    file = tmp_path / "h.jsonl"
    send = {"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"}
    file.write_text(f"{json.dumps(header)}\n{json.dumps(send)}\n", encoding="utf-8")
    ackfsm(f"verify {file} --set BlockOnAcknowledge=true --json")
    found = json.loads(capsys.readouterr().out)
    assert (found["config"]["block_on_acknowledge"], found["config"]["prefetch"]) == (True, 7)
