"""When things happen: at once, in virtual time, or in any order."""

from __future__ import annotations

import random
from typing import Protocol, runtime_checkable

__all__ = ["FRAMES", "PUBLISH", "AtOnce", "Pace", "Shuffled", "Timed"]

PUBLISH = "producer_to_broker"
"""The agent whose events are frames that a producer sends."""

FRAMES = frozenset({PUBLISH, "broker_to_producer", "consumer_to_broker", "broker_to_consumer"})
"""The agents whose events are frames that are read."""

_PROMPT = frozenset({"library", "broker"})


@runtime_checkable
class Pace(Protocol):
    """When things happen."""

    now: int

    def prompt(self) -> frozenset[str]:
        """The agents whose events follow at once."""

    def delay(self, agent: str) -> int | None:
        """Nanoseconds until an event of ``agent`` that can happen does; ``None``: when there is nothing else to do."""

    def loses(self, agent: str) -> bool:
        """Whether the connection breaks under this frame."""


class AtOnce:
    """Frames arrive as they are sent, and the disk is asked when somebody waits for it."""

    def __init__(self) -> None:
        self.now = 0

    def prompt(self) -> frozenset[str]:
        """Everybody but disk, timer and queue."""
        return _PROMPT | FRAMES

    def delay(self, agent: str) -> int | None:
        """Nothing takes time."""
        del agent
        return None

    def loses(self, agent: str) -> bool:
        """Nothing is lost."""
        del agent
        return False


class Timed:
    """A network and a disk in virtual time.

    Args:
        latency: nanoseconds that a frame travels, least and most.
        disk: nanoseconds that a sync takes.
        timer: nanoseconds that the broker's timer runs.
        loss: how likely a frame is lost, and its connection with it, from 0 to 1.
        seed: of the times and losses.
    """

    def __init__(
        self,
        *,
        latency: tuple[int, int] = (100_000, 300_000),
        disk: int = 1_000_000,
        timer: int = 10_000_000,
        loss: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.now = 0
        self._latency, self._loss = latency, loss
        self._taking = {"disk": disk, "timer": timer}
        self._random = random.Random(seed)  # noqa: S311 - chance that can be had again, not secrecy

    def prompt(self) -> frozenset[str]:
        """Library and broker; frames travel."""
        return _PROMPT

    def delay(self, agent: str) -> int | None:
        """What the agent takes."""
        return self._random.randint(*self._latency) if agent in FRAMES else self._taking[agent]

    def loses(self, agent: str) -> bool:
        """By chance."""
        return agent in FRAMES and self._random.random() < self._loss

    def heal(self) -> None:
        """From now on no frame is lost."""
        self._loss = 0.0


class Shuffled:
    """Any event that can happen may be the next, and every interleaving is met by some seed.

    Frames of one connection and direction stay in their order, as on any connection.
    """

    def __init__(self, seed: int = 0) -> None:
        self.now = 0
        self.random = random.Random(seed)  # noqa: S311 - chance that can be had again, not secrecy

    def prompt(self) -> frozenset[str]:
        """Nobody."""
        return frozenset()

    def delay(self, agent: str) -> int | None:
        """At some time."""
        del agent
        return None

    def loses(self, agent: str) -> bool:
        """Losses are faults, and whoever wants them injects them."""
        del agent
        return False
