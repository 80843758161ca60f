"""Is the file of a certificate read as it was written, and refused with a reason if anything in it was changed?"""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ackfsm
from ackfsm import cli
from ackfsm.checking.certificates import Certificate, Way, read_certificate, write_certificate
from ackfsm.checking.certificates import Level as CheckedLevel
from ackfsm.checking.certificates._format import packed, unpacked
from ackfsm.checking.unbounded import Level
from ackfsm.tables import format_value
from ackfsm.terms import InputError
from model_tests.support.checker.certified import certified, sealed
from model_tests.support.tables import shipped


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    made = certified("qpid", only=["reorder", "prefetch_overrun", "duplicate"], levels=[Level.CHAOS])
    left = {name: why for name, why in made.not_covered.items() if name != "duplicate"}
    way = Way("duplicate", 1, None, ("send(m1)", "accept(m1)"))
    return sealed(dataclasses.replace(made, ways=(way,), not_covered=left))


@pytest.fixture
def file(certificate: Certificate, tmp_path: Path) -> Path:
    path = tmp_path / "made.certificate"
    write_certificate(path, certificate)
    return path


def test_it_is_read_as_it_was_written(certificate: Certificate, file: Path) -> None:
    assert read_certificate(file) == certificate
    assert any(invariant.ghosts for invariant in certificate.invariants)


def test_a_relation_is_read_as_it_was_written_and_missed_where_it_is_not_there() -> None:
    certificate = certified("qpid", only=["reorder"], levels=[Level.RELATED])
    data = packed(certificate)
    assert unpacked(data) == certificate
    assert any(invariant.relation for invariant in certificate.invariants)
    lacking = tuple(dataclasses.replace(each, relation=None) for each in certificate.invariants)
    with pytest.raises(ValueError, match="relation"):
        unpacked(packed(dataclasses.replace(certificate, invariants=lacking)))
    lacking = tuple(dataclasses.replace(each, level=CheckedLevel.CHAOS) for each in certificate.invariants)
    told = packed(dataclasses.replace(certificate, invariants=lacking))
    assert not any(each.relation for each in unpacked(told).invariants), "a relation is of one level"


def test_its_first_line_and_its_payload_can_be_read_by_other_tools(certificate: Certificate, file: Path) -> None:
    line, _, payload = file.read_bytes().partition(b"\n")
    header, body = json.loads(line), json.loads(gzip.decompress(payload))
    assert header["proved"] == list(certificate.proved)
    assert header["tables"] == certificate.tables
    for told, invariant in zip(body["invariants"], certificate.invariants, strict=True):
        assert [machine["machine"] for machine in told["system"]] == list(invariant.system)
        first = told["message"][0]
        assert [first["states"][number] for number in first["in"]] == [state[0] for state in invariant.message_states]


def test_a_byte_that_was_changed_is_found(certificate: Certificate) -> None:
    data = packed(certificate)
    begins = data.index(b"\n") + 1
    for at in range(begins, len(data), 97):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(ValueError, match="SHA-256"):
            unpacked(bytes(changed))


def test_a_file_that_was_cut_is_found(certificate: Certificate) -> None:
    data = packed(certificate)
    for size in (0, 1, 100, data.index(b"\n"), data.index(b"\n") + 1, len(data) - 1):
        with pytest.raises(ValueError, match=r"first line|was cut|no JSON"):
            unpacked(data[:size])
    with pytest.raises(ValueError, match="was cut or changed"):
        unpacked(data + b"\n")


