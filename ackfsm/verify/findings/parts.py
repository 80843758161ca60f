"""The findings of a history whose queues have configurations of their own: those of each, together."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from ackfsm.history.queues import Configurations
from ackfsm.terms import Anomaly, Fault
from ackfsm.verify.conformance.explain import SHOWN, Explanation
from ackfsm.verify.conformance.timeline import together as timeline_together
from ackfsm.verify.findings.findings import EXAMPLES, Cost, Finding, Findings, Part

__all__ = ["together"]

_T = TypeVar("_T")


def together(parts: Sequence[Part], configurations: Configurations) -> Findings:
    """The findings of the whole history, of which ``parts``, at least one, are judged by different configurations."""
    each = [part.findings for part in parts]
    anomalies = [name for name in Anomaly if any(name in one.anomalies for one in each)]
    return dataclasses.replace(
        each[0],
        configuration=configurations.general,
        queues=MappingProxyType(dict(sorted(configurations.of_queues.items()))),
        parts=tuple(parts),
        messages=sum(one.messages for one in each),
        anomalies=MappingProxyType(
            {name: _finding([one.anomalies[name] for one in each if name in one.anomalies]) for name in anomalies}
        ),
        ends=_sum(one.ends for one in each),
        counters=_sum(one.counters for one in each),
        explanation=_merged([one.explanation for one in each], _explanation),
        cost=Cost(sum(one.cost.whole for one in each), sum(one.cost.conformance for one in each)),
        broken=tuple(fault for fault in Fault if any(fault in one.broken for one in each)),
        given_back_beside=any(one.given_back_beside for one in each),
        unrecorded=_merged([one.unrecorded for one in each], timeline_together),
        unshown=tuple(dict.fromkeys(name for one in each for name in one.unshown)),
    )


def _merged(found: Iterable[_T | None], merge: Callable[[Sequence[_T]], _T]) -> _T | None:
    there = [each for each in found if each is not None]
    return merge(there) if there else None


def _sum(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return MappingProxyType(found)


def _finding(parts: Sequence[Finding]) -> Finding:
    held = [part.unexplained for part in parts if part.unexplained is not None]
    return dataclasses.replace(
        parts[0],
        found=sum(part.found for part in parts),
        unknown=_sentences(part.unknown for part in parts),
        examples=_first(part.examples for part in parts),
        unrecorded=all(part.unrecorded or part.unknown is None for part in parts)
        and any(part.unrecorded for part in parts),
        doubted=sum(part.doubted for part in parts),
        doubt=_sentences(part.doubt for part in parts),
        unexplained=sum(held) if held else None,
        undecided=sum(part.undecided for part in parts),
        by_kind=sum(part.by_kind for part in parts),
        unexplained_examples=_first(part.unexplained_examples for part in parts),
        causes=MappingProxyType(dict(sorted(_sum(part.causes for part in parts).items()))),
    )


def _sentences(found: Iterable[str | None]) -> str | None:
    return "; ".join(dict.fromkeys(each for each in found if each is not None)) or None


def _first(examples: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Those by code point, which is how each of the ``examples`` is ordered."""
    return tuple(sorted({each for its in examples for each in its})[:EXAMPLES])


def _explanation(parts: Sequence[Explanation]) -> Explanation:
    undecided = sum((Counter(part.undecided) for part in parts), Counter[str]())
    return Explanation(
        messages=sum(part.messages for part in parts),
        lives=sum(part.lives for part in parts),
        states=sum(part.states for part in parts),
        searches=sum(part.searches for part in parts),
        contradicted=sum(part.contradicted for part in parts),
        unnamed=sum(part.unnamed for part in parts),
        examples=tuple(example for part in parts for example in part.examples)[:SHOWN],
        undecided=dict(undecided),
        pairs=_merged([part.pairs for part in parts], _explanation),
    )
