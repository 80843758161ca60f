"""The protocols that the core calls back, implemented by the JMS face around it."""

from __future__ import annotations

from typing import Final, Protocol

BROKER: Final = "broker"
NEMESIS: Final = "nemesis"
"""Those in a history who are no clients: faults of the broker, and of whom nobody knows whom they hit, are told by the
second."""


class SessionHost(Protocol):
    """The session that owns a link."""

    @property
    def closed(self) -> bool:
        """Whether the session has been closed."""

    @property
    def has_open_transaction(self) -> bool:
        """Whether work has been done in a transaction that is not over."""

    def record_outcome(self, outcome: str) -> None:
        """One link's part of the transaction has ended so: ``committed``, ``rolled_back``, ``commit_in_doubt``."""

    def lose_connection(self) -> None:
        """The connection of the session breaks."""


class ConsumerHost(Protocol):
    """The consumer that owns a receiver link."""

    @property
    def detached(self) -> bool:
        """Whether the consumer is closed and nothing of it is left."""

    @property
    def has_listener(self) -> bool:
        """Whether messages are pushed to a listener."""

    def pump(self) -> None:
        """Call the listener for the messages that have arrived."""


class Host(Protocol):
    """The broker around this core."""

    @property
    def history(self) -> object:
        """``None`` if there is no history."""

    def log(self, process: str, event: str, **fields: object) -> None:
        """Add a line to the history, if there is one."""

    def sync_failed(self) -> None:
        """A sync of the journal has failed: stop the broker, unless it is down."""

    def flush_lazy_acks(self) -> bool:
        """Send the lazy acknowledgements; return whether there were any."""

    def repair(self) -> bool:
        """Start the broker or make a connection again, if one is down; whether that was done."""
