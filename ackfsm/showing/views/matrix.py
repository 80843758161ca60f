"""The matrix on a terminal, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ackfsm.showing.views.lines import hanging
from ackfsm.surveys.matrix import (
    AnyNumber,
    Broken,
    Cell,
    Entry,
    Line,
    Matrix,
    Open,
    Reachability,
    Repeated,
    Scenario,
    Summary,
    repeated,
)
from ackfsm.tables import format_value
from ackfsm.terms import Configuration

_STYLE = {
    Reachability.NEVER: "green",
    Reachability.DEPENDS: "yellow",
    Reachability.ALWAYS: "red",
    Reachability.UNKNOWN: "bold yellow",
}


def matrix_screen(matrix: Matrix, summary: Summary) -> RenderableType:
    """Extent, a line for each acknowledgement mode, delivery mode and way of consuming, and the conclusion."""
    if matrix.plan.messages is None:
        answer: list[RenderableType] = [_heading_for_any(matrix), "", _conclusion(matrix), ""]
        return Group(*answer, _Lines(summary), *_legend(summary, "messages"), "", *_open(matrix), *_left_out(matrix))
    return Group(
        _heading(matrix), "", _Lines(summary), *_legend(summary, "faults"), "", *_left_out(matrix), _conclusion(matrix)
    )


def _heading_for_any(matrix: Matrix) -> Text:
    """How many pairs of a configuration and an anomaly are decided, and how."""
    total = sum(matrix.pairs.values())
    impossible, possible, undecided = (f"{matrix.pairs[reachable]:,}" for reachable in (False, True, None))
    width = max(map(len, (impossible, possible, undecided)))
    views = sum(outcome.views for outcome in matrix.outcomes.values() if isinstance(outcome, AnyNumber))
    broken = f"\n  {len(matrix.broken):>{width}} promises broken by a witness" if matrix.broken else ""
    return Text.assemble(
        _what(matrix),
        f"any number of messages and of faults\n{total:,} pairs of configuration and anomaly:\n",
        (f"  {impossible:>{width}} impossible for any number of messages: proved\n", "green"),
        (f"  {possible:>{width}} possible: a witness was found\n", "yellow"),
        (
            f"  {undecided:>{width}} undecided ({matrix.pairs[None] / total:.1%})",
            "bold yellow" if matrix.pairs[None] else "",
        ),
        (broken, "bold red"),
        f"\n{len(matrix.outcomes):,} different systems; {views:,} views and {matrix.states:,} states of few messages"
        f" ({matrix.seconds:.1f} s)",
    )


def _what(matrix: Matrix) -> Text:
    plan, config = matrix.plan, matrix.plan.configurations[0]
    through = "" if plan.api is None else f" through {plan.api}"
    varied = ", ".join(plan.varied) or "nothing that varies"
    return Text.assemble(
        (f"{config.profile}", "bold"), f"{through}: {len(plan.configurations):,} configurations of {varied}\n"
    )


def _heading(matrix: Matrix) -> Text:
    plan = matrix.plan
    messages = f"{plan.messages} message" + "s" * (plan.messages != 1)
    pairs = any(scenario.max_faults != 1 for scenario in plan.scenarios if scenario.faults)
    faults = "no fault, every single fault" + (", every two faults" if pairs else "")
    extent = "" if matrix.complete else "; NOT all states: some searches stopped at their limit"
    return Text.assemble(
        _what(matrix),
        f"{messages}; {faults}: {matrix.cells:,} cells, {len(matrix.outcomes):,} of them different\n",
        f"{matrix.states:,} states and {matrix.transitions:,} transitions ({matrix.seconds:.1f} s){extent}",
    )


class _Lines:
    """A table with a column for each anomaly, if all of it fits; else a paragraph for each mode."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = _table(self._summary)
        wide = Measurement.get(console, options.update(max_width=_ANY_WIDTH), table).maximum
        yield from (table,) if wide <= options.max_width else _paragraphs(self._summary)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(40, options.max_width), options.max_width)


_ANY_WIDTH: Final = 10_000


def _paragraphs(summary: Summary) -> Iterator[RenderableType]:
    """Each mode with what always, sometimes and perhaps happens in it, and with how many faults."""
    for line in summary.lines:
        yield Text(f"{line.ack_mode}, {line.delivery_mode}, {line.consumption}", style="bold")
        for reachability in Reachability:
            its = [(anomaly, line.overall[anomaly]) for anomaly in summary.anomalies if anomaly not in summary.nowhere]
            told = [(anomaly, entry) for anomaly, entry in its if entry.happens is reachability]
            if told:
                grid = Table.grid()
                grid.add_column(width=11, no_wrap=True)
                grid.add_column(overflow="fold")
                names = Text(", ").join(
                    Text(f"{anomaly}{_faults(entry)}", style=_style(entry)) for anomaly, entry in told
                )
                grid.add_row(Text(f"  {reachability}"), names)
                yield grid


