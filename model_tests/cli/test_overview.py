"""What somebody sees who does not know the command line: the overview, help, hints at what was meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm.cli import main
from ackfsm.cli._groups import GROUPS, commands_of
from ackfsm.cli._run import _make_parser
from ackfsm.terms import Anomaly, Fault, Profile
from ackfsm.text import meant, nearest
from model_tests.support.places import DATA

NIGHT = str(DATA / "last-night.jsonl")


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read once; screens are 80 columns wide."""
    monkeypatch.delenv("COLUMNS", raising=False)


def _ended(*line: str) -> int:
    try:
        return main(line)
    except SystemExit as end:
        return int(end.code or 0)


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len({*grouped})
    assert {*commands_of(_make_parser()).choices} <= {*grouped}, "put the command into ackfsm.cli._groups.GROUPS"


def test_a_command_in_no_group_is_shown_and_one_that_is_not_there_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackfsm.cli._groups.GROUPS", {"look": ("where", "unheard_of"), "nothing": ("nowhere",)})
    assert _ended("help") == 0
    shown = capsys.readouterr().out
    assert shown.index("\nlook\n") < shown.index("    where ") < shown.index("\nothers\n") < shown.index("    verify ")
    assert "unheard_of" not in shown
    assert "nothing" not in shown


@pytest.mark.parametrize("line", [(), ("help",), ("--help",)])
def test_the_overview_names_every_command_and_what_to_type(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ended(*line) == (0 if line else 2)
    out, err = capsys.readouterr()
    assert (err.count("\n"), "required: COMMAND" in err) == ((0, False) if line else (1, True))
    for name in commands_of(_make_parser()).choices:
        assert out.count(f"\n    {name} ") == 1
    assert "ackfsm verify last-night.jsonl.gz" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_overview_is_there_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended("help", "--json") == 0
    told = json.loads(capsys.readouterr().out)["groups"]
    names = [each["name"] for group in told for each in group["commands"]]
    assert sorted(names) == sorted(commands_of(_make_parser()).choices)
    assert _ended("--json") == 2
    assert json.loads(capsys.readouterr().out)["groups"] == told


def test_help_tells_what_a_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended("help", "verify") == 0
    told = capsys.readouterr().out
    assert _ended("verify", "--help") == 0
    assert capsys.readouterr().out == told
    assert "--never" in told


@pytest.mark.parametrize("line", [["where", "loss"], ["verify", NIGHT], ["help"]])
def test_json_may_stand_before_the_command_or_after_it(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    codes = _ended("--json", *line), _ended(*line, "--json")
    out = capsys.readouterr().out
    assert codes[0] == codes[1]
    first, end = json.JSONDecoder().raw_decode(out)
    assert first == json.loads(out[end:])


# what was meant

MEANT = {
    ("chekc",): "check",
    ("Verify",): "verify",
    ("help", "verfy"): "verify",
    ("check", "--fautl", "broker_crash"): "--fault",
    ("verify", NIGHT, "--nevr=loss"): "--never",
    ("check", "--engine", "sprak"): "spark",
    ("check", "--profile", "Artemis"): "artemis",
    ("check", "--set", "profile=rabbit"): "rabbitmq",
    ("check", "--set", "ack-mode=AUTO_ACKNOWLEDGE"): "ack_mode",
    ("check", "--set", "ack_mode=client_acknowledge"): "CLIENT_ACKNOWLEDGE",
    ("check", "--set", "ack_mode=PRE"): "PRE_ACKNOWLEDGE",
    ("check", "--set", "queue_durable=flase"): "false",
    ("check", "--profile", "artemis", "--api", "jms2"): "JMS 2.0",
    ("check", "--fault", "broker-crash"): "broker_crash",
    ("check", "--action", "rolback"): "rollback",
    ("check", "--without", "acknowlege"): "acknowledge",
    ("check", "--as", "mermiad"): "mermaid",
    ("explain", "--anomaly", "lost"): "loss",
    ("explain", NIGHT, "--anomaly", "Duplicates"): "duplicate",
    ("explain", NIGHT, "--message", "M2"): "'m2'",
    ("verify", NIGHT, "--never", "los"): "loss",
    ("verify", NIGHT, "--faults", "BROKER_KILL"): "broker_kill",
    ("verify", NIGHT, "--report", "JUnit"): "junit",
    ("claims", "--id", "c37"): "C37",
    ("conform", "--fault", "consumer_crush", "--", "true"): "consumer_crash",
    ("conform", "--ack-mode", "auto_acknowledge", "--", "true"): "AUTO_ACKNOWLEDGE",
    ("draw", "deliveri"): "delivery",
    ("draw", "entry", "--as", "SVG"): "svg",
    ("where", "redelivery_mark_persited"): "redelivery_mark_persisted",
    ("where", "quiescnt"): "quiescent",
    ("systems", "EMS"): "ems",
    ("journal", "inspct", "nowhere"): "inspect",
}


@pytest.mark.parametrize("line", MEANT, ids=" ".join)
def test_what_was_meant_is_named(line: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(*line) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert f" (did you mean {MEANT[line]}?)" in err


@pytest.mark.parametrize(
    "line", [("xyzzy",), ("check", "--xyzzy"), ("check", "--fault", "xyzzy"), ("check", "--profile", "kafka")]
)
def test_nothing_is_named_that_is_not_like_it(line: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(*line) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Anomaly, Fault, Profile])
def test_a_name_in_capitals_with_hyphens_or_one_letter_short_means_that_name(
    kind: type[Anomaly | Fault | Profile],
) -> None:
    names = [each.value for each in kind]
    for name in names:
        assert nearest(name.upper(), names) == name
        assert nearest(name.replace("_", "-"), names) == name
        assert nearest(f"{name}s", names) == name


def test_a_hint_shows_foreign_text_escaped_and_short() -> None:
    assert meant("order\x1b", ["order\x1b[2J"], quotes=True) == " (did you mean 'order\\x1b[2J'?)"
    assert len(meant("x" * 5_000, ["x" * 4_999], quotes=True)) < 150
    assert meant(7, ["7"]) == meant("", ["a"]) == meant("q", []) == ""


# one name for each thing


@pytest.mark.parametrize("command", ["check", "explain", "matrix", "claims", "systems"])
def test_jobs_is_the_name_everywhere(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(command, "--jobs", "0") == 2
    assert "argument --jobs: '0' is not a whole number from 1" in capsys.readouterr().err
    assert _ended("help", command) == 0
    assert "--jobs N" in capsys.readouterr().out


def test_as_is_the_name_of_what_is_written_everywhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    texts = []
    for option in ("--as", "--format"):
        assert _ended("draw", "redelivery", option, "mermaid") == 0
        assert _ended("export", option, "json", "--max-faults", "0", "--output", str(tmp_path / option)) == 0
        texts.append((capsys.readouterr().out, (tmp_path / option).read_text(encoding="utf-8")))
    assert texts[0] == texts[1]
    for command in commands_of(_make_parser()).choices:
        assert _ended("help", command) == 0
        shown = capsys.readouterr().out
        assert (
            command in {"explain", "import", "verify"} or "--format" not in shown
        )  # there it is what a history is written in
