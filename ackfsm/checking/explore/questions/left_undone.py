"""What an application leaves undone, where a check goes without something that it is for the application to do.

A system at rest may wait for nobody but the application.  What is found there is no failure of whoever provides the
messaging.  So what breaks a promise is looked for once more, in a system that is not at rest while the application owes
something: what it owes can happen there, and changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ackfsm.checking.explore.search.explore import Exploration, explore
from ackfsm.checking.explore.search.options import SearchOptions
from ackfsm.checking.network import Network, Observer, compose
from ackfsm.tables import EventRef, Fsm, Row, RowKind, Specification


def explore_nothing_owed(
    specification: Specification,
    network: Network,
    owed: Collection[str],
    observers: Collection[Observer],
    options: SearchOptions,
) -> Exploration:
    """What ``observers`` see of ``network``, at rest only where the application owes nothing of ``owed``.

    The witnesses are of the events of ``network``.
    """
    bounds = dataclasses.replace(network.bounds, without=network.bounds.without - set(owed))
    whole = compose(specification, network.configuration, bounds, observers)
    instances = tuple(dataclasses.replace(one, fsm=_standing(one.fsm, owed)) for one in whole.instances)
    found = explore(dataclasses.replace(whole, instances=instances), options)
    events = {event.label: event for event in network.events}
    witnesses = {name: tuple(events[event.label] for event in steps) for name, steps in found.witnesses.items()}
    return dataclasses.replace(found, witnesses=witnesses)


def _standing(fsm: Fsm, owed: Collection[str]) -> Fsm:
    """Return a machine with the same refusals, which no event of ``owed`` moves."""
    events = [event for event in fsm.alphabet if event.name in owed]
    rows: dict[tuple[str, EventRef], Row] = {
        (state, event): row._replace(kind=RowKind.IGNORE, target=state)
        for event in events
        for state in fsm.states
        if (row := fsm.rows[state, event]).kind is not RowKind.REFUSE
    }
    return dataclasses.replace(fsm, rows={**fsm.rows, **rows}) if events else fsm
