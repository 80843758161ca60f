"""Is a counter never more than all ghosts of it together, which is what one that only covers it is believed to say?"""

from __future__ import annotations

import dataclasses

import pytest

from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose
from ackfsm.checking.unbounded import Level, _columns, _prove, prove
from ackfsm.checking.unbounded._columns import Scope, System, system_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._ghosts import LOST, Moves, ghost_of
from ackfsm.checking.unbounded._tables import Table
from ackfsm.tables import EventRef, Machine, RowKind, Specification
from ackfsm.terms import Configuration, Fault
from model_tests.support.checker.projected import Projection, random_run
from model_tests.support.tables import shipped
from model_tests.support.whole import few

_FAULTS = frozenset(
    {
        Fault.BROKER_CRASH,
        Fault.BROKER_KILL,
        Fault.PRODUCER_LINK_LOSS,
        Fault.CONSUMER_LINK_LOSS,
        Fault.JOURNAL_FAILURE,
    }
)
_CANCEL = frozenset({"consumer_cancel"})
_RECEIVE = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}


def _is_lost(specification: Specification) -> bool:
    """Whether it is open that a PERSISTENT message is lost by a crash of the broker or a link (C02)."""
    configuration = specification.configure("solace-jms", _RECEIVE)
    proof = prove(specification, configuration, ["loss"], faults=_FAULTS, levels=[Level.RELATED])
    return not proof.verdicts["loss"].proved


def _without_ghost(scope: Scope, family: Family) -> System:
    system = system_of(scope, family)
    ghosts = (ghost for ghost in system.ghosts if system.machines[ghost.counter].name != "prefetch")
    return dataclasses.replace(system, ghosts=tuple(ghosts))


def test_a_prefetch_that_is_full_is_full_of_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken connection empties it, and what is handed over then counts it down once more: no ghost is exact."""
    assert not _is_lost(shipped())
    monkeypatch.setattr(_prove, "system_of", _without_ghost)
    assert _is_lost(shipped()), "a full prefetch would hold up a message although nothing is out"


def test_a_prefetch_that_messages_have_filled_for_ever_is_not_refuted() -> None:
    """The defect: it is not counted down by what is handed over; a few hundred messages fill it."""
    prefetch = shipped().machines["prefetch"]
    handed_over = {("down", EventRef(event)) for event in ("delivered_clear", "delivered_flagged")}
    cells = {
        key: tuple(row._replace(kind=RowKind.IGNORE) for row in rows) if key in handed_over else rows
        for key, rows in prefetch.cells.items()
    }
    assert cells != prefetch.cells
    machines = {**shipped().machines, "prefetch": dataclasses.replace(prefetch, cells=cells)}
    assert _is_lost(dataclasses.replace(shipped(), machines=machines))


_SENT = ["send", "accept", "write_record", "sync_record", "timer_fires", "confirm", "confirmed"]
_HANDED_OVER_LATE = [
    *(event if event == "timer_fires" else f"{event}(m1)" for event in _SENT),
    *(f"{event}(m2)" for event in _SENT[:4]),
    *("dispatch_first(m1)", "arrive(m1)", "acknowledge(m1)", "settle(m1)"),
    *("consumer_link_loss", "consumer_link_up", "dispatch_first(m2)", "delivered_clear(m1)"),
]


def test_a_prefetch_is_below_its_ghosts_where_a_message_is_handed_over_late() -> None:
    """What shows that its ghosts are not exact: m2 is out, and m1 of the old connection has counted it down."""
    faults = frozenset({Fault.CONSUMER_LINK_LOSS})
    configuration = shipped().configure("solace-jms", _RECEIVE | {"prefetch": 1})
    network = compose(shipped(), configuration, Bounds(messages=2, faults=faults, max_faults=None), ())
    events = {event.label: event for event in network.events}
    counted, state = _Counted(network, configuration, faults), network.initial
    for label in _HANDED_OVER_LATE:
        after = network.step(state, events[label])
        assert after is not None, label
        state = after
        counted.hear(events[label])
    assert (counted.number(state), counted.ghosts) == (0, [0, 1])


@pytest.mark.parametrize("resend_in_doubt", [False, True])
@pytest.mark.parametrize("profile", few(["qpid", "qpid-jms", "rabbitmq"], 1))
def test_a_prefetch_is_never_above_its_ghosts(profile: str, *, resend_in_doubt: bool) -> None:
    """In random runs of four messages, each with one copy or two, some of which are withdrawn unseen."""
    assert _above(profile, resend_in_doubt=resend_in_doubt) > 1_000, "of 8,000"


def test_ghosts_that_miss_some_of_what_counts_up_are_seen_to_be_below(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(machine: Machine, moves: Moves, system_events: frozenset[int]) -> Table | None:
        fewer = dataclasses.replace(moves, up=frozenset(sorted(moves.up)[1:]))
        return ghost_of(machine, fewer, system_events)

    monkeypatch.setattr(_columns, "ghost_of", forgetful)
    with pytest.raises(AssertionError, match="dispatch"):
        _above("qpid", resend_in_doubt=False)


def _above(profile: str, *, resend_in_doubt: bool) -> int:
    """In how many states of random runs the prefetch is above 0; it has to be covered in all."""
    configuration = shipped().configure(profile, {"prefetch": 2, "resend_in_doubt": resend_in_doubt})
    bounds = Bounds(messages=4, faults=_FAULTS, max_faults=None, actions=_CANCEL)
    network = compose(shipped(), configuration, bounds, ())
    counted, above, withdrawn = _Counted(network, configuration, _FAULTS, _CANCEL), 0, 0
    for seed in range(4):
        for event, state in random_run(network, seed, 2_000):
            counted.hear(event)
            number = counted.number(state)
            assert LOST in counted.ghosts or number <= sum(counted.ghosts), event
            above += number > 0
            withdrawn += event is not None and event.name == "withdraw"
    assert withdrawn, "else nothing is asked of a message that goes back unseen"
    return above


class _Counted:
    """The prefetch of a composed network and its ghosts, along a run."""

    def __init__(
        self,
        network: Network,
        configuration: Configuration,
        faults: frozenset[Fault],
        actions: frozenset[str] = frozenset(),
    ) -> None:
        scope = Scope(shipped(), configuration, faults, actions)
        self._projection = Projection(network, system_of(scope, Family(2, None)))
        system = self._projection.system
        (self._ghost,) = (each for each in system.ghosts if system.machines[each.counter].name == "prefetch")
        self.hear(None)

    def hear(self, event: NetworkEvent | None) -> None:
        """Count an event; none: a new run begins."""
        if event is None:
            self._of_messages = self._projection.no_ghosts()
        else:
            self._projection.count(self._of_messages, event)

    @property
    def ghosts(self) -> list[int]:
        """What each message has counted."""
        return [ghosts[self._ghost.ghost] for ghosts in self._of_messages.values()]

    def number(self, state: tuple[str, ...]) -> int:
        """What the system has counted."""
        return self._projection.number_of(state, self._ghost.counter)
