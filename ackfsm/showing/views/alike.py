"""The page that says which modes of a system behave alike, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ackfsm.showing.views.markdown import code, page_of, rows_of
from ackfsm.surveys.matrix import ALIKE_STATES, AlikeModes
from ackfsm.tables import Specification, read_form
from ackfsm.terms import Configuration

__all__ = ["alike_page", "digest_line"]

_INTRODUCTION: Final = (
    "Of each system the acknowledgement modes and ways to consume that nobody can tell apart by what a history shows,"
    " all other settings being at their defaults. The traces of the two are compared over all events that a history can"
    " show and all faults, coming to rest counting as something seen: with one message, and with two (up to"
    f" {ALIKE_STATES:,} states), while any one fault may happen. Where not a row differs the two are one system, with"
    " any number of messages and of faults. A mode stands beside the first that it is like; one that is not here is"
    " like none."
)


def alike_page(specification: Specification, found: Mapping[str, Sequence[AlikeModes]], digest: str) -> str:
    """The page; ``found`` are the modes that are alike by profile, ``digest`` that of the rows that they come from."""
    reasons = {name: row["because"] for name, row in read_form("conditions.yaml", "conditions").data.items()}
    lines = [digest_line(digest), "", "# Modes that behave alike", "", _INTRODUCTION]
    for profile, pairs in found.items():
        lines += ["", f"## {profile}: {specification.profiles[profile].system}", ""]
        lines += _table(pairs, reasons) if pairs else ["No two modes are alike."]
    return page_of(lines)


def digest_line(digest: str) -> str:
    """Return the page's own line: it is fresh as long as the rows have this digest."""
    return f"<!-- Made from spec/ by python -m model_tests.documents, from rows with the digest {digest}. -->"


def _table(pairs: Iterable[AlikeModes], reasons: Mapping[str, str]) -> list[str]:
    rows = [(_mode(pair.second), _mode(pair.first), _extent(pair), _reason(pair, reasons)) for pair in pairs]
    return rows_of(("mode", "behaves like", "with", "because"), rows)


def _mode(mode: Configuration) -> str:
    return f"{code(mode.ack_mode)}, {mode.consumption}"


def _extent(pair: AlikeModes) -> str:
    if not pair.rows:
        return "any number of messages"
    return {True: "one and two messages", False: "one message", None: "one message; undecided with two"}[
        pair.with_two_messages
    ]


def _reason(pair: AlikeModes, reasons: Mapping[str, str]) -> str:
    shared = [f"{code(name)}: {reasons[name].strip()}" for name in pair.conditions]
    machines = ", ".join(code(name) for name in dict.fromkeys(machine for machine, _, _ in pair.rows))
    if not pair.rows:
        return "; ".join(["the same rows decide", *shared])
    if pair.with_two_messages:
        return "; ".join([*shared, f"rows differ in {machines}, and no history shows it"])
    told = pair.two_messages
    if told is None or told.only is None:
        return "; ".join([*shared, f"rows differ in {machines}"])
    only = pair.first if told.only == "left" else pair.second
    return f"rows differ in {machines}, for a second message: only {_mode(only)} can do {' → '.join(told.trace)}"
