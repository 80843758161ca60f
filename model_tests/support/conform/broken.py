"""Implementations that break a promise, each in one way: a bug is in the engine, or between it and its client."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ackfsm.driving.conform import (
    AckOutcome,
    Claims,
    CommitOutcome,
    Delivery,
    Depth,
    ListenerHoldsError,
    Mode,
    Operation,
    SendOutcome,
    Strike,
)
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.engine import Message
from ackfsm.terms import AckMode, Anomaly, Consumption, DeliveryMode, Fault
from model_tests.support.engine.bugs import Paging


class _Hasty(EngineAdapter):
    """Confirms a message at once, and writes it with the next call."""

    unwritten: tuple[str, str, str] | None = None

    def begin(self, mode: Mode, queue: str) -> None:
        self.unwritten = None
        super().begin(mode, queue)

    def write(self) -> None:
        if self.unwritten is not None:
            late, self.unwritten = self.unwritten, None
            super().send(*late)

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Confirmed, not written."""
        self.write()
        if during is not None:
            return super().send(client, queue, message, during)
        self.unwritten = (client, queue, message)
        return SendOutcome.CONFIRMED

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """As it is, later."""
        self.write()
        return super().receive(client, queue, timeout)

    def close(self, client: str) -> None:
        """As it is, later."""
        self.write()
        super().close(client)

    def fault(self, fault: Fault, client: str | None) -> None:
        """What is not written is gone."""
        if client is None:
            self.unwritten = None
        super().fault(fault, client)


class _Unflagged(EngineAdapter):
    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """As if never delivered before."""
        got = super().receive(client, queue, timeout)
        return None if got is None else Delivery(got.message)


class _LosesAcks(EngineAdapter):
    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """Said, and not done."""
        del client, message, during
        return AckOutcome.ACKNOWLEDGED


class _LosesCommits(EngineAdapter):
    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """Said, and rolled back."""
        del during
        self.rollback(client)
        return CommitOutcome.COMMITTED


class _Twice(EngineAdapter):
    """Hands every message over a second time."""

    again: Delivery | None = None

    def begin(self, mode: Mode, queue: str) -> None:
        self.again = None
        super().begin(mode, queue)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The last one again, or the next."""
        self._call(client, None).__enter__()
        if self.again is not None:
            got, self.again = self.again, None
            return got
        self.again = super().receive(client, queue, timeout)
        return self.again


class _Reorders(EngineAdapter):
    """Of two messages hands the second over first."""

    kept: Delivery | None = None

    def begin(self, mode: Mode, queue: str) -> None:
        self.kept = None
        super().begin(mode, queue)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The one after the next, if there is one."""
        if self.kept is not None:
            got, self.kept = self.kept, None
            return got
        first = super().receive(client, queue, timeout)
        if first is None or first.redelivered:
            return first
        second = super().receive(client, queue, timeout)
        if second is None:
            return first
        self.kept = first
        return second


class _AutoByTwos(EngineAdapter):
    """In AUTO_ACKNOWLEDGE acknowledges every second message, so that two may come again."""

    def begin(self, mode: Mode, queue: str) -> None:
        super().begin(dataclasses.replace(mode, ack_mode=AckMode.CLIENT_ACKNOWLEDGE), queue)
        self.open: dict[str, list[Message]] = {}

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """Acknowledge both before the next."""
        waiting = self.open.setdefault(client, [])
        if len(waiting) > 1:
            with self._call(client, None):
                waiting[-1].acknowledge()
            waiting.clear()
        got = super().receive(client, queue, timeout)
        if got is not None:
            waiting.append(self._clients[client].had[got.message])
        return got

    def close(self, client: str) -> None:
        for message in self.open.pop(client, [])[-1:]:
            with self._call(client, None):
                message.acknowledge()
        super().close(client)


