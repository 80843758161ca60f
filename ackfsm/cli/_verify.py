"""``ackfsm verify``."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Group

from ackfsm import explore, tables
from ackfsm.cli._codes import AS_PROMISED, UNDETERMINED, VIOLATION
from ackfsm.cli._common import Commands, add_configuration, command, patience, say, settings_of
from ackfsm.cli._engine import add_engine, spark_session
from ackfsm.terms import Anomaly, Configuration, Verdict

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
    add_engine(parser)


def _verify(arguments: argparse.Namespace) -> int:
    from ackfsm.report.verify import verify_screen

    specification = tables.load()
    with _engine(arguments, specification) as examine:
        results = [_judged(arguments, specification, path, examine) for path in arguments.histories]
    answer = [result.as_json() for result in results]
    screens = [verify_screen(result, specification) for result in results]
    say(arguments, answer[0] if len(answer) == 1 else answer, lambda: Group(*screens))
    verdicts = {result.verdict for result in results}
    if Verdict.INVALID in verdicts:
        return VIOLATION
    return UNDETERMINED if Verdict.UNKNOWN in verdicts else AS_PROMISED


_Examine: TypeAlias = "Callable[[str, Configuration | None], history.Findings]"


@contextlib.contextmanager
def _engine(arguments: argparse.Namespace, specification: tables.Specification) -> Iterator[_Examine]:
    """What examines one history: this process, or Spark."""
    with spark_session(arguments) as session:
        if session is None:
            from ackfsm import history

            yield lambda path, configuration: history.examine(history.read(path), specification, configuration)
        else:
            from ackfsm import spark

            yield lambda path, configuration: spark.examine(path, specification, configuration, session)


def _judged(
    arguments: argparse.Namespace, specification: tables.Specification, path: str, examine: _Examine
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
    return history.judge(findings, allowed, why, specification.guarantees)


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
