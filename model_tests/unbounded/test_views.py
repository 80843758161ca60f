"""Is all that systems of two, three, four and six messages can be in within the views for any number of them?"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
import pytest

from ackfsm.checking.explore import explore
from ackfsm.checking.network import Bounds, compose
from ackfsm.checking.unbounded import Level
from ackfsm.checking.unbounded._alike import Bounded
from ackfsm.checking.unbounded._columns import Scope, System, system_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._localize import Kept, projected
from ackfsm.checking.unbounded._related import Known, RelatedViews, Relation, halves_of, relating
from ackfsm.checking.unbounded._spaces import distinct_rows
from ackfsm.checking.unbounded._steps import Spaces
from ackfsm.checking.unbounded._tables import Table
from ackfsm.checking.unbounded._views import Views
from ackfsm.terms import Fault
from model_tests.support.checker.projected import Projection, random_run
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, in_turn

_ENDLESS = Family(3, None)
_FEW = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL})

_CASES: Mapping[str, tuple[str, dict[str, object]]] = {
    "jms": ("jms", {}),
    "up to": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "up_to"}),
    "prefetch 1": ("qpid", {"prefetch": 1}),
    "prefetch 5": ("qpid", {"prefetch": 5}),
    "window 5": ("jms", {"publish_window": 5, "send_mode": "asynchronous"}),
}


@functools.cache
def _views(
    name: str, level: Level, *, faults: frozenset[Fault] = _FEW, family: Family = _ENDLESS, third: bool = True
) -> Views:
    profile, settings = _CASES[name]
    scope = Scope(shipped(), shipped().configure(profile, settings), faults)
    return Views(Spaces(system_of(scope, family)), level, third=third, max_states=400_000)


def _missing(  # noqa: PLR0913 - what is run, and how far
    name: str, views: Views, messages: int, *, faults: frozenset[Fault] = _FEW, seeds: int = 3, steps: int = 150
) -> list[str]:
    """What random runs of so many messages come to that is not within the views."""
    profile, settings = _CASES[name]
    bounds = Bounds(messages=messages, faults=faults, max_faults=None)
    network = compose(shipped(), shipped().configure(profile, settings), bounds, ())
    projection = Projection(network, views.spaces.system)
    found = []
    for seed in range(seeds):
        for event, state in random_run(network, seed, steps):
            if event is None:
                ghosts = projection.no_ghosts()
            else:
                projection.count(ghosts, event)
            found += [f"{event}: {some}" for some in projection.missing(views, state, ghosts)]
    return found


@pytest.mark.parametrize("name", _CASES)
def test_runs_of_six_messages_are_within_the_views_of_one(name: str) -> None:
    """Those of chaos; local ones have all that views have which ask a relation made of them."""
    views = _views(name, Level.CHAOS)
    assert not views.broken, "else the views are made again without them"
    assert not _missing(name, views, 6)


@pytest.mark.parametrize("name", ["jms", "up to", "prefetch 5"])
def test_runs_of_six_messages_are_within_the_views_of_two(name: str) -> None:
    views = _views(name, Level.PAIRS)
    assert not _missing(name, views, 6, seeds=2)


@pytest.mark.parametrize("name", _CASES)
def test_runs_of_six_messages_are_within_what_each_machine_alone_can_be_in(name: str) -> None:
    """Lemma 8, and the sets are no more than what says something: some states are in none."""
    profile, settings = _CASES[name]
    configuration = shipped().configure(profile, settings)
    system = system_of(Scope(shipped(), configuration, _FEW), _ENDLESS)
    reached = Bounded(system, ()).reached
    assert any(len(its) < len(table.states) for its, table in zip(reached, _tables(system), strict=True))
    network = compose(shipped(), configuration, Bounds(messages=6, faults=_FEW, max_faults=None), ())
    projection = Projection(network, system)
    for seed in range(25 if WHOLE else 8):
        for event, state in random_run(network, seed, 150):
            if event is None:
                ghosts = projection.no_ghosts()
            else:
                projection.count(ghosts, event)
            for message in range(1, 7):
                local = (*projection.machines(state), *projection.message(state, message, ghosts[message]))
                assert all(number in its for number, its in zip(local, reached, strict=True)), event


def _tables(system: System) -> tuple[Table, ...]:
    return (*system.machines, *system.message)


def _related(name: str, *, of_system: bool = True) -> RelatedViews:
    """The views of one message that ask a relation, which knows more or less."""
    local = _views(name, Level.LOCAL)
    whole = local.spaces.system
    kept = relating(whole)
    if of_system:
        kept |= Kept(frozenset(range(len(whole.machines))), frozenset())
    pairs = _pairs(projected(whole, kept), local)
    if pairs.broken:
        pairs = _pairs(projected(dataclasses.replace(whole, ghosts=()), kept), local)
    spaces, relation = Spaces(whole), Relation(pairs)
    halves = halves_of(local, spaces, relation)
    return RelatedViews(spaces, relation, third=True, max_states=400_000, halves=halves)


def _pairs(system: System, local: Views) -> Views:
    spaces = Spaces(system)
    halves = halves_of(local, spaces, of_relation=True)
    return Views(spaces, Level.PAIRS, third=True, max_states=400_000, halves=halves)


@pytest.mark.parametrize(("of_system", "name"), in_turn([False, True], list(_CASES), 1))
def test_runs_of_six_messages_are_within_the_relation_and_the_views_that_ask_it(name: str, *, of_system: bool) -> None:
    related = _related(name, of_system=of_system)
    assert len(related) < len(_views(name, Level.LOCAL)), "else the relation would exclude nothing"
    assert not _missing(name, related, 6, seeds=2)
    assert not _missing(name, related.relation.pairs, 6, seeds=1)


def test_views_that_ask_a_relation_without_some_pairs_are_seen_to_be_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: no message is taken to be beside one of another class, nor an earlier one beside any."""
    together = Known.together
    for mutant in (np.eye, np.tri):
        monkeypatch.setattr(
            Known, "together", lambda *asked, of=mutant: together(*asked) & of(len(asked[2])).astype(np.bool_)
        )
        assert _missing("up to", _related("up to"), 6, seeds=10)


