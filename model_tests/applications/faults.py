"""What strikes a run of an application program: faults, also inside a call, closed connections, other brokers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ackfsm.engine import Timed
from model_tests.applications.clients import Client
from model_tests.applications.programs import Strike
from model_tests.applications.testbed import Testbed

__all__ = ["Faults"]

_STEP = 60_000
"""Microseconds; where frames take time, a strike counts these instead of events."""


class Faults:
    """Those of one run."""

    def __init__(self, bed: Testbed, clients: Sequence[Client]) -> None:
        self._bed, self._clients = bed, clients
        self._counting, self._aimed_at = 0, ""
        self._striking: Callable[[], None] | None = None
        bed.after_event = self._count

    def _count(self, event: str) -> None:
        if self._striking is not None and self._aimed_at in {"", event}:
            self._counting -= 1
            if self._counting <= 0:
                striking, self._striking = self._striking, None
                striking()

    def strike(self, kind: str, client: Client) -> None:
        """A fault now; ``client`` is hit if it is one of a client."""
        if kind in {"crash", "kill", "fail_journal"}:
            if self._bed.broker.running:
                getattr(self._bed.broker, kind)()
        elif not client.is_open:
            return
        elif kind == "lose":
            client.opened.lose()
        else:
            client.die()
            if self._bed.is_modelled:
                client.open()

    def close(self, client: Client, *, returns: bool) -> None:
        """``client`` closes its connection, and ``returns`` at once; always where the model needs it."""
        if self._bed.is_modelled and not self._is_fresh(client):
            return
        client.close()
        if returns or self._bed.is_modelled:
            client.open()

    def _is_fresh(self, client: Client) -> bool:
        """Whether a session that sends has nothing under way, so that another is like it to the model."""
        if client.producer is None or not client.is_open:
            return True
        side = client.producer._sender  # noqa: SLF001 - read only
        copies = [item.sent.copy for item in self._bed.books.items.values() if item.sent is not None and item.sent.copy]
        idle = all(group.state == group.automaton.initial for group in side.groups.values())
        return idle and all(
            c.state_of("publish_frame") != "in_flight" and c.state_of("publisher_confirm") == "none" for c in copies
        )

    @contextlib.contextmanager
    def during(self, strike: Strike | None, client: Client) -> Iterator[None]:
        """``strike`` while ``client`` does something."""
        if strike is None:
            yield
            return

        def striking() -> None:
            self._bed.feats.add("struck inside commit" if client.ending == "commit" else "struck inside")
            if strike.fault == "die" and self._bed.is_modelled:
                return self.strike("lose", client)
            return self.strike(strike.fault, client)

        broker = self._bed.broker
        if isinstance(broker.loop.scheduler, Timed) and not strike.on:
            broker.loop.schedule(broker.now + strike.after * _STEP, striking)
            yield
        else:
            self._counting, self._aimed_at, self._striking = strike.after, strike.on, striking
            try:
                yield
            finally:
                self._striking = None

    def restart(self, how: str) -> None:
        """Everybody ends, and another broker opens the journal, which the model does not follow."""
        bed = self._bed
        if bed.refinement is not None:
            bed.refinement.check()
            bed.refinement = None
        held = any(queue.length for queue in bed.broker.queues.values())
        if how == "close":
            for client in self._clients:
                client.close()
            bed.broker.close()
            bed.broker.log("nemesis", "fault", fault="broker_kill")
        else:
            self.strike(how, self._clients[0])
            for client in self._clients:
                client.die()
        bed.another_broker()
        if held:
            bed.feats.add("another broker with messages")
