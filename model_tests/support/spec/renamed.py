"""Copies of the tables in which names are others, everywhere alike, and every line stands where it stood."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ackfsm import terms
from ackfsm.history import format as history_format
from ackfsm.tables import BOUND_SETTINGS, Specification, names
from ackfsm.terms import Configuration
from model_tests.support.places import SPEC
from model_tests.support.tables import copy_of_spec

SUFFIX = "_"
"""Short of every longer name, so that renamed names are in the order in which they were."""

_NO_NAMES = frozenset({"means", "because", "source", "recorded", "line", "life", "counter"})
"""What stands under these keys is prose, or a word of histories."""

_CONDITIONS = frozenset({"when", "by_application", "where", "then_where", "late_where", "by_library", "condition"})

_LEFT_OUT = ("claims.yaml", "seeds.yaml")
"""Tables that others may lack."""


def needed_names() -> set[str]:
    """The names that Python needs, of all kinds."""
    kinds = [kind for kind in vars(names).values() if isinstance(kind, type) and issubclass(kind, enum.StrEnum)]
    return {member.value for kind in kinds for member in kind}


def reserved_words(specification: Specification) -> set[str]:
    """The words of other vocabularies: of the schema, of settings and of histories."""
    found = {*_texts(json.loads((SPEC / "schema.json").read_text(encoding="utf-8")))}
    for module in (terms, history_format):
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, enum.Enum)]
        found |= {str(member.value) for kind in kinds for member in kind}
    execution = yaml.safe_load((SPEC / "execution.yaml").read_text(encoding="utf-8"))
    found |= {*execution["groups"], *execution["agents"], *vars(Configuration)["__dataclass_fields__"]}
    return found | {*BOUND_SETTINGS, *map(str, specification.properties), *specification.monitors}


def all_names(specification: Specification) -> set[str]:
    """The names of events, conditions, machines and states."""
    machines = [*specification.machines.values()]
    machines += [monitor.machine for prop in specification.properties.values() for monitor in prop.monitors]
    machines += [monitor.machine for monitor in specification.monitors.values()]
    states = {state for machine in machines if machine.counter is None for state in machine.states}
    return states | {machine.name for machine in machines} | {*specification.events, *specification.conditions}


def renamed_copy(folder: Path, old: Collection[str]) -> Path:
    """A copy of the tables in which each name in ``old`` has :data:`SUFFIX`; without those that others may lack."""
    copy = copy_of_spec(folder)
    for name in _LEFT_OUT:
        (copy / name).unlink()
    for file in copy.rglob("*.yaml"):
        if "snippets" not in file.parts:
            text = file.read_text(encoding="utf-8")
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            assert root is not None
            for at in sorted({*_edits(text, root, {*old}, "")}, reverse=True):
                text = text[:at] + SUFFIX + text[at:]
            file.write_text(text, encoding="utf-8")
    return copy


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield key
            yield from _texts(value)
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value)
    elif isinstance(data, str):
        yield data


def _edits(text: str, node: yaml.Node, old: set[str], key: str) -> Iterator[int]:
    """The places in ``text`` behind each of the ``old`` names below ``node``, which stands under ``key``."""
    if isinstance(node, yaml.MappingNode):
        for its_key, value in node.value:
            yield from _edits(text, its_key, old, "")
            if its_key.value not in _NO_NAMES:
                yield from _edits(text, value, old, its_key.value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _edits(text, each, old, key)
    else:
        begin, end = node.start_mark.index, node.end_mark.index
        ends = _ends(text[begin:end], old, is_condition=key in _CONDITIONS)
        yield from (begin + at for at in ends)


def _ends(text: str, old: set[str], *, is_condition: bool) -> Iterator[int]:
    """Where the ``old`` names end that a condition reads, or a list of events, machines or states says."""
    if is_condition:
        quoted = [range(*match.span()) for match in re.finditer(r"'[^']*'", text[1:-1])]
        for match in re.finditer(r"\w+", text):
            if match[0] in old and not any(match.start() - 1 in each for each in quoted):
                yield match.end()
    elif re.fullmatch(r"[\w.]+(\(\w+\))?(,\s*[\w.]+(\(\w+\))?)*", text):
        yield from (match.end() for match in re.finditer(r"(?<!\()\b\w+\b", text) if match[0] in old)
