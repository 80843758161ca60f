"""``check --messages any``: impossible for any number, possible with a witness, or undecided; the command."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.checking.unbounded import Decision, Level, Proof, _decide, decide, prove
from ackfsm.checking.unbounded._decide import is_performed
from ackfsm.terms import Anomaly, Fault, InputError
from model_tests.support.tables import shipped

BROKER = frozenset({Fault.BROKER_KILL})


def decided(
    profile: str, settings: Mapping[str, object], *only: str, actions: frozenset[str] = frozenset(), **effort: Any
) -> Decision:
    specification = shipped()
    bounds = Bounds(faults=BROKER, actions=actions)
    return decide(specification, specification.configure(profile, settings), bounds, only=only, **effort)


def test_what_one_message_shows_is_possible_and_what_no_view_shows_is_not() -> None:
    found = decided("jms", {"delivery_mode": "NON_PERSISTENT"}, "loss", "phantom")
    loss, phantom = found.findings.values()
    assert (loss.reachable, loss.messages, loss.undecided) == (True, 1, "")
    assert "broker_kill" in [event.label for event in loss.steps]
    assert (phantom.reachable, phantom.level, phantom.messages) == (False, Level.CHAOS, 0)
    assert found.complete
    assert {witness.anomaly for witness in found.witnesses()} == {"loss"}


def test_what_takes_more_faults_than_are_asked_for_is_open() -> None:
    """No proof is of so few, and a run with more does not count."""
    for max_faults, reachable in ((1, True), (0, None)):
        found = decided("jms", {"delivery_mode": "NON_PERSISTENT"}, "loss", max_faults=max_faults, max_states=2_000)
        assert found.findings[Anomaly.LOSS].reachable is reachable
        assert {answer.bounds.max_faults for answer in found.searches} == {max_faults}


def test_what_two_messages_show_has_their_witness() -> None:
    settings, actions = {"redelivery_delay": True}, frozenset({"consumer_close"})
    (reorder,) = decided("activemq", settings, "reorder", actions=actions).findings.values()
    assert (reorder.reachable, reorder.messages) == (True, 2)
    bounds = Bounds(actions=actions, messages=2, max_faults=0)
    answer = explore.check(shipped(), shipped().configure("activemq", settings), bounds, only=["reorder"])
    (known,) = answer.findings.values()
    assert len(reorder.steps) == len(known.steps)


_FADING: Mapping[str, object] = {
    "consumption": "receive",
    "redelivery_mark_persisted": False,
    "block_on_acknowledge": True,
    "resend_in_doubt": True,
}


def test_what_takes_no_second_sending_is_found_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search with second copies has to meet more than 400,000 states until messages are handed over out of order."""
    faults = frozenset({Fault.BROKER_CRASH, Fault.CONSUMER_LINK_LOSS})
    asked = {"only": ["reorder"], "max_states": 100_000}
    configuration = shipped().configure("jms", _FADING)
    found = decide(shipped(), configuration, Bounds(faults=faults), **asked)  # type: ignore[arg-type]
    (reorder,) = found.findings.values()
    assert (reorder.reachable, reorder.messages) == (True, 2)
    (witness,) = found.witnesses()
    assert witness.network.configuration == configuration
    monkeypatch.setattr("ackfsm.checking.unbounded._decide._Run._search_sent_once", lambda _: None)
    (reorder,) = decide(shipped(), configuration, Bounds(faults=faults), **asked).findings.values()  # type: ignore[arg-type]
    assert reorder.reachable is None


def test_what_a_second_sending_mends_is_not_taken_for_what_was_asked() -> None:
    """What a crash took, and nobody sends again, is lost; where it is to be sent again that is no end."""
    bounds = Bounds(messages=2, faults=frozenset({Fault.BROKER_CRASH}))
    once = shipped().configure("jms", {**_FADING, "resend_in_doubt": False})
    (loss,) = explore.check(shipped(), once, bounds, only=["loss"]).findings.values()
    assert loss.reachable
    network = compose(shipped(), shipped().configure("jms", _FADING), bounds, observers_of(shipped(), ["loss"]))
    assert not is_performed(network, loss)


@pytest.mark.parametrize(("max_states", "least"), [(None, 2), (20, 1)])
def test_one_message_is_proved_of_only_where_its_search_was_stopped(
    monkeypatch: pytest.MonkeyPatch, max_states: int | None, least: int
) -> None:
    asked: list[int] = []

    def noted(*of: Any, **more: Any) -> Proof:
        asked.append(more["least"])
        return prove(*of, **more)

    monkeypatch.setattr(_decide, "prove", noted)
    bounds = Bounds(messages=1, faults=frozenset({Fault.CONSUMER_LINK_LOSS}), max_faults=None)
    decide(shipped(), shipped().configure("jms"), bounds, only=["phantom", "reorder"], max_states=max_states)
    assert set(asked) == {least}


