"""A broker that lies is found out: each injected bug is a violation wherever the tables exclude what it does."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from ackfsm import tables
from ackfsm.driving.conform import (
    AckOutcome,
    Claims,
    CommitOutcome,
    Delivery,
    Limits,
    Mode,
    Program,
    SendOutcome,
    Status,
    Strike,
    claimed,
)
from ackfsm.driving.conform._acts import perform
from ackfsm.driving.conform._judge import Judge
from ackfsm.driving.conform._program import Inject, Receive, Send, Step, draw
from ackfsm.driving.live.adapter import LiveAdapter
from ackfsm.driving.live.brokers import BROKERS, LiveBroker
from ackfsm.driving.live.campaign import claims_of
from ackfsm.driving.live.clients.client import Client
from ackfsm.driving.live.clients.drivers import Driver, drivers
from ackfsm.driving.live.load import Load, Loaded
from ackfsm.terms import AckMode, Consumption, Fault, Verdict
from model_tests.support.brokers import Lent
from model_tests.support.tools import missing
from model_tests.support.whole import WHOLE, few

_RUNS: Final = 2
"""Programs that are drawn for each bug and mode, after one that is led to the bug."""
_CLIENTS: Final = {"rabbitmq": "pika", "artemis": "artemis"}
_BY_APPLICATION: Final = frozenset({AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE})
_UNACKNOWLEDGED: Final = frozenset({AckMode.NO_ACKNOWLEDGE, AckMode.PRE_ACKNOWLEDGE})
_PRODUCERS: Final = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS, Fault.BROKER_KILL})


class Liar(LiveAdapter):
    """A broker and its library, which say the truth; those that lie count how often."""

    lying = True
    lies = 0

    def begin(self, mode: Mode, queue: str) -> None:
        """Forget what was."""
        self.lies, self.had = 0, defaultdict[str, list[str]](list)
        """What each client was handed, and has not settled."""
        self.over = defaultdict[str, list[str]](list)
        """What each client has settled."""
        self.invented: set[tuple[str, str]] = set()
        self.sent = Counter[str]()
        self.dropped: set[str] = set()
        super().begin(mode, queue)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """Remember what is handed over."""
        if self._running().ack_mode not in {*_BY_APPLICATION, AckMode.SESSION_TRANSACTED}:
            self.settled(client)
        found = super().receive(client, queue, timeout)
        if found is not None:
            self.had[client].append(found.message)
        return found

    def settled(self, client: str) -> None:
        """What it had is acknowledged."""
        self.over[client] += self.had.pop(client, [])

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """A listener that was not called returns nothing."""
        if (client, message) not in self.invented:
            super().done(client, message, failed=failed)

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """Acknowledge what was delivered."""
        if (client, message) in self.invented:
            return AckOutcome.SENT
        found = super().acknowledge(client, message, during)
        if found is not AckOutcome.IN_DOUBT:
            self.settled(client)
        return found

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Count the sends of a transaction."""
        self.sent[client] += 1
        return super().send(client, queue, message, during)

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """Commit."""
        found = super().commit(client, during)
        if found is CommitOutcome.COMMITTED:
            self.settled(client)
        self.lies += client in self.dropped
        self.sent.pop(client, None)
        self.dropped.discard(client)
        return found

    def rollback(self, client: str) -> None:
        """Roll back."""
        super().rollback(client)
        self.had.pop(client, None)
        self.sent.pop(client, None)
        self.dropped.discard(client)


class ClearsTheFlag(Liar):
    """What comes again looks as if it came for the first time."""

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """See :class:`Liar`."""
        found = super().receive(client, queue, timeout)
        if found is None or not (self.lying and found.redelivered):
            return found
        self.lies += 1
        return dataclasses.replace(found, redelivered=False)


class DeliversAgain(Liar):
    """What was acknowledged comes again."""

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """See :class:`Liar`."""
        found = super().receive(client, queue, timeout)
        again = next(iter(self.over[client]), None)
        if found is not None or again is None or self.lies or not self.lying:
            return found
        self.lies += 1
        self.invented.add((client, again))
        return Delivery(again, redelivered=True)


