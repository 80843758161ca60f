"""What ``verify`` says of many runs in one history, run by run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from ackfsm import verify
from ackfsm.terms import Anomaly, Configuration
from model_tests.histories.composite import run_of
from model_tests.support.tables import shipped

__all__ = ["Judged", "judged"]


@dataclasses.dataclass(frozen=True)
class Judged:
    """What ``verify`` says of a history: the runs that it accuses, each with why, and its verdict, which may be open.

    Run -1 stands for all of them.
    """

    accused: Mapping[int, str]
    result: verify.Result

    @property
    def doubts(self) -> bool:
        """Whether some anomaly may be of the recording, which leaves it open."""
        return any(finding.doubt for finding in self.result.findings.anomalies.values())


def judged(file: Path, configuration: Configuration, *, drained: bool = True) -> Judged:
    """Examine the history in ``file``, recorded from such a system; counts may be open unless all is ``drained``."""
    findings = verify.examine(verify.read(file), shipped(), configuration, tells_processed=True)
    result = verify.verdict(findings, shipped())
    return Judged(dict(_accused(findings, result, drained=drained)), result)


def _accused(findings: verify.Findings, result: verify.Result, *, drained: bool) -> Iterator[tuple[int, str]]:
    for anomaly, finding in findings.anomalies.items():
        if finding.found and result.allowed[anomaly] is False:
            for name in finding.unexplained_examples or finding.examples:
                yield run_of(name), f"{anomaly} of {name}"
        if drained and finding.count is None and anomaly is not Anomaly.STUCK:
            yield -1, f"{anomaly} unknown: {finding.unknown}"
    if findings.explanation is not None:
        pairs = findings.explanation.pairs
        for each in (*findings.explanation.examples, *(pairs.examples if pairs else ())):
            yield run_of(each.message), str(each)
