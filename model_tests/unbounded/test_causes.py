"""Does one pass with a bit for each question find the causes that are found for one question at a time?"""

from __future__ import annotations

import pytest

from ackfsm.checking.unbounded import Level, _causes
from ackfsm.checking.unbounded._causes import NOTHING, Causes, Waiting
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.checking.unbounded._watching import Graph, graph_of, watching_columns
from model_tests.support.checker.few_views import steps_in, views_of_few

State = tuple[int, int]
"""A view, and a state of what watches."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Pairs of few machines."""
    return graph_of(views_of_few(Level.PAIRS))


@pytest.mark.parametrize("at_once", [62, 3])
def test_causes_of_many_questions_are_those_of_each(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """For what messages wait for, and what watches them; in one pass, and in several."""
    monkeypatch.setattr(_causes, "_MOST_AT_ONCE", at_once)
    of_messages, watcher = Causes(graph, NOTHING), _brought_about_by_others(graph)
    assert len(of_messages.asked) > 3
    _compare(graph, NOTHING, of_messages)
    _compare(graph, watcher, Causes(graph, watcher, of_messages))


@pytest.mark.parametrize("wrong", ["never forgotten", "whoever it was", "whenever it was"])
def test_a_wrong_definition_is_refused(graph: Graph, wrong: str) -> None:
    """The graph tells apart causes from those that are no longer ones, or were somebody else, or came too late."""
    watcher = _brought_about_by_others(graph)
    with pytest.raises(AssertionError, match="causes of"):
        _compare(graph, watcher, Causes(graph, watcher), wrong)


def _brought_about_by_others(graph: Graph) -> Table:
    """What others bring into its second state; its own events then lead it on, and one of the system's back."""
    events = list(enumerate(graph.views.spaces.system.events))
    of_messages = [number for number, event in events if event.of_message]
    back = next(number for number, event in events if not event.of_message)
    columns = {
        **{(role, number): ((1, 1, 2),) for role in (Role.EARLIER, Role.LATER) for number in of_messages},
        **{(Role.OWN, number): ((0, 2, 2),) for number in of_messages},
        (Role.SYSTEM, back): ((0, 0, 0),),
    }
    return Table("brought about by others", ("not yet", "by others", "led on"), 0, columns)


def _compare(graph: Graph, table: Table, causes: Causes, wrong: str = "") -> None:
    """See that all that is told of each question is what is found for it alone."""
    machines, slots = graph.views.machines.tolist(), [slot.tolist() for slot in graph.views.slots]
    products = [_Product(graph, table, slot) for slot in (0, 1)]
    for waiting in causes.asked:
        of_slots = [product.causes(waiting, wrong) for product in products]
        for state in range(len(table.states)):
            some = any(its_state == state for found in of_slots for _, its_state in found)
            assert causes.has(waiting, state) == some, f"whether there are causes of {waiting}"
            for slot, found in enumerate(of_slots):
                others: dict[tuple[int, int], set[int]] = {}
                for view, its_state in found:
                    if its_state == state:
                        others.setdefault((machines[view], slots[slot][view]), set()).add(slots[1 - slot][view])
                for place in sorted(set(zip(machines, slots[slot], strict=True))):
                    known = causes.beside(waiting, *place, state)[1 - slot]
                    assert known == others.get(place, set()), f"the causes of {waiting} at {place}"


class _Product:
    """Views with what watches the message in a slot: its states, and the steps between them."""

    def __init__(self, graph: Graph, table: Table, slot: int) -> None:
        self._views = graph.views
        self._messages = graph.views.slots[slot].tolist()
        self._first = graph.views.first, table.initial
        self._after: dict[State, set[tuple[State, bool]]] = {}
        columns = watching_columns(graph.views, table, slot).tolist()
        edges, left = graph.edges, [self._first]
        while left:
            view, state = left.pop()
            if (view, state) in self._after:
                continue
            here = slice(edges.first[view], edges.first[view + 1])
            ways = list(zip(edges.step[here].tolist(), edges.target[here].tolist(), strict=True))
            ways += [(step, view) for step in steps_in(edges.stays[view].tolist())]
            self._after[view, state] = {
                ((after, of_step[step][state]), graph.views.steps[step].roles[1 - slot] is Role.OWN)
                for step, after in ways
                for of_step in columns
            }
            left += [after for after, _ in self._after[view, state]]

    def causes(self, waiting: Waiting, wrong: str) -> set[State]:
        """Where the other message is the one whose event has led into the states of ``waiting``, and not out since."""
        is_inside = {state: self._is_inside(state, waiting) for state in self._after}
        met = {(self._first, False)}
        left = list(met)
        while left:
            current, is_cause = left.pop()
            for after, by_other in self._after[current]:
                begins = (by_other or wrong == "whoever it was") and (
                    not is_inside[current] or wrong == "whenever it was"
                )
                if wrong == "never forgotten":
                    reached = after, is_cause or (is_inside[after] and begins)
                else:
                    reached = after, is_inside[after] and ((is_cause and is_inside[current]) or begins)
                if reached not in met:
                    met.add(reached)
                    left.append(reached)
        return {state for state, is_cause in met if is_cause}

    def _is_inside(self, state: State, waiting: Waiting) -> bool:
        view, of_watcher = state
        if waiting.machine is None:
            return of_watcher in waiting.states
        return int(self._views.spaces.message.states[self._messages[view], waiting.machine]) in waiting.states
