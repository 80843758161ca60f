"""Are certificates of true proofs verified, and is whatever was changed in one refuted?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from ackfsm.checking.certificates import Certificate, Invariant, Level, Way, _words
from ackfsm.checking.certificates._system import LOST, Event, Question, Role
from ackfsm.checking.certificates._verify import _Check
from ackfsm.checking.network import observers_of
from ackfsm.checking.unbounded import Level as SearchLevel
from ackfsm.terms import Fault, InputError
from model_tests.support.checker.certified import FEW, certified, claiming, verified
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE


@pytest.fixture(scope="module")
def auto() -> Certificate:
    """AUTO_ACKNOWLEDGE at the level chaos."""
    return certified()


@pytest.fixture(scope="module")
def order() -> Certificate:
    """The order of messages, which takes a relation."""
    return certified(only=["reorder"], levels=[SearchLevel.RELATED])


def _with(certificate: Certificate, number: int, **changed: object) -> Certificate:
    """``certificate`` with one of its invariants changed."""
    invariants = list(certificate.invariants)
    invariants[number] = dataclasses.replace(invariants[number], **changed)  # type: ignore[arg-type]
    return dataclasses.replace(certificate, invariants=tuple(invariants))


def _several(certificate: Certificate) -> int:
    """Which of its invariants is for several messages."""
    return next(number for number, each in enumerate(certificate.invariants) if each.most is None)


def test_what_is_proved_of_auto_acknowledge_is_verified(auto: Certificate) -> None:
    found = verified(auto)
    assert found.verified
    assert len(auto.proved) > 20
    assert {invariant.level for invariant in auto.invariants} == {Level.ALONE, Level.CHAOS}


def test_what_empties_a_counter_is_looked_at_although_it_moves_nothing_else() -> None:
    """It closes a delayed ghost; the tables with an event that only the counter hears."""
    settings, names = {"ack_mode": "CLIENT_ACKNOWLEDGE"}, ("prefetch_overrun",)
    invariant = certified("qpid", settings, names).invariants[-1]
    configuration, observers = shipped().configure("qpid", settings), observers_of(shipped(), names)
    system = Question(shipped(), configuration, FEW, frozenset(), frozenset(), observers).system(2)
    new, ghost = len(system.events), system.ghosts["prefetch"]
    emptied = dataclasses.replace(ghost.part, moves={**ghost.part.moves, (Role.SYSTEM, new): ((0,),) * (LOST + 1)})
    changed = dataclasses.replace(
        system,
        events=(*system.events, Event("emptied", 0, of_message=False, awaited=False)),
        ghosts={**system.ghosts, "prefetch": dataclasses.replace(ghost, part=emptied)},
    )
    heard = _Check(invariant, changed, lambda *_: None)._hears((Role.SYSTEM,))  # noqa: SLF001 - what it looks at
    assert heard >> new & 1


# what is changed


def _without_view(invariant: Invariant, at: int) -> Invariant:
    return dataclasses.replace(invariant, views=(*invariant.views[:at], *invariant.views[at + 1 :]))


def test_without_any_one_view_it_is_refuted(order: Certificate) -> None:
    number = _several(order)
    many = len(order.invariants[number].views)
    for at in range(0, many, many // (9 if WHOLE else 3)):
        views = _without_view(order.invariants[number], at).views
        found = verified(_with(order, number, views=views))
        assert set(found.refuted) == {"reorder"}
        assert "among" in found.refuted["reorder"]


def test_without_any_one_pair_of_its_relation_it_is_refuted(order: Certificate) -> None:
    number = _several(order)
    relation = order.invariants[number].relation
    assert relation is not None
    assert verified(order).verified
    for at in range(0, len(relation.views), len(relation.views) // (7 if WHOLE else 3)):
        fewer = dataclasses.replace(relation, views=relation.views[:at] + relation.views[at + 1 :])
        found = verified(_with(order, number, relation=fewer))
        assert "not among" in found.refuted["reorder"], at


def test_a_relation_of_what_the_views_do_not_keep_is_refuted(order: Certificate) -> None:
    number = _several(order)
    invariant = order.invariants[number]
    without = tuple(name for name in invariant.message if name != "entry")
    at = [number for number, name in enumerate((*invariant.message, *invariant.ghosts)) if name != "entry"]
    states = [tuple(state[number] for number in at) for state in invariant.message_states]
    distinct = tuple(dict.fromkeys(states))
    views = tuple(sorted({(machines, distinct.index(states[message])) for machines, message in invariant.views}))
    changed = _with(order, number, message=without, message_states=distinct, views=views)
    assert "its relation keeps entry" in verified(changed).refuted["reorder"]
    assert "it has no relation" in verified(_with(order, number, relation=None)).refuted["reorder"]


def test_without_the_first_view_it_is_refuted(auto: Certificate) -> None:
    """Nothing leads back to it, so that the others are closed."""
    number = next(n for n, each in enumerate(auto.invariants) if each.level is Level.ALONE)
    found = verified(_with(auto, number, views=auto.invariants[number].views[1:]))
    assert "the first view" in found.refuted["phantom"]


def test_a_view_that_is_marked_is_refuted() -> None:
    """With a message that was acknowledged and is ready again, and what follows from it: closed, and marked."""
    possible = certified(only=["duplicate", "phantom"])
    assert possible.proved == ("phantom",)
    both = ("phantom", "duplicate")
    changed = dataclasses.replace(
        possible,
        proved=both,
        not_covered={},
        invariants=tuple(claiming(each, both) for each in possible.invariants),
    )
    found = verified(changed)
    assert set(found.refuted) == {"duplicate"}
    assert "is marked beside one of its views" in found.refuted["duplicate"]


def test_a_view_that_leads_elsewhere_is_refuted(auto: Certificate) -> None:
    """A state of a message that none can be in, as it were: all machines as they are, but for one."""
    number = _several(auto)
    invariant = auto.invariants[number]
    at = invariant.message.index("redelivery")
    states = {state[at] for state in invariant.message_states}
    for state in invariant.message_states:
        for other in states - {state[at]}:
            strange = (*state[:at], other, *state[at + 1 :])
            if strange not in invariant.message_states:
                view = (invariant.views[0][0], len(invariant.message_states))
                found = verified(
                    _with(
                        auto,
                        number,
                        message_states=(*invariant.message_states, strange),
                        views=(*invariant.views, view),
                    )
                )
                assert found.refuted
                return
    raise AssertionError("there is no such state")


def test_a_mark_at_rest_is_refuted() -> None:
    """What can be unprocessed at rest, said to be impossible."""
    faults = {Fault.CONSUMER_CRASH}
    certificate = certified(
        only=["unprocessed", "phantom"],
        settings={"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"},
        faults=faults,
    )
    assert certificate.proved == ("phantom",)
    both = ("phantom", "unprocessed")
    invariants = tuple(claiming(each, both) for each in certificate.invariants)
    found = verified(dataclasses.replace(certificate, proved=both, not_covered={}, invariants=invariants))
    assert "can be at rest" in found.refuted["unprocessed"]
    assert "phantom" not in found.refuted


def test_without_a_family_it_is_refuted(auto: Certificate) -> None:
    for number in range(len(auto.invariants)):
        left = (*auto.invariants[:number], *auto.invariants[number + 1 :])
        found = verified(dataclasses.replace(auto, invariants=left))
        assert set(found.refuted) == set(auto.proved)
        assert all("no invariant is for" in why for why in found.refuted.values())


def test_a_family_that_is_too_large_is_refuted(auto: Certificate) -> None:
    """Systems of one message have other rows than those of two."""
    number = _several(auto)
    found = verified(_with(auto, number, least=1))
    assert "the system of 2 messages is another one than that of 1" in found.refuted["phantom"]


def test_one_more_anomaly_is_refuted(auto: Certificate) -> None:
    found = verified(dataclasses.replace(auto, proved=(*auto.proved, "reorder"), not_covered={}))
    assert set(found.refuted) == {"reorder"}


def test_two_things_that_contradict_each_other_are_refuted(auto: Certificate) -> None:
    found = verified(dataclasses.replace(auto, not_covered={"loss": "nobody knows"}))
    assert dict(found.refuted) == {"loss": "it says more than one thing of loss"}


def test_a_lower_level_is_refuted(order: Certificate) -> None:
    """The views of a message that is alone do not hold for several."""
    number = next(n for n, each in enumerate(order.invariants) if each.level is Level.ALONE)
    found = verified(_with(order, number, least=1, most=None, level=Level.CHAOS))
    assert "reorder" in found.refuted
    assert "reorder" in verified(_with(order, number, most=None)).refuted
    assert "reorder" in verified(_with(order, _several(order), least=1)).refuted


def test_the_pairs_of_a_relation_are_no_invariant_by_themselves(order: Certificate) -> None:
    number = _several(order)
    relation, watchers = order.invariants[number].relation, order.invariants[number].watchers
    assert relation is not None
    invariants = (*order.invariants[:number], dataclasses.replace(relation, watchers=watchers))
    found = verified(dataclasses.replace(order, invariants=invariants))
    assert "its level" in found.refuted["reorder"]


def test_an_empty_certificate_is_not_verified(auto: Certificate) -> None:
    assert not verified(dataclasses.replace(auto, proved=(), invariants=())).verified


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (lambda c: dataclasses.replace(c, tables="0" * 64), "other tables"),
        (lambda c: dataclasses.replace(c, configuration={**c.configuration, "profile": "mine"}), "name its file"),
        (lambda c: dataclasses.replace(c, proved=("no_such",)), "there is nothing called 'no_such' to watch for"),
        (lambda c: dataclasses.replace(c, faults=("no_such",)), "no fault or event"),
        (lambda c: dataclasses.replace(c, configuration={"profile": "jms"}), "does not state every setting"),
    ],
)
def test_what_is_of_other_tables_is_an_error(
    changed: Callable[[Certificate], Certificate], sentence: str, auto: Certificate
) -> None:
    with pytest.raises(InputError, match=sentence):
        verified(changed(auto))


def test_a_ghost_that_is_kept_twice_or_without_its_counter_is_refuted() -> None:
    certificate = certified("qpid", {"prefetch": 5}, ["phantom"])
    number = _several(certificate)
    invariant = certificate.invariants[number]
    assert invariant.ghosts == ("prefetch",)
    twice = tuple((*state, state[-1]) for state in invariant.message_states)
    found = verified(_with(certificate, number, ghosts=("prefetch", "prefetch"), message_states=twice))
    assert "or twice" in found.refuted["phantom"]
    other = verified(_with(certificate, number, ghosts=("broker",)))
    assert "of which there is none" in other.refuted["phantom"]


def test_a_ghost_that_only_covers_its_counter_is_not_believed_to_be_exact() -> None:
    """A prefetch that is full is full of something, although what is handed over late counts it down once more."""
    faults = {Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL}
    settings = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}
    certificate = certified("solace-jms", settings, ["loss"], faults=faults, levels=[SearchLevel.RELATED])
    number = _several(certificate)
    assert verified(certificate).verified
    assert certificate.invariants[number].covering == ("prefetch",)
    exact = verified(_with(certificate, number, covering=()))
    assert "does not tell what its message has counted" in exact.refuted["loss"]
    unknown = verified(_with(certificate, number, covering=("broker",)))
    assert "does not keep it" in unknown.refuted["loss"]


def test_what_watches_the_system_may_be_one_of_its_machines() -> None:
    certificate = certified("qpid", {"prefetch": 5}, ["prefetch_overrun"], levels=[SearchLevel.RELATED])
    number = _several(certificate)
    assert len(certificate.invariants[number].message) < 12, "of some forty"
    (watching,) = {machine for _, machine in certificate.invariants[number].watchers}
    assert watching in certificate.invariants[number].system
    assert verified(certificate).verified


def test_what_is_given_up_is_neither_verified_nor_refuted(auto: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_words, "_MOST", -1)
    found = verified(auto)
    assert not found.verified
    assert not found.refuted
    assert "given up" in found.undetermined["loss"]
    assert "phantom" not in found.undetermined


# ways


def test_a_run_that_shows_an_anomaly_is_performed(auto: Certificate) -> None:
    way = Way("duplicate", 1, 1, _DUPLICATE)
    assert verified(dataclasses.replace(auto, ways=(way,), not_covered={})).verified
    for wrong, why in (
        (_DUPLICATE[:-1], "does not show it"),
        (_DUPLICATE[1:], "is refused"),
        ((*_DUPLICATE, "fly(m1)"), "is refused"),
    ):
        ways = (dataclasses.replace(way, steps=wrong),)
        found = verified(dataclasses.replace(auto, ways=ways, not_covered={}))
        assert why in found.refuted["duplicate"]


_DUPLICATE = (
    "send(m1)",
    "accept(m1)",
    "dispatch_first(m1)",
    "arrive(m1)",
    "delivered_clear(m1)",
    "processed(m1)",
    "consumer_link_loss",
    "consumer_link_up",
    "dispatch_again(m1)",
    "arrive(m1)",
    "delivered_flagged(m1)",
)
