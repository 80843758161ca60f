"""The views of a finished proof, as a certificate states them: by the names of machines and of their states.

This is the only place where the search speaks to :mod:`ackfsm.checking.certificates`, which checks what it says by
itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

import ackfsm
from ackfsm.checking import certificates
from ackfsm.checking.certificates import Certificate, Invariant, Way
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._spaces import Ints, Space
from ackfsm.checking.unbounded._steps import Level
from ackfsm.checking.unbounded._views import Views
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError


def certificate_of(  # noqa: PLR0913 - what was asked, and what came of it
    specification: Specification,
    configuration: Configuration,
    bounds: Bounds,
    *,
    proved: Iterable[str],
    ways: Iterable[Way] = (),
    not_covered: Mapping[str, str],
    invariants: tuple[Invariant, ...],
) -> Certificate:
    """The certificate of what is ``proved`` with these tables; the numbers in ``bounds`` mean nothing.

    Raises :class:`InputError` where the invariants were not kept.
    """
    proved = tuple(proved)
    if proved and not invariants:
        raise InputError("the views of this proof are gone; ask for it with keep_invariants=True")
    certificate = Certificate(
        tables=specification.digest,
        network="",
        made_by=ackfsm.__version__,
        configuration=configuration.as_dict(),
        faults=tuple(fault.value for fault in Fault if fault in bounds.faults),
        actions=tuple(sorted(bounds.actions)),
        without=tuple(sorted(bounds.without)),
        proved=proved,
        ways=tuple(ways),
        not_covered=dict(not_covered),
        invariants=invariants,
    )
    network = hashlib.sha256(certificates.network_of(certificate, specification)).hexdigest()
    return dataclasses.replace(certificate, network=network)


def invariant_of(views: Views, family: Family, relation: Views | None = None) -> Invariant:
    """What ``views`` say of the systems of ``family``, with no machine yet that watches.

    Views that ask the pairs of a ``relation`` have them too; so do local ones that these were made of.
    """
    level = views.level if relation is None else Level.RELATED
    system = views.spaces.system
    ghosts = [ghost.ghost for ghost in system.ghosts]
    kept = [number for number in range(len(system.message)) if number not in ghosts]
    of_system, *of_messages = views.of_all_states()
    machines, (machine_of_view,) = _renumbered([of_system])
    messages, of_slots = _renumbered(of_messages)
    least, most = _range(level, family)
    return Invariant(
        level=certificates.Level(level.value),
        least=least,
        most=most,
        watchers=(),
        system=tuple(table.name for table in system.machines),
        message=tuple(system.message[number].name for number in kept),
        ghosts=tuple(system.machines[ghost.counter].name for ghost in system.ghosts),
        covering=tuple(system.machines[ghost.counter].name for ghost in system.ghosts if not ghost.exact),
        system_states=_named(views.spaces.machines, machines, range(len(system.machines))),
        message_states=_named(views.spaces.message, messages, [*kept, *ghosts]),
        views=tuple(sorted(zip(*(part.tolist() for part in (machine_of_view, *of_slots)), strict=True))),
        relation=None if relation is None else _relation(relation, least, most),
    )


def _relation(pairs: Views, least: int, most: int | None) -> Invariant:
    """The pairs of a relation for systems of so many messages."""
    return dataclasses.replace(invariant_of(pairs, Family(2, None)), least=least, most=most)


def with_what_is_proved(invariants: Iterable[Invariant], proved: Collection[str]) -> tuple[Invariant, ...]:
    """The invariants for anomalies that are proved for all numbers of messages; those with the same views are one."""
    joined: dict[Invariant, Invariant] = {}
    for each in invariants:
        watchers = tuple(watcher for watcher in each.watchers if watcher[0] in proved)
        followed = tuple(one for one in each.followed if one.anomalies[0] in proved)
        if watchers or followed:
            views = dataclasses.replace(each, watchers=(), followed=())
            known = joined.setdefault(views, views)
            joined[views] = dataclasses.replace(
                known,
                watchers=tuple(dict.fromkeys((*known.watchers, *watchers))),
                followed=tuple(dict.fromkeys((*known.followed, *followed))),
            )
    return tuple(joined.values())


def _range(level: Level, family: Family) -> tuple[int, int | None]:
    """Of which numbers of messages views tell: those that know of pairs of two or more, one alone of one."""
    if level is Level.ALONE:
        return 1, 1
    return (max(2, family.least) if level.of_several else family.least), family.most


def _renumbered(parts: Sequence[Ints]) -> tuple[Ints, list[npt.NDArray[np.int64]]]:
    """The numbers that occur, and the parts with the places among these instead."""
    numbers: Ints = np.unique(np.concatenate(parts))
    return numbers, [np.searchsorted(numbers, part) for part in parts]


def _named(space: Space, numbers: Ints, machines: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    names = [space.tables[machine].states for machine in machines]
    return tuple(
        tuple(states[number] for states, number in zip(names, row, strict=True))
        for row in space.states[numbers][:, list(machines)].tolist()
    )
