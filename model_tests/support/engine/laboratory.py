"""Where a bug is seeded into an engine and a client program runs on it, and what programs share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ackfsm import verify
from ackfsm.engine import Broker, History, Timed
from ackfsm.engine.core.instances import Copy
from ackfsm.verify import Result
from model_tests.support.engine.bugs import Bug
from model_tests.support.tables import shipped

_MICROSECOND = 1_000
_MILLISECOND = 1_000_000


@dataclasses.dataclass
class Laboratory:
    """Makes the brokers of one run, all with the same bug (or none) and one history."""

    bug: Bug | None
    history: History | None = None

    def broker(self, profile: str, *, pace: Timed | None = None, **settings: object) -> Broker:
        """A broker; the history says under which configuration, and when records are synced."""
        self._made: dict[str, Any] = {"profile": profile, "pace": pace, **settings}
        journal = None if self.bug is None else self.bug.journal()
        return self._start(journal=journal)

    def again(self, broker: Broker) -> Broker:
        """Another broker process on what the journal of ``broker`` has: nothing else is known to it."""
        made = self._start(journal=broker.journal.journal)
        made.log("nemesis", "recovered", fault="broker_kill")
        return made

    def _start(self, **further: Any) -> Broker:
        tables = shipped() if self.bug is None else self.bug.tables(shipped())
        kind = Broker if self.bug is None else self.bug.broker
        settings = {"consumption": "receive", **self._made, **further}
        made = kind(specification=tables, history=self.history or True, **settings)
        self.history = made.history if isinstance(made.history, History) else None

        def synced(copy: Copy) -> None:
            made.log("broker", "journal_synced", queue=copy.message.queue.name, message=copy.message.id)

        made.stepper.state_effects.setdefault(("record", "durable"), []).append(synced)
        return made


def judged(logged: History, folder: Path, unseen: Collection[str] = ()) -> Result:
    """What is said of a history, which lacks nothing that was processed, by the tables of the project.

    ``unseen`` are events that nobody wrote down.
    """
    file = folder / "history.jsonl"
    logged.write(file)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if json.loads(line).get("event") not in unseen), encoding="utf-8")
    header = verify.read_header(file)
    assert header is not None
    configuration = shipped().configure(None, header.config)
    findings = verify.examine(verify.read(file), shipped(), configuration, tells_processed=True)
    return verify.verdict(findings, shipped())


def network() -> Timed:
    """A frame travels 0.1 ms, a sync takes 1 ms."""
    return Timed(latency=(100 * _MICROSECOND, 100 * _MICROSECOND), disk=_MILLISECOND)


def send(broker: Broker, *names: str, queue: str = "q", **settings: Any) -> None:
    """A producer sends these, one after the other, and hears that they are safe."""
    with broker.connect("producer") as client:
        session = client.session(**settings)
        producer = session.producer(queue)
        for name in names:
            producer.send(message_id=name)
        producer.wait()


def drain(broker: Broker, *queues: str, **settings: Any) -> None:
    """A fresh client takes what is left, and says so."""
    with broker.connect("drain") as client:
        for queue in queues or ("q",):
            consumer = client.session(**settings).consumer(queue)
            while (message := consumer.receive(None)) is not None:
                message.acknowledge()
    broker.drained()
