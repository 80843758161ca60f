"""Several consumers of one queue: what the tables say of them, each question with two messages too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds, compose
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Anomaly, Fault, InputError, Profile
from model_tests.support.spec.steps import reached
from model_tests.support.tables import copy_of_spec, replace, shipped


def asked(
    settings: Mapping[str, object] | None = None,
    *,
    profile: str = "jms",
    faults: Collection[Fault] = (),
    messages: int = 1,
    consumers: int = 2,
) -> Answer:
    """What ``check`` says with these faults without limit; a search that ends at a limit is no answer."""
    bounds = Bounds(messages=messages, consumers=consumers, faults=frozenset(faults), max_faults=None)
    configuration = shipped().configure(profile, dict(settings or {}))
    answer = explore.check(shipped(), configuration, bounds, max_states=1_500_000)
    assert answer.exploration.complete
    return answer


def steps(answer: Answer, anomaly: Anomaly) -> list[str]:
    """A shortest way to ``anomaly``."""
    return [event.label for event in answer.findings[anomaly].steps]


@pytest.mark.parametrize("consumption", ["listener", "receive"])
@pytest.mark.parametrize("mode", AckMode)
def test_without_a_fault_no_message_is_completed_by_two_consumers(mode: AckMode, consumption: str) -> None:
    settings = {"ack_mode": mode, "consumption": consumption}
    assert reached(asked(settings, messages=2)) == set()


@pytest.mark.parametrize("profile", Profile)
def test_nor_in_any_system(profile: Profile) -> None:
    for settings in ({}, {"ack_mode": "SESSION_TRANSACTED"}):
        try:
            answer = asked(settings, profile=profile, messages=2)
        except InputError:
            continue
        assert reached(answer) == set()


@pytest.mark.parametrize(
    "mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED", "DUPS_OK_ACKNOWLEDGE"]
)
def test_the_crash_of_one_consumer_gives_its_message_to_the_other_one(mode: str) -> None:
    answer = asked({"ack_mode": mode}, faults=[Fault.CONSUMER_CRASH])
    assert reached(answer) == {Anomaly.DUPLICATE, Anomaly.REPROCESSED}
    assert answer.keeps_promises
    taken = steps(answer, Anomaly.DUPLICATE)
    delivered = [label for label in taken if label.startswith("delivered")]
    assert {label.partition("(")[2] for label in delivered} == {"m1,c1)", "m1,c2)"} or len(delivered) == 2


def test_what_a_client_had_prefetched_may_come_after_another_consumer_acknowledged_it() -> None:
    """With one consumer neither can happen: the broker waits for the session that it takes the message from."""
    faults = [Fault.CONSUMER_LINK_LOSS]
    client = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
    assert reached(asked(client, faults=faults, consumers=1)) == {Anomaly.DUPLICATE, Anomaly.REPROCESSED}
    answer = asked(client, faults=faults)
    assert reached(answer) >= {Anomaly.UNFLAGGED_DUPLICATE, Anomaly.RESURRECTION}
    assert answer.keeps_promises, "no promise is about what a client does with a broken connection"
    way = steps(answer, Anomaly.RESURRECTION)
    held = next(label for label in way if label.startswith("arrive"))
    lost = next(i for i, label in enumerate(way) if label.startswith("consumer_link_loss"))
    acknowledged = next(i for i, label in enumerate(way) if label.startswith("acknowledged"))
    assert way.index(held) < lost < acknowledged < len(way) - 1
    assert way[-1] == held.replace("arrive", "delivered_clear")


def watched(
    name: str,
    settings: Mapping[str, object],
    *,
    faults: Collection[Fault] = (),
    specification: Specification | None = None,
) -> bool:
    """Whether this monitor can be reached with two messages and two consumers."""
    spec = specification or shipped()
    bounds = Bounds(messages=2, consumers=2, faults=frozenset(faults), max_faults=1 if faults else 0)
    network = compose(spec, spec.configure("jms", dict(settings)), bounds, [(name, spec.monitors[name])])
    return name in explore.explore(network).witnesses


def test_an_exclusive_consumer_has_all_messages_and_the_others_none() -> None:
    exclusive = {"exclusive_consumer": True}
    assert watched("delivered_to_two", {})
    assert not watched("delivered_to_two", exclusive)
    assert watched("delivered_to_two", exclusive, faults=[Fault.CONSUMER_CRASH]), "another one takes its place"


def test_the_monitor_of_a_message_that_two_complete_is_reached_by_a_crash_alone() -> None:
    assert not watched("completed_by_two", {})
    assert watched("completed_by_two", {}, faults=[Fault.CONSUMER_CRASH])


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_a_message_is_not_taken_from_a_consumer_that_lives(mode: str, tmp_path: Path) -> None:
    """A table that forgets who holds a message takes it from one consumer as another one crashes."""
    spec = copy_of_spec(tmp_path)
    replace(spec, "machines/broker.yaml", ("  held: [dispatched, acked_in_transaction]\n", ""))
    forgetful = tables.load(spec)
    taken = "taken_from_the_living"
    faults = [Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS]
    assert not watched(taken, {"ack_mode": mode}, faults=faults)
    assert watched(taken, {"ack_mode": mode}, faults=faults, specification=forgetful)


def test_three_consumers_are_no_more_than_two_without_a_fault() -> None:
    assert reached(asked(consumers=3, messages=2)) == set()
