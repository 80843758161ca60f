"""Ten needs in the words of those who have them: what `ackfsm advise` is asked for each, what it answers, and why."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from model_tests.support.data import read_data
from model_tests.support.places import PROJECT

__all__ = ["PAGE", "command", "needs", "page"]

PAGE: Final = PROJECT / "docs" / "advising-examples.md"

_TOGETHER: Final = "\0"

_INTRODUCTION = """\
# Ten needs, and what to take for each

[`ackfsm advise`](advising.md) is asked for ten applications here. Each section has what the application is, the
command, the first answer and what in the vendor's own documentation gives the same advice;
[sources.yaml](../spec/sources.yaml) says what the tags of a reference mean. The options of `--set` fix what is not in
question and the bounds are small, so that each answer comes in seconds; without them more is tried, and an
answer may be another.

`model_tests/data/described_needs.yaml` has the ten, a test compares each answer, and this page is made from that file.
"""


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
    """The text of :data:`PAGE`."""
    return "\n".join([_INTRODUCTION, *(line for need in needs() for line in _section(need))])


def _section(need: Mapping[str, Any]) -> Iterator[str]:
    broken = textwrap.wrap(_line(need), 96, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    yield f"## {need['name'].capitalize()}\n"
    yield f"{need['words']}\n"
    yield "```\n$ " + " \\\n".join(broken).replace(_TOGETHER, " ") + "\n```\n"
    if "take" in need:
        yield f"Take `{need['take']}`.\n"
    else:
        yield "No configuration gives all of it. What is left:\n"
        yield "\n".join(f"- without `{name}`: `{left}`" for name, left in need["none"].items()) + "\n"
    yield f"{need['why']}\n"
    yield f"Reference: {need['reference']}.\n"


def _line(need: Mapping[str, Any]) -> str:
    """The command line, in which :data:`_TOGETHER` stands between an option and its value."""
    program, *options = command(need)
    pairs = [shlex.join(pair) for pair in zip(options[::2], options[1::2], strict=True)]
    return " ".join(["ackfsm", program, *(pair.replace(" ", _TOGETHER) for pair in pairs)])
