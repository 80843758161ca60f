"""``ackfsm verify``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Group

from ackfsm import explore, tables
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    USAGE,
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
from ackfsm.text import shown

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
        "histories",
        metavar="HISTORY",
        nargs="+",
        help="JSONL (also gzipped), Parquet, a folder of parts, or - (standard input)",
    )
    add_engine(parser)


def _verify(arguments: argparse.Namespace) -> int:
    from ackfsm.report.verify import verify_screen

    specification = tables.load()
    settings_of(arguments)
    with _engine(arguments, specification) as examine:
        answers = [_answer(arguments, specification, path, examine) for path in arguments.histories]
    results = [each for each in answers if not isinstance(each, InputError)]
    refused = [str(each) for each in answers if isinstance(each, InputError)]
    answer = [_as_json(path, each) for path, each in zip(arguments.histories, answers, strict=True)]
    screens = [verify_screen(result, specification) for result in results]
    say(arguments, answer[0] if len(answer) == 1 else answer, lambda: Group(*screens))
    for error in dict.fromkeys(refused):
        print(f"ackfsm verify: {error}", file=sys.stderr)
    verdicts = {result.verdict for result in results}
    if Verdict.INVALID in verdicts:
        return VIOLATION
    if refused:
        return USAGE
    return UNDETERMINED if Verdict.UNKNOWN in verdicts else AS_PROMISED


def _answer(
    arguments: argparse.Namespace, specification: tables.Specification, path: str, examine: _Examine
) -> history.Result | InputError:
    """The verdict on one history, or why there is none: a bad one of several does not hide the others' answers."""
    try:
        return _judged(arguments, specification, path, examine)
    except InputError as error:
        if len(arguments.histories) == 1:
            raise
        return error


def _as_json(path: str, answer: history.Result | InputError) -> dict[str, Any]:
    return {"history": path, "error": str(answer)} if isinstance(answer, InputError) else answer.as_json()


_Configure: TypeAlias = "Callable[[history.Header | None], Configuration | None]"
_Examine: TypeAlias = "Callable[[str, _Configure], history.Findings]"


@contextlib.contextmanager
def _engine(arguments: argparse.Namespace, specification: tables.Specification) -> Iterator[_Examine]:
    """What examines one history: this process, or Spark."""
    from ackfsm import history

    with spark_session(arguments) as session:
        if session is None:
            yield functools.partial(_examine_here, specification)
        else:
            from ackfsm import spark

            yield lambda path, configure: spark.examine(
                path, specification, configure(history.read_header(path)), session
            )


def _examine_here(specification: tables.Specification, path: str, configure: _Configure) -> history.Findings:
    from ackfsm import history

    recorded = history.read(path)
    return history.examine(recorded, specification, configure(recorded.header))


def _judged(
    arguments: argparse.Namespace, specification: tables.Specification, path: str, examine: _Examine
) -> history.Result:
    from ackfsm import history

    with patience("reading"):
        findings = examine(path, lambda header: _configuration(specification, arguments, header, path))
    configuration = findings.configuration
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
    return history.judge(findings, allowed, why, specification.guarantees)


def _configuration(
    specification: tables.Specification, arguments: argparse.Namespace, header: history.Header | None, path: str
) -> Configuration | None:
    """The configuration of a history: its header's, with ``--profile`` and ``--set`` over it; ``None`` without any."""
    recorded, given = (header and header.config) or {}, settings_of(arguments)
    if not recorded and not given and arguments.profile is None:
        return None
    profile = arguments.profile or {**recorded, **given}.get("profile")
    try:
        over = specification.in_vocabulary(profile, given)
        return specification.configure(None, specification.in_vocabulary(profile, recorded) | over)
    except InputError as error:
        if not recorded:
            raise
        over_it = " with --profile and --set over it" if given or arguments.profile else ""
        raise InputError(f"{shown(path)}, its header{over_it}: {error}") from None
