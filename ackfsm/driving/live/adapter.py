"""A broker that runs, and the clients of one library, as an adapter that ``conform`` drives."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from ackfsm import tables
from ackfsm.driving import conform
from ackfsm.driving.conform import (
    BROKER_FAULTS,
    AckOutcome,
    Adapter,
    BrokerDownError,
    Claims,
    CommitOutcome,
    Delivery,
    Depth,
    ListenerHoldsError,
    Mode,
    SendOutcome,
    Strike,
    UndecidedError,
    acknowledged_by_application,
    claimed,
)
from ackfsm.driving.live.brokers import Broker
from ackfsm.driving.live.clients.client import (
    Answer,
    Client,
    ClientError,
    ClosedError,
    DownError,
    RefusedError,
    TimedOutError,
)
from ackfsm.driving.live.clients.drivers import Driver
from ackfsm.driving.live.faults.relay import Relay, Way
from ackfsm.history.format import Outcome
from ackfsm.terms import AckMode, Consumption, Fault, HostError

__all__ = ["LiveAdapter"]

_SESSION: Final = "s"
_CONSUMER: Final = "c"
_CALL: Final = 10.0
"""Seconds that a call may take; the libraries give up before."""
_AT_ONCE: Final = 0.02
"""Seconds that a message may take that is there."""
_MOMENT: Final = 0.0004
"""Seconds between two steps of a call at which a fault may strike."""
_FAILS: Final = 1.0
"""Seconds within which a broker tells a client that it could not write, if it tells."""
_TOO_MUCH: Final = 65_536
"""Bytes of a message that a full disk has no room for: less may fit into the last page of a file."""
_LAST_WORDS: Final = 300
_EACH: Final = 3
"""Of so many calls one is under way while the broker is stopped, by a nemesis that does that."""


class _UnansweredError(UndecidedError):
    """A client has not answered in time."""


@dataclasses.dataclass(slots=True)
class _Worker:
    """The process of a client, and the relay between that and the broker.

    While its session is ``closing``, its listener may have been ``called`` once more: the close waits for the listener.
    """

    client: Client
    relay: Relay
    closing: Future[Answer] | None = None
    called: Answer | None = None


class LiveAdapter(Adapter):
    """Each client is a process of its own with one connection and one session; a run has a queue of its own.

    A process goes on with the next client when its own is closed; one that was killed does not.  Every fault is one of
    operating system or network: a signal to a process, or the end of a connection.
    """

    def __init__(self, broker: Broker, driver: Driver, claims: Claims, folder: Path, *, kind: str = "") -> None:
        """Of a broker that runs; ``folder`` is for the logs and lines of the clients."""
        self._nemesis, self._calls, self._strikes = driver.nemesis, 0, 0
        self.paused = 0
        """How many calls were under way while the broker was stopped."""
        self._broker, self._driver, self._claims, self._kind = broker, driver, claims, kind
        self._command = driver.command()
        known = claimed(claims, tables.load())
        self.specification, self.configurations = known.specification, known.configurations
        self._folder = folder
        self._runs = self._made = 0
        self._queue = ""
        self._up = True
        self._mode: Mode | None = None
        self._clients: dict[str, _Worker] = {}
        self._consuming: set[str] = set()
        self._holding: set[str] = set()
        self._dead: set[str] = set()
        self._dead_letters: list[str] = []
        self._idle: list[_Worker] = []
        self._relays: list[Relay] = []

    def claims(self) -> Claims:
        """Return the claims."""
        return self._claims

    def begin(self, mode: Mode, queue: str) -> None:
        """Begin a run with a new queue, and the broker running."""
        for name in list(self._clients):
            self._release(name)
        self._dead.clear()
        if not self._up:
            self.restart()
        self._runs += 1
        self._over()
        self._mode, self._queue = mode, self._broker.own(f"{queue}-{self._folder.name}-{self._runs}")
        if self._driver.alone:
            self._subscribe()
        self._broker.declare(self._queue, self._kind)
        self._forget_dead_letters()

    def _subscribe(self) -> None:
        """Have a client make the subscription, and leave it."""
        worker = self._idle.pop() if self._idle else self._new()
        self._connect(worker, self._driver.client_id(self._queue))
        fields = {"session": _SESSION, "consumer": _CONSUMER, **self._driver.consuming(self._queue)}
        worker.client.call("consumer", within=_CALL, **fields)
        worker.client.call("close", within=_CALL)
        self._idle.append(worker)

    def end(self) -> None:
        """End all clients; the broker runs on."""
        if not self._up:
            self.restart()
        with contextlib.ExitStack() as stack:
            for worker in [*self._clients.values(), *self._idle]:
                stack.callback(worker.relay.close)
                stack.callback(worker.client.kill)
            for relay in self._relays:
                stack.callback(relay.close)
        self._clients.clear()
        self._idle.clear()
        self._relays.clear()
        self._over()

    def _over(self) -> None:
        """The run before this one is over, if there was one."""
        if self._queue:
            self._broker.over(self._queue)
        self._queue = ""

    # Calls

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Send; ``in_doubt`` also where no answer came in time."""
        del queue
        fields: dict[str, Any] = {
            **self._driver.sending(self._queue),
            "message": message,
            "delivery_mode": self._running().delivery_mode.value,
        }
        if during is not None and during.fault is Fault.JOURNAL_FAILURE:
            fields["size"] = _TOO_MUCH
        answer = self._struck(client, during, "send", **fields)
        return SendOutcome.IN_DOUBT if answer is None else SendOutcome(answer["outcome"])

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The next message of the client's consumer, which is made by the first call."""
        del queue
        listens = self._listens
        if client not in self._consuming:
            self._consume(client)
        worker = self._live(client)
        answer, worker.called = worker.called, None
        if answer is None:
            operation = "listened" if listens else "receive"
            answer = self._call(client, operation, consumer=_CONSUMER, timeout=timeout or _AT_ONCE)
        if answer["message"] is None:
            return None
        if listens:
            self._holding.add(client)
        return Delivery(
            answer["message"], redelivered=bool(answer["redelivered"]), delivery_count=answer.get("delivery_count")
        )

    def _consume(self, client: str) -> None:
        self._live(client, consumes=True)
        self._call(
            client, "consumer", consumer=_CONSUMER, listener=self._listens, **self._driver.consuming(self._queue)
        )
        self._consuming.add(client)

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """Let the listener return or throw."""
        self._call(client, "done", consumer=_CONSUMER, message=message, failed=failed)
        self._holding.discard(client)

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """Acknowledge."""
        answer = self._struck(client, during, "acknowledge", message=message)
        return AckOutcome.IN_DOUBT if answer is None else AckOutcome(answer["outcome"])

    def settle(self, client: str, message: str, outcome: Outcome) -> None:
        """State the outcome."""
        self._call(client, "settle", message=message, outcome=outcome.value)

    def cancel(self, client: str) -> None:
        """Close the consumer; one that is made for this has time to fetch messages."""
        if client not in self._consuming:
            self._consume(client)
            time.sleep(_AT_ONCE)
        self._call(client, "close", consumer=_CONSUMER)
        self._consuming.discard(client)

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """Commit."""
        answer = self._struck(client, during, "commit")
        return CommitOutcome.IN_DOUBT if answer is None else CommitOutcome(answer["outcome"])

    def rollback(self, client: str) -> None:
        """Roll back."""
        self._call(client, "rollback")

    def recover(self, client: str) -> None:
        """Recover the session."""
        self._call(client, "recover")

    def close(self, client: str) -> None:
        """Close the session; the connection goes with the client."""
        worker = self._live(client)
        try:
            self._await_close(worker, listens=client in self._consuming and self._listens)
        except RefusedError as error:
            raise ListenerHoldsError(str(error)) from None
        except ClientError as error:
            self._lost(client)
            raise conform.ClientClosedError(str(error)) from None
        self._release(client)

    def _await_close(self, worker: _Worker, *, listens: bool) -> None:
        """Have the session closed; raise :class:`ListenerHoldsError` if its listener is called meanwhile."""
        told = worker.closing or worker.client.ask("close", session=_SESSION)
        worker.closing = None
        until = time.monotonic() + _CALL
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                told.result(_AT_ONCE if listens else _CALL)
                return
            if listens and (answer := self._called(worker)) is not None:
                worker.closing, worker.called = told, answer
                raise ListenerHoldsError(f"the listener of {worker.client.name} was called as its session closed")
        raise TimedOutError(f"{worker.client.name} did not answer close within {_CALL:g} s")

    def _called(self, worker: _Worker) -> Answer | None:
        """The message with which the listener of a session that closes was called meanwhile."""
        try:
            answer = worker.client.call("listened", session=_SESSION, consumer=_CONSUMER, timeout=_AT_ONCE)
        except ClosedError:
            return None  # the session is closed, as the close is about to tell
        return None if answer["message"] is None else answer

    def depth(self, queue: str) -> Depth:
        """The broker's own count, once what gone connections held is in the queue again."""
        del queue
        if not self._up:
            raise BrokerDownError(f"{self._broker.name} is down")
        held = self._consuming & self._clients.keys()
        found = self._broker.depth(self._queue) if held else self._broker.settled(self._queue)
        return dataclasses.replace(found, dead_letters=self._look_for_dead_letters()) if found.empty else found

    def _forget_dead_letters(self) -> None:
        """Throw away those of a run that was not drained."""
        self._dead_letters.clear()
        queue = self._broker.dead_letters_of(self._queue)
        if queue is not None and self._broker.depth(queue).ready:
            self._broker.remove(queue)
            self._broker.declare(queue)

    def _look_for_dead_letters(self) -> tuple[str, ...] | None:
        """The dead letters of the run, which a client takes out of their queue; ``None`` if that is not known."""
        queue = self._broker.dead_letters_of(self._queue)
        if queue is None:
            return None
        if number := self._broker.depth(queue).ready:
            worker = self._idle.pop() if self._idle else self._new()
            try:
                self._dead_letters += self._taken(worker, queue, number)
            except ClientError as error:
                self._end(worker)
                raise UndecidedError(f"the dead letters in {queue} could not be read: {error}") from None
            self._idle.append(worker)
        return tuple(self._dead_letters)

    def _taken(self, worker: _Worker, queue: str, number: int) -> list[str]:
        """Take so many messages out of a queue."""
        mode, call = self._running().ack_mode, functools.partial(worker.client.call, within=_CALL, session=_SESSION)
        self._connect(worker)
        call("consumer", consumer=_CONSUMER, destination=queue, listener=False)
        taken = []
        for _ in range(number):
            taken.append(str(call("receive", consumer=_CONSUMER, timeout=_CALL)["message"]))
            if acknowledged_by_application(mode):
                call("acknowledge", message=taken[-1])
        if mode is AckMode.SESSION_TRANSACTED:
            call("commit")
        worker.client.call("close", within=_CALL)
        return taken

    # Faults

    def fault(self, fault: Fault, client: str | None) -> None:
        """Strike now."""
        if client is None:
            self._up = False
            try:
                self._nemesis.broker[fault](self._broker.child())
            except HostError as error:
                raise UndecidedError(f"{fault}: {error}") from None
            return
        worker = self._clients.get(client)
        if worker is None:
            return
        if fault in {Fault.CONSUMER_CRASH, Fault.PRODUCER_CRASH}:
            self._end(self._forget(client))
        else:
            worker.relay.cut()
            worker.relay.heal()

    def restart(self) -> None:
        """Start the broker over what is in its folder; one that does not start there begins anew, for the next runs."""
        try:
            self._broker.child().start()
        except HostError as error:
            self._broker.child().renew()
            words = " ".join(str(error).split())[-_LAST_WORDS:]
            why = f"{self._broker.name} did not come back over what the fault had left: {words}"
            raise UndecidedError(why) from None
        finally:
            self._up = True

    # Clients

    @property
    def _listens(self) -> bool:
        return self._running().consumption is Consumption.LISTENER

    def _running(self) -> Mode:
        if self._mode is None:
            raise HostError("no run has begun")
        return self._mode

    def _live(self, name: str, *, consumes: bool = False) -> _Worker:
        """The process of a client; a new client connects first."""
        if name in self._dead:
            raise conform.ClientClosedError(f"{name} is gone")
        if not self._up and name not in self._clients:
            raise BrokerDownError(f"{self._broker.name} is down")
        if name not in self._clients:
            worker = self._idle.pop() if self._idle else self._new()
            self._clients[name] = worker
            self._connect(worker, self._driver.client_id(self._queue) if consumes else None)
        return self._clients[name]

    def _new(self) -> _Worker:
        self._made += 1
        name = f"client-{self._made}"
        self._folder.mkdir(parents=True, exist_ok=True)
        client = Client(name, self._command, self._folder / f"{name}.log")
        if not self._relays:
            self._relays.append(Relay(self._broker.ports[self._driver.protocol], self._broker.host))
            self._relays[-1].shape(self._nemesis.rtt)
        return _Worker(client, self._relays.pop())

    def _connect(self, worker: _Worker, client_id: str | None = None) -> None:
        mode, history = self._running(), self._folder / f"{worker.client.name}.jsonl"
        config, settings = self.configurations[mode].as_dict(), self._driver.settings
        worker.client.connect(worker.relay.port, history, config, settings, within=_CALL, client_id=client_id)
        worker.client.call("session", within=_CALL, session=_SESSION, ack_mode=mode.ack_mode.value)

    def _call(self, name: str, operation: str, **fields: Any) -> Answer:
        told = self._asked(self._live(name), operation, **fields)
        return self._told(name, operation, told, _CALL + fields.get("timeout", 0))

    def _told(self, name: str, operation: str, told: Future[Answer], within: float) -> Answer:
        """The answer of a call; a client that does not answer is killed."""
        try:
            return told.result(within)
        except (TimeoutError, TimedOutError) as error:
            self._killed(name)
            late = f"{operation} was not answered within {_CALL:g} s"
            raise _UnansweredError(f"{operation}: {error}" if str(error) else late) from None
        except (ClosedError, DownError) as error:
            self._lost(name)
            raise conform.ClientClosedError(str(error)) from None
        except RefusedError as error:
            raise UndecidedError(f"{operation}: {error}") from None

    def _struck(self, name: str, during: Strike | None, operation: str, **fields: Any) -> Answer | None:
        """The answer of a call that a fault may strike; ``None`` if none came in time."""
        worker = self._live(name)
        if during is not None:
            self._prepare(worker, during.fault)
        told = self._asked(worker, operation, **fields)
        if during is not None:
            self._strike(name, during, told)
        try:
            return self._told(name, operation, told, _CALL)
        except _UnansweredError:
            return None

    def _strike(self, name: str, during: Strike, told: Future[Answer]) -> None:
        """Let a fault strike while a call is under way, or right after its end."""
        with contextlib.suppress(TimeoutError):
            fails = during.fault is Fault.JOURNAL_FAILURE
            told.exception(_FAILS if fails else self._nemesis.holds or during.after * _MOMENT)
        self.fault(during.fault, None if during.fault in BROKER_FAULTS else name)

    def _asked(self, worker: _Worker, operation: str, **fields: Any) -> Future[Answer]:
        """A call that is under way; the broker is stopped for a while at some of them."""
        self._calls += 1
        if not self._nemesis.pauses or self._calls % _EACH:
            return worker.client.ask(operation, session=_SESSION, **fields)
        self._broker.child().pause()
        try:
            told = worker.client.ask(operation, session=_SESSION, **fields)
            time.sleep(self._nemesis.pauses)
            self.paused += not told.done()
        finally:
            self._broker.child().resume()
        return told

    def _prepare(self, worker: _Worker, fault: Fault) -> None:
        """Bring about what a struck call is to find: a full disk, or a way that carries nothing."""
        if fault is Fault.JOURNAL_FAILURE:
            self._broker.child().fill_disk()
        elif self._nemesis.holds:
            worker.relay.blackhole(list(Way)[self._strikes % 2])
            self._strikes += 1

    def _release(self, name: str) -> None:
        """The client is over: its process waits for another one, unless a listener holds that up."""
        held = name in self._holding
        worker = self._forget(name)
        if held:
            self._end(worker)
            return
        try:
            worker.client.call("close", within=_CALL)
        except (ClosedError, DownError):
            if not worker.client.alive:
                self._end(worker)
                return
        except (TimedOutError, RefusedError):
            self._end(worker)
            return
        self._idle.append(worker)

    def _lost(self, name: str) -> None:
        """The connection of a client is gone."""
        if name in self._clients:
            self._release(name)
        self._dead.add(name)

    def _killed(self, name: str) -> None:
        """A client that does not answer is killed."""
        if name in self._clients:
            self._end(self._forget(name))
        self._dead.add(name)

    def _end(self, worker: _Worker) -> None:
        """The process of a client is killed; the relay is for the next one."""
        worker.client.kill()
        self._relays.append(worker.relay)

    def _forget(self, name: str) -> _Worker:
        self._consuming.discard(name)
        self._holding.discard(name)
        self._dead.add(name)
        return self._clients.pop(name)
