"""Connections that are broken and clients that died, as the history tells it: whom it hit, and until when."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping

from ackfsm.engine.core.host import NEMESIS, Host, SessionHost
from ackfsm.engine.core.instances import Link, SessionLink
from ackfsm.tables.names import Event


class Outages:
    """Tells of the faults of links, and of their repairs.

    A history knows clients, and not which of their sessions broke.  So a fault names its client if no other session of
    that still has a link of the kind, and a repair is told when the last of them is back, or gone.
    """

    def __init__(self, links: Mapping[Link, None], host: Host) -> None:
        """``links`` has all links."""
        self._links = links
        self._host = host
        self._open: dict[SessionLink, tuple[Event, ...]] = {}
        self._breaking: tuple[SessionHost, ...] = ()

    @property
    def are_over(self) -> bool:
        """Whether all are repaired."""
        return not self._open

    @contextlib.contextmanager
    def together(self, sessions: Collection[SessionHost]) -> Iterator[None]:
        """These sessions break meanwhile, one after the other: they share a connection."""
        before = self._breaking
        self._breaking = (*before, *sessions)
        try:
            yield
        finally:
            self._breaking = before

    def began(self, fault: Event, link: Link) -> None:
        """``fault`` has struck ``link``."""
        if isinstance(link, SessionLink):
            self._open[link] = (*self._open.get(link, ()), fault)
            teller = NEMESIS if any(self._holds(other, link) for other in self._links) else link.process
            self._host.log(teller, "fault", fault=fault.value)

    def _holds(self, other: Link, link: SessionLink) -> bool:
        """Whether ``other`` is of the same client and kind, and what strikes ``link`` leaves it alone."""
        if not isinstance(other, SessionLink) or other.is_closed or other in self._open:
            return False
        same = (other.process, other.kind) == (link.process, link.kind)
        return same and other.owner is not link.owner and other.owner not in self._breaking

    def over(self, link: Link) -> None:
        """``link`` is connected again, or it is gone for good."""
        if not self._open or not isinstance(link, SessionLink):
            return
        for fault in dict.fromkeys(self._open.pop(link, ())):
            still = (other for other, faults in self._open.items() if fault in faults)
            if not any(other.process == link.process for other in still):
                self._host.log(link.process, "recovered", fault=fault.value)
