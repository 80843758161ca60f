"""Proofs that know few machines: do they prove what all machines prove, and is what they prove so?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from ackfsm.checking.network import observers_of
from ackfsm.checking.unbounded import Level, _prove, prove
from ackfsm.checking.unbounded._columns import Scope, System, system_of, watchers_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._localize import Kept, projected, with_what_chooses
from ackfsm.checking.unbounded._related import relating
from ackfsm.terms import Anomaly, Fault
from model_tests.support.checker.certified import certified, verified
from model_tests.support.tables import shipped
from model_tests.support.whole import few

_TWO_COPIES: Mapping[str, object] = {"resend_in_doubt": True, "block_on_acknowledge": False}
"""Nobody waits for an answer: else more machines tell whether the application has acknowledged the other copy."""
_FEW = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.PRODUCER_LINK_LOSS})


@pytest.mark.parametrize(
    ("profile", "settings"),
    few(
        [
            ("jms", {}),
            ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}),
            ("jms", {"ack_mode": "SESSION_TRANSACTED"}),
            ("solace", {}),
            ("qpid", {"prefetch": 1}),
        ],
        2,
    ),
)
def test_few_machines_prove_what_all_prove(profile: str, settings: dict[str, object]) -> None:
    """All machines are tried with so many views too, where few do not prove it."""
    configuration = shipped().configure(profile, settings)
    few, every = (
        prove(shipped(), configuration, faults=_FEW, levels=[Level.CHAOS], localize=localize, max_states=100_000)
        for localize in (True, False)
    )
    assert {name for name, verdict in few.verdicts.items() if verdict.proved} >= {
        name for name, verdict in every.verdicts.items() if verdict.proved
    }


def test_two_copies_of_a_message_take_few_views() -> None:
    """All machines of two copies are in 200,000 views and more."""
    configuration = shipped().configure("jms", _TWO_COPIES)
    proof = prove(shipped(), configuration, [Anomaly.RESURRECTION, Anomaly.PHANTOM], max_states=2_000)
    assert not proof.undecided
    everything = prove(
        shipped(), configuration, [Anomaly.PHANTOM], max_states=100_000, levels=[Level.CHAOS], localize=False
    )
    assert "more than 100,000 views" in everything.verdicts[Anomaly.PHANTOM].undecided


def test_what_few_machines_prove_of_two_copies_is_verified() -> None:
    asked = ("phantom", "resurrection", "torn_transaction", "dirty_delivery", "double_outcome", "missing_outcome")
    certificate = certified("jms", _TWO_COPIES, asked, faults=_FEW, localize=True)
    assert set(certificate.proved) == set(asked)
    assert max(len(invariant.message) for invariant in certificate.invariants) < 12, "of some forty"
    assert verified(certificate).verified


def test_what_machines_outside_may_refuse_is_not_awaited_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without that, ``unprocessed`` is proved, which a crash of the consumer brings about."""

    def awaiting_all(whole: System, kept: Kept) -> System:
        return dataclasses.replace(projected(whole, kept), events=whole.events)

    settings = {"consumption": "receive"}
    assert not certified("jms", settings, ["unprocessed"], faults={Fault.CONSUMER_CRASH}, localize=True).proved
    monkeypatch.setattr(_prove, "projected", awaiting_all)
    wrong = certified("jms", settings, ["unprocessed"], faults={Fault.CONSUMER_CRASH}, localize=True)
    assert wrong.proved == ("unprocessed",)
    assert set(verified(wrong).refuted) == {"unprocessed"}


def test_what_chooses_where_a_message_goes_is_kept_and_what_refuses_all_ways_alike_is_not() -> None:
    """The flag chooses between the two ways to deliver, the broker's mark between the two ways to set the flag."""
    scope = Scope(shipped(), shipped().configure("jms", {"resend_in_doubt": True}), frozenset(Fault))
    whole = system_of(scope, Family(2, None))
    (overtaken,) = watchers_of(scope, whole, observers_of(shipped(), [Anomaly.REORDER]))
    relating_machines = relating(whole)
    kept = with_what_chooses(whole, relating_machines, overtaken)
    names = {whole.message[number].name for number in kept.message - relating_machines.message}
    assert names == {"redelivered_flag", "redelivered_flag#2", "redelivery", "redelivery#2"}
    assert not kept.machines
