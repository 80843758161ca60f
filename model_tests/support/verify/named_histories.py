"""The named histories of ``data/named_histories.yaml``."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm import verify
from ackfsm.history.format import Event
from ackfsm.tables import Specification
from ackfsm.terms import Configuration
from model_tests.support.data import read_data

_MILLISECOND = 10**6
_OF_NEMESIS = {"fault", "recovered"}
_FLAGS = {"clear": False, "flagged": True}


@dataclasses.dataclass(frozen=True)
class NamedHistory:
    """A history, and how it is to be judged.

    Attributes:
        name, why: what it is about, and why it is judged so.
        config: its settings.
        queues: those that are other ones in a queue, by its name.
        lines: its events.
        invalid: the messages of each anomaly that nothing explains; ``None`` if it is valid.
        valid: for each anomaly what explains it; ``None`` if it is invalid.
        run: the messages that are no run of the model, and have no anomaly that says so.
        skew: by how many milliseconds two clocks may differ.
        pairs: the same of pairs of messages, each of which is a run by itself.
        unrecorded: the fewest faults that would explain what is invalid if nobody had recorded them; none if none do.
        messages: how many messages it takes to decide it.
    """

    name: str
    why: str
    config: Mapping[str, Any]
    queues: Mapping[str, Mapping[str, Any]]
    lines: Sequence[Mapping[str, Any]]
    invalid: Mapping[str, Sequence[str]] | None = None
    valid: Mapping[str, str] | None = None
    run: Sequence[str] = ()
    skew: int = 0
    pairs: Sequence[Sequence[str]] = ()
    unrecorded: Sequence[str] = ()
    messages: int = 1

    def without_faults(self) -> NamedHistory:
        """The same as nobody would have recorded it who knows of no fault."""
        return dataclasses.replace(self, lines=[each for each in self.lines if each["event"] not in _OF_NEMESIS])

    def configuration(self, specification: Specification) -> verify.Configurations | Configuration:
        """What it is judged by."""
        general = specification.configure(None, self.config)
        if not self.queues:
            return general
        its = {name: specification.configure(None, {**self.config, **own}) for name, own in self.queues.items()}
        return verify.Configurations(general, its)

    def write(self, folder: Path) -> Path:
        """Write it as a file, and say where."""
        header = {"ackfsm_history": 1, "config": self.config, "queues": self.queues, "note": self.why}
        file = folder / "history.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *self.lines)), encoding="utf-8")
        return file


@functools.cache
def named_histories() -> Mapping[str, NamedHistory]:
    """All of them, by name."""
    read = read_data("named_histories.yaml")
    return MappingProxyType({name: _history(name, entry) for name, entry in read.items()})


_OPTIONAL = ("invalid", "valid", "run", "skew", "pairs", "unrecorded", "messages")


def _history(name: str, entry: Mapping[str, Any]) -> NamedHistory:
    lines = [_line(text.split()) for text in entry["lines"].splitlines()]
    fields = {key: entry[key] for key in _OPTIONAL if key in entry}
    return NamedHistory(
        name=name, why=entry["why"], config=entry["config"], queues=entry.get("queues", {}), lines=lines, **fields
    )


def _line(words: Sequence[str]) -> dict[str, Any]:
    line: dict[str, Any] = {"t": int(words[0]) * _MILLISECOND, "process": words[1], "event": words[2]}
    if words[2] != Event.CLOSE:
        line["queue"] = "q"
    for word in words[3:]:
        key, equals, value = word.partition("=")
        if equals and not value:
            line.pop(key, None)
        elif equals:
            line[key] = value
        elif word in _FLAGS:
            line["redelivered"] = _FLAGS[word]
        else:
            line["message"] = word
    return line
