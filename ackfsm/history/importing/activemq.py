"""ActiveMQ Classic: the lines of its ``LoggingBrokerPlugin`` (``loggingBrokerPlugin`` with ``logAll="true"``).

What the lines say is what that class writes; messages, dispatches, consumers and connections stand in them as the names
and values of their fields.  Other lines of ``activemq.log`` are left out.  (``audit.log`` has what administrators do,
and no message.)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ackfsm.history.importing.interface import Importer, Options, PlainImporter, Problems, UnreadError
from ackfsm.history.importing.logs import Log, log_batches

_BROKER: Final = "the broker logs what it takes and sends, and not what applications do"
_NOT_LOGGED: Final = "the plugin has no line for it"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("confirmed", "rejected", "in_doubt", "acknowledged", "ack_in_doubt"), _NOT_LOGGED),
        **dict.fromkeys(("processed", "failed", "recover"), _BROKER),
        **dict.fromkeys(("committed", "commit_in_doubt", "rolled_back"), "the plugin logs calls, not their answers"),
        **dict.fromkeys(("drained", "depth", "waiting", "journal_written", "journal_synced"), _NOT_LOGGED),
        **dict.fromkeys(
            ("fault", "recovered"), "a broker that dies logs nothing, and a connection that breaks is closed"
        ),
    }
)
_ABOUT: Final = (
    'it has to have lines of loggingBrokerPlugin with logAll="true": "Sending message: ActiveMQTextMessage {...}"'
)


def importer(_: Options) -> Importer:
    """What reads logs of ActiveMQ Classic, ``activemq.log``."""
    return PlainImporter(_CANNOT_SHOW, functools.partial(log_batches, _Log, _ABOUT))


class _Log(Log):
    """A log, as far as it was read."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self.clients: dict[str, str] = {}
        self.place = Path(), 0
        self.several: tuple[Path, int, str] | None = None

    def take(self, path: Path, number: int, t: int, text: str) -> bool:
        """Take a line; whether it is one of the plugin that tells of messages."""
        self.place = path, number
        for pattern, tell in _LINES:
            found = pattern.search(text)
            if found is not None:
                self._several_unnamed(unless=tell)
                tell(self, t, found)
                return True
        self.problems.left_out("other lines of the log")
        return False

    def connect(self, t: int, found: re.Match[str]) -> None:
        """A connection was opened: it tells whose it is."""
        del t
        about = found["about"]
        client = _field(about, "clientId")
        if client != "null":
            self.clients[_field(about, "connectionId")] = client

    def send(self, t: int, found: re.Match[str]) -> None:
        """A message was taken by the broker."""
        about = found["about"]
        message = _field(about, "messageId")
        again = message in self.sent
        self.sent.add(message)
        transaction = _field(about, "transactionId")
        self.rows.add(
            t=t,
            process=self._process(_field(about, "producerId")),
            event="resend" if again else "send",
            message=message,
            queue=_queue(about),
            delivery_mode="PERSISTENT" if _field(about, "persistent") == "true" else "NON_PERSISTENT",
            transaction=None if transaction == "null" else transaction,
        )

    def dispatch(self, t: int, found: re.Match[str]) -> None:
        """A message goes to a consumer."""
        about = found["about"]
        if "message = null" in about:
            return  # an empty answer to a pull
        message = _field(about, "messageId")
        count = int(_field(about, "redeliveryCounter", last=True))
        self.delivered.add(message)
        self.rows.add(
            t=t,
            process=self._process(_field(about, "consumerId")),
            event="delivered",
            message=message,
            queue=_queue(about),
            redelivered=count > 0,
            delivery_count=count + 1,
        )

    def acknowledge(self, t: int, found: re.Match[str]) -> None:
        """An acknowledgement has come in; one of several messages names them at level TRACE alone."""
        client, message = found["client"], found["message"]
        if message is None:
            self.several = (*self.place, client)
            return
        self.rows.add(t=t, process=client, event="acknowledge", message=message, scope="message")

    def acknowledge_up_to(self, t: int, found: re.Match[str]) -> None:
        """The messages of the acknowledgement before, at level TRACE."""
        if self.several is None:
            raise UnreadError("the messages of an acknowledgement that no line before has")
        client, self.several = self.several[2], None
        self.rows.add(t=t, process=client, event="acknowledge", message=found["last"], scope="up_to")

    def transact(self, t: int, found: re.Match[str], event: str) -> None:
        """A transaction begins, or is to be ended."""
        key = found["key"]
        connection = key.removeprefix("TX:").rpartition(":")[0]
        self.rows.add(t=t, process=self._process(f"{connection}:"), event=event, transaction=key)

    def close(self, t: int, found: re.Match[str]) -> None:
        """A connection is closed, or broke."""
        about = found["about"]
        self.rows.add(t=t, process=self._process(f"{_field(about, 'connectionId')}:"), event="close")

    def remove(self, t: int, found: re.Match[str], event: str) -> None:
        """A message has expired, or goes to a dead-letter queue."""
        message = _field(found["about"], "messageId")
        self.rows.add(t=t, process="broker", event=event, message=message, queue=_queue(found["about"]))

    def prepare(self, t: int, found: re.Match[str]) -> None:
        """A transaction of two phases is prepared."""
        del t, found
        raise UnreadError("a transaction of two phases (XA)")

    def _process(self, name: str) -> str:
        """The client of a producer, consumer or connection; without its name, the connection: ``ID:host-1-2-1:3``."""
        found = _CONNECTION.match(name)
        connection = found["connection"] if found is not None else name.rstrip(":")
        return self.clients.get(connection, connection)

    def _several_unnamed(self, unless: object = None) -> None:
        if self.several is not None and unless is not _Log.acknowledge_up_to:
            path, number, _ = self.several
            self.several = None
            why = "an acknowledgement of several messages, which the plugin names at level TRACE alone"
            self.problems.unread(why, path, line=number)

    def finish(self) -> None:
        """The end of the log."""
        self._several_unnamed()
        super().finish()


