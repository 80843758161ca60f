"""Drive every broker that can be had by every client, and write what was seen to ``docs/live``: ``make live``.

One broker after the other; what cannot be had is named in the page.  The pages are made of ``docs/live/results.json``,
which ``--pages`` reads without driving anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ackfsm.driving.conform import Limits
from ackfsm.driving.live.campaign import live
from ackfsm.terms import AckfsmError

__all__ = ["main", "pages"]

_PLACE: Final = Path("docs") / "live"
_RESULTS: Final = "results.json"
_KINDS: Final = (("rabbitmq", ""), ("rabbitmq", "quorum"), ("artemis", ""), ("activemq", ""), ("broker-j", ""))
"""Each broker with its kinds of queues."""

_EXCLUDED: Final = "What the tables exclude, and the broker did. The program is the smallest that showed it."

Results = list[dict[str, Any]]


def main(words: Sequence[str] | None = None) -> int:
    """Drive the brokers, or make the pages again."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.live_bench", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="make the pages of what was seen last")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each combination (default: 12)")
    parser.add_argument("--runs", type=int, default=3, help="drawn programs of each combination (default: 3)")
    parser.add_argument("--broker", action="append", help="only this one, the others as they were seen last")
    asked = parser.parse_args(words)
    kept = _PLACE / _RESULTS
    results: Results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    if not asked.pages:
        for name, kind in _KINDS:
            if asked.broker is None or name in asked.broker:
                new = _driven(name, kind, asked.runs, asked.seconds)
                results = [each for each in results if (each["broker"], each["kind"]) != (name, kind)] + [new]
        _PLACE.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for page, text in pages(results):
        (_PLACE / page).write_text(text, encoding="utf-8")
    return 0


def _driven(name: str, kind: str, runs: int, seconds: float) -> dict[str, Any]:
    begun = time.monotonic()

    def progress(what: str, done: int, of: int) -> None:
        sys.stdout.write(f"{time.monotonic() - begun:7.0f} s  {name} {kind} {done}/{of} {what}\n")
        sys.stdout.flush()

    folder = Path(tempfile.mkdtemp(prefix=f"live-{name}-"))
    try:
        report = live(
            name,
            folder=folder,
            settings={},
            kind=kind,
            limits=Limits(runs=runs, wait=0.3, seconds=seconds),
            progress=progress,
        )
    except AckfsmError as error:
        return {"broker": name, "kind": kind, "lacks": str(error), "clients": []}
    told = report.as_json()
    del told["folder"]
    return {**told, "kind": kind, "seconds": round(time.monotonic() - begun)}


def pages(results: Results) -> Iterator[tuple[str, str]]:
    """The pages, each with its name."""
    yield "README.md", "\n".join(_seen(results)) + "\n"
    yield "coverage.md", "\n".join(_coverage(results)) + "\n"


def _seen(results: Results) -> Iterator[str]:
    yield "# What real brokers did"
    yield ""
    yield "Made by `make live` ([how](../live.md)); the numbers are in [results.json](results.json)."
    yield "[Coverage](coverage.md) has the rows."
    yield ""
    cells = [cell for result in results for client in result["clients"] for cell in client["cells"]]
    judged = Counter(cell["status"] for cell in cells if cell["status"] != "not claimed")
    yield (
        f"{sum(judged.values())} combinations of broker, client, mode, consumption and fault: "
        + ", ".join(f"{number} {status}" for status, number in sorted(judged.items()))
        + "."
    )
    yield ""
    yield "| broker | client | mode | consumption | ok | violation | unknown | programs | rows |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for result in results:
        for client in result["clients"]:
            yield _line(result, client)
    for result in results:
        if "lacks" in result:
            yield f"\n{_called(result)} was not driven: {result['lacks']}."
    yield from _deviations(
        results,
        "violation",
        "Deviations",
        _EXCLUDED,
    )
    yield from _deviations(results, "unknown", "Open", "Runs that prove nothing, and why.")


def _line(result: dict[str, Any], client: dict[str, Any]) -> str:
    its = [cell for cell in client["cells"] if cell["status"] != "not claimed"]
    counts = Counter(cell["status"] for cell in its)
    rows = client["rows"]
    performed = len(set(rows["reachable"]) & rows["certain"].keys())
    mode, consumption = its[0]["ack_mode"], its[0]["consumption"]
    told = [_called(result), client["name"], mode, consumption, counts["ok"], counts["violation"], counts["unknown"]]
    told += [sum(cell["runs"] for cell in its), f"{performed} of {len(rows['reachable'])}"]
    return f"| {' | '.join(map(str, told))} |"


def _called(result: dict[str, Any]) -> str:
    return " ".join(filter(None, (result["broker"], result.get("version", ""), result["kind"])))


def _deviations(results: Results, status: str, title: str, about: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield about
    yield ""
    found = False
    for result in results:
        for client in result["clients"]:
            for cell in client["cells"]:
                if cell["status"] == status:
                    found = True
                    failure = cell["failure"]
                    why = f"{failure['reasons'][0]} Program: {failure['small_program']}." if failure else cell["why"]
                    mode = f"{cell['ack_mode']} {cell['consumption']}, {cell['fault']}"
                    yield f"* {_called(result)}, {client['name']}, {mode}: {why}"
    if not found:
        yield "None."


def _coverage(results: Results) -> Iterator[str]:
    yield "# Rows that live brokers performed"
    yield ""
    yield "Made by `make live`. A row counts where every run of the model that explains a recorded message takes it."
    yield "*Reachable* are those of runs that application, library, broker and the faults struck can bring about."
    reachable: dict[str, set[str]] = defaultdict(set)
    certain: dict[str, Counter[str]] = defaultdict(Counter)
    by: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for result in results:
        for client in result["clients"]:
            profile, rows = client["profile"], client["rows"]
            reachable[profile] |= set(rows["reachable"])
            certain[profile].update(rows["certain"])
            for row in rows["certain"]:
                by[profile][row].add(f"{_called(result)} by {client['name']}")
    yield ""
    yield "| profile | reachable | performed | share |"
    yield "|---|---|---|---|"
    for profile, rows in sorted(reachable.items()):
        done = len(rows & certain[profile].keys())
        yield f"| {profile} | {len(rows)} | {done} | {done / len(rows):.0%} |"
    for profile, rows in sorted(reachable.items()):
        yield ""
        yield f"## {profile}"
        yield ""
        yield "| row | messages | brokers |"
        yield "|---|---|---|"
        for row in sorted(rows & certain[profile].keys()):
            yield f"| {row} | {certain[profile][row]:,} | {', '.join(sorted(by[profile][row]))} |"
        yield ""
        yield "No run has performed, so they stand on documents alone:"
        yield ""
        yield from (f"* {row}" for row in sorted(rows - certain[profile].keys()))


if __name__ == "__main__":
    sys.exit(main())
