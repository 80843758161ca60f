"""Writes down the acts of the clients, as a history of format 1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ackfsm.history.format import BROKER, HEADER_KEY, TELLERS, VERSION, Event
from ackfsm.terms import Configuration

_TICK: Final = 1_000_000
"""Nanoseconds between two lines.

The time is that of no clock: calls follow one another, and so that the same run writes the same bytes.
"""


class Recorder:
    """The lines of one run, in the order in which things happened."""

    def __init__(self, queue: str) -> None:
        """Of a run on ``queue``."""
        self._queue = queue
        self._words: dict[str, str] = {}
        self.lines: list[Mapping[str, Any]] = []

    def add(self, process: str, event: Event, **fields: object) -> None:
        """One event of ``process``, whose session has the same name; fields that are ``None`` are left out."""
        self.insert(len(self.lines), process, event, **fields)

    def insert(self, at: int, process: str, event: Event, **fields: object) -> None:
        """As :meth:`add`, before the line ``at``."""
        session = {} if process in TELLERS else {"session": process}
        present = {name: value for name, value in fields.items() if value is not None}
        self.lines.insert(at, {"process": process, "event": event.value, **session, **present})

    def of_message(self, process: str, event: Event, message: str, **fields: object) -> None:
        """One event of a message."""
        self.add(process, event, queue=self._queue, message=message, **fields)

    def found_dead(self, messages: Iterable[str] | None) -> None:
        """At rest these were in the dead-letter queue, and no others; ``None`` if nobody has looked."""
        if messages is None:
            return
        self._words = {Event.DEAD_LETTERED.value: "moved"}
        for message in messages:
            self.of_message(BROKER, Event.DEAD_LETTERED, message)

    def history(self, configuration: Configuration, note: str) -> bytes:
        """The file: a header, then the lines."""
        header = {HEADER_KEY: VERSION, "config": configuration.as_dict(), "note": note, **self._words}
        timed = ({"t": number * _TICK, **line} for number, line in enumerate(self.lines, 1))
        return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in (header, *timed)).encode()