def test_views_that_forget_what_others_do_are_seen_to_be_too_few() -> None:
    """The mutant: without the steps of a message that the views do not hold they are not all."""
    none = frozenset[Fault]()
    for third, few in ((False, True), (True, False)):
        views = _views("up to", Level.PAIRS, faults=none, third=third)
        assert bool(_missing("up to", views, 4, faults=none, seeds=30, steps=80)) == few


@pytest.mark.parametrize("settings", [{}, {"ack_mode": "DUPS_OK_ACKNOWLEDGE"}, {"max_delivery_attempts": 2}])
def test_a_message_without_others_is_in_as_many_states_as_a_search_finds(settings: dict[str, object]) -> None:
    configuration = shipped().configure("jms", settings)
    scope = Scope(shipped(), configuration, frozenset(Fault))
    views = Views(Spaces(system_of(scope, Family(1, 1))), Level.ALONE, third=False, max_states=100_000)
    searched = explore(compose(shipped(), configuration, Bounds(faults=frozenset(Fault), max_faults=None), ()))
    assert searched.complete
    assert len(views) == searched.states


def test_two_messages_are_in_as_many_pairs_as_a_search_finds_states() -> None:
    configuration = shipped().configure("jms")
    views = _views("jms", Level.PAIRS, family=Family(2, 2), third=False)
    searched = explore(compose(shipped(), configuration, Bounds(messages=2, faults=_FEW, max_faults=None), ()))
    assert searched.complete
    assert len(views) == searched.states


@pytest.mark.parametrize("seed", range(40))
def test_distinct_rows_are_those_of_numpy(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    least, most = [(-3, 3), (0, 1 << 15), (-(1 << 62), 1 << 62)][seed % 3]
    rows = drawn.integers(least, most, size=(int(drawn.integers(1, 200)), int(drawn.integers(1, 30))))
    rows = rows[drawn.integers(0, len(rows), size=2 * len(rows))]
    for found, expected in zip(distinct_rows(rows), np.unique(rows, axis=0, return_inverse=True), strict=True):
        assert np.array_equal(found, expected.reshape(found.shape))
