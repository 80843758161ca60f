"""The engine refers to events, states, machines and conditions by names, and tables that rename one are refused."""

from __future__ import annotations

import dataclasses
import enum
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pytest

from ackfsm import tables
from ackfsm.engine.core.names import STATES, Agent, Condition, Event, Machine, check_names
from ackfsm.engine.core.table import read_execution
from ackfsm.terms import SpecError
from model_tests.support.places import SPEC
from model_tests.support.tables import shipped

_T = TypeVar("_T")


def _renamed(mapping: Mapping[str, _T], name: str) -> Mapping[str, _T]:
    assert name in mapping
    return MappingProxyType({f"other_{key}" if key == name else key: value for key, value in mapping.items()})


def _with(specification: tables.Specification, name: enum.StrEnum, machine: Machine | None) -> tables.Specification:
    """``specification`` with ``name`` renamed, in all of it or in the states of ``machine``."""
    if machine is not None:
        states = tuple(f"other_{s}" if s == name else s for s in specification.machines[machine].states)
        changed = dataclasses.replace(specification.machines[machine], states=states)
        return dataclasses.replace(
            specification, machines=MappingProxyType({**specification.machines, machine: changed})
        )
    kind: str = {Event: "events", Machine: "machines", Condition: "conditions"}[type(name)]
    changes: dict[str, Any] = {kind: _renamed(getattr(specification, kind), name)}
    return dataclasses.replace(specification, **changes)


def _changed(folder: Path, old: str, new: str) -> Path:
    """A copy of the tables, with another text in ``execution.yaml``."""
    shutil.copytree(SPEC, folder)
    file = folder / "execution.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


_NAMES: list[tuple[enum.StrEnum, Machine | None]] = [
    *((name, None) for kind in (Event, Machine, Condition) for name in kind),
    *((state, machine) for machine, states in STATES.items() for state in states),
]


@pytest.mark.parametrize(("name", "machine"), _NAMES, ids=[f"{m or type(n).__name__}.{n}" for n, m in _NAMES])
def test_a_name_that_the_tables_rename_is_refused(name: enum.StrEnum, machine: Machine | None) -> None:
    specification = _with(shipped(), name, machine)
    with pytest.raises(SpecError) as caught:
        check_names(specification, list(Agent))
    kind = type(name).__name__
    assert re.fullmatch(
        rf"[\w/.]+: there is no [\w ]+ {name.value!r}, to which the engine refers; "
        rf"rename {kind}\.{name.name} in ackfsm/engine/core/names\.py too",
        str(caught.value),
    )
    with pytest.raises(SpecError):
        read_execution(specification)


@pytest.mark.parametrize("agent", Agent)
def test_an_agent_that_is_renamed_is_refused(agent: Agent, tmp_path: Path) -> None:
    folder = _changed(tmp_path / "spec", f"  {agent.value}:\n    means", f"  other_{agent.value}:\n    means")
    with pytest.raises(SpecError, match=rf"there is no agent '{agent}', to which the engine refers; rename Agent\."):
        read_execution(shipped(), folder)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    frame: producer\n", "", "has a frame or the engine takes it for one"),
        ("  window:\n", "  window_counter:\n", "the groups are not"),
        ("commits: record", "commits: entry", "there is no record 'entry'"),
        ("  record: {write: write_record", "  records: {write: write_record", "there is no machine 'records'"),
        ("survives: record_survives", "survives: survives", "there is no event 'survives'"),
        ("  commit_failed: commit_in_doubt", "  commit_fails: commit_in_doubt", "there is no event 'commit_fails'"),
        ("  rejected: {outcome", "  refused: {outcome", "there is no event 'refused'"),
        ("  requeue:\n    - {by", "  arrive:\n    - {by", "nothing says what decides on requeue"),
        ("stays_with_session: [delivery, ", "stays_with_session: [", "delivery has to stay"),
        (
            "{machine: record, state: unwritten",
            "{machine: record, state: written_on",
            "no state of record 'written_on'",
        ),
    ],
)
def test_a_wrong_row_of_the_execution_table_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    folder = _changed(tmp_path / "spec", old, new)
    roles = ("copy", "producer", "window", "unconfirmed", "consumer", "prefetch", "broker")
    with pytest.raises(SpecError) as caught:
        read_execution(shipped(), folder, roles)
    assert sentence in str(caught.value)
    assert re.search(r"execution\.yaml:\d+", str(caught.value))
