"""Judge the history of one run, and make a failing program smaller."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ackfsm import verify
from ackfsm.driving.conform._claims import Claimed, Mode
from ackfsm.driving.conform._program import Program, smaller
from ackfsm.driving.conform._run import Performed
from ackfsm.support.closing import Closing
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import Result

__all__ = ["Judge", "Judgement", "shrunk"]

TRIALS: Final = 150
"""At most so many smaller programs are tried."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """What ``ackfsm verify`` says of one history.

    Attributes:
        verdict: of the history.
        reasons: why, in sentences.
        anomalies: those that count against the broker.
        seen: how often each of the others was, which the configuration allows.
        history: the file.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    anomalies: tuple[Anomaly, ...]
    seen: Mapping[Anomaly, int]
    history: bytes

    def like(self, other: Judgement) -> bool:
        """Whether both are violations of one kind."""
        if self.verdict is not Verdict.INVALID or other.verdict is not Verdict.INVALID:
            return False
        return bool({*self.anomalies} & {*other.anomalies}) or self.anomalies == other.anomalies


class Judge(Closing):
    """Judges histories; it has a folder for them as long as it is open."""

    def __init__(self, claimed: Claimed) -> None:
        """Judge by the configurations of ``claimed``."""
        self._claimed = claimed
        self._kept = (verify.Kept(), verify.Kept())
        self._folder = tempfile.TemporaryDirectory(prefix="ackfsm-conform-")

    def close(self) -> None:
        """Delete the folder."""
        self._folder.cleanup()

    def judge(self, performed: Performed, mode: Mode, note: str) -> Judgement:
        """Return the verdict on a performed run; ``note`` goes into the header of the history."""
        configuration = self._claimed.configurations[mode]
        history = performed.recorder.history(configuration, note)
        path = Path(self._folder.name) / "history.jsonl"
        path.write_bytes(history)
        specification = self._claimed.specification
        found = verify.examination(
            path, specification, lambda _: configuration, skew=0, tells_processed=True, kept=self._kept
        ).findings
        # What is allowed takes a search of the model, and matters only where something stands against a pass.
        result: Result = verify.judge(found, {})
        if result.verdict is not Verdict.VALID:
            result = verify.verdict(found, specification)
        seen = {each: count for each in found.anomalies if (count := result.apart(each).get(True, 0))}
        return Judgement(result.verdict, result.reasons, result.violated, seen, history)


def shrunk(program: Program, fails: Callable[[Program], bool], trials: int = TRIALS) -> tuple[Program, int]:
    """A smaller program that still ``fails``, and how many were tried: at most so many."""
    tried = 0
    while True:
        for candidate in smaller(program):
            if tried >= trials:
                return program, tried
            tried += 1
            if fails(candidate):
                program = candidate
                break
        else:
            return program, tried