class GivesToTwo(Liar):
    """What one consumer has is given to another one as well."""

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """See :class:`Liar`."""
        other = next(
            (its[-1] for name, its in self.had.items() if name != client and its and name in self._clients), ""
        )
        if not other or self.lies or not self.lying:
            return super().receive(client, queue, timeout)
        self._live(client)
        self.lies += 1
        self.invented.add((client, other))
        return Delivery(other)


class ConfirmsEarly(Liar):
    """What is confirmed is not there yet as a fault strikes, and never will be."""

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """See :class:`Liar`."""
        if self._running().ack_mode is AckMode.SESSION_TRANSACTED or not self._is_moment(during):
            return super().send(client, queue, message, during)
        self._live(client)
        self._struck_before(client, during)
        return SendOutcome.CONFIRMED

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """See :class:`Liar`."""
        if not (self.sent[client] and self._is_moment(during)):
            return super().commit(client, during)
        LiveAdapter.rollback(self, client)
        self._struck_before(client, during)
        return CommitOutcome.COMMITTED

    def _is_moment(self, during: Strike | None) -> bool:
        return self.lying and during is not None and during.fault in _PRODUCERS

    def _struck_before(self, client: str, during: Strike | None) -> None:
        self.lies += 1
        if during is not None:
            self.fault(during.fault, None if during.fault is Fault.BROKER_KILL else client)


class TearsATransaction(Liar):
    """One message of a transaction is not in it."""

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """See :class:`Liar`."""
        if not (self.lying and self.sent[client] == 1) or client in self.dropped:
            return super().send(client, queue, message, during)
        self.dropped.add(client)
        return SendOutcome.SENT


class CommitsWhatIsRolledBack(Liar):
    """What was sent, and rolled back, is there."""

    def rollback(self, client: str) -> None:
        """See :class:`Liar`."""
        if not (self.lying and self.sent.pop(client, 0)):
            super().rollback(client)
            return
        self.lies += 1
        LiveAdapter.commit(self, client)


@dataclasses.dataclass(frozen=True)
class Case:
    """A bug in a mode."""

    bug: type[Liar]
    broker: str
    mode: AckMode
    consumption: Consumption
    fault: Fault | None

    @property
    def permitted(self) -> bool:
        """Whether the tables permit it: without acknowledgement nothing comes again, and what is sent may be lost."""
        return self.mode in _UNACKNOWLEDGED and self.bug in {ClearsTheFlag, ConfirmsEarly}

    def programs(self, claims: Claims) -> Iterator[Program]:
        """One that leads to the bug, and some that are drawn."""
        (mode,) = claims.modes()
        at = "commit_sent" if self.mode is AckMode.SESSION_TRANSACTED else "send"
        holds = (Send(2), Receive(0, 1, "none"))
        led: dict[type[Liar], tuple[Step, ...]] = {
            ClearsTheFlag: (*holds, Inject(Fault.CONSUMER_CRASH)),
            GivesToTwo: (*holds, Receive(1)),
            ConfirmsEarly: (Send(), Inject(Fault.PRODUCER_CRASH, at)),
            CommitsWhatIsRolledBack: (Send(2, "rollback"),),
        }
        yield Program(led.get(self.bug, (Send(2), Receive(0, 3))))
        for number in range(_RUNS):
            yield draw(f"{self} {number}", mode, self.fault, claims, 6)

    def __str__(self) -> str:
        return f"{self.bug.__name__} {self.broker} {self.mode} {self.consumption}"


def _driver(broker: str) -> Driver:
    return next(each for each in drivers(broker) if each.client == _CLIENTS[broker])


