"""What two examinations of one history have to agree on, whether it was folded or not."""

from __future__ import annotations

import dataclasses
from typing import Any

from ackfsm.verify import Findings

__all__ = ["comparable"]


def comparable(findings: Findings) -> dict[str, Any]:
    """All of ``findings`` but who found them, what that cost, and how many lives, states and pairs were met.

    Of the messages that a fold leaves out one is met for many.
    """
    explanation = findings.explanation
    if explanation is not None:
        explanation = dataclasses.replace(explanation, lives=0, states=0, searches=0, pairs=None)
    whole = {field.name: getattr(findings, field.name) for field in dataclasses.fields(findings) if field.compare}
    parts = [(part.queues, comparable(part.findings)) for part in findings.parts]
    return {**whole, "engine": None, "explanation": explanation, "anomalies": dict(findings.anomalies), "parts": parts}
