"""A handler of ``logging`` that writes a history."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ackfsm.recorder.lines import RecordingError
from ackfsm.recorder.recorder import Recorder
from ackfsm.text import shown

_EXTRA: Final = "ackfsm"


class HistoryHandler(logging.Handler):
    """Writes a line of format 1 for each record that has one; all other records pass.

    ``logger.info("sent", extra={"ackfsm": {"event": "send", "message": "m1", "queue": "orders"}})``

    Unlike other handlers this one lets errors out to whoever logs: a line that is missing would accuse the broker.  The
    time is when the record is handled, so put no queue between (or give ``t``, nanoseconds since 1970).
    """

    def __init__(self, recorder: Recorder, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._recorder = recorder

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of ``record``; raises :class:`RecordingError` for one that is no event of format 1."""
        line = getattr(record, _EXTRA, None)
        if line is None:
            return
        if not isinstance(line, Mapping) or not all(isinstance(name, str) for name in line):
            raise RecordingError(f"extra[{_EXTRA!r}] is {shown(repr(line), 60)}; it has to be the fields of a line")
        fields = dict(line)
        event = fields.pop("event", None)
        if event is None:
            raise RecordingError(f"extra[{_EXTRA!r}] has no `event`")
        self._recorder.write(event, **fields)
