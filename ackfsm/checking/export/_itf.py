"""A witness in Apalache's Informal Trace Format (its ADR-015), which Quint and the viewers of both read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ackfsm.checking.explore import Witness
from ackfsm.checking.export._model import Variable, model
from ackfsm.checking.export._tla import RESERVED

_FORMAT = {"format": "ITF", "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html"}

_ACTION = "mbt::actionTaken"
"""Where Quint keeps the name of the action that led to a state."""

_FIRST = "init"


def itf(witness: Witness) -> str:
    """``witness`` as one line of JSON: the states of the variables that the TLA+ export has, one state for each step.

    ``#meta`` of the trace has all that composing the system takes, ``#meta`` of a state the event that led to it.
    """
    network = witness.network
    variables = model(network, RESERVED).variables
    places = {(instance.anomaly, instance.label): place for place, instance in enumerate(network.instances)}
    where = {variable.name: places[_key(variable)] for variable in variables}
    reached = [(_FIRST, "", network.initial)]
    reached += [(step.event.label, step.because, step.after) for step in witness.steps]
    document = {
        "#meta": _meta(witness),
        "vars": [_ACTION, *where],
        "states": [_state(where, index, *state) for index, state in enumerate(reached)],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _key(variable: Variable) -> tuple[str | None, str]:
    return variable.instance.anomaly, variable.instance.label


def _meta(witness: Witness) -> dict[str, Any]:
    return {
        **_FORMAT,
        "source": "ackfsm",
        "status": "violation",
        "description": " ".join(witness.ending),
        "anomaly": witness.anomaly,
        "at_rest": witness.at_rest,
        "configuration": witness.network.configuration.as_dict(),
        "bounds": witness.network.bounds.as_dict(),
    }


def _state(where: dict[str, int], index: int, event: str, because: str, state: Sequence[str]) -> dict[str, Any]:
    meta = {"index": index, **({"event": event, "because": because} if index else {})}
    return {"#meta": meta, _ACTION: event, **{name: state[place] for name, place in where.items()}}
