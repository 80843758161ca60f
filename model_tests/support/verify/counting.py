"""Findings as they were counted, without what the model says of each message."""

from __future__ import annotations

import dataclasses

from ackfsm.verify import Findings


def as_counted(findings: Findings) -> Findings:
    """``findings`` that were held to no model, so that what a kind is allowed decides."""
    anomalies = {
        anomaly: dataclasses.replace(finding, unexplained=None) for anomaly, finding in findings.anomalies.items()
    }
    return dataclasses.replace(findings, anomalies=anomalies, explanation=None)
