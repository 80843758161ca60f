"""Claims for any number of messages: what is proved is said, what is not is open, and few messages are not enough."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.checking.certificates import read_certificate
from ackfsm.surveys import claims
from ackfsm.surveys.claims import ClaimResult, Status
from ackfsm.surveys.claims._any_number import StandsAsItIs
from ackfsm.tables import Specification
from model_tests.support.checker.certified import verified
from model_tests.support.checker.projected import fading
from model_tests.support.places import SPEC
from model_tests.support.tables import shipped
from model_tests.support.whole import few

_FLAGS = "{never: unflagged_duplicate, in: {profile: jms}, messages: 2, faults: [consumer_link_loss]}"


def decided(  # noqa: PLR0913 - a check, of which tables, and how it is decided
    folder: Path,
    check: str,
    specification: Specification | None = None,
    *,
    any_number: bool = True,
    max_states: int = claims.MAX_STATES,
    certificates: Path | None = None,
) -> ClaimResult:
    """What the tables say of a claim with this one check (YAML in flow style) for any number of messages."""
    shutil.copyfile(SPEC / "schema.json", folder / "schema.json")
    text = f"- id: C01\n  seed: a.txt\n  kind: always\n  statement: a sentence\n  checks:\n  - {check}\n"
    (folder / "claims.yaml").write_text(text, encoding="utf-8")
    read = claims.read(shipped(), folder)
    asked = specification or shipped()
    (found,) = claims.decide(asked, read, any_number=any_number, max_states=max_states, certificates=certificates)
    return found


def test_what_is_proved_for_any_number_says_so(tmp_path: Path) -> None:
    found = decided(tmp_path, _FLAGS)
    assert found.status is Status.PROVED
    assert found.sentence.endswith("proved for any number of messages and faults")
    assert found.evidence[0].as_json()["any_number"] == {"proved": True}
    asked_of_two = decided(tmp_path, _FLAGS, any_number=False)
    assert asked_of_two.status is Status.PROVED
    assert "any_number" not in asked_of_two.evidence[0].as_json()


@pytest.mark.parametrize(("after", "status"), [(2, Status.REFUTED), (4, Status.UNKNOWN)])
def test_what_two_messages_do_not_show_is_not_proved(after: int, status: Status, tmp_path: Path) -> None:
    """A mark that fades after two messages, and one that fades after four: three show the first alone."""
    changed = fading(shipped(), after)
    assert decided(tmp_path, _FLAGS, changed, any_number=False).status is Status.PROVED
    found = decided(tmp_path, _FLAGS, changed)
    assert found.status is status
    said = found.evidence[0].as_json()["any_number"]
    assert (said["proved"], said["configuration"]) == (False, {"profile": "jms"})
    if status is Status.REFUTED:
        assert found.sentence.startswith("with 3 messages unflagged_duplicate can happen, by send(m1)")
        assert "send(m3)" in said["steps"]
    else:
        assert said["undecided"].startswith("unflagged_duplicate: ")
        searched = said["searched"]
        assert (searched["messages"], searched["max_faults"], searched["complete"]) == (3, 2, True)
        assert f"in none of the {searched['states']:,} states of 3 messages with at most 2 faults" in found.sentence


def test_an_open_check_says_that_the_search_stopped(tmp_path: Path) -> None:
    """The limit is one that two messages keep and three do not."""
    found = decided(tmp_path, _FLAGS, fading(shipped(), 4), max_states=15_000)
    assert found.evidence[0].as_json()["complete"] is True
    said = found.evidence[0].as_json()["any_number"]
    assert said["searched"]["complete"] is False
    assert found.status is Status.UNKNOWN
    assert "a search of 3 messages with at most 2 faults stopped at its limit" in found.sentence


def test_every_kind_of_check_says_what_it_is_for_any_number() -> None:
    """Whichever is added too: none is taken for one that stands as it is."""
    kinds = {type(check) for claim in claims.read(shipped()) for check in claim.checks}
    stand = {kind.__name__ for kind in kinds if issubclass(kind, StandsAsItIs)}
    assert {kind.__name__ for kind in kinds} - stand == {"Never", "Equal", "SameEffect"}


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ("{never: loss, in: {profile: jms}, faults: [], consumers: 2}", Status.UNKNOWN),
        ("{never: missed_undelivered, in: {profile: jms}, faults: [], subscriptions: 2}", Status.UNKNOWN),
        ("{never: phantom, only_these_messages: it is of one, in: {profile: jms}, faults: []}", Status.UNKNOWN),
        ("{equal: {left: {profile: jms}, right: {profile: jms}}, faults: []}", Status.UNKNOWN),
        ("{same_effect: [acknowledge(m1), acknowledge(m1)], in: {profile: jms}, faults: []}", Status.UNKNOWN),
        ("{differ: {left: {profile: jms}, right: {profile: qpid}}}", Status.PROVED),
        ("{possible: duplicate, in: {profile: jms}}", Status.PROVED),
        ("{never: duplicate, in: {profile: jms}}", Status.REFUTED),
    ],
)
def test_what_has_no_proof_is_open_and_what_needs_none_stands(check: str, status: Status, tmp_path: Path) -> None:
    found = decided(tmp_path, check)
    assert found.status is status, found.sentence
    assert ("not proved for any number of messages" in found.sentence) == (status is Status.UNKNOWN)


def test_names_of_the_claims_are_watched_as_anomalies_are(tmp_path: Path) -> None:
    found = decided(tmp_path, "{never: [happens(confirmed), reported_unanswered], in: {profile: rabbitmq}, faults: []}")
    assert found.status is Status.REFUTED
    unconfirmed = "{profile: ems, delivery_mode: NON_PERSISTENT}"
    assert decided(tmp_path, f"{{never: [happens(confirmed), loss], in: {unconfirmed}, faults: []}}").status is (
        Status.PROVED
    )


def test_a_proof_can_be_checked_again_from_its_certificate(tmp_path: Path) -> None:
    """Of an anomaly, of an event that never happens, and of a monitor that a claim alone asks for."""
    unconfirmed = "{profile: ems, delivery_mode: NON_PERSISTENT}"
    watched = "[happens(confirmed), loss, acknowledged_out_of_order]"
    found = decided(tmp_path, f"{{never: {watched}, in: {unconfirmed}, faults: []}}", certificates=tmp_path)
    assert found.evidence[0].as_json()["any_number"] == {"proved": True, "certificates": ["C01-1.certificate"]}
    certificate = read_certificate(tmp_path / "C01-1.certificate")
    assert set(certificate.proved) == {"happens(confirmed)", "loss", "acknowledged_out_of_order"}
    assert verified(certificate).verified
    (shown,) = {each for one in certificate.invariants for each in one.watchers if each[0] == "happens(confirmed)"}
    assert shown == ("happens(confirmed)", "happens_confirmed")


def test_a_certificate_that_says_what_happens_never_does_is_refuted(tmp_path: Path) -> None:
    never_confirmed = "{never: happens(confirmed), in: {profile: ems, delivery_mode: NON_PERSISTENT}, faults: []}"
    decided(tmp_path, never_confirmed, certificates=tmp_path)
    certificate = read_certificate(tmp_path / "C01-1.certificate")
    assert verified(certificate).verified
    watchers = (("happens(dispatch_first)", "happens_dispatch_first"),)
    forged = dataclasses.replace(
        certificate,
        proved=("happens(dispatch_first)",),
        invariants=tuple(dataclasses.replace(one, watchers=watchers) for one in certificate.invariants),
    )
    assert set(verified(forged).refuted) == {"happens(dispatch_first)"}


def test_what_is_open_or_refuted_has_no_certificate(tmp_path: Path) -> None:
    for after in (2, 4):
        found = decided(tmp_path, _FLAGS, fading(shipped(), after), certificates=tmp_path)
        assert found.status is not Status.PROVED
    assert not list(tmp_path.glob("*.certificate"))


def test_the_command_proves_a_sentence_and_writes_a_certificate_for_each_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, kept = claims.decide, list[ClaimResult]()

    def once(*asked: Any, **how: Any) -> list[ClaimResult]:
        kept.extend(() if kept else decide(*asked, **how))
        return kept

    monkeypatch.setattr(claims, "decide", once)
    folder = tmp_path / "made"
    asked = ["claims", "--id", "C39", "--messages", "any", "--certificates", str(folder), "--jobs", "2", "--json"]
    assert cli.main(asked) == 0
    (claim,) = json.loads(capsys.readouterr().out)
    named = [file for one in claim["evidence"]["checks"] for file in one.get("any_number", {}).get("certificates", [])]
    assert named
    assert sorted(named) == sorted(path.name for path in folder.iterdir())
    for name in few(named, 1):
        assert cli.main(["certificate", "verify", str(folder / name)]) == 0
    capsys.readouterr()
    assert cli.main(["claims", "--id", "C39", "--messages", "any"]) == 0, "which is not proved again"
    assert "any number of messages and faults" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["claims", "--id", "C39", "--certificates", str(folder)]) == 2
    assert "--certificates is for --messages any" in " ".join(capsys.readouterr().err.split())


def test_the_command_says_what_is_not_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "--id", "C64", "--messages", "any", "--jobs", "1"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "not proved for any number of messages" in said
    assert "1 unknown" in said


def test_the_list_of_sentences_has_no_number_of_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "--seeds", "--messages", "any"]) == 2
    assert "leave --id, --jobs, --max-states, --messages and --certificates out" in " ".join(
        capsys.readouterr().err.split()
    )
