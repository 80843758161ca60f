"""Load: clients of a broker that send and consume at once, faults that strike meanwhile, and what they recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

from ackfsm import tables, verify
from ackfsm.driving.conform import (
    NO_FAULT,
    Cell,
    Claims,
    Failure,
    Limits,
    Mode,
    Report,
    Status,
    claimed,
)
from ackfsm.driving.live.brokers import Broker
from ackfsm.driving.live.clients.client import Answer, Client, ClientError, ClosedError, DownError
from ackfsm.driving.live.clients.drivers import Driver
from ackfsm.driving.live.faults.relay import Relay
from ackfsm.driving.live.processes import until
from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode, Consumption, Fault, HostError, Verdict

__all__ = ["Load", "Loaded", "LoadedCell"]

_CALL: Final = 15.0
"""Seconds that a call may take; the libraries give up before."""
_STARTS: Final = 60.0
"""Seconds within which clients are connected, for the first time and again."""
_ASKS: Final = 0.3
"""Seconds of a receive, after which a client sees whether it goes on."""
_PROGRESS: Final = 10.0
"""Seconds in which a queue that is being drained has to become shorter."""
_SESSIONS: Final = ("a", "b")
_CONSUMER: Final = "c"
_MOST: Final = 3
"""Messages of a transaction, or of an acknowledgement."""
_ONE_IN: Final = 10
"""How many transactions there are for one that is rolled back, and messages for one that the listener fails with."""
_STRIKE_EACH: Final = 5.0
"""Seconds for each of which a fault strikes once."""
_CRASHES: Final = frozenset({Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH})
_CUTS: Final = frozenset({Fault.PRODUCER_LINK_LOSS, Fault.CONSUMER_LINK_LOSS})
_STRIKE: Final = frozenset({Fault.BROKER_KILL, Fault.LISTENER_EXCEPTION}) | _CRASHES | _CUTS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What clients do at once.

    Attributes:
        rate: messages a second, of all producers.
        seconds: for which messages are sent.
        clients: how many processes produce, and how many consume, each with two sessions.
        window: sends of a session whose outcome may be open at a time; if more than one, they are asynchronous.
    """

    rate: float
    seconds: float = 10.0
    clients: int = 2
    window: int = 1

    def __str__(self) -> str:
        return f"{self.clients} producers send {self.rate:g} messages a second for {self.seconds:g} s"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCell(Cell):
    """A cell of one load: what was sent, and what was left in the queues."""

    sent: int
    left: int
    folder: Path

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        more = {"sent": self.sent, "left": self.left, "folder": str(self.folder)}
        return {**Cell.as_json(self), **more}


class Loaded:
    """The clients of one library in one mode, which work at once."""

    def __init__(  # noqa: PLR0913, PLR0917 - what is driven, and how
        self, broker: Broker, driver: Driver, claims: Claims, place: Path, kind: str, load: Load
    ) -> None:
        """Of a broker that runs; each run has a folder of its own in ``place``."""
        self.broker, self.driver, self.claims, self.kind, self.load = broker, driver, claims, kind, load
        self.known = claimed(claims, tables.load())
        self.place = place

    def report(
        self, faults: Collection[Fault | None] | None, limits: Limits, progress: Callable[[str], None]
    ) -> Report:
        """Drive it once under no fault, and under each."""
        struck = [None, *(each for each in Fault if each in self.claims.faults & _STRIKE)]
        cells = []
        for mode in self.claims.modes():
            for fault in struck if faults is None else [each for each in struck if each in faults]:
                progress(fault or NO_FAULT)
                cells.append(self._cell(mode, fault, limits.seed))
        return Report(claims=self.claims, limits=dataclasses.replace(limits, runs=1), cells=tuple(cells))

    def queue(self, mode: Mode, fault: Fault | None) -> str:
        """That of a run."""
        return self.broker.own(f"load-{self.place.name}-{mode.delivery_mode}-{fault or NO_FAULT}")

    def covered(self) -> None:
        """Return nothing: the rows that so many messages performed are not counted."""

    def _cell(self, mode: Mode, fault: Fault | None, seed: int) -> Cell:
        if mode in self.known.refused:
            return Cell(mode=mode, fault=fault, status=Status.UNKNOWN, why=self.known.refused[mode])
        run = _Run(self, mode, fault, f"{seed} {mode} {fault or NO_FAULT}")
        left = run.go()
        configuration = self.known.configurations[mode]
        found = verify.examination(run.folder, self.known.specification, lambda _: configuration, skew=0).findings
        result = verify.verdict(found, self.known.specification)
        doubt = self._doubt(run, found.messages, left) or next(iter(result.reasons), None)
        invalid = result.verdict is Verdict.INVALID
        failure = Failure(
            run=1,
            reasons=result.reasons,
            anomalies=result.violated,
            program=str(self.load),
            small_program=str(self.load),
            trials=0,
            history=run.folder,
            small=run.folder,
        )
        return LoadedCell(
            mode=mode,
            fault=fault,
            status=Status.VIOLATION if invalid else Status.UNKNOWN if doubt else Status.OK,
            runs=1,
            struck=run.struck,
            why=None if invalid else doubt,
            failure=failure if invalid else None,
            sent=found.messages,
            seen={each: count for each in found.anomalies if (count := result.apart(each).get(True, 0))},
            left=left,
            folder=run.folder,
        )

    @staticmethod
    def _doubt(run: _Run, sent: int, left: int) -> str | None:
        """What keeps a load from being a pass, whatever its history says."""
        if left:
            return f"the queues were not drained: {left:,} messages were left"
        if not sent or not run.delivered:
            return next(iter(run.refused), "not a single message was delivered")
        return f"{run.fault} never struck" if run.fault and not run.struck else None


