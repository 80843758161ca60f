"""The tables as machines of the ``transitions`` library, to read, to hook into or to embed.

:func:`machine` makes one table an ordinary ``transitions.Machine`` for any model object.  All
machines of a configuration side by side are a :class:`ackfsm.checking.explore.Interpreter`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import transitions

from ackfsm.tables import EventRef, Fsm, Relation, Row, RowKind
from ackfsm.terms import InputError


class Model(Protocol):
    """What ``transitions`` gives to a model: its ``state``, and a method for each event (see :func:`trigger`)."""

    state: str

    def trigger(self, name: str, /) -> bool:
        """Let the event happen by the name of its method."""


def trigger(event: EventRef) -> str:
    """The method that a model has for ``event``: ``dispatch_later`` for ``dispatch(later)``.

    Where consumers are told apart their numbers are behind it: ``dispatch_c2``.
    """
    name = event.name if event.relation is Relation.OWN else f"{event.name}_{event.relation}"
    return f"{name}_c{event.consumer}" if event.consumer else name


def machine(fsm: Fsm, model: object | None = None, *, after: Callable[..., Any] | None = None) -> transitions.Machine:
    """``fsm`` as a ``transitions.Machine``.

    Args:
        fsm: a table under a configuration.
        model: the object that gets ``state`` and a method for each event; the machine itself if ``None``.
        after: called after each transition, with what was passed to the event's method.

    A refused event raises ``transitions.MachineError``; an ignored one is an internal transition,
    a row that keeps the state a reflexive one.

    Raises :class:`ackfsm.terms.InputError` for something else than an :class:`ackfsm.tables.Fsm`.
    """
    if not isinstance(fsm, Fsm):
        raise InputError(f"{fsm!r:.60} is no machine under a configuration; Machine.fsm makes one of a table")
    return transitions.Machine(
        model=transitions.Machine.self_literal if model is None else model,
        states=list(fsm.states),
        initial=fsm.initial,
        transitions=[_transition(event, row) for (_, event), row in fsm.rows.items() if row.kind is not RowKind.REFUSE],
        auto_transitions=False,
        after_state_change=after,
    )


def _transition(event: EventRef, row: Row) -> dict[str, str | None]:
    kept = "=" if row.target == row.state else row.target
    return {"trigger": trigger(event), "source": row.state, "dest": kept if row.kind is RowKind.TO else None}
