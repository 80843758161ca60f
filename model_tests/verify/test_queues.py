"""Queues with configurations of their own: each message is judged by that of its queue, and by no other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.terms import Anomaly, Fault, Verdict
from ackfsm.verify import Configurations, Findings
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.notation import events_of, write
from model_tests.support.verify.traffic import Event, traffic
from model_tests.support.whole import WHOLE

SPEC = shipped()
NAMED = named_histories()
CLIENT = {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE"}


def _configurations(config: Mapping[str, Any], **queues: Mapping[str, Any]) -> Configurations:
    of_queues = {name: SPEC.configure(None, {**config, **own}) for name, own in queues.items()}
    return Configurations(SPEC.configure(None, config), of_queues)


def _examined(events: Sequence[Event], folder: Path, configurations: Configurations, **how: Any) -> Findings:
    return verify.examine(verify.read(write(events, folder / "h.jsonl")), SPEC, configurations, **how)


def _found(findings: Findings, anomaly: Anomaly) -> tuple[str, ...]:
    return findings.anomalies[anomaly].examples


def _by_part(findings: Findings, anomaly: Anomaly) -> dict[str, tuple[str, ...]]:
    return {str(part): _found(part.findings, anomaly) for part in findings.parts}


def _verify(file: Path, *options: str) -> int:
    return main(["verify", *options, str(file)])


def test_the_reason_names_the_queue_of_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = NAMED["a loss in a crash of which one queue is allowed"].write(tmp_path)
    assert _verify(file, "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert [reason.split(",")[0] for reason in result["reasons"]] == ["queue 'q': loss of 1 message ('m2')"]
    assert result["anomalies"]["loss"]["messages"] == ["m1", "m2"]
    assert result["anomalies"]["loss"]["allowed"] is False
    assert result["anomalies"]["loss"]["causes"] == {"broker_crash": 1}
    assert result["config"]["journal_sync_non_transactional"] is True
    assert {name: its["journal_sync_non_transactional"] for name, its in result["queues"].items()} == {"fast": False}


def test_the_screen_tells_which_queues_have_other_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verify(NAMED["a loss in a crash of the queue that may lose"].write(tmp_path), "--all") == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "valid: 1 loss, all allowed by the configuration of its queue" in screen
    assert "queue 'fast' journal_sync_non_transactional: false" in screen


def test_without_queues_there_is_no_key_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = NAMED["loss in the crash that is allowed"].write(tmp_path)
    assert _verify(file, "--json") == 0
    assert "queues" not in json.loads(capsys.readouterr().out)


SENT = {"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"}
ENDED = {"t": 10**13, "process": "n", "event": "drained"}


def _header(folder: Path, **header: Any) -> Path:
    return write([{"ackfsm_history": 1, **header}, SENT, ENDED], folder / "h.jsonl")


@pytest.mark.parametrize(
    ("queue", "options", "why"),
    [
        ({"profile": "nobody"}, (), ": profile cannot be 'nobody'; it is one of jms, "),
        ({"profile": "rabbitmq", "session_reattachment": True}, (), ": "),
        ({"profile": "rabbitmq", "session_reattachment": True}, ("--set", "prefetch=2"), " with --set below it: "),
    ],
)
def test_what_a_queue_cannot_have_is_refused_in_one_sentence(
    queue: Mapping[str, Any], options: Sequence[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _header(tmp_path, config={"profile": "jms"}, queues={"r": queue})
    assert _verify(file, *options) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ackfsm verify: {file}, line 1, queue 'r'{why}")
    assert told.endswith("; correct `queues` in the header\n")
    assert told.count("\n") == 1


def _told(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[Any, Any]:
    _verify(file, "--json", *options)
    result = json.loads(capsys.readouterr().out)
    return result["config"], result["queues"]["q"]


def test_settings_of_a_queue_go_over_the_options_and_those_over_the_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"profile": "artemis", "prefetch": 7, "delivery_mode": "NON_PERSISTENT"}
    file = _header(tmp_path, config=config, queues={"q": {"prefetch": 3}})
    general, its = _told(file, capsys, "--set", "prefetch=5", "--set", "delivery_mode=PERSISTENT")
    assert (general["prefetch"], general["delivery_mode"]) == (5, "PERSISTENT")
    assert (its["prefetch"], its["delivery_mode"], its["profile"]) == (3, "PERSISTENT", "artemis")


def test_a_queue_may_be_of_another_system_and_the_others_of_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _header(tmp_path, queues={"q": {"profile": "artemis"}})
    general, its = _told(file, capsys)
    assert (general, its["profile"]) == (None, "artemis")
    other = {**SENT, "queue": "r", "message": "m2"}
    found = _examined([SENT, other, ENDED], tmp_path, Configurations(None, {"q": SPEC.configure("artemis")}))
    reasons = verify.verdict(found, SPEC).reasons
    assert any(reason.startswith("queue 'r': no configuration is known") for reason in reasons)
    assert not any(reason.startswith("queue 'q': no configuration") for reason in reasons)


def test_a_queue_that_no_line_has_changes_nothing(tmp_path: Path) -> None:
    found = _examined([SENT, ENDED], tmp_path, _configurations(CLIENT, r={"profile": "artemis"}))
    alone = verify.examine(verify.read(tmp_path / "h.jsonl"), SPEC, SPEC.configure(None, CLIENT))
    assert dict(found.anomalies) == dict(alone.anomalies)
    assert [str(part) for part in found.parts] == ["queue 'q'"]
    assert found.queues.keys() == {"r"}


DELIVERED = "; ".join(
    f"{process} delivered {queue}{number} clear session={process} queue={queue}"
    for process, queue in (("c", "q"), ("d", "wide"))
    for number in range(3)
)


def test_each_queue_has_its_own_bound_of_prefetch(tmp_path: Path) -> None:
    messages = [(f"{queue}{number}", queue) for queue in ("q", "wide") for number in range(3)]
    sent = "; ".join(f"p send {message} queue={queue}; p confirmed {message}" for message, queue in messages)
    events = events_of(f"{sent}; {DELIVERED}")
    found = _examined(events, tmp_path, _configurations({**CLIENT, "prefetch": 2}, wide={"prefetch": 3}))
    assert _found(found, Anomaly.PREFETCH_OVERRUN) == ("q2",)
    found = _examined(events, tmp_path, _configurations({**CLIENT, "prefetch": 3}, wide={"prefetch": 2}))
    assert _by_part(found, Anomaly.PREFETCH_OVERRUN) == {"queue 'q'": (), "queue 'wide'": ("wide2",)}
    (reason,) = [each for each in verify.verdict(found, SPEC).reasons if "prefetch_overrun" in each]
    assert reason.startswith("queue 'wide': prefetch_overrun of 1 message ('wide2'), which the configuration does not")


WINDOW = {"profile": "solace", "publish_window": 2, "send_mode": "asynchronous"}


def test_a_window_counts_all_sends_of_its_session_but_those_that_nobody_answers(tmp_path: Path) -> None:
    events = events_of("p send m1 queue=q; p send m2 queue=other; p send m3 queue=q")
    configurations = _configurations(WINDOW, other={"publish_window": 5})
    assert _found(_examined(events, tmp_path, configurations), Anomaly.WINDOW_OVERRUN) == ("m3",)
    unanswered = _configurations(WINDOW, other={"send_mode": "unconfirmed", "delivery_mode": "DIRECT"})
    assert _found(_examined(events, tmp_path, unanswered), Anomaly.WINDOW_OVERRUN) == ()


def test_a_message_belongs_to_the_queue_that_it_was_sent_to(tmp_path: Path) -> None:
    events = events_of(
        "p send m1 queue=q; c delivered m1 clear queue=dead; p send m2; c delivered m2 clear queue=r; p send m3"
    )
    found = _examined(events, tmp_path, _configurations(CLIENT, q={"prefetch": 3}, r={"prefetch": 4}))
    assert [(part.queues, part.findings.messages) for part in found.parts] == [(("",), 1), (("q",), 1), (("r",), 1)]
    assert [str(part) for part in found.parts] == ["without a queue", "queue 'q'", "queue 'r'"]


TORN = (
    "p begin transaction=t; p send m1 queue=q transaction=t; p send m2 queue=r transaction=t; p commit transaction=t;"
    " p commit_in_doubt transaction=t; c delivered m1 clear queue=q; c processed m1; n drained"
)


@pytest.mark.parametrize("assumed", [(), tuple(Fault)])
def test_a_transaction_over_two_configurations_is_held_to_neither(assumed: Sequence[Fault], tmp_path: Path) -> None:
    config = {"profile": "artemis", "ack_mode": "SESSION_TRANSACTED"}
    one = _examined(events_of(TORN), tmp_path, _configurations(config))
    assert one.anomalies[Anomaly.TORN_TRANSACTION].found == 1
    found = _examined(events_of(TORN), tmp_path, _configurations(config, r={"prefetch": 9}), assumed=assumed)
    torn = found.anomalies[Anomaly.TORN_TRANSACTION]
    assert (torn.found, torn.examples, torn.unexplained, torn.by_kind, torn.undecided) == (1, ("t",), 0, 0, 1)
    result = verify.verdict(found, SPEC)
    assert result.allowed[Anomaly.TORN_TRANSACTION] is None
    assert any("whose messages are judged by different configurations" in reason for reason in result.reasons)


STUCK = "c delivered m1 clear queue=q; c delivered m2 clear queue=r"
FLYING = "b depth queue=q position=0 delivery_count=1; b depth queue=r position=0 delivery_count=1"


def test_who_owes_an_acknowledgement_is_asked_of_the_queue(tmp_path: Path) -> None:
    events = events_of(f"p send m1 queue=q; p send m2 queue=r; {STUCK}; {FLYING}")
    found = _examined(events, tmp_path, _configurations(CLIENT, r={"ack_mode": "AUTO_ACKNOWLEDGE"}))
    assert _by_part(found, Anomaly.STUCK) == {"queue 'q'": (), "queue 'r'": ("m2",)}
    assert _found(found, Anomaly.STUCK) == ("m2",)


def test_a_call_that_waits_is_told_once(tmp_path: Path) -> None:
    events = events_of(f"p send m1 queue=q; p send m2 queue=r; p waiting error=send; x waiting error=close; {STUCK}")
    found = _examined([*events, ENDED], tmp_path, _configurations(CLIENT, r={"prefetch": 9}))
    assert [part.findings.anomalies[Anomaly.STUCK].found for part in found.parts] == [1, 1]
    assert found.anomalies[Anomaly.STUCK].found == 2


def test_a_fault_that_nobody_recorded_may_explain_messages_of_two_queues(tmp_path: Path) -> None:
    lives = "; ".join(
        f"p send {m} queue={q}; p confirmed {m}; c delivered {m} clear queue={q}; c processed {m};"
        f" c delivered {m} flagged queue={q}; c processed {m}"
        for m, q in (("m1", "q"), ("m2", "r"))
    )
    events = [{**each, "t": 1_000_000 * each["t"]} for each in events_of(f"{lives}; n drained")]
    configurations = _configurations({"profile": "artemis"}, r={"prefetch": 9})
    found = _examined(events, tmp_path, configurations, assumed=[Fault.CONSUMER_LINK_LOSS])
    assert found.unrecorded is not None
    assert (found.unrecorded.messages, found.unrecorded.explained) == (2, True)
    (fault,) = found.unrecorded.timeline
    assert (fault.fault, fault.victim, fault.messages, fault.times) == (Fault.CONSUMER_LINK_LOSS, "c", 2, 1)
    assert all(len(part.findings.unrecorded.timeline) == 1 for part in found.parts if part.findings.unrecorded)
    assert verify.verdict(found, SPEC).verdict is Verdict.VALID


def _parted(found: Findings) -> Any:
    explanation = found.explanation
    assert explanation is not None
    told = [(each.message, each.heard, each.impossible, each.anomalies) for each in explanation.examples]
    counts = (explanation.messages, explanation.lives, explanation.contradicted, explanation.unnamed)
    whole = (found.messages, dict(found.ends), dict(found.counters))
    return dict(found.anomalies), whole, counts, dict(explanation.undecided), told


_SYSTEMS: tuple[Mapping[str, object], ...] = (
    CLIENT,
    {"profile": "artemis"},
    {"profile": "artemis", "ack_mode": "PRE_ACKNOWLEDGE"},
    {"profile": "rabbitmq"},
    {"profile": "artemis", "delivery_mode": "NON_PERSISTENT"},
    {**CLIENT, "prefetch": 2},
    {"profile": "solace", "publish_window": 3, "send_mode": "asynchronous"},
)
_AROUND_ALL = ("fault", "recovered", "drained")


def _of_queue(events: Sequence[Event], queue: str) -> list[Event]:
    """The events as those of ``queue`` and of clients of its own, without what may befall others too.

    Who neither sent nor was handed anything may have consumed from any queue.
    """
    busy = {event["process"] for event in events if event["event"] in {"send", "delivered"}}
    found: list[Event] = []
    for event in events:
        process, kind = event["process"], event["event"]
        if kind in _AROUND_ALL or kind.startswith("journal") or process not in busy | {"broker"}:
            continue
        own: Event = {key: f"{queue}-{event[key]}" for key in ("message", "session", "transaction") if key in event}
        own["process"] = process if process == "broker" else f"{queue}-{process}"
        found.append({**event, **own, **({"queue": queue} if {"queue", "message"} & event.keys() else {})})
    return found


_BROKER = st.lists(
    st.tuples(st.integers(0, 10**9), st.sampled_from(["broker_crash", "broker_kill"]), st.booleans()), max_size=2
)


@settings(
    deadline=None,
    max_examples=20 if WHOLE else 8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_two_queues_have_the_findings_of_each_alone(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("queues")
    parts = {queue: _of_queue(data.draw(traffic()), queue) for queue in ("a", "b")}
    assume(all(any(each["event"] == "processed" for each in events) for events in parts.values()))
    faults: list[Event] = [{**ENDED, "t": 10**13}]
    for t, fault, repaired in data.draw(_BROKER):
        faults.append({"t": t, "process": "nemesis", "event": "fault", "fault": fault})
        if repaired:
            faults.append({"t": t + 5, "process": "nemesis", "event": "recovered", "fault": fault})
    systems = {queue: SPEC.configure(None, data.draw(st.sampled_from(_SYSTEMS))) for queue in parts}
    assume(systems["a"] != systems["b"])
    configurations = Configurations(systems["a"], {"b": systems["b"]})
    together = _examined([*parts["a"], *parts["b"], *faults], folder, configurations)
    for part in together.parts:
        (queue,) = part.queues
        alone = _examined([*parts[queue], *faults], folder, Configurations(systems[queue]))
        assert _parted(part.findings) == _parted(alone)
    assert together.messages == sum(part.findings.messages for part in together.parts)
    for anomaly, finding in together.anomalies.items():
        its = [_found(part.findings, anomaly) for part in together.parts]
        assert finding.examples == tuple(sorted(example for each in its for example in each))[:100]
        assert finding.found == sum(part.findings.anomalies[anomaly].found for part in together.parts)
    verdicts = {verify.verdict(part.findings, SPEC).verdict for part in together.parts}
    worst = next(each for each in (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID) if each in verdicts)
    assert verify.verdict(together, SPEC).verdict is worst


def test_a_doubt_names_the_silent_consumers_of_its_own_queue(tmp_path: Path) -> None:
    events: list[Event] = []
    for queue in ("a", "b"):
        for number, process in enumerate(("silent", "silent", "tells")):
            fields = {"message": f"{queue}{number}", "queue": queue}
            events += [
                {"t": number, "process": f"{queue}-p", "event": "send", **fields},
                {
                    "t": number + 10,
                    "process": f"{queue}-{process}",
                    "event": "delivered",
                    "redelivered": False,
                    **fields,
                },
                {
                    "t": number + 20,
                    "process": f"{queue}-{process}",
                    "event": "delivered",
                    "redelivered": True,
                    **fields,
                },
            ]
        events.append({"t": 30, "process": f"{queue}-tells", "event": "processed", "message": f"{queue}2"})
    configurations = Configurations(SPEC.configure(None, _SYSTEMS[1]), {"b": SPEC.configure(None, _SYSTEMS[2])})
    for part in _examined(events, tmp_path, configurations).parts:
        doubt = part.findings.anomalies[Anomaly.REPROCESSED].doubt
        assert doubt is not None
        assert [f"'{queue}-silent'" in doubt for queue in ("a", "b")] == [part.queues == ("a",), part.queues == ("b",)]


def _lives(queue: str, first: int, *, confirmed: bool) -> list[Event]:
    events: list[Event] = []
    for number in range(first, first + 200):
        fields = {"message": f"m{number}", "queue": queue}
        events += [
            {"t": number * 10, "process": "p", "event": "send", **fields},
            {"t": number * 10 + 1, "process": "p", "event": "confirmed", **fields},
            {"t": number * 10 + 2, "process": "c", "event": "delivered", "redelivered": False, **fields},
            {"t": number * 10 + 3, "process": "c", "event": "processed", **fields},
        ]
    return [each for each in events if confirmed or each["event"] != "confirmed"]


@pytest.mark.parametrize("order", [("fast", "safe"), ("safe", "fast")])
@pytest.mark.parametrize(
    ("fast", "confirmed", "unanswered"),
    [({"delivery_mode": "NON_PERSISTENT"}, False, 200), ({"prefetch": 9}, True, 0)],
    ids=["plain in one queue", "plain in both"],
)
def test_the_fold_knows_which_queue_is_judged_by_what(
    fast: Mapping[str, Any], *, confirmed: bool, unanswered: int, order: Sequence[str], tmp_path: Path
) -> None:
    header = {"ackfsm_history": 1, "config": {"profile": "artemis"}}
    lives = [event for place, queue in enumerate(order) for event in _lives(queue, place * 200, confirmed=confirmed)]
    file = write([header, *lives, ENDED], tmp_path / "h.jsonl")
    configurations = _configurations({"profile": "artemis"}, fast=fast)
    found = verify.examine_path(file, SPEC, lambda _: configurations, folded_from=0)
    assert comparable(found) == comparable(verify.examine(verify.read(file), SPEC, configurations))
    assert found.anomalies[Anomaly.MISSING_OUTCOME].found == unanswered
    assert [(part.queues, part.findings.messages) for part in found.parts] == [(("safe",), 200), (("fast",), 200)]
    assert found.explanation is not None
    assert found.explanation.messages == 400


def _came_again(*, again_from: str, fault_of: str) -> list[Event]:
    """A message sent to `orders` that comes again from another queue, after a consumer of some queue died."""
    events = events_of(
        "p send m queue=orders; p confirmed m; c delivered m clear queue=orders; p send n queue=retry;"
        " p confirmed n;"
        " c delivered n clear queue=retry; c processed n; c acknowledge n scope=message;"
        f" nemesis fault fault=consumer_crash queue={fault_of};"
        f" nemesis recovered fault=consumer_crash queue={fault_of};"
        f" d delivered m flagged queue={again_from}; d processed m; d acknowledge m scope=message; p drained"
    )
    return [{**each, "t": 10**9 * (each["t"] + 1)} for each in events]


@pytest.mark.parametrize(
    ("fault_of", "again_from", "verdict"),
    [
        ("orders", "orders", Verdict.VALID),
        ("retry", "orders", Verdict.INVALID),
        ("orders", "retry", Verdict.VALID),
        ("retry", "retry", Verdict.UNKNOWN),  # each of the two queues may have a copy of its own
    ],
)
def test_a_fault_of_one_queue_explains_what_was_sent_to_it_and_nothing_else(
    fault_of: str, again_from: str, verdict: Verdict, tmp_path: Path
) -> None:
    config = {**CLIENT, "profile": "artemis", "consumption": "receive", "delivery_mode": "PERSISTENT"}
    configurations = _configurations(config)
    found = _examined(_came_again(again_from=again_from, fault_of=fault_of), tmp_path, configurations)
    assert verify.verdict(found, SPEC).verdict is verdict
    folded = verify.examine_path(tmp_path / "h.jsonl", SPEC, lambda _: configurations, folded_from=0)
    assert comparable(folded) == comparable(found)


def test_a_send_without_a_queue_is_at_rest_when_the_queue_that_delivers_it_is_drained(tmp_path: Path) -> None:
    events = events_of(
        "p send m; p confirmed m; c delivered m clear queue=orders; c processed m; c acknowledge m scope=message;"
        " p drained queue=orders"
    )
    found = _examined(events, tmp_path, _configurations({**CLIENT, "profile": "artemis"}))
    assert found.anomalies[Anomaly.LOSS].unknown is None
    assert verify.verdict(found, SPEC).verdict is Verdict.VALID


@pytest.mark.parametrize(("first", "second", "overtaken"), [("a", "a", ("m1",)), ("a", "b", ())])
def test_what_was_sent_without_a_queue_is_owed_an_order_in_the_one_that_delivers_it(
    first: str, second: str, overtaken: tuple[str, ...], tmp_path: Path
) -> None:
    events = events_of(f"p send m1; p send m2; c delivered m2 clear queue={second}; c delivered m1 clear queue={first}")
    assert _found(_examined(events, tmp_path, _configurations(CLIENT)), Anomaly.REORDER) == overtaken
