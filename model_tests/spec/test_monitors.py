"""No monitor is deaf: each is marked somewhere, in the tables as they are or in a mutant of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.checking import explore, network
from ackfsm.checking.network import Place
from ackfsm.surveys import claims
from ackfsm.surveys.claims._questions import Search, network_of
from ackfsm.surveys.claims._reachability import Possible
from ackfsm.surveys.claims._scope import Scope, configurations, read_bounds
from ackfsm.tables import Relation, Specification
from model_tests.support.data import read_data
from model_tests.support.spec.claim_mutants import mutants
from model_tests.support.tables import copy_of_spec, read_once, replace, shipped
from model_tests.support.whole import few

_MOST_STATES = 300_000


@dataclasses.dataclass(frozen=True)
class Where:
    """The systems in which a monitor is marked; with ``mutant`` it is so in that mutant of the tables alone."""

    scope: Scope
    mutant: str | None = None

    def marks(self, specification: Specification, name: str) -> bool:
        """Whether some run of these systems marks the monitor."""
        return any(
            _marked(specification, Search(each, self.scope.bounds, frozenset({name})))
            for each in configurations(specification, self.scope.groups)
        )


def _marked(specification: Specification, search: Search) -> bool:
    options = explore.SearchOptions(max_states=_MOST_STATES, only_witnesses=True)
    return bool(explore.explore(network_of(specification, search), options).witnesses)


@functools.cache
def places() -> Mapping[str, Where]:
    """Where each monitor is marked: a check of a claim says that it is possible there, or ``monitors.yaml`` does."""
    checks = [check for claim in claims.read(shipped()) for check in claim.all_checks()]
    shown = {name: Where(each.scope) for each in checks if isinstance(each, Possible) for name in each.names}
    return {**{name: _where(data) for name, data in read_data("monitors.yaml").items()}, **shown}


def _where(data: Mapping[str, Any]) -> Where:
    bounds = read_bounds({"faults": [], **data})
    return Where(Scope((data["in"],), bounds), data.get("mutant"))


@pytest.fixture(scope="module", autouse=True)
def read_each_table_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        yield


@pytest.mark.parametrize("name", few(sorted(shipped().monitors), 8))
def test_every_monitor_is_marked_somewhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = places()[name]
    if where.mutant is None:
        assert where.marks(shipped(), name)
        return
    (mutant,) = [each for each in mutants() if str(each) == where.mutant]
    assert not where.marks(shipped(), name), "no mutant is needed there"
    assert where.marks(mutant.make(tmp_path, monkeypatch), name)


def test_what_is_written_of_a_monitor_is_needed() -> None:
    written = set(read_data("monitors.yaml"))
    checks = [check for claim in claims.read(shipped()) for check in claim.all_checks()]
    assert written <= shipped().monitors.keys()
    assert not written & {name for each in checks if isinstance(each, Possible) for name in each.names}


# a monitor that hears less is noticed


@pytest.mark.parametrize(
    ("name", "file", "edit"),
    [
        (
            "delivered_and_left",
            "monitors/consumer.yaml",
            (
                "acknowledge(other): {to: covered, because: this acknowledgement is to cover it, source: 001",
                "acknowledge(other): {to: held, because: this acknowledgement is to cover it, source: 001",
            ),
        ),
        (
            "stored_and_lost",
            "monitors/journal.yaml",
            (
                "recover_lost: {to: lost, because: the failure of the broker took it, source: 003 Persistent}",
                "recover_lost: {ignore: it is not heard}",
            ),
        ),
        (
            "acknowledged_twice",
            "monitors/consumer.yaml",
            (
                "acknowledge: {to: twice, because: its tag is unknown by now, source: RMQ confirms}",
                "acknowledge: {ignore: it is not heard}",
            ),
        ),
    ],
    ids=["delivered_and_left", "stored_and_lost", "acknowledged_twice"],
)
def test_a_monitor_that_is_made_deaf_is_marked_no_more(
    name: str, file: str, edit: tuple[str, str], tmp_path: Path
) -> None:
    where = places()[name]
    changed = copy_of_spec(tmp_path)
    for mutant in (each for each in mutants() if str(each) == where.mutant):
        for place, old, new in mutant.edits:
            replace(changed, place, (old, new))
    assert where.marks(tables.load(changed), name)
    replace(changed, file, edit)
    assert not where.marks(tables.load(changed), name)


@pytest.mark.parametrize(
    ("lost", "name"), [(Relation.OTHER, "delivered_and_left"), (Relation.LATER, "earlier_and_left")]
)
def test_machines_that_hear_nothing_of_other_messages_are_noticed(
    lost: Relation, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables and monitors go deaf together, so that what never happens stays so; what is marked does not."""
    concerns = network.concerns

    def deaf(relation: Relation, mine: Place, its: Place, *, one_session: bool = False) -> bool:
        return relation is not lost and concerns(relation, mine, its, one_session=one_session)

    where = places()[name]
    assert where.marks(shipped(), name)
    monkeypatch.setattr(network, "concerns", deaf)
    assert not where.marks(shipped(), name)
