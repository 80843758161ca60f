"""Drive somebody's broker through every mode it claims under every fault it can take, and judge the runs."""

from ackfsm.driving.conform._acts import ACTS, SETTLES
from ackfsm.driving.conform._adapter import (
    AckOutcome,
    Adapter,
    BrokerDownError,
    ClientClosedError,
    CommitOutcome,
    Delivery,
    Depth,
    ListenerHoldsError,
    SendOutcome,
    Strike,
    UndecidedError,
)
from ackfsm.driving.conform._campaign import conform
from ackfsm.driving.conform._claims import (
    BROKER_FAULTS,
    Claims,
    Mode,
    Operation,
    acknowledged_by_application,
    claimed,
)
from ackfsm.driving.conform._command import PROTOCOL, Command
from ackfsm.driving.conform._judge import Judgement
from ackfsm.driving.conform._program import Act, Program
from ackfsm.driving.conform._report import NO_FAULT, Cell, Failure, Limits, Report, Status
from ackfsm.driving.conform._serve import serve

__all__ = [
    "ACTS",
    "BROKER_FAULTS",
    "NO_FAULT",
    "PROTOCOL",
    "SETTLES",
    "AckOutcome",
    "Act",
    "Adapter",
    "BrokerDownError",
    "Cell",
    "Claims",
    "ClientClosedError",
    "Command",
    "CommitOutcome",
    "Delivery",
    "Depth",
    "Failure",
    "Judgement",
    "Limits",
    "ListenerHoldsError",
    "Mode",
    "Operation",
    "Program",
    "Report",
    "SendOutcome",
    "Status",
    "Strike",
    "UndecidedError",
    "acknowledged_by_application",
    "claimed",
    "conform",
    "serve",
]
