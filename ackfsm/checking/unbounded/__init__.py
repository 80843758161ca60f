"""Proofs for any number of messages and any number of faults: anomalies that no system of the tables can show.

:func:`prove` computes all that the system and one or two of any number of messages can be in (a *view*), from the
tables of one message, and looks for anomalies there.  What it does not find is impossible; what it finds may be
impossible all the same, so it is *undecided*.  Semantics and proofs are in ``spec/any.md``.
"""

from ackfsm.checking.unbounded._alike import network_key
from ackfsm.checking.unbounded._decide import Decision, Finding, decide
from ackfsm.checking.unbounded._prove import DEFAULT_LEVELS, MOST_VIEWS, Proof, Verdict, prove
from ackfsm.checking.unbounded._steps import Level

__all__ = [
    "DEFAULT_LEVELS",
    "MOST_VIEWS",
    "Decision",
    "Finding",
    "Level",
    "Proof",
    "Verdict",
    "decide",
    "network_key",
    "prove",
]
