"""Measure points and parameters on a broker that runs, through the relay."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ackfsm.driving.live.brokers import LiveBroker
from model_tests.reality.points import Side
from model_tests.reality.relay import Bytes, Relay
from model_tests.reality.runs import Outcome, Point, Run, rounded

__all__ = ["Bench", "parameters", "port_of"]

Measure: TypeAlias = Callable[[Run, int], Outcome]
"""Does a run on the broker that listens at a port."""

_LARGE: Final = 16_384
_SHORT: Final = 0.05
"""Seconds that a consumer warms up: a queue may last for a fifth of a second only."""
_MOST: Final = {"core": 60_000}
_MOST_ELSEWHERE: Final = 24_000
"""Messages that a queue is filled with at most, before they are consumed: what is consumed in two or three seconds."""


def port_of(broker: LiveBroker) -> int:
    """Where a broker serves all protocols that are measured."""
    return broker.ports["amqp1"]


@dataclasses.dataclass(slots=True)
class Measured:
    """The outcomes of the repeats of a point, and the bytes that went to the broker and back for so many messages."""

    outcomes: list[Outcome] = dataclasses.field(default_factory=list)
    _wire: Bytes = dataclasses.field(default_factory=lambda: Bytes(0, 0))
    _up: int = 0
    _down: int | None = 0

    def add(self, run: Run, outcome: Outcome, wire: Bytes) -> None:
        """One more repeat."""
        self.outcomes.append(outcome)
        self._wire += wire
        self._up += outcome.total
        sent = _sent_down(run, outcome)
        self._down = None if self._down is None or sent is None else self._down + sent

    @property
    def cost(self) -> float:
        """Seconds a message, of the median rate."""
        return 1 / statistics.median(outcome.rate for outcome in self.outcomes)

    @property
    def wire(self) -> dict[str, float | None]:
        """Bytes a message each way, those of the connection included; None if it is not known of how many."""
        down = None if self._down is None else round(self._wire.down / self._down, 1)
        return {"wire_bytes_up": round(self._wire.up / self._up, 1), "wire_bytes_down": down}


def _sent_down(run: Run, outcome: Outcome) -> int | None:
    """Messages that the broker has sent to a consumer, or has answered."""
    if run.what != "consume" or outcome.total == run.messages:
        return outcome.total
    return min(run.messages, outcome.total + run.prefetch) if run.prefetch else None


class Bench:
    """A broker with a client and a relay between them."""

    def __init__(self, broker: LiveBroker, relay: Relay, measure: Measure, *, seconds: float, repeats: int) -> None:
        self._broker, self._relay, self._measure = broker, relay, measure
        self._seconds, self._repeats = seconds, repeats
        self._numbers = itertools.count()

    def warm_up(self, side: Side) -> None:
        """Run what is new to broker and client, unmeasured: code of the JVM is compiled, files are made."""
        repeats, self._repeats = self._repeats, 1
        for point in (side.window(1000, 0), side.blocking(0), side.transaction(10, 0), side.consume(10, 0)):
            self.measure(point)
        self._repeats = repeats

    def measure(self, point: Point, *, relayed: bool = True) -> Measured:
        """Repeat a point, each time with a queue of its own."""
        self._relay.shape(point.rtt_ms / 1000, point.bandwidth)
        found = Measured()
        for _ in range(self._repeats):
            queue = f"measured-{next(self._numbers)}"
            self._broker.declare(queue)
            run = point.run(queue, seconds=self._seconds)
            if point.what == "consume":
                run = self._filled(point, run)
            before = self._relay.relayed()
            outcome = self._measure(run, self._relay.port if relayed else port_of(self._broker))
            found.add(run, outcome, self._relay.relayed() - before)
            self._broker.remove(queue)
        return found

    def _filled(self, point: Point, run: Run) -> Run:
        """The run, over a queue that holds more messages than it will take, or as many as there may be."""
        number = _MOST.get(run.protocol, _MOST_ELSEWHERE)
        seconds = 2 * (_SHORT + run.seconds)
        if point.bandwidth:
            number = min(number, int(seconds * point.bandwidth / 8 / run.size))
        if point.rtt_ms and run.prefetch:
            number = min(number, int(seconds * run.prefetch / point.rtt_ms * 1000))
        if run.size == _LARGE:
            number = min(number, 12_000)
        number += run.prefetch + run.batch
        fill = dataclasses.replace(run, what="window", window=1000, messages=number, warm_up=0, seconds=3600)
        self._measure(fill, port_of(self._broker))
        return dataclasses.replace(run, messages=number - number % run.batch, warm_up=_SHORT)


def parameters(bench: Bench, side: Side) -> Iterator[dict[str, Any]]:
    """What the closed form needs to know of a side, each measured without any delay and without a limit."""

    def found(name: str, value: float, unit: str, how: str, **more: Any) -> dict[str, Any]:
        about = {"kind": "parameter", "broker": side.broker, "protocol": side.protocol, "name": name}
        return {**about, "value": rounded(value), "unit": unit, "how": how, **more}

    def measured(name: str, how: str, point: Point, *, relayed: bool = True) -> tuple[float, list[dict[str, Any]]]:
        result = bench.measure(point, relayed=relayed)
        costs = [rounded(1 / outcome.rate) for outcome in result.outcomes]
        more: dict[str, Any] = {"message_size": point.message_size, "config": point.config, "repeats": costs}
        if relayed:
            more |= result.wire
        return result.cost, [found(name, result.cost, "s", how, **more)]

    _, records = measured(
        "blocking_send_direct", "1 / rate of blocking sends, no relay", side.blocking(0), relayed=False
    )
    yield from records
    synced, records = measured("blocking_send", "1 / rate of blocking sends of persistent messages", side.blocking(0))
    yield from records
    bare, records = measured(
        "blocking_send_non_persistent",
        "1 / rate of blocking sends of non-persistent messages",
        side.blocking(0, "NON_PERSISTENT"),
    )
    yield from records
    yield found("sync_time", synced - bare, "s", "blocking_send - blocking_send_non_persistent")
    for size in (100, 1500, _LARGE):
        how = "1 / rate of sends of which 1000 are under way"
        yield from measured("message_cost", how, side.window(1000, 0, message_size=size))[1]
    _, records = measured(
        "blocking_send_non_persistent",
        "1 / rate of blocking sends of non-persistent messages",
        side.blocking(0, "NON_PERSISTENT", message_size=_LARGE),
    )
    yield from records
    yield from _transactions(measured, found, side)
    yield from _consumption(measured, side)


def _transactions(measured: Any, found: Any, side: Side) -> Iterator[dict[str, Any]]:
    one, records = measured("transaction_of_1", "seconds a message of transactions of 1 send", side.transaction(1, 0))
    yield from records
    many, records = measured("transaction_of_100", "seconds a message of transactions of 100", side.transaction(100, 0))
    yield from records
    each = max(0.0, (100 * many - one) / 99)
    yield found("transacted_message_cost", each, "s", "(100 transaction_of_100 - transaction_of_1) / 99")
    yield found("commit_cost", one - each, "s", "transaction_of_1 - transacted_message_cost")


def _consumption(measured: Any, side: Side) -> Iterator[dict[str, Any]]:
    core = side.protocol == "core"
    ahead = 0 if core else 1000
    for size in (100, _LARGE):
        how = f"1 / rate of messages taken and acknowledged one by one, with a prefetch of {ahead or 'any number'}"
        yield from measured("consume_cost", how, side.consume(ahead, 0, message_size=size))[1]
    if core:
        how = "1 / rate of messages whose acknowledgement is waited for, one by one"
        yield from measured("blocked_acknowledge", how, side.consume(0, 0, block_on_acknowledge=True))[1]
    else:
        how = "1 / rate of messages taken and acknowledged one by one, with a prefetch of 1"
        yield from measured("consume_one_ahead", how, side.consume(1, 0))[1]
