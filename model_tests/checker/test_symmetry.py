"""Messages are not interchangeable: no configuration of the matrix stays the same when two of them change places.

This is why there is no symmetry reduction; ``spec/reductions.md`` says which rows it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from ackfsm.checking.explore import pack
from ackfsm.checking.explore.reduction.columns import bits, over_approximate, participant_columns
from ackfsm.checking.network import (
    Bounds,
    Index,
    Instance,
    Network,
    NetworkEvent,
    Participant,
    Place,
    compose,
    concerns,
)
from ackfsm.surveys.matrix import make_plan
from ackfsm.tables import EventRef, Fsm, Relation
from model_tests.support.tables import row, shipped
from model_tests.support.whole import few

_Columns = Mapping[tuple[int, int], tuple[int, ...]]
"""For each event and participant what is next in the states that the machine may reach."""


def _swapped(index: Index) -> Index:
    """The index with the first message for the second, and the second for the first."""
    return (3 - index[0], *index[1:]) if index else index


def _places(things: Sequence[tuple[object, Index]]) -> list[int]:
    """For each machine or event, by name and index, the number of the same one of the other message."""
    number = {thing: n for n, thing in enumerate(things)}
    assert len(number) == len(things), "a name and an index tell them apart"
    return [number[name, _swapped(index)] for name, index in things]


def _columns(network: Network) -> _Columns:
    """What can ever be of the network: machines and events that never move are in no row."""
    packed = pack(network)
    parts = participant_columns(packed)
    reached, alive = over_approximate(parts, (1 << state for state in packed.initial), range(len(parts)))
    return {
        (event, part.instance): tuple(
            after if reached[part.instance] >> s & 1 else -1 for s, after in enumerate(part.column)
        )
        for event in bits(alive)
        for part in parts[event]
    }


def _broken(network: Network) -> Iterator[tuple[str, str]]:
    """Machine and event that are not the same after the messages have changed places."""
    machines = _places([((each.fsm.name, each.anomaly), each.index) for each in network.instances])
    events = _places([(each.name, each.index) for each in network.events])
    columns = _columns(network)
    for (event, who), column in columns.items():
        if columns.get((events[event], machines[who])) != column:
            yield network.instances[who].fsm.name, network.events[event].name


_ORDERED = {
    ("publish_frame", "accept"),
    ("entry", "dispatch_first"),
    ("entry", "dispatch_again"),
    ("delivery", "arrive"),
    ("delivery", "delivered_clear"),
    ("delivery", "delivered_flagged"),
    ("overtaken", "delivered_clear"),
    ("overtaken", "delivered_flagged"),
}
"""What tells two messages apart in every configuration; besides, they are sent in their order."""


def test_no_configuration_of_the_matrix_stays_the_same_if_two_messages_change_places() -> None:
    """Without faults; with them there is more of each system, so none can be more alike."""
    configurations = make_plan(shipped(), "jms", messages=2, pairs=False).configurations
    assert len(configurations) > 400
    for configuration in few(configurations, 60):
        broken = set(_broken(compose(shipped(), configuration, Bounds(messages=2))))
        assert broken >= _ORDERED, configuration
        assert broken & {("publication", "send"), ("publication", "send_in_transaction")}, configuration


def _of_two_messages(*sends: str) -> Network:
    """Each message has a machine that hears its own ``go``, and what it says of that of the other."""
    go, tables = EventRef("go"), []
    for relation in sends:
        other = EventRef("go", Relation(relation))
        rows = {("new", go): row("new", go, "sent"), ("sent", go): row("sent", go, None)}
        rows |= {("new", other): row("new", other, None), ("sent", other): row("sent", other, "sent")}
        tables.append(Fsm("message", ("new", "sent"), "new", (go, other), rows))
    instances = tuple(Instance(fsm, (number,)) for number, fsm in enumerate(tables, start=1))
    events = tuple(
        NetworkEvent("go", (number,), may_never_happen=False, participants=_hearing(instances, (number,)))
        for number in (1, 2)
    )
    return Network(shipped().configure(), Bounds(messages=2), instances, events)


def _hearing(instances: Sequence[Instance], index: Index) -> tuple[Participant, ...]:
    return tuple(
        Participant(number, event)
        for number, instance in enumerate(instances)
        for event in instance.fsm.alphabet
        if concerns(event.relation, instance.place, Place(index))
    )


@pytest.mark.parametrize(("relation", "broken"), [("other", 0), ("later", 1), ("earlier", 1)])
def test_what_is_said_of_any_other_message_keeps_them_alike_and_of_a_later_one_does_not(
    relation: str, broken: int
) -> None:
    assert len([*_broken(_of_two_messages(relation, relation))]) == broken
