"""A composed system as a model for other tools: Promela for Spin, TLA+ for TLC, JSON, SCXML; and witnesses.

Every format is made from the same network as ``ackfsm check`` explores, without what can never
move; states, transitions and verdicts are the same in every tool that explores it.
"""

from ackfsm.export._files import Format, files
from ackfsm.export._history import run_history, run_lines, witness_history
from ackfsm.export._itf import itf
from ackfsm.export._json import network_json
from ackfsm.export._promela import promela
from ackfsm.export._pytest import pytest_file
from ackfsm.export._scxml import scxml
from ackfsm.export._tla import tla, tla_configuration

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
