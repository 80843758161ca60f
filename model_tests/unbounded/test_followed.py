"""Is a mark at rest excluded by a followed message only where no system shows it (lemma 10)?"""

from __future__ import annotations

import dataclasses
import functools

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.checking.unbounded import Level, _followed, prove
from ackfsm.checking.unbounded._columns import Scope, System, Watcher, system_of, watchers_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._followed import can_be_followed, followed
from ackfsm.checking.unbounded._steps import Spaces
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.checking.unbounded._views import Views
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration, Fault
from model_tests import mutants
from model_tests.support.checker.projected import Projection, has_view, number_in, random_run
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, few

_LINKS = frozenset({Fault.PRODUCER_LINK_LOSS, Fault.CONSUMER_LINK_LOSS})
_TORN = Anomaly.TORN_TRANSACTION
_MESSAGES = 4


def _sent_twice(specification: Specification) -> Configuration:
    settings = {"ack_mode": "SESSION_TRANSACTED", "consumption": "receive", "resend_in_doubt": True}
    return specification.configure("jms", settings)


def _proved(specification: Specification, level: Level, faults: frozenset[Fault] = _LINKS) -> bool:
    proof = prove(specification, _sent_twice(specification), [_TORN], faults=faults, levels=[level], least=2)
    return proof.verdicts[_TORN].proved


def test_transactions_of_messages_that_are_sent_twice_are_not_torn() -> None:
    faults = _LINKS if WHOLE else frozenset({Fault.CONSUMER_LINK_LOSS})
    assert _proved(shipped(), Level.FOLLOWED, faults)
    assert not _proved(shipped(), Level.RELATED, faults), "it would take no followed message"


_TEARING = (
    "delivery.absent dispatch_again: deleted",
    "delivery.prefetched delivered_flagged: deleted",
    "ack_record.otherwise execute_consumer_commit: refused",
    "consumer_transaction.otherwise consumer_commit_called: allowed",
)


@functools.cache
def _torn(name: str) -> Specification:
    """The tables with a defect that a search of two messages sees to tear a transaction."""
    (mutant,) = (each for each in mutants.mutants(shipped()) if str(each) == name)
    changed = mutants.apply(shipped(), mutant)
    bounds = Bounds(messages=2, faults=_LINKS, max_faults=1)
    answer = explore.check(changed, _sent_twice(changed), bounds, only=[_TORN])
    assert answer.findings[_TORN].reachable, name
    return changed


@pytest.mark.parametrize("name", few([*_TEARING], 2))
def test_a_defect_that_tears_a_transaction_is_not_proved_away(name: str) -> None:
    assert not _proved(_torn(name), Level.FOLLOWED)


def test_a_mark_that_anything_takes_back_would_be_proved_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: every event of who brought the mark about is taken for one that takes it back."""

    def by_anything(watcher: Watcher, *_: object) -> Table:
        events = range(max(event for _, event in watcher.table.columns) + 1)
        return Table("taken back", ("no", "yes"), 0, {(Role.OWN, event): ((1, 1),) for event in events})

    monkeypatch.setattr(_followed, "_taking_back", by_anything)
    assert _proved(_torn(_TEARING[0]), Level.FOLLOWED)


def test_only_what_is_marked_at_rest_and_never_again_is_followed() -> None:
    _, watchers = _whole(_sent_twice(shipped()))
    followable = {watcher.table.name for watcher in watchers if can_be_followed(watcher)}
    assert followable >= {"part_of_the_sends", "part_of_the_acknowledgements", "owed_to_the_application"}
    assert not followable & {"input_and_output", "in_flight", "overtaken", "open_transaction"}


def _whole(configuration: Configuration) -> tuple[System, tuple[Watcher, ...]]:
    scope = Scope(shipped(), configuration, _LINKS)
    system = system_of(scope, Family(3, None))
    return system, watchers_of(scope, system, observers_of(shipped()))


@pytest.mark.parametrize("name", ["part_of_the_sends", "part_of_the_acknowledgements", "overtaken"])
def test_runs_are_within_the_views_of_the_system_in_which_one_of_their_messages_is_followed(name: str) -> None:
    """Until what watches has no more hope, or is marked at rest; one that tells earlier from later messages too."""
    configuration = shipped().configure("jms") if name == "overtaken" else _sent_twice(shipped())
    system, watchers = _whole(configuration)
    (watcher,) = (each for each in watchers if each.table.name == name)
    whole, _ = followed(dataclasses.replace(system, ghosts=()), watcher)
    views = Views(Spaces(whole), Level.LOCAL, third=True, max_states=2_000_000)
    network = compose(shipped(), configuration, Bounds(messages=_MESSAGES, faults=_LINKS, max_faults=None), ())
    runs = [_Follows(Projection(network, system), views, message, seed) for message in (1, 2, 4) for seed in range(5)]
    assert [each.missing for each in runs] == [[]] * len(runs)
    assert sum(each.steps for each in runs) > 300


class _Follows:
    """A run of a few messages, one of which is followed: what is missing of it in the views, after how many steps."""

    def __init__(self, projection: Projection, views: Views, message: int, seed: int) -> None:
        self._projection, self._views, self._message = projection, views, message
        self._system = views.spaces.system
        self.steps = 0
        self.missing: list[str] = []
        following: int = -1
        ghosts = projection.no_ghosts()
        for event, state in random_run(projection.network, seed, 400):
            if event is None:
                following, ghosts = self._system.machines[-1].columns[Role.OWN, 0][0][0], projection.no_ghosts()
            elif following >= 0:
                projection.count(ghosts, event)
                following = self._after(following, event.name, event.index)
            if following >= 0:
                self.steps += 1
                self.missing += [f"{event}: {m}" for m in ghosts if not self._has(state, m, ghosts[m], following)]

    def _place(self, message: int) -> int:
        """What the machine knows that tells what a message is to the followed one."""
        to_message = Role.OWN if message == self._message else Role.EARLIER if self._message < message else Role.LATER
        return self._system.message[-1].columns[to_message, 0][0][0]

    def _after(self, following: int, name: str, index: tuple[int, ...]) -> int:
        """What watches after an event: the part of it that the message whose it is does not refuse."""
        copy = index[1] if len(index) > 1 else 0
        role = Role.OWN if index else Role.SYSTEM
        parts = [
            number
            for number, event in enumerate(self._system.events)
            if (event.name, event.copy) == (name, copy)
            and (not index or self._system.message[-1].columns[Role.OWN, number][0][self._place(index[0])] >= 0)
        ]
        (part,) = parts
        return self._system.machines[-1].columns[role, part][0][following]

    def _has(self, state: tuple[str, ...], message: int, ghosts: dict[int, int], following: int) -> bool:
        spaces = self._views.spaces
        machines = number_in(spaces.machines, (*self._projection.machines(state), following))
        local = (*self._projection.message(state, message, ghosts), self._place(message))
        return has_view(self._views, machines, [number_in(spaces.message, local)])
