"""Would the verifier notice a defect of the search?  It shares no code with it, and refutes what it proves wrongly."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ackfsm.checking.certificates import Certificate, _verify
from ackfsm.checking.certificates._delayed import _delayed
from ackfsm.checking.certificates._followed import followed_system
from ackfsm.checking.certificates._related import RelatedRest as CheckedRest
from ackfsm.checking.certificates._rest import Rest
from ackfsm.checking.certificates._system import Part, Question, Role, System
from ackfsm.checking.certificates._views import ChecksError
from ackfsm.checking.certificates._views import Views as CheckedViews
from ackfsm.checking.certificates._watching import Products, brought_about_by_others
from ackfsm.checking.network import observers_of
from ackfsm.checking.unbounded import Level, _compiled, _examined, _prove, _rest, _views
from ackfsm.checking.unbounded._causes import Causes, caused_states
from ackfsm.checking.unbounded._certify import invariant_of
from ackfsm.checking.unbounded._columns import Scope, system_of, watchers_of
from ackfsm.checking.unbounded._columns import System as SearchedSystem
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._followed import can_be_followed
from ackfsm.checking.unbounded._followed import followed as searched_followed
from ackfsm.checking.unbounded._ghosts import delayed_ghost
from ackfsm.checking.unbounded._localize import everything
from ackfsm.checking.unbounded._related import Known, RelatedRest, halves_of
from ackfsm.checking.unbounded._steps import Spaces, steps_of
from ackfsm.checking.unbounded._tables import Role as SearchRole
from ackfsm.checking.unbounded._tables import Table
from ackfsm.checking.unbounded._watching import watched
from ackfsm.tables import Counter, EventRef, Machine
from ackfsm.terms import Fault, Profile
from model_tests.support.checker.certified import FEW, certified, claiming, verified
from model_tests.support.checker.projected import fading, wary
from model_tests.support.tables import row as table_row
from model_tests.support.tables import shipped
from model_tests.support.whole import before_a_release, few

Patch = pytest.MonkeyPatch


def test_the_verifier_loads_nothing_of_the_search() -> None:
    """Neither the search that made the certificate, nor any other, nor arrays."""
    program = (
        "import sys, ackfsm.checking.certificates; "
        "of_search = ('ackfsm.checking.unbounded', 'ackfsm.checking.explore', 'numpy', 'numba'); "
        "print([name for name in sys.modules if name.startswith(of_search)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# the same machines, made twice


def _moves(table: Table) -> dict[tuple[int, int], tuple[tuple[int, ...], ...]]:
    """The columns of the search in the form that the verifier has."""
    return {
        (int(role), event): tuple(
            tuple(sorted({column[state] for column in columns} - {-1})) for state in range(len(table.states))
        )
        for (role, event), columns in table.columns.items()
    }


def _same(parts: Sequence[Part], tables: Sequence[Table]) -> bool:
    return all(
        (part.name, part.states, part.initial, part.highest) == (table.name, table.states, table.initial, table.limits)
        and {(int(role), event): moves for (role, event), moves in part.moves.items()} == _moves(table)
        for part, table in zip(parts, tables, strict=True)
    )


@pytest.mark.parametrize("messages", [1, 2, 3])
@pytest.mark.parametrize(
    ("profile", "settings"),
    [
        *((profile.value, {}) for profile in Profile),
        ("jms", {"ack_mode": "SESSION_TRANSACTED"}),
        ("jms", {"publish_window": 5, "send_mode": "asynchronous"}),
        ("qpid", {"prefetch": 1}),
    ],
)
def test_the_verifier_and_the_search_make_the_same_machines_of_the_tables(
    profile: str, settings: dict[str, object], messages: int
) -> None:
    specification, faults = shipped(), frozenset(Fault)
    configuration, observers = specification.configure(profile, settings), observers_of(specification)
    found = Question(specification, configuration, faults, frozenset(), frozenset(), observers).system(messages)
    scope = Scope(specification, configuration, faults)
    searched = system_of(scope, Family(messages, messages))
    assert [(event.name, event.copy, event.of_message, event.awaited) for event in found.events] == [
        (event.name, event.copy, event.of_message, not event.may_never_happen) for event in searched.events
    ]
    _same_parts(found, searched)
    watchers = watchers_of(scope, searched, observers)
    assert _same([watcher.part for watcher in found.watchers], [watcher.table for watcher in watchers])
    assert [(w.anomaly, w.of_message, w.marked, w.at_rest) for w in found.watchers] == [
        (w.anomaly, w.of_message, w.marked, w.at_rest) for w in watchers
    ]


def _same_parts(found: System, searched: SearchedSystem) -> None:
    ghosts = {searched.machines[ghost.counter].name: ghost for ghost in searched.ghosts}
    assert list(found.ghosts) == list(ghosts)
    assert _same([ghost.part for ghost in found.ghosts.values()], [searched.message[g.ghost] for g in ghosts.values()])
    assert [(g.down, g.bound, g.refuses) for g in found.ghosts.values()] == [
        (g.moves.down, g.bound, g.refuses) for g in ghosts.values()
    ]
    assert _same(found.system, searched.machines)
    assert _same(found.message, searched.message[: len(searched.message) - len(ghosts)])


@pytest.mark.parametrize(
    "settings", [{}, {"ack_mode": "SESSION_TRANSACTED"}, {"ack_mode": "SESSION_TRANSACTED", "resend_in_doubt": True}]
)
def test_the_verifier_and_the_search_follow_messages_in_the_same_systems(settings: dict[str, object]) -> None:
    specification, faults = shipped(), frozenset(Fault)
    configuration, observers = specification.configure("jms", settings), observers_of(specification)
    found = Question(specification, configuration, faults, frozenset(), frozenset(), observers).system(2)
    searched = system_of(Scope(specification, configuration, faults), Family(2, None))
    watchers = watchers_of(Scope(specification, configuration, faults), searched, observers)
    followed = 0
    for mine, theirs in zip(found.watchers, watchers, strict=True):
        if not can_be_followed(theirs):
            with pytest.raises(ChecksError, match="cannot be followed"):
                followed_system(found, mine)
            continue
        followed += 1
        system, following = searched_followed(searched, theirs)
        mine_followed = followed_system(found, mine)
        assert [(event.name, event.copy, event.of_message) for event in mine_followed.events] == [
            (event.name, event.copy, event.of_message) for event in system.events
        ]
        ghosts = {ghost.ghost for ghost in system.ghosts}
        assert _same(mine_followed.system, system.machines)
        assert _same(mine_followed.message, [each for n, each in enumerate(system.message) if n not in ghosts])
        assert _same([g.part for g in mine_followed.ghosts.values()], [system.message[n] for n in sorted(ghosts)])
        (watching,) = mine_followed.watchers
        assert _same([watching.part], [following.table])
        assert (watching.marked, watching.at_rest) == (following.marked, following.at_rest)
    assert followed > 3


def test_the_verifier_and_the_search_make_the_same_delayed_ghosts() -> None:
    specification, faults = shipped(), frozenset(Fault)
    configuration = specification.configure("qpid", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    observers = observers_of(specification, ["prefetch_overrun"])
    found = Question(specification, configuration, faults, frozenset(), frozenset(), observers).system(2)
    scope = Scope(specification, configuration, faults)
    searched = system_of(scope, Family(2, None))
    of_system = frozenset(number for number, event in enumerate(searched.events) if not event.of_message)
    (watcher,), (count,) = watchers_of(scope, searched, observers), [one.count for one in found.watchers]
    assert count is not None
    assert watcher.moves is not None
    compared = 0
    for mine, guard in zip(found.ghosts.values(), searched.ghosts, strict=True):
        for closing in (frozenset(), guard.moves.reset, frozenset({min(guard.moves.reset, default=0)})):
            table = delayed_ghost(guard.moves, watcher.moves, closing, of_system)
            stays = tuple((state,) for state in range(len(table.states)))
            searched_moves = {key: moves for key, moves in _moves(table).items() if moves != stays}
            assert dict(_delayed(count, mine, closing).moves) == searched_moves
            compared += bool(closing)
    assert compared >= 2


def test_only_events_of_others_lead_into_states_that_have_a_cause() -> None:
    own, other, system = (SearchRole.OWN, 0), (SearchRole.EARLIER, 0), (SearchRole.SYSTEM, 1)
    waits = Table("waits", ("free", "asked", "waits", "late"), 0, {own: ((0, 2, 3, 3),), other: ((1, 1, 2, 3),)})
    assert _caused(waits) == [None, {1}, {1, 2}, {1, 2, 3}]
    changed = dataclasses.replace(waits, columns={**waits.columns, system: ((2, 1, 2, 3),)})
    assert _caused(changed)[1:3] == [{1}, None]


def _caused(table: Table) -> list[frozenset[int] | None]:
    """What the search finds for each state, as the verifier does."""
    part = Part(table.name, table.states, 0, {(Role(role), event): to for (role, event), to in _moves(table).items()})
    found = [caused_states(table, state) for state in range(len(table.states))]
    assert found == [brought_about_by_others(part, state) for state in range(len(table.states))]
    return found


# defects of the search


def _no_steps_of_others(patch: Patch) -> None:
    """Messages that a view does not hold do nothing."""
    patch.setattr(_views, "steps_of", lambda *args, **_: steps_of(*args, third=False))


def _one_event_forgotten(patch: Patch) -> None:
    """The steps of one event are left out."""
    patch.setattr(
        _views,
        "steps_of",
        lambda spaces, *args, **more: tuple(
            step
            for step in steps_of(spaces, *args, **more)
            if spaces.system.events[step.event].name != "consumer_link_up"
        ),
    )


def _no_marks(patch: Patch) -> None:
    """What watches is never seen to be marked."""
    patch.setattr(_examined, "watched", lambda *args: np.zeros_like(watched(*args)))


def _no_words(patch: Patch) -> None:
    """No system is ever at rest."""
    patch.setattr(_rest, "find_word", lambda *_args, **_more: None)


def _one_family(patch: Patch) -> None:
    """All systems are taken to have the rows of one message."""
    patch.setattr(_prove, "families", lambda *_: (Family(1, None),))


def _no_family_of_one(patch: Patch) -> None:
    """The system of one message is forgotten."""
    patch.setattr(_prove, "families", lambda *_: (Family(2, None),))


@pytest.mark.parametrize(
    ("defect", "why"),
    [
        (_no_steps_of_others, "to one that is not among them"),
        (_one_event_forgotten, "to one that is not among them"),
        (_no_marks, "is marked beside one of its views"),
        (_no_words, "is marked beside views that can be at rest"),
        (_one_family, "the system of 2 messages is another one than that of 1"),
        (_no_family_of_one, "no invariant is for"),
    ],
)
def test_what_a_broken_search_proves_is_refuted(defect: Callable[[Patch], None], why: str, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        defect(patch)
        certificate = certified()
    found = verified(certificate)
    assert not found.verified
    assert any(why in said for said in found.refuted.values()), dict(found.refuted)


def test_what_the_search_proves_as_it_is_is_verified() -> None:
    assert verified(certified()).verified


def test_others_that_are_asked_for_too_much_are_noticed(monkeypatch: Patch) -> None:
    """The search takes messages that a view does not hold to own no event."""
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "up_to"}
    with monkeypatch.context() as patch:
        patch.setattr(_compiled, "gather", lambda *args: int(args[3].used[0]))
        certificate = certified("jms", settings, ["phantom", "resurrection"], levels=[Level.RELATED])
    found = verified(certificate)
    assert certificate.proved
    assert set(found.refuted) == set(certificate.proved)
    assert any("to one that is not among them" in said for said in found.refuted.values())


def test_ghosts_that_leave_out_too_much_are_noticed(monkeypatch: Patch) -> None:
    """A view in which messages have counted as much as there is would be taken to be unreal."""
    settings = {"prefetch": 5}
    arrays = _views._step_arrays  # noqa: SLF001 - the defect

    def lower(*args: Any) -> Any:
        found = arrays(*args)
        return found._replace(limits=np.where(found.limits > 2, 0, found.limits))

    with monkeypatch.context() as patch:
        patch.setattr(_views, "_step_arrays", lower)
        certificate = certified("qpid", settings, ["phantom", "prefetch_overrun"])
    found = verified(certificate)
    assert certificate.proved
    assert set(found.refuted) == set(certificate.proved)
    assert verified(certified("qpid", settings, ["phantom", "prefetch_overrun"])).verified


def test_a_counter_that_its_ghosts_do_not_tell_is_noticed(monkeypatch: Patch) -> None:
    """The ghosts count nothing, and nobody sees to that."""

    def idle(*args: Any, **more: Any) -> SearchedSystem:
        system = system_of(*args, **more)
        ghosts = {ghost.ghost for ghost in system.ghosts}
        message = (
            dataclasses.replace(table, columns={}) if number in ghosts else table
            for number, table in enumerate(system.message)
        )
        return dataclasses.replace(system, message=tuple(message))

    with monkeypatch.context() as patch:
        patch.setattr(_prove, "system_of", idle)
        patch.setattr(_views.Views, "broken_ghosts", lambda *_: [])
        certificate = certified("qpid", {"prefetch": 5}, ["phantom"])
    assert certificate.proved == ("phantom",)
    assert set(verified(certificate).refuted) == {"phantom"}


def test_a_message_that_counts_down_what_others_counted_is_noticed(monkeypatch: Patch) -> None:
    """Tables in which sending frees a place in the prefetch that another message has taken: ghosts do not add up."""
    machine, sent = shipped().machines["prefetch"], EventRef("send")
    cells = {**machine.cells, ("down", sent): (table_row("down", sent, "down"),)}
    prefetch = dataclasses.replace(machine, alphabet=(*machine.alphabet, sent), cells=cells)
    changed = dataclasses.replace(shipped(), machines={**shipped().machines, "prefetch": prefetch})
    assert verified(certified("qpid", {"prefetch": 5}, ["phantom"], tables=changed), changed).verified
    with monkeypatch.context() as patch:
        patch.setattr(_views.Views, "broken_ghosts", lambda *_: [])
        certificate = certified("qpid", {"prefetch": 5}, ["phantom"], tables=changed)
    assert "does not tell what its message has counted" in verified(certificate, changed).refuted["phantom"]


def _freed_too_early(machine: Machine) -> Machine:
    """A place of the window is free as soon as the broker has accepted, so that more may be open."""
    accepted = EventRef("accept")
    cells = {cell: rows for cell, rows in machine.cells.items() if cell[0] != "down"}
    cells["down", accepted] = (table_row("down", accepted, "down"),)
    return dataclasses.replace(machine, alphabet=tuple(dict.fromkeys(event for _, event in cells)), cells=cells)


def _never_full(machine: Machine) -> Machine:
    """The window stays at its bound, and refuses nothing."""
    cells = {cell: rows for cell, rows in machine.cells.items() if cell[0] in {"up", "reset"}}
    counter = dataclasses.replace(machine.counter, at_bound=Counter.STAYS)  # type: ignore[type-var]
    alphabet = tuple(dict.fromkeys(event for _, event in cells))
    return dataclasses.replace(machine, alphabet=alphabet, cells=cells, counter=counter)


def _wider(machine: Machine) -> Machine:
    """The window has the bound of the prefetch."""
    counter = dataclasses.replace(machine.counter, bound="prefetched")  # type: ignore[type-var]
    return dataclasses.replace(machine, counter=counter)


@pytest.mark.parametrize("defect", [_freed_too_early, _never_full, _wider])
def test_a_bound_that_is_not_kept_is_noticed(defect: Callable[[Machine], Machine]) -> None:
    settings = {"publish_window": 5, "send_mode": "asynchronous", "prefetch": 7}
    asked = ("phantom", "window_overrun")
    window = defect(shipped().machines["publish_window"])
    changed = dataclasses.replace(shipped(), machines={**shipped().machines, "publish_window": window})
    certificate = certified("jms", settings, asked, tables=changed)
    assert certificate.proved == ("phantom",)
    assert any("publish_window" in invariant.ghosts for invariant in certificate.invariants)
    assert set(verified(_forged(certificate, asked), changed).refuted) == {"window_overrun"}
    assert certified("jms", settings, asked).proved == asked


def _forged(certificate: Certificate, proved: tuple[str, ...]) -> Certificate:
    """The same views, which are said to prove more."""
    invariants = tuple(claiming(each, proved) for each in certificate.invariants)
    return dataclasses.replace(certificate, proved=proved, not_covered={}, invariants=invariants)


def test_a_mark_that_another_message_brings_about_is_noticed() -> None:
    """One message overtakes another, which pairs show with its cause."""
    settings, actions = {"redelivery_delay": True}, ["consumer_close"]
    certificate = certified("activemq", settings, ["phantom"], faults=[], actions=actions, levels=[Level.RELATED])
    found = verified(_forged(certificate, ("phantom", "reorder")))
    assert "is marked beside one of its views" in found.refuted["reorder"]
    assert "phantom" not in found.refuted


@pytest.mark.parametrize("profile", ["jms", "qpid"])
def test_a_message_means_for_rest_what_the_search_says(profile: str) -> None:
    """What it needs, and what it refuses to earlier and to later ones: the definition, made twice."""
    specification, configuration = shipped(), shipped().configure(profile)
    scope, family = Scope(specification, configuration, FEW), Family(2, None)
    searched = _views.Views(Spaces(system_of(scope, family)), Level.CHAOS, third=True, max_states=100_000)
    invariant = invariant_of(searched, family)
    question = Question(
        specification, configuration, FEW, frozenset(), frozenset(), observers_of(specification, ["loss"])
    )
    views = CheckedViews(invariant, question.system(2))
    mine, theirs = Rest(views, Products(views, views.steps(lambda _: 0))), _rest.Rest(searched)
    pairs = {(view[0], message) for view in invariant.views for message in view[1:]}
    numbers = [np.unique(searched.machines), np.unique(np.concatenate(searched.slots))]
    events = len(question.system(2).events)
    for machines, message in pairs:
        found = mine.letter(machines, message)
        letter = theirs.letter(int(numbers[0][machines]), int(numbers[1][message]))
        assert (found.needs, found.for_later, found.for_earlier) == (letter.needs, letter.later, letter.earlier)
        assert found.gives == letter.system | letter.counted << events
    assert len({mine.letter(*pair) for pair in pairs}) > 10


def test_causes_that_there_are_not_are_noticed(monkeypatch: Patch) -> None:
    """With three messages an application may be silenced by two: the search forgets that there are causes of this."""
    changed, faults = wary(shipped(), 2), frozenset({Fault.PRODUCER_LINK_LOSS})
    with monkeypatch.context() as patch:
        patch.setattr(Causes, "beside", lambda *_: (set(), set()))
        certificate = certified(only=["stuck"], faults=faults, levels=[Level.RELATED], tables=changed)
    assert certificate.proved == ("stuck",)
    assert "can be at rest" in verified(certificate, changed).refuted["stuck"]


def test_a_mark_that_three_messages_show_is_noticed(monkeypatch: Patch) -> None:
    """Tables with a defect that takes three messages; the search forgets the third."""
    changed = fading(shipped(), 2)
    with monkeypatch.context() as patch:
        _no_steps_of_others(patch)
        certificate = certified(only=["unflagged_duplicate"], levels=[Level.RELATED], tables=changed)
    assert certificate.proved == ("unflagged_duplicate",)
    assert set(verified(certificate, changed).refuted) == {"unflagged_duplicate"}


# related messages


def _related_to_its_like_alone(patch: Patch) -> None:
    """No message is taken to be beside one of another class."""
    together = Known.together
    patch.setattr(Known, "together", lambda *asked: together(*asked) & np.eye(len(asked[2]), dtype=np.bool_))


def _halves_that_are_not_all(patch: Patch) -> None:
    """Of what a message can be the search forgets a part."""

    def fewer(*asked: Any, **how: Any) -> Any:
        halves = halves_of(*asked, **how)
        halves[:, -1] = False
        return halves

    patch.setattr(_prove, "halves_of", fewer)


@pytest.mark.parametrize(
    ("defect", "why"),
    [
        (_related_to_its_like_alone, "to one that is not among them"),
        (_halves_that_are_not_all, "to one that is not among them"),
        (_no_marks, "is marked beside one of its views"),
    ],
)
def test_what_a_search_for_related_messages_proves_with_a_defect_is_refuted(
    defect: Callable[[Patch], None], why: str, monkeypatch: Patch
) -> None:
    with monkeypatch.context() as patch:
        defect(patch)
        certificate = _of_related_messages()
    found = verified(certificate)
    assert certificate.proved
    assert any(why in said for said in found.refuted.values()), dict(found.refuted)


def test_what_it_proves_as_it_is_is_verified() -> None:
    certificate = _of_related_messages()
    assert certificate.proved == ("reorder", "stuck")
    assert verified(certificate).verified


def _of_related_messages() -> Certificate:
    settings, asked = {"delivery_mode": "NON_PERSISTENT"}, ["loss", "duplicate", "reorder", "stuck"]
    return certified("jms", settings, asked, faults={*FEW, Fault.BROKER_KILL}, levels=[Level.RELATED])


@before_a_release
def test_a_bound_that_pairs_alone_are_seen_to_keep_is_verified(monkeypatch: Patch) -> None:
    """The mutant: a verifier that asks neither the views nor the pairs whether a counter keeps the bound."""
    monkeypatch.setattr(_prove._Run, "_of_whole_relation", lambda *_: "it is not asked")  # noqa: SLF001
    monkeypatch.setattr(_prove, "first_kept", lambda system, *_: everything(system))
    settings = {"publish_window": 5, "send_mode": "asynchronous"}
    certificate = certified("jms", settings, ["window_overrun"], levels=[Level.RELATED])
    is_within = _verify._is_within_a_bound  # noqa: SLF001 - it is asked by the mutants
    for slots in (1, 2):
        monkeypatch.setattr(
            _verify,
            "_is_within_a_bound",
            lambda asked, count, of=slots: asked.views.level.messages == of and is_within(asked, count),
        )
        assert verified(certificate).verified
    monkeypatch.setattr(_verify, "_is_within_a_bound", lambda *_: False)
    assert "is marked beside one of its views" in verified(certificate).refuted["window_overrun"]


@pytest.mark.parametrize("machines", ["all", "few"])
def test_a_message_that_pairs_alone_show_not_to_be_overtaken_is_verified(monkeypatch: Patch, machines: str) -> None:
    """The mutant: a verifier that does not ask who brings a mark about sees one in some pair."""
    settings = {"resend_in_doubt": True, "consumption": "receive", "block_on_acknowledge": False}
    if machines == "few":
        shown, first = _examined.Related.shown, iter(["the relation of all machines is not asked"])
        monkeypatch.setattr(_examined.Related, "shown", lambda *asked: next(first, None) or shown(*asked))
        monkeypatch.setattr(_prove, "with_what_chooses", lambda _system, kept, _watcher: kept)
    certificate = certified("jms", settings, ["reorder"], faults={Fault.CONSUMER_LINK_LOSS}, levels=[Level.RELATED])
    assert certificate.proved == ("reorder",)
    assert verified(certificate).verified
    monkeypatch.setattr(Products, "_is_caused", lambda *_: True)
    assert "is marked beside one of its views" in verified(certificate).refuted["reorder"]


def test_messages_at_rest_that_a_search_does_not_see_are_noticed(monkeypatch: Patch) -> None:
    """An application that two doubts silence: no word of related messages is found."""
    changed, faults = wary(shipped(), 2), frozenset({Fault.PRODUCER_LINK_LOSS})
    monkeypatch.setattr(RelatedRest, "shows", lambda *_asked, **_more: False)
    certificate = certified(only=["stuck"], faults=faults, levels=[Level.RELATED], tables=changed)
    assert certificate.proved == ("stuck",)
    assert "can be at rest" in verified(certificate, changed).refuted["stuck"]


def test_with_every_fault_the_verifier_needs_all_messages_to_be_related(monkeypatch: Patch) -> None:
    """The mutant: a verifier that lets any two messages stand beside the marked one finds a word that there is not."""
    certificate = certified("qpid", {"consumption": "receive"}, ["stuck"], faults=Fault, levels=[Level.RELATED])
    assert verified(certificate).verified
    monkeypatch.setattr(CheckedRest, "places", lambda *_: defaultdict(lambda: (0, 0, 0)))
    assert "can be at rest" in verified(certificate).refuted["stuck"]


# views that leave machines out


def _without(*names: str) -> Callable[..., SearchedSystem]:
    def made(*args: Any, **more: Any) -> SearchedSystem:
        system = system_of(*args, **more)
        machines, message = (
            tuple(table for table in tables if table.name not in names) for tables in (system.machines, system.message)
        )
        return dataclasses.replace(system, machines=machines, message=message)

    return made


@pytest.mark.parametrize("left_out", few(["delivery_attempts", "turned_away", "fault_budget", "recovery"], 2))
def test_views_may_leave_out_machines(left_out: str, monkeypatch: Patch) -> None:
    """What is proved without some machine, which then refuses nothing, is true with it."""
    monkeypatch.setattr(_prove, "system_of", _without(left_out))
    certificate = certified()
    assert all(left_out not in (*each.system, *each.message) for each in certificate.invariants)
    assert {"phantom", "loss", "torn_transaction"} <= set(certificate.proved)
    assert verified(certificate).verified


@pytest.mark.parametrize(
    ("left_out", "said"), [("processing", {"unprocessed", "loss", "stuck"}), ("record", {"missing_outcome", "stuck"})]
)
def test_rest_does_not_lean_on_machines_that_are_left_out(left_out: str, said: set[str], monkeypatch: Patch) -> None:
    """What they would refuse does not happen at rest either, so that there is more rest than such views show."""
    monkeypatch.setattr(_prove, "system_of", _without(left_out))
    certificate = certified()
    found = verified(certificate)
    assert said <= set(certificate.proved)
    assert said <= set(found.refuted)
    assert "phantom" not in found.refuted
