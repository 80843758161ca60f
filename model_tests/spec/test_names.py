"""A name of the tables that Python needs is refused if it is renamed, and any other may be."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables, verify
from ackfsm.checking import explore, export
from ackfsm.checking.network import Bounds
from ackfsm.engine.journal import enumerate_crashes
from ackfsm.rates.simulation import simulate
from ackfsm.rates.timing import Workload
from ackfsm.surveys.matrix import given_back
from ackfsm.tables import Specification, names
from ackfsm.tables._needed import check_needed_names
from ackfsm.terms import Fault, SpecError
from model_tests.support.journal.bugs import opened
from model_tests.support.places import DATA, PROJECT, SPEC
from model_tests.support.spec.renamed import SUFFIX, all_names, needed_names, renamed_copy, reserved_words
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.whole import few

_KINDS: Mapping[str, type[StrEnum]] = {
    "event": names.Event,
    "condition": names.Condition,
    "machine": names.Machine,
    "machine of a property": names.Monitor,
    "agent": names.Agent,
    **{f"state of {machine}": states for machine, states in names.STATES.items()},
}
_NEEDED = [(kind, name) for kind, members in _KINDS.items() for name in members]

_RECORDED = ("activemq-e-transacted-broker-kill", "rabbitmq-i-tx-broker-kill")
_FIELDS = {"redelivered_flag": "history/importing/guess.py"}
"""Names of the tables that are fields of something else too."""


@pytest.mark.parametrize(("kind", "name"), few(_NEEDED, 24), ids=str)
def test_a_needed_name_that_is_renamed_is_refused_with_file_line_and_room(kind: str, name: StrEnum) -> None:
    documents = {**_documents()}
    specification = _renamed(shipped(), documents, kind, name)
    with pytest.raises(SpecError) as caught:
        check_needed_names(specification, documents.values())
    member = f"{type(name).__name__}.{name.name}"
    told = re.fullmatch(
        rf".*/spec/[\w/]+\.yaml:\d+: there is no {kind} '{name}', to which Python refers \((?P<rooms>[\w/, ]+)\); "
        rf"rename {member} in ackfsm/tables/names\.py too",
        str(caught.value),
    )
    assert told
    assert all((PROJECT / room).is_dir() for room in re.split(", | and ", told["rooms"]))


@functools.cache
def _documents() -> Mapping[str, tables.Document]:
    """The tables in which Python needs names."""
    files = [*SPEC.glob("machines/*.yaml"), *SPEC.glob("properties/*.yaml")]
    files += [SPEC / f"{name}.yaml" for name in ("events", "conditions", "execution")]
    called = {file: f"spec/{file.relative_to(SPEC).as_posix()}" for file in files}
    return {name: tables.read_document(file, name, None) for file, name in called.items()}


def _renamed(
    specification: Specification, documents: dict[str, tables.Document], kind: str, name: StrEnum
) -> Specification:
    """The tables with ``name`` renamed where it is declared."""
    if kind == "machine":
        return dataclasses.replace(specification, machines=_with_other(specification.machines, name))
    if kind == "machine of a property":
        properties = {anomaly: _of_other_name(each, name) for anomaly, each in specification.properties.items()}
        return dataclasses.replace(specification, properties=properties)
    if kind.startswith("state of "):
        machine = specification.machines[kind.removeprefix("state of ")]
        states = tuple(f"{state}{SUFFIX * (state == name)}" for state in machine.states)
        changed = dataclasses.replace(machine, states=states)
        return dataclasses.replace(specification, machines={**specification.machines, machine.name: changed})
    file = {"event": "events", "condition": "conditions", "agent": "execution"}[kind]
    document = documents[f"spec/{file}.yaml"]
    agents = {"agents": _with_other(document.data["agents"], name)} if kind == "agent" else None
    data = {**document.data, **agents} if agents else _with_other(document.data, name)
    documents[document.name] = dataclasses.replace(document, data=data)
    return specification


def _with_other(named: Mapping[str, Any], name: str) -> dict[str, Any]:
    """``named`` with another name for one; a machine of that name says so itself."""
    assert name in named
    found = {f"{key}{SUFFIX * (key == name)}": value for key, value in named.items()}
    machine = found[f"{name}{SUFFIX}"]
    if isinstance(machine, tables.Machine):
        found[f"{name}{SUFFIX}"] = dataclasses.replace(machine, name=f"{name}{SUFFIX}")
    return found


def _of_other_name(definition: tables.Property, name: str) -> tables.Property:
    monitors = (
        dataclasses.replace(each, machine=dataclasses.replace(each.machine, name=f"{each.machine.name}{SUFFIX}"))
        if each.machine.name == name
        else each
        for each in definition.monitors
    )
    return dataclasses.replace(definition, monitors=tuple(monitors))


_FREE = all_names(shipped()) - needed_names() - reserved_words(shipped())
"""The names that nobody needs."""


@pytest.mark.parametrize(
    "name", few(["commit_returned", "consumer_crash", "sync_record", "transacted", "set_aside"], 1)
)
def test_tables_that_rename_a_needed_name_everywhere_are_not_read(name: str, tmp_path: Path) -> None:
    folder = renamed_copy(tmp_path, {name})
    with pytest.raises(SpecError) as caught:
        tables.load(folder)
    told = re.match(rf"(?P<file>.*\.yaml):(?P<line>\d+): there is no [\w ]+ '{name}', to which", str(caught.value))
    assert told
    line = Path(told["file"]).read_text(encoding="utf-8").splitlines()[int(told["line"]) - 1]
    assert line.startswith(f"{name}{SUFFIX}:") or "states:" in line


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Specification:
    """The tables with other names for all that Python does not need."""
    assert {"write_ack_record", "consumer_commit_survives", "forward", "answer_due", "answer_waits_for_sync"} <= _FREE
    return tables.load(renamed_copy(tmp_path_factory.mktemp("names"), _FREE))


def _verified(specification: Specification) -> Iterator[object]:
    for name in few(_RECORDED, 1):
        read = verify.read(DATA / f"{name}.jsonl.gz")
        assert read.header is not None
        found = verify.examine(read, specification, specification.configure(None, read.header.config))
        yield verify.verdict(found, specification), found.explanation
    for history in few([*named_histories().values()], 2):
        with tempfile.TemporaryDirectory() as folder:
            read = verify.read(history.write(Path(folder)))
        found = verify.examine(read, specification, history.configuration(specification))
        yield history.name, verify.verdict(found, specification), found.explanation


def _simulated(specification: Specification) -> Iterator[object]:
    work = Workload(rtt=Fraction(1, 100), sync_time=Fraction(1, 1000), messages_per_commit=5)
    for settings in ({}, {"ack_mode": "SESSION_TRANSACTED"}):
        result = simulate(specification, specification.configure("jms", settings), work, 50)
        yield dataclasses.asdict(result)


def _crashed(specification: Specification) -> Iterator[object]:
    run = "store 1 in 7, store 2 in 7, commit 7, sync, store 3, remove 1, sync"
    yield enumerate_crashes(opened, [run], specification=specification, fine=False)


def _explored(specification: Specification) -> Iterator[object]:
    bounds = Bounds(faults=frozenset({Fault.BROKER_CRASH, Fault.CONSUMER_LINK_LOSS}), max_faults=1)
    for settings in ({}, {"ack_mode": "SESSION_TRANSACTED"}):
        answer = explore.check(specification, specification.configure("jms", settings), bounds)
        yield answer.as_json()
        yield [export.witness_history(specification, witness) for witness in answer.witnesses()]


def _given_back(specification: Specification) -> Iterator[object]:
    for profile in ("jms", "qpid-jms"):
        yield [*given_back(specification, profile)]


@pytest.mark.parametrize("answers", [_verified, _simulated, _crashed, _explored, _given_back])
def test_other_names_for_what_python_does_not_need_change_nothing(
    answers: Callable[[Specification], Iterator[object]], other: Specification
) -> None:
    assert list(map(_in_the_old_names, answers(other))) == list(map(_in_the_old_names, answers(shipped())))


_PASSING = re.compile(r"(whole|conformance|'seconds'|history)[=:] ?('[^']*'|[\w.-]+)")
"""How long it took, and where it stood."""


def _in_the_old_names(answer: object) -> str:
    def named(found: re.Match[str]) -> str:
        return found[1] if found[1] in _FREE else found[0]

    return _PASSING.sub("", re.sub(rf"\b([a-z]\w*){SUFFIX}\b", named, str(answer)))


def test_python_says_no_name_of_the_tables_but_in_names() -> None:
    ours = {*shipped().events, *shipped().conditions, *shipped().machines}
    words = {name for name in ours - reserved_words(shipped()) if "_" in name}
    found = {
        (node.value, file.relative_to(PROJECT / "ackfsm").as_posix())
        for file in (PROJECT / "ackfsm").rglob("*.py")
        if file.name != "names.py" and any(f'"{word}"' in (text := file.read_text(encoding="utf-8")) for word in words)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in words
    }
    assert found == set(_FIELDS.items())


def test_every_name_that_is_needed_is_used() -> None:
    texts = (file.read_text(encoding="utf-8") for file in (PROJECT / "ackfsm").rglob("*.py"))
    used = {member for text in texts for member in re.findall(r"\b[A-Z]\w+\.[A-Z_]+\b", text)}
    assert [name for _, name in _NEEDED if f"{type(name).__name__}.{name.name}" not in used] == []
