"""Proofs for any number of messages and any number of faults: anomalies that no system of the tables can show.

:func:`prove` computes all that the system and one or two of any number of messages can be in (a *view*), from the
tables of one message, and looks for anomalies there.  What it does not find is impossible; what it finds may be
impossible all the same, so it is *undecided*.  Semantics and proofs are in ``spec/any.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackfsm.checking.unbounded._alike import network_keys

if TYPE_CHECKING:
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
    "network_keys",
    "prove",
]


def __getattr__(name: str) -> Any:
    """What proves and decides is loaded when it is asked for: with it come NumPy and Numba."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ackfsm.checking.unbounded import _decide, _prove, _steps

    return next(getattr(module, name) for module in (_decide, _prove, _steps) if hasattr(module, name))
