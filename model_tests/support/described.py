"""Ten needs in the words of those who have them: what `ackfsm advise` is asked for each, what it answers, and why."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from ackfsm.showing.views.markdown import code, page_of, rows_of
from model_tests.support.data import read_data
from model_tests.support.places import PROJECT

PAGE: Final = PROJECT / "docs" / "advising.md"

_TABLE: Final = re.compile(r"(<!-- made from model_tests/data/described_needs\.yaml [^\n]+ -->\n\n)(?:\|[^\n]*\n)+")


def needs() -> list[dict[str, Any]]:
    """The rows of ``described_needs.yaml``."""
    rows: list[dict[str, Any]] = read_data("described_needs.yaml")
    return rows


def command(need: Mapping[str, Any]) -> list[str]:
    """The words of the command line, from the subcommand on."""
    words = ["advise", "--profile", need["profile"], "--need", ",".join(need["needs"])]
    for key, value in need["set"].items():
        words += ["--set", f"{key}={json.dumps(value) if isinstance(value, bool) else value}"]
    for option, value in need["options"].items():
        for each in value if isinstance(value, list) else [value]:
            words += [f"--{option}", str(each)]
    return words


def page() -> str:
    """The text of :data:`PAGE`, with the table of the needs as they are now."""
    table = page_of(rows_of(("application", "asked", "take"), [_row(need) for need in needs()]))
    return _TABLE.sub(lambda found: f"{found[1]}{table}", PAGE.read_text(encoding="utf-8"))


def _row(need: Mapping[str, Any]) -> tuple[str, str, str]:
    left = "; ".join(f"without {code(name)}: {code(taken)}" for name, taken in need.get("none", {}).items())
    take = code(need["take"]) if "take" in need else f"none gives all; {left}"
    asked = code(shlex.join(command(need)[1:5]))
    return f"{need['name']}: {need['words']}", asked, take
