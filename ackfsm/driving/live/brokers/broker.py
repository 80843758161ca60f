"""What a broker of others is to us: asked for its queues; and if it is a child of ours, broken and started again."""

from __future__ import annotations

import abc
import dataclasses
import os
import shutil
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from ackfsm import tables
from ackfsm.driving.conform import Depth
from ackfsm.driving.live import java
from ackfsm.driving.live.faults.disk import SmallDisk
from ackfsm.driving.live.faults.power import Kept, Recording
from ackfsm.driving.live.processes import Group, free_ports, listens, until
from ackfsm.terms import Destination, HostError, InputError

__all__ = ["ANSWERS", "DURABLE", "SHARED", "SUBSCRIPTIONS", "Broker", "LiveBroker", "Subscription", "program"]

_STARTS: Final = 120.0
"""Seconds: on a busy machine a JVM that starts in two may take twenty."""
_STOPS: Final = 30.0
ANSWERS: Final = 15.0
_SETTLES: Final = 2.0
"""Seconds within which a broker notices that a connection is gone, and what it held is in the queue again."""
_SOON: Final = 0.05
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription to a topic, which is there before anything is sent.

    Attributes:
        destination: what the tables call it.
        shared: whether several consumers may have it at once; else it is of one client, which is named as the topic is.
    """

    destination: Destination
    shared: bool


DURABLE: Final = "durable_subscription"
SHARED: Final = "shared_durable_subscription"
SUBSCRIPTIONS: Final[Mapping[str, Subscription]] = MappingProxyType(
    {
        DURABLE: Subscription(Destination.DURABLE_SUBSCRIPTION, shared=False),
        SHARED: Subscription(Destination.DURABLE_SUBSCRIPTION, shared=True),
    }
)
"""The kinds of queues that are subscriptions; topic and subscription have the name of the queue."""


class Broker(abc.ABC):
    """A broker that is driven by clients and asked for its queues.

    ``settings`` are by the vendor's names, as a profile of the tables has them, and of those that ``SETTINGS`` lists.
    """

    name: ClassVar[str]
    profile: ClassVar[str]
    """Of the tables; clients of another protocol may have another."""
    KINDS: ClassVar[Mapping[str, Mapping[str, str]]] = MappingProxyType({"": _NOTHING})
    """Of queues that can be declared, each with the vendor's settings that it is; the first is the default."""
    SETTINGS: ClassVar[Sequence[str]]
    LIMIT: ClassVar[tuple[str, int]] = ("", 0)
    """The vendor's limit of deliveries, if the tables do not translate it, and how many attempts there are more."""
    SEEN: ClassVar[Mapping[str, Mapping[str, object]]] = MappingProxyType({})
    """By protocol the settings of the tables that the broker has, where the profile is that of the client."""
    PORTS: ClassVar[Sequence[str]]
    """The protocols that are served at each port."""

    host: str
    ports: Mapping[str, int]
    """Where clients are served, by protocol: amqp (0-8 to 0-10), amqp1, core, openwire, stomp."""

    def __init__(self, settings: Mapping[str, str] = _NOTHING) -> None:
        if strange := sorted(set(settings) - set(self.SETTINGS)):
            raise InputError(f"{self.name} is not started with {strange[0]}; set one of {', '.join(self.SETTINGS)}")
        self.vendor_settings = MappingProxyType(dict(settings))

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """The vendor's."""

    def own(self, queue: str) -> str:
        """The name of a queue that is of this campaign alone."""
        return queue

    def declare(self, queue: str, kind: str = "") -> None:
        """Make a durable queue, of one of ``KINDS``; what is there already stays."""
        self._check(kind)
        self._declare(queue, kind)

    def _check(self, kind: str) -> None:
        if kind not in self.KINDS:
            kinds = ", ".join(filter(None, self.KINDS))
            remedy = f"declare one of {kinds}" if kinds else "leave it out"
            raise InputError(f"{self.name} has no {kind!r}; {remedy}")

    @abc.abstractmethod
    def _declare(self, queue: str, kind: str) -> None:
        """Make a queue of a kind that there is."""

    @abc.abstractmethod
    def remove(self, queue: str) -> None:
        """Remove a queue with its messages."""

    def over(self, queue: str) -> None:
        """Hear that a run is over, whose queue this was."""
        del queue

    @abc.abstractmethod
    def depth(self, queue: str) -> Depth:
        """What a queue has now, by the broker's own count."""

    def dead_letters_of(self, queue: str) -> str | None:
        """The queue in which its dead letters are, if it has any; ``None`` if that is not known."""
        del queue
        return None

    def settled(self, queue: str) -> Depth:
        """What a queue has once all consumers are gone, and what they held is in the queue again."""
        end = time.monotonic() + _SETTLES
        while (found := self.depth(queue)).unacknowledged and time.monotonic() < end:
            time.sleep(_SOON)
        return found

    def settings(self, kind: str = "", protocol: str = "") -> Mapping[str, Any]:
        """The settings of the profile that the vendor's, the kind of a queue and the client's protocol are."""
        self._check(kind)
        specification = tables.load()
        named = specification.profiles[specification.profile_of(self.profile)]
        words = {**self.KINDS[kind], **self.vendor_settings}
        limit, more = self.LIMIT
        given: dict[str, object] = {name: word for name, word in words.items() if named.vendor_alias(name)}
        if limit in words:
            given.pop(limit, None)
            given["max_delivery_attempts"] = int(words[limit]) + more
        where = {"destination": SUBSCRIPTIONS[kind].destination} if kind in SUBSCRIPTIONS else {}
        return {**self.SEEN.get(protocol, _NOTHING), **where, **specification.given(self.profile, given)}

    def resends(self, protocol: str) -> bool:
        """Whether the library of that protocol sends again by itself what it has told to be in doubt."""
        return bool(self.SEEN.get(protocol, _NOTHING).get("resend_in_doubt"))

    def child(self) -> LiveBroker:
        """The broker as one that can be stopped.  Raises :class:`InputError` if somebody else has started it."""
        raise InputError(f"{self.name} was started by somebody else, and is not stopped")


