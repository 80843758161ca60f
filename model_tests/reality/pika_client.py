"""The client of RabbitMQ: runs of pika, blocking where a run blocks, by events where sends are under way."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import pika

from model_tests.reality.runs import Outcome, Run

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

__all__ = ["measure"]

_PATIENCE: Final = 20.0


class _Meter:
    """Counts messages from one outcome after the warm-up to one after the seconds are over, or to the last message."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._begun = time.monotonic()
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None
        self.total = 0

    @property
    def over(self) -> bool:
        """Whether there is no more to do."""
        if self._first and self._last and self._last[1] - self._first[1] >= self._run.seconds:
            return True
        return 0 < self._run.messages <= self.total

    def count(self, messages: int) -> None:
        """So many outcomes are known now."""
        now = time.monotonic()
        self.total += messages
        if self._first is None:
            if now - self._begun >= self._run.warm_up:
                self._first = self.total, now
        elif not self._last or self._last[1] - self._first[1] < self._run.seconds:
            self._last = self.total, now

    def outcome(self) -> Outcome:
        """What was counted."""
        if self._first is None or self._last is None:
            return Outcome(0, 0.0, self.total)
        return Outcome(self._last[0] - self._first[0], self._last[1] - self._first[1], self.total)


def measure(run: Run, port: int) -> Outcome:
    """Do ``run`` on the broker that listens at ``port``."""
    parameters = pika.ConnectionParameters("127.0.0.1", port, socket_timeout=_PATIENCE)
    meter = _Meter(run)
    if run.what == "window":
        _Window(run, meter, parameters).run()
        return meter.outcome()
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    {"blocking": _blocking, "transaction": _transaction, "consume": _consume}[run.what](channel, run, meter)
    connection.close()
    return meter.outcome()


def _properties(run: Run) -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=2 if run.persistent else 1)


def _blocking(channel: BlockingChannel, run: Run, meter: _Meter) -> None:
    channel.confirm_delivery()
    body, properties = bytes(run.size), _properties(run)
    while not meter.over:
        channel.basic_publish("", run.queue, body, properties)
        meter.count(1)


def _transaction(channel: BlockingChannel, run: Run, meter: _Meter) -> None:
    channel.tx_select()
    body, properties = bytes(run.size), _properties(run)
    while not meter.over:
        for _ in range(run.batch):
            channel.basic_publish("", run.queue, body, properties)
        channel.tx_commit()
        meter.count(run.batch)


def _consume(channel: BlockingChannel, run: Run, meter: _Meter) -> None:
    """Acknowledge each message, or all of a batch by its last; without acknowledgement count them as they come."""
    automatic = run.ack_mode == "NO_ACKNOWLEDGE"
    held = 0

    def work(_: Any, method: Any, __: Any, ___: bytes) -> None:
        nonlocal held
        held += 1
        if meter.over or held < run.batch:
            return
        if not automatic:
            channel.basic_ack(method.delivery_tag, multiple=run.batch > 1)
        meter.count(held)
        held = 0
        if meter.over:
            channel.stop_consuming()

    channel.basic_qos(prefetch_count=run.prefetch)
    channel.basic_consume(run.queue, work, auto_ack=automatic)
    channel.start_consuming()


class _Window:
    """Sends of which at most a window is unconfirmed."""

    def __init__(self, run: Run, meter: _Meter, parameters: pika.ConnectionParameters) -> None:
        self._run, self._meter = run, meter
        self._body, self._properties = bytes(run.size), _properties(run)
        self._sent = 0
        self._under_way: deque[int] = deque()
        self._failure: BaseException | None = None
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
            on_open_error_callback=lambda _, error: self._failed(error),
            on_close_callback=lambda connection, _: connection.ioloop.stop(),
        )

    def run(self) -> None:
        """Send until it is over, and have all confirmed."""
        self._connection.ioloop.start()
        if self._failure:
            raise self._failure

    def _failed(self, error: BaseException) -> None:
        self._failure = error
        self._connection.ioloop.stop()

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.confirm_delivery(self._answered, callback=lambda _: self._send())

    def _send(self) -> None:
        most = self._run.messages or math.inf
        while len(self._under_way) < self._run.window and self._sent < most and not self._meter.over:
            self._channel.basic_publish("", self._run.queue, self._body, self._properties)
            self._sent += 1
            self._under_way.append(self._sent)

    def _answered(self, frame: Any) -> None:
        """Count a confirm; one with ``multiple`` is of all up to its tag."""
        before, tag = len(self._under_way), frame.method.delivery_tag
        if frame.method.multiple:
            while self._under_way and self._under_way[0] <= tag:
                self._under_way.popleft()
        else:
            self._under_way.remove(tag)
        self._meter.count(before - len(self._under_way))
        self._send()
        if not self._under_way:
            self._connection.close()
