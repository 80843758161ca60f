"""``docs/seeds.md``: each sentence of the seed documents with what carries it; made from the tables."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from ackfsm.showing.views.markdown import code, page_of, rows_of
from ackfsm.tables import Seed, Sentence

_MADE: Final = "<!-- Made from spec/seeds.yaml by ackfsm claims --seeds: change that file, not this one. -->"

_INTRODUCTION: Final = """\
# The sentences of the seed documents

The project began with five texts of vendors. Here is each of their sentences in our own words, with its line in the
document and what carries it: the claims that prove it (`ackfsm claims --id C01`), rows of the machines, settings,
events, names, numbers and interfaces of systems (`ackfsm where WORD`, [systems](systems/README.md)), promises,
anomalies, computations of `ackfsm.support.throughput`, tests and pages. Where a sentence does not hold, a run of the
tables shows that.
"""

_KINDS: Final = {
    "claims": "proved by",
    "rows": "rows",
    "settings": "settings",
    "events": "events",
    "anomalies": "anomalies",
    "promises": "promises",
    "names": "names",
    "constants": "constants",
    "apis": "interfaces",
    "vendor_events": "events of interfaces",
    "computes": "computed by",
    "tests": "tests",
    "pages": "pages",
}
"""What each kind of carrier is called."""

_HOME: Final = "docs"
"""The folder of the page, which its links start from."""


def seeds_page(seeds: Sequence[Seed]) -> str:
    """The whole page."""
    lines = [_MADE, "", *_INTRODUCTION.splitlines()]
    for seed in seeds:
        rows = [(_lines(one), one.says, _carried(one)) for one in seed.sentences]
        lines += ["", f"## {seed.file[:3]}: {seed.title}", "", f"`{seed.file}`, {len(rows)} sentences.", ""]
        lines += rows_of(("line", "says", "carried by"), rows)
    return page_of(lines)


def _lines(one: Sentence) -> str:
    first, last = one.lines
    return str(first) if first == last else f"{first}-{last}"


def _carried(one: Sentence) -> str:
    told = [f"{name} {', '.join(_shown(kind, one))}" for kind, name in _KINDS.items() if kind in one.carriers]
    return "; ".join([*_refuted(one), *told, *([f"nothing: {one.aside}"] if one.aside else [])])


def _refuted(one: Sentence) -> Iterator[str]:
    if (found := one.refuted_by) is not None:
        settings = ", ".join(f"{key}={value}" for key, value in found.settings.items())
        run = f"{code(found.shows)} with {code(settings)}: {code(' → '.join(found.steps))}"
        yield f"**does not hold**: {found.because} ({run})"


def _shown(kind: str, one: Sentence) -> Iterator[str]:
    for carrier in one.carriers[kind]:
        if kind in {"tests", "pages"}:
            file, _, name = carrier.partition("::")
            yield f"[{name or posixpath.basename(file)}]({posixpath.relpath(file, _HOME)})"
        elif kind == "claims":
            yield f"[{carrier}](../spec/claims.yaml)"
        elif kind in {"names", "constants", "apis", "vendor_events"}:
            system, _, name = carrier.partition(" ")
            yield f"{code(name)} of {system}"
        else:
            yield code(carrier)


def seeds_json(seeds: Sequence[Seed]) -> list[dict[str, object]]:
    """The same as plain JSON values."""
    return [
        {
            "seed": seed.file,
            "title": seed.title,
            "sentences": [
                {
                    "lines": list(one.lines),
                    "says": one.says,
                    "carriers": {kind: list(names) for kind, names in one.carriers.items()},
                    "aside": one.aside or None,
                    **({"refuted_by": dataclasses.asdict(one.refuted_by)} if one.refuted_by else {}),
                }
                for one in seed.sentences
            ],
        }
        for seed in seeds
    ]
