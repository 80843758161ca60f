"""Drive every broker that can be had by every client, and write what was seen to ``docs/live``: ``make live``.

Which rows each of them performed is written to ``spec/seen.csv``, too.

Two brokers at a time; what cannot be had is named in the page.  The pages are made of ``docs/live/results.json``, which
``--pages`` reads without driving anything.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import ackfsm
from ackfsm import tables
from ackfsm.driving.conform import Limits, Report
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.driving.live.brokers import BROKERS, DURABLE, SHARED
from ackfsm.driving.live.campaign import LiveReport, live
from ackfsm.driving.live.clients.drivers import drivers
from ackfsm.driving.live.coverage import Covered
from ackfsm.driving.live.driven import OWN_ENGINE, engine_driven
from ackfsm.driving.live.led import undone
from ackfsm.history.format import Outcome
from ackfsm.tables.lookup import SEEN, RowKey, row_keys, seen_text
from ackfsm.terms import AckfsmError

__all__ = ["main", "pages", "result_of"]

_PLACE: Final = Path("docs") / "live"
_TABLES: Final = Path("spec")
_RESULTS: Final = "results.json"
_LIMITED: Final = MappingProxyType({"x-delivery-limit": "2", "x-dead-letter-exchange": ""})
_KINDS: Final[Mapping[tuple[str, str], Mapping[str, str]]] = MappingProxyType(
    {
        ("artemis", ""): {},
        ("artemis", SHARED): {},
        ("artemis", DURABLE): {},
        ("broker-j", ""): {},
        ("activemq", ""): {},
        ("activemq", DURABLE): {},
        ("rabbitmq", ""): {},
        ("rabbitmq", "quorum"): _LIMITED,
        ("rabbitmq", SHARED): {},
        (OWN_ENGINE, ""): {},
    }
)
"""Each broker with its kinds of queues, and what it is started with; those first that take long."""
_TOPICS: Final = frozenset({DURABLE, SHARED})

_EXCLUDED: Final = "What the tables exclude, and the broker did. The program is the smallest that showed it."
_ALLOWED: Final = "What the tables allow in the mode under the fault, and how often it was seen."
_ROWS: Final = (
    "*Reachable* are the rows of runs that application, library, broker and the faults struck can bring about. A row is"
    " *performed* where every run of the model that explains a recorded message takes it, *perhaps* where some does:"
    " outside a broker one cannot see whether the kill came before the write. The others stand on *documents* alone."
)
_COLUMNS: Final = (
    "One column for each mode: the messages that performed the row; `?` where some perhaps did; 0 where none did; empty"
    " where the row is not reachable."
)

_BOUNDS: Final = ("runs", "messages", "seed", "seconds")

Results = list[dict[str, Any]]
_Rows = dict[str, dict[str, Sequence[int]]]
"""For each row and mode the messages that performed the row for certain, and those that did perhaps."""


def main(words: Sequence[str] | None = None) -> int:
    """Drive the brokers, or make the pages again."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.live_bench", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="make the pages of what was seen last")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each combination, half for topics (default: 3)")
    parser.add_argument("--runs", type=int, default=2, help="drawn programs of each combination (default: 2)")
    parser.add_argument("--jobs", type=int, default=2, help="brokers at a time (default: 2)")
    parser.add_argument("--broker", action="append", help="only NAME, or NAME:KIND; the others as they were seen last")
    asked = parser.parse_args(words)
    kept = _PLACE / _RESULTS
    results: Results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    if not asked.pages:
        wanted = [each for each in _KINDS if asked.broker is None or {each[0], ":".join(each)} & {*asked.broker}]
        _PLACE.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
            told = [
                pool.submit(_driven, *each, dict(_KINDS[each]), asked.runs, asked.seconds / (1 + (each[1] in _TOPICS)))
                for each in wanted
            ]
            for each in as_completed(told):
                new = each.result()
                results = [one for one in results if _called(one) != _called(new)] + [new]
                results.sort(key=_called)
                kept.write_text(json.dumps(results, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")
    for page, text in pages(results):
        (_PLACE / page).write_text(text, encoding="utf-8")
    (_TABLES / SEEN).write_text(seen_text(_performers(results)), encoding="utf-8")
    return 0


def _performers(results: Results) -> Iterator[tuple[RowKey, list[str]]]:
    """Yield the rows of today's tables that brokers performed for certain, with these brokers."""
    performed = defaultdict[str, set[str]](set)
    for result in (each for each in results if each["broker"] != OWN_ENGINE):  # it runs by these rows
        for rows in result["rows"].values():
            for row, modes in rows.items():
                if any(certain for certain, _ in modes.values()):
                    performed[row].add(_called(result))
    for machine in tables.load().machines.values():
        yield from ((key, sorted(performed[str(key)])) for key in row_keys(machine) if str(key) in performed)


def _driven(name: str, kind: str, settings: Mapping[str, str], runs: int, seconds: float) -> dict[str, Any]:
    begun = time.monotonic()

    def progress(what: str, done: int, of: int) -> None:
        sys.stdout.write(f"{time.monotonic() - begun:7.0f} s  {name} {kind} {done}/{of} {what}\n")
        sys.stdout.flush()

    folder = Path(tempfile.mkdtemp(prefix=f"live-{name}-"))
    limits = Limits(runs=runs, wait=0.3, seconds=seconds)
    try:
        if name == OWN_ENGINE:
            report = _own_engine(folder, limits, progress)
        else:
            report = live(name, folder=folder, settings=settings, kind=kind, limits=limits, progress=progress)
    except AckfsmError as error:
        return {"broker": name, "kind": kind, "lacks": str(error), "clients": [], "rows": {}}
    return {**result_of(report), "kind": kind, "settings": settings, "seconds": round(time.monotonic() - begun)}


def _own_engine(folder: Path, limits: Limits, progress: Callable[[str, int, int], None]) -> LiveReport:
    """The embedded broker, in every mode that JMS has; all faults strike it in this process."""
    claims, reports, covered = EngineAdapter().claims(), list[Report](), list[Covered]()
    cells = [*itertools.product(claims.ack_modes, claims.consumptions)]
    for number, (mode, consumption) in enumerate(cells):
        what = f"{mode} {consumption}"
        tell = functools.partial(_told, progress, what, number, len(cells))
        driven = engine_driven(claims.profile, mode, consumption, folder / what)
        reports.append(driven.report(None, limits, tell))
        covered.append(driven.covered())
    return LiveReport(
        broker=OWN_ENGINE,
        version=ackfsm.__version__,
        reports=tuple(reports),
        covered=tuple(covered),
        lacking={},
        folder=folder,
    )


def _told(progress: Callable[[str, int, int], None], what: str, done: int, of: int, cell: str) -> None:
    progress(f"{what} {cell}", done, of)


def result_of(report: LiveReport) -> dict[str, Any]:
    """Return what is kept of a report, as plain JSON values."""
    told = report.as_json()
    del told["folder"]
    rows = _rows_of(told["clients"])
    for client in told["clients"]:
        certain, reachable = client["rows"]["certain"], client["rows"]["reachable"]
        client["performed"] = [len(certain.keys() & {*reachable}), len(reachable)]
        del client["rows"], client["settings"]
        client["cells"] = [cell for cell in client["cells"] if cell["status"] != "not claimed"]
        for failure in filter(None, (cell["failure"] for cell in client["cells"])):
            del failure["history"], failure["small"]  # paths of this machine
    return {**told, "kind": "", "rows": rows}


def _rows_of(clients: Iterable[Mapping[str, Any]]) -> dict[str, _Rows]:
    """For each profile the rows that are reachable, with the messages that performed them."""
    found: dict[str, _Rows] = {}
    for client in clients:
        told, rows = client["rows"], found.setdefault(client["profile"], {})
        for row in told["reachable"]:
            _add(rows, row, _mode(client), [told["certain"].get(row, 0), told["possible"].get(row, 0)])
    return found


def _add(rows: _Rows, row: str, mode: str, counts: Sequence[int]) -> None:
    its = rows.setdefault(row, {})
    its[mode] = [known + count for known, count in zip(its.get(mode, (0, 0)), counts, strict=True)]


def _mode(client: Mapping[str, Any]) -> str:
    cell = client["cells"][0]
    return f"{cell['ack_mode']} {cell['consumption']}"


def pages(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the pages, each with its name."""
    yield "README.md", "\n".join(_seen(results)) + "\n"
    rows: dict[str, _Rows] = defaultdict(dict)
    for result in results:
        for profile, its in result["rows"].items():
            for row, modes in its.items():
                for mode, counts in modes.items():
                    _add(rows[profile], row, mode, counts)
    yield "coverage.md", "\n".join(_coverage(rows)) + "\n"
    for profile, its in rows.items():
        yield f"{profile}.csv", "\n".join(_table(its)) + "\n"


def _seen(results: Results) -> Iterator[str]:
    yield "# What real brokers did"
    yield ""
    yield "Made by `make live` ([how](../live.md)) of [results.json](results.json)."
    yield "[Coverage](coverage.md) has the rows."
    yield ""
    cells = [cell for result in results for client in result["clients"] for cell in client["cells"]]
    judged = Counter(cell["status"] for cell in cells)
    yield (
        f"{sum(judged.values())} combinations of broker, client, mode, consumption and fault: "
        + ", ".join(f"{number} {status}" for status, number in sorted(judged.items()))
        + f"; {sum(cell['runs'] for cell in cells):,} programs."
    )
    bounds = {tuple(client["limits"][name] for name in _BOUNDS) for result in results for client in result["clients"]}
    for runs, messages, seed, seconds in sorted(bounds):
        yield (
            f"Each: the programs of the tour, then {runs} drawn of {messages} messages (seed {seed}), so far as they"
            f" begin within {seconds:g} s; up to four until something is seen."
            " Clients may have been driven at several times."
        )
    for result in results:
        if settings := result.get("settings"):
            told = ", ".join(f"{name}={value}" for name, value in settings.items())
            yield f"{_called(result)} has the settings {told}."
    yield ""
    yield "| broker | client | mode | ok | violation | unknown | programs | rows |"
    yield "|---|---|---|---|---|---|---|---|"
    for result in results:
        for client in result["clients"]:
            yield _line(result, client)
    yield from _not_driven(results)
    for result in results:
        if "lacks" in result:
            yield f"\n{_called(result)} was not driven: {result['lacks']}."
    yield from _deviations(results, "violation", "Deviations", _EXCLUDED)
    yield from _allowed(results)
    yield from _deviations(results, "unknown", "Open", "Runs that prove nothing, and why.")


def _not_driven(results: Results) -> Iterator[str]:
    """Yield a sentence on the clients of each broker that no result is of."""
    seen = {(each["broker"], each["kind"], client["name"]) for each in results for client in each["clients"]}
    left = {
        " ".join(filter(None, (name, kind))): clients
        for name, kind in _KINDS
        if (
            clients := [
                each.client
                for each in (drivers(name) if name in BROKERS else ())
                if each.has(kind) and (name, kind, each.client) not in seen
            ]
        )
    }
    if left:
        told = "; ".join(f"{name} by {', '.join(clients)}" for name, clients in left.items())
        yield f"\nNot driven here so far: {told}."


def _line(result: dict[str, Any], client: dict[str, Any]) -> str:
    counts = Counter(cell["status"] for cell in client["cells"])
    performed, of = client["performed"]
    told = [_called(result), client["name"], _mode(client), counts["ok"], counts["violation"], counts["unknown"]]
    told += [sum(cell["runs"] for cell in client["cells"]), f"{performed} of {of}"]
    return f"| {' | '.join(map(str, told))} |"


def _called(result: dict[str, Any]) -> str:
    return " ".join(filter(None, (result["broker"], result.get("version", ""), result["kind"])))


def _deviations(results: Results, status: str, title: str, about: str) -> Iterator[str]:
    yield from ("", f"## {title}", "", about, "")
    found = False
    for result in results:
        for client in result["clients"]:
            for cell in client["cells"]:
                if cell["status"] == status:
                    found = True
                    failure = cell["failure"]
                    why = f"{failure['reasons'][0]} Program: {failure['small_program']}." if failure else cell["why"]
                    yield f"* {_called(result)}, {client['name']}, {_mode(client)}, {cell['fault']}: {why}"
    if not found:
        yield "None."


def _allowed(results: Results) -> Iterator[str]:
    """Yield a table of what was seen, of all clients of one profile together."""
    yield from ("", "## Allowed, and seen", "", _ALLOWED, "", "| broker | profile | mode | fault | seen |")
    yield "|---|---|---|---|---|"
    seen: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for result in results:
        for client in result["clients"]:
            for cell in client["cells"]:
                seen[_called(result), client["profile"], _mode(client), cell["fault"]].update(cell["seen"])
    for key, counts in seen.items():
        if counts:
            yield f"| {' | '.join(key)} | {', '.join(f'{count} {name}' for name, count in sorted(counts.items()))} |"


def _coverage(rows: Mapping[str, _Rows]) -> Iterator[str]:
    yield "# Rows that live brokers performed"
    yield ""
    yield f"Made by `make live`. {_ROWS}"
    never = sorted(undone(tables.load(), tuple(Outcome), recovers=True, cancels=True))
    yield f"Not counted are rows of what no adapter brings about: {', '.join(never)}."
    yield ""
    yield "| profile | reachable | performed | perhaps | by documents alone | by mode |"
    yield "|---|---|---|---|---|---|"
    left: dict[str, list[str]] = {}
    for profile, its in sorted(rows.items()):
        certain, possible = (
            {row for row, modes in its.items() if any(count[at] for count in modes.values())} for at in (0, 1)
        )
        left[profile] = sorted(its.keys() - possible)
        shares = (f"{len(some)} ({len(some) / len(its):.0%})" for some in (certain, possible - certain, left[profile]))
        yield f"| {profile} | {len(its)} | {' | '.join(shares)} | [{profile}.csv]({profile}.csv) |"
    yield ""
    yield _COLUMNS
    for profile, own in left.items():
        yield from ("", f"## {profile}", "", "No run performed, so they stand on documents alone:", "")
        yield from (f"* {row}" for row in own)


def _table(rows: _Rows) -> Iterator[str]:
    modes = sorted({mode for its in rows.values() for mode in its})
    yield ",".join(["row", *modes])
    for row, its in sorted(rows.items()):
        yield ",".join([f'"{row}"', *(_cell(*its.get(mode, ())) for mode in modes)])


def _cell(certain: int | None = None, possible: int = 0) -> str:
    return "" if certain is None else str(certain) if certain or not possible else "?"


if __name__ == "__main__":
    sys.exit(main())
