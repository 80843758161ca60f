"""Is a proof by a followed message verified, and refuted where it is wrong (Lemma 10 of spec/any.md)?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ackfsm.checking import explore
from ackfsm.checking.certificates import Certificate, Invariant, Level
from ackfsm.checking.certificates._format import packed, unpacked
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded import Level as SearchLevel
from ackfsm.checking.unbounded import _followed
from ackfsm.checking.unbounded._columns import Watcher
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly
from model_tests import mutants
from model_tests.support.checker.certified import FEW, certified, verified
from model_tests.support.tables import shipped

_TORN = Anomaly.TORN_TRANSACTION
_TRANSACTIONS = {"ack_mode": "SESSION_TRANSACTED", "consumption": "receive"}
_FOLLOWED = (SearchLevel.FOLLOWED,)


@pytest.fixture(scope="module")
def torn() -> Certificate:
    """No transaction is torn, with a message followed."""
    return certified("jms", _TRANSACTIONS, [_TORN], levels=_FOLLOWED)


def test_a_proof_by_a_followed_message_is_verified(torn: Certificate) -> None:
    related, _ = torn.invariants
    assert [each.watchers[0][1] for each in related.followed] == ["part_of_the_sends", "part_of_the_acknowledgements"]
    assert unpacked(packed(torn)) == torn
    assert torn.views > sum(len(each.views) for each in related.followed) + len(related.views)
    assert verified(torn).verified


def _with_followed(certificate: Certificate, *followed: Invariant) -> Certificate:
    related, alone = certificate.invariants
    return dataclasses.replace(certificate, invariants=(dataclasses.replace(related, followed=followed), alone))


def _without(invariant: Invariant, at: int) -> Invariant:
    return dataclasses.replace(invariant, views=(*invariant.views[:at], *invariant.views[at + 1 :]))


def test_without_a_view_or_a_pair_it_is_refuted(torn: Certificate) -> None:
    """Some may be left out: the views are local ones, more than those that ask the pairs."""
    sends, _ = torn.invariants[0].followed
    assert sends.relation is not None
    fewer = [_without(sends, at) for at in _drawn(sends)]
    fewer += [dataclasses.replace(sends, relation=_without(sends.relation, at)) for at in _drawn(sends.relation)]
    refuted = [verified(_with_followed(torn, each)).refuted[_TORN] for each in fewer]
    assert sum("among" in why for why in refuted) >= len(fewer) - 2, refuted


def _drawn(invariant: Invariant) -> list[int]:
    many = len(invariant.views)
    return [0, many // 4, many // 2, 3 * many // 4]


def test_each_machine_that_watches_has_to_be_followed(torn: Certificate) -> None:
    sends, _ = torn.invariants[0].followed
    assert "part_of_the_acknowledgements" in verified(_with_followed(torn, sends)).refuted[_TORN]
    nobody = dataclasses.replace(sends, watchers=((_TORN, "nobody"),))
    assert "no machine nobody" in verified(_with_followed(torn, sends, nobody)).refuted[_TORN]


def test_beside_views_without_a_relation_no_message_is_followed(torn: Certificate) -> None:
    sends, _ = torn.invariants[0].followed
    chaos = certified("jms", _TRANSACTIONS, ["phantom"], levels=[SearchLevel.CHAOS])
    (views,) = chaos.invariants
    assert views.level is Level.CHAOS
    changed = dataclasses.replace(views, followed=(sends,))
    wrong = dataclasses.replace(chaos, proved=("phantom", _TORN), invariants=(changed,))
    assert "views that have no relation" in verified(wrong).refuted[_TORN]


def _by_anything(watcher: Watcher, *_: object) -> Table:
    """Every event of who brought a mark about is taken for one that takes it back."""
    events = range(max(event for _, event in watcher.table.columns) + 1)
    return Table("taken back", ("no", "yes"), 0, {(Role.OWN, event): ((1, 1),) for event in events})


def _without_hope(watcher: Watcher) -> frozenset[int]:
    """What watches is given up on the way to its mark."""
    return frozenset({watcher.table.initial, *watcher.marked, *watcher.at_rest})


def _never_behind(*known: Any, place: Callable[..., Table] = _followed._place) -> Table:  # noqa: SLF001 - it is broken
    """No message is followed that another one stands before."""
    table = place(*known)
    return dataclasses.replace(table, columns={**table.columns, (Role.LATER, 0): ((-1,) * len(table.states),)})


@pytest.fixture(scope="module")
def tearing() -> Specification:
    """The tables with a defect that tears a transaction, which a search sees and no proof denies."""
    name = "delivery.absent dispatch_again: deleted"
    (mutant,) = (each for each in mutants.mutants(shipped()) if str(each) == name)
    tables = mutants.apply(shipped(), mutant)
    bounds = Bounds(messages=2, faults=FEW, max_faults=1)
    answer = explore.check(tables, tables.configure("jms", _TRANSACTIONS), bounds, only=[_TORN])
    assert answer.findings[_TORN].reachable
    assert _TORN not in certified("jms", _TRANSACTIONS, [_TORN], levels=_FOLLOWED, tables=tables).proved
    return tables


@pytest.mark.parametrize(
    ("step", "broken", "why"),
    [
        ("_taking_back", _by_anything, "nothing has to take part_of_the_sends back"),
        ("_may_be_marked", _without_hope, "send_in_transaction (its own message's) leads from"),
        ("_place", _never_behind, "follow (a later and to its own message's) leads from"),
    ],
)
def test_what_a_broken_search_proves_of_a_torn_transaction_is_refuted(
    monkeypatch: pytest.MonkeyPatch, tearing: Specification, step: str, broken: Callable[..., object], why: str
) -> None:
    monkeypatch.setattr(_followed, step, broken)
    wrong = certified("jms", _TRANSACTIONS, [_TORN], levels=_FOLLOWED, tables=tearing)
    assert _TORN in wrong.proved
    assert why in verified(wrong, tearing).refuted[_TORN]
