"""Advice: what is proposed gives what is needed, what is refused does not, and nothing cheaper was passed over."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.rates import timing
from ackfsm.rates.timing import Workload
from ackfsm.surveys import advice, matrix
from ackfsm.surveys.advice import AnswerCache, Candidate, Request
from ackfsm.tables import Specification
from ackfsm.terms import Fault, InputError, SpecError
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE, few

NETWORK = Workload(rtt=Fraction(2, 1000), bandwidth=Fraction(10**9), bandwidth_back=Fraction(10**9), message_size=4096)
FEW = {
    "consumption": "listener",
    "journal_sync_non_transactional": True,
    "block_on_acknowledge": False,
    "max_delivery_attempts": 0,
}
_NARROW = {"consumption": "listener", "delivery_mode": "PERSISTENT", "ack_mode": "CLIENT_ACKNOWLEDGE"}
_ONE_WAY = {**FEW, "delivery_mode": "PERSISTENT", "send_mode": "blocking", "resend_in_doubt": False}
"""One way to send, and every way to acknowledge."""
ANY_FAULT = Bounds(messages=2, faults=frozenset(Fault), max_faults=None)
TWO_FAULTS = Bounds(messages=1, faults=frozenset(Fault), max_faults=2)


def _request(needs: str, profile: str = "artemis", settings: Mapping[str, Any] = FEW, **named: Any) -> Request:
    known = advice.needs_of(shipped())
    work = dataclasses.replace(NETWORK, **{key: named.pop(key) for key in [*named] if hasattr(NETWORK, key)})
    defaults: dict[str, Any] = {"bounds": TWO_FAULTS, "max_states": 100_000, "most": 3, "api": None}
    return Request(
        profiles=(profile,),
        settings={profile: settings},
        needs=advice.read_needs([needs], known),
        work=work,
        **{**defaults, **named},
    )


@pytest.fixture(name="cache", scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> AnswerCache:
    return AnswerCache(shipped(), tmp_path_factory.mktemp("advice") / "answers.sqlite")


def _reached(candidate: Candidate, request: Request, specification: Specification | None = None) -> frozenset[str]:
    """What is watched for and can happen, by a plain search of every step."""
    specification = specification or shipped()
    watched = {name for need in request.needs for name in need.excluded_by}
    network = compose(specification, candidate.configuration, request.bounds, observers_of(specification, watched))
    found = explore.explore(network, explore.SearchOptions(every_step=True))
    assert found.complete
    return frozenset(map(str, found.witnesses))


def _cost(candidate: Candidate) -> tuple[Fraction, Fraction, int]:
    assert candidate.rate.low is not None
    return candidate.seconds, -candidate.rate.low, len(candidate.changes)


NEEDS = "no-loss,no-unflagged-duplicate"


def test_a_proposal_gives_what_is_needed_and_no_cheaper_configuration_does(cache: AnswerCache) -> None:
    request = _request(NEEDS, rate=Fraction(4000), most=1)
    found = advice.advise(shipped(), request, cache=cache)
    (proposal,) = found.proposals
    assert not _reached(proposal.candidate, request)
    assert proposal.candidate.gives(Fraction(4000))
    cheaper = [
        each
        for each in advice.all_candidates(shipped(), request)
        if each.gives(Fraction(4000)) and _cost(each) < _cost(proposal.candidate)
    ]
    assert cheaper
    assert all(_reached(each, request) for each in cheaper)


@pytest.mark.parametrize("profile", few(["artemis", "rabbitmq", "solace"], 1))
def test_every_failure_has_a_witness_that_the_reference_performs(profile: str, cache: AnswerCache) -> None:
    request = _request(f"{NEEDS},at-least-once", profile, _NARROW, rate=Fraction(400))
    found = advice.advise(shipped(), request, cache=cache)
    refuted = [each for each in found.failures if each.need is not None]
    assert refuted
    for failure in refuted:
        assert failure.need is not None
        watched = observers_of(shipped(), failure.need.excluded_by)
        network = compose(shipped(), failure.candidate.configuration, failure.bounds, watched)
        (shown,) = explore.replay_all(network, [explore.CandidateWitness(failure.anomaly, failure.witness, None)])
        assert shown.steps


def test_a_row_that_loses_messages_takes_the_proposals_away(tmp_path: Path, cache: AnswerCache) -> None:
    request = _request("no-loss", rate=Fraction(400), settings=_ONE_WAY)
    assert advice.advise(shipped(), request, cache=cache).proposals
    spec = copy_of_spec(tmp_path)
    replace(spec, "conditions.yaml", ("delivery_mode == 'PERSISTENT'", "delivery_mode == 'RELIABLE'"))
    changed = tables.load(spec)
    lost = advice.advise(changed, request, cache=AnswerCache(changed, tmp_path / "a.sqlite"), directory=spec)
    assert not lost.proposals
    assert [each.needs for each in lost.given_up] == [("no-loss",)]
    assert any(_reached(each.candidate, request, changed) for each in lost.failures)


@pytest.mark.parametrize("profile", few([*shipped().profiles], 4))
def test_the_changes_of_a_candidate_make_its_configuration(profile: str) -> None:
    request = _request("no-loss", profile, {"consumption": "receive", "send_mode": "blocking"}, rate=Fraction(900))
    found = advice.all_candidates(shipped(), request)
    assert len({each.configuration for each in found}) == len(found)
    for each in found:
        settings = {key: value for key, value in each.changes.items() if not hasattr(NETWORK, key)}
        assert shipped().configure(profile, settings) == each.configuration


def test_every_configuration_of_the_matrix_is_a_candidate_but_for_sizes() -> None:
    settings = {"consumption": "receive", "publish_window": 50}
    found = {each.configuration for each in advice.all_candidates(shipped(), _request("no-loss", settings=settings))}
    planned = matrix.make_plan(shipped(), "artemis", settings).configurations
    assert {dataclasses.replace(each, prefetch=0) for each in planned} <= {
        dataclasses.replace(each, prefetch=0) for each in found
    }


@pytest.mark.parametrize(
    ("rate", "window"), [(4_000, 50), (20_000, 50), (25_000, 100)], ids=["small", "enough", "more"]
)
def test_the_smallest_window_that_carries_the_rate_is_taken(rate: int, window: int) -> None:
    settings = {**_NARROW, "send_mode": "asynchronous", "block_on_acknowledge": False}
    found = advice.all_candidates(shipped(), _request("no-loss", settings=settings, rate=Fraction(rate)))
    windows = {each.configuration.publish_window for each in found} - {None}
    assert windows == {window}
    for each in found:
        plan = timing.plan(dataclasses.replace(each.work, rate=None), timing.waits_of(shipped(), each.configuration))
        assert each.gives(Fraction(rate)) == (plan.rate.low is None or plan.rate.low >= rate)


def test_a_rate_of_which_the_form_has_bounds_is_simulated() -> None:
    settings = {**FEW, "delivery_mode": "PERSISTENT", "send_mode": "blocking", "ack_mode": "AUTO_ACKNOWLEDGE"}
    request = _request("no-loss", settings=settings, sync_time=Fraction(1, 2000))
    (each, *_) = advice.all_candidates(shipped(), request)
    low, high = each.plan.rate.low, each.plan.rate.high
    assert low is not None
    assert high is not None
    assert low < high
    assert each.simulated is not None
    assert float(low) * 0.99 <= each.simulated <= float(high) * 1.01


def test_none_is_an_answer_with_the_least_that_has_to_be_given_up(cache: AnswerCache) -> None:
    too_fast = advice.advise(shipped(), _request(NEEDS, rate=Fraction(10**7), settings=_ONE_WAY), cache=cache)
    assert not too_fast.proposals
    assert [each.needs for each in too_fast.given_up] == [(advice.RATE,)]
    request = _request("no-loss,exactly-once", rate=Fraction(100), settings=_ONE_WAY)
    never = advice.advise(shipped(), request, cache=cache)
    assert not never.proposals
    assert [each.needs for each in never.given_up] == [("exactly-once",)]
    assert not _reached(never.given_up[0].proposal.candidate, _request("no-loss"))


def test_a_search_that_meets_its_bound_proves_nothing(tmp_path: Path) -> None:
    settings = _NARROW if WHOLE else {**_ONE_WAY, **_NARROW}
    request = _request("no-loss,order", bounds=ANY_FAULT, max_states=200, rate=Fraction(400), settings=settings)
    found = advice.advise(shipped(), request, cache=AnswerCache(shipped(), tmp_path / "a.sqlite"))
    assert not found.proposals
    assert found.undecided
    assert all(each.states > request.max_states and not each.witness for each in found.undecided)


def _searching(patch: pytest.MonkeyPatch) -> list[int]:
    """How many searches are made from now on: one number for each."""
    made: list[int] = []
    search: Callable[..., Any] = advice._answers._search  # noqa: SLF001 - nothing else shows it

    def counted(specification: Specification, question: advice.Question) -> advice.Answer:
        found: advice.Answer = search(specification, question)
        made.append(found.states)
        return found

    patch.setattr("ackfsm.surveys.advice._answers._search", counted)
    return made


def test_answers_are_kept_for_the_same_tables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, file = _searching(monkeypatch), tmp_path / "a.sqlite"
    request = _request(NEEDS, rate=Fraction(400), settings=_ONE_WAY)
    first = advice.advise(shipped(), request, cache=AnswerCache(shipped(), file))
    count = len(made)
    assert count
    assert advice.advise(shipped(), request, cache=AnswerCache(shipped(), file)) == first
    assert len(made) == count
    other = dataclasses.replace(shipped(), digest="of other tables")
    assert advice.advise(shipped(), request, cache=AnswerCache(other, file)) == first
    assert len(made) == 2 * count


@pytest.mark.parametrize("damage", [b"no database", b""])
def test_a_damaged_file_of_answers_costs_time_alone(
    damage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, file = _searching(monkeypatch), tmp_path / "a.sqlite"
    request = _request("no-loss", rate=Fraction(400), settings=_ONE_WAY)
    first = advice.advise(shipped(), request, cache=AnswerCache(shipped(), file))
    count = len(made)
    file.write_bytes(damage)
    assert advice.advise(shipped(), request, cache=AnswerCache(shipped(), file)) == first
    assert len(made) == 2 * count


def test_the_front_is_what_no_other_configuration_covers(cache: AnswerCache) -> None:
    settings = {**FEW, "resend_in_doubt": False}
    request = _request(f"{NEEDS},no-duplicate", settings=settings)
    found = advice.front(shipped(), request, cache=cache)
    every = advice.all_candidates(shipped(), request)
    gives = {each: _given(each, request) for each in every}
    for point in found.points:
        assert gives[point.candidate] == point.gives
    for each in every:
        rate = each.rate.low or Fraction(0)
        assert any(
            gives[each] <= point.gives
            and point.candidate.seconds <= each.seconds
            and (point.candidate.rate.low or Fraction(0)) >= rate
            for point in found.points
        )
    for one, other in itertools.permutations(found.points, 2):
        assert not (
            one.gives <= other.gives
            and other.candidate.seconds <= one.candidate.seconds
            and (other.candidate.rate.low or 0) >= (one.candidate.rate.low or 0)
        )


def _given(candidate: Candidate, request: Request) -> frozenset[advice.Need]:
    reached = _reached(candidate, request)
    return frozenset(need for need in request.needs if not need.excluded_by & reached)


def test_needs_are_anomalies_guarantees_and_what_people_call_them() -> None:
    known = advice.needs_of(shipped())
    assert known["order"].excluded_by == known["ordered"].excluded_by == {"reorder"}
    assert known["no-loss"].excluded_by == {"loss"}
    assert {name.replace("-", "_") for name in known} >= set(shipped().guarantees)
    assert [need.name for need in advice.read_needs(["no-loss, ORDER", "no_loss"], known)] == ["no-loss", "order"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [(["no-lost"], "no need 'no-lost' (did you mean no-loss?)"), ([], "--need names nothing"), ([","], "--need names")],
)
def test_an_unknown_need_is_one_sentence(texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        advice.read_needs(texts, advice.needs_of(shipped()))


def test_a_wrong_table_is_told_with_its_line(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "advice.yaml", ("guarantee: ordered", "guarantee: sorted"))
    with pytest.raises(SpecError, match=r"advice\.yaml:\d+"):
        advice.needs_of(shipped(), spec)


def test_failures_and_proposals_tell_what_was_searched(cache: AnswerCache) -> None:
    found = advice.advise(shipped(), _request(NEEDS, rate=Fraction(4000)), cache=cache)
    assert all(each.states > 0 for each in found.proposals)
    assert all(each.states > 0 for each in found.failures if each.need is not None)
    assert found.tried <= found.candidates