def test_what_a_limit_stops_is_undecided() -> None:
    found = decided("jms", {}, "loss", "duplicate", max_states=5)
    assert {each.reachable for each in found.findings.values()} == {None}
    assert all("more than 5 views" in each.undecided for each in found.findings.values())
    assert not found.complete
    assert found.keeps_promises


def test_little_memory_leaves_it_open_too() -> None:
    found = decided("jms", {}, "loss", max_memory=4_000)
    assert found.findings[next(iter(found.findings))].reachable is None


def test_a_certificate_needs_the_views() -> None:
    found = decided("jms", {}, "loss", "duplicate", keep_invariants=True)
    certificate = found.certificate(shipped())
    assert certificate.proved == ("loss",)
    assert [(way.anomaly, way.messages, way.max_faults) for way in certificate.ways] == [("duplicate", 1, None)]
    assert certificate.invariants
    with pytest.raises(InputError, match="keep_invariants"):
        decided("jms", {}, "loss").certificate(shipped())


WORDS = ("check", "--messages", "any", "--fault", "broker_kill")


@pytest.mark.parametrize(("waits", "level"), [("false", "chaos"), ("true", "related")])
def test_the_command_says_it_of_any_number(waits: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A session that waits for an answer waits for that of another message too: what each may do is asked then."""
    asked = (*WORDS, "--set", f"block_on_acknowledge={waits}", "--only", "loss")
    assert cli.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["messages"], told["max_faults"], told["complete"]) == ("any", None, True)
    assert told["anomalies"] == {"loss": {"reachable": False, "steps": [], "proved_at": level, "promised_absent": True}}
    assert cli.main(asked) == 0
    said = capsys.readouterr().out
    assert "any number of messages; broker_kill, any number of times" in said
    assert "with any number of messages." in said.replace("\n", " ").replace("  ", " ")


def test_one_message_is_searched_again_for_what_is_left() -> None:
    """With all that watches, a search ends before the fourth delivery; with what is left it meets it.

    It may have as many states as it takes to ask for that alone.
    """
    settings = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive", "max_delivery_attempts": 3}
    configuration = shipped().configure("artemis", settings)
    bounds, names = Bounds(faults=frozenset(Fault), max_faults=None), ["duplicate", "reprocessed", "over_delivered"]
    alone = explore.check(shipped(), configuration, bounds, only=names[-1:]).exploration
    assert alone.complete
    found = decide(shipped(), configuration, bounds, only=names, max_states=alone.states)
    over = found.findings[Anomaly.OVER_DELIVERED]
    assert (over.reachable, over.messages) == (True, 1)
    searches = [one for one in found.searches if one.bounds.messages == 1]
    assert [len(one.findings) for one in searches] == [3, 1]
    assert [one.exploration.complete for one in searches] == [False, True]


def test_what_is_open_ends_with_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*WORDS, "--only", "loss", "--max-states", "5"]) == 3
    said = capsys.readouterr().out
    assert "undecided" in said
    assert "more than 5 views" in said


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--max-faults", "2"), "--max-faults"),
        (("--consumers", "2"), "--consumers"),
        (("--subscriptions", "2"), "--subscriptions"),
        (("--reduce", "none"), "--reduce"),
        (("--progress",), "--progress"),
        (("--engine", "spark"), "--engine spark"),
        (("--engine", "symbolic"), "--engine symbolic"),
    ],
)
def test_what_is_of_few_messages_is_refused(
    words: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, *words]) == 2
    assert f"{option} is not for --messages any" in " ".join(capsys.readouterr().err.split())


def test_its_witnesses_are_shown_in_every_form(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = (*WORDS, "--set", "delivery_mode=NON_PERSISTENT", "--only", "loss")
    assert cli.main([*asked, "--as", "steps"]) == 0
    assert "broker_kill" in capsys.readouterr().out
    assert cli.main([*asked, "--as", "history", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["as"], list(told["witnesses"]), told["anomalies"]["loss"]["messages"]) == ("history", ["loss"], 1)
    assert cli.main([*asked, "--as", "mermaid", "--certificate", str(tmp_path / "c")]) == 2
    assert "--certificate keeps them" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("settings", "effort", "code", "why"),
    [
        ((), (), 0, "there is no way to loss, with any number of messages"),
        ((), ("--max-states", "5"), 3, "loss is undecided: "),
        (
            ("--profile", "qpid", "--set", "send_mode=blocking"),
            (),
            0,
            "the way to loss is of 5,006 steps with 501 messages",
        ),
    ],
)
def test_why_there_is_no_witness_is_said(
    settings: tuple[str, ...], effort: tuple[str, ...], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = ("--fault", "listener_exception", "--set", "consumption=listener")
    assert (
        cli.main(["check", "--messages", "any", *faults, *settings, *effort, "--anomaly", "loss", "--only", "loss"])
        == code
    )
    shown = capsys.readouterr()
    assert not shown.out
    assert why in " ".join(shown.err.split())
