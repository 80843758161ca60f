"""A witness as a sequence diagram."""

from __future__ import annotations

from ackfsm.draw._sequence import Arrow, SequenceDiagram
from ackfsm.explore import Step, Witness
from ackfsm.tables import Lane, Specification

__all__ = ["witness_diagram"]


def witness_diagram(specification: Specification, witness: Witness) -> SequenceDiagram:
    """``witness`` between the lanes that ``spec/events.yaml`` gives its events, each step with its reason in words."""
    arrows = tuple(_arrow(specification, step) for step in witness.steps)
    used = {lane for arrow in arrows for lane in (arrow.start, arrow.end)}
    lanes = tuple(lane.value for lane in Lane if lane in used)
    title = f"{witness.anomaly}: {specification.meaning(witness.anomaly)}"
    return SequenceDiagram(title, lanes or (Lane.BROKER.value,), arrows, witness.ending)


def _arrow(specification: Specification, step: Step) -> Arrow:
    event = specification.events[step.event.name]
    fault = event.lane is Lane.FAULT
    return Arrow(step.number, event.start.value, event.end.value, step.event.label, step.because, fault)
