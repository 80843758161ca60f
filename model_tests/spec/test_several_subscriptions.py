"""A message that goes to several subscriptions or queues: what each has of its own, and what the publisher is told."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.checking import explore, export
from ackfsm.checking.explore import Answer, Comparison
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Anomaly, Fault, InputError
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import few, in_turn

CRASH, GONE, CUT = Fault.BROKER_CRASH, Fault.CONSUMER_CRASH, Fault.PRODUCER_LINK_LOSS
DURABLE: Mapping[str, object] = {"destination": "durable_subscription"}
TRANSACTED: Mapping[str, object] = {**DURABLE, "ack_mode": "SESSION_TRANSACTED"}
KNOWN: Mapping[str, object] = {**DURABLE, "duplicate_detection": True, "resend_in_doubt": True}


def system(
    bounds: Bounds, settings: Mapping[str, object] = DURABLE, profile: str = "jms", *, of: Specification | None = None
) -> Network:
    """What each subscription sees without anything that watches it."""
    spec = of or shipped()
    return compose(spec, spec.configure(profile, dict(settings)), bounds, ())


def asked(
    bounds: Bounds, settings: Mapping[str, object] = DURABLE, profile: str = "jms", *, of: Specification | None = None
) -> Answer:
    spec = of or shipped()
    answer = explore.check(spec, spec.configure(profile, dict(settings)), bounds, max_states=4_000_000)
    assert answer.exploration.complete
    return answer


def reached(answer: Answer) -> set[str]:
    """The anomalies and the ends of messages that can happen."""
    return {str(found.anomaly) for found in (*answer.findings.values(), *answer.ends.values()) if found.reachable}


def changed(folder: Path, file: str, *edits: tuple[str, str]) -> Specification:
    """The tables with these edits in one file."""
    spec = copy_of_spec(folder)
    replace(spec, file, *edits)
    return tables.load(spec)


def after(network: Network, *labels: str) -> dict[str, str] | None:
    """The states, by machine, after these events; ``None`` if the last one is refused."""
    events, state = {event.label: event for event in network.events}, network.initial
    for place, label in enumerate(labels, start=1):
        step = network.step(state, events[label])
        if step is None:
            assert place == len(labels), f"{label} is refused"
            return None
        state = step
    return dict(zip((one.label for one in network.instances), state, strict=True))


# each subscription has the message, whatever becomes of the others


def seen_by(network: Network, subscription: int) -> Network:
    """``network`` as one subscription sees it: what happens in another one has a name that nobody observes."""
    events = (
        dataclasses.replace(event, subscription=0)
        if event.subscription in {0, subscription}
        else dataclasses.replace(event, name="hidden")
        for event in network.events
    )
    return dataclasses.replace(network, events=tuple(events))


def compared(left: Network, right: Network) -> Comparison:
    """Of all that a history shows."""
    observable = {event.name for event in shipped().events.values() if event.recorded}
    return explore.compare(left, right, observable, max_states=200_000)


ALIKE: list[tuple[str, Mapping[str, object], dict[str, Any]]] = [
    ("jms", DURABLE, {"faults": {GONE}}),
    ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"faults": {CRASH}}),
    ("jms", DURABLE, {"faults": {CRASH, CUT}}),
    ("jms", {"ack_mode": "SESSION_TRANSACTED", "delivery_mode": "NON_PERSISTENT"}, {"faults": {Fault.BROKER_KILL}}),
    ("artemis", DURABLE, {"faults": {CRASH}}),
    ("jms", {**DURABLE, "delivery_mode": "NON_PERSISTENT"}, {"messages": 2, "faults": set()}),
]


@pytest.mark.parametrize(("profile", "settings", "bounds"), few(ALIKE, 2))
def test_each_of_two_subscriptions_sees_exactly_what_the_only_one_sees(
    profile: str, settings: Mapping[str, object], bounds: dict[str, Any]
) -> None:
    """The traces that a history shows, with faults without limit; what happens in the other subscription is hidden."""
    limits = Bounds(max_faults=None, **bounds)
    one = system(limits, settings, profile)
    two = system(dataclasses.replace(limits, subscriptions=2), settings, profile)
    for subscription in (1, 2):
        told = compared(one, seen_by(two, subscription))
        assert told.equal, told.trace


STRUCK = (CRASH, GONE, Fault.LISTENER_EXCEPTION, Fault.PRODUCER_CRASH)


@pytest.mark.parametrize(("profile", "fault"), in_turn(["jms", "artemis", "activemq", "rabbitmq"], STRUCK, 1))
def test_two_durable_subscriptions_allow_what_one_allows_and_a_mix_what_either_allows(
    profile: str, fault: Fault
) -> None:
    for mode in (AckMode.INDIVIDUAL_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED):
        settings = {**DURABLE, "ack_mode": mode}
        bounds = Bounds(faults=frozenset({fault}))
        one, two, mix = (
            asked(dataclasses.replace(bounds, subscriptions=s, non_durable=n), settings, profile)
            for s, n in ((1, 0), (2, 0), (2, 1))
        )
        away = asked(bounds, {**settings, "destination": "non_durable_subscription"}, profile)
        assert reached(two) == reached(one)
        assert reached(mix) == reached(one) | reached(away)
        assert not two.violations
        assert not mix.violations


def test_the_subscriber_that_was_away_gets_its_copy_later_and_the_other_at_once() -> None:
    network = system(Bounds(subscriptions=2, faults=frozenset({GONE})))
    at_once = ["consumer_crash(s2)", "send(m1)", "accept(m1)", "dispatch_first(m1,s1)", "arrive(m1,s1)"]
    at_once += ["delivered_clear(m1,s1)", "processed(m1,s1)", "acknowledge(m1,s1)", "settle(m1,s1)"]
    assert after(network, *at_once, "dispatch_first(m1,s2)") is None, "its subscriber is away"
    state = after(network, *at_once)
    assert state is not None
    assert (state["entry(m1,s1)"], state["entry(m1,s2)"]) == ("removed", "ready")
    back = ["consumer_restart(s2)", "consumer_link_up(s2)", "dispatch_first(m1,s2)", "arrive(m1,s2)"]
    assert after(network, *at_once, *back, "delivered_clear(m1,s2)") is not None


REMOVED = "{to: removed, because: there is one message for all, source: model}"


def removed_for_all(folder: Path) -> Specification:
    """A broker that keeps one message for all subscriptions, and removes it on the first acknowledgement."""
    return changed(
        folder,
        "machines/broker.yaml",
        (
            "    ready:\n      dispatch_first, dispatch_again:\n",
            f"    ready:\n      settle(other_subscription): {REMOVED}\n      dispatch_first, dispatch_again:\n",
        ),
        (
            "time_is_over: {refuse: it is not with a consumer}\n",
            "time_is_over: {refuse: it is not with a consumer}\n    settle(other_subscription): {ignore: x}\n",
        ),
    )


def test_an_acknowledgement_in_one_subscription_does_not_remove_the_copy_of_another(tmp_path: Path) -> None:
    bounds = Bounds(subscriptions=2, max_faults=0)
    assert not reached(asked(bounds))
    mutant = removed_for_all(tmp_path)
    assert reached(asked(bounds, of=mutant)) == {"loss"}
    assert not reached(asked(dataclasses.replace(bounds, subscriptions=1), of=mutant)), "one has it to itself"
    one, two = (system(dataclasses.replace(bounds, subscriptions=number), of=mutant) for number in (1, 2))
    assert compared(one, seen_by(two, 2)).equal is False


def test_a_message_lost_in_one_subscription_is_lost_although_the_other_has_it() -> None:
    """Where the answer does not wait for the sync one record may survive and the other not."""
    bounds = Bounds(subscriptions=2, faults=frozenset({CRASH}))
    unsynced: Mapping[str, object] = {**DURABLE, "journal_sync_non_transactional": False}
    answer = asked(bounds, unsynced, "artemis")
    assert answer.findings[Anomaly.LOSS].reachable
    network = system(bounds, unsynced, "artemis")
    way = ["send(m1)", "accept(m1)", "write_record(m1,s1)", "write_record(m1,s2)", "confirm(m1)", "confirmed(m1)"]
    way += ["broker_crash", "record_survives(m1,s1)", "record_vanishes(m1,s2)"]
    way += ["recover_ready(m1,s1)", "recover_lost(m1,s2)", "broker_restart"]
    state = after(network, *way)
    assert state is not None
    assert (state["entry(m1,s1)"], state["entry(m1,s2)"]) == ("ready", "not_recovered")


def test_consumers_compete_within_their_subscription() -> None:
    """Two of each of two subscriptions: nobody takes what is another subscription's, and each has its message once."""
    spec, bounds = shipped(), Bounds(subscriptions=2, consumers=2, max_faults=0)
    observers = [(name, spec.monitors[name]) for name in ("completed_by_two", "delivered_to_two")]
    found = explore.explore(compose(spec, spec.configure("jms", dict(DURABLE)), bounds, observers))
    assert found.complete
    assert not found.witnesses
    assert after(system(bounds), "send(m1)", "accept(m1)", "dispatch_first(m1,s1,c2)", "dispatch_first(m1,s2,c1)")


