"""Tables for tests: changed copies of ``spec/``, small ones, random settings and systems."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import stat
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest  # noqa: TC002 - its MonkeyPatch is part of what tests call
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.tables import Condition, EventRef, Fsm, Row, RowKind, Specification, _load, load
from ackfsm.tables._conditions import ALWAYS
from ackfsm.tables._source import Document, read_document
from ackfsm.terms import Anomaly, Configuration, Fault, Profile, legal_values
from model_tests.support.places import SPEC

HERE = "«here»"
"""Stands in a changed table at the line that an error has to name."""

_NUMBERS: Mapping[str, tuple[int | None, ...]] = {
    "publish_window": (None, 0, 1, 2),
    "confirm_threshold": (None, 1),
    "prefetch": (0, 1, 2),
    "max_delivery_attempts": (0, 1, 2),
}


@functools.cache
def shipped() -> Specification:
    """The tables of the project, also where a test has put something in the place of ``tables.load``."""
    return load()


def composed(profile: str = "jms", chosen: Mapping[str, object] | None = None, **limits: Any) -> Network:
    """The system of a profile with the ``chosen`` settings, in which any fault may happen once but for ``limits``."""
    bounded: dict[str, Any] = {"faults": frozenset(Fault), **limits}
    return compose(shipped(), shipped().configure(profile, dict(chosen or {})), Bounds(**bounded))


def read_once(patch: pytest.MonkeyPatch) -> None:
    """From now on ``spec/`` is read once, and a changed copy where it differs from what was read before."""
    ships = _load._shipped  # noqa: SLF001 - what is put in its place below
    once = functools.cache(ships)
    patch.setattr(_load, "_shipped", lambda: once() if vars(_load)["shipped_tables"]() == SPEC else ships())
    known: dict[tuple[str, bytes, str, str], Document] = {}
    forms: tuple[Any, str] = (None, "")  # as text once for each time that all tables are read

    def read(file: Path, name: str, schema: dict[str, Any] | None) -> Document:
        if not file.is_file():
            return read_document(file, name, schema)
        nonlocal forms
        parts = schema or {}  # without one, what is read is known to fit
        if parts.get("$defs") is not forms[0]:
            forms = (parts.get("$defs"), json.dumps(parts.get("$defs")))
        form = json.dumps(parts.get("$ref"))
        key = (name, file.read_bytes(), form, forms[1])
        if key not in known:
            known[key] = read_document(file, name, schema)
        return dataclasses.replace(known[key], file=file)

    patch.setattr("ackfsm.tables._load.read_document", read)


def copy_of_spec(folder: Path) -> Path:
    """A copy of ``spec/`` below ``folder``, to be changed."""
    return to_be_changed(SPEC, folder / "spec")


def to_be_changed(source: Path, target: Path) -> Path:
    """A copy of a folder that its owner can change, also where that was installed for others to read."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return target


def replace(spec: Path, file: str, *edits: tuple[str, str]) -> int:
    """Make each edit ``(old, new)`` in ``file`` of ``spec``; ``old`` must stand there exactly once.

    Returns the line of :data:`HERE`, which does not stay in the file; 0 without it.
    """
    path = spec / file
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        text = text.replace(old, new)
    before, mark, after = text.partition(HERE)
    path.write_text(before + after, encoding="utf-8")
    return before.count("\n") + 1 if mark else 0


_TIMING = """
next_send_after: [{waits_for: answer, because: x, source: model}]
answers: [{at: once, because: x, source: model}]
settled_by: [{by: message, because: x, source: model}]
after_sync:
  send: {when: journal_sync_non_transactional == True, because: x, source: model}
  commit: {when: journal_sync_transactional == True, because: x, source: model}
  acknowledge: {when: journal_sync_non_transactional == True, because: x, source: model}
"""


