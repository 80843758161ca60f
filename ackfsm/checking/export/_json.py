"""The composed network as JSON, by the schema in ``network.schema.json``."""

from __future__ import annotations

import json
from typing import Any

from ackfsm.checking.export._model import Action, Part, Variable, model
from ackfsm.checking.network import Network


def network_json(network: Network) -> str:
    """Return ``network`` as JSON text: machines, events with the rows of every participant, and anomalies."""
    written = model(network)
    document = {
        "ackfsm_network": 1,
        "configuration": written.network.configuration.as_dict(),
        "bounds": written.network.bounds.as_dict(),
        "anomalies": [asked.name for asked in written.properties],
        "machines": [_machine(variable) for variable in written.variables],
        "events": [_event(action) for action in written.actions],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _machine(variable: Variable) -> dict[str, Any]:
    instance = variable.instance
    watching = {
        "anomaly": instance.anomaly,
        "marked": [state for state in variable.states if state in instance.marked],
        "marked_at_rest": [state for state in variable.states if state in instance.marked_at_rest],
    }
    return {
        "name": variable.name,
        "table": instance.fsm.name,
        "index": list(instance.index),
        **({"subscription": instance.subscription} if instance.subscription else {}),
        **({"consumer": instance.consumer} if instance.consumer else {}),
        "states": list(variable.states),
        "initial": variable.initial,
        **(watching if instance.anomaly is not None else {}),
    }


def _event(action: Action) -> dict[str, Any]:
    return {
        "name": action.name,
        "event": action.event.name,
        "index": list(action.event.index),
        **({"subscription": action.event.subscription} if action.event.subscription else {}),
        **({"consumer": action.event.consumer} if action.event.consumer else {}),
        "may_never_happen": action.event.may_never_happen,
        "participants": [_participant(part) for part in action.parts],
    }


def _participant(part: Part) -> dict[str, Any]:
    rows = [
        {"from": row.state, "to": row.target, "because": row.because, **({"source": row.source} if row.source else {})}
        for row in part.rows
    ]
    return {"machine": part.variable.name, "rows": rows}
