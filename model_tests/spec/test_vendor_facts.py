"""Facts about systems, each with the source that says so: defaults, ranges, what a restart and a rollback leave."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ackfsm import tables, verify
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose
from ackfsm.engine.journal import FileJournal
from ackfsm.showing.views import systems
from ackfsm.terms import Configuration, Fault, InputError, SendMode, SpecError, Verdict
from model_tests.support.engine.brokers import accepted, broker_of, received
from model_tests.support.places import DATA
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.notation import events_of, write

NON_PERSISTENT = {"delivery_mode": "NON_PERSISTENT"}


def configured(profile: str, **settings: object) -> Configuration:
    return shipped().configure(profile, settings)


def refusal(profile: str, settings: Mapping[str, object]) -> str:
    with pytest.raises(InputError) as error:
        shipped().configure(profile, settings)
    assert "\n" not in str(error.value)
    return str(error.value)


# what is sent again


def test_solace_sends_again_what_was_not_acknowledged() -> None:
    """``GD_RECONNECT_FAIL_ACTION`` is AUTO_RETRY (SOL-C, SOL-NET); a commit in doubt is told to the application."""
    assert configured("solace").resend_in_doubt
    assert not configured("solace", ack_mode="SESSION_TRANSACTED").resend_in_doubt
    assert not configured("solace-jms").resend_in_doubt


# ranges


@pytest.mark.parametrize(
    ("profile", "settings", "legal", "illegal"),
    [
        ("solace", {}, [1, 50, 255], [0, 256, "none"]),
        ("solace-jms", NON_PERSISTENT, [1, 255], [0, 256, "none"]),
    ],
)
def test_a_publish_window_of_solace_is_from_1_to_255(
    profile: str, settings: dict[str, object], legal: list[object], illegal: list[object]
) -> None:
    """SOL-C DEFAULT_PUB_WINDOW_SIZE; SOL-NET ADPublishWindowSize."""
    for window in legal:
        assert shipped().configure(profile, {**settings, "publish_window": window}).publish_window == window
    for window in illegal:
        said = refusal(profile, {**settings, "publish_window": window})
        assert said.startswith(
            f"the profile {profile} does not have publish_window={window}: a window is from 1 to 255"
        )


def test_ems_redelivers_without_limit_or_from_2_to_255_times() -> None:
    """``maxRedelivery`` is from 2 to 255, 0 is no maximum (EMS-MAXR)."""
    for attempts in (0, 2, 255):
        assert configured("ems", max_delivery_attempts=attempts).max_delivery_attempts == attempts
    for attempts in (1, 256):
        said = refusal("ems", {"max_delivery_attempts": attempts})
        assert said.startswith(f"the profile ems does not have max_delivery_attempts={attempts}: maxRedelivery is from")


# the direct transport


def test_solace_jms_without_the_direct_transport_keeps_non_persistent_messages() -> None:
    """Direct Transport=false: guaranteed messages, a window of 255, and a ``send()`` that waits (SOL-DG; SOL-SEMP)."""
    direct = configured("solace-jms", **NON_PERSISTENT)
    assert (direct.non_persistent_handling, direct.send_mode) == ("direct", SendMode.UNCONFIRMED)
    kept = configured("solace-jms", non_persistent_handling="stored", **NON_PERSISTENT)
    assert (kept.send_mode, kept.publish_window, kept.confirm_threshold) == (SendMode.BLOCKING, 255, 85)
    conditions, environment = shipped().conditions, shipped().environment(kept)
    assert conditions["journalled"].holds(environment)
    assert conditions["confirms_sends"].holds(environment)
    assert not conditions["direct"].holds(environment)
    named = configured("solace-jms", **{"Direct Transport": "false"}, **NON_PERSISTENT)
    assert named == kept


@pytest.mark.parametrize(
    ("settings", "because"),
    [
        ({"send_mode": "blocking"}, "a direct message is never acknowledged"),
        ({"non_persistent_handling": "stored", "send_mode": "unconfirmed"}, "send() waits for the acknowledgement of "),
        ({"non_persistent_handling": "volatile"}, "a NON_PERSISTENT message is direct or guaranteed"),
    ],
)
def test_solace_jms_has_no_transport_between_the_two(settings: dict[str, object], because: str) -> None:
    assert because in refusal("solace-jms", {**NON_PERSISTENT, **settings})


# what a restart leaves


def _recorded(name: str) -> Iterator[dict[str, object]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        next(lines)
        yield from map(json.loads, lines)


def test_rabbitmq_was_recorded_to_flag_every_survivor_of_a_restart() -> None:
    """The first deliveries, once the broker is back, of what was confirmed before it was killed."""
    confirmed, before, seen, flags = set[object](), set[object](), set[object](), list[object]()
    for event in _recorded("rabbitmq-b-confirm-manual-broker-kill.jsonl.gz"):
        message = event.get("message")
        if event["event"] == "confirmed":
            confirmed.add(message)
        elif event["event"] == "recovered" and event["fault"] == Fault.BROKER_KILL:
            before |= confirmed
        elif event["event"] == "delivered":
            if message in before - seen:
                flags.append(event["redelivered"])
            seen.add(message)
    assert len(flags) > 100
    assert all(flags)


FLAGS = {
    False: {"dispatch_first(m1)"},
    True: {"dispatch_again(m1)"},
    "maybe": {"dispatch_first(m1)", "dispatch_again(m1)"},
}
"""By whether a restart marks what nobody has seen, how it may be sent after one."""


@pytest.mark.parametrize(
    ("profile", "settings", "marks"),
    [
        ("rabbitmq", {}, "maybe"),
        ("rabbitmq", {"x-queue-type": "classic"}, "maybe"),
        ("rabbitmq", {"x-queue-version": "2"}, "maybe"),
        ("rabbitmq", {"x-queue-type": "quorum"}, False),
        ("rabbitmq", {"restart_marks_redelivered": "true"}, True),
        ("jms", {}, False),
        ("artemis", {}, False),
    ],
)
def test_a_restart_marks_what_survives_where_the_vendor_does(
    profile: str,
    settings: dict[str, object],
    marks: bool | str,  # noqa: FBT001
) -> None:
    assert configured(profile, **settings).restart_marks_redelivered == marks
    bounds = Bounds(faults=frozenset({Fault.BROKER_KILL}))
    system = explore.Interpreter(compose(shipped(), configured(profile, **settings), bounds))
    for event in ("send", "accept", "write_record", "sync_record", "confirm", "confirmed"):
        system.fire(f"{event}(m1)")
    for event in ("broker_kill", "recover_ready(m1)", "broker_restart", "consumer_link_up"):
        system.fire(event)
    dispatched = {event.label for event in system.enabled()} & {"dispatch_first(m1)", "dispatch_again(m1)"}
    assert dispatched == FLAGS[marks]


@pytest.mark.parametrize(("seen", "flags"), [(False, {True, False}), (True, {True})])
def test_after_a_restart_of_rabbitmq_what_was_seen_is_flagged_and_the_rest_may_be(
    seen: bool,  # noqa: FBT001
    flags: set[bool],
    tmp_path: Path,
) -> None:
    """Measured with 3.10.8: kill and stop, classic and quorum queues (RMQ-RESTART)."""
    before = "c delivered m1 clear session=s1; c failed m1 session=s1;" if seen else ""
    down = "n fault fault=broker_kill; n recovered fault=broker_kill;"
    valid = set()
    for flag, said in ((True, "flagged"), (False, "clear")):
        after = (
            f"c delivered m1 {said} session=s2; c processed m1 session=s2; c acknowledge m1 session=s2 scope=message"
        )
        text = f"p send m1; p confirmed m1; {before}{down}{after}; n drained"
        events = [event | {"t": event["t"] * 10**9, "queue": "q"} for event in events_of(text)]
        findings = verify.examine(verify.read(write(events, tmp_path / "h.jsonl")), shipped(), configured("rabbitmq"))
        valid |= {flag} if verify.verdict(findings, shipped()).verdict is Verdict.VALID else set()
    assert valid == flags


@pytest.mark.parametrize("how", ["restart", "another broker"])
@pytest.mark.parametrize("marks", [True, False])
def test_the_engine_marks_what_survives(how: str, tmp_path: Path, *, marks: bool) -> None:
    chosen = {"restart_marks_redelivered": marks}
    broker = broker_of("rabbitmq", journal=FileJournal(tmp_path / "journal"), send_mode="blocking", **chosen)
    broker.connect().session().producer("q").send("tea")
    if how == "restart":
        broker.kill()
        broker.restart()
    else:
        broker.close()
        broker = broker_of("rabbitmq", journal=FileJournal(tmp_path / "journal"), **chosen)
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        message = received(session.consumer("q"))
        assert (message.redelivered, message.delivery_count) == ((True, 2) if marks else (False, 1))
        message.acknowledge()
    if how == "restart":
        accepted(broker, tmp_path)


# numbers, and what the tables do not have


def test_what_is_known_of_a_system_and_not_in_the_tables_is_said() -> None:
    profiles = shipped().profiles
    numbers = {(name, c.name): c.number for name, table in profiles.items() for c in table.constants}
    assert numbers["ems", "prefetch of a queue"] == configured("ems").prefetch
    assert numbers["ems", "prefetch of a topic"] == 64
    limit = numbers["rabbitmq", "delivery-limit of a quorum queue"]
    assert f"max_delivery_attempts={limit + 1}" in refusal("rabbitmq", {"delivery-limit": str(limit)})
    assert configured("rabbitmq", max_delivery_attempts=limit + 1).max_delivery_attempts == 21
    unmodelled = {(name, d.source): d.what for name, table in profiles.items() for d in table.deviates if d.unmodelled}
    durable = {"ack_mode": "NO_ACKNOWLEDGE", "destination": "durable_subscription"}
    assert "durable subscribers cannot consume without acknowledging" in refusal("ems", durable)
    assert "prefetch=none" in unmodelled["ems", "EMS-PREF"]
    assert not configured("rabbitmq").rollback_requeues, "it was not in the tables before"


def test_a_range_is_told_on_the_page_and_as_json() -> None:
    told = systems.system_json(shipped(), "ems", ())["refuses"]
    assert isinstance(told, list)
    ranges = [row["outside"] for row in told if row["outside"] is not None]
    assert ranges == [{"key": "max_delivery_attempts", "least": 2, "most": 255, "or": 0}]
    assert "any `max_delivery_attempts` but 0, or from 2 to 255" in systems.system_page(shipped(), "ems", ())


@pytest.mark.parametrize(("key", "said"), [("send_mode", "send_mode is no number"), ("sends", "no setting 'sends'")])
def test_a_range_of_no_number_is_damage(key: str, said: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "profiles/ems.yaml", ("outside: {key: max_delivery_attempts", f"outside: {{key: {key}"))
    with pytest.raises(SpecError, match=said):
        tables.load(spec)
