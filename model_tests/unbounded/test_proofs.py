"""Is what is proved for any number of messages true of the few that a search can hold, and is what is false refused?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from ackfsm.checking.explore import SearchOptions, explore
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.checking.unbounded import Level, Proof, Verdict, _prove, prove
from ackfsm.checking.unbounded._causes import Causes
from ackfsm.checking.unbounded._columns import System
from ackfsm.checking.unbounded._examined import Related
from ackfsm.checking.unbounded._localize import Kept
from ackfsm.checking.unbounded._related import RelatedRest, relating
from ackfsm.checking.unbounded._words import Letter
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, InputError
from model_tests.support.checker.projected import fading, wary
from model_tests.support.tables import shipped
from model_tests.support.whole import before_a_release, few

_CHEAP = (Level.CHAOS,)
_LINK = frozenset({Fault.CONSUMER_LINK_LOSS})


def _reached(
    specification: Specification, messages: int, faults: Collection[Fault], most: int | None, only: Collection[str]
) -> set[str]:
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=most)
    network = compose(specification, specification.configure("jms"), bounds, observers_of(specification, only))
    found = explore(network, SearchOptions(max_states=2_000_000))
    assert found.complete
    return set(found.witnesses)


def _proved(proof: Proof) -> set[str]:
    return {name for name, verdict in proof.verdicts.items() if verdict.proved}


@pytest.mark.parametrize("profile", few(sorted(shipped().profiles), 1))
def test_no_proof_contradicts_a_search(profile: str) -> None:
    configuration = shipped().configure(profile)
    proof = prove(shipped(), configuration, levels=_CHEAP, max_states=20_000)
    reached: set[str] = set()
    for messages, most in ((1, None), (2, 1)):
        bounds = Bounds(messages=messages, faults=frozenset(Fault), max_faults=most)
        network = compose(shipped(), configuration, bounds)
        reached |= set(explore(network, SearchOptions(max_states=60_000)).witnesses)
    assert not reached & _proved(proof)


def test_most_anomalies_of_jms_are_impossible_for_any_number_of_messages() -> None:
    proof = prove(shipped(), shipped().configure("jms", {"block_on_acknowledge": False}), levels=_CHEAP)
    possible = {Anomaly.UNPROCESSED, Anomaly.DUPLICATE, Anomaly.REPROCESSED}
    assert not _proved(proof) & possible
    assert {Anomaly.LOSS, Anomaly.UNFLAGGED_DUPLICATE, Anomaly.RESURRECTION, Anomaly.TORN_TRANSACTION} <= _proved(proof)
    assert set(proof.verdicts) - _proved(proof) - possible == {Anomaly.REORDER, Anomaly.STUCK}
    assert all(verdict.level is None and verdict.undecided for verdict in proof.undecided)


def test_what_waits_for_an_answer_waits_for_one_that_others_have_coming() -> None:
    """The default of AUTO_ACKNOWLEDGE; if nothing is asked of others, one that is not there holds a message up."""
    everything = prove(shipped(), shipped().configure("jms"), levels=_CHEAP)
    assert {name for name, verdict in everything.verdicts.items() if not verdict.proved} == {
        *(Anomaly.UNPROCESSED, Anomaly.DUPLICATE, Anomaly.REPROCESSED),
        *(Anomaly.REORDER, Anomaly.STUCK, Anomaly.LOSS),
    }
    asked = [Anomaly.REORDER, Anomaly.STUCK, Anomaly.LOSS]
    assert _proved(prove(shipped(), shipped().configure("jms"), asked, levels=[Level.RELATED])) == set(asked)


def test_a_mark_that_fades_after_two_messages_is_missed_by_small_searches_and_not_proved() -> None:
    changed = fading(shipped(), 2)
    asked = [Anomaly.UNFLAGGED_DUPLICATE]
    assert not _reached(changed, 1, _LINK, None, asked)
    assert not _reached(changed, 2, _LINK, None, asked)
    assert _reached(changed, 3, _LINK, 1, asked) == {Anomaly.UNFLAGGED_DUPLICATE}
    for level in (Level.CHAOS, Level.RELATED):
        proof = prove(changed, changed.configure("jms"), asked, faults=_LINK, levels=[level])
        assert not _proved(proof), level
        assert _proved(prove(shipped(), shipped().configure("jms"), asked, faults=_LINK, levels=[level])) == set(asked)


def test_an_application_that_two_doubts_silence_is_missed_by_small_searches_and_not_proved() -> None:
    """A mark at rest that others bring about: three messages and two faults show it."""
    changed, asked, faults = wary(shipped(), 2), [Anomaly.STUCK], frozenset({Fault.PRODUCER_LINK_LOSS})
    assert not _reached(changed, 1, faults, None, asked)
    assert not _reached(changed, 2, faults, None, asked)
    assert _reached(changed, 3, faults, 2, asked) == {Anomaly.STUCK}
    for level in (Level.CHAOS, Level.RELATED, Level.FOLLOWED):
        assert not _proved(prove(changed, changed.configure("jms"), asked, faults=faults, levels=[level])), level
    as_it_is = prove(shipped(), shipped().configure("jms"), asked, faults=faults, levels=[Level.RELATED])
    assert _proved(as_it_is) == set(asked)


@pytest.mark.parametrize("after", few([3, 4, 6], 1))
def test_no_number_of_messages_is_enough_for_a_proof(after: int) -> None:
    """The same two defects, which take that many messages and one more: three show neither."""
    faded = fading(shipped(), after)
    assert not _reached(faded, 3, _LINK, 1, [Anomaly.UNFLAGGED_DUPLICATE])
    assert not _proved(prove(faded, faded.configure("jms"), [Anomaly.UNFLAGGED_DUPLICATE], faults=_LINK))
    silent, faults = wary(shipped(), after), frozenset({Fault.PRODUCER_LINK_LOSS})
    assert not _reached(silent, 3, faults, 3, [Anomaly.STUCK])
    assert not _proved(prove(silent, silent.configure("jms"), [Anomaly.STUCK], faults=faults))


def test_a_message_does_not_wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without the causes of what messages wait for, an acknowledgement would wait for none before it."""
    asked, faults = [Anomaly.STUCK], frozenset({Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION})
    configuration = shipped().configure("jms")
    assert _proved(prove(shipped(), configuration, asked, faults=faults, levels=[Level.RELATED])) == set(asked)
    monkeypatch.setattr(Causes, "waiting", lambda *_: [])
    assert not _proved(prove(shipped(), configuration, asked, faults=faults, levels=[Level.RELATED]))


