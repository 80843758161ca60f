"""ActiveMQ Artemis: the lines of its ``LoggingActiveMQServerPlugin``, or of its audit log of messages.

Both are known by their codes, whatever the pattern of the log: AMQ841000 to AMQ841018 are the plugin's at level INFO,
with what ``LoggingActiveMQServerPluginLogger`` says; AMQ601500, AMQ601501 and AMQ601502 are those of ``AuditLogger``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ackfsm.history.importing.interface import Importer, Options, PlainImporter, Problems, UnreadError
from ackfsm.history.importing.logs import Log, log_batches
from ackfsm.text import quoted

_BROKER: Final = "the broker logs what it takes, sends and forgets, and not what applications do"
_NOT_LOGGED: Final = "neither the plugin nor the audit log has a line for it"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("confirmed", "rejected", "acknowledged", "ack_in_doubt"), _NOT_LOGGED),
        **dict.fromkeys(("processed", "failed", "recover"), _BROKER),
        **dict.fromkeys(
            ("begin", "commit", "committed", "commit_in_doubt", "rollback", "rolled_back", "transaction"),
            "the end of a transaction is not logged at level INFO",
        ),
        **dict.fromkeys(("drained", "depth", "waiting", "dead_lettered", "delivery_mode"), _NOT_LOGGED),
        **dict.fromkeys(("journal_written", "journal_synced"), _NOT_LOGGED),
        **dict.fromkeys(("fault", "recovered"), "a broker that dies logs nothing"),
        "redelivered": "lines of deliveries do not say it; each delivery after the first is taken for flagged",
        "delivery_count": "lines of deliveries do not say it",
    }
)
_CODED: Final = re.compile(r".*?\bAMQ(?P<code>\d{6}): (?P<text>.*)", re.DOTALL)
_MESSAGE: Final = re.compile(r"messageID=(?P<message>-?\d+)")
_PLUGIN, _AUDIT = "841", "601"
_ABOUT: Final = (
    "it has to have lines with the codes AMQ841009 (LoggingActiveMQServerPlugin) or AMQ601500 (audit.message)"
)


def importer(_: Options) -> Importer:
    """What reads logs of Artemis; where both kinds of lines are there, the kind that comes first counts."""
    return PlainImporter(_CANNOT_SHOW, functools.partial(log_batches, _Log, _ABOUT))


class _Log(Log):
    """A log, as far as it was read."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self.kind = ""
        self.queues: dict[str, str | None] = {}
        self.consumers: dict[str, str] = {}

    def take(self, path: Path, number: int, t: int, text: str) -> bool:
        """Take a line by its code; whether it is one of the plugin or of the audit log."""
        del path, number
        coded = _CODED.fullmatch(text)
        if coded is None or not coded["code"].startswith((_PLUGIN, _AUDIT)):
            self.problems.left_out("lines that are neither the plugin's nor the audit log's")
            return False
        self._take_coded(t, *coded.group("code", "text"))
        return True

    def _take_coded(self, t: int, code: str, text: str) -> None:
        if code not in _LINES:
            self.problems.left_out(f"lines AMQ{code[:3]}..., which tell of no message")
            return
        self.kind = self.kind or code[:3]
        if code[:3] != self.kind:
            self.problems.left_out("lines of the other kind (plugin, audit log), which tell the same again")
            return
        pattern, tell = _LINES[code]
        found = pattern.fullmatch(text)
        if found is None:
            raise UnreadError(f"a line AMQ{code} that does not read as Artemis writes it")
        tell(self, t, found)

    def send(self, t: int, found: re.Match[str]) -> None:
        """A message was taken by the broker."""
        message, result = _id(found), found.groupdict().get("result") or "OK"
        if result == "DUPLICATED_ID":
            self.problems.left_out("sends that duplicate detection has turned away")
        elif result != "OK":
            self.problems.left_out("sends that were routed to no queue")
        else:
            self.sent.add(message)
            self.rows.add(t=t, process=found.groupdict().get("process") or _SOMEBODY, event="send", message=message)

    def failed_send(self, t: int, found: re.Match[str]) -> None:
        """A send has failed within the broker."""
        message, process, error = found["message"], found["process"], found["error"]
        self.sent.add(message)
        self.rows.add(t=t, process=process, event="send", message=message)
        self.rows.add(t=t, process=process, event="in_doubt", message=message, error=error)

    def deliver(self, t: int, found: re.Match[str]) -> None:
        """A message went to a consumer."""
        message, queue = _id(found), found.groupdict().get("queue")
        process = found.groupdict().get("process") or _SOMEBODY
        again, before = message in self.delivered, self.queues.get(message) or ""
        if again and queue not in {None, before}:
            raise UnreadError(
                f"a delivery from a second queue, {quoted(str(queue))}: a message that is routed to several queues is"
                " one message to each"
            )
        self.rows.add(t=t, process=process, event="delivered", message=message, queue=queue, redelivered=again)
        self.delivered.add(message)
        self.queues[message] = queue
        self.consumers[message] = process

    def acknowledge(self, t: int, found: re.Match[str]) -> None:
        """An acknowledgement was carried out."""
        message = _id(found)
        process = found.groupdict().get("process") or self.consumers.get(message)
        if process is None:
            raise UnreadError(
                "an acknowledgement of a message that was not delivered before, so that nobody tells whose"
            )
        self.consumers.pop(message, None)
        self.rows.add(t=t, process=process, event="acknowledge", message=message, scope="message")

    def expire(self, t: int, found: re.Match[str]) -> None:
        """A message has expired."""
        self.rows.add(t=t, process="broker", event="expired", message=_id(found))

    def close(self, t: int, found: re.Match[str]) -> None:
        """A session is closed, or its connection broke."""
        error = "connection failed" if found["failed"] == "true" else None
        self.rows.add(t=t, process=found["process"], event="close", error=error)


