"""Every row of the tables matters: mutants of them are noticed, but for those that are the same system.

``python -m model_tests.mutants`` (``make mutants``) tries all of them on the whole panel; here a part of them
meets the smaller systems of the panel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from ackfsm import tables
from ackfsm.engine import Broker
from ackfsm.terms import Anomaly
from model_tests import mutants
from model_tests.mutants import Noticed
from model_tests.support.tables import shipped

SMALL = 3_000
EVERY = 24
SHARES = 2


@functools.cache
def tried(share: int) -> tuple[Noticed, ...]:
    chosen = list(mutants.mutants(shipped()))[share * EVERY // SHARES :: EVERY]
    return tuple(mutants.trial(mutant, mutants.yardstick(SMALL)) for mutant in chosen)


def test_nearly_every_changed_row_is_noticed() -> None:
    """Of those that the small systems exercise; what is left is for the larger ones (``make mutants``)."""
    decisive = [each for share in range(SHARES) for each in tried(share) if each.decides]
    noticed = [each for each in decisive if each.how is not None]
    assert len(decisive) > sum(len(tried(share)) for share in range(SHARES)) / 2
    assert len(noticed) >= 0.95 * len(decisive)


def test_the_tables_themselves_are_noticed_by_nobody() -> None:
    """The panel has no opinion of its own: what is not changed is the same."""
    known = mutants.yardstick(SMALL)
    assert len(known.systems) > 20
    for system, signature in list(zip(known.systems, known.signatures, strict=True))[::5]:
        assert mutants.signature(shipped(), system) == signature


def test_a_survivor_is_a_mutant_and_has_a_reason() -> None:
    everyone = {str(mutant) for mutant in mutants.mutants(shipped())}
    for name, reason in mutants.survivors().items():
        assert name in everyone
        assert len(reason) > 20


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
    (mutant,) = (each for each in mutants.mutants(shipped()) if str(each) == f"{name}: redirected")
    done(shipped())
    with pytest.raises(AssertionError, match=said):
        done(mutants.apply(shipped(), mutant))


def test_some_mutant_breaks_a_promise() -> None:
    seen = {anomaly for share in range(SHARES) for each in tried(share) for anomaly in each.anomalies}
    # few bring a duplicate, and the share may have none
    seldom = "consumer_transaction.otherwise consumer_rollback: allowed"
    (mutant,) = (each for each in mutants.mutants(shipped()) if str(each) == seldom)
    seen |= mutants.trial(mutant, mutants.yardstick(SMALL)).anomalies
    assert {Anomaly.LOSS, Anomaly.STUCK, Anomaly.DUPLICATE} <= seen