def _table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("acknowledgement", "delivery", "consumption"):
        table.add_column(name, no_wrap=True)
    shown = [anomaly for anomaly in summary.anomalies if anomaly not in summary.nowhere]
    for anomaly in shown:
        table.add_column(anomaly.replace("_", "\n"), no_wrap=True, vertical="bottom")
    before: Line | None = None
    for line in summary.lines:
        mode, delivery = line.ack_mode.removesuffix("_ACKNOWLEDGE"), line.delivery_mode.value
        same_mode = before is not None and before.ack_mode is line.ack_mode
        same_delivery = same_mode and before is not None and before.delivery_mode is line.delivery_mode
        cells = [_entry(line.overall[anomaly]) for anomaly in shown]
        table.add_row("" if same_mode else mode, "" if same_delivery else delivery, line.consumption, *cells)
        before = line
    return table


def _entry(entry: Entry) -> Text:
    return Text(f"{entry.happens}{_faults(entry)}", style=_style(entry))


def _faults(entry: Entry) -> str:
    """How many faults it takes, of any number how many messages, and whether a promise is broken."""
    most = None if entry.scenario is None else entry.scenario.max_faults
    number = entry.messages if most is None else most
    return ("" if number is None else f" {number}") + "!" * entry.broken


def _style(entry: Entry) -> str:
    return "bold red" if entry.broken else _STYLE[entry.happens]


def _legend(summary: Summary, counted: str) -> Iterator[Text]:
    if summary.nowhere:
        yield Text(f"never anywhere: {', '.join(summary.nowhere)}", style="green")
    yield Text(
        f"the number is how many {counted} it takes; depends: on the other switches; !: a promise is broken",
        style="dim",
    )


def _open(matrix: Matrix) -> Iterator[RenderableType]:
    """Yield the undecided cells, by their reasons, each with one configuration to look at."""
    for number, one in enumerate(matrix.open):
        if not number:
            yield Text("undecided", style="bold")
        names = ", ".join(f"{name} in {count:,}" for name, count in one.names.items())
        yield hanging(f"{names} of {_of(matrix, one)}: {one.because}", "")
        yield hanging(check_command(matrix, one.cell.configuration, one.cell.scenario), "dim")
    if matrix.open:
        yield Text("")


def _of(matrix: Matrix, one: Broken | Open) -> str:
    """How many configurations, and what they have in common."""
    settings = " ".join(f"{key}={_plain(value)}" for key, value in one.settings.items())
    where = f", all with {settings}" if settings else ""
    return f"{len(matrix.plan.configurations):,} configurations{where}"


def _left_out(matrix: Matrix) -> Iterator[Text]:
    for left in matrix.plan.left_out:
        yield Text(f"left out: {left.count:,} configurations, {left.because}", style="dim")
    if matrix.plan.left_out:
        yield Text("")


def _conclusion(matrix: Matrix) -> RenderableType:
    if matrix.broken:
        return Group(*(_broken(matrix, broken) for broken in matrix.broken))
    of_any = matrix.plan.messages is None
    if not matrix.complete:
        why = (
            "what is undecided may be impossible, and no search shows it"
            if of_any
            else "some searches stopped at their limit; raise --max-states"
        )
        return Text(f"Undetermined: {why}.", style="bold yellow")
    with_any = ", with any number of messages" if of_any else ""
    return Text(f"As promised: nothing that is promised never to happen can happen{with_any}.", style="bold green")


def _broken(matrix: Matrix, broken: Broken) -> Text:
    promise, cell = broken.promise, broken.cell
    of = f"{broken.configurations:,} of {_of(matrix, broken)}"
    witness = " → ".join(cell.outcome.witnesses[promise.absent])
    if how := repetition(repeated(cell.outcome, promise.absent)):
        witness += f"\n  {how}"
    command = check_command(matrix, cell.configuration, cell.scenario)
    return Text.assemble(
        (f"Promise broken: {promise.absent} ({promise.source})", "bold red"),
        f" in {of}\n  {witness}\n",
        (f"  {command}", "dim"),
    )


def repetition(run: Repeated | None) -> str:
    """How a way of few messages becomes one that fills a bound; nothing for one that is whole."""
    if run is None:
        return ""
    tried = " ".join(f"{setting}={bound}" for setting, bound in run.tried.items())
    return f"{run.times:,} messages take the steps of m{run.message} of this way, which is one with {tried}"


