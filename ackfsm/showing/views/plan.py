"""A plan on a terminal, and as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.rates.timing import Interval, Plan, Side, Way, Workload
from ackfsm.terms import Configuration


def plan_screen(configuration: Configuration, work: Workload, plan: Plan, ways: Sequence[Way]) -> RenderableType:
    """The answer, what binds, the latencies; then the ways of sending beside each other."""
    return Group(
        *_answer(configuration, plan),
        Text(),
        _latencies(plan),
        *_window(plan),
        Text(),
        _Ways(ways).table(),
        _note(work),
    )


def _answer(configuration: Configuration, plan: Plan) -> Iterator[Text]:
    yield Text.assemble(
        (f"{configuration.profile}: {rate_text(plan.rate)} messages a second", "bold"), " from producers to consumers"
    )
    yield _side("published", plan.publish)
    yield _side("delivered", plan.deliver)


def _side(what: str, side: Side) -> Text:
    text = Text(f"  {what}: {rate_text(side.rate)}/s")
    if side.binds:
        text.append(", bound by ").append(side.binds, "bold")
        text.append(f"; without that {rate_text(side.next_rate)}/s")
        text.append(f", by {side.next_binds}" if side.next_binds else "")
    return text


def _latencies(plan: Plan) -> Text:
    text = Text(f"A message reaches its application after {duration(plan.delivery)} at least")
    if plan.confirmation is None:
        return text.append("; its producer hears nothing.")
    low, high = plan.confirmation
    if low == high:
        return text.append(f", its producer knows after {duration(low)}.")
    most = "it may be for ever" if high is None else f"{duration(high)} where the timer has to fire"
    return text.append(f", its producer knows after {duration(low)}, or {most}.")


def _window(plan: Plan) -> Iterator[Text]:
    if plan.fills is not None:
        yield Text(f"A publish window of {plan.fills:,} fills the connection; a larger one gains nothing.")


class _Ways:
    """The table of the ways of sending."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = ways

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False, show_edge=False)
        table.add_column("messages a second", no_wrap=True)
        for column in ("together", "round trip alone", "bandwidth alone"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("bound by", overflow="fold")
        for way in self.ways:
            rates = (way.side.rate, *way.alone.values())
            table.add_row(_name(way), *map(rate_text, rates), way.side.binds)
        return table


def _name(way: Way) -> str:
    if way.per_commit is not None:
        return f"transactions of {way.per_commit:,}"
    if "publish_window" in way.settings:
        return f"window of {way.settings['publish_window']:,}"
    return str(way.settings["send_mode"])


def _note(work: Workload) -> Text:
    return Text(
        f"With a round trip of {duration(work.rtt)} and messages of {work.message_size:,} bytes; what else takes time "
        "can be said: `ackfsm plan --help`.",
        style="dim",
    )


def rate_text(rate: Interval) -> str:
    """Whole messages a second, rounded down, or a range; ``any`` where nothing takes time."""
    low, high = (_bound(bound) for bound in (rate.low, rate.high))
    if low == high:
        return low
    return f"up to {high}" if rate.low == 0 else f"{low} to {high}"


def _bound(bound: Fraction | None) -> str:
    if bound is None:
        return "any"
    return f"{math.floor(bound):,}" if bound >= _SMALL or bound == 0 else f"{float(bound):.3g}"


_SMALL = 100
"""A rate below has decimals."""


def duration(seconds: Fraction) -> str:
    """A time with three digits and its unit."""
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        if seconds * factor >= 1:
            return f"{float(seconds * factor):.3g} {unit}"
    return f"{float(seconds * 10**9):.3g} ns" if seconds else "0 s"


def plan_json(configuration: Configuration, work: Workload, plan: Plan, ways: Sequence[Way]) -> dict[str, Any]:
    """The plan as plain values: rates in messages a second, times in seconds."""
    confirmation = plan.confirmation or (None, None)
    return {
        "config": configuration.as_dict(),
        "workload": {field.name: _plain(getattr(work, field.name)) for field in dataclasses.fields(work)},
        **rate_json(plan.rate),
        "publish": _side_json(plan.publish),
        "deliver": _side_json(plan.deliver),
        "latency": {
            "delivery_at_least": _plain(plan.delivery),
            "confirmation_at_least": _plain(confirmation[0]),
            "confirmation_at_most": _plain(confirmation[1]),
        },
        "window_that_fills": plan.fills,
        "ways": [_way_json(way) for way in ways],
    }


def _way_json(way: Way) -> Mapping[str, Any]:
    commit = {} if way.per_commit is None else {"messages_per_commit": way.per_commit}
    alone = {name: _plain(rate.high) for name, rate in way.alone.items()}
    settings = {key: str(value) if isinstance(value, str) else value for key, value in way.settings.items()}
    return {**settings, **commit, **_side_json(way.side), "alone": alone}


def _side_json(side: Side) -> dict[str, Any]:
    after = None if not side.binds else {**rate_json(side.next_rate), "binds": side.next_binds or None}
    return {**rate_json(side.rate), "binds": side.binds or None, "next": after}


def rate_json(rate: Interval) -> dict[str, Any]:
    """A rate as plain values; ``rate`` is ``null`` where only bounds are known, or nothing takes time."""
    exact = rate.is_exact
    return {
        "rate": _plain(rate.high) if exact else None,
        "at_least": _plain(rate.low),
        "at_most": _plain(rate.high),
        "exact": exact,
    }


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value
