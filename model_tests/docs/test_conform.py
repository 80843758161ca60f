"""What docs/conform.md shows is what happens: its commands, its exchange, its adapter."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.driving.conform import AckOutcome, CommitOutcome, Operation, SendOutcome
from ackfsm.driving.conform._serve import _ASK, _TELL
from ackfsm.terms import Fault
from model_tests import documents
from model_tests.support.commands import environment
from model_tests.support.places import PROJECT

PAGE = PROJECT / "docs" / "conform.md"
TEXT = PAGE.read_text(encoding="utf-8")
BROKER = PROJECT / "docs" / "examples" / "twenty_lines.py"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the project to the commands of the page, with this Python as ``python``."""
    (tmp_path / "docs").symlink_to(PROJECT / "docs")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


@pytest.mark.usefixtures("checkout")
def test_the_command_of_the_page_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"```console\n\$ ackfsm (.*)\n```", TEXT)
    assert cli.main(shlex.split(line)) == 1
    screen = capsys.readouterr().out
    assert screen.startswith("invalid: 1 of 6 combinations of mode and fault broke a promise")
    (explained,) = re.findall(r"^ +ackfsm (verify .*)$", screen, re.MULTILINE)
    persistent, volatile = screen.split("CLIENT_ACKNOWLEDGE, NON_PERSISTENT, receive")
    assert "violation   broker_kill" in persistent
    assert "broker_kill (struck in" in volatile
    assert all(len(line) <= 80 or "ackfsm verify" in line for line in screen.splitlines())
    assert cli.main(shlex.split(explained)) == 1


@pytest.mark.usefixtures("checkout")
def test_the_json_has_what_the_broker_of_twenty_lines_can_and_cannot_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "conform --json --runs 3 -- python docs/examples/twenty_lines.py"
    assert cli.main(shlex.split(line)) == 1
    cells = {(c["delivery_mode"], c["fault"]): c["status"] for c in json.loads(capsys.readouterr().out)["cells"]}
    driven = {"none", "broker_kill", "consumer_crash"}
    assert {fault for _, fault in cells} == {"none", *Fault}
    assert {at: status for at, status in cells.items() if at[1] in driven} == {
        ("PERSISTENT", "none"): "ok",
        ("PERSISTENT", "broker_kill"): "violation",
        ("PERSISTENT", "consumer_crash"): "ok",
        ("NON_PERSISTENT", "none"): "ok",
        ("NON_PERSISTENT", "broker_kill"): "ok",
        ("NON_PERSISTENT", "consumer_crash"): "ok",
    }
    assert {status for at, status in cells.items() if at[1] not in driven} == {"not claimed"}


def exchange() -> tuple[list[Any], list[Any]]:
    """The requests and the answers that the page shows."""
    found = re.search(r"```exchange\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    lines = [line for line in re.split(r"\n(?=[<>])", found[1]) if line]
    return tuple([json.loads(line[2:]) for line in lines if line[0] == mark] for mark in "><")  # type: ignore[return-value]


def test_the_exchange_of_the_page_is_what_the_broker_answers() -> None:
    requests, answers = exchange()
    said = subprocess.run(
        [sys.executable, str(BROKER)],
        input="".join(f"{json.dumps(each)}\n" for each in requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert [json.loads(line) for line in said.splitlines()] == answers
    assert len(answers) == 6


def test_the_protocol_of_the_page_has_every_request_and_word() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    told = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert {*_ASK, *_TELL} <= told
    words = {*SendOutcome, *AckOutcome, *CommitOutcome, *Operation, *Fault}
    assert {word for word in words if f"`{word}`" not in TEXT} == set()


def test_the_adapter_of_the_page_passes_its_own_test() -> None:
    ((_, code),) = documents.blocks(PAGE)
    names: dict[str, Any] = {}
    exec(compile(code, PAGE, "exec"), names)  # noqa: S102 - only text of the project
    names["test_the_broker_keeps_what_it_promises"]()
