"""The sentences of the vendors' documents, each proved or refuted on the tables."""

from ackfsm.claims._evidence import Evidence, Status
from ackfsm.claims._read import Claim, Contradiction, choose, read
from ackfsm.claims._run import MAX_STATES, ClaimResult, ContradictionResult, decide
from ackfsm.claims._seeds import seeds

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