_CONNECTION: Final = re.compile(r"(?P<connection>ID:[^:]+:\d+)(?::|$)")
_DESTINATION: Final = re.compile(
    r"\bdestination = (?:queue|topic|temp-queue|temp-topic)://(?P<queue>.*?)(?:, [a-zA-Z]+ = |\}|$)"
)


def _field(about: str, name: str, *, last: bool = False) -> str:
    """Return the value of a field of the line's subject."""
    places = re.finditer(rf"\b{name} = (?P<value>.*?)(?:, [a-zA-Z]+ = |\}}|$)", about)
    values = [found["value"] for found in places]
    if not values:
        raise UnreadError(f"a line without the field {name}")
    return values[-1 if last else 0]


def _queue(about: str) -> str | None:
    found = _DESTINATION.search(about)
    return None if found is None else found["queue"]


_LINES: Final[Sequence[tuple[re.Pattern[str], Callable[[_Log, int, re.Match[str]], None]]]] = tuple(
    (re.compile(rf"(?:^|[|\s\])]\s*){pattern}", re.DOTALL), tell)
    for pattern, tell in (
        (r"Sending message: ActiveMQ\w*Message (?P<about>\{.*\})", _Log.send),
        (r"preProcessDispatch: MessageDispatch (?P<about>\{.*\})", _Log.dispatch),
        (
            r"Acknowledging message for client ID: (?P<client>[^,|]+?)(?:, (?P<message>ID:[^\s|]+))?\s*(?:\||$)",
            _Log.acknowledge,
        ),
        (r"Message count: \d+, First Message Id: \S+, Last Message Id: (?P<last>ID:[^\s|]+)", _Log.acknowledge_up_to),
        (r"Adding Connection: ConnectionInfo (?P<about>\{.*\})", _Log.connect),
        (r"Removing Connection: ConnectionInfo (?P<about>\{.*\})", _Log.close),
        (r"Beginning transaction: (?P<key>TX:\S+)", functools.partial(_Log.transact, event="begin")),
        (r"Committing transaction: (?P<key>TX:\S+)", functools.partial(_Log.transact, event="commit")),
        (r"Rolling back Transaction: (?P<key>TX:\S+)", functools.partial(_Log.transact, event="rollback")),
        (r"Preparing transaction: ", _Log.prepare),
        (r"Message has expired: ActiveMQ\w*Message (?P<about>\{.*\})", functools.partial(_Log.remove, event="expired")),
        (
            r"Sending to DLQ: ActiveMQ\w*Message (?P<about>\{.*\})",
            functools.partial(_Log.remove, event="dead_lettered"),
        ),
    )
)
"""The lines that tell of messages: how they read, and what they tell."""
