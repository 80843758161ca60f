"""How fast the simulation is: messages a second of a processor, beside SimPy on the same system.

Run ``python -m model_tests.benchmarks.simulation``.  The system is a producer that waits for answers, its line with
bandwidth and latency, a broker that takes time, a journal whose sync takes all that is written, a line back, and a
consumer that acknowledges each message, which is journalled too.  Both sides are run in turn; the table has medians of
processor time.  The benchmark fails unless both have the same rates to 0.1 %, and every message was processed.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Generator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import simpy

from ackfsm import tables
from ackfsm.engine.core.model import EngineModel
from ackfsm.rates.simulation import simulate
from ackfsm.rates.timing import Workload

__all__ = ["Found", "by_simpy", "main"]

WORK: Final = Workload(
    rtt=Fraction(1, 1000),
    bandwidth=Fraction(2**30),
    bandwidth_back=Fraction(2**30),
    broker_time=Fraction(5, 10**6),
    sync_time=Fraction(2, 1000),
    processing_time=Fraction(10, 10**6),
)
_TOLERANCE: Final = 0.001
_WAYS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "blocking sends": {},
        "blocking sends, NON_PERSISTENT": {"delivery_mode": "NON_PERSISTENT"},
        "a window of 100": {"send_mode": "asynchronous", "publish_window": 100, "delivery_mode": "NON_PERSISTENT"},
    }
)

_Process = Generator[Any, Any, None]


@dataclasses.dataclass(frozen=True)
class Found:
    """Messages a second that the broker read, and that were processed, in the second half of a run."""

    publish: float
    deliver: float


class _System:
    """The system in SimPy, as one would write it: a process for each who acts, and one for each frame on its way."""

    def __init__(self, messages: int, window: int, *, journalled: bool) -> None:
        self.messages, self.journalled = messages, journalled
        self.env = simpy.Environment()
        self.window = simpy.Resource(self.env, window)
        self.broker, self.line, self.line_back = (simpy.Resource(self.env) for _ in range(3))
        self.written: list[simpy.Event] = []
        self.wake = self.env.event()
        self.library = simpy.Store(self.env)
        self.read: list[float] = []
        self.processed: list[float] = []
        self.latency, self.up = float(WORK.rtt / 2), float(WORK.transmission)
        self.down, self.sync = float(WORK.transmission_back), float(WORK.sync_time)

    def run(self) -> None:
        """Run until nothing is left to happen."""
        for process in (self.producer(), self.consumer(), self.journal()):
            self.env.process(process)
        self.env.run()

    def producer(self) -> _Process:
        """Send each message as soon as the window and the line have room."""
        for number in range(self.messages):
            place = self.window.request()
            yield place
            with self.line.request() as mine:
                yield mine
                yield self.env.timeout(self.up)
            self.env.process(self.frame(number, place))

    def frame(self, number: int, place: simpy.resources.resource.Request) -> _Process:
        """A message on its way to the broker, and the answer to it."""
        yield self.env.timeout(self.latency)
        with self.broker.request() as mine:
            yield mine
            yield self.env.timeout(float(WORK.broker_time))
        self.read.append(self.env.now)
        self.env.process(self.delivery(number))
        yield from self.stored()
        yield self.env.timeout(self.latency)
        self.window.release(place)

    def delivery(self, number: int) -> _Process:
        """A message on its way to the consumer."""
        with self.line_back.request() as mine:
            yield mine
            yield self.env.timeout(self.down)
        yield self.env.timeout(self.latency)
        yield self.library.put(number)

    def consumer(self) -> _Process:
        """Process each message and acknowledge it."""
        for _ in range(self.messages):
            yield self.library.get()
            yield self.env.timeout(float(WORK.processing_time))
            self.processed.append(self.env.now)
            self.env.process(self.acknowledgement())

    def acknowledgement(self) -> _Process:
        """An acknowledgement on its way to the broker."""
        yield self.env.timeout(self.latency)
        yield from self.stored()

    def stored(self) -> _Process:
        """Wait for the sync that takes what is written now."""
        if self.journalled:
            record = self.env.event()
            self.written.append(record)
            if not self.wake.triggered:
                self.wake.succeed()
            yield record

    def journal(self) -> _Process:
        """Sync whatever is written, all of it at once."""
        while True:
            if not self.written:
                self.wake = self.env.event()
                yield self.wake
            taken, self.written = self.written, []
            yield self.env.timeout(self.sync)
            for record in taken:
                record.succeed()


def _rate(times: list[float]) -> float:
    first, last = len(times) // 2, len(times) - 1
    return (last - first) / (times[last] - times[first])


def by_simpy(messages: int, settings: Mapping[str, Any]) -> Found:
    """The rates of the system in SimPy."""
    journalled = settings.get("delivery_mode") != "NON_PERSISTENT"
    system = _System(messages, settings.get("publish_window", 1), journalled=journalled)
    system.run()
    if len(system.processed) != messages:
        raise AssertionError(f"{len(system.processed)} of {messages} messages were processed")
    return Found(_rate(system.read), _rate(system.processed))


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and fail if rates differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of the simulation")
    parser.add_argument("--rival", type=int, default=20_000, help="of SimPy, which takes as long for each")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args(argv)
    specification = tables.load()
    model = EngineModel(specification)

    def ours(messages: int, settings: Mapping[str, Any]) -> Found:
        found = simulate(specification, specification.configure("jms", settings), WORK, messages, model=model)
        return Found(found.publish, found.deliver)

    sys.stdout.write(
        "| way of sending | messages a second | simulated in a second | SimPy | times as many |\n"
        "|---|---|---|---|---|\n"
    )
    for way, settings in _WAYS.items():
        ours(asked.rival, settings)  # rows are asked of the tables, and the kernel is compiled
        sides = (_side(ours, asked.messages, settings), _side(by_simpy, asked.rival, settings))
        runs = [[side() for side in sides] for _ in range(asked.times)]
        speeds = [statistics.median(run[at][0] for run in runs) for at in (0, 1)]
        found, expected = (run[1] for run in runs[0])
        if not _agree(found, expected):
            sys.stderr.write(f"{way}: {found} but {expected} by SimPy\n")
            return 1
        figures = f"{found.publish:,.1f} | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {speeds[0] / speeds[1]:.0f}"
        sys.stdout.write(f"| {way} | {figures} |\n")
    return 0


def _side(
    run: Callable[[int, Mapping[str, Any]], Found], messages: int, settings: Mapping[str, Any]
) -> Callable[[], tuple[float, Found]]:
    """What runs a side once: messages a second of a processor, and what it found."""

    def side() -> tuple[float, Found]:
        begun = time.process_time()
        found = run(messages, settings)
        return messages / (time.process_time() - begun), found

    return side


def _agree(one: Found, other: Found) -> bool:
    pairs = zip(dataclasses.astuple(one), dataclasses.astuple(other), strict=True)
    return all(abs(mine / theirs - 1) <= _TOLERANCE for mine, theirs in pairs)


if __name__ == "__main__":
    sys.exit(main())
