"""How fast traces are imported: rows of history a second, beside decoding their JSON alone.

Run ``python -m model_tests.benchmarks.otlp`` (``--help`` tells more).  A message has three spans (send, process,
settle) with seven attributes each, 744 bytes a span, 384 of them a line; they become five events, which are checked
and written as Parquet.  Times are those of the processor, the best and the median of some runs; all sides run in turns,
in one process and one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ackfsm.history.importing import Options, Problems, format_named
from ackfsm.history.importing.otlp_json import spans_of
from ackfsm.history.importing.write import import_history

__all__ = ["main"]

_BLOCK: Final = 128
"""Messages a line."""

_EVENTS: Final = 5
"""Of each message."""

_BEGIN: Final = 1_772_366_400_000_000_000


def _span(number: int, name: str, operation: str, kind: int, **fields: Any) -> dict[str, Any]:
    texts = {
        "messaging.system": "rabbitmq",
        "messaging.operation.type": operation,
        "messaging.operation.name": name,
        "messaging.destination.name": "orders",
        "messaging.message.id": f"order-{number}",
        "messaging.client.id": f"client-{number % 4}",
    }
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]
    attributes.append({"key": "messaging.rabbitmq.message.delivery_tag", "value": {"intValue": str(number)}})
    return {
        "traceId": f"{number * 7919:032x}",
        "spanId": f"{number * 8 + kind:016x}",
        "parentSpanId": "",
        "flags": 257,
        "name": f"{name} orders",
        "kind": kind,
        "startTimeUnixNano": str(_BEGIN + number * 1_000_003 + kind * 100_000),
        "endTimeUnixNano": str(_BEGIN + number * 1_000_003 + kind * 100_000 + 50_000),
        "attributes": attributes,
        "status": {},
        **fields,
    }


def _lines(messages: int) -> Iterator[str]:
    resource = {"attributes": [{"key": "service.instance.id", "value": {"stringValue": "shop-1"}}]}
    for begin in range(0, messages, _BLOCK):
        spans = []
        for number in range(begin, min(begin + _BLOCK, messages)):
            send = _span(number, "publish", "send", 4)
            links = [{"traceId": send["traceId"], "spanId": send["spanId"]}]
            spans += [
                send,
                _span(number, "consume", "process", 5, links=links),
                _span(number, "ack", "settle", 3, links=links),
            ]
        scopes = [{"scope": {"name": "shop"}, "spans": spans}]
        yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}, separators=(",", ":"))


def _decode(path: Path) -> int:
    spans = 0
    with path.open("rb") as lines:
        for line in lines:
            spans += sum(len(found) for _, found in spans_of(line, print) or ())
    return spans


def _import(path: Path) -> int:
    problems = Problems()
    rows = sum(map(len, format_named("otlp").importer(Options()).batches([path], problems)))
    assert not problems.count
    return rows


def _write(path: Path) -> int:
    found = import_history(format_named("otlp").importer(Options()), [path], path.with_name("history.parquet"), {})
    assert not found.unread
    return sum(found.events.values())


def _seconds(run: Callable[[Path], int], path: Path, expected: int) -> float:
    begin = time.process_time()
    assert run(path) == expected
    return time.process_time() - begin


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000, help="messages of the trace (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (default: %(default)s)")
    arguments = parser.parse_args(argv)
    messages = arguments.messages
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _lines(messages))
        spans, rows = messages * 3, messages * _EVENTS
        sides = {"decoded alone": (_decode, spans), "events": (_import, rows), "history written": (_write, rows)}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(arguments.runs):
            for name, (run, expected) in sides.items():
                seconds[name].append(_seconds(run, path, expected))
                sys.stderr.write(f"  {name}: {seconds[name][-1]:.2f} s\n")
        megabytes = path.stat().st_size / 1e6
    print("| OTLP JSON | | spans a second | rows of history a second | MB a second |\n|---|---|---:|---:|---:|")  # noqa: T201
    for name, each in seconds.items():
        for which, took in (("best", min(each)), ("median", statistics.median(each))):
            told = f"{rows / took:,.0f}" if sides[name][1] == rows else ""
            print(f"| {name} | {which} | {spans / took:,.0f} | {told} | {megabytes / took:,.0f} |")  # noqa: T201


if __name__ == "__main__":
    main()
