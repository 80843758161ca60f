"""A client's connection and its sessions."""

from __future__ import annotations

from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.errors import IllegalStateException
from ackfsm.engine.session import Session
from ackfsm.support.closing import Closing
from ackfsm.terms import Configuration


class Connection(Closing):
    """One client process with its connection to the broker.  ``Broker.connect`` makes it.

    It is started when it is made, unlike a JMS ``Connection`` and like a ``JMSContext``, which starts by itself
    (JMS 3.1, 6.1.3).

    Attributes:
        api: the programming interface that the client uses, ``None`` if nothing is refused for one.
        sessions: those that are open, and perhaps some that have closed since the last one was made.
        consumed: what any session of it has consumed so far: under which configuration, and from which queue.
    """

    def __init__(
        self,
        broker: BrokerContext,
        client_id: str,
        settings: dict[str, object],
        open_connections: dict[Connection, None],
        api: str | None,
    ) -> None:
        self.broker = broker
        self.client_id = client_id
        self.sessions: list[Session] = []
        self.consumed: dict[tuple[Configuration, str], None] = {}
        self.api = api
        self._settings = settings
        self._open_connections = open_connections
        self._made = 0
        self._closed = False
        self._stopped = False

    def session(self, ack_mode: str | None = None, **settings: object) -> Session:
        """A session.

        Args:
            ack_mode: ``AUTO_ACKNOWLEDGE``, ``CLIENT_ACKNOWLEDGE``, ``SESSION_TRANSACTED`` …; by default that of the
                connection.
            settings: further settings of the vocabulary.

        Raises :class:`ackfsm.terms.InputError` for what the system, or the programming interface of the connection,
        does not have, with the reason.
        """
        self.broker.check_use()
        self._ensure_open()
        chosen = {**self._settings, **settings, **({} if ack_mode is None else {"ack_mode": ack_mode})}
        name = f"{self.client_id}.{self._made + 1}"
        made = Session(self.broker, self.client_id, name, chosen, self.consumed, api=self.api)
        made.stopped = self._stopped
        self._made += 1
        self.sessions = [*(session for session in self.sessions if not session.closed), made]
        return made

    def start(self) -> None:
        """Hand messages over again after :meth:`stop`; started already, nothing happens (JMS 3.1, 6.1.4).

        Raises :class:`IllegalStateException` if the connection is closed.
        """
        self._set_stopped(stopped=False)
        for session in self.sessions:
            session.schedule_listeners()
        self.broker.loop.run_to_quiescence()

    def stop(self) -> None:
        """Hand no message over until :meth:`start`: to receive is to wait, and no listener is called (JMS 3.1, 6.1.5).

        What the application has can be acknowledged, and sending works as before; messages go on coming to the library
        as far as ``prefetch`` lets them.  A listener may stop its own connection: it goes on to its end, for there is
        one thread, and none can wait for what itself has to do.

        Raises :class:`IllegalStateException` if the connection is closed.
        """
        self._set_stopped(stopped=True)

    @property
    def is_stopped(self) -> bool:
        """Whether messages wait for :meth:`start`."""
        return self._stopped

    def _set_stopped(self, *, stopped: bool) -> None:
        self.broker.check_use()
        self._ensure_open()
        self._stopped = stopped
        for session in self.sessions:
            session.set_stopped(stopped=stopped)

    def _ensure_open(self) -> None:
        if self._closed:
            raise IllegalStateException("the connection is closed; make another with broker.connect()")

    def close(self) -> None:
        """Close all sessions: what they have not acknowledged is delivered again, open transactions are rolled back."""
        for session in self.sessions:
            session.close()
        self._mark_closed()

    def lose(self) -> None:
        """The connection breaks, and its frames are lost."""
        self._fail("link_loss")

    def crash(self) -> None:
        """The client's process dies with all that it holds; its sessions are gone."""
        self._fail("crash")
        self._mark_closed()

    def _mark_closed(self) -> None:
        self._closed = True
        self._open_connections.pop(self, None)

    def _fail(self, what: str) -> None:
        struck = [session for session in self.sessions if not session.closed]
        with self.broker.engine.outages.together(struck):
            for session in struck:
                if not session.closed:
                    session.fault(what)