_CASES_OF_ALL_FAULTS: list[tuple[str, dict[str, object]]] = [
    ("jms", {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "listener"}),
    ("activemq", {"consumption": "listener"}),
]
"""That of qpid, which is received, is proved and verified in ``model_tests/certificates/test_independence.py``."""


@pytest.mark.parametrize(("profile", "settings"), _CASES_OF_ALL_FAULTS)
def test_with_every_fault_nothing_is_stuck_as_related_messages_show(profile: str, settings: dict[str, object]) -> None:
    """Pairs of all that two messages can be in are more than a million here."""
    proof = prove(shipped(), shipped().configure(profile, settings), [Anomaly.STUCK], levels=[Level.RELATED])
    assert _proved(proof) == {Anomaly.STUCK}
    assert proof.views[Level.RELATED] < proof.views[Level.LOCAL], "a relation that excludes nothing is of no use"


def _with_the_system(system: System) -> Kept:
    """What relates messages, and all machines of the system."""
    return relating(system) | Kept(frozenset(range(len(system.machines))), frozenset())


@pytest.mark.parametrize("machines", ["all", "few"])
def test_what_no_pair_of_a_relation_shows_is_not_shown(monkeypatch: pytest.MonkeyPatch, machines: str) -> None:
    """A view of one message says that it is overtaken; the mutant does not ask who brought that about.

    Only what relates messages is known here: all machines of two would tell without that question.  So would those of
    a session that waits for the answer to an acknowledgement.
    """
    monkeypatch.setattr(_prove, "everything", _with_the_system)
    settings = {"resend_in_doubt": True, "consumption": "receive", "block_on_acknowledge": False}
    configuration = shipped().configure("jms", settings)
    if machines == "few":
        monkeypatch.setattr(Related, "shown", lambda *_: "the relation of all machines is not asked")

    def proved() -> set[str]:
        return _proved(prove(shipped(), configuration, [Anomaly.REORDER], faults=_LINK, levels=[Level.RELATED]))

    assert proved() == {Anomaly.REORDER}
    monkeypatch.setattr(Causes, "of_mark", lambda *_: None)
    assert not proved()


