"""A session that outlives its connection: nothing is in doubt, and what takes the session takes that away again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Anomaly, Fault, InputError, Profile
from model_tests.support.spec.steps import asked, reached
from model_tests.support.tables import shipped

REATTACHED: dict[str, object] = {"session_reattachment": True, "publish_window": 10}
TRANSACTED: dict[str, object] = {"ack_mode": "SESSION_TRANSACTED"}
LOSS = Fault.PRODUCER_LINK_LOSS


def events(settings: Mapping[str, object], faults: Collection[Fault], actions: Collection[str] = ()) -> set[str]:
    """Events that some run has, of one message."""
    bounds = Bounds(faults=frozenset(faults), max_faults=None, actions=frozenset(actions))
    network = compose(shipped(), shipped().configure("artemis", dict(settings)), bounds, observers=())
    seen, open_, happened = {network.initial}, [network.initial], set[str]()
    while open_:
        state = open_.pop()
        for event in network.events:
            after = network.step(state, event)
            if after is not None:
                happened.add(event.name)
                if after not in seen:
                    seen.add(after)
                    open_.append(after)
    return happened


@pytest.mark.parametrize("resends", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"send_mode": "asynchronous"}, {"delivery_mode": "NON_PERSISTENT"}, TRANSACTED], ids=str
)
def test_however_often_the_connection_breaks_nothing_goes_wrong(settings: dict[str, object], *, resends: bool) -> None:
    again = {"resend_in_doubt": resends}
    assert reached(asked(REATTACHED | settings | again, [LOSS], messages=2)) == set()
    assert reached(asked(REATTACHED | settings | again, [LOSS], messages=2, consumers=2)) == set()


def test_what_nobody_waits_for_is_lost_with_a_connection_and_not_with_one_that_is_re_attached() -> None:
    sent = {"send_mode": "unconfirmed", "publish_window": 10}
    assert Anomaly.LOSS in reached(asked(sent, [LOSS], messages=2))
    assert reached(asked(sent | {"session_reattachment": True}, [LOSS], messages=2)) == set()


def test_the_doubt_comes_with_the_fault_that_takes_the_session() -> None:
    assert "producer_reattached" in events(REATTACHED, [LOSS])
    assert "in_doubt" not in events(REATTACHED, [LOSS])
    assert "in_doubt" in events(REATTACHED, [Fault.BROKER_KILL])
    assert "in_doubt" in events(REATTACHED, [LOSS], ["producer_session_lost"])
    assert "commit_failed" not in events(REATTACHED | TRANSACTED, [LOSS])
    assert {"commit_failed", "transaction_lost"} <= events(REATTACHED | TRANSACTED, [LOSS], ["producer_session_lost"])


def test_what_is_re_attached_is_no_new_connection() -> None:
    happened = events(REATTACHED, [LOSS])
    assert "producer_link_up" not in happened
    plain = events({"publish_window": 10}, [LOSS])
    assert "producer_link_up" in plain
    assert "producer_reattached" not in plain


@pytest.mark.parametrize("settings", [{}, {"resend_in_doubt": True}, TRANSACTED], ids=str)
def test_with_the_session_lost_it_is_as_without_re_attachment(settings: dict[str, object]) -> None:
    """A connection that breaks and does not come back in time is one that breaks."""
    faults = [LOSS, Fault.PRODUCER_CRASH]
    lost = asked(REATTACHED | settings, faults, actions=["producer_session_lost"])
    assert reached(lost) == reached(asked({"publish_window": 10} | settings, faults))


def test_answers_in_batches_and_ranges_are_owed_over_a_broken_connection_too() -> None:
    """No vendor has both; that the tables of a reference that refuses nothing agree with themselves."""
    batches = {
        "session_reattachment": True,
        "send_mode": "asynchronous",
        "publish_window": 2,
        "confirm_threshold": 2,
        "confirm_timer": True,
        "ack_event_mode": "WINDOWED",
    }
    assert reached(asked(batches, [LOSS], profile="jms", messages=2)) == set()


def test_rejections_are_heard_over_a_broken_connection() -> None:
    found = asked(REATTACHED | {"send_mode": "asynchronous"}, [LOSS, Fault.REJECTION], messages=2)
    assert reached(found) & {Anomaly.LOSS, Anomaly.MISSING_OUTCOME, Anomaly.STUCK, Anomaly.GHOST} == set()


def test_it_needs_a_window_and_belongs_to_artemis() -> None:
    with pytest.raises(InputError, match="confirmationWindowSize=-1 the client keeps nothing"):
        shipped().configure("artemis", {"session_reattachment": True})
    with pytest.raises(InputError, match="confirmationWindowSize=-1 the client keeps nothing"):
        shipped().configure("artemis", {"session_reattachment": True, "publish_window": 0})
    for profile in set(Profile) - {Profile.ARTEMIS, Profile.JMS}:
        assert shipped().supported_values(profile, "session_reattachment") == (False,)
    assert not any(shipped().configure(profile).session_reattachment for profile in Profile)