class _Run:
    """One load under one fault."""

    def __init__(self, loaded: Loaded, mode: Mode, fault: Fault | None, seed: str) -> None:
        self.loaded, self.mode, self.fault, self.load = loaded, mode, fault, loaded.load
        self.folder = loaded.place / f"load-{mode.delivery_mode.lower()}-{fault or NO_FAULT}"
        self.folder.mkdir(parents=True)
        self.queue = loaded.queue(mode, fault)
        self.transacted = mode.ack_mode is AckMode.SESSION_TRANSACTED
        self.queues = [self.queue, *([f"{self.queue}-out"] if self.transacted else [])]
        self.random = random.Random(seed)  # noqa: S311 - reproducible draws
        self.config = loaded.known.configurations[mode].as_dict()
        self.nemesis = Recorder(self.folder / "nemesis.jsonl", "nemesis", config=self.config, monotonic=True)
        self.serving, self.begun, self.sent_all, self.over = (threading.Event() for _ in range(4))
        self.serving.set()
        self.struck = self.delivered = 0
        self.refused: list[str] = []

    def go(self) -> int:
        """Do it; how many messages are left undrained."""
        for queue in self.queues:
            self.loaded.broker.declare(queue, self.loaded.kind)
        with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
            for queue in self.queues:
                stack.callback(self.loaded.broker.over, queue)
            stack.callback(self.nemesis.close)
            actors = [
                stack.enter_context(kind(self, f"{kind.role}-{number}"))
                for kind in (_Producer, _Consumer)
                for number in range(1, self.load.clients + 1)
            ]
            going = [pool.submit(each.work) for each in actors]
            try:
                until(lambda: any(map(Future.done, going)) or all(each.times for each in actors), "all connect")
                self.begun.set()
                self._strike(actors)
                self.sent_all.set()
                for each in going:
                    each.result()
                for number, queue in enumerate(self.queues, 1):
                    with _Drainer(self, f"drainer-{number}", queue) as drainer:
                        drainer.work()
            finally:
                self._stop(actors)
            return sum(map(self._left, self.queues))

    def _stop(self, actors: list[_Actor]) -> None:
        """Let nobody wait for anything."""
        for event in (self.over, self.serving, self.begun, self.sent_all):
            event.set()
        for each in actors:
            each.client.kill()

    def _left(self, queue: str) -> int:
        """How much the broker says that it has at the end; this is told."""
        depth = self.loaded.broker.settled(queue)
        if depth.empty:
            self.nemesis.drained(queue)
        else:
            self.nemesis.depth(queue, ready=depth.ready, unacknowledged=depth.unacknowledged)
        return depth.ready + depth.unacknowledged

    # Faults

    def _strike(self, actors: list[_Actor]) -> None:
        """Let the fault strike at its moments, until the time of sending is over."""
        begun, seconds = time.monotonic(), self.load.seconds
        times = max(1, round(seconds / _STRIKE_EACH)) if self.fault not in {None, Fault.LISTENER_EXCEPTION} else 0
        for moment in sorted(self.random.uniform(0.2, 0.8) * seconds for _ in range(times)):
            time.sleep(max(0.0, begun + moment - time.monotonic()))
            if self.fault is Fault.BROKER_KILL:
                self._kill_broker(actors)
            elif self.fault is not None:
                hit = [each for each in actors if self.fault.startswith(each.role)]
                self._strike_client(self.fault, self.random.choice(hit))
        time.sleep(max(0.0, begun + seconds - time.monotonic()))

    def _kill_broker(self, actors: list[_Actor]) -> None:
        """Kill the broker and start it; nobody reaches it before it serves."""
        self.serving.clear()
        self.nemesis.fault(Fault.BROKER_KILL)
        for each in actors:
            each.relay.refuse()
        self.loaded.broker.child().kill()
        self.loaded.broker.child().start()
        until(self._serves, f"{self.loaded.broker.name} serves its queues")
        self.nemesis.recovered(Fault.BROKER_KILL)
        for each in actors:
            each.relay.heal()
        self.struck += 1
        self.serving.set()

    def _serves(self) -> bool:
        with contextlib.suppress(HostError):
            return all(self.loaded.broker.depth(queue).ready >= 0 for queue in self.queues)
        return False

    def _strike_client(self, fault: Fault, victim: _Actor) -> None:
        """Kill a client, or cut its connections; it recovers when another one, or it, is connected."""
        client, times = victim.client, victim.times
        hit = list(client.processes)
        for each in hit:
            self.nemesis.fault(fault, victim=each)
        if fault in _CRASHES:
            client.kill()
            self.struck += 1
        else:
            self.struck += bool(victim.relay.cut())
        with contextlib.suppress(HostError):  # a library that connects again by itself says nothing of it
            until(lambda: victim.times > times, f"{victim.name} is connected again", _PROGRESS)
        for each in hit:
            self.nemesis.recovered(fault, victim=each)


