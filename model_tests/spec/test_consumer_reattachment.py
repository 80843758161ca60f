"""A consumer's session that outlives its connection: it keeps what it has had, and nothing is redelivered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking.explore import Interpreter, Refused
from ackfsm.checking.network import Bounds, compose
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Anomaly, Fault, InputError, Profile
from model_tests.support.spec.steps import asked, can, reached
from model_tests.support.tables import copy_of_spec, replace, shipped

REATTACHED: dict[str, object] = {"consumer_reattachment": True, "publish_window": 10}
LOSS = Fault.CONSUMER_LINK_LOSS
MODES = [mode for mode in AckMode if not mode.startswith("EXPLICIT")]


def running(chosen: Mapping[str, object] = REATTACHED, spec: Specification | None = None) -> Interpreter:
    spec = spec or shipped()
    chosen = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "send_mode": "asynchronous", "block_on_acknowledge": True, **chosen}
    bounds = Bounds(messages=2, faults=frozenset({LOSS}), max_faults=None)
    return Interpreter(compose(spec, spec.configure("artemis", chosen), bounds))


@pytest.mark.parametrize("consumption", ["receive", "listener"])
@pytest.mark.parametrize("mode", MODES)
def test_however_often_the_connection_breaks_nothing_goes_wrong(mode: AckMode, consumption: str) -> None:
    settings = {**REATTACHED, "ack_mode": mode, "consumption": consumption}
    for profile in ("artemis", "jms"):
        if mode in shipped().supported_values(profile, "ack_mode"):
            assert reached(asked(settings, [LOSS], profile=profile)) == set()
            assert reached(asked(settings, [LOSS], profile=profile, messages=2, max_faults=2)) == set()


@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_with_two_consumers_each_keeps_its_own(mode: str) -> None:
    assert reached(asked({**REATTACHED, "ack_mode": mode}, [LOSS], consumers=2, max_faults=2)) == set()


def test_the_session_keeps_what_is_prefetched_and_what_is_unacknowledged() -> None:
    system = running()
    for message in ("m1", "m2"):
        for step in ("send", "accept", "dispatch_first", "arrive"):
            system.fire(f"{step}({message})")
    for step in ("delivered_clear(m1)", "processed(m1)", "consumer_link_loss"):
        system.fire(step)
    with pytest.raises(Refused):
        system.fire("consumer_link_up")
    system.fire("acknowledge(m1)")
    with pytest.raises(Refused, match="frames need a connection"):
        system.fire("settle(m1)")
    for step in ("write_record(m1)", "sync_record(m1)", "write_record(m2)", "sync_record(m2)", "consumer_reattached"):
        system.fire(step)
    for step in ("settle", "write_ack_record", "sync_ack_record", "confirm_acknowledgement", "acknowledged"):
        system.fire(f"{step}(m1)")
    for step in ("delivered_clear", "processed", "acknowledge", "settle"):
        system.fire(f"{step}(m2)")


def test_a_delivery_and_a_commit_on_their_way_are_replayed() -> None:
    system = running({**REATTACHED, "ack_mode": "SESSION_TRANSACTED"})
    for step in ("send_in_transaction", "accept"):
        system.fire(f"{step}(m1)")
        system.fire(f"{step}(m2)")
    for step in ("commit_called", "execute_commit", "write_commit", "sync_commit", "dispatch_first(m1)"):
        system.fire(step)
    for step in ("consumer_link_loss", "consumer_reattached", "arrive(m1)", "delivered_clear(m1)", "processed(m1)"):
        system.fire(step)
    for step in ("acknowledge(m1)", "settle(m1)", "consumer_commit_called", "consumer_link_loss"):
        system.fire(step)
    with pytest.raises(Refused, match="waits for the session to be re-attached"):
        system.fire("consumer_commit_failed")
    for step in ("consumer_reattached", "execute_consumer_commit"):
        system.fire(step)


@pytest.mark.parametrize("mode", MODES)
def test_with_the_session_lost_it_is_as_without_re_attachment(mode: AckMode) -> None:
    """A buffer has overflowed, or the client was away for too long: what was not acknowledged is redelivered."""
    if mode not in shipped().supported_values("artemis", "ack_mode"):
        return
    faults = (LOSS, Fault.CONSUMER_CRASH)
    lost = asked({**REATTACHED, "ack_mode": mode}, faults, actions=["consumer_session_lost"])
    assert reached(lost) == reached(asked({"publish_window": 10, "ack_mode": mode}, faults))


@pytest.mark.parametrize("fault", [Fault.BROKER_KILL, Fault.BROKER_CRASH, Fault.CONSUMER_CRASH])
def test_with_the_broker_or_the_client_the_session_is_gone(fault: Fault) -> None:
    both, alone = (asked({**each, "publish_window": 10}, (LOSS, fault)) for each in (REATTACHED, {}))
    assert reached(both) == reached(alone)
    assert Anomaly.DUPLICATE in reached(both)


def test_a_subscription_that_is_not_durable_goes_on_with_its_session() -> None:
    settings = {"destination": "non_durable_subscription", "publish_window": 10}
    assert Anomaly.LOSS not in reached(asked({**settings, "consumer_reattachment": True}, [LOSS]))
    plain = asked(settings, [LOSS])
    reattached = asked({**settings, "consumer_reattachment": True}, [LOSS])
    assert plain.ends["missed_unprocessed"].reachable
    assert not reattached.ends["missed_unprocessed"].reachable


def test_it_needs_a_window_and_belongs_to_artemis() -> None:
    for window in (None, 0):
        with pytest.raises(InputError, match="neither side keeps what it has sent"):
            shipped().configure("artemis", {"consumer_reattachment": True, "publish_window": window})
    for profile in set(Profile) - {Profile.ARTEMIS, Profile.JMS}:
        assert shipped().supported_values(profile, "consumer_reattachment") == (False,)
    assert not any(shipped().configure(profile).consumer_reattachment for profile in Profile)


DELIVERED = ("send(m1)", "accept(m1)", "dispatch_first(m1)", "arrive(m1)", "delivered_clear(m1)", "processed(m1)")
ON_ITS_WAY = (
    "      settle: *acknowledgement_read\n"
    "      consumer_link_loss:\n"
    "        - {ignore: the session at the broker goes on, when: consumer_reattachment,"
)
GOES_ON = ("consumer_link_loss", "consumer_reattached", "settle(m1)")
MUTANTS = {
    "the call fails although its session may come back": (
        "machines/link.yaml",
        '      ack_in_doubt, consumer_commit_failed: {refuse: "the call waits',
        '      ack_in_doubt, consumer_commit_failed: {ignore: "the call waits',
        (*DELIVERED, "acknowledge(m1)", "consumer_link_loss", "ack_in_doubt(m1)"),
    ),
    "an acknowledgement is lost with its connection": (
        "machines/consumer.yaml",
        ON_ITS_WAY,
        ON_ITS_WAY.replace("consumer_reattachment", "consumer_reattachment and direct"),
        (*DELIVERED, "acknowledge(m1)", *GOES_ON),
    ),
    "the broker takes back what a detached session has": (
        "machines/broker.yaml",
        '{ignore: "the session at the broker goes on, and has it", when: consumer_reattachment,',
        '{ignore: "the session at the broker goes on, and has it", when: consumer_reattachment and direct,',
        (*DELIVERED, "acknowledge(m1)", *GOES_ON),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    """Each of these runs is possible with one of the two, the tables as they are and the mutant."""
    file, old, new, steps = MUTANTS[name]
    changed = copy_of_spec(tmp_path)
    replace(changed, file, (old, new))
    assert can(running(), *steps) is not can(running(spec=tables.load(changed)), *steps)
