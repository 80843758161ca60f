"""Schedulers: events happen at once, in virtual time, or in random order."""

from __future__ import annotations

import random
from typing import Protocol, runtime_checkable

from ackfsm.tables.names import FRAMES, Agent

_IMMEDIATE = frozenset[str]({Agent.LIBRARY, Agent.BROKER})


@runtime_checkable
class Scheduler(Protocol):
    """When things happen."""

    now: int

    def immediate_agents(self) -> frozenset[str]:
        """The agents whose events follow at once."""

    def delay(self, agent: str) -> int | None:
        """Nanoseconds until an event of ``agent`` that can happen does; ``None``: when there is nothing else to do."""

    def loses(self, agent: str) -> bool:
        """Whether the connection breaks under this frame."""


class _Timeless:
    """Nothing takes time, and nothing is lost: losses are faults, which a test injects."""

    now = 0

    def delay(self, agent: str) -> int | None:  # noqa: ARG002 - of none
        """See :class:`Scheduler`."""
        return None

    def loses(self, agent: str) -> bool:  # noqa: ARG002 - of none
        """See :class:`Scheduler`."""
        return False


class AtOnce(_Timeless):
    """Frames arrive as they are sent, and the journal is synced when a call waits for it."""

    def immediate_agents(self) -> frozenset[str]:
        """All but disk, timer and queue."""
        return _IMMEDIATE | FRAMES


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
        self._durations: dict[str, int] = {Agent.DISK: disk, Agent.TIMER: timer}
        self._random = random.Random(seed)  # noqa: S311 - repeatable chance, not secrecy

    def immediate_agents(self) -> frozenset[str]:
        """Library and broker; frames travel."""
        return _IMMEDIATE

    def delay(self, agent: str) -> int | None:
        """The time that the agent takes."""
        return self._random.randint(*self._latency) if agent in FRAMES else self._durations[agent]

    def loses(self, agent: str) -> bool:
        """By chance."""
        return agent in FRAMES and self._random.random() < self._loss

    def heal(self) -> None:
        """From now on no frame is lost."""
        self._loss = 0.0


class Shuffled(_Timeless):
    """Any event that can happen may be the next; every interleaving occurs with some seed.

    Frames of one connection and direction stay in their order, as on any connection.
    """

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable chance, not secrecy

    def immediate_agents(self) -> frozenset[str]:
        """None."""
        return frozenset()
