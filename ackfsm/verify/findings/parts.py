"""The findings of a history whose queues have configurations of their own, added up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.history.queues import Configurations
from ackfsm.terms import Anomaly, Fault
from ackfsm.verify.conformance.explain import SHOWN, Explanation
from ackfsm.verify.conformance.timeline import together as timeline_together
from ackfsm.verify.findings.findings import EXAMPLES, Finding, Findings, Part

_OF_EACH: Final = ("messages", "ends", "counters", "cost", "given_back_beside", "unshown")
"""What is of the messages of one configuration alone, and merged by what it is; all else is of the whole history."""


def together(parts: Sequence[Part], configurations: Configurations) -> Findings:
    """Return the findings of the whole history; its ``parts``, at least one, have different configurations."""
    each = [part.findings for part in parts]
    found = {name: [one.anomalies[name] for one in each if name in one.anomalies] for name in Anomaly}
    unrecorded = [one.unrecorded for one in each if one.unrecorded is not None]
    return dataclasses.replace(
        each[0],
        **{name: _merged([getattr(one, name) for one in each]) for name in _OF_EACH},
        configuration=configurations.general,
        queues=MappingProxyType(dict(sorted(configurations.of_queues.items()))),
        parts=tuple(parts),
        anomalies=MappingProxyType({name: _finding(its) for name, its in found.items() if its}),
        explanation=_shown(_merged([one.explanation for one in each])),
        broken=tuple(fault for fault in Fault if any(fault in one.broken for one in each)),
        unrecorded=timeline_together(unrecorded) if unrecorded else None,
    )


def _merged(values: Sequence[Any]) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Of several values of one field: numbers in all, any flag, every sentence and element once, all of it by name."""
    there = [value for value in values if value is not None]
    if not there or isinstance(there[0], Anomaly):
        return there[0] if there else None
    match there[0]:
        case bool():
            return any(there)
        case int() | float():
            return sum(there)
        case str():
            return "; ".join(dict.fromkeys(there))
        case tuple():
            return tuple(dict.fromkeys(element for value in there for element in value))
        case Mapping():
            names = dict.fromkeys(name for value in there for name in value)
            return MappingProxyType({name: _merged([value.get(name) for value in there]) for name in names})
    fields = (field.name for field in dataclasses.fields(there[0]))
    return dataclasses.replace(
        there[0], **{name: _merged([getattr(value, name) for value in there]) for name in fields}
    )


def _shown(explanation: Explanation | None) -> Explanation | None:
    """With the first of its examples alone."""
    if explanation is None:
        return None
    return dataclasses.replace(explanation, examples=explanation.examples[:SHOWN], pairs=_shown(explanation.pairs))


def _finding(parts: Sequence[Finding]) -> Finding:
    """Of one anomaly; examples come by code point, which is how each of the ``parts`` has them."""
    found: Finding = _merged(parts)
    open_ = [part for part in parts if part.unknown is not None or part.unrecorded]
    return dataclasses.replace(
        found,
        unrecorded=bool(open_) and all(part.unrecorded for part in open_),
        examples=tuple(sorted(found.examples)[:EXAMPLES]),
        unexplained_examples=tuple(sorted(found.unexplained_examples)[:EXAMPLES]),
        causes=MappingProxyType(dict(sorted(found.causes.items()))),
    )