def _changes() -> Iterator[tuple[str, Callable[[dict[str, Any], dict[str, Any]], object], str]]:
    """What is changed in header or payload, and what is said of it."""
    yield "no format", lambda header, _: header.pop("format"), "format"
    yield "other format", lambda header, _: header.update(format="x"), "does not say that it is"
    yield "other version", lambda header, _: header.update(version=2), "version 2 of the format"
    yield "faults", lambda header, _: header.update(faults=[1]), "no text"
    yield "possible", lambda header, _: header.update(possible=[3]), "no object"
    yield "not covered", lambda header, _: header.update(not_covered={"a": 1}), "no text"
    yield "config", lambda header, _: header.update(config=[]), "kind dict"
    yield "no invariants", lambda _, body: body.pop("invariants"), "invariants"
    yield "level", lambda _, body: body["invariants"][0].update(level="high"), "level that does not exist"
    yield "views", lambda _, body: body["invariants"][0]["views"].pop(), "no views of the level"
    yield "no views", lambda _, body: body["invariants"][0].update(views=[]), "no views of the level"
    yield "half of a view", lambda _, body: body["invariants"][0]["views"][0].pop(), "no views of the level"
    yield "a number", lambda _, body: body["invariants"][0]["views"][0].__setitem__(0, 0.5), "whole numbers"
    yield "negative", lambda _, body: body["invariants"][0]["views"][1].__setitem__(0, -9), "does not describe"
    yield "beyond", lambda _, body: body["invariants"][0]["views"][1].__setitem__(-1, 1 << 20), "does not describe"
    yield "states", lambda _, body: body["invariants"][0]["message"][0]["in"].__setitem__(0, 99), "no state has"
    yield "machines", lambda _, body: body["invariants"][0].update(system=[]), "a state that it does not describe"
    yield "ghosts", lambda _, body: body["invariants"][0].update(ghosts=["entry"]), "ghosts are not the last"


@pytest.mark.parametrize(("changed", "said"), [each[1:] for each in _changes()], ids=[each[0] for each in _changes()])
def test_what_is_no_certificate_is_refused(
    changed: Callable[[dict[str, Any], dict[str, Any]], object], said: str, certificate: Certificate
) -> None:
    """Even with the right size and digest."""
    line, _, payload = packed(certificate).partition(b"\n")
    header, body = json.loads(line), json.loads(gzip.decompress(payload))
    changed(header, body)
    with pytest.raises(ValueError, match=said):
        unpacked(_sealed(header, gzip.compress(json.dumps(body).encode())))


