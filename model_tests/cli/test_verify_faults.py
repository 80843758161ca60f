"""``ackfsm verify --faults``: what nobody recorded, on the screen, in JSON and in the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm.cli import main
from model_tests.support.places import DATA
from model_tests.support.verify.named_histories import named_histories

NAMED = named_histories()
EPOCH = 1_771_000_000 * 10**9


def _file(name: str, folder: Path, begin: int = 0) -> str:
    history = NAMED[name].without_faults()
    file = history.write(folder)
    header, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    later = [line | {"t": begin + line["t"]} for line in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *later)), encoding="utf-8")
    return str(file)


def _screen(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_the_screen_begins_with_what_explains_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file("a duplicate after the link broke", tmp_path)
    assert main(["verify", "--faults", "any", file]) == 0
    screen = _screen(capsys)
    assert screen.startswith("1 message is explained by one broken connection of 'c' between 0.0s and 1.0s valid: ")
    assert "consumer_link_loss 'c' 0.0s 1.0s 1" in screen
    assert "duplicate 1 allowed by unrecorded consumer_link_loss (1)" in screen
    assert "all allowed by this configuration with faults that nobody recorded" in screen


def test_times_since_1970_are_told_as_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", "--faults", "broker_crash", _file("loss in the crash that is allowed", tmp_path, EPOCH)])
    told = "one power loss of the broker between 2026-02-13 16:26:40Z and 2026-02-13 16:28:10Z"
    assert told in _screen(capsys)


def test_without_the_option_the_verdict_stands_and_the_next_thing_to_type_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", _file("a duplicate after the link broke", tmp_path)]) == 1
    screen = _screen(capsys)
    assert (
        "flagged as redelivered, and 1 message was processed more than once, which nothing recorded explains" in screen
    )
    assert "one broken connection of 'c' between 0.0s and 1.0s: say --faults any" in screen


def test_what_no_fault_explains_is_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--all", "--faults", "any", _file("B43 a confirmation before the sync", tmp_path)]) == 1
    screen = _screen(capsys)
    assert screen.startswith("1 message is explained by no unrecorded fault, however many")
    assert "nothing recorded before and no unrecorded fault explains ('m1' was at rest" in screen


def test_json_has_the_time_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file("a duplicate after the link broke", tmp_path)
    assert main(["verify", "--json", "--faults", "consumer_crash, consumer_link_loss", file]) == 0
    assert json.loads(capsys.readouterr().out)["unrecorded_faults"] == {
        "kinds": ["consumer_link_loss", "consumer_crash"],
        "assumed": True,
        "explained": True,
        "messages": 1,
        "unexplained": 0,
        "undecided": 0,
        "timeline": [
            {"fault": "consumer_link_loss", "victim": "c", "from": 0, "to": 10**9, "messages": 1, "times": 1},
        ],
    }


@pytest.mark.parametrize("faults", ["loss", "recorded,broker_crash", "", "any,any"])
def test_a_word_that_is_no_fault_is_refused(faults: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--faults", faults, "history.jsonl"]) == 2
    told = capsys.readouterr().err
    assert "--faults: there is no fault" in told
    assert "recorded, any, or some of broker_crash" in told


def test_where_messages_could_not_be_checked_nothing_is_said_of_all_that_was_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = str(DATA / "imports" / "orders-otlp.jsonl")
    main(["verify", "--format", "otlp", "--profile", "rabbitmq", "--faults", "any", trace])
    screen = _screen(capsys)
    assert screen.startswith(
        "no unrecorded fault is needed to explain the messages that could be checked against the model"
    )
