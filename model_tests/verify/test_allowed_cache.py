"""Answers that are kept between runs are believed only as this program has written them, for this very question."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ackfsm
from ackfsm import verify
from ackfsm.terms import Anomaly, Fault
from ackfsm.verify.context.allowed import Allowed, _code_digest
from model_tests.support.tables import shipped

pytestmark = pytest.mark.skipif(os.name != "posix", reason="who may write is told by the modes of POSIX")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ackfsm" / "allowed"


def _asked(fault: Fault = Fault.CONSUMER_CRASH) -> dict[Anomaly, Allowed]:
    return verify.allowed(shipped(), shipped().configure(), {fault})


def _kept(cache: Path) -> Path:
    (file,) = cache.iterdir()
    return file


def _changed(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    """What is kept, with a change, and with a check that is right again."""

    def changed(text: str) -> str:
        held = json.loads(text)
        change(held)
        told = json.dumps([held["question"], held["answer"]], sort_keys=True)
        return json.dumps(held | {"check": hashlib.sha256(told.encode()).hexdigest()})

    return changed


FORGED: dict[str, Callable[[str], str]] = {
    "an anomaly alone": lambda _: '{"loss": true}',
    "nothing": lambda _: "{}",
    "an empty file": lambda _: "",
    "a torn one": lambda text: text[: len(text) // 2],
    "null": lambda _: "null",
    "no file of ours": lambda _: '{"question": 1, "answer": 2, "check": 3}',
    "lists": lambda _: '{"question": [], "answer": [], "check": []}',
    "an answer that was changed": lambda text: text.replace('"loss": {"answer": false', '"loss": {"answer": true'),
    "an answer that lacks an anomaly": _changed(lambda held: held["answer"].pop("loss")),
    "an answer that has one more": _changed(lambda held: held["answer"].update(mistake=True)),
    "an answer that is neither yes nor no": _changed(lambda held: held["answer"]["loss"].update(answer=1)),
    "an answer to another question": _changed(lambda held: held["question"].update(faults=["broker_crash"])),
    "an answer by other tables": _changed(lambda held: held["question"].update(tables="")),
    "an answer by other code": _changed(lambda held: held["question"].update(code="")),
    "an answer of another configuration": _changed(lambda held: held["question"]["configuration"].update(prefetch=9)),
    "nested deeply": lambda _: "[" * 100_000,
    "a number too long": lambda _: "9" * 5_000,
    "not UTF-8": lambda _: "\udcff",
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_what_somebody_else_has_put_there_is_found_again_and_replaced(cache: Path, forge: Callable[[str], str]) -> None:
    first = _asked()
    kept = _kept(cache)
    good = kept.read_bytes()
    forged = forge(good.decode()).encode(errors="surrogateescape")
    assert forged != good
    kept.write_bytes(forged)
    assert _asked() == first
    assert kept.read_bytes() == good


def test_the_answer_to_another_question_under_this_name_is_found_again(cache: Path) -> None:
    first = _asked()
    kept = _kept(cache)
    good = kept.read_bytes()
    kept.unlink()
    assert _asked(Fault.REJECTION) != first
    _kept(cache).rename(kept)
    assert _asked() == first
    assert kept.read_bytes() == good


def test_what_is_kept_holds_its_question(cache: Path) -> None:
    _asked()
    held = json.loads(_kept(cache).read_text(encoding="utf-8"))
    question = held["question"]
    assert question["tables"] == shipped().digest
    assert question["configuration"] == shipped().configure().as_dict()
    assert (question["faults"], question["actions"], question["about"]) == (["consumer_crash"], [], "one message")
    assert len(question["code"]) == len(held["check"]) == 64


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_not_believed(
    cache: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _asked()
    cache.chmod(mode)
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", None)
    with pytest.raises(TypeError):
        _asked()
    cache.chmod(0o700)
    assert _asked() == first


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_a_file_that_others_can_write_is_not_believed(cache: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _asked()
    _kept(cache).chmod(mode)
    with monkeypatch.context() as patch:
        patch.setattr("ackfsm.verify.context.allowed.check", None)
        with pytest.raises(TypeError):
            _asked()
    assert _asked() == first
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", None)
    assert _asked() == first, "it was replaced by one that is believed"


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_what_is_kept_can_be_written_by_its_owner_alone_whatever_the_umask(
    cache: Path, mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(mask)
    try:
        first = _asked()
    finally:
        os.umask(before)
    assert _kept(cache).stat().st_mode & 0o022 == cache.stat().st_mode & 0o022 == 0
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", None)
    assert _asked() == first


def test_what_belongs_to_somebody_else_is_not_believed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _asked()
    assert cache.is_dir()
    somebody = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: somebody)
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", None)
    with pytest.raises(TypeError):
        _asked()


@pytest.mark.parametrize("place", ["file", "pipe"])
def test_something_else_in_the_place_of_an_answer_is_left_alone(cache: Path, place: str) -> None:
    first = _asked()
    kept = _kept(cache)
    kept.unlink()
    if place == "pipe":
        os.mkfifo(kept)
    else:
        kept.mkdir()
    assert _asked() == first
    assert kept.is_dir() or kept.is_fifo()


def test_an_answer_depends_on_every_module_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {*(Path(ackfsm.__file__).parent / "checking").rglob("*.py")}
    read = set[Path]()
    read_bytes = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.add(path)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    assert len(_code_digest()) == 64
    assert read > modules
    assert len(modules) > 20
