"""What another consumer gave back unseen comes behind later messages: where that is allowed, and where it is not."""

from __future__ import annotations

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
    *,
    later: bool = False,
) -> verify.Result:
    specification = shipped()
    configuration = specification.configure(profile, {**CLIENT, **(settings or {})})
    events = [
        {**each, "t": each["t"] + 10**10 * (later and each["event"] in {"close", "drained"})}
        for each in events_of(text)
    ]
    history = verify.read(write(events, folder / "history.jsonl"))
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
def test_the_flag_of_what_no_application_has_seen_may_be_either(profile: str, tmp_path: Path) -> None:
    """Also where the tables mark it: a pair of messages says that the other consumer must have had it."""
    modes = {} if profile == "rabbitmq" else {"client_ack_scope": "session"}
    for text in (GIVEN_BACK, MARKED):
        result = _judged(tmp_path, text.replace("scope=message", "scope=session"), profile, modes)
        assert result.verdict is Verdict.VALID, result.reasons


@pytest.mark.parametrize("text", [GIVEN_BACK, BROKEN], ids=["given back", "its connection broke"])
def test_what_befell_the_other_consumer_is_the_cause(text: str, tmp_path: Path) -> None:
    result = _judged(tmp_path, text, "artemis")
    assert result.verdict is Verdict.VALID, result.reasons
    assert result.findings.anomalies[Anomaly.REORDER].causes


def test_without_anything_given_back_order_holds(tmp_path: Path) -> None:
    """The consumers close long after everything was delivered."""
    result = _judged(tmp_path, KEPT, "artemis", later=True)
    assert result.verdict is Verdict.INVALID, result.reasons
    assert result.allowed[Anomaly.REORDER] is False


def test_what_the_application_had_comes_again_flagged(tmp_path: Path) -> None:
    result = _judged(tmp_path, AGAIN, "artemis")
    assert result.verdict is Verdict.INVALID
    assert result.allowed[Anomaly.UNFLAGGED_DUPLICATE] is False


def _allowed_by_kind(spec: Specification, profile: str, *, given_back_beside: bool) -> bool | None:
    """Whether the search allows an order where no pair of messages decides."""
    found = verify.allowed(
        spec,
        spec.configure(profile, CLIENT),
        (),
        actions=("recover",),
        found=[Anomaly.REORDER],
        given_back_beside=given_back_beside,
    )
    return found[Anomaly.REORDER].answer


def test_where_no_pair_decides_the_tables_do(tmp_path: Path) -> None:
    """They know of what is given back unseen, and whether that is marked; with one consumer there is nothing of it."""
    assert _allowed_by_kind(shipped(), "artemis", given_back_beside=True)
    assert _allowed_by_kind(shipped(), "artemis", given_back_beside=False) is False
    assert _allowed_by_kind(shipped(), "qpid", given_back_beside=True) is False
    spec = copy_of_spec(tmp_path)
    counts = "to: counted_or_not\n          when: first_given_back_counts\n"
    replace(spec, "machines/broker.yaml", (counts, counts.replace("counted_or_not", "marked")))
    assert _allowed_by_kind(tables.load(spec), "artemis", given_back_beside=True) is False


def test_two_producers_that_died_in_their_sends_are_not_one(tmp_path: Path) -> None:
    died = "; ".join(
        f"{process} send {message} session={process} queue=q; {process} fault fault=producer_crash"
        f"; {process} recovered fault=producer_crash"
        for process, message in (("p", "m1"), ("o", "m2"))
    )
    again = _had("c", "m1", "flagged")
    first, second = died.split("; o ", maxsplit=1)
    text = f"{first}; c delivered m1 clear session=c queue=q; c processed m1 session=c queue=q; c recover session=c"
    text = f"{text}; o {second}; {again}; {_had('c', 'm2')}; c close session=c; b drained queue=q"
    assert _judged(tmp_path, text, "jms").verdict is Verdict.VALID
