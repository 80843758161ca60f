"""The engine's history, in format 1, as ``ackfsm verify`` reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from ackfsm.history.format import HEADER_KEY, VERSION
from ackfsm.terms import Configuration

Line: TypeAlias = Mapping[str, Any]
"""One event: ``t``, ``process``, ``event`` and what else it has."""


class History:
    """What clients, broker and nemesis did, in order.

    ``lines`` has it in memory; with a ``sink`` each line goes there instead and nothing is kept.
    Times are nanoseconds: the virtual time, and where that stands still one more for each event.  A broker on a journal
    that was open before begins later, and tells what it has found there as sent by ``broker``.
    """

    def __init__(
        self, configuration: Configuration, sink: Callable[[Line], None] | None = None, *, api: str | None = None
    ) -> None:
        """``configuration`` and ``api``, if one is named, go into the header; ``sink`` is called with each line."""
        self.header = {HEADER_KEY: VERSION, "config": configuration.as_dict(), **({} if api is None else {"api": api})}
        self.lines: list[Line] = []
        self._sink = sink or self.lines.append
        self._last = self._began = 0

    def goes_on_at(self, time: int) -> bool:
        """Have the virtual time begin at ``time``, if nothing was told yet; whether that was so."""
        if self._last:
            return False
        self._began = time
        return True

    def add(self, now: int, process: str, event: str, **fields: object) -> None:
        """One event; fields that are ``None`` are left out."""
        self._last = max(self._last + 1, self._began + now)
        present = {name: value for name, value in fields.items() if value is not None}
        if "transaction" in present:
            present["transaction"] = str(present["transaction"])  # an id is text in a history
        self._sink({"t": self._last, "process": process, "event": event, **present})

    def __iter__(self) -> Iterator[str]:
        """The lines of the file, header first."""
        for line in (self.header, *self.lines):
            yield json.dumps(line, separators=(",", ":"))

    def write(self, target: Path | TextIO) -> None:
        """Write a file that ``ackfsm verify`` reads."""
        text = "".join(f"{line}\n" for line in self)
        if isinstance(target, Path):
            target.write_text(text, encoding="utf-8")
        else:
            target.write(text)
