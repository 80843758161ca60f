"""Are states of a message made one only where nothing that is asked of them could ever tell them apart (lemma 9)?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.checking.unbounded import Level, _compiled, prove
from ackfsm.checking.unbounded._causes import caused_states
from ackfsm.checking.unbounded._columns import Scope, System, system_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._localize import Kept, projected
from ackfsm.checking.unbounded._related import halves_of, relating
from ackfsm.checking.unbounded._spaces import Space, empty_lookup
from ackfsm.checking.unbounded._steps import Spaces
from ackfsm.checking.unbounded._tables import Role
from ackfsm.checking.unbounded._views import Views
from ackfsm.terms import Fault
from model_tests.support.tables import shipped
from model_tests.support.whole import in_turn

_FEW = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL})
_CASES = [("jms", {}), ("qpid", {"prefetch": 5}), ("jms", {"resend_in_doubt": True})]
_REFUSED, _NOT_MET = -1, -2
_OTHERS = {Role.SYSTEM, Role.EARLIER, Role.LATER}


def _system(profile: str, settings: dict[str, object]) -> System:
    return system_of(Scope(shipped(), shipped().configure(profile, settings), _FEW), Family(3, None))


def _with_halves(whole: System, *, of_relation: bool) -> tuple[Spaces, np.ndarray]:
    """The states of a relation with all the machines that it may know, and the halves of its views."""
    local = Views(Spaces(whole), Level.LOCAL, third=True, max_states=400_000)
    system = Kept(frozenset(range(len(whole.machines))), frozenset())
    spaces = Spaces(projected(whole, relating(whole) | system))
    return spaces, halves_of(local, spaces, of_relation=of_relation)


def _pairs(whole: System, *, of_relation: bool) -> Views:
    """The views of a relation with all the machines that it may know."""
    spaces, halves = _with_halves(whole, of_relation=of_relation)
    return Views(spaces, Level.PAIRS, third=True, max_states=700_000, halves=halves)


def _unheard(system: System) -> list[tuple[Role, int]]:
    """The events that a message has for itself: no machine of the system, or of another message, moves or refuses."""
    heard = {event for table in system.machines for _, event in table.columns}
    heard |= {event for table in system.message for role, event in table.columns if role in _OTHERS}
    return [
        (Role.OWN, number) for number, event in enumerate(system.events) if event.of_message and number not in heard
    ]


def _coarsest(keys: Sequence[Hashable], after: Sequence[Sequence[int]]) -> list[int]:
    """Of each number the first one that has the same key, and steps to numbers of which that is true."""
    blocks = [keys.index(key) for key in keys]
    while True:
        seen: dict[Hashable, int] = {}
        rows = [(mine, *(blocks[to] if to >= 0 else to for to in row)) for mine, row in zip(blocks, after, strict=True)]
        finer = [seen.setdefault(row, number) for number, row in enumerate(rows)]
        if finer == blocks:
            return finer
        blocks = finer


@pytest.mark.parametrize(("of_relation", "case"), in_turn([False, True], _CASES, 1))
def test_states_of_a_message_that_are_made_one_are_the_coarsest_that_may_be(
    case: tuple[str, dict[str, object]], *, of_relation: bool
) -> None:
    """They have the same ghosts, wait for the same causes, and so do those that follow them by whatever step.

    In a relation whoever refuses what it has for itself stays as it is by it, unless all that are made one refuse it.
    """
    spaces, halves = _with_halves(_system(*case), of_relation=of_relation)
    message, ghosts = spaces.message, [ghost.ghost for ghost in spaces.system.ghosts]
    assert message.representatives is not None
    is_met = halves.sum(axis=0) > 0
    met = int(np.count_nonzero(is_met))
    assert is_met[:met].all(), "the states that are met come first"
    again = Spaces(spaces.system).message
    numbers = again.add(message.states[:met])
    assert numbers.tolist() == list(range(met))
    again.merge(np.arange(met)[:, None])
    after = again.after[:met].astype(np.int64)
    unheard = [spaces.message_steps[its] for its in _unheard(spaces.system)] if of_relation else []
    refused = after[:, unheard] == _REFUSED
    after[:, unheard] = np.where(refused, np.arange(met)[:, None], after[:, unheard])
    keys = [
        (
            *(caused_states(table, int(state)) for table, state in zip(message.tables, row, strict=True)),
            *(int(row[ghost]) for ghost in ghosts),
        )
        for row in message.states[:met]
    ]
    kept = message.representatives[:met]
    assert kept.tolist() == _coarsest(keys, np.where(after >= met, _NOT_MET, after).tolist())
    assert len(set(kept.tolist())) < met, "else none would be made one"
    by_all = np.array([refused[kept == block].all(axis=0) for block in kept])
    assert ((message.after[:met][:, unheard] == _REFUSED) == by_all).all()


@pytest.mark.parametrize(("profile", "settings"), _CASES[:2])
def test_what_an_application_is_left_behind_with_is_no_matter_of_a_relation(
    profile: str, settings: dict[str, object]
) -> None:
    """Whether it is still busy with a delivery of an earlier session hinders no other message."""
    exact, of_relation = (len(_pairs(_system(profile, settings), of_relation=each)) for each in (False, True))
    assert of_relation < exact / 2


@pytest.mark.parametrize(("of_relation", "case"), in_turn([False, True], _CASES[:2], 1))
def test_what_pairs_can_be_in_is_no_less(
    case: tuple[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch, *, of_relation: bool
) -> None:
    """Of each pair of states that are not made one the pair of those that are kept is there; and the mutant.

    It takes those for one that can do the same, whatever follows.
    """
    whole = _system(*case)
    with monkeypatch.context() as patch:
        patch.setattr(Space, "merge", lambda *_: None)
        apart = _pairs(whole, of_relation=of_relation)
    pairs = _tuples(apart, apart.machines, apart.slots)
    together = _pairs(whole, of_relation=of_relation)
    assert pairs <= _tuples(together, *_parts(together.of_all_states()))
    assert len(together) < len(apart)
    with monkeypatch.context() as patch:
        patch.setattr(_compiled, "refine", lambda *_: 0)
        mutant = _pairs(whole, of_relation=of_relation)
    assert not pairs <= _tuples(mutant, *_parts(mutant.of_all_states()))


def _parts(of_all: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    return of_all[0], [*of_all[1:]]


def _tuples(views: Views, machines: np.ndarray, slots: Sequence[np.ndarray]) -> set[tuple[int, ...]]:
    """The views with the states themselves in place of numbers, which each has of its own."""
    states = [views.spaces.machines.states[machines], *(views.spaces.message.states[slot] for slot in slots)]
    return set(map(tuple, np.concatenate(states, axis=1).tolist()))


def test_the_same_is_proved_with_all_states_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = shipped().configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    asked = ["reorder", "stuck", "loss", "duplicate"]
    merged = prove(shipped(), configuration, asked, faults=_FEW, levels=[Level.RELATED])
    monkeypatch.setattr(Space, "merge", lambda *_: None)
    apart = prove(shipped(), configuration, asked, faults=_FEW, levels=[Level.RELATED])
    assert {name for name, verdict in merged.verdicts.items() if verdict.proved} == {
        name for name, verdict in apart.verdicts.items() if verdict.proved
    }
    assert merged.verdicts["stuck"].proved


@given(st.data())
def test_a_refinement_is_that_of_the_definition(data: st.DataObject) -> None:
    size, steps = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    row = st.lists(st.integers(_REFUSED, size - 1), min_size=steps, max_size=steps)
    after = data.draw(st.lists(row, min_size=size, max_size=size))
    keys = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    blocks, finer, count = np.array(keys, np.int64), np.zeros(size, np.int64), 0
    while (found := _compiled.refine(np.array(after, np.int32), blocks, finer, empty_lookup(size))) > count:
        blocks, finer, count = finer.copy(), blocks, found
    assert blocks.tolist() == _coarsest(keys, after)
