"""Every row of the tables matters: mutants of them are noticed, but for those that are the same system.

``python -m model_tests.mutants`` (``make mutants``) tries all of them on the whole panel; here a part of them
meets a part of the smaller systems of the panel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import pytest

from ackfsm import tables
from ackfsm.engine import Broker
from ackfsm.terms import Anomaly, Fault
from model_tests import mutants
from model_tests.mutants import Mutant, Noticed, Yardstick
from model_tests.panel import System, system_of
from model_tests.support.spec.deciding import NO_EVENT, deciding, in_all, instead
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE

SMALL = 2_000
SYSTEMS = 4
EVERY = 24 if WHOLE else 168
SHARES = 2


@functools.cache
def tried(share: int) -> tuple[Noticed, ...]:
    chosen = list(mutants.mutants(shipped()))[share * EVERY // SHARES :: EVERY]
    return tuple(mutants.trial(mutant, mutants.yardstick(SMALL, SYSTEMS)) for mutant in chosen)


def test_nearly_every_changed_row_is_noticed() -> None:
    """Of those that the small systems exercise no more than one in twenty, in whole rows, is left for the larger ones.

    These are ``make mutants``.
    """
    decisive = [each for share in range(SHARES) for each in tried(share) if each.decides]
    noticed = [each for each in decisive if each.how is not None]
    assert len(decisive) > sum(len(tried(share)) for share in range(SHARES)) / 2
    assert len(decisive) - len(noticed) <= math.ceil(len(decisive) / 20)


def test_the_tables_themselves_are_noticed_by_nobody() -> None:
    """The panel has no opinion of its own: what is not changed is the same."""
    known = mutants.yardstick(SMALL, SYSTEMS)
    assert len(known.systems) > 20
    for system, signature in list(zip(known.systems, known.signatures, strict=True))[::5]:
        assert mutants.signature(shipped(), system) == signature


def test_a_survivor_is_a_mutant_and_has_a_reason() -> None:
    everyone = {str(mutant) for mutant in mutants.mutants(shipped())}
    assert len(everyone) == len(list(mutants.mutants(shipped()))), "each has a name of its own"
    for name, reason in mutants.survivors().items():
        assert name in everyone
        assert len(reason) > 20


def test_who_decides_instead_of_a_row_is_a_machine_and_has_a_reason() -> None:
    known = {*shipped().machines, NO_EVENT, mutants.NO_STATE}
    rows = {(each.machine, f"{each.state} {each.event}") for each in mutants.mutants(shipped())}
    for machine, reasons in mutants.totality().items():
        for who, reason in reasons.items():
            assert who in known or (machine, who) in rows
            assert len(reason) > 15


def _named(name: str) -> Mutant:
    (mutant,) = (each for each in mutants.mutants(shipped()) if str(each) == name)
    return mutant


def _alone(system: System) -> Yardstick:
    """A panel of one system."""
    return Yardstick.of({system: mutants.measured(system, SMALL)}, SMALL)


def test_a_row_that_decides_nothing_is_explained_by_who_refuses() -> None:
    """The broker's own refusal decides nothing: nobody reads from the connection that died with it."""
    system = system_of(of=(Fault.BROKER_KILL,))
    (row,) = {each.row for each in mutants.mutants(shipped()) if str(each) == "broker.down accept: allowed"}
    network = system.network(shipped())
    assert row not in deciding(network)
    who = instead(network, {row})
    assert who[row] == {"producer_link"}
    idle = [_named("broker.down accept: allowed")]
    assert list(mutants.explained(idle, who, {"broker": {"producer_link": "it is down"}})) == [
        ("broker", "producer_link")
    ]
    assert list(mutants.explained(idle, who, {"broker": {"entry": "it is not"}})) == [("broker", mutants.UNEXPLAINED)]


def test_a_refusal_that_decides_is_nobody_elses() -> None:
    """The broker is down while it reads its journal, and only that keeps it from dispatching what it has read."""
    network = system_of(of=(Fault.BROKER_KILL,)).network(shipped())
    row = _named("broker.down sync_record: allowed").row
    assert row in deciding(network)
    assert instead(network, {row})[row] == frozenset()