def test_an_exclusive_consumer_is_that_of_its_subscription(tmp_path: Path) -> None:
    bounds, alone = Bounds(subscriptions=2, consumers=2, max_faults=0), {**DURABLE, "exclusive_consumer": True}
    both = ["send(m1)", "accept(m1)", "dispatch_first(m1,s1,c2)", "dispatch_first(m1,s2,c1)"]
    state = after(system(bounds, alone), *both)
    assert state is not None
    exclusive = "exclusive_consumer:\n  per: "
    mutant = changed(tmp_path, "machines/broker.yaml", (f"{exclusive}subscription", f"{exclusive}system"))
    assert after(system(bounds, alone, of=mutant), *both) is None, "one of all subscriptions would starve the others"
    assert (state["exclusive_consumer(s1)"], state["exclusive_consumer(s2)"]) == ("chosen_c2", "chosen_c1")


# the answer to the publisher


def answers_for_each(folder: Path) -> Specification:
    """A broker that answers as soon as the copy of one subscription is stored."""
    confirm = "lane: broker, to: producer link, means: the broker answers that it has the message}"
    return changed(folder, "events.yaml", (f"{{per: copy, {confirm}", f"{{per: routed_copy, {confirm}"))


def test_the_answer_waits_until_the_copies_of_all_durable_subscriptions_are_stored(tmp_path: Path) -> None:
    stored = ["send(m1)", "accept(m1)", "write_record(m1,s1)", "sync_record(m1,s1)"]
    rest = ["write_record(m1,s2)", "sync_record(m1,s2)"]
    network = system(Bounds(subscriptions=2))
    assert after(network, *stored, "confirm(m1)") is None
    assert after(network, *stored, *rest, "confirm(m1)") is not None
    bounds = Bounds(subscriptions=2, faults=frozenset({CRASH}))
    assert "loss" not in reached(asked(bounds))
    mutant = answers_for_each(tmp_path)
    answer = asked(bounds, of=mutant)
    assert [finding.anomaly for finding in answer.violations] == ["loss", "early_confirm"]
    assert not asked(dataclasses.replace(bounds, subscriptions=1), of=mutant).violations


