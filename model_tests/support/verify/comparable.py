"""What two examinations of one history have to agree on, whether it was folded or not."""

from __future__ import annotations

import dataclasses
from typing import Any

from ackfsm.verify import Explanation, Findings


def comparable(findings: Findings) -> dict[str, Any]:
    """All of ``findings`` but who found them, what that cost, and how many lives, states and pairs were met.

    Of the messages that a fold leaves out one is met for many, and few of their pairs.
    """
    whole = {field.name: getattr(findings, field.name) for field in dataclasses.fields(findings) if field.compare}
    parts = [(part.queues, comparable(part.findings)) for part in findings.parts]
    explanation = _decided(findings.explanation)
    return {**whole, "engine": None, "explanation": explanation, "anomalies": dict(findings.anomalies), "parts": parts}


def _decided(explanation: Explanation | None) -> Explanation | None:
    """What was decided; of pairs only of which it was that they are no run of the model."""
    if explanation is None:
        return None
    pairs = _decided(explanation.pairs)
    if pairs is not None:
        pairs = dataclasses.replace(pairs, messages=0, undecided={})
    return dataclasses.replace(explanation, lives=0, states=0, searches=0, pairs=pairs)
