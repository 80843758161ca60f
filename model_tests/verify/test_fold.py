"""The fold against stepping each machine by hand, and its independence of how a stream is cut into batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.terms import Anomaly, SpecError
from ackfsm.verify.counting import machines as machines_
from ackfsm.verify.counting import watch
from ackfsm.verify.counting.machines import Watcher, compile_watchers, fold
from ackfsm.verify.counting.observables import OBSERVABLES, Observable
from model_tests.support.tables import shipped

EVENTS = OBSERVABLES
STATES = ("a", "b", "c")


@dataclasses.dataclass(frozen=True)
class _Machine:
    """A random machine: the next state by state and event."""

    table: dict[tuple[str, str], str | None]
    states: tuple[str, ...] = STATES
    initial: str = STATES[0]

    def step(self, state: str, event: str, /) -> str | None:
        return self.table[state, event]


_CELLS = [(state, event) for state in STATES for event in EVENTS]
_machines = st.builds(
    lambda targets: _Machine(dict(zip(_CELLS, targets, strict=True))),
    st.lists(st.sampled_from(STATES), min_size=len(_CELLS), max_size=len(_CELLS)),
)
_watchers = st.lists(
    st.builds(Watcher, st.sampled_from("xy"), _machines, *[st.frozensets(st.sampled_from(STATES))] * 2), max_size=3
)
_streams = st.lists(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=12), max_size=8)


def _end(machine: machines_.StateMachine, events: list[Observable]) -> str:
    state: str | None = machine.initial
    for event in events:
        assert state is not None
        state = machine.step(state, event)
    assert state is not None
    return state


def _codes(stream: list[list[Observable]]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array([EVENTS.index(event) for events in stream for event in events], np.uint8)


@given(watchers=_watchers, stream=_streams, drained=st.booleans())
def test_a_fold_ends_where_stepping_by_hand_ends(
    watchers: list[Watcher], stream: list[list[Observable]], *, drained: bool
) -> None:
    machines = compile_watchers(watchers)
    starts = np.cumsum([0, *map(len, stream)])[:-1]
    states = fold(machines, starts, _codes(stream))
    ends = [[_end(watcher.machine, events) for watcher in watchers] for events in stream]
    for name in "xy":
        by_hand = [
            any(
                end in watcher.marked or (drained and end in watcher.marked_at_rest)
                for watcher, end in zip(watchers, row, strict=True)
                if watcher.name == name
            )
            for row in ends
        ]
        assert machines.means(name, states, np.full(len(stream), drained)).tolist() == by_hand


def test_a_machine_that_refuses_is_refused() -> None:
    machine = _Machine({cell: None if cell == ("b", "send") else "a" for cell in _CELLS})
    with pytest.raises(SpecError, match="x: its machine refuses an observable; a property only watches, write ignore"):
        compile_watchers([Watcher("x", machine, frozenset())])


def test_every_property_of_single_messages_is_folded_and_no_other() -> None:
    folded = watch.folded_properties(shipped())
    assert Anomaly.LOSS in folded
    assert {Anomaly.WINDOW_OVERRUN, Anomaly.STUCK}.isdisjoint(folded)


def test_a_property_that_waits_for_what_no_message_shows_is_an_error() -> None:
    specification = shipped()
    loss = specification.properties[Anomaly.LOSS]
    events = {**specification.events}
    events["send_returned"] = dataclasses.replace(
        events["send_returned"], recorded="some line that the expansion does not know"
    )
    changed = dataclasses.replace(specification, events=events, properties={Anomaly.LOSS: loss})
    with pytest.raises(
        SpecError, match=r"loss\.yaml:\d+: .* reacts to send_returned, which is no observable of one message"
    ):
        watch.machines_of(changed, None)
