"""``ackfsm conform``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Command, Option, at_least
from ackfsm.cli._output import emit, note, progress_bars
from ackfsm.terms import AckMode, Fault, InputError, Verdict
from ackfsm.text import meant, quoted

if TYPE_CHECKING:
    from ackfsm.driving.conform import Report

_NONE: Final = "none"
_MOST_SECONDS: Final = 3_600.0


def seconds(text: str) -> float:
    """Return the number of seconds that an option says."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number of seconds, at most {_MOST_SECONDS:g}")
    return value


def program_options(*, runs: int, also: str = "") -> tuple[Option, ...]:
    """How many programs of what size are drawn, and for which modes and faults (``also``: what else strikes)."""
    return (
        Option("--runs N", "programs for each mode and fault (default: %(default)s)", at_least(1), runs),
        Option("--messages N", "messages that a program sends (default: 6)", at_least(1), 6),
        Option("--seed N", "of the programs (default: 0)", at_least(0), 0),
        Option("--wait SECONDS", "how long a receive waits for a message (default: 0.2)", seconds, 0.2),
        Option("--ack-mode M", "only this acknowledgement mode; may be repeated", action="append"),
        Option("--fault F", f"only this fault{also}, or {_NONE} for no fault; may be repeated", action="append"),
    )


_Word = TypeVar("_Word", bound=StrEnum)


def words(option: str, kind: type[_Word], values: Iterable[str], others: Iterable[str] = ()) -> list[_Word]:
    """Return the members of ``kind`` that an option names, without the ``others`` that it takes too.

    Raises :class:`InputError` for a word that is none.
    """
    known = [*kind, *others]
    for value in values:
        if value not in known:
            raise InputError(
                f"{option}: there is no {quoted(value)}{meant(value, known)}; it is one of {', '.join(known)}"
            )
    return [kind(value) for value in values if value in set(kind)]


def limits_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the limits of a campaign by name."""
    return {name: getattr(arguments, name) for name in ("runs", "messages", "seed", "wait")}


def modes_of(arguments: argparse.Namespace) -> list[AckMode] | None:
    """Return the acknowledgement modes that are asked for, ``None`` for all."""
    return None if arguments.ack_mode is None else words("--ack-mode", AckMode, arguments.ack_mode)


def faults_of(arguments: argparse.Namespace, others: Iterable[str] = ()) -> list[Fault | None] | None:
    """Return the faults that are asked for, ``None`` among them for none, ``None`` for all, without the ``others``."""
    if arguments.fault is None:
        return None
    named = words("--fault", Fault, arguments.fault, (_NONE, *others))
    return [*([None] if _NONE in arguments.fault else []), *named]


def _conform(arguments: argparse.Namespace) -> int:
    from ackfsm.driving import conform
    from ackfsm.driving.conform.screen import conform_screen

    limits = conform.Limits(**limits_of(arguments), timeout=arguments.timeout)
    modes, faults = modes_of(arguments), faults_of(arguments)
    with conform.Command(arguments.argv, timeout=arguments.timeout) as adapter, progress_bars() as progress:
        report = conform.conform(
            adapter,
            limits=limits,
            ack_modes=modes,
            faults=faults,
            output=arguments.output,
            progress=lambda _, done, of: progress("modes and faults", done, of),
        )
    if report.stopped is not None and not any(cell.runs for cell in report.cells):
        raise report.stopped
    emit(arguments, report.as_json(), lambda: conform_screen(report))
    return _code(report)


def _code(report: Report) -> int:
    """Return the exit code: a violation outweighs an early end, which outweighs open cells."""
    invalid = report.verdict is Verdict.INVALID
    if report.stopped is not None and not invalid:
        raise report.stopped
    if report.stopped is not None:
        note(f"ackfsm conform: {report.stopped}")
    return result_code(violated=invalid, undetermined=report.verdict is Verdict.UNKNOWN)


COMMAND: Final = Command(
    "conform",
    _conform,
    "drive a broker through every mode that it claims under every fault that it can take, and judge it",
    "ackfsm conform --runs 20 -- python my_adapter.py",
    "all",
    (
        Option(
            "COMMAND",
            "what drives the broker, after --: it answers requests, a line of JSON each (docs/conform.md)",
            dest="argv",
            nargs="+",
        ),
        *program_options(runs=10),
        Option("--timeout SECONDS", "how long COMMAND may take for an answer (default: 10)", seconds, 10.0),
        Option(
            "--output DIR",
            "where the histories of violations are kept (default: conform-failures)",
            Path,
            Path("conform-failures"),
        ),
    ),
)
