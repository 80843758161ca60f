"""Is a prefetch that a broken connection empties kept to, with what the library still holds of it?"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import pytest

from ackfsm.checking import explore
from ackfsm.checking.certificates import verify_certificate
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded import Level, decide, prove
from ackfsm.checking.unbounded._ghosts import LOST, Delayed, Moves, delayed_ghost, delayed_states
from ackfsm.checking.unbounded._tables import Role
from ackfsm.tables import EventRef, Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.checker.certified import certified, verified
from model_tests.support.tables import row, shipped
from model_tests.support.whole import WHOLE, in_turn

NAMES = ("prefetch_overrun", "double_outcome")
LINK = frozenset({Fault.CONSUMER_LINK_LOSS})
HELD: Mapping[str, dict[str, object]] = {
    "qpid": {"ack_mode": "CLIENT_ACKNOWLEDGE"},
    "rabbitmq": {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"},
}
"""What the library holds is handed over after the connection is gone."""


def _proved(specification: Specification, profile: str, level: Level = Level.CHAOS) -> bool:
    configuration = specification.configure(profile, HELD[profile] | {"prefetch": 500})
    proof = prove(specification, configuration, ["prefetch_overrun"], faults=LINK, levels=[level])
    return proof.verdicts["prefetch_overrun"].proved


def _reached(specification: Specification, profile: str) -> bool | None:
    configuration = specification.configure(profile, HELD[profile] | {"prefetch": 1})
    bounds = Bounds(messages=2, faults=LINK, max_faults=2)
    answer = explore.check(specification, configuration, bounds, only=["prefetch_overrun"])
    return answer.findings[Anomaly.PREFETCH_OVERRUN].reachable


@pytest.mark.parametrize(("level", "profile"), in_turn([Level.CHAOS, Level.RELATED], list(HELD), 1))
def test_what_is_held_over_a_broken_connection_is_within_the_bound(profile: str, level: Level) -> None:
    settings = HELD[profile] | {"prefetch": 500}
    certificate = certified(profile, settings, NAMES, levels=[level], faults=LINK, localize=True)
    assert set(certificate.proved) == set(NAMES)
    assert verified(certificate).verified
    assert _reached(shipped(), profile) is False


def test_it_is_the_delayed_ghost_that_proves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.checking.unbounded._examined._is_at_most_delayed", lambda *_: False)
    assert not _proved(shipped(), "qpid")


def test_too_many_views_for_it_are_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.checking.unbounded._examined._MOST_PRODUCT", 100)
    configuration = shipped().configure("qpid", HELD["qpid"])
    proof = prove(shipped(), configuration, ["prefetch_overrun"], faults=LINK, levels=[Level.CHAOS])
    assert "more than 100 pairs of a view and a state" in proof.verdicts["prefetch_overrun"].undecided


def _changed(machine: str, state: str, event: str, target: str | None) -> Specification:
    """The tables with another row for one event in one state."""
    of, ref = shipped().machines[machine], EventRef(event)
    cells = {**of.cells, (state, ref): (row(state, ref, target),)}
    machines = {**shipped().machines, machine: dataclasses.replace(of, cells=cells)}
    return dataclasses.replace(shipped(), machines=machines)


def test_a_library_that_keeps_what_it_holds_over_a_new_connection_is_not_within_it() -> None:
    """The defect: the old session's message is handed over beside as many of the new one as the bound allows."""
    defect = _changed("delivery", "prefetched", "consumer_link_up", "prefetched")
    assert _reached(defect, "rabbitmq") is True
    for level, profile in in_turn([Level.CHAOS, Level.RELATED], list(HELD), 1):
        assert not _proved(defect, profile, level)


GUARD = Moves(up=frozenset({0}), down=frozenset({1}), reset=frozenset({2}))
WATCHING = Moves(up=frozenset({3}), down=frozenset({1}), reset=frozenset({2, 4}))


@pytest.mark.parametrize("places", [1, 2])
def test_the_sum_of_delayed_ghosts_is_never_above_the_bound(places: int) -> None:
    """All runs of some events of two messages, with a counter that refuses at its bound and while it is closed."""
    states = delayed_states()
    columns = delayed_ghost(GUARD, WATCHING, frozenset({2}), frozenset({2, 4})).columns
    events = [(event, message) for event in (0, 1, 3) for message in (0, 1)] + [(2, -1), (4, -1)]
    for run in itertools.product(events, repeat=6 if WHOLE else 5):
        count, closed, ghosts = 0, False, [0, 0]
        for event, message in run:
            if event == 0 and (closed or count == places):
                break
            if (event == 1 and not states[ghosts[message]].kept) or (event == 4 and not closed):
                break
            count = 0 if event == 2 else count + (event == 0) - (event == 1 and not closed)
            closed = event == 2 or (closed and event != 4)
            ghosts = [_next(columns, at, event, number == message) for number, at in enumerate(ghosts)]
            assert sum(states[at].kept for at in ghosts) <= places
            assert closed or sum(states[at].kept for at in ghosts) == count


def _next(columns: Mapping[tuple[Role, int], tuple[tuple[int, ...], ...]], at: int, event: int, own: bool) -> int:  # noqa: FBT001
    role = Role.SYSTEM if event in {2, 4} else Role.OWN if own else Role.EARLIER
    found = columns.get((role, event))
    return at if found is None else found[0][at]


def test_counting_up_while_it_is_closed_is_wrong() -> None:
    states = delayed_states()
    columns = delayed_ghost(GUARD, WATCHING, frozenset({2}), frozenset({2, 4})).columns
    closed = states.index(Delayed(closed=True, kept=1, watching=0))
    assert states[_next(columns, closed, 0, own=True)] == Delayed(closed=True, kept=LOST, watching=LOST)
    assert states[_next(columns, closed, 0, own=False)] == states[closed]
    assert states[_next(columns, closed, 4, own=False)] == Delayed(closed=False, kept=0, watching=0)


def test_it_is_the_delayed_ghost_that_verifies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certified("qpid", HELD["qpid"], NAMES, faults=LINK)
    monkeypatch.setattr("ackfsm.checking.certificates._verify.is_within_delayed", lambda *_: False)
    assert set(verified(certificate).refuted) == {"prefetch_overrun"}


def test_a_certificate_of_a_library_that_keeps_what_it_holds_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The views of the defect are closed; a search that takes every ghost to be late enough says too much of them."""
    defect = _changed("delivery", "prefetched", "consumer_link_up", "prefetched")
    monkeypatch.setattr("ackfsm.checking.unbounded._examined._is_at_most_delayed", lambda *_: True)
    configuration = defect.configure("rabbitmq", HELD["rabbitmq"] | {"prefetch": 500})
    found = decide(defect, configuration, Bounds(faults=LINK), only=NAMES, keep_invariants=True)
    made = found.certificate(defect)
    assert set(made.proved) == set(NAMES)
    assert set(verify_certificate(made, defect).refuted) == {"prefetch_overrun"}