class _Actor:
    """A client that works until it has no more to do, connected again whenever it was lost."""

    role = ""

    def __init__(self, run: _Run, name: str) -> None:
        self.run, self.name = run, name
        self.times = 0
        """So often it was connected, with all its sessions."""
        self._random = random.Random(f"{run.random.random()} {name}")  # noqa: S311 - reproducible draws
        self._made, self._numbers = itertools.count(1), itertools.count(1)
        self._over = False
        self.relay = Relay(run.loaded.broker.ports[run.loaded.driver.protocol], run.loaded.broker.host)
        self.client = self._new()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.kill()
        self.relay.close()

    def _new(self) -> Client:
        """Another process, which writes a file of its own."""
        name, loaded = f"{self.name}-{next(self._made)}", self.run.loaded
        return Client(name, loaded.driver.command(), loaded.place / f"{self.run.folder.name}-{name}.log")

    def work(self) -> None:
        """Connect and work, until all is done."""
        end = time.monotonic() + _STARTS
        while not (self._over or self.run.over.is_set()):
            self.run.serving.wait()
            if not self.client.alive:
                self.client = self._new()
            try:
                self._connect()
            except ClientError as error:
                self.run.refused.append(str(error))
                if self.run.serving.is_set() and time.monotonic() > end:
                    raise HostError(f"{self.name} did not connect in {_STARTS:g} s: {error}") from None
                time.sleep(_ASKS)
                continue
            self.times += 1
            self._lost = threading.Event()
            with ThreadPoolExecutor() as pool:
                self._over = all(list(pool.map(self._session, self.sessions)))
            self._leave()
            end = time.monotonic() + _STARTS

    sessions: Sequence[str] = _SESSIONS

    def _connect(self) -> None:
        run, client = self.run, self.client
        history, settings = run.folder / f"{client.name}.jsonl", run.loaded.driver.settings
        client.connect(self.relay.port, history, run.config, settings, within=_STARTS)
        for session in self.sessions:
            client.call("session", within=_STARTS, session=session, ack_mode=run.mode.ack_mode.value)

    def _session(self, session: str) -> bool:
        """Whether the session did all that it had to."""
        try:
            self.do(session)
        except (ClosedError, DownError):
            self._lost.set()
            return False
        except (ClientError, TimeoutError) as error:
            self.run.refused.append(str(error))
            self._lost.set()
            self._crash()
            return False
        return not self._lost.is_set()

    def _leave(self) -> None:
        """Close what is left of the connection; a client that cannot is killed."""
        try:
            self.client.call("close", within=_CALL)
        except (ClosedError, DownError):
            return
        except ClientError:
            self._crash()

    def _crash(self) -> None:
        """A client that does not do what it should is killed, and that is told."""
        if self.client.alive:
            fault, hit = f"{self.role}_crash", list(self.client.processes)
            for each in hit:
                self.run.nemesis.fault(fault, victim=each)
            self.client.kill()
            for each in hit:
                self.run.nemesis.recovered(fault, victim=each)

    def do(self, session: str) -> None:
        """What a session does, until it is lost or done."""
        raise NotImplementedError

    def ask(self, session: str, operation: str, **fields: object) -> Answer:
        return self.client.call(operation, within=_CALL, session=session, **fields)

    def send(self, session: str, queue: str, *, asynchronous: bool = False) -> Future[Answer]:
        return self.client.ask(
            "send",
            session=session,
            **self.run.loaded.driver.sending(queue),
            message=f"{self.name}-{next(self._numbers)}",
            delivery_mode=self.run.mode.delivery_mode.value,
            asynchronous=asynchronous or None,
        )

    def end(self, session: str, *, rolls_back: bool) -> None:
        """End a transaction."""
        self.ask(session, "rollback" if rolls_back else "commit")

    def one_in(self) -> bool:
        """Whether it happens now, what happens once in some times."""
        return not self._random.randrange(_ONE_IN)