class LiveBroker(Broker):
    """A child of ours, which keeps all its files in ``folder`` and serves clients of this machine alone.

    What ``environment`` adds reaches the broker's processes.  With a folder ``notes``, in which they note what they do
    to its files, the broker can lose power; with a ``disk``, on which its folder lies, its journal can fail.  A block
    ``with`` starts the broker, and kills it at last.
    """

    host = "127.0.0.1"
    MORE_PORTS: ClassVar[int] = 1
    """That clients do not use; the first is that at which we ask the broker."""

    def __init__(  # noqa: PLR0913 - each has a default, and is given by name
        self,
        folder: Path,
        settings: Mapping[str, str] = _NOTHING,
        *,
        environment: Mapping[str, str] = _NOTHING,
        jvm: Sequence[str] = java.OPTIONS,
        notes: Path | None = None,
        disk: SmallDisk | None = None,
    ) -> None:
        super().__init__(settings)
        if lack := self.lacks():
            raise java.UnavailableError(lack)
        self.folder = folder.resolve()
        self._environment, self._jvm = environment, tuple(jvm)
        self._notes, self._disk = notes, disk
        self._recording: Recording | None = None
        numbers = free_ports(len(self.PORTS) + self.MORE_PORTS)
        served = zip(self.PORTS, numbers, strict=False)
        self.ports = MappingProxyType(
            {protocol: number for protocols, number in served for protocol in protocols.split()}
        )
        self._more_ports = numbers[len(self.PORTS) :]
        self._group: Group | None = None

    @property
    @abc.abstractmethod
    def dead_letters(self) -> str:
        """The queue of messages that have used up their attempts, or were rejected."""

    @classmethod
    @abc.abstractmethod
    def lacks(cls) -> str:
        """What is missing on this machine to start the broker, and how that is had; empty if nothing is."""

    @abc.abstractmethod
    def _command(self) -> Sequence[str]:
        """What to run; the files that the program reads are written before."""

    def child(self) -> LiveBroker:
        """The broker itself."""
        return self

    def start(self) -> None:
        """Start over what is in the folder; returns when clients are served."""
        if self._group is not None:
            raise InputError(f"{self.name} runs already; stop or kill it first")
        self.folder.mkdir(parents=True, exist_ok=True)
        command, output, recorded = self._command(), self.folder / "output", _NOTHING
        if self._notes is not None:
            output.touch()  # a file that is written to is to be known before
            self._recording = Recording(self.folder, self._notes)
            recorded = self._recording.environment
        group = Group(command, self.folder, output, {**self._variables(), **recorded})
        self._group = group
        try:
            until(lambda: not group.runs or self._serves(), f"{self.name} serves clients", _STARTS)
        except HostError:
            self.kill()
            raise
        if not group.runs:
            self.kill()
            raise HostError(f"{self.name} ended as it started: {group.last_words}")
        self._declare(self.dead_letters, "")

    def stop(self) -> None:
        """Shut the broker down as its vendor does, and wait for its end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker with all that it started (SIGKILL), and wait until its ports are free."""
        self._end(signal.SIGKILL)

    def renew(self) -> None:
        """Throw away all files of the broker, which does not run, and start over nothing."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.start()

    def settle(self) -> None:
        """Let all that was written so far be on the disk, as that of a broker that was set up and left alone."""
        if self._recording is not None:
            self._recording.sync()

    def lose_power(self) -> None:
        """Kill the broker, and leave of its files what had been synced before.

        Raises :class:`HostError` if it writes in ways that are not recorded: then its files are as they are.
        """
        self.kill()
        if self._recording is None:
            raise InputError(f"{self.name} is not recorded; make it with a folder for notes")
        if unseen := self._recording.unseen():
            raise HostError(f"what a loss of power leaves of {self.name} cannot be told: {unseen[0]}")
        self._recording.at(time.monotonic_ns()).restore(self.folder, Kept.NONE)

    def fill_disk(self) -> None:
        """Let the broker's disk be full."""
        if self._disk is None:
            raise InputError(f"{self.name} has no disk of its own; make it with one")
        self._disk.fill()

    def fail_journal(self) -> None:
        """Let the broker's disk be full, end the broker, if it has not ended by itself, and give room again."""
        self.fill_disk()
        self.kill()
        if self._disk is not None:
            self._disk.empty()

    def pause(self) -> None:
        """Stop all processes of the broker (SIGSTOP): connections stay, and nothing is answered."""
        self._running().send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the processes of the broker go on (SIGCONT)."""
        self._running().send(signal.SIGCONT)

    def declare(self, queue: str, kind: str = "") -> None:
        """See :meth:`Broker.declare`; no loss of power takes it back."""
        super().declare(queue, kind)
        self.settle()

    def _declare(self, queue: str, kind: str) -> None:
        self._asked(f"{kind or 'queue'} {queue}")

    def remove(self, queue: str) -> None:
        """Remove a queue with its messages."""
        self._asked(f"remove {queue}")

    def depth(self, queue: str) -> Depth:
        """What a queue has now, by the broker's own count."""
        ready, unacknowledged = self._asked(f"depth {queue}").split()
        return Depth(int(ready), int(unacknowledged))

    def dead_letters_of(self, queue: str) -> str | None:
        """One for all queues."""
        del queue
        return self.dead_letters

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _end(self, number: signal.Signals) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.end(number, _STOPS)
            ports = {*self.ports.values(), *self._more_ports}
            until(lambda: not any(map(listens, ports)), f"the ports of {self.name} are free")

    def _running(self) -> Group:
        if self._group is None:
            raise InputError(f"{self.name} does not run; start it first")
        return self._group

    def _variables(self) -> Mapping[str, str]:
        return {**os.environ, **self._environment}

    def _serves(self) -> bool:
        """Whether clients are served, which may be some time after the ports are open."""
        try:
            return self._asked("serves") == "true" and all(map(listens, self.ports.values()))
        except HostError:
            return False

    def _asked(self, line: str) -> str:
        """The answer to a line, by a program of ours in the broker's process."""
        try:
            with socket.create_connection(("127.0.0.1", self._more_ports[0]), ANSWERS) as connection:
                connection.sendall(line.encode() + b"\n")
                with connection.makefile(encoding="utf-8") as answers:
                    answer = answers.readline().strip()
        except OSError as error:
            raise HostError(f"{self.name} does not answer {line!r}: {error}") from error
        if not answer or answer.startswith("error"):
            raise HostError(f"{self.name} does not do {line!r}: {answer or 'it hung up'}")
        return answer


def program(name: str) -> Path:
    """A program of ours that a broker runs."""
    return Path(__file__).parent / "programs" / name