def test_that_a_message_is_overtaken_other_machines_than_those_that_relate_may_refute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here it takes machines that refuse nothing to other messages, which the mutant does not look at."""
    settings = {"consumption": "receive", "send_mode": "asynchronous", "redelivery_mark_persisted": True}
    configuration = shipped().configure("activemq", settings)

    def proved() -> set[str]:
        return _proved(prove(shipped(), configuration, [Anomaly.REORDER], levels=[Level.RELATED], least=2))

    assert proved() == {Anomaly.REORDER}
    monkeypatch.setattr(_prove, "everything", _with_the_system)
    assert not proved()


@before_a_release
def test_a_relation_of_transactions_need_not_know_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two copies of a message it has a sixteenth of the pairs, and tells as much.  The mutant knows the system."""
    settings = {"ack_mode": "SESSION_TRANSACTED", "consumption": "receive", "resend_in_doubt": True}

    def proved() -> set[str]:
        faults, levels = {Fault.PRODUCER_LINK_LOSS}, [Level.RELATED]
        configuration = shipped().configure("jms", settings)
        asked = [Anomaly.LOSS, Anomaly.STUCK, Anomaly.RESURRECTION]
        return _proved(
            prove(shipped(), configuration, asked, faults=faults, levels=levels, least=2, max_states=500_000)
        )

    assert proved() == {Anomaly.LOSS, Anomaly.STUCK, Anomaly.RESURRECTION}
    monkeypatch.setattr(_prove, "relating", _with_the_system)
    assert Anomaly.LOSS not in proved()


@before_a_release
def test_that_a_message_is_overtaken_is_refuted_by_what_chooses_between_deliveries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flag of a delivery and the mark of the broker; the mutant takes in what is smallest, until it is too much."""
    monkeypatch.setattr(Related, "shown", lambda *_: "the relation of all machines is not asked")
    settings = {"ack_mode": "PRE_ACKNOWLEDGE", "consumption": "listener", "resend_in_doubt": True}
    configuration = shipped().configure("jms", settings)

    def proved() -> set[str]:
        faults, asked = {Fault.BROKER_CRASH}, [Anomaly.REORDER]
        return _proved(
            prove(shipped(), configuration, asked, faults=faults, levels=[Level.RELATED], least=2, max_states=1_100_000)
        )

    assert proved() == {Anomaly.REORDER}
    monkeypatch.setattr(_prove, "with_what_chooses", lambda _system, kept, _watcher: kept)
    assert not proved()


def _nothing_barred(_rest: RelatedRest, _machines: int, letters: Mapping[Any, Letter]) -> Mapping[Any, Letter]:
    return {message: letter._replace(kind=1) for message, letter in letters.items()}


def test_all_messages_at_rest_are_related_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: two that cannot be in one system would hinder a third one between them."""
    configuration, asked = shipped().configure("qpid", {"consumption": "receive"}), [Anomaly.STUCK]
    monkeypatch.setattr(RelatedRest, "barred", _nothing_barred)
    assert not _proved(prove(shipped(), configuration, asked, levels=[Level.RELATED]))


def _watched(profile: str, settings: dict[str, object], monitor: str, faults: Collection[Fault] = ()) -> Verdict:
    observers = [(monitor, shipped().monitors[monitor])]
    configuration = shipped().configure(profile, settings)
    return prove(shipped(), configuration, faults=faults, observers=observers, levels=[Level.RELATED]).verdicts[monitor]


def test_pairs_know_what_watches_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two messages at once (C09), and two calls that wait (C05): what a third one has done is heard before."""

    def held(prefetch: int) -> bool:
        settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "prefetch": prefetch}
        return _watched("qpid", settings, "two_unacknowledged").proved

    def waited() -> bool:
        return _watched("jms", {"ack_mode": "SESSION_TRANSACTED"}, "waited_twice", set(Fault)).proved

    assert (held(1), waited()) == (True, True)
    assert not held(2), "a prefetch of two lets the application have two"
    monkeypatch.setattr(_prove, "with_watcher", lambda system, _: system)
    assert (held(1), waited()) == (False, False)


def test_all_of_a_transaction_or_none_of_it_takes_effect_and_its_commit_returns() -> None:
    asked = [Anomaly.TORN_TRANSACTION, Anomaly.STUCK, Anomaly.LOSS]
    configuration = shipped().configure("jms", {"ack_mode": "SESSION_TRANSACTED"})
    proof = prove(shipped(), configuration, asked, faults=_LINK, levels=[Level.RELATED, Level.FOLLOWED])
    assert _proved(proof) == set(asked)


def test_what_hits_a_limit_is_undecided() -> None:
    proof = prove(shipped(), shipped().configure("jms"), [Anomaly.PHANTOM], levels=_CHEAP, max_states=5)
    assert "more than 5 views" in proof.verdicts[Anomaly.PHANTOM].undecided
    assert (
        not prove(shipped(), shipped().configure("jms"), [Anomaly.PHANTOM], levels=()).verdicts[Anomaly.PHANTOM].proved
    )


def test_an_anomaly_that_the_tables_do_not_define_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing watches for"):
        prove(shipped(), shipped().configure("jms"), ["los"])
