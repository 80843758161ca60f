"""The machines of the tables, run with clocks: a million messages in virtual time.

It is what the closed form of :mod:`ackfsm.rates.timing` is held to, and answers where that knows only bounds.
"""

from ackfsm.rates.simulation._fault import FAULTS, FaultRun, Recovery, simulate_fault
from ackfsm.rates.simulation._latency import PERCENTILES, Latencies, latencies
from ackfsm.rates.simulation._simulation import Simulated, simulate
from ackfsm.rates.timing import SPREAD_TIMES, Spread

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
