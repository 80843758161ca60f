"""Asks the version that is imported about every history in a folder, and writes its answers as JSON.

It is run as a file, so that what it imports is of the checkout before or after a change.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from ackfsm import cli, tables, verify

_CHUNKS: Final = ("1", "3", "5")
_STORIES: Final = 12
_LINES: Final = 400
"""Of a longer answer the first lines stand beside a digest of all."""

_COST: Final = frozenset({"seconds", "share_of_time", "lives", "searches", "states", "written"})
_SAID_COST: Final = re.compile(r"^(cost|model) .*$|^ +.*of the processor time$", re.MULTILINE)

_examination = functools.partial(verify.examination)


class _Examining:
    """Stands for :func:`ackfsm.verify.examination`: folds, or not, and examines a history once for all questions."""

    def __init__(self) -> None:
        self.folded_from: int | None = None
        self._known: dict[str, Any] = {}

    def __call__(self, path: Any, specification: Any, configure: Any, **how: Any) -> Any:
        how |= {"folded_from": self.folded_from, "binned": True}
        key = f"{path} {sorted((name, str(value)) for name, value in how.items())}"
        if key not in self._known:
            self._known = {key: _examination(path, specification, configure, **how)}
        return self._known[key]


def _called(*words: str) -> dict[str, Any]:
    """What a command line says, and its exit code."""
    out, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        code = cli.main(list(words))
    said = out.getvalue()
    told: Any = said.splitlines()
    with contextlib.suppress(ValueError):
        told = _without_cost(json.loads(said))
    return {"code": code, "said": _short(told), "noted": wrong.getvalue().splitlines()}


def _without_cost(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_cost(each) for key, each in value.items() if key not in _COST}
    return [_without_cost(each) for each in value] if isinstance(value, list) else value


def _short(told: Any) -> Any:
    if not isinstance(told, list):
        return told
    told = [_SAID_COST.sub("", each) if isinstance(each, str) else each for each in told]
    if len(told) <= _LINES:
        return told
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return [*told[:_LINES], f"... {len(told)} in all", digest]


def _verified(path: Path, options: Sequence[str], *, reports: bool) -> dict[str, Any]:
    """All that ``verify`` gives."""
    folder = path.parent / "found"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    more = [f"--report={form}={folder / form}" for form in ("junit", "sarif", "github", "prometheus")]
    more += ["--html", str(folder / "html")]
    given = ["verify", str(path), *options, "--output", str(folder / "tables"), *(more if reports else [])]
    answer = {"json": _called(*given, "--json", "--all")}
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        rows = pq.ParquetFile(file).read().to_pylist() if file.suffix == ".parquet" else file.read_text().splitlines()
        answer[str(file.relative_to(folder))] = _short(rows)
    for everything in ([], ["--all"]):
        answer[" ".join(["screen", *everything])] = _called("verify", str(path), *options, *everything)
    return answer


def _explained(path: Path, options: Sequence[str], answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The stories of messages in question, and of the first others."""
    told = answer["json"]["said"]
    if not isinstance(told, dict) or "anomalies" not in told:
        return
    messages = [each for found in told["anomalies"].values() for each in found["messages"][:2]]
    held = told["conformance"] or {}
    messages += [
        each["message"] for each in (*held.get("examples", ()), *held.get("pairs", {}).get("examples", ()))[:4]
    ]
    messages += [
        row["message"] for name, rows in answer.items() if "messages" in name for row in rows[:4] if "t" in row
    ]
    yield "explain", _called("explain", str(path), *options, "--json")
    for message in list(dict.fromkeys(messages))[:_STORIES]:
        for form in ([], ["--json"]):
            yield (
                " ".join(["explain", message, *form]),
                _called("explain", str(path), *options, "--message", message, *form),
            )


def _streamed(path: Path, batches: Path) -> Any:
    """The alerts of a history that comes in the batches that are the parts of a folder, without Spark."""
    from ackfsm.cli._verify import configuration_of
    from ackfsm.terms import AckfsmError
    from ackfsm.verify.folding.chunks import chunks_of
    from ackfsm.verify.folding.monitor import State, advanced
    from ackfsm.verify.folding.passes import Asked, Folder

    specification, none = tables.load(), argparse.Namespace(profile=None, settings=[], api=None, url=None)
    state, alerts, known = State(), list[Any](), None
    try:
        for file in sorted(batches.glob("*.jsonl")):
            chunks = chunks_of(file)
            if chunks is None:
                raise ValueError(file)
            known = known or configuration_of(specification, none, verify.read_header(path), str(path))
            asked = Asked(specification=specification, configuration=known)
            load = functools.partial(_load, chunks.load)
            state, found = advanced(
                state,
                len(chunks),
                Folder(load, asked),
                map,
                delay=10**9,
                horizon=10**12,
            )
            alerts += map(dataclasses.asdict, found)
    except AckfsmError as error:
        return str(error)
    return {"alerts": _short(alerts), "events": state.events, "messages": state.messages, "told": sorted(state.told)}


def _load(load: Callable[[int], Any], place: int) -> Any:
    return dataclasses.replace(load(place - 1), place=place)


def _answers(folder: Path, examining: _Examining, *, spark: bool) -> dict[str, Any]:
    options, whole = json.loads((folder / "options.json").read_text()), folder / "whole.jsonl"
    examining.folded_from = None
    answer = {"whole": _verified(whole, options, reports=True)}
    answer["whole"] |= _explained(whole, options, answer["whole"])
    answer["--faults any"] = _verified(whole, [*options, "--faults", "any"], reports=False)
    examining.folded_from = 1
    for count in _CHUNKS:
        answer[f"{count} chunks"] = _verified(folder / count, options, reports=count == "3")
    answer["stream"] = _streamed(whole, folder / "3")
    if spark:
        engine = ["--engine", "spark", "--master", "local[1]"]
        answer["spark"] = _verified(folder / "3", [*options, *engine], reports=False)
    return answer


def main() -> None:
    """Write the answers about each history as a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    examining = _Examining()
    patched: Any = verify, tables
    patched[0].examination, patched[1].load = examining, functools.cache(tables.load)
    os.environ["COLUMNS"] = "100"
    shutil.rmtree(asked.answers, ignore_errors=True)
    asked.answers.mkdir(parents=True)
    for folder in sorted(asked.histories.iterdir(), reverse=True):  # drawn ones take the longest
        text = json.dumps(_answers(folder, examining, spark=asked.spark))
        (asked.answers / f"{folder.name}.json").write_text(text)
        sys.stderr.write(".")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
