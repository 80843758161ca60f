"""``ackfsm export`` as a user meets it: formats, files, sentences."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ackfsm import cli
from ackfsm.checking.export import Format, promela, tla, tla_configuration
from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Fault
from model_tests.support.tables import shipped


def test_without_options_it_prints_promela(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export"]) == 0
    network = compose(shipped(), shipped().configure("jms"), Bounds(faults=frozenset(Fault)))
    assert capsys.readouterr().out == promela(network)


def test_it_takes_the_options_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--profile artemis --set blockOnAcknowledge=true --fault broker_crash --fault rejection --max-faults 2"
        " --messages 2 --action rollback --without timer_fires"
    )
    assert cli.main(["export", "--as", "json", *shlex.split(options)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert cli.main(["check", "--json", "--max-states", "10", *shlex.split(options)]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert document["configuration"] == answer["config"]
    assert document["bounds"] == {key: answer[key] for key in document["bounds"]}


@pytest.mark.parametrize(("name", "first"), [("x.pml", "/*"), ("x.tla", "---"), ("x.json", "{"), ("x.scxml", "<?xml")])
def test_the_ending_of_the_file_names_the_format(name: str, first: str, tmp_path: Path) -> None:
    assert cli.main(["export", "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(first)


def test_a_tla_module_is_called_as_its_file_and_has_its_configuration_beside_it(tmp_path: Path) -> None:
    assert cli.main(["export", "--output", str(tmp_path / "Listener.tla")]) == 0
    network = compose(shipped(), shipped().configure("jms"), Bounds(faults=frozenset(Fault)))
    assert (tmp_path / "Listener.tla").read_text(encoding="utf-8") == tla(network, "Listener")
    assert (tmp_path / "Listener.cfg").read_text(encoding="utf-8") == tla_configuration(network)


def test_json_has_the_text_of_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--json", "--as", "tla"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["format"] == Format.TLA
    assert answer["files"].keys() == {"System.tla", "System.cfg"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--as dot", "dot names no format; --as is one of promela, tla, json, scxml"),
        ("--output model.txt", "model.txt names no format; --as is one of promela, tla, json, scxml"),
        ("--output a-b.tla", "a-b.tla cannot be a TLA+ module; name the file with letters, digits and underscores"),
        ("--as tla --output x.txt", "a TLA+ module is in a file of its own name; write --output x.tla"),
        ("--output nowhere/x.pml", "nowhere/x.pml: cannot be written (No such file or directory); name another file"),
        ("--fault rain", "there is no fault 'rain'; the faults are "),
    ],
)
def test_bad_input_is_one_sentence(options: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", *shlex.split(options)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"ackfsm export: {sentence}")
    assert said.err.count("\n") == 1
    assert not said.out
