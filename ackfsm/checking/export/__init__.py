"""A composed system as a model for other tools: Promela for Spin, TLA+ for TLC, JSON, SCXML; and witnesses.

Every format is made from the same network as ``ackfsm check`` explores, without what can never
move; states, transitions and verdicts are the same in every tool that explores it.
"""

from ackfsm.checking.export._files import Format, files
from ackfsm.checking.export._history import run_history, run_lines, witness_history
from ackfsm.checking.export._itf import itf
from ackfsm.checking.export._json import network_json
from ackfsm.checking.export._promela import promela
from ackfsm.checking.export._pytest import pytest_file
from ackfsm.checking.export._scxml import scxml
from ackfsm.checking.export._tla import tla, tla_configuration

__all__ = [
    "Format",
    "files",
    "itf",
    "network_json",
    "promela",
    "pytest_file",
    "run_history",
    "run_lines",
    "scxml",
    "tla",
    "tla_configuration",
    "witness_history",
]
