"""What another consumer gave back unseen comes behind later messages: where that is allowed, and where it is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import tables, verify
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.notation import events_of, write

SENT = "; ".join(f"p send m{n} session=p queue=q; p confirmed m{n} session=p queue=q" for n in (1, 2, 3, 4))
"""Four messages; the consumer ``c`` is delivered the first and has the third in its library, the other one is ``d``."""


def _had(process: str, message: str, flag: str = "clear") -> str:
    return "; ".join(
        f"{process} {event} {message} {told}session={process} queue=q"
        for event, told in (("delivered", f"{flag} "), ("processed", ""), ("acknowledge", "scope=message "))
    )


TAKEN = f"{_had('c', 'm1')}; {_had('d', 'm2')}; {_had('d', 'm4')}"
DRAINED = "c close session=c; d close session=d; b drained queue=q"
GIVEN_BACK = f"{SENT}; {TAKEN}; c recover session=c; {_had('d', 'm3')}; {DRAINED}"
KEPT = f"{SENT}; {TAKEN}; {_had('d', 'm3')}; {DRAINED}"
BROKEN = f"{SENT}; {TAKEN}; c close session=c error=reset; {_had('d', 'm3')}; d close session=d; b drained queue=q"
MARKED = GIVEN_BACK.replace("d delivered m3 clear", "d delivered m3 flagged")
AGAIN = f"{SENT}; {TAKEN}; c recover session=c; {_had('d', 'm3')}; {_had('d', 'm1')}; {DRAINED}"
CLIENT: Mapping[str, object] = {
    "ack_mode": "CLIENT_ACKNOWLEDGE",
    "client_ack_scope": "message",
    "resend_in_doubt": False,
}


def _judged(
    folder: Path,
    text: str,
    profile: str,
    settings: Mapping[str, object] | None = None,
    spec: Specification | None = None,
) -> verify.Result:
    specification = spec or shipped()
    configuration = specification.configure(profile, {**CLIENT, **(settings or {})})
    history = verify.read(write(events_of(text), folder / "history.jsonl"))
    return verify.verdict(verify.examine(history, specification, configuration), specification)


@pytest.mark.parametrize("profile", ["artemis", "activemq", "qpid-jms"])
def test_what_a_consumer_gives_back_unseen_comes_to_another_one_behind_later_messages(
    profile: str, tmp_path: Path
) -> None:
    given_back = _judged(tmp_path, GIVEN_BACK, profile)
    assert given_back.findings.anomalies[Anomaly.REORDER].examples == ("m3",)
    assert given_back.verdict is Verdict.VALID, given_back.reasons
    assert _judged(tmp_path, MARKED, "jms").verdict is Verdict.VALID


@pytest.mark.parametrize("profile", ["jms", "qpid", "ems", "rabbitmq"])
def test_it_may_not_come_unflagged_where_unseen_deliveries_are_marked(profile: str, tmp_path: Path) -> None:
    modes = {} if profile == "rabbitmq" else {"client_ack_scope": "session"}
    marks = _judged(tmp_path, GIVEN_BACK.replace("scope=message", "scope=session"), profile, modes)
    assert marks.verdict is Verdict.INVALID
    assert [reason for reason in marks.reasons if reason.startswith("reorder of 1 message")]


@pytest.mark.parametrize("text", [KEPT, BROKEN], ids=["nobody gave back", "its connection broke"])
def test_without_anything_given_back_order_holds(text: str, tmp_path: Path) -> None:
    result = _judged(tmp_path, text, "artemis")
    assert result.verdict is Verdict.INVALID, result.reasons
    assert result.allowed[Anomaly.REORDER] is False


def test_what_the_application_had_comes_again_flagged(tmp_path: Path) -> None:
    result = _judged(tmp_path, AGAIN, "artemis")
    assert result.verdict is Verdict.INVALID
    assert result.allowed[Anomaly.UNFLAGGED_DUPLICATE] is False


def test_without_the_rows_it_is_refused(tmp_path: Path) -> None:
    """With the mark left to what is given back unseen."""
    spec = copy_of_spec(tmp_path)
    clears = "&unmarked\n          to: clear\n"
    replace(spec, "machines/broker.yaml", (clears, clears.replace("clear", "marked")))
    result = _judged(tmp_path, GIVEN_BACK, "artemis", spec=tables.load(spec))
    assert result.verdict is Verdict.INVALID
    assert result.allowed[Anomaly.REORDER] is False


def test_without_what_was_given_back_beside_one_consumer_decides(tmp_path: Path) -> None:
    specification = shipped()
    configuration = specification.configure("artemis", CLIENT)
    history = verify.read(write(events_of(GIVEN_BACK), tmp_path / "history.jsonl"))
    alone = dataclasses.replace(verify.examine(history, specification, configuration), given_back_beside=False)
    assert verify.verdict(alone, specification).verdict is Verdict.INVALID
