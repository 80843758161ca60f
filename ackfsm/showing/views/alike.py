"""The page that says which modes of a system behave alike, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ackfsm.showing.views.markdown import code, page_of, rows_of
from ackfsm.surveys.matrix import ALIKE_STATES, AlikeModes
from ackfsm.tables import Specification
from ackfsm.terms import Configuration

__all__ = ["alike_page", "digest_line"]

_INTRODUCTION: Final = (
    "Acknowledgement modes and ways to consume of which no history shows a difference while any one fault may happen,"
    f" with all other settings at their defaults: with one message, and with two (up to {ALIKE_STATES:,} states). Where"
    " the same rows decide, the two modes are one system with any number of messages and of faults; `ackfsm where NAME`"
    " explains the conditions. Otherwise a run of two messages that one of them cannot do tells them apart. A mode"
    " stands beside the first that it is like. A mode that is not here is like none."
)


def alike_page(specification: Specification, found: Mapping[str, Sequence[AlikeModes]], digest: str) -> str:
    """The page; ``found`` are the modes that are alike by profile, ``digest`` that of the rows that they come from."""
    lines = [digest_line(digest), "", "# Modes that behave alike", "", _INTRODUCTION]
    for profile, pairs in found.items():
        lines += ["", f"## {profile}: {specification.profiles[profile].system}", ""]
        lines += _table(pairs) if pairs else ["No two modes are alike."]
    return page_of(lines)


def digest_line(digest: str) -> str:
    """Return the page's own line: it is fresh as long as the rows have this digest."""
    return f"<!-- Made from spec/ by python -m model_tests.documents, from rows with the digest {digest}. -->"


def _table(pairs: Iterable[AlikeModes]) -> list[str]:
    rows = [(_mode(pair.second), _mode(pair.first), _extent(pair), _reason(pair)) for pair in pairs]
    return rows_of(("mode", "behaves like", "with", "because"), rows)


def _mode(mode: Configuration) -> str:
    return f"{code(mode.ack_mode)}, {mode.consumption}"


def _extent(pair: AlikeModes) -> str:
    if not pair.rows:
        return "any number of messages"
    return {True: "one and two messages", False: "one message", None: "one message; undecided with two"}[
        pair.with_two_messages
    ]


def _reason(pair: AlikeModes) -> str:
    if not pair.rows:
        return ": ".join(filter(None, ("the same rows decide", _listed(pair.conditions))))
    machines = f"rows differ in {_listed(dict.fromkeys(machine for machine, _, _ in pair.rows))}"
    if pair.with_two_messages:
        return f"{machines}, and no history shows it"
    told = pair.two_messages
    if told is None or told.only is None:
        return machines
    only = "the other" if told.only == "left" else "this mode"
    return f"only {only}: {' → '.join(told.trace)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)
