"""The machines of the tables, run with clocks: a million messages in virtual time.

It is what the closed form of :mod:`ackfsm.timing` is held to, and answers where that knows only bounds.
"""

from ackfsm.simulation._fault import FAULTS, FaultRun, Recovery, simulate_fault
from ackfsm.simulation._latency import PERCENTILES, Latencies, latencies
from ackfsm.simulation._simulation import Simulated, simulate
from ackfsm.timing import SPREAD_TIMES, Spread

__all__ = [
    "FAULTS",
    "PERCENTILES",
    "SPREAD_TIMES",
    "FaultRun",
    "Latencies",
    "Recovery",
    "Simulated",
    "Spread",
    "latencies",
    "simulate",
    "simulate_fault",
]