class _Confirms(EngineAdapter):
    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Confirmed, whatever became of it."""
        super().send(client, queue, message, during)
        return SendOutcome.CONFIRMED


class Immortal(EngineAdapter):
    """Says that every fault has struck."""

    def claims(self) -> Claims:
        """Without faults inside calls, which the engine sees to itself."""
        claims = super().claims()
        return dataclasses.replace(claims, operations=claims.operations - {Operation.DURING})

    def fault(self, fault: Fault, client: str | None) -> None:
        """Nothing happens."""


class Hoards(EngineAdapter):
    """Seems to keep a message for ever."""

    def depth(self, queue: str) -> Depth:
        """One more than there is."""
        its = super().depth(queue)
        return Depth(its.ready + 1, its.unacknowledged)


class Holds(EngineAdapter):
    """Closes nothing while its listener is in a call, which lasts until :meth:`done`."""

    holding: set[str]

    def begin(self, mode: Mode, queue: str) -> None:
        """No listener is in a call."""
        self.holding = set()
        super().begin(mode, queue)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The listener is called."""
        found = super().receive(client, queue, timeout)
        if found is not None:
            self.holding.add(client)
        return found

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """It returns."""
        super().done(client, message, failed=failed)
        self.holding.discard(client)

    def close(self, client: str) -> None:
        """As it is, unless the listener is in a call."""
        if client in self.holding:
            raise ListenerHoldsError(f"the listener of {client} is in a call")
        super().close(client)


class Stays(Holds):
    """Its listener never returns."""

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """Nothing."""


@dataclasses.dataclass(frozen=True)
class Broken:
    """A bug, the mode and the fault in which it shows (``None``: without any), and what it is found as.

    ``anomalies``: one of these is found; none: what was recorded does not conform to the model.
    """

    what: str
    make: Callable[[AckMode], EngineAdapter]
    ack_mode: AckMode
    fault: Fault | None
    anomalies: frozenset[Anomaly]

    def __str__(self) -> str:
        return self.what


def made(
    kind: type[EngineAdapter] = EngineAdapter, *, consumption: Consumption = Consumption.RECEIVE, **options: Any
) -> Callable[[AckMode], EngineAdapter]:
    """What makes such an adapter, of one mode."""

    def make(ack_mode: AckMode) -> EngineAdapter:
        return kind(
            ack_modes=[ack_mode],
            delivery_modes=[DeliveryMode.PERSISTENT],
            consumptions=[consumption],
            **options,
        )

    return make


_AUTO, _CLIENT, _TRANSACTED = AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED

BROKEN = (
    Broken(
        "confirms before it writes",
        made(_Hasty),
        _CLIENT,
        Fault.BROKER_CRASH,
        frozenset({Anomaly.LOSS}),
    ),
    Broken(
        "redelivers without the flag",
        made(_Unflagged),
        _CLIENT,
        Fault.CONSUMER_CRASH,
        frozenset({Anomaly.UNFLAGGED_DUPLICATE}),
    ),
    Broken("forgets messages on restart", made(make=Paging), _CLIENT, Fault.BROKER_KILL, frozenset({Anomaly.LOSS})),
    Broken("loses acknowledgements", made(_LosesAcks), _CLIENT, None, frozenset({Anomaly.RESURRECTION})),
    Broken(
        "loses commits",
        made(_LosesCommits),
        _TRANSACTED,
        None,
        frozenset({Anomaly.LOSS, Anomaly.RESURRECTION}),
    ),
    Broken("delivers twice", made(_Twice), _AUTO, None, frozenset({Anomaly.UNFLAGGED_DUPLICATE})),
    Broken("reorders", made(_Reorders), _AUTO, None, frozenset({Anomaly.REORDER})),
    Broken(
        "leaves two in doubt in AUTO_ACKNOWLEDGE",
        made(_AutoByTwos, settings={"block_on_acknowledge": True}),
        _AUTO,
        Fault.CONSUMER_CRASH,
        frozenset({Anomaly.DUPLICATE}),
    ),
    Broken("confirms what it rejected", made(_Confirms), _CLIENT, Fault.REJECTION, frozenset({Anomaly.LOSS})),
)
