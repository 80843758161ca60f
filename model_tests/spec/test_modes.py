"""What the modes of every system come to with two messages: scopes, prefetch, windows, transactions, limits.

Like ``test_facts.py``: nothing of it is coded, it follows from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from ackfsm.checking import explore
from ackfsm.checking.explore import Slicer
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE

LOSS, STUCK, TORN, MISSING = Anomaly.LOSS, Anomaly.STUCK, Anomaly.TORN_TRANSACTION, Anomaly.MISSING_OUTCOME
TRANSACTED = {"ack_mode": "SESSION_TRANSACTED"}
CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
THRESHOLD = {"publish_window": 2, "confirm_threshold": 2}

sends = pytest.mark.parametrize("send", ["blocking", "asynchronous"])


def found(  # noqa: PLR0913 - the bounds of a check, by name
    chosen: Mapping[str, object],
    *,
    profile: str = "jms",
    messages: int = 2,
    faults: Collection[Fault] = tuple(Fault),
    max_faults: int | None = 1,
    actions: Collection[str] = (),
    without: Collection[str] = (),
) -> explore.Answer:
    bounds = Bounds(
        messages=messages,
        faults=frozenset(faults),
        max_faults=max_faults,
        actions=frozenset(actions),
        without=frozenset(without),
    )
    answer = explore.check(shipped(), shipped().configure(profile, chosen), bounds)
    assert answer.exploration.complete
    return answer


def reached(chosen: Mapping[str, object], **more: object) -> set[Anomaly]:
    findings = found(chosen, **more).findings  # type: ignore[arg-type]
    return {anomaly for anomaly, finding in findings.items() if finding.reachable}


def steps(chosen: Mapping[str, object], anomaly: Anomaly, **more: object) -> list[str]:
    return [event.label for event in found(chosen, **more).findings[anomaly].steps]  # type: ignore[arg-type]


# cumulative acknowledgement


@pytest.mark.parametrize(("scope", "covered"), [("session", True), ("up_to", False), ("message", False)])
def test_acknowledging_the_first_covers_the_second_in_scope_session_only(scope: str, covered: bool) -> None:  # noqa: FBT001
    """Acknowledged with the first while the application is busy with it, the second is gone if the consumer dies."""
    chosen = CLIENT | {"client_ack_scope": scope}
    lost = reached(chosen, faults=[Fault.CONSUMER_CRASH]) & {Anomaly.UNPROCESSED}
    assert bool(lost) is covered
    if covered:
        way = steps(chosen, Anomaly.UNPROCESSED, faults=[Fault.CONSUMER_CRASH])
        assert way.index("delivered_clear(m2)") < way.index("acknowledge(m1)") < way.index("consumer_crash")
        assert "acknowledge(m2)" not in way


@pytest.mark.parametrize(("scope", "enough"), [("session", True), ("up_to", True), ("message", False)])
def test_one_acknowledgement_of_the_last_message_settles_both(scope: str, enough: bool) -> None:  # noqa: FBT001
    """An application that acknowledges only once: with scope message the first stays in flight for ever."""
    network = explore.Interpreter(_network(CLIENT | {"client_ack_scope": scope}))
    for message in ("m1", "m2"):
        for event in ("send", "accept", "write_record", "sync_record", "confirm", "confirmed"):
            network.fire(f"{event}({message})")
        for event in ("dispatch_first", "arrive", "delivered_clear", "processed"):
            network.fire(f"{event}({message})")
    network.fire("acknowledge(m2)")
    enabled = {event.label for event in network.enabled()}
    assert ("settle(m1)" in enabled) is enough
    assert ("acknowledge(m1)" in enabled) is not enough


UP_TO = CLIENT | {"client_ack_scope": "up_to"}


@pytest.mark.parametrize(("acknowledged", "covered"), [("m1", {"m1", "m2"}), ("m2", {"m2"})])
def test_up_to_a_message_covers_what_was_delivered_before_it(acknowledged: str, covered: set[str]) -> None:
    """The first message, of which the listener has thrown, has come again behind the second one."""
    system = _first_one_again(UP_TO | {"listener_exception": "redeliver"}, messages=2)
    assert _covered(system, acknowledged, messages=2) == covered


@pytest.mark.parametrize("exception", ["swallow", "next_message"])
def test_up_to_a_message_covers_one_whose_listener_has_thrown_before(exception: str) -> None:
    system = _first_one_again(UP_TO | {"listener_exception": exception}, messages=2)
    assert _covered(system, "m2", messages=2) == {"m1", "m2"}


@pytest.mark.parametrize(
    ("again", "acknowledged", "covered"),
    [
        (False, "m2", {"m1", "m2"}),
        (False, "m1", {"m1"}),
        (True, "m2", {"m2"}),  # the first one has come again behind it
    ],
)
def test_of_three_messages_none_is_covered_that_was_delivered_after(
    again: bool,  # noqa: FBT001
    acknowledged: str,
    covered: set[str],
) -> None:
    system = _first_one_again(UP_TO | {"listener_exception": "redeliver" if again else "acknowledge"}, messages=3)
    assert _covered(system, acknowledged, messages=3) == covered


def _first_one_again(chosen: Mapping[str, object], messages: int) -> explore.Interpreter:
    """All messages are with the application; of the first one its listener has thrown."""
    bounds = Bounds(messages=messages, faults=frozenset({Fault.LISTENER_EXCEPTION}), max_faults=None)
    system = explore.Interpreter(compose(shipped(), shipped().configure("jms", chosen), bounds))
    for number in range(1, messages + 1):
        for event in ("send", "accept", "write_record", "sync_record", "confirm", "confirmed"):
            system.fire(f"{event}(m{number})")
        for event in ("dispatch_first", "arrive", "delivered_clear"):
            system.fire(f"{event}(m{number})")
        system.fire(f"{'processed' if number > 1 else 'listener_exception'}(m{number})")
    if "requeue(m1)" in {event.label for event in system.enabled()}:
        for event in ("requeue", "dispatch_again", "arrive", "delivered_flagged", "processed"):
            system.fire(f"{event}(m1)")
    return system


def _covered(system: explore.Interpreter, acknowledged: str, messages: int) -> set[str]:
    """Those of which the broker has read an acknowledgement, once one of them was acknowledged."""
    system.fire(f"acknowledge({acknowledged})")
    every = [f"m{number}" for number in range(1, messages + 1)]
    for _ in every:
        for message in every:
            if f"settle({message})" in {event.label for event in system.enabled()}:
                system.fire(f"settle({message})")
    states = {i.label: state for i, state in zip(system.network.instances, system.state, strict=True)}
    return {message for message in every if states[f"ack_frame({message})"] == "answer_due"}


def _network(chosen: Mapping[str, object]) -> Network:
    return compose(shipped(), shipped().configure("jms", chosen), Bounds(messages=2))


def test_a_lazy_session_may_repeat_several_messages_and_sends_fewer_acknowledgements() -> None:
    chosen: dict[str, object] = {"ack_mode": "DUPS_OK_ACKNOWLEDGE"}
    assert Anomaly.REPROCESSED in reached(chosen, faults=[Fault.CONSUMER_CRASH])
    system = explore.Interpreter(_network(chosen))
    for message in ("m1", "m2"):
        for event in ("send", "accept", "write_record", "sync_record", "confirm", "confirmed"):
            system.fire(f"{event}({message})")
        for event in ("dispatch_first", "arrive", "delivered_clear", "processed"):
            system.fire(f"{event}({message})")
    system.fire("acknowledge(m2)")
    assert "acknowledge(m1)" not in {event.label for event in system.enabled()}


# prefetch


@pytest.mark.parametrize(("prefetch", "starved"), [(1, True), (2, False), (0, False)])
def test_a_consumer_that_never_acknowledges_gets_no_more_than_its_prefetch(prefetch: int, starved: bool) -> None:  # noqa: FBT001
    chosen = CLIENT | {"prefetch": prefetch}
    seen = reached(chosen, profile="qpid", faults=[], max_faults=0, without=["acknowledge"])
    assert STUCK in seen
    assert (LOSS in seen) is starved


@pytest.mark.parametrize("mode", ["AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "NO"])
def test_with_a_prefetch_of_one_everything_still_comes(mode: str) -> None:
    seen = reached({"ack_mode": f"{mode}_ACKNOWLEDGE", "prefetch": 1}, faults=[], max_faults=0)
    assert seen == set()


# publish window, threshold, timer


@sends
def test_a_publisher_with_a_threshold_and_no_timer_can_be_stuck(send: str) -> None:
    chosen = THRESHOLD | {"send_mode": send}
    for messages in (1, 2):
        seen = reached(chosen | {"confirm_timer": False}, messages=messages, faults=[], max_faults=0)
        assert (STUCK in seen) is (messages == 1 or send == "blocking")
        assert reached(chosen | {"confirm_timer": True}, messages=messages, faults=[], max_faults=0) == set()
    assert STUCK not in reached(chosen | {"confirm_timer": True})


@sends
def test_ack_immediately_needs_no_timer(send: str) -> None:
    chosen = THRESHOLD | {"send_mode": send, "confirm_timer": False, "ack_immediately": True}
    assert not reached(chosen) & {STUCK, MISSING}


def test_a_windowed_event_never_covers_what_the_broker_has_not_accepted() -> None:
    """In every state in which a message is covered by a later event, its entry has been accepted."""
    chosen = {"send_mode": "asynchronous", "ack_event_mode": "WINDOWED", "publish_window": 2, "confirm_threshold": 1}
    configuration = shipped().configure("jms", chosen | {"confirm_timer": True})
    network = compose(shipped(), configuration, Bounds(messages=2, faults=frozenset(Fault)))
    places = {instance.label: number for number, instance in enumerate(network.instances)}
    covered = 0
    frontier, known = [network.initial], {network.initial}
    while frontier:
        state = frontier.pop()
        if state[places["publisher_confirm(m1)"]] == "covered_by_range":
            covered += 1
            assert state[places["entry(m1)"]] not in {"absent", "discarded"}
        for event in network.events:
            after = network.step(state, event)
            if after is not None and after not in known and len(known) < 20_000:
                known.add(after)
                frontier.append(after)
    assert covered


# transactions


def test_a_transaction_is_never_torn_with_sync_and_can_be_lost_whole_without() -> None:
    synced = reached(TRANSACTED, profile="artemis", max_faults=2)
    assert not synced & {TORN, LOSS}
    way = steps(TRANSACTED | {"journal_sync_transactional": False}, LOSS, profile="artemis")
    assert {"commit_returned", "broker_crash", "commit_vanishes", "recover_lost(m1)", "recover_lost(m2)"} <= set(way)


def test_what_was_rolled_back_never_comes_and_what_failed_comes_again() -> None:
    assert Anomaly.DIRTY_DELIVERY not in reached(TRANSACTED, actions=["rollback", "recover"])
    way = steps(TRANSACTED, Anomaly.DUPLICATE, faults=[Fault.LISTENER_EXCEPTION], messages=1)
    assert way.index("listener_exception(m1)") < way.index("consumer_rollback") < way.index("delivered_flagged(m1)")


def test_a_commit_in_doubt_that_is_repeated_makes_a_duplicate_unless_ids_are_known() -> None:
    chosen = TRANSACTED | {"resend_in_doubt": True}
    losses = [Fault.PRODUCER_LINK_LOSS]
    assert Anomaly.UNFLAGGED_DUPLICATE in reached(chosen, faults=losses, messages=1)
    assert reached(chosen | {"duplicate_detection": True}, faults=losses, messages=1) == set()


def test_rabbitmq_confirms_a_commit_before_it_is_stored() -> None:
    assert {LOSS, TORN, Anomaly.RESURRECTION} <= reached(TRANSACTED, profile="rabbitmq", faults=[Fault.BROKER_KILL])


# limits, counts, order


def test_a_message_that_fails_as_often_as_it_may_is_dead_lettered_and_not_lost() -> None:
    chosen: dict[str, object] = {"max_delivery_attempts": 2}
    seen = reached(chosen, profile="artemis", messages=1, faults=[Fault.LISTENER_EXCEPTION], max_faults=2)
    assert seen == {Anomaly.DUPLICATE}
    endless = reached({"max_delivery_attempts": 0}, messages=1, faults=[Fault.LISTENER_EXCEPTION], max_faults=2)
    assert endless == {Anomaly.DUPLICATE}


def test_ems_forgets_the_count_and_keeps_the_flag() -> None:
    assert Anomaly.COUNT_REGRESSION in reached({}, profile="ems", messages=1, faults=[Fault.BROKER_KILL])
    assert Anomaly.COUNT_REGRESSION not in reached({}, messages=1, faults=[Fault.BROKER_KILL])


def test_a_competing_consumer_that_dies_disturbs_the_order_where_it_leaves_no_mark() -> None:
    assert Anomaly.REORDER in reached({}, profile="activemq", actions=["taken_elsewhere"], faults=[], max_faults=0)
    assert Anomaly.REORDER not in reached({}, actions=["taken_elsewhere"], faults=[], max_faults=0)


@pytest.mark.parametrize(
    ("profile", "delivery"), [("ems", "RELIABLE"), ("solace", "DIRECT"), ("solace-jms", "NON_PERSISTENT")]
)
def test_what_nobody_confirms_is_lost_without_a_word(profile: str, delivery: str) -> None:
    way = steps({"delivery_mode": delivery}, LOSS, profile=profile, messages=1, faults=[Fault.REJECTION])
    assert way in (
        ["send(m1)", "send_returned(m1)", "rejection(m1)"],
        ["send(m1)", "rejection(m1)", "send_returned(m1)"],
    )


def test_solace_keeps_non_persistent_messages_as_it_keeps_persistent_ones() -> None:
    """What can happen of the machines is the same in both, so that one search is of both."""
    limits = Bounds(messages=2 if WHOLE else 1, faults=frozenset(Fault), max_faults=1)
    modes = [{"delivery_mode": mode} for mode in ("PERSISTENT", "NON_PERSISTENT", "DIRECT")]
    keys = [Slicer(compose(shipped(), shipped().configure("solace", mode), limits)).slice().key for mode in modes]
    assert keys[0] == keys[1] != keys[2]
    assert LOSS not in reached(modes[1], profile="solace", messages=limits.messages)


@pytest.mark.parametrize("profile", ["artemis", "qpid-jms"])
def test_an_acknowledgement_before_delivery_loses_what_is_on_its_way(profile: str) -> None:
    before = reached({"ack_mode": "PRE_ACKNOWLEDGE"}, profile=profile, messages=1, faults=[Fault.CONSUMER_LINK_LOSS])
    assert LOSS in before


def test_qpid_jms_gives_back_unflagged_after_an_exception() -> None:
    way = steps({}, Anomaly.UNFLAGGED_DUPLICATE, profile="qpid-jms", messages=1, faults=[Fault.LISTENER_EXCEPTION])
    assert way.count("delivered_clear(m1)") == 2