def test_the_answer_waits_for_no_subscription_that_is_not_durable() -> None:
    network = system(Bounds(subscriptions=2, non_durable=1))
    stored = ["send(m1)", "accept(m1)", "write_record(m1,s1)", "sync_record(m1,s1)", "confirm(m1)"]
    state = after(network, *stored)
    assert state is not None
    assert (state["record(m1,s1)"], state["record(m1,s2)"]) == ("durable", "none")
    assert after(network, *stored[:2], "confirm(m1)") is None, "there is a durable one"
    both = system(Bounds(subscriptions=2), {"destination": "non_durable_subscription"})
    assert after(both, *stored[:2], "confirm(m1)") is not None, "there is none"


def test_what_a_transaction_sends_to_a_subscription_that_is_not_durable_waits_for_the_commit_too(
    tmp_path: Path,
) -> None:
    mix, executed = Bounds(subscriptions=2, non_durable=1), ["send_in_transaction(m1)", "accept(m1)", "commit_called"]
    executed += ["execute_commit"]
    network = system(mix, TRANSACTED, "artemis")
    assert after(network, *executed, "dispatch_first(m1,s2)") is None
    assert after(network, *executed, "write_commit", "sync_commit", "dispatch_first(m1,s2)") is not None
    mutant = changed(
        tmp_path,
        "machines/broker.yaml",
        (" or stored_beside and commits_atomically and commit_answer_waits_for_sync", ""),
    )
    early = system(mix, TRANSACTED, "artemis", of=mutant)
    assert after(early, *executed, "dispatch_first(m1,s2)") is not None


# the id of a message is stored with all of its copies

ID_ALONE = [
    (
        "machines/journal.yaml",
        "when: duplicate_detection, because: it is stored together with the id",
        "when: not duplicate_detection, because: it is stored together with the id",
        4,
    ),
]
ID_FORGOTTEN = [
    (
        "machines/broker.yaml",
        "kept with what is stored for durable subscriptions\n          when: stored_beside",
        "kept with what is stored for durable subscriptions\n          when: stored_beside and not duplicate_detection",
        1,
    ),
    (
        "machines/broker.yaml",
        "have the id, when: stored_beside",
        "have the id, when: stored_beside and not duplicate_detection",
        1,
    ),
]


@pytest.mark.parametrize(("non_durable", "edits"), [(0, ID_ALONE), (1, ID_FORGOTTEN)])
def test_a_second_copy_is_taken_for_all_subscriptions_or_for_none(
    tmp_path: Path, non_durable: int, edits: list[tuple[str, str, str, int]]
) -> None:
    """Where some of them know the id after a crash and others do not, the broker could do neither, and be stuck."""
    bounds = Bounds(subscriptions=2, non_durable=non_durable, faults=frozenset({CRASH, CUT}))
    answer = asked(bounds, KNOWN, "artemis")
    assert {"duplicate", "reprocessed"} <= reached(answer)
    assert "stuck" not in reached(answer)
    spec = copy_of_spec(tmp_path)
    for file, old, new, times in edits:
        text = (spec / file).read_text(encoding="utf-8")
        assert text.count(old) == times
        (spec / file).write_text(text.replace(old, new), encoding="utf-8")
    assert "stuck" in reached(asked(bounds, KNOWN, "artemis", of=tables.load(spec)))


# what is not there


def test_a_witness_of_several_subscriptions_is_no_history_of_one() -> None:
    answer = asked(Bounds(subscriptions=2, faults=frozenset({GONE})))
    witness = answer.witnesses()[0]
    with pytest.raises(InputError, match=r"^a history is of one subscription; leave --subscriptions out$"):
        export.witness_history(shipped(), witness)
    assert '"subscriptions": 2' in json.dumps(answer.as_json())
    assert "        subscriptions=2,\n" in export.pytest_file(shipped(), [witness])
