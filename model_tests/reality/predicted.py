"""Predict each measured rate by the closed form, from parameters that were measured once: nothing is fitted.

What a message costs at rest is the time of a station; what a client and its broker need beyond that before an answer is
back is added to the round trip, as is what the relay adds.  ``python -m model_tests.reality.predicted`` prints both
sides and writes the picture of ``docs/reality.md``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from ackfsm.rates.timing import Interval, Workload, plan, waits_of
from model_tests.benchmarks.plot import scattered
from model_tests.reality.runs import MEASURED, read
from model_tests.support.places import PROJECT
from model_tests.support.tables import shipped

__all__ = ["NEAR", "PICTURE", "Compared", "compared", "main", "picture"]

NEAR: Final = 0.2
"""A rate is predicted if it is within so much of the measured one."""

_EXACT: Final = 10**9
_MESSAGE: Final = 100
"""Bytes of the messages with which the fixed costs were measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A point with the rate that was measured and the one that is predicted."""

    broker: str
    protocol: str
    what: str
    told: str
    measured: float
    predicted: Interval

    @property
    def middle(self) -> float:
        """The predicted rate, the middle of its bounds where only these are known."""
        return (float(self.predicted.low or 0) + float(self.predicted.high or 0)) / 2

    @property
    def off(self) -> float:
        """How far the measured rate is from the predicted one, or from the nearer of its bounds, as a part of it."""
        low, high = float(self.predicted.low or 0), float(self.predicted.high or 0)
        nearest = min(max(self.measured, low), high)
        return self.measured / nearest - 1


class _Parameters:
    """What was measured once of one client with one broker; seconds."""

    def __init__(self, records: Sequence[Mapping[str, Any]], broker: str, protocol: str) -> None:
        those = {(broker, protocol), (None, None)}
        self._records = [
            each
            for each in records
            if each["kind"] == "parameter" and (each.get("broker"), each.get("protocol")) in those
        ]

    def __call__(self, name: str, size: int | None = None) -> Fraction:
        found = [each for each in self._records if each["name"] == name]
        nearest = min(found, key=lambda each: abs(each.get("message_size", _MESSAGE) - (size or _MESSAGE)))
        return Fraction(round(nearest["value"] * _EXACT), _EXACT)


def compared() -> Iterator[Compared]:
    """All points of the last measurement."""
    records = read(MEASURED)
    for each in records:
        if each["kind"] == "point":
            parameters = _Parameters(records, each["broker"], each["protocol"])
            yield _compare(each, parameters)


def _compare(point: Mapping[str, Any], parameters: _Parameters) -> Compared:
    settings = {key: value for key, value in point["config"].items() if key not in {"batch", "profile"}}
    batch = point["config"].get("batch", 1)
    consumes = point["what"] == "consume"
    work = _consumer(point, parameters, batch) if consumes else _producer(point, parameters, batch)
    found = plan(work, waits_of(shipped(), shipped().configure(point["config"]["profile"], settings)))
    rate = found.deliver.rate if consumes else found.publish.rate
    told = [f"{key}={value}" for key, value in settings.items() if key not in {"delivery_mode", "consumption"}]
    told += [f"by {batch}"] if batch > 1 else []
    told += [f"rtt {point['rtt_ms']} ms", f"{point['message_size']} bytes"]
    told += [f"{point['bandwidth_bit_s'] / 1e6:g} Mbit/s"] if point["bandwidth_bit_s"] else []
    return Compared(point["broker"], point["protocol"], point["what"], ", ".join(told), point["rate"], rate)


def _network(point: Mapping[str, Any], parameters: _Parameters, within: Fraction) -> dict[str, Any]:
    """The line: what client and broker need ``within`` an answer beyond the stations is part of the round trip."""
    bandwidth = point["bandwidth_bit_s"]
    relay = parameters("relay_error_at_5_ms") - parameters("relay_added")
    line = None if bandwidth is None else Fraction(round(bandwidth))
    return {"rtt": Fraction(point["rtt_ms"]) / 1000 + relay + within, "bandwidth": line, "bandwidth_back": line}


def _producer(point: Mapping[str, Any], parameters: _Parameters, batch: int) -> Workload:
    size, wire = point["message_size"], round(point["wire_bytes_up"] or point["message_size"])
    if point["what"] == "transaction":
        cost = parameters("transacted_message_cost")
        network = _network(point, parameters, parameters("commit_cost") - parameters("sync_time"))
    else:
        cost = parameters("message_cost", size)
        network = _network(point, parameters, parameters("blocking_send_non_persistent", size) - cost)
    return Workload(
        message_size=wire,
        broker_time=cost,
        sync_time=parameters("sync_time"),
        messages_per_commit=batch,
        **network,
    )


def _consumer(point: Mapping[str, Any], parameters: _Parameters, batch: int) -> Workload:
    size, wire = point["message_size"], round(point["wire_bytes_down"] or point["message_size"])
    cost = parameters("consume_cost", size)
    ahead = "blocked_acknowledge" if point["protocol"] == "core" else "consume_one_ahead"
    return Workload(
        message_size=wire,
        processing_time=cost,
        sync_time=Fraction(0),
        messages_per_commit=batch,
        messages_per_acknowledge=batch,
        **_network(point, parameters, parameters(ahead) - cost),
    )


PICTURE: Final = PROJECT / "docs" / "predicted-and-measured.svg"


def picture(points: Sequence[Compared]) -> str:
    """Measured against predicted rates, by broker and client."""
    sides: dict[str, list[tuple[float, float]]] = {}
    for each in points:
        sides.setdefault(f"{each.broker} {each.protocol}", []).append((each.middle, each.measured))
    return scattered(sides, "messages a second, predicted", "measured", near=NEAR)


def main() -> int:
    """Print all points, and how many are predicted; draw them."""
    points = [*compared()]
    for each in points:
        low, high = (float(bound or 0) for bound in (each.predicted.low, each.predicted.high))
        said = f"{high:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        mark = " " if abs(each.off) <= NEAR else "*"
        which = f"{mark} {each.broker:9}{each.protocol:11}{each.what:12}"
        sys.stdout.write(f"{which}{each.measured:8,.0f} {said:>16} {each.off:+5.0%}  {each.told}\n")
    near = sum(abs(each.off) <= NEAR for each in points)
    sys.stdout.write(f"{near} of {len(points)} within {NEAR:.0%}\n")
    PICTURE.write_text(picture(points), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
