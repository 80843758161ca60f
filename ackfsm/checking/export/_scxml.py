"""SCXML: the machines as parallel regions, each transition under the condition that all participants agree."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from ackfsm.checking.export._about import about
from ackfsm.checking.export._model import Action, Model, Names, Part, Variable, model
from ackfsm.checking.network import Network

_LIMITS = """\
What SCXML cannot say, and how it is said here:
  An event happens in all participants or in none: every transition asks with In() where the other participants are.
  Whoever runs the chart sends the events; one that cannot happen now is dropped in silence, not refused with a reason.
  A participant that only allows or forbids an event has no transition: it stands in the conditions of the others.
  An event that moves nobody leaves no trace at all.
  Anomalies, and what the system waits for at rest, are comments.
Each event is the external event that the comment of its machine names; it has no data."""


def scxml(network: Network) -> str:
    """Return ``network`` as an SCXML document (W3C, 1.0), with the ECMAScript data model for ``In()`` alone."""
    written = model(network, {"system"})
    root = _Writing(written).root()
    ET.indent(root)
    head = "\n".join(["", *about(written.network), "", *_LIMITS.splitlines(), ""])
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<!--{_plain(head)}-->\n{ET.tostring(root, encoding='unicode')}\n"


class _Writing:
    def __init__(self, written: Model) -> None:
        self.model = written
        names = Names({"system", *(variable.name for variable in written.variables)})
        self.ids = {
            (variable.name, state): names.new(f"{variable.name} {state}")
            for variable in written.variables
            for state in variable.states
        }
        self.taking_part: dict[str, list[tuple[Action, Part]]] = {variable.name: [] for variable in written.variables}
        for action in written.actions:
            for part in action.parts:
                self.taking_part[part.variable.name].append((action, part))

    def root(self) -> ET.Element:
        attributes = {"xmlns": "http://www.w3.org/2005/07/scxml", "version": "1.0", "datamodel": "ecmascript"}
        root = ET.Element("scxml", {**attributes, "initial": "system"})
        system = ET.SubElement(root, "parallel" if self.model.variables else "state", {"id": "system"})
        for variable in self.model.variables:
            self.region(system, variable)
        return root

    def region(self, system: ET.Element, variable: Variable) -> None:
        system.append(ET.Comment(f" {_plain(variable.words)} "))
        initial = self.ids[variable.name, variable.initial]
        region = ET.SubElement(system, "state", {"id": variable.name, "initial": initial})
        for state in variable.states:
            made = ET.SubElement(region, "state", {"id": self.ids[variable.name, state]})
            for mark in _marks(variable, state):
                made.append(ET.Comment(f" {_plain(mark)} "))
            for action, part in self.taking_part[variable.name]:
                if state in part.moving:
                    self.transition(made, action, part, state)

    def transition(self, state: ET.Element, action: Action, part: Part, source: str) -> None:
        (because,) = (row.because for row in part.rows if row.state == source)
        state.append(ET.Comment(f" {_plain(f'{action.event.label}: {because}')} "))
        others = [self.allowing(other) for other in action.parts if other is not part and other.refusing]
        condition = {"cond": " && ".join(others)} if others else {}
        target = self.ids[part.variable.name, part.moving[source]]
        ET.SubElement(state, "transition", {"event": action.name, **condition, "target": target})

    def allowing(self, part: Part) -> str:
        """Without ``!``, which not every reader of SCXML knows."""
        terms = [f"In('{self.ids[part.variable.name, state]}')" for state in part.after]
        return terms[0] if len(terms) == 1 else f"({' || '.join(terms)})"


def _marks(variable: Variable, state: str) -> Iterator[str]:
    if state in variable.instance.marked:
        yield f"anomaly: {variable.instance.anomaly}"
    if state in variable.instance.marked_at_rest:
        yield f"anomaly at rest: {variable.instance.anomaly}"


def _plain(text: str) -> str:
    """Two hyphens would end a comment of XML."""
    return text.replace("--", "- -")