def _sealed(header: dict[str, Any], payload: bytes) -> bytes:
    import hashlib

    header["payload"] = {"bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return json.dumps(header).encode() + b"\n" + payload


@pytest.mark.parametrize(
    "payload",
    [b"", b"no gzip", gzip.compress(b"[]", mtime=0), gzip.compress(b"{}", mtime=0)[:-3], gzip.compress(b"{", mtime=0)],
)
def test_a_payload_that_is_none_is_refused(payload: bytes, certificate: Certificate) -> None:
    header = json.loads(packed(certificate).partition(b"\n")[0])
    with pytest.raises(ValueError, match="payload"):
        unpacked(_sealed(header, payload))


def test_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*none"):
        read_certificate(tmp_path / "none")
    (tmp_path / "text").write_text("hello\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"text: its first line is no JSON object; make it again"):
        read_certificate(tmp_path / "text")


# the commands


def _said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.main(words)
    said = capsys.readouterr()
    return code, said.out, " ".join(said.err.split())


def test_what_check_writes_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "jms.certificate")
    asked = ["check", "--messages", "any", "--fault", "broker_kill", "--only", "loss", "--only", "duplicate"]
    code, out, _ = _said([*asked, "--certificate", path], capsys)
    assert code == 0
    assert "written" in out
    code, out, _ = _said(["certificate", "verify", path, "--json"], capsys)
    told = json.loads(out)
    assert (code, told["verified"], told["impossible"], told["possible"]) == (0, True, ["loss"], ["duplicate"])
    assert told["made_by"] == ackfsm.__version__
    assert told["faults"] == ["broker_kill"]
    code, out, _ = _said(["certificate", "verify", path], capsys)
    assert code == 0
    assert "Verified: all that it says is so, for any number of messages" in out


MARKED = ["check", "--profile", "artemis", "--messages", "any", "--fault", "broker_crash"]
MARKED += ["--only", "unflagged_duplicate"]


def test_what_was_verified_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The proof holds of the settings; of artemis as it comes the same would be false."""
    path = tmp_path / "made"
    asked = [*MARKED, "--set", "redelivery_mark_persisted=true", "--action", "recover", "--without", "timer_fires"]
    assert _said([*asked, "--certificate", str(path)], capsys)[0] == 0
    code, out, _ = _said(["certificate", "verify", str(path)], capsys)
    assert code == 0
    told = "settings redelivery_mark_persisted=true (artemis: false); every other one as artemis has it"
    assert told in " ".join(out.split())
    assert re.search(r"^actions +recover *$", out, flags=re.MULTILINE)
    assert re.search(r"^without +timer_fires *$", out, flags=re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80


PHANTOM = ["check", "--messages", "any", "--fault", "broker_kill", "--only", "phantom"]


@pytest.fixture(scope="module")
def phantom(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the command writes of jms as it comes."""
    path = tmp_path_factory.mktemp("phantom") / "made"
    assert cli.main([*PHANTOM, "--certificate", str(path)]) == 0
    return path.read_bytes()


def test_settings_of_another_profile_are_said_to_be_those(
    phantom: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made"
    path.write_bytes(phantom)
    made = unpacked(phantom)
    out = _said(["certificate", "verify", str(path)], capsys)[1]
    assert "every setting as jms has it" in " ".join(out.split())
    write_certificate(path, dataclasses.replace(made, configuration={**made.configuration, "profile": "artemis"}))
    code, out, _ = _said(["certificate", "verify", str(path)], capsys)
    assert code == 0, "it is true of the settings, whatever they are called"
    told = " ".join(out.split())
    assert "these are the settings of jms, not of artemis" in told
    for key, value in shipped().configure("jms").as_dict().items():
        assert key == "profile" or f"{key}={format_value(value)}" in told


def test_a_key_that_is_there_twice_is_refused(
    phantom: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made"
    head, _, rest = phantom.partition(b"\n")
    for old, value in ((b'"ack_mode":', b'"NO_ACKNOWLEDGE"'), (b'"faults":', b"[]")):
        assert head.count(old) == 1
        path.write_bytes(head.replace(old, old + value + b"," + old) + b"\n" + rest)
        code, out, err = _said(["certificate", "verify", str(path)], capsys)
        assert (code, out) == (2, "")
        assert f"an object in it has {old.decode()[1:-2]!r} more than once" in err


def test_the_command_says_what_is_wrong(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made"
    write_certificate(path, certificate)  # its way ends too early
    code, out, _ = _said(["certificate", "verify", str(path)], capsys)
    assert code == 1
    assert "duplicate: its way to duplicate does not show it in the end" in " ".join(out.split())
    assert "Refuted" in out
    told = json.loads(_said(["certificate", "verify", str(path), "--json"], capsys)[1])
    assert (told["verified"], set(told["refuted"])) == (False, {"duplicate"})
    write_certificate(path, dataclasses.replace(certificate, tables="0"))
    code, out, err = _said(["certificate", "verify", str(path)], capsys)
    assert (code, out) == (2, "")
    assert f"{path}: the certificate is of other tables" in err
    write_certificate(path, sealed(dataclasses.replace(certificate, proved=(), ways=(), invariants=())))
    assert _said(["certificate", "verify", str(path)], capsys)[0] == 3


def test_a_profile_of_ones_own_is_named_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, path = tmp_path / "harbour.yaml", str(tmp_path / "made")
    profile.write_text("system: Harbour\nlike: artemis\nsources: {}\ndefaults: {}\n", encoding="utf-8")
    assert _said([*PHANTOM, "--profile", str(profile), "--certificate", path], capsys)[0] == 0
    code, _, err = _said(["certificate", "verify", path], capsys)
    assert (code, "'harbour', which does not ship; name its file" in err) == (2, True)
    assert _said(["certificate", "verify", path, "--profile", str(profile)], capsys)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--certificate", "x"], "--certificate is for --messages any"),
        (["check", "--messages", "any", "--certificate", "-"], "name a file"),
        (["check", "--messages", "any", "--certificate", "no/such/folder/x"], "cannot be written"),
        (["certificate", "verify", "x", "--profile", "jms"], "--profile is for the YAML file"),
        (["certificate", "verify", "no-such-file"], "there is no file no-such-file; name a certificate"),
    ],
)
def test_what_is_asked_wrongly_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _said(words, capsys)
    assert (code, out) == (2, "")
    assert said in err
