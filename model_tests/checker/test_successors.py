"""What the observer finds after the events of a network is what the rows of its machines say, state by state."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search import successors as successors_
from ackfsm.checking.explore.search.successors import Successors
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant
from ackfsm.tables import EventRef, Fsm
from model_tests.support.tables import networks, row, shipped


@given(network=networks(), data=st.data())
def test_all_rows_together_lead_where_each_leads_by_the_tables(network: Network, data: st.DataObject) -> None:
    successors = Successors(pack(network))
    sizes = [len(instance.fsm.states) for instance in network.instances]
    drawn = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=6))
    rows = np.asarray(drawn, successors.initial.dtype)
    events = data.draw(st.frozensets(st.sampled_from(range(len(network.events)))))
    expected = [[_after(network, its, event) for event in sorted(events)] for its in drawn]

    parts = list(successors.of(rows, events))
    assert np.concatenate([counts for counts, _ in parts]).tolist() == [
        sum(after is not None for after in of_row) for of_row in expected
    ]
    assert [tuple(its) for _, moved in parts for its in moved.tolist()] == [
        after for of_row in expected for after in of_row if after is not None
    ]
    enabled = successors.enabled(rows, events)
    assert [np.flatnonzero(its).tolist() for its in enabled] == [
        [place for place, after in enumerate(of_row) if after is not None] for of_row in expected
    ]


def _after(network: Network, its: tuple[int, ...], event: int) -> tuple[int, ...] | None:
    state = [instance.fsm.states[number] for instance, number in zip(network.instances, its, strict=True)]
    after = network.step(state, network.events[event])
    if after is None:
        return None
    return tuple(instance.fsm.states.index(name) for instance, name in zip(network.instances, after, strict=True))


def test_many_rows_are_looked_at_in_parts_that_join_without_a_seam() -> None:
    network = _counting()
    successors = Successors(pack(network))
    count = 2 * successors_._AT_ONCE + 3  # noqa: SLF001 - the seam
    rows = np.repeat(successors.initial, count, axis=0)
    rows[:, 0] = np.arange(count) % 3
    parts = list(successors.of(rows, {0}))
    assert [len(counts) for counts, _ in parts] == [successors_._AT_ONCE, successors_._AT_ONCE, 3]  # noqa: SLF001
    moved = np.concatenate([moved for _, moved in parts])[:, 0]
    assert np.array_equal(moved, rows[rows[:, 0] < 2, 0] + 1), "the last state refuses"


def _counting() -> Network:
    up = EventRef("up")
    states = ("none", "one", "two")
    after: tuple[str | None, ...] = ("one", "two", None)
    rows = {(state, up): row(state, up, target) for state, target in zip(states, after, strict=True)}
    instance = Instance(Fsm("counting", states, "none", (up,), rows), ())
    event = NetworkEvent("up", (), may_never_happen=False, participants=(Participant(0, up),))
    return Network(shipped().configure(), Bounds(), (instance,), (event,))
