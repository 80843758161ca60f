"""``ackfsm verify``: where histories come from, and what a bad one does to the others."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackfsm.cli import main
from model_tests.support.places import DATA

SYNTHETIC = DATA / "synthetic"
VALID = SYNTHETIC / "legal_redelivered_on_first_sight.jsonl"
ACKFSM = [sys.executable, "-m", "ackfsm.cli"]


def _piped(data: bytes, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([*ACKFSM, "verify", "--json", *arguments], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_standard_input_is_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", str(VALID)]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert expected["config"] is not None
    for name, data in (("-", VALID.read_bytes()), ("/dev/stdin", gzip.compress(VALID.read_bytes()))):
        assert _piped(data, name) == expected | {"history": name}


def test_a_process_substitution_is_a_history() -> None:
    command = f"{sys.executable} -m ackfsm.cli verify <(cat {VALID}) <(gzip -c {VALID})"
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^valid: no anomaly was found *$", done.stdout, flags=re.MULTILINE) == 2 * [
        "valid: no anomaly was found"
    ]


@pytest.mark.parametrize("given", [b"", None], ids=["empty", "closed"])
def test_no_standard_input_is_refused(given: bytes | None) -> None:
    command = [*ACKFSM, "verify", "-"] if given is not None else ["sh", "-c", f"{' '.join(ACKFSM)} verify - <&-"]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("ackfsm verify: standard input is empty; record the history again")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A history for each verdict, and two that are refused; the second as its header contradicts itself."""
    lines = VALID.read_text().splitlines(keepends=True)
    lost = [line for line in lines if "consumer-1" not in line]
    contradiction = {"profile": "ems", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
    texts = {
        "valid": "".join(lines),
        "invalid": "".join(lost),
        "unknown": "".join([*lines, "oops\n"]),
        "empty": "",
        "contradiction": json.dumps({"ackfsm_history": 1, "config": contradiction}) + "\n" + "".join(lines[1:]),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    return {name: str(tmp_path / f"{name}.jsonl") for name in texts}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["valid"], 0),
        (["valid", "valid"], 0),
        (["valid", "unknown"], 3),
        (["unknown", "empty"], 2),
        (["empty", "valid"], 2),
        (["empty", "contradiction"], 2),
        (["empty", "invalid", "unknown"], 1),
        (["invalid", "contradiction"], 1),
    ],
)
@pytest.mark.parametrize("form", ["json", "screen"])
def test_a_bad_history_hides_no_other(
    names: list[str], code: int, form: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *(["--json"] if form == "json" else []), *(files[name] for name in names)]) == code
    out, err = capsys.readouterr()
    refused = [name for name in names if name in {"empty", "contradiction"}]
    said = err.splitlines()
    assert len(said) == len(refused)
    for name, line in zip(refused, said, strict=True):
        assert line.startswith(f"ackfsm verify: {files[name]}")
    if form == "screen":
        assert [
            line.split(":")[0] for line in out.splitlines() if line.startswith(("valid:", "invalid:", "unknown:"))
        ] == [name for name in names if name not in refused]
        return
    found = json.loads(out)
    entries = [found] if len(names) == 1 else found
    assert [entry["history"] for entry in entries] == [files[name] for name in names]
    for name, entry in zip(names, entries, strict=True):
        if name in refused:
            assert entry.keys() == {"history", "error"}
            assert f"ackfsm verify: {entry['error']}" in said
        else:
            assert entry["verdict"] == name


def test_a_single_bad_history_prints_its_error_alone(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", files["contradiction"]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ackfsm verify: {files['contradiction']}, line 1, its header: ")
    assert main(["verify", files["contradiction"], "--set", "prefetch=3"]) == 2
    assert f"{files['contradiction']}, line 1, its header with --set over it: " in capsys.readouterr().err


def test_what_is_wrong_with_the_options_is_said_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "none.jsonl", "--set", "prefetch"]) == 2
    assert "--set 'prefetch' is not KEY=VALUE" in capsys.readouterr().err
