"""The machines of the tables, run with clocks: a million messages in virtual time.

It is what the closed form of :mod:`ackfsm.timing` is held to, and answers where that knows only bounds.
"""

from ackfsm.simulation._simulation import Simulated, Spread, simulate

__all__ = ["Simulated", "Spread", "simulate"]
