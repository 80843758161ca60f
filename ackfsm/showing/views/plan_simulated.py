"""A simulation beside the plan, on a terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.rates.simulation import Latencies, Simulated, latencies
from ackfsm.rates.timing import Interval, Plan, Spread
from ackfsm.showing.views.plan import duration, rate_text

_BAR: Final = 40
"""Signs of the longest bar of a histogram."""


def simulation_screen(plan: Plan, together: Simulated, apart: Simulated) -> RenderableType:
    """Return rates beside the closed form's, percentiles, and a histogram of each latency."""
    found = _latencies(together)
    return Group(
        Text(),
        _title(together),
        _rates(plan, together, apart),
        Text(),
        _percentiles(found),
        *(line for what, each in found.items() if each for line in _histogram(what, each)),
    )


def _title(run: Simulated) -> Text:
    text = Text.assemble(
        (f"{run.messages:,} messages simulated", "bold"), f" in {duration(Fraction(run.seconds))} of virtual time"
    )
    return text.append("; not all were processed: it stands still", "bold red") if run.stands_still else text


def _sides(plan: Plan, together: Simulated, apart: Simulated) -> dict[str, tuple[Interval, float]]:
    """Each rate in closed form, and simulated."""
    return {
        "published": (plan.publish.rate, apart.publish),
        "delivered": (plan.deliver.rate, apart.deliver),
        "end to end": (plan.rate, together.deliver),
    }


def _rates(plan: Plan, together: Simulated, apart: Simulated) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("messages a second", no_wrap=True)
    table.add_column("closed form", justify="right", no_wrap=True)
    table.add_column("simulated", justify="right", no_wrap=True)
    for what, (computed, simulated) in _sides(plan, together, apart).items():
        table.add_row(what, rate_text(computed), _rate(simulated))
    return table


def _rate(rate: float) -> str:
    return "any" if math.isinf(rate) else rate_text(Interval.exactly(Fraction(rate)))


def _latencies(run: Simulated) -> dict[str, Latencies | None]:
    return {"confirmation": latencies(run.confirmations), "delivery": latencies(run.deliveries)}


def _percentiles(found: Mapping[str, Latencies | None]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("of the messages, within", no_wrap=True)
    known = {what: each for what, each in found.items() if each is not None}
    if not known:
        return Text("Nobody heard of any message.")
    for percent, _ in next(iter(known.values())).percentiles:
        table.add_column(f"{percent:g} %", justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    for what, each in found.items():
        times = [*(time for _, time in each.percentiles), each.most] if each else []
        table.add_row(what if times else f"{what}: never", *(duration(Fraction(time)) for time in times))
    return table


def _histogram(what: str, found: Latencies) -> Iterator[RenderableType]:
    yield Text()
    yield Text(f"{what} after, and how many messages", style="bold")
    table = Table(box=None, pad_edge=False, show_edge=False, show_header=False)
    for justify in ("right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    most = max(count for *_, count in found.histogram)
    for low, high, count in found.histogram:
        bar = "#" * math.ceil(_BAR * count / most)
        table.add_row(f"{_edge(low)} to {_edge(high)}", bar, f"{count:,}")
    yield table


def _edge(seconds: float) -> str:
    """Return the bound of a bin with few digits: sums of floating numbers add more."""
    return duration(Fraction(seconds).limit_denominator(10**15))


def simulation_json(
    plan: Plan, together: Simulated, apart: Simulated, seed: int, spreads: Mapping[str, Spread]
) -> dict[str, Any]:
    """The simulation as plain values: rates in messages a second, times in seconds."""
    sides = _sides(plan, together, apart)
    found = _latencies(together)
    return {
        "messages": together.messages,
        "seed": seed,
        "spread": {name: spread.name.lower() for name, spread in spreads.items()},
        "seconds": together.seconds,
        "events": together.events,
        "stands_still": together.stands_still,
        **{
            key: None if math.isinf(rate) else rate
            for key, (_, rate) in zip(("publish", "deliver", "rate"), sides.values(), strict=True)
        },
        "latency": {what: each and _latency_json(each) for what, each in found.items()},
    }


def _latency_json(found: Latencies) -> dict[str, Any]:
    return {
        "messages": found.count,
        **{f"p{percent:g}": time for percent, time in found.percentiles},
        "max": found.most,
        "histogram": [{"from": low, "to": high, "messages": count} for low, high, count in found.histogram],
    }
