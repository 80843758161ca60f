"""Every row of the tables matters: mutants of them are noticed, but for those that are the same system.

``python -m model_tests.mutants`` (``make mutants``) tries all of them on the whole panel; here a part of them
meets the smaller systems of the panel.
"""

from __future__ import annotations

import functools

import pytest

from ackfsm import tables
from ackfsm.engine import Broker, Shuffled
from ackfsm.engine._wiring import Event
from ackfsm.terms import Anomaly
from model_tests import mutants
from model_tests._tables import shipped
from model_tests.mutants import Noticed

SMALL = 3_000
EVERY = 24
SHARES = 2


@functools.cache
def tried(share: int) -> tuple[Noticed, ...]:
    chosen = list(mutants.mutants(shipped()))[share * EVERY // SHARES :: EVERY]
    return tuple(mutants.trial(mutant, SMALL) for mutant in chosen)


def test_nearly_every_changed_row_is_noticed() -> None:
    """Of those that the small systems exercise; what is left is for the larger ones (``make mutants``)."""
    decisive = [each for share in range(SHARES) for each in tried(share) if each.decides]
    noticed = [each for each in decisive if each.how is not None]
    assert len(decisive) > 100
    assert len(noticed) >= 0.95 * len(decisive)


def test_the_tables_themselves_are_noticed_by_nobody() -> None:
    """The panel has no opinion of its own: what is not changed is the same."""
    known = mutants.yardstick(SMALL)
    assert len(known.systems) > 20
    for system, signature in list(zip(known.systems, known.signatures, strict=True))[::5]:
        assert mutants.signature(tables.load(), system) == signature


def test_a_survivor_is_a_mutant_and_has_a_reason() -> None:
    everyone = {str(mutant) for mutant in mutants.mutants(shipped())}
    for name, reason in mutants.survivors().items():
        assert name in everyone
        assert len(reason) > 20


def _after_the_removal_survived(specification: tables.Specification) -> list[str]:
    """What an engine does once a removal that was written has survived a power loss."""
    broker = Broker(specification=specification, pace=Shuffled(), block_on_acknowledge=False)
    producer = broker.connect().session().producer("q")
    consumer = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
    producer.send()
    seen: list[str] = []

    def observer(event: Event, _: object) -> None:
        seen.append(event.name)
        if seen.count("write_removal") == 1 and event.name == "write_removal":
            broker.crash()

    broker.observe(observer)
    message = consumer.receive(None)
    assert message is not None
    message.acknowledge()
    assert consumer.receive(None) is None
    return seen[seen.index("removal_survives") :]


def test_an_engine_notices_the_redirection_that_leads_to_states_known_from_elsewhere() -> None:
    """A removal that has survived is on the disk: nobody asks again, and nobody writes it again."""
    name = "removal.at_risk removal_survives: redirected"
    (mutant,) = (mutant for mutant in mutants.mutants(shipped()) if str(mutant) == name)
    changed = mutants.apply(shipped(), mutant)
    assert not {"write_removal", "sync_removal"} & set(_after_the_removal_survived(shipped()))
    with pytest.raises(AssertionError, match="leave the fate of copy 5 open"):
        _after_the_removal_survived(changed)


def test_some_mutant_breaks_a_promise() -> None:
    seen = {anomaly for share in range(SHARES) for each in tried(share) for anomaly in each.anomalies}
    assert {Anomaly.LOSS, Anomaly.STUCK, Anomaly.DUPLICATE} <= seen
