"""What must be true of any number of queues and sessions, told from a history with plain sets and lists.

It knows nothing of tables and machines.  With ``durable`` all messages and queues are durable, and all answers wait for
the disk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ackfsm.engine import Broker


@dataclasses.dataclass(frozen=True)
class Plain:
    """A finished run: drained, every session closed."""

    broker: Broker

    def check(self, *, durable: bool) -> None:
        """Raise :class:`AssertionError` with what is wrong."""
        wrong = [*self._unsent(), *self._overtaken()]
        if durable:
            wrong += [*self._lost(), *self._back()]
        assert not wrong, "\n".join([*wrong, *(str(dict(line)) for line in self.lines)])

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The history."""
        assert self.broker.history
        return self.broker.history.lines

    def of(self, *events: str) -> Iterator[Mapping[str, Any]]:
        """The lines of these events."""
        return (line for line in self.lines if line["event"] in events)

    def _unsent(self) -> Iterator[str]:
        """What was delivered was sent, to that queue."""
        sent = {(line["queue"], line["message"]) for line in self.of("send", "resend")}
        for line in self.of("delivered"):
            if (line["queue"], line["message"]) not in sent:
                yield f"{line['message']} of {line['queue']} was delivered and never sent there"

    def _lost(self) -> Iterator[str]:
        """What was confirmed, or committed, was delivered: every queue is empty.

        What ``receive`` has acknowledged before it handed it over, and then could not, is the price of at most once.
        """
        gone = {line["message"] for line in self.of("delivered", "dead_lettered", "ack_in_doubt")}
        held = {line["message"] for line in self.of("confirmed")}
        committed = {(line["session"], line["transaction"]) for line in self.of("committed")}
        held |= {
            line["message"]
            for line in self.of("send", "resend")
            if (line["session"], line.get("transaction")) in committed
        }
        for message in sorted(held - gone):
            yield f"{message} was confirmed, the queues are empty, and nobody had it"

    def _back(self) -> Iterator[str]:
        """What was acknowledged for certain does not come again, unless it was sent again."""
        over = _Over()
        again = {line["message"] for line in self.of("resend")}
        for line in self.of("delivered", "acknowledged", "committed"):
            if line["event"] == "delivered" and line["message"] in over.messages - again:
                yield f"{line['message']} was acknowledged for certain and came again"
            over.hear(line)

    def _overtaken(self) -> Iterator[str]:
        """First deliveries in a session come in the order in which one session sent them, in each delivery mode."""
        number = {line["message"]: n for n, line in enumerate(self.of("send"))}
        lane = {line["message"]: (line["session"], line["delivery_mode"]) for line in self.of("send")}
        many = {line["message"] for line in self.of("resend")}
        seen: set[str] = set()
        last: dict[object, str] = {}
        for line in self.of("delivered"):
            message = line["message"]
            if message in many or message not in lane:
                continue
            if message not in seen and not line["redelivered"]:
                key = (line["session"], line["queue"], lane[message])
                if key in last and number[last[key]] > number[message]:
                    yield f"{message} came after {last[key]}, which was sent later"
                last[key] = message
            seen.add(message)


class _Over:
    """The messages that were delivered and acknowledged for certain, in this order or (in ``receive``) the other."""

    def __init__(self) -> None:
        self.messages: set[str] = set()
        self._open: set[tuple[str, str]] = set()
        self._ahead: set[tuple[str, str]] = set()
        self._transactions: dict[tuple[str, str], list[str]] = {}

    def hear(self, line: Mapping[str, Any]) -> None:
        """The next line."""
        session, transaction = line["session"], line.get("transaction", "")
        if line["event"] == "committed":
            self.messages.update(self._transactions.pop((session, transaction), ()))
            return
        pair = (session, line["message"])
        mine, its = (self._open, self._ahead) if line["event"] == "delivered" else (self._ahead, self._open)
        if pair in its:
            its.discard(pair)
            self.messages.add(line["message"])
        else:
            mine.add(pair)
        if line["event"] == "delivered" and transaction:
            self._transactions.setdefault((session, transaction), []).append(line["message"])
