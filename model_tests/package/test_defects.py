"""The table of defects applies to the project as it is; ``make defects`` runs the tests on each of them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
import yaml

from model_tests.defects import campaign as defects
from model_tests.defects.campaign import DEFECTS, PROJECT, Interrupted, Result, TooCoarse, Trials
from model_tests.defects.form import Defect


def _read(file: str, source: str) -> object:
    return yaml.safe_load(source) if file.endswith(".yaml") else ast.dump(ast.parse(source))


@functools.cache
def _source_of(file: str) -> str:
    return (PROJECT / "ackfsm" / file).read_text(encoding="utf-8")


@functools.cache
def _as_it_is(file: str) -> object:
    return _read(file, _source_of(file))


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_can_be_put_into_the_project(defect: Defect) -> None:
    """Its text stands once in its module or table, and what comes of it is another one."""
    assert _read(defect.file, defect.changed(_source_of(defect.file))) != _as_it_is(defect.file)
    file, _, test = defect.noticed_by.partition("::")
    assert not file or test in (PROJECT / defects.file_of(file)).read_text(encoding="utf-8")


def test_the_table_is_large_and_nearly_all_of_it_has_to_be_noticed() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 60
    assert sum(bool(defect.unnoticed_because) for defect in DEFECTS) <= 0.05 * len(DEFECTS)


def test_text_that_stands_there_twice_or_not_at_all_is_refused() -> None:
    defect = Defect("name", "wrong", "engine/history.py", "old", "new")
    for source in ("", "old old"):
        with pytest.raises(ValueError, match=r"stands \d times in ackfsm/engine/history\.py"):
            defect.changed(source)
    assert defect.changed("old") == "new"


def test_every_file_of_tests_that_is_named_is_there_and_named_once() -> None:
    """All of the packages that have defects are named, and of others those that notice some."""
    [named] = defects.order(None)
    files = [PROJECT / defects.file_of(name) for name in named]
    assert len(files) == len(set(files))
    assert all(file.is_file() for file in files)
    rooms = ("engine", "journal", "plugin", "verify")
    assert {file for room in rooms for file in (PROJECT / "model_tests" / room).glob("test_*.py")} <= set(files)


def _ready(monkeypatch: pytest.MonkeyPatch, project: Path) -> Defect:
    """A project of one module, one test, and a defect of it."""
    (project / "ackfsm" / "engine").mkdir(parents=True)
    (project / "model_tests").mkdir()
    (project / "ackfsm" / "__init__.py").touch()
    (project / "ackfsm" / "engine" / "__init__.py").write_text("answer = 42\n")
    (project / "model_tests" / "test_answer.py").write_text(
        "from ackfsm.engine import answer\ndef test_right(): assert answer == 42\n"
    )
    for name in ("spec", "docs"):
        (project / name).mkdir()
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    monkeypatch.setattr(defects, "PROJECT", project)
    monkeypatch.setattr(defects, "_END", 0.2)
    monkeypatch.setattr(defects, "order", lambda _: [["answer"]])
    monkeypatch.setattr(defects, "_FIRST", "import sys, ackfsm.engine; assert ackfsm.__file__.startswith(sys.argv[1])")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Defect("wrong-answer", "the answer is wrong", "engine/__init__.py", "42", "41")


def test_a_defect_is_noticed_by_name_and_what_cannot_be_imported_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    defect = _ready(monkeypatch, tmp_path / "of")
    assert Trials().trial(None).noticed is None
    assert Trials().trial(defect).noticed == "test_answer.py::test_right"
    harmless = Defect("comment", "nothing", "engine/__init__.py", "= 42", "= 42  # the answer")
    assert defects.problems([Trials().trial(harmless)]) == [
        "comment is noticed by no test, and no reason is given: nothing"
    ]
    coarse = Defect("coarse", "all", "engine/__init__.py", "42", "forty-two")
    with pytest.raises(TooCoarse, match="it is of no use at all: NameError"):
        Trials().trial(coarse)


def test_tests_that_do_not_end_are_ended_and_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _ready(monkeypatch, tmp_path / "of")
    endless = Defect(
        "endless", "no end", "engine/__init__.py", "answer = 42", "def __getattr__(_):\n    while 1: pass\n"
    )
    monkeypatch.setattr(defects, "_FIRST", "")
    monkeypatch.setattr(defects, "_LIMITS", (2, 1))
    monkeypatch.setattr(defects, "order", lambda _: [["answer"], ["answer", "answer"]])
    with pytest.raises(TooCoarse, match="do not end"):
        Trials().trial(endless)


def test_a_reason_that_is_not_needed_any_more_is_told() -> None:
    excused = Defect("name", "wrong", "engine/history.py", "old", "new", unnoticed_because="nobody can see it")
    assert defects.problems([Result(excused, None, 1.0), Result(None, None, 1.0)]) == []
    assert defects.problems([Result(excused, "test_x.py::test", 1.0)]) == [
        "name is noticed, and needs no reason any more: test_x.py::test"
    ]


def test_the_command_lists_what_there_is_and_refuses_what_is_not() -> None:
    assert defects.main(["--list", "--only", DEFECTS[0].name]) == 0
    with pytest.raises(SystemExit, match="there is no defect 'none'; --list names them"):
        defects.main(["--only", "none"])


def test_who_stops_it_does_not_wait_for_the_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _ready(monkeypatch, tmp_path / "of")
    monkeypatch.setattr(defects, "_FIRST", "while True: pass")
    trials = Trials()
    trials.stop()
    with pytest.raises(Interrupted):
        trials.trial(None)