_SOMEBODY: Final = "a client"
"""Who sends, in the lines that do not say it."""


def _id(found: re.Match[str]) -> str:
    """The message of a line: its id, or that in the text of the message."""
    named = found.groupdict()
    if named.get("message"):
        return str(named["message"])
    inside = _MESSAGE.search(named["about"])
    if inside is None or inside["message"] == "0":
        raise UnreadError("a line of a message without its messageID")
    return inside["message"]


_Tell = Callable[[_Log, int, "re.Match[str]"], None]


def _line(pattern: str, tell: _Tell) -> tuple[re.Pattern[str], _Tell]:
    return re.compile(pattern, re.DOTALL), tell


_LINES: Final[Mapping[str, tuple[re.Pattern[str], _Tell]]] = MappingProxyType(
    {
        "841003": _line(
            r"closed session with session name: (?P<process>.+?), failed: (?P<failed>true|false).*", _Log.close
        ),
        "841009": _line(
            r"sent message with ID: (?P<message>-?\d+), result: (?P<result>\w+), transaction: .*", _Log.send
        ),
        "841011": _line(
            r"delivered message with message ID: (?P<message>-?\d+), consumer info UNAVAILABLE", _Log.deliver
        ),
        "841012": _line(
            r"delivered message with message ID: (?P<message>-?\d+), to consumer on address: .*?, queue: (?P<queue>.*),"
            r" consumer sessionID: (?P<process>.+), consumerID: .*",
            _Log.deliver,
        ),
        "841013": _line(r"expired message: (?P<about>.*)", _Log.expire),
        "841014": _line(r"acknowledged message: (?P<about>.*)", _Log.acknowledge),
        "841017": _line(
            r"error sending message with ID: (?P<message>-?\d+), session name: (?P<process>.+?), session connectionID:"
            r" .*?, exception: (?P<error>.*)",
            _Log.failed_send,
        ),
        "601500": _line(r"User (?P<process>.+?) (?:sent|is sending) a (?:core )?message (?P<about>.*)", _Log.send),
        "601501": _line(
            r"User (?P<process>.+?) is consuming a message from (?P<queue>.+?): (?P<about>.*)", _Log.deliver
        ),
        "601502": _line(
            r"User (?P<process>.+?) (?:acknowledged|is acknowledging a) message from (?P<queue>.+?): (?P<about>.*)",
            _Log.acknowledge,
        ),
    }
)
"""The lines that tell of messages, by their codes."""