def _cases() -> Iterator[Case]:
    faults = {ClearsTheFlag: Fault.CONSUMER_CRASH, ConfirmsEarly: Fault.PRODUCER_CRASH}
    for broker in _CLIENTS:
        driver = _driver(broker)
        for mode in driver.modes:
            for consumption in driver.consumptions:
                for bug in Liar.__subclasses__():
                    if mode is AckMode.SESSION_TRANSACTED or bug not in {TearsATransaction, CommitsWhatIsRolledBack}:
                        yield Case(bug, broker, mode, consumption, faults.get(bug))


CASES: Final = list(_cases())
_Started = Callable[[str], LiveBroker]


@pytest.fixture
def started(lent: Lent[LiveBroker]) -> _Started:
    """Gives a broker by its name."""

    def start(name: str) -> LiveBroker:
        if why := _driver(name).lacks():
            missing(why)
        return lent(BROKERS[name])

    return start


@pytest.mark.parametrize("case", few(CASES, 3), ids=str)
def test_an_injected_bug_is_found(
    case: Case, started: _Started, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    broker, driver = started(case.broker), _driver(case.broker)
    claims = claims_of(broker, driver, case.mode, case.consumption)
    known = claimed(claims, tables.load())
    (mode,) = claims.modes()
    adapter = case.bug(broker, driver, claims, tmp_path)
    lied = caught = 0
    try:
        with Judge(known) as judge:
            for program in case.programs(claims):
                adapter.lying = True
                found = judge.judge(perform(adapter, known, mode, program, 0.2), mode, "")
                if not adapter.lies:
                    continue
                lied, caught = lied + 1, caught + (found.verdict is Verdict.INVALID)
                adapter.lying = False
                honest = judge.judge(perform(adapter, known, mode, program, 0.2), mode, "")
                assert honest.verdict is not Verdict.INVALID, honest.reasons
                if caught and not WHOLE:
                    break
    finally:
        adapter.end()
    record_property(str(case), f"caught in {caught} of {lied} runs with a lie")
    assert (caught > 0) is not case.permitted


@contextlib.contextmanager
def _drops(broker: LiveBroker, driver: Driver, queue: str, folder: Path) -> Iterator[None]:
    """A broker that has dropped what it gave first to a consumer of whom nobody tells."""
    place = {"host": "127.0.0.1", "port": broker.ports[driver.protocol], "history": str(folder / "thief.jsonl")}
    own = {"consumerWindowSize": "0"} if driver.client == "artemis" else {}
    broker.declare(queue)
    with Client("thief", driver.command(), folder / "thief.log") as thief:
        thief.call("open", within=60, process="thief", settings={**driver.settings, **own}, **place)
        mode = next(each for each in driver.modes if each in _UNACKNOWLEDGED)
        thief.call("session", within=60, session="s", ack_mode=mode.value)
        thief.call("consumer", session="s", consumer="c", destination=queue)
        stolen = thief.ask("receive", session="s", consumer="c", timeout=60)
        stolen.add_done_callback(lambda _: thief.ask("close", session="s"))
        yield
        assert stolen.result(1)["message"] is not None


LOADS: Final = [(broker, mode) for broker in _CLIENTS for mode in _driver(broker).modes]


@pytest.mark.parametrize(("name", "ack_mode"), LOADS if WHOLE else LOADS[:1], ids=str)
def test_a_dropped_message_in_a_thousand_is_found(
    name: str, ack_mode: AckMode, started: _Started, tmp_path: Path
) -> None:
    broker, driver = started(name), _driver(name)
    claims = claims_of(broker, driver, ack_mode, Consumption.RECEIVE)
    (mode,) = claims.modes()

    def status(folder: Path) -> Status:
        loaded = Loaded(broker, driver, claims, folder, "", Load(rate=300, seconds=3.5, clients=1))
        queue = loaded.queue(mode, None)
        with _drops(broker, driver, queue, tmp_path) if folder.name == "drops" else contextlib.nullcontext():
            (cell,) = loaded.report([None], Limits(), lambda _: None).cells
        return cell.status

    assert status(tmp_path / "keeps") is Status.OK
    assert (status(tmp_path / "drops") is Status.VIOLATION) is (ack_mode not in _UNACKNOWLEDGED)