def _repetition_json(run: Repeated | None) -> dict[str, object]:
    return {} if run is None else {"repeated": f"m{run.message}", "times": run.times, "tried": dict(run.tried)}


def _plain(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def check_command(matrix: Matrix, configuration: Configuration, scenario: Scenario) -> str:
    """The command that checks one cell alone."""
    table = matrix.specification.profiles[configuration.profile]
    settings: dict[str, object] = {}
    for field in dataclasses.fields(configuration):
        if table.settings(settings)[field.name] != (value := getattr(configuration, field.name)):
            settings[field.name] = value
    words = ["ackfsm check --profile", matrix.specification.profile_option(configuration.profile)]
    words += [f"--set {key}={format_value(value)}" for key, value in settings.items()]
    if matrix.plan.messages is None:
        return " ".join([*words, "--messages any"])
    words += [f"--fault {fault}" for fault in scenario.faults]
    words += [f"--max-faults {scenario.max_faults}"] if scenario.max_faults != 1 else []
    words += [f"--messages {matrix.plan.messages}"] if matrix.plan.messages > 1 else []
    return " ".join(words)


def matrix_json(matrix: Matrix, summary: Summary) -> dict[str, object]:
    """The matrix as ``docs/commands.md`` has it: its extent, its lines, and the promises that are broken."""
    plan = matrix.plan
    return {
        "profile": str(plan.configurations[0].profile),
        **({} if plan.api is None else {"api": plan.api}),
        "varied": list(plan.varied),
        "messages": "any" if plan.messages is None else plan.messages,
        "scenarios": [str(scenario) for scenario in plan.scenarios],
        "configurations": len(plan.configurations),
        "left_out": [{"count": left.count, "because": left.because} for left in plan.left_out],
        "cells": matrix.cells,
        "explored": len(matrix.outcomes),
        "complete": matrix.complete,
        "states": matrix.states,
        "transitions": matrix.transitions,
        "seconds": round(matrix.seconds, 3),
        **(_any_number_json(matrix) if plan.messages is None else {}),
        "lines": [_line_json(matrix, line) for line in summary.lines],
        "broken": [_broken_json(matrix, broken) for broken in matrix.broken],
    }


def _any_number_json(matrix: Matrix) -> dict[str, object]:
    return {
        "pairs": {
            name: matrix.pairs[of] for name, of in (("impossible", False), ("possible", True), ("undecided", None))
        },
        "undecided": [
            {
                "because": one.because,
                "names": dict(one.names),
                "configurations": one.configurations,
                **_one_of_them(matrix, one.settings, one.cell),
            }
            for one in matrix.open
        ],
    }


def _one_of_them(matrix: Matrix, settings: Mapping[str, object], cell: Cell) -> dict[str, object]:
    return {
        "settings": {key: getattr(value, "value", value) for key, value in settings.items()},
        "config": cell.configuration.as_dict(),
        "command": check_command(matrix, cell.configuration, cell.scenario),
    }


def _line_json(matrix: Matrix, line: Line) -> dict[str, object]:
    return {
        "ack_mode": line.ack_mode.value,
        "delivery_mode": line.delivery_mode.value,
        "consumption": line.consumption.value,
        "configurations": line.configurations,
        "anomalies": {anomaly.value: _entry_json(matrix, entry) for anomaly, entry in line.overall.items()},
    }


def _entry_json(matrix: Matrix, entry: Entry) -> dict[str, object]:
    configuration, scenario = entry.configuration, entry.scenario
    return {
        "happens": entry.happens.value,
        "decided_by": list(entry.decided_by),
        "faults": None if scenario is None else [fault.value for fault in scenario.faults],
        "max_faults": None if scenario is None else scenario.max_faults,
        **({} if matrix.plan.messages is not None or entry.messages is None else {"messages": entry.messages}),
        **_repetition_json(entry.repeated),
        "promise_broken": entry.broken,
        "searched": entry.searched,
        "steps": list(entry.steps),
        "command": configuration and scenario and check_command(matrix, configuration, scenario),
    }


def _broken_json(matrix: Matrix, broken: Broken) -> dict[str, object]:
    cell, promise = broken.cell, broken.promise
    return {
        "anomaly": promise.absent.value,
        "source": promise.source,
        "configurations": broken.configurations,
        **_one_of_them(matrix, broken.settings, cell),
        "faults": [fault.value for fault in cell.scenario.faults],
        "max_faults": cell.scenario.max_faults,
        "steps": list(cell.outcome.witnesses[promise.absent]),
        **_repetition_json(repeated(cell.outcome, promise.absent)),
    }
