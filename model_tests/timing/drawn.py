"""Draw configurations and workloads, and hold the closed form to the simulation of the tables.

``python -m model_tests.timing.drawn --count 2000 --seed 1`` compares so many, and ends with 1 if one disagrees.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from ackfsm.engine.core.model import EngineModel
from ackfsm.rates.simulation import simulate
from ackfsm.rates.timing import Interval, Workload, plan, waits_of
from ackfsm.terms import AckMode, Configuration, InputError, Profile
from model_tests.support.tables import shipped

__all__ = ["Compared", "compare", "drawn", "main"]

_TOLERANCE: Final = 0.01
_CYCLES: Final = 100
_MOST: Final = 60_000
_LONGER: Final = 8
"""A run has so many times the messages that go together, so that its begin and its end weigh little."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """One configuration, with the rates of the closed form and of the simulation."""

    configuration: Configuration
    settings: dict[str, Any]
    work: Workload
    published: tuple[Interval, float]
    delivered: tuple[Interval, float]
    passed: tuple[Interval, float]
    messages: int

    @property
    def sides(self) -> dict[str, tuple[Interval, float]]:
        """The three rates by their names."""
        return {"publish": self.published, "deliver": self.delivered, "end to end": self.passed}

    @property
    def wrong(self) -> tuple[str, ...]:
        """What disagrees."""
        return tuple(name for name, (rate, simulated) in self.sides.items() if not _agrees(rate, simulated))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whether each rate is exact."""
        return tuple(f"{name} {'exact' if rate.is_exact else 'bounds'}" for name, (rate, _) in self.sides.items())


def _agrees(rate: Interval, simulated: float) -> bool:
    low = 0.0 if rate.low is None else float(rate.low)
    if rate.low is None and simulated != float("inf") and rate.is_exact:
        return False
    high = float("inf") if rate.high is None else float(rate.high)
    return low * (1 - _TOLERANCE) <= simulated <= high * (1 + _TOLERANCE)


def drawn(chance: random.Random) -> tuple[Configuration, dict[str, Any], Workload]:
    """A legal configuration and a workload."""
    while True:
        settings: dict[str, Any] = {
            key: chance.choice(values) for key, values in _SETTINGS.items() if chance.random() < _PART
        }
        try:
            configuration = shipped().configure(chance.choice([*Profile]), settings)
        except InputError:
            continue
        return configuration, settings, _workload(chance)


_PART: Final = 0.4
_EITHER: Final = (False, True)
_SETTINGS: Final[Mapping[str, Sequence[object]]] = MappingProxyType(
    {
        "delivery_mode": ("PERSISTENT", "NON_PERSISTENT"),
        "send_mode": ("blocking", "asynchronous", "unconfirmed"),
        "publish_window": (1, 2, 3, 5, 10, 17, 50, 100),
        "ack_mode": tuple(AckMode),
        "consumption": ("receive", "listener"),
        "block_on_acknowledge": _EITHER,
        "journal_sync_non_transactional": _EITHER,
        "journal_sync_transactional": _EITHER,
        "ack_event_mode": ("PER_MESSAGE", "WINDOWED"),
        "ack_immediately": _EITHER,
        "prefetch": (0, 1, 2, 5, 20, 100),
        "client_ack_scope": ("session", "up_to", "message"),
    }
)


def _workload(chance: random.Random) -> Workload:
    def time_(most_us: int, part: float = 0.5) -> Fraction:
        return Fraction(0) if chance.random() > part else Fraction(chance.randint(1, most_us), 10**6)

    bandwidths = [None, None, Fraction(10**7), Fraction(10**8), Fraction(2**30), Fraction(10**10)]
    return Workload(
        rtt=time_(20_000, 0.9),
        bandwidth=chance.choice(bandwidths),
        bandwidth_back=chance.choice(bandwidths),
        message_size=chance.choice([100, 1500, 16_384]),
        send_time=time_(200, 0.3),
        broker_time=time_(200, 0.3),
        sync_time=time_(5_000, 0.4),
        group_commit=chance.random() < 0.5,
        processing_time=time_(1_000, 0.4),
        producers=chance.choice([1, 1, 1, 2, 3]),
        consumers=chance.choice([1, 1, 1, 2, 3]),
        messages_per_commit=chance.choice([1, 2, 10, 50]),
        messages_per_acknowledge=chance.choice([1, 1, 2, 10]),
        rate=Fraction(chance.randint(10, 10_000)) if chance.random() < 0.1 else None,
    )


def compare(  # noqa: PLR0913 - which run is compared
    configuration: Configuration,
    settings: dict[str, Any],
    work: Workload,
    model: EngineModel | None = None,
    *,
    most: int = _MOST,
    longer: int = 1,
) -> Compared:
    """The rates of both, of a run of at most ``most`` messages, or so many times ``longer``."""
    waits = waits_of(shipped(), configuration)
    found = plan(work, waits)
    group = max(
        *(waits.window or 1, waits.threshold or 1, waits.prefetch or 1),
        *(work.messages_per_commit, work.messages_per_acknowledge, work.lazy_batch),
    )
    messages = min(group * _CYCLES * max(work.producers, work.consumers), most) * longer
    apart = simulate(shipped(), configuration, work, messages, apart=True, model=model)
    together = simulate(shipped(), configuration, work, messages, model=model)
    return Compared(
        configuration,
        settings,
        work,
        (found.publish.rate, apart.publish),
        (found.deliver.rate, apart.deliver),
        (found.rate, together.deliver),
        messages,
    )


def _all(count: int, seed: int) -> Iterator[Compared]:
    """Where they disagree a longer run decides, whose begin and end weigh less."""
    model = EngineModel(shipped())
    for number in range(count):
        asked = drawn(random.Random(f"{seed} {number}"))
        found = compare(*asked, model)
        yield compare(*asked, model, longer=_LONGER) if found.wrong else found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; returns 1 if one disagrees."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.timing.drawn", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    tally, begun, wrong = collections.Counter[str](), time.monotonic(), 0
    for number, each in enumerate(_all(asked.count, asked.seed)):
        tally.update(each.kinds)
        if each.wrong:
            wrong += 1
            sys.stdout.write(f"{number} {_described(each)}\n")
            sys.stdout.flush()
    counts = "".join(f"{count:>7,} {kind}\n" for kind, count in sorted(tally.items()))
    sys.stdout.write(f"{counts}{wrong:>7,} disagree; {time.monotonic() - begun:.0f} s\n")
    return min(wrong, 1)


def _described(each: Compared) -> str:
    usual = Workload()
    work = {
        field.name: value if isinstance(value, int) else float(value)
        for field in dataclasses.fields(Workload)
        if (value := getattr(each.work, field.name)) != getattr(usual, field.name) and value is not None
    }
    told = [f"{name} {_text(each.sides[name][0])} but {each.sides[name][1]:.6g}" for name in each.wrong]
    return f"{each.configuration.profile} {each.settings} {work}\n    {'; '.join(told)}"


def _text(rate: Interval) -> str:
    return " to ".join(
        "any" if bound is None else f"{float(bound):.6g}" for bound in dict.fromkeys((rate.low, rate.high))
    )


if __name__ == "__main__":
    sys.exit(main())
