"""What is given back before an application had it: its mark where the flag is made of the count, and where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose, observers_named
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import few, in_turn

COUNTING_WHAT_IS_SEEN = ("artemis", "activemq", "qpid-jms")
COUNTING_WHAT_IS_SENT = ("jms", "ems", "solace-jms", "qpid")
CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "resend_in_doubt": False}
LIMIT = {"max_delivery_attempts": 3}
PRODUCING = {
    *("send", "accept", "write_record", "sync_record", "confirm", "confirmed", "socket_written"),
    *("send_in_transaction", "receive_send", "commit_called", "execute_commit", "write_commit", "sync_commit"),
    *("confirm_commit", "commit_returned"),
}


def _walked(
    profile: str,
    steps: Iterable[str],
    settings: Mapping[str, object] | None = None,
    *,
    consumers: int = 1,
    messages: int = 1,
) -> explore.Interpreter:
    """The system of so many messages that are in their queue, after these events."""
    bounds = Bounds(
        messages=messages, consumers=consumers, faults=frozenset(Fault), max_faults=None, actions=frozenset({"recover"})
    )
    configuration = shipped().configure(profile, {**CLIENT, **(settings or {})})
    system = explore.Interpreter(compose(shipped(), configuration, bounds))
    while producing := [event for event in system.enabled() if event.name in PRODUCING]:
        system.fire(producing[0].label)
    for step in steps:
        system.fire(step)
    return system


def _enabled(system: explore.Interpreter, name: str) -> set[str]:
    return {event.label for event in system.enabled() if event.name == name}


def _repair(system: explore.Interpreter, *without: str) -> None:
    """All that happens by itself, but for a dispatch and what the applications do, and but for these events."""
    kept = {"dispatch_first", "dispatch_again", "delivered_clear", "delivered_flagged"}
    while ready := [event for event in system.enabled() if not event.may_never_happen and event.name not in kept]:
        ready = [event for event in ready if event.label not in without]
        if not ready:
            return
        system.fire(ready[0].label)


def _flagged(system: explore.Interpreter) -> bool:
    """Whether the next delivery of the message will carry the flag."""
    first, again = (bool(_enabled(system, name)) for name in ("dispatch_first", "dispatch_again"))
    assert first != again, "one of them"
    return again


def _reorder(
    profile: str, settings: Mapping[str, object], consumers: int, specification: Specification | None = None
) -> bool | None:
    spec = specification or shipped()
    bounds = Bounds(messages=2, consumers=consumers, actions=frozenset({"recover"}))
    watching = observers_named(spec, [Anomaly.REORDER])
    system = compose(spec, spec.configure(profile, {**CLIENT, **settings}), bounds, watching)
    found = explore.explore(system, explore.SearchOptions(only_witnesses=True))
    return Anomaly.REORDER in found.witnesses or (False if found.complete else None)


PREFETCHED = ("dispatch_first(m1)", "arrive(m1)")
GIVEN_BACK = (*PREFETCHED, "recover")
BY_DELIVERY = {"delivery_count_from": "delivery"}
"""Artemis counts the first of those that recover() gives back, which a model of few messages leaves open."""


@pytest.mark.parametrize("kept", [False, True])
def test_of_what_recover_gives_back_unseen_one_message_is_flagged(
    kept: bool,  # noqa: FBT001 - a case
) -> None:
    system = _walked("artemis", GIVEN_BACK, {"redelivery_mark_persisted": kept})
    assert _enabled(system, "dispatch_first")
    assert _enabled(system, "dispatch_again")


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
def test_what_is_given_back_unseen_has_no_mark_where_the_flag_is_made_of_the_count(
    profile: str,
    kept: bool,  # noqa: FBT001 - a case
) -> None:
    settings = {"redelivery_mark_persisted": kept, **BY_DELIVERY}
    assert not _flagged(_walked(profile, GIVEN_BACK, settings))
    assert not _flagged(_walked(profile, (*GIVEN_BACK, *GIVEN_BACK), settings))
    seen = (*GIVEN_BACK, *PREFETCHED, "delivered_clear(m1)", "processed(m1)", "recover")
    assert _flagged(_walked(profile, seen, settings)), "the application had it"


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SENT)
def test_it_keeps_its_mark_where_each_sending_counts(profile: str) -> None:
    assert _flagged(_walked(profile, GIVEN_BACK))


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
def test_what_the_application_had_keeps_its_mark_when_it_is_given_back_unseen_later(profile: str) -> None:
    first = (*PREFETCHED, "delivered_clear(m1)", "processed(m1)", "recover")
    assert _flagged(_walked(profile, (*first, "dispatch_again(m1)", "arrive(m1)", "recover")))


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
def test_a_library_may_hand_over_what_it_has_of_a_broken_connection_so_its_mark_stays(profile: str) -> None:
    """The broker hears of the loss first, and then the application has the message: it comes again flagged."""
    lost = (*PREFETCHED, "consumer_link_loss", "delivered_clear(m1)", "processed(m1)", "consumer_link_up")
    assert _flagged(_walked(profile, lost))
    assert _flagged(_walked(profile, (*PREFETCHED, "consumer_crash", "consumer_restart", "consumer_link_up")))


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
def test_nobody_waits_until_a_journal_has_the_mark_taken_back(profile: str) -> None:
    """A crash finds the mark in the journal or not; before one it is gone."""
    kept = _walked(profile, GIVEN_BACK, {"redelivery_mark_persisted": True, **BY_DELIVERY})
    assert not _flagged(kept)
    kept.fire("broker_kill")
    _repair(kept)
    assert _enabled(kept, "dispatch_first")
    assert _enabled(kept, "dispatch_again")


@pytest.mark.parametrize("gives_back", [False, True])
def test_a_rollback_that_gives_nothing_back_takes_no_mark_back(
    gives_back: bool,  # noqa: FBT001 - a case
) -> None:
    """Nobody ships both settings; the session then has what it had prefetched until its connection breaks."""
    settings = {
        "ack_mode": "SESSION_TRANSACTED",
        "consumption": "listener",
        "delivery_count_from": "delivery",
        "rollback_requeues": gives_back,
    }
    both = ("dispatch_first(m1)", "arrive(m1)", "dispatch_first(m2)", "arrive(m2)", "delivered_clear(m1)")
    broken = ("listener_exception(m1)", "consumer_rollback", "consumer_link_loss", "consumer_link_up")
    system = _walked("jms", (*both, *broken), settings, messages=2)
    system.fire("dispatch_again(m1)")
    assert _enabled(system, "dispatch_first" if gives_back else "dispatch_again") == {
        f"dispatch_{'first' if gives_back else 'again'}(m2)"
    }


# two consumers


def test_a_consumer_may_hand_over_what_it_had_while_the_copy_is_with_another_one() -> None:
    """What a library has of a broken connection is its own: nothing at the broker keeps it from its application."""
    sent = ("dispatch_first(m1,c1)", "arrive(m1,c1)")
    for fault, again in (("consumer_link_loss(c1)", "dispatch_again(m1,c2)"), ("broker_kill", "dispatch_first(m1,c2)")):
        for limit in ({}, LIMIT):
            system = _walked("artemis", (*sent, fault), limit, consumers=2)
            _repair(system, "consumer_link_up(c1)")
            system.fire(again)
            assert "delivered_clear(m1,c1)" in _enabled(system, "delivered_clear"), (fault, limit)
            system.fire("delivered_clear(m1,c1)")
            assert not _enabled(system, "dispatch_first"), "it is still with the other one"


@pytest.mark.parametrize("profile", few(COUNTING_WHAT_IS_SEEN, 1))
def test_it_comes_to_another_consumer_unflagged_behind_later_ones(profile: str, tmp_path: Path) -> None:
    """Recorded of Artemis and of Qpid JMS; without the rows nothing comes so."""
    without = copy_of_spec(tmp_path)
    taken_back = (
        'because: "the count of what is given back undelivered is taken back, and the flag is made of the count"'
    )
    row = f"&unmarked\n          to: clear\n          {taken_back}"
    replace(without, "machines/broker.yaml", (row, row.replace("to: clear", "to: marked")))
    settings = {"redelivery_mark_persisted": False, **BY_DELIVERY}
    assert _reorder(profile, settings, consumers=2)
    assert _reorder("artemis", {}, consumers=2)
    assert _reorder(profile, settings, consumers=1) is False
    assert _reorder(profile, settings, consumers=2, specification=tables.load(without)) is False


@pytest.mark.parametrize("profile", few(COUNTING_WHAT_IS_SENT, 1))
def test_it_does_not_where_each_sending_counts(profile: str) -> None:
    assert _reorder(profile, {}, consumers=2) is False


@pytest.mark.parametrize(
    ("one_session", "profile"), in_turn([True, False], ["artemis", "jms", *few(["qpid-jms"], 0)], 1)
)
def test_order_is_promised_to_several_consumers_where_unseen_deliveries_are_marked(
    profile: str,
    one_session: bool,  # noqa: FBT001 - a case
) -> None:
    settings = {**CLIENT, "redelivery_mark_persisted": True}
    for consumers in (1, 2):
        bounds = Bounds(
            messages=2, consumers=consumers, one_session=one_session and consumers > 1, actions=frozenset({"recover"})
        )
        answer = explore.check(shipped(), shipped().configure(profile, settings), bounds, only=[Anomaly.REORDER])
        finding = answer.findings[Anomaly.REORDER]
        happens = consumers > 1 and profile != "jms"
        assert (finding.reachable, finding.promise is None) == (happens, happens)
