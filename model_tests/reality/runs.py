"""What is measured: runs of a client, points of the comparison, and the records that are written of them."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

__all__ = ["MEASURED", "Outcome", "Point", "Run", "What", "read", "rounded", "written"]

What: TypeAlias = Literal["blocking", "window", "transaction", "consume"]

MEASURED: Final = Path(__file__).with_name("measured.jsonl")
"""The last measurement that was kept: a record of the machine, then parameters and points."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a client.

    ``protocol`` is amqp-0-9-1, amqp-1.0 or core (Artemis' own).  ``window`` is how many sends are under way at most,
    ``batch`` how many messages a transaction or an acknowledgement has, ``prefetch`` how many messages a consumer is
    sent ahead.  ``size`` is that of a body in bytes.  What happens in the first ``warm_up`` seconds is not counted,
    what happens in the next ``seconds`` is; a run ends before that with its message number ``messages``, if not 0.
    """

    what: What
    protocol: str
    queue: str
    size: int
    window: int = 0
    batch: int = 1
    prefetch: int = 0
    ack_mode: str = "AUTO_ACKNOWLEDGE"
    block_on_acknowledge: bool = False
    persistent: bool = True
    warm_up: float = 0.2
    seconds: float = 1.5
    messages: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a run counted: messages whose outcome the client knew in so many seconds, and in the ``total`` run."""

    messages: int
    seconds: float
    total: int

    @property
    def rate(self) -> float:
        """Messages a second.  Raises :class:`RuntimeError` where nothing was counted."""
        if not self.messages:
            raise RuntimeError(f"the run of {self.total} messages was over before any was counted")
        return self.messages / self.seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A rate to be measured: by whom, under which settings of ``ackfsm`` (and ``batch``), over which line.

    ``rtt_ms`` is the round trip that the relay adds; ``bandwidth``, in bits a second each way, is unlimited if None.
    """

    broker: str
    protocol: str
    what: What
    config: dict[str, Any]
    rtt_ms: float
    message_size: int = 100
    bandwidth: float | None = None

    def run(self, queue: str, **more: Any) -> Run:
        """The run of a client that measures it."""
        config = self.config
        return Run(
            what=self.what,
            protocol=self.protocol,
            queue=queue,
            size=self.message_size,
            window=config.get("publish_window") or 0,
            batch=config.get("batch", 1),
            prefetch=config.get("prefetch", 0),
            ack_mode=config.get("ack_mode", "AUTO_ACKNOWLEDGE"),
            block_on_acknowledge=config.get("block_on_acknowledge", False),
            persistent=config["delivery_mode"] == "PERSISTENT",
            **more,
        )

    def record(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """What is written of it: the repeat of the median rate, and all rates."""
        median = sorted(outcomes, key=lambda outcome: outcome.rate)[len(outcomes) // 2]
        return {
            "kind": "point",
            "broker": self.broker,
            "protocol": self.protocol,
            "what": self.what,
            "config": self.config,
            "rtt_ms": self.rtt_ms,
            "bandwidth_bit_s": self.bandwidth,
            "message_size": self.message_size,
            "messages": median.messages,
            "seconds": round(median.seconds, 4),
            "rate": rounded(statistics.median(outcome.rate for outcome in outcomes)),
            "repeats": [rounded(outcome.rate) for outcome in outcomes],
        }


def rounded(value: float) -> float:
    """Four digits of a measured value: more say nothing."""
    return float(f"{value:.4g}")


def written(records: Iterable[dict[str, Any]]) -> str:
    """The text of a file of records."""
    return "".join(json.dumps(record) + "\n" for record in records)


def read(path: Path = MEASURED) -> list[dict[str, Any]]:
    """The records of a file; raises :class:`ValueError` for a line that is none."""
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        record = json.loads(line)
        if not isinstance(record, dict) or record.get("kind") not in {"machine", "parameter", "point"}:
            raise ValueError(f"{path}:{number}: not a record of a machine, a parameter or a point")
        records.append(record)
    return records