def small_spec(folder: Path, machines: str, events: str, properties: Mapping[str, str] | None = None) -> Specification:
    """A specification of these machines, events and properties alone; its only source is ``model``."""
    base = shipped().configure(Profile.JMS).as_dict()
    rows = [
        f"  {key}: {{value: {json.dumps(base[key])}, because: x, source: model}}" for key in base if key != "profile"
    ]
    files = {
        "schema.json": (SPEC / "schema.json").read_text(encoding="utf-8"),
        "sources.yaml": "model: a test",
        "conditions.yaml": "{}",
        "promises.yaml": "{}",
        "guarantees.yaml": "{implications: [], guarantees: {}}",
        "sweep.yaml": "[]",
        "timing.yaml": _TIMING,
        "liveness.yaml": "{}",
        "events.yaml": events,
        "machines/all.yaml": machines,
        **{f"profiles/{profile}.yaml": "system: x\ndefaults: {}" for profile in Profile},
        "profiles/jms.yaml": "\n".join(["system: x", "defaults:", *rows]),
        **{f"properties/{anomaly}.yaml": text for anomaly, text in (properties or {}).items()},
    }
    for name in ("machines", "profiles", "properties", "monitors"):
        (folder / name).mkdir()
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return tables.load(folder, partial=True)


def values(key: str) -> tuple[StrEnum | bool | int | None, ...]:
    """The values of a setting; of a number the few that matter."""
    return legal_values(key) or _NUMBERS[key]


def configurations() -> st.SearchStrategy[Configuration]:
    """Every setting at random, over all its values."""
    keys = [field.name for field in dataclasses.fields(Configuration)]
    return st.deferred(lambda: st.builds(Configuration, **{key: st.sampled_from(values(key)) for key in keys}))


def bounds(messages: int = 2, budgets: Sequence[int | None] = (0, 1, 2, None)) -> st.SearchStrategy[Bounds]:
    """The bounds of a check, at random; with two actions at most, since each further one multiplies the states."""
    return st.builds(
        Bounds,
        messages=st.integers(1, messages),
        faults=st.frozensets(st.sampled_from(Fault)),
        max_faults=st.sampled_from(budgets),
        actions=st.deferred(lambda: st.frozensets(st.sampled_from(actions()), max_size=2)),
    )


def actions() -> list[str]:
    """The optional events."""
    return [event.name for event in shipped().events.values() if event.optional]


def row(state: str, event: EventRef, target: str | None, when: Condition = ALWAYS) -> Row:
    """A row of no file: to ``target``, or refused if there is none."""
    move = RowKind.REFUSE if target is None else RowKind.TO
    return Row(state, event, move, target or state, "a test", None, None, when, "nowhere.yaml", 1)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A system of random machines and random events."""
    alphabet = [EventRef(f"event_{n}") for n in range(draw(st.integers(1, 5)))]
    busy = [draw(_machines(alphabet)) for _ in range(draw(st.integers(1, 4)))]
    idle = [_idle(draw(st.integers(1, 70))) for _ in range(draw(st.integers(0, 20)))]
    instances = tuple(draw(st.permutations([*busy, *idle])))
    events = tuple(_event(event, instances, may_never_happen=draw(st.booleans())) for event in alphabet)
    return Network(shipped().configure(), Bounds(), instances, events)


@st.composite
def _machines(draw: st.DrawFn, alphabet: Sequence[EventRef]) -> Instance:
    states = [f"state_{n}" for n in range(draw(st.integers(1, 5)))]
    mine = draw(st.lists(st.sampled_from(alphabet), unique=True, min_size=1))
    targets = st.sampled_from([*states, None])
    rows = {(state, event): row(state, event, draw(targets)) for event in mine for state in states}
    fsm = Fsm("busy", tuple(states), draw(st.sampled_from(states)), tuple(mine), rows)
    if not draw(st.booleans()):
        return Instance(fsm, ())
    at_rest = draw(st.frozensets(st.sampled_from(states)))
    marked = draw(st.frozensets(st.sampled_from(states))) - {fsm.initial}
    return Instance(fsm, (), draw(st.sampled_from(Anomaly)), marked, at_rest)


def _idle(size: int) -> Instance:
    states = tuple(f"idle_{n}" for n in range(size))
    return Instance(Fsm("idle", states, states[-1], (), {}), ())


def _event(event: EventRef, instances: Sequence[Instance], *, may_never_happen: bool) -> NetworkEvent:
    parts = [Participant(number, event) for number, instance in enumerate(instances) if event in instance.fsm.alphabet]
    return NetworkEvent(event.name, (), may_never_happen, tuple(parts))


def unpacked(network: Network, numbers: Sequence[int]) -> tuple[str, ...]:
    """The names of the states that have these numbers in their machines."""
    return tuple(instance.fsm.states[number] for instance, number in zip(network.instances, numbers, strict=True))
