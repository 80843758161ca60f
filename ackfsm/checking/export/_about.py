"""The header of every exported file: the system, its bounds, and the command that counts its states."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ackfsm.checking.network import Network


def about(network: Network) -> Iterator[str]:
    """The lines of a head, without the marks of a comment."""
    instances, events = len(network.instances), len(network.events)
    yield "Message acknowledgement, composed by ackfsm."
    yield f"{instances} machines side by side, {events} events; an event happens in all its participants at once."
    yield "Machines that never move and events that never happen are left out: no state, step or verdict needs them."
    yield ""
    yield "Configuration:"
    for key, value in network.configuration.as_dict().items():
        yield f"  {key} = {json.dumps(value) if not isinstance(value, str) else value}"
    yield "Bounds:"
    yield from (f"  {key} = {_words(bound)}" for key, bound in network.bounds.as_dict().items())
    yield ""
    yield "ackfsm check with the same options gives the numbers of states and transitions to expect, and the verdicts."


def _words(bound: int | list[str] | None) -> str:
    if isinstance(bound, list):
        return " ".join(bound) or "none"
    return "any" if bound is None else str(bound)
