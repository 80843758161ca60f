"""The sentences of the vendors' documents, each proved or refuted on the tables."""

from ackfsm.surveys.claims._evidence import Evidence, Status
from ackfsm.surveys.claims._read import Claim, Contradiction, choose, read, seeds
from ackfsm.surveys.claims._run import MAX_STATES, ClaimResult, ContradictionResult, decide

__all__ = [
    "MAX_STATES",
    "Claim",
    "ClaimResult",
    "Contradiction",
    "ContradictionResult",
    "Evidence",
    "Status",
    "choose",
    "decide",
    "read",
    "seeds",
]