class _Producer(_Actor):
    role = "producer"

    def do(self, session: str) -> None:
        """Send at a rate, with a window of sends, or in transactions."""
        run, pause = self.run, len(_SESSIONS) * self.run.load.clients / self.run.load.rate
        open_: deque[Future[Answer]] = deque()
        run.begun.wait()
        size, due = 1, time.monotonic() + self._random.uniform(0, pause)
        while not (self._lost.is_set() or run.sent_all.wait(max(0.0, due - time.monotonic()))):
            due = max(due + pause, time.monotonic() - 1)
            asynchronous = run.loaded.driver.asynchronous and not run.transacted
            open_.append(self.send(session, run.queue, asynchronous=asynchronous))
            while len(open_) >= (run.load.window if asynchronous else 1):
                open_.popleft().result(_CALL)
            size -= 1
            if run.transacted and not size:
                self.end(session, rolls_back=self.one_in())
                size = self._random.randint(1, _MOST)
        for each in open_:
            each.result(_CALL)
        if run.transacted:
            self.end(session, rolls_back=False)


class _Consumer(_Actor):
    role = "consumer"

    @property
    def queue(self) -> str:
        return self.run.queue

    def finished(self) -> bool:
        """Whether it ends, as it is handed nothing any more."""
        return self.run.sent_all.is_set()

    def do(self, session: str) -> None:
        """Consume, and acknowledge or commit; in a transaction send as well."""
        run = self.run
        listens = run.mode.consumption is Consumption.LISTENER
        self.ask(session, "consumer", consumer=_CONSUMER, listener=listens, **run.loaded.driver.consuming(self.queue))
        held: list[str] = []
        failed = False
        for message in self._handed(session, "listened" if listens else "receive"):
            if message is not None:
                held.append(message)
                if run.transacted and self.queue == run.queue:
                    self.send(session, run.queues[-1]).result(_CALL)
            throws = run.fault is Fault.LISTENER_EXCEPTION and bool(message) and self.one_in()
            failed |= throws
            most = 1 if listens or message is None else self._random.randint(1, _MOST)
            if not throws and len(held) >= most:
                self._settle(session, held, failed=failed)
                failed = False
            if listens and message is not None:
                self.ask(session, "done", consumer=_CONSUMER, message=message, failed=throws)
                run.struck += throws
                if throws and not run.transacted:
                    held.clear()

    def _handed(self, session: str, operation: str) -> Iterator[str | None]:
        """Yield each message; nothing where none comes in time."""
        while not self._lost.is_set():
            answer = self.ask(session, operation, consumer=_CONSUMER, timeout=_ASKS)
            self.run.delivered += answer["message"] is not None
            yield answer["message"]
            if answer["message"] is None and self.finished():
                return

    def _settle(self, session: str, held: list[str], *, failed: bool) -> None:
        """Settle what is held; after a failure of the listener a transaction is rolled back, if that gives back."""
        match self.run.mode.ack_mode:
            case AckMode.SESSION_TRANSACTED:
                self.end(session, rolls_back=bool(self.run.config["rollback_requeues"]) and (failed or self.one_in()))
            case AckMode.CLIENT_ACKNOWLEDGE:
                self.ask(session, "acknowledge", message=held[-1])
            case AckMode.INDIVIDUAL_ACKNOWLEDGE:
                for each in held:
                    self.ask(session, "acknowledge", message=each)
        held.clear()


class _Drainer(_Consumer):
    """Consumes from one queue until the broker says that nothing is left, or no progress is made."""

    sessions = _SESSIONS[:1]

    def __init__(self, run: _Run, name: str, queue: str) -> None:
        self._queue = queue
        self._since, self._least = time.monotonic(), float("inf")
        super().__init__(run, name)

    @property
    def queue(self) -> str:
        return self._queue

    def finished(self) -> bool:
        depth = self.run.loaded.broker.depth(self._queue)
        left = depth.ready + depth.unacknowledged
        if left < self._least:
            self._since, self._least = time.monotonic(), left
        return not left or time.monotonic() > self._since + _PROGRESS
