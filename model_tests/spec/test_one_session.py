"""Several consumers of one session: what they share, what is of each, and what their acknowledgements cover."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
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
from model_tests.support.whole import few

BREAKS = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})


def asked(  # noqa: PLR0913 - one name for each bound
    settings: Mapping[str, object],
    *,
    profile: str = "jms",
    faults: Collection[Fault] = (),
    most: int | None = None,
    messages: int = 1,
    consumers: int = 2,
) -> Answer:
    """What ``check`` says where all consumers are of one session; a search that ends at a limit is no answer."""
    faults = frozenset(faults)
    bounds = Bounds(messages=messages, consumers=consumers, one_session=consumers > 1, faults=faults, max_faults=most)
    answer = explore.check(shipped(), shipped().configure(profile, dict(settings)), bounds, max_states=4_000_000)
    assert answer.exploration.complete
    return answer


def watched(
    name: str,
    settings: Mapping[str, object],
    *,
    faults: Collection[Fault] = (),
    one_session: bool = True,
    specification: Specification | None = None,
) -> bool:
    """Whether this monitor can be reached with two messages and two consumers."""
    spec = specification or shipped()
    most = 1 if faults else 0
    bounds = Bounds(messages=2, consumers=2, one_session=one_session, faults=frozenset(faults), max_faults=most)
    network = compose(spec, spec.configure("jms", dict(settings)), bounds, [(name, spec.monitors[name])])
    exploration = explore.explore(network)
    assert exploration.complete
    return name in exploration.witnesses


@pytest.mark.parametrize("consumption", ["listener", "receive"])
@pytest.mark.parametrize("mode", AckMode)
def test_without_a_fault_one_session_does_nothing_wrong_with_two_consumers(mode: AckMode, consumption: str) -> None:
    assert reached(asked({"ack_mode": mode, "consumption": consumption}, messages=2)) == set()


def _legal(mode: AckMode) -> Iterator[tuple[Profile, AckMode]]:
    for profile in Profile:
        with contextlib.suppress(InputError):
            shipped().configure(profile, {"ack_mode": mode})
            yield profile, mode


@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        pair
        for mode in (AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED)
        for pair in few([*_legal(mode)], 3)
    ],
)
def test_of_one_message_one_session_knows_no_more_with_two_consumers_than_with_one(
    profile: Profile, mode: AckMode
) -> None:
    """All that can go wrong is of the session, its process and its connection."""
    settings: dict[str, object] = {"ack_mode": mode}
    if mode is AckMode.SESSION_TRANSACTED:  # with two copies there are more states than are searched here
        settings["resend_in_doubt"] = False
    one = asked(settings, profile=profile, faults=[*BREAKS, Fault.BROKER_CRASH], most=2, consumers=1)
    two = asked(settings, profile=profile, faults=[*BREAKS, Fault.BROKER_CRASH], most=2)
    assert reached(two) == reached(one)
    assert two.keeps_promises


def test_what_one_consumer_had_prefetched_does_not_come_after_the_other_one_acknowledged_it() -> None:
    """As it does where the other consumer has a session, and a connection, of its own."""
    answer = asked({"ack_mode": "CLIENT_ACKNOWLEDGE"}, faults=[Fault.CONSUMER_LINK_LOSS])
    assert reached(answer) == {Anomaly.DUPLICATE, Anomaly.REPROCESSED}


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_two_messages_and_a_fault_break_no_promise(mode: str) -> None:
    answer = asked({"ack_mode": mode}, faults=BREAKS, most=1, messages=2)
    assert answer.keeps_promises
    assert not reached(answer) & {Anomaly.LOSS, Anomaly.UNFLAGGED_DUPLICATE, Anomaly.RESURRECTION, Anomaly.REORDER}


def test_a_failure_of_the_session_repeats_one_message_whichever_consumer_had_it() -> None:
    """A broker that dies takes the last message of each session, so that two sessions have two."""
    auto = {"ack_mode": "AUTO_ACKNOWLEDGE", "block_on_acknowledge": True}
    assert not watched("two_repeated", auto, faults=[Fault.BROKER_KILL])
    assert watched("two_repeated", auto, faults=[Fault.BROKER_KILL], one_session=False)


def test_a_session_takes_from_its_consumers_in_any_order_and_from_one_in_the_order_of_arrival() -> None:
    network = compose(shipped(), shipped().configure(), Bounds(messages=2, consumers=2, one_session=True, max_faults=0))
    way = "send(m1) accept(m1) dispatch_first(m1,c1) arrive(m1,c1) write_record(m1) sync_record(m1) confirm(m1)"
    way += " confirmed(m1) send(m2) accept(m2)"
    events = {event.label: event for event in network.events}

    def enabled(consumer: str) -> bool:
        state = network.initial
        for label in [*way.split(), f"dispatch_first(m2,{consumer})", f"arrive(m2,{consumer})"]:
            after = network.step(state, events[label])
            assert after is not None, label
            state = after
        return network.step(state, events[f"delivered_clear(m2,{consumer})"]) is not None

    assert enabled("c2")
    assert not enabled("c1")


def test_the_session_its_process_and_its_connection_are_one() -> None:
    bounds = Bounds(consumers=2, one_session=True, faults=BREAKS)
    network = compose(shipped(), shipped().configure("jms", {"ack_mode": "SESSION_TRANSACTED"}), bounds)
    labels = {event.label for event in network.events}
    assert {"consumer_crash", "consumer_link_loss", "consumer_commit_called", "arrive(m1,c2)"} <= labels
    machines = [instance.label for instance in network.instances]
    assert machines.count("consumer_link") == machines.count("consumer_transaction") == machines.count("consumer") == 1
    assert {"prefetch(c1)", "prefetch(c2)"} <= set(machines)


def test_a_commit_covers_what_both_consumers_have_had() -> None:
    transacted = {"ack_mode": "SESSION_TRANSACTED"}
    assert not watched("left_out_of_the_consumers_commit", transacted, faults=BREAKS)


CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}


def test_an_acknowledgement_covers_what_another_consumer_of_the_session_has_and_none_of_another_session() -> None:
    assert not watched("left_beside", CLIENT, faults=BREAKS)
    assert watched("settled_beside", CLIENT)
    assert not watched("settled_by_another_session", CLIENT, faults=BREAKS, one_session=False)


@pytest.mark.parametrize(
    ("scope", "beside", "left"), [("session", True, False), ("up_to", True, True), ("message", False, True)]
)
def test_what_it_covers_is_a_matter_of_the_scope(scope: str, *, beside: bool, left: bool) -> None:
    settings = {**CLIENT, "client_ack_scope": scope}
    assert watched("settled_beside", settings) is beside
    assert watched("left_beside", settings) is left


def test_tables_that_ask_for_the_consumer_leave_out_what_the_other_one_has(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    others = "delivered_clear, delivered_flagged, processed, listener_exception, requeue:"
    rows = "- {to: covered, when: ack_covers_later, because: it covers this one too, source: JMS 6.2.10; 003 CLIENT"
    followed = (
        "        - to: covered\n          when: acks_up_to\n          because: it covers what was delivered before it"
    )
    replace(
        spec,
        "machines/consumer.yaml",
        (
            f"      acknowledge(later), acknowledge(earlier):\n        {rows}",
            f"      acknowledge(later_here), acknowledge(earlier):\n        {rows}",
        ),
        (f"acknowledge(later):\n{followed}", f"acknowledge(later_here):\n{followed}"),
        (
            f"acknowledge(earlier), acknowledge(later), {others}",
            f"acknowledge(earlier), acknowledge(later_here), {others}",
        ),
    )
    assert watched("left_beside", CLIENT, specification=tables.load(spec))
