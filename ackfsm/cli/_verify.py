"""``ackfsm verify``."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Group

from ackfsm import explore, tables, timing
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    VIOLATION,
    Commands,
    add_configuration,
    command,
    patience,
    say,
    settings_of,
)
from ackfsm.cli._engine import add_engine, spark_session
from ackfsm.terms import Anomaly, Configuration, InputError, Verdict
from ackfsm.text import quoted

if TYPE_CHECKING:
    from ackfsm import history

__all__ = ["add_verify"]


def add_verify(commands: Commands) -> None:
    parser = command(
        commands,
        "verify",
        _verify,
        words=(
            "count what went wrong in recorded histories, and say whether it was allowed",
            "ackfsm verify --engine spark --master 'local[2]' last-night.jsonl.gz",
        ),
        extra="all",
    )
    add_configuration(parser)
    parser.add_argument(
        "histories", metavar="HISTORY", nargs="+", help="JSONL, .jsonl.gz, Parquet, or a folder of parts"
    )
    parser.add_argument(
        "--never",
        metavar="ANOMALY,...",
        action="append",
        default=[],
        help="exit 1 if one of these is found, whether it is allowed or not: loss,unprocessed; may be repeated",
    )
    parser.add_argument(
        "--skew",
        metavar="DURATION",
        default="0",
        help="by how much the clocks of two processes may differ: 100us, 2ms, 1s (default: 0)",
    )
    add_engine(parser)


def _verify(arguments: argparse.Namespace) -> int:
    from ackfsm.report.verify import verify_screen

    specification = tables.load()
    never, skew = _never(arguments.never, specification), _skew(arguments.skew)
    with _engine(arguments, specification, skew) as examine:
        results = [_judged(arguments, specification, path, examine, never) for path in arguments.histories]
    answer = [result.as_json() for result in results]
    screens = [verify_screen(result, specification) for result in results]
    say(arguments, answer[0] if len(answer) == 1 else answer, lambda: Group(*screens))
    verdicts = {result.verdict for result in results}
    found = {found for result in results for found in result.never.values()}
    if Verdict.INVALID in verdicts or True in found:
        return VIOLATION
    return UNDETERMINED if Verdict.UNKNOWN in verdicts or None in found else AS_PROMISED


_MOST_SKEW = 10**9
"""Seconds; more than any clock is wrong, and few enough for nanoseconds of 64 bits."""


def _never(options: Sequence[str], specification: tables.Specification) -> tuple[Anomaly, ...]:
    """The anomalies that ``--never`` names, each once.  Raises :class:`InputError` for what no history can show."""
    if not options:
        return ()
    from ackfsm import history

    names = [name.strip() for option in options for name in option.split(",")]
    shown = history.shown_anomalies(specification)
    for name in names:
        if name not in shown:
            told = f"a history does not show {name}" if name in set(Anomaly) else f"there is no anomaly {quoted(name)}"
            raise InputError(f"--never: {told}; it is one of {', '.join(shown)}")
    return tuple(dict.fromkeys(map(Anomaly, names)))


def _skew(text: str) -> int:
    """``--skew`` in nanoseconds.  Raises :class:`InputError` for what is no duration."""
    if text.strip() == "0":
        return 0
    try:
        seconds = timing.parse_duration(text)
    except InputError as error:
        raise InputError(f"--skew: {error}") from None
    if seconds > _MOST_SKEW:
        raise InputError(f"--skew is at most {_MOST_SKEW}s; correct the clocks of the history instead")
    return int(seconds * 10**9)


_Examine: TypeAlias = "Callable[[str, Configuration | None], history.Findings]"


@contextlib.contextmanager
def _engine(arguments: argparse.Namespace, specification: tables.Specification, skew: int) -> Iterator[_Examine]:
    """What examines one history: this process, or Spark."""
    with spark_session(arguments) as session:
        if session is None:
            from ackfsm import history

            yield lambda path, configuration: history.examine(
                history.read(path), specification, configuration, skew=skew
            )
        else:
            from ackfsm import spark

            yield lambda path, configuration: spark.examine(path, specification, configuration, session, skew=skew)


def _judged(
    arguments: argparse.Namespace,
    specification: tables.Specification,
    path: str,
    examine: _Examine,
    never: Sequence[Anomaly],
) -> history.Result:
    from ackfsm import history

    configuration = _configuration(specification, arguments, history.read_header(path))
    with patience("reading"):
        findings = examine(path, configuration)
    allowed: dict[Anomaly, bool | None] = {}
    why: dict[Anomaly, str | None] = {}
    if configuration is not None:
        with patience("states found") as progress:
            allowed = explore.allowed(
                specification,
                configuration,
                findings.faults,
                actions=findings.actions,
                found=[anomaly for anomaly, finding in findings.anomalies.items() if finding.found],
                progress=progress,
            )
            why = {anomaly: explore.why_undecided(specification, configuration, anomaly) for anomaly in Anomaly}
    return history.judge(findings, allowed, why, specification.guarantees, never)


def _configuration(
    specification: tables.Specification, arguments: argparse.Namespace, header: history.Header | None
) -> Configuration | None:
    """The configuration of a history: its header's, with ``--profile`` and ``--set`` over it; ``None`` without any."""
    recorded, given = (header and header.config) or {}, settings_of(arguments)
    if not recorded and not given and arguments.profile is None:
        return None
    profile = arguments.profile or {**recorded, **given}.get("profile")
    over = specification.in_vocabulary(profile, given)
    return specification.configure(None, specification.in_vocabulary(profile, recorded) | over)
