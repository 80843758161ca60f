"""Runs of the tables written as histories: what a search reaches, and what happens by chance."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ackfsm import verify
from ackfsm.checking import explore, export
from ackfsm.checking.explore import Interpreter
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Profile
from ackfsm.verify import Contradicted, Findings
from model_tests.support.tables import shipped, values

_MOST_STEPS = 400
"""They lead every run of two messages to rest."""

_FAULTS = 0.1
"""How often a random run considers a fault or an action."""

_MOST_STATES = 8_000
_OF_THE_APPLICATION = ("recover", "rollback")


@dataclasses.dataclass(frozen=True)
class Run:
    """Events from the first state to one at rest, and the ``anomaly`` that it was looked for, if any."""

    network: Network
    labels: tuple[str, ...]
    anomaly: str | None

    def has(self, event: str) -> bool:
        """Whether it has an event of this name."""
        return any(label.partition("(")[0] == event for label in self.labels)


@dataclasses.dataclass(frozen=True)
class Judged:
    """What is said of the history of a run."""

    findings: Findings
    allowed: Mapping[Anomaly, bool | None]

    @property
    def found(self) -> frozenset[Anomaly]:
        """The anomalies that were counted."""
        return frozenset(anomaly for anomaly, finding in self.findings.anomalies.items() if finding.found)

    @property
    def accused(self) -> frozenset[Anomaly]:
        """Those that were counted, and are not known to be allowed."""
        return frozenset(anomaly for anomaly in self.found if not self.allowed[anomaly])

    @property
    def contradicted(self) -> tuple[Contradicted, ...]:
        """The messages, and pairs of them, that are said to be no run of the model."""
        explanation = self.findings.explanation
        if explanation is None:
            return ()
        return (*explanation.examples, *(explanation.pairs.examples if explanation.pairs else ()))


def systems(seed: int, number: int) -> Iterator[Network]:
    """Legal systems of every profile, with few settings at random; one message or two, one fault or two."""
    draw = random.Random(f"systems {seed}")
    keys = [key for key in Configuration.__dataclass_fields__ if key != "profile"]
    while number:
        profile = draw.choice(list(Profile))
        chosen: dict[str, Any] = {key: draw.choice(values(key)) for key in draw.sample(keys, draw.choice((1, 2, 3, 4)))}
        try:
            configuration = shipped().configure(profile, chosen)
        except InputError:
            continue
        bounds = Bounds(
            messages=draw.choice((1, 1, 2)),
            faults=frozenset(draw.sample(list(Fault), draw.choice((1, 2, 3)))),
            max_faults=draw.choice((1, 2)),
            actions=frozenset(draw.sample(_OF_THE_APPLICATION, draw.choice((0, 0, 1)))),
        )
        number -= 1
        yield compose(shipped(), configuration, bounds)


def witnesses(network: Network) -> Iterator[Run]:
    """For every anomaly that is reached a run that has it and goes on to rest; without those that end without it."""
    draw = random.Random("go on")
    found = explore.explore(network, explore.SearchOptions(max_states=_MOST_STATES)).witnesses
    for anomaly, steps in found.items():
        executor = Interpreter(network)
        labels = [executor.fire(event.label).label for event in steps]
        labels += _to_rest(executor, draw)
        if anomaly in executor.anomalies():  # else a message that was missing has come after all
            yield Run(network, tuple(labels), anomaly)


def random_run(network: Network, seed: int) -> Run:
    """A run by chance, with faults and actions among its steps, to rest."""
    draw = random.Random(f"run {seed}")
    executor, labels = Interpreter(network), list[str]()
    for _ in range(draw.choice((10, 20, 40))):
        enabled = executor.enabled()
        certain = [event for event in enabled if not event.may_never_happen]
        if not certain:
            break
        labels.append(executor.fire(draw.choice(enabled if draw.random() < _FAULTS else certain).label).label)
    labels += _to_rest(executor, draw)
    return Run(network, tuple(labels), None)


def _to_rest(executor: Interpreter, draw: random.Random) -> Iterator[str]:
    for _ in range(_MOST_STEPS):
        certain = [event for event in executor.enabled() if not event.may_never_happen]
        if not certain:
            return
        yield executor.fire(draw.choice(certain).label).label
    raise AssertionError(f"{executor.network.configuration} does not come to rest")


def judged(run: Run, folder: Path, writer: Specification | None = None) -> Judged:
    """What ``verify`` says of the history that ``writer`` (the tables, unless it is another) makes of the run."""
    file, configuration = folder / "history.jsonl", run.network.configuration
    steps = explore.steps_of(run.network, run.labels)
    stuck_of = run.network.bounds.messages if run.anomaly == Anomaly.STUCK else 0
    text = export.run_history(writer or shipped(), configuration, steps, at_rest=True, stuck_of=stuck_of)
    file.write_text(text, encoding="utf-8")
    header = verify.read_header(file)
    assert header is not None
    assert shipped().configure(None, header.config) == configuration
    findings = verify.examine(verify.read(file), shipped(), configuration, tells_processed=True)
    result = verify.verdict(findings, shipped())
    return Judged(findings, result.allowed)
