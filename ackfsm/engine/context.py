"""The state that all objects of one broker share: its engine, its thread, its configuration, history and clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Protocol

from ackfsm.engine.arguments import flag_of, length_of, name_of, text_of, time_of
from ackfsm.engine.core.engine import Engine
from ackfsm.engine.core.errors import BrokerStopped, IllegalStateException, Stuck
from ackfsm.engine.core.host import BROKER
from ackfsm.engine.core.instances import Queue, Sent
from ackfsm.engine.history import History
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Configuration, InputError
from ackfsm.text import quoted

CLOSED = 0
"""No thread has this number."""

_ACK_SCOPES = {Condition.ACK_COVERS_LATER: "session", Condition.ACK_COVERS_EARLIER: "up_to"}


class _LazyConsumer(Protocol):
    def flush_lazy_acks(self) -> bool: ...


class Caller(Protocol):
    """The session of a call."""

    @property
    def process(self) -> str:
        """Its client's name in the history."""

    @property
    def name(self) -> str:
        """Its own."""


class BrokerContext:
    """A broker as its connections, sessions, producers and consumers use it.

    Attributes:
        engine: runs the tables.
        stepper: that of the engine.
        loop: that of the engine.
        journal: the journal as the engine uses it.
        specification: the tables.
        profile: the system whose defaults and limits hold.
        settings: defaults of all connections.
        api: the programming interface of all connections that name none, ``None`` if nothing is refused for one.
        configuration: the configuration by these.
        history: what is recorded, ``None`` if nothing is.
        clock: says when a message is sent, ``None`` for the virtual time.
        repairs: whether the broker and connections are started again when a call waits for them.
        thread: the one that may use it.
        lazy_consumers: those that have something to acknowledge lazily.
    """

    engine: Engine
    history: History | None
    repairs: bool

    def __init__(
        self,
        specification: Specification,
        profile: str,
        settings: Mapping[str, object],
        clock: Callable[[], int] | None,
        api: str | None = None,
    ) -> None:
        self.specification = specification
        self.profile = profile
        self.settings = dict(settings)
        self.api = self.interface(api)
        self.configuration = self.configure({}, self.api)
        self.clock = clock
        self.thread = get_ident()
        self.lazy_consumers: dict[_LazyConsumer, None] = {}

    def use_engine(self, engine: Engine) -> None:
        """From now on ``engine`` runs the tables."""
        self.engine = engine
        self.stepper, self.loop, self.journal = engine.stepper, engine.loop, engine.journal

    def check_use(self) -> None:
        """Raise :class:`IllegalStateException` if the broker is closed, or another thread uses it."""
        if self.thread == CLOSED:
            raise IllegalStateException("the broker is closed; open another on its journal")
        if self.thread != get_ident():
            raise IllegalStateException(
                "a broker and all that belongs to it is used by one thread, the one that made it; make one broker for "
                "each thread, or call use_in_this_thread() when the other thread has finished with it"
            )

    def configure(self, settings: Mapping[str, object], api: str | None = None) -> Configuration:
        """The configuration of this broker with ``settings`` over its own, as ``api`` lets an application ask for it.

        Raises :class:`ackfsm.terms.InputError` for what the system, or the interface, does not have.
        """
        return self.specification.configure(self.profile, {**self.settings, **settings}, api=api)

    def interface(self, api: str | None) -> str | None:
        """The programming interface that ``api`` spells, ``None`` for ``None``.

        Raises :class:`ackfsm.terms.InputError` for one that the system does not have.
        """
        if api is None:
            return None
        return self.specification.profiles[self.specification.profile_of(self.profile)].api(text_of("api", api))

    @property
    def running(self) -> bool:
        """Whether the broker's process is there."""
        return self.thread != CLOSED and self.engine.running

    @property
    def now(self) -> int:
        """The virtual time, in nanoseconds."""
        return self.loop.scheduler.now

    def time(self) -> int:
        """The time of the broker's clock, in nanoseconds; without a clock the virtual time."""
        return self.loop.scheduler.now if self.clock is None else time_of(self.clock())

    # Queues

    def queue(self, name: str, *, durable: bool | None = None, max_length: int | None = None) -> Queue:
        """The queue of that name, made if there is none.

        Args:
            name: of the queue.
            durable: whether it journals durable messages; by default the setting ``queue_durable``.
            max_length: how many messages it holds; a message more is rejected.

        Raises :class:`ackfsm.terms.InputError` if it exists and is different.
        """
        self.check_use()
        name = name_of(name)
        if durable is not None:
            flag_of("durable", durable)
        if max_length is not None:
            length_of(max_length)
        return self.engine.queues.queue(name, durable=durable, max_length=max_length)

    def own_queue(self, queue: Queue) -> Queue:
        """``queue`` itself.

        Raises :class:`ackfsm.terms.InputError` if it is another broker's.
        """
        if self.engine.queues.by_name.get(queue.name) is not queue:
            raise InputError(
                f"queue {quoted(queue.name)} belongs to another broker; give its name, and this broker makes its own"
            )
        return queue

    # History

    def log(self, process: str, event: str, **fields: object) -> None:
        """Add a line to the history, if there is one."""
        if self.history is not None:
            self.history.add(self.now, process, event, **fields)

    def log_waiting(self, call: str, caller: Caller, message: Sent | None = None) -> None:
        """Add to the history that a call can never return, and the depths of the queues at that time.

        Nothing is added while a fault is not repaired, for then it only waits.
        """
        if self.engine.at_rest:
            queue, ident = (None, None) if message is None else (message.queue.name, message.id)
            self.log(caller.process, "waiting", session=caller.name, error=call, queue=queue, message=ident)
            for each in self.engine.queues_of_applications():
                self.log_depth(each)

    def log_depth(self, queue: Queue) -> None:
        """Add to the history how much ``queue`` holds, if it holds something and that is how it stays."""
        depth = self.engine.depth(queue) if queue.length else None
        if depth is not None:
            self.log(BROKER, "depth", queue=queue.name, position=depth[0], delivery_count=depth[1])

    def ack_scope(self, configuration: Configuration) -> str:
        """What an acknowledgement covers, in the words of a history."""
        environment = self.specification.environment(configuration)
        conditions = self.specification.conditions
        covered = (scope for name, scope in _ACK_SCOPES.items() if conditions[name].holds(environment))
        return next(covered, "message")

    # Waiting

    def wait(
        self,
        until: Callable[[], bool],
        doing: str,
        call: str | None = None,
        caller: Caller | None = None,
        message: Sent | None = None,
    ) -> None:
        """Go on until a call may return: in the words of a history ``call``, of the session ``caller``.

        Raises :class:`BrokerStopped` or :class:`Stuck` if it never will.
        """
        if not self.loop.wait(until):
            if not self.running:
                why = self.journal.open_error or "nobody starts it"
                raise BrokerStopped(f"{doing}: the broker is down, and {why}; call restart()")
            if call is not None and caller is not None:
                self.log_waiting(call, caller, message)
            raise Stuck(f"{doing} would wait for ever: nothing is left that could happen")

    def wait_until_running(self, doing: str) -> None:
        """Wait until the broker runs: a connection needs both ends.

        Raises :class:`BrokerStopped` if nobody starts it.
        """
        if not self.running:
            self.wait(lambda: self.running, doing)
