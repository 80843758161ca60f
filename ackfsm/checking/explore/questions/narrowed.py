"""Which guarantees stand for the messages that were reported as sent, where they do not stand for all."""

from __future__ import annotations

from collections.abc import Callable

from ackfsm.checking.explore.questions.check import Answer, SearchFunction
from ackfsm.checking.explore.search.explore import explore
from ackfsm.checking.explore.search.options import SearchOptions
from ackfsm.checking.network import compose, observers_named
from ackfsm.tables import Specification


def stand_of_confirmed(  # noqa: PLR0913 - the options of a check
    specification: Specification,
    answer: Answer,
    *,
    search: SearchFunction | None = None,
    max_states: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, bool | None]:
    """For each guarantee that ``answer`` excludes and the tables narrow whether it stands then; ``None``: not known."""
    narrowed = {
        name: guarantee.of_what_was_confirmed
        for name, guarantee in specification.guarantees.items()
        if guarantee.of_what_was_confirmed and answer.guarantees[name] is False and answer.exploration.complete
    }
    if not narrowed:
        return {}
    watching = observers_named(specification, set(narrowed.values()))
    network = compose(specification, answer.configuration, answer.bounds, watching)
    if search is None:
        found = explore(network, SearchOptions(max_states=max_states, max_memory=max_memory, progress=progress))
    else:
        found = search(network, max_states=max_states, progress=progress)
    return {
        name: False if monitor in found.witnesses else True if found.complete else None
        for name, monitor in narrowed.items()
    }