def test_several_refuse_where_each_does_in_some_system() -> None:
    row = ("broker", 1, "accept")
    one, other, none = ({row: frozenset(who)} for who in ({"entry", "record"}, {"record"}, {NO_EVENT}))
    assert in_all([one, other, none]) == {row: {"record"}}
    assert in_all([none]) == {row: {NO_EVENT}}
    assert in_all([one, {row: frozenset({"prefetch"})}]) == {row: frozenset()}


def test_a_machine_that_is_with_one_of_two_consumers_is_not_redirected_to_nobody() -> None:
    """`entry.ready broker_kill` leads on to no state in which the copy is with the consumer of a broken broker."""
    of_two = system_of(of=(Fault.BROKER_KILL,), consumers=2)
    changed = mutants.apply(shipped(), _named("entry.ready broker_kill: redirected"))
    assert mutants.signature(changed, of_two) != mutants.signature(shipped(), of_two)
    machine = shipped().machines["exclusive_consumer"]
    for mutant in mutants.mutants(shipped()):
        if mutant.deed == "redirected" and mutant.machine == machine.name:
            of_two.network(mutants.apply(shipped(), mutant))


def test_a_mutant_with_the_same_numbers_is_noticed_by_a_trace() -> None:
    system = system_of(send_mode="unconfirmed", actions="producer_close", of=(Fault.PRODUCER_CRASH,))
    mutant = _named("producer.closed producer_crash: redirected")
    known = _alone(system)
    assert mutants.signature(mutants.apply(shipped(), mutant), system) == known.signatures[0]
    how = mutants.trial(mutant, known).how
    assert how is not None
    assert "alone goes on with" in how


def _recovers_a_removal_that_survived(specification: tables.Specification) -> None:
    """An engine reads a journal without the message, whose removal was written and not synced when the power failed."""
    broker = Broker(specification=specification)
    copy = broker.connect().session().producer("q").send().copy
    assert copy is not None
    copy.state = copy.automaton.with_states(copy.state, entry="crashed", record="durable", ack_record="at_risk")
    broker.journal.recover([copy], lambda _: set())
    assert copy.state_of("entry") == "removed"


def _keeps_a_dead_letter(specification: tables.Specification) -> None:
    broker = Broker("artemis", specification=specification, max_delivery_attempts=1)
    broker.connect().session().producer("q").send(message_id="m")
    receiver = broker.connect()
    assert receiver.session("CLIENT_ACKNOWLEDGE").consumer("q").receive(None)
    receiver.crash()
    assert broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("DLQ").receive(None) is not None
    broker.crash()
    broker.restart()
    assert broker.queue("DLQ").length == 1


@pytest.mark.parametrize(
    ("name", "done", "said"),
    [
        ("ack_record.at_risk ack_record_survives", _recovers_a_removal_that_survived, "leave the fate of copy 5 open"),
        ("ack_record.none dead_lettered", _keeps_a_dead_letter, "0 == 1"),
    ],
)
def test_an_engine_notices_redirections_that_lead_to_the_same_space(
    name: str, done: Callable[[tables.Specification], None], said: str
) -> None:
    mutant = _named(f"{name}: redirected")
    done(shipped())
    with pytest.raises(AssertionError, match=said):
        done(mutants.apply(shipped(), mutant))


def test_some_mutant_breaks_a_promise() -> None:
    seen = {anomaly for share in range(SHARES) for each in tried(share) for anomaly in each.anomalies}
    # few bring a duplicate, and the share may have none; a trial ends with the first system that is not the same
    seldom = _named("consumer_transaction.otherwise consumer_rollback: allowed")
    seen |= mutants.trial(seldom, _alone(system_of(of=(Fault.REJECTION,)))).anomalies
    assert {Anomaly.LOSS, Anomaly.STUCK, Anomaly.DUPLICATE} <= seen
