"""Whether two versions of the project find the same in histories: what a change inside of verify must not touch.

``python -m model_tests.same_findings BEFORE AFTER`` asks two checkouts, in a process each, about every recorded and
every named history and ``--drawn`` others, of which every second one is of runs of a drawn system:

* at once: ``verify --json --all`` with tables, reports and picture, the screens, and stories of messages in question
  and of some others; and the same, without stories, with ``--faults any``;
* folded in 1, 3 and 5 chunks: the same without stories; as a stream of three batches: the alerts;
* with ``--spark``: the same in tasks of Spark.

Not compared is what an answer costs, and how many lives were met.  With ``--folder`` histories and answers stay there,
and the answers of BEFORE are believed if they are there.  Prints each answer that is another one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model_tests.same_findings.histories import write_histories

_SHOWN = 8
"""Of each history so many differences are printed."""


def _asked(checkout: Path, histories: Path, answers: Path, *, spark: bool) -> None:
    script = Path(__file__).with_name("asked.py")
    command = [sys.executable, str(script), str(histories), str(answers), *(["--spark"] if spark else [])]
    subprocess.run(command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, check=True)


def _differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """The innermost values that are not the same, each with its place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(key), after.get(key), f"{place} > {key}")
    elif isinstance(before, list) and isinstance(after, list):
        for number, (one, other) in enumerate(itertools.zip_longest(before, after)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif before != after:
        yield f"{place}\n    before: {before!s:.600}\n    after:  {after!s:.600}"


def _compared(before: Path, after: Path) -> int:
    """Print what is different; how many histories have something of it."""
    names = sorted({path.name for folder in (before, after) for path in folder.iterdir()})
    different = 0
    for name in names:
        one, other = (json.loads((folder / name).read_text()) for folder in (before, after))
        found = [*_differences(one, other)]
        different += bool(found)
        for each in found[:_SHOWN]:
            print(f"{name.removesuffix('.json')}{each}")  # noqa: T201
        if len(found) > _SHOWN:
            print(f"    and {len(found) - _SHOWN} more")  # noqa: T201
    print(f"{len(names) - different} of {len(names)} histories have the same findings")  # noqa: T201
    return different


def main() -> int:
    """Ask both; 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("--drawn", type=int, default=100, help="how many histories are drawn")
    parser.add_argument("--spark", action="store_true", help="ask Spark, too")
    parser.add_argument("--folder", type=Path, help="where histories and answers stay")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = asked.folder.absolute() if asked.folder else Path(place)
        histories = folder / "histories"
        write_histories(histories, asked.drawn)
        if not (folder / "before").is_dir():
            _asked(asked.before.resolve(), histories, folder / "before", spark=asked.spark)
        _asked(asked.after.resolve(), histories, folder / "after", spark=asked.spark)
        return bool(_compared(folder / "before", folder / "after"))


if __name__ == "__main__":
    raise SystemExit(main())
