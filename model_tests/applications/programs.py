"""Programs that look like applications: a cast of senders and workers, and the phases that they go through.

A program is plain data, printed as the Python that makes it again.  Phases are drawn from one weighted list each time,
not as rules of a state machine of Hypothesis, which switches a random half of its rules off in every run (swarm
testing): rules that are always enabled then use up the steps.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias, TypeVar

from ackfsm.terms import AckMode, Configuration, Consumption, InputError, Profile
from model_tests.support.tables import shipped

__all__ = [
    "Chance",
    "Close",
    "Consume",
    "Fault",
    "House",
    "Phase",
    "Program",
    "Recover",
    "Refuse",
    "Resend",
    "Rest",
    "Restart",
    "Send",
    "Sender",
    "Strike",
    "Throw",
    "Wait",
    "Worker",
    "houses",
    "program",
]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Sender:
    """A client that sends to one queue."""

    queue: str = "a"
    transacted: bool = False


@dataclasses.dataclass(frozen=True)
class Worker:
    """A client with one session that consumes from ``queues``, a consumer each, and may send to ``output``."""

    queues: tuple[str, ...] = ("a",)
    output: str | None = None
    ack_mode: str = "AUTO_ACKNOWLEDGE"
    consumption: str = "receive"
    at_once: bool = True
    """Whether a listener acknowledges or commits before it returns."""


@dataclasses.dataclass(frozen=True)
class Strike:
    """A fault in the midst of a phase: after ``after`` more events, of those named ``on`` if it is given.

    Where frames take time and no event is named, it strikes after so many 60 microseconds.
    """

    fault: str
    after: int
    on: str = ""


@dataclasses.dataclass(frozen=True)
class Send:
    """A sender, or a worker with an output, sends; ``end`` is ``commit``, ``rollback`` or ``""``."""

    who: int = 0
    number: int = 1
    end: str = "commit"
    mixed: bool = False
    """Whether every second message is NON_PERSISTENT."""
    strike: Strike | None = None


@dataclasses.dataclass(frozen=True)
class Consume:
    """A worker receives up to ``number`` messages, sending an output for each if it has one.

    ``end``: acknowledge or commit ``each``, the ``last``, ``none``, or ``rollback``.
    """

    who: int = 0
    number: int = 1
    end: str = "each"
    timeout: float | None = None
    strike: Strike | None = None


@dataclasses.dataclass(frozen=True)
class Resend:
    """A sender sends again what is in doubt."""

    who: int = 0


@dataclasses.dataclass(frozen=True)
class Wait:
    """A sender waits for all outcomes."""

    who: int = 0
    strike: Strike | None = None


@dataclasses.dataclass(frozen=True)
class Recover:
    """A worker recovers its session, or rolls it back."""

    who: int = 0


@dataclasses.dataclass(frozen=True)
class Throw:
    """The worker's listener throws at the next messages."""

    who: int = 0
    number: int = 1


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault; ``who`` is hit if it is one of a client (senders first, then workers)."""

    kind: str = "kill"
    who: int = 0


@dataclasses.dataclass(frozen=True)
class Close:
    """A client closes its connection; it comes back when it has something to do."""

    who: int = 0
    returns: bool = True


@dataclasses.dataclass(frozen=True)
class Restart:
    """All processes end, and another broker opens the journal.

    ``how``: clients and broker are ``close``d; or the broker first gets a ``kill`` or a ``crash``.
    """

    how: str = "kill"


@dataclasses.dataclass(frozen=True)
class Refuse:
    """A queue refuses what comes next."""

    queue: str = "a"
    number: int = 1


@dataclasses.dataclass(frozen=True)
class Rest:
    """So many things happen by themselves; ``None``: all that can."""

    steps: int | None = None


Phase: TypeAlias = Send | Consume | Resend | Wait | Recover | Throw | Fault | Close | Restart | Refuse | Rest


@dataclasses.dataclass(frozen=True)
class Program:
    """One run: a broker, its cast, what they do, and how it ends before everything is drained."""

    profile: str = "jms"
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)
    pace: str = "AtOnce()"
    seed: int = 0
    senders: tuple[Sender, ...] = (Sender(),)
    workers: tuple[Worker, ...] = (Worker(),)
    phases: tuple[Phase, ...] = ()
    ending: str = "close"
    """What becomes of the clients: ``close`` or ``die``."""

    @property
    def is_modelled(self) -> bool:
        """Whether the model has it: one queue, one session on each side."""
        if len(self.senders) != 1 or len(self.workers) != 1:
            return False
        worker, sender = self.workers[0], self.senders[0]
        alike = sender.transacted == (worker.ack_mode == "SESSION_TRANSACTED")
        return alike and worker.output is None and worker.queues == (sender.queue,)


@dataclasses.dataclass(frozen=True)
class House:
    """A system with its settings, and the ways to consume that it has under them."""

    profile: str
    settings: Mapping[str, object]
    modes: tuple[tuple[str, str], ...]
    """Acknowledgement mode and consumption."""


class Chance:
    """Where a program is drawn from: a seed."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def number(self, least: int, most: int) -> int:
        """A whole number."""
        return self._random.randint(least, most)

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        return self._random.choice(options)


# Houses


def _often(**weights: int) -> tuple[str, ...]:
    """Each name so often as its weight says."""
    return tuple(name for name, weight in weights.items() for _ in range(weight))


_DEFAULT = "default"

_SETTINGS: Mapping[str, Sequence[object]] = {
    "delivery_mode": (*["PERSISTENT"] * 9, *["NON_PERSISTENT"] * 2, "RELIABLE", "DIRECT"),
    "send_mode": (*[_DEFAULT] * 3, *["blocking"] * 4, *["asynchronous"] * 5, "unconfirmed"),
    "publish_window": (_DEFAULT, _DEFAULT, 1, 2, 3),
    "confirm_threshold": (_DEFAULT, None, 1, 2, 2),
    "confirm_timer": (_DEFAULT, True),
    "ack_event_mode": (_DEFAULT, *["WINDOWED"] * 4),
    "ack_immediately": (*[_DEFAULT] * 5, True),
    "journal_sync_non_transactional": (_DEFAULT, True, True, False),
    "journal_sync_transactional": (_DEFAULT, True, True, False),
    "block_on_acknowledge": (_DEFAULT, _DEFAULT, True, False),
    "queue_durable": (*[_DEFAULT] * 9, False),
    "redelivery_mark_persisted": (*[_DEFAULT] * 3, True, False),
    "resend_in_doubt": (_DEFAULT, True, True),
    "duplicate_detection": (_DEFAULT, True, True),
    "client_ack_scope": (_DEFAULT, _DEFAULT, "session", "up_to", "message"),
    "prefetch": (*[_DEFAULT] * 3, 0, 1, 1, 2, 3),
    "max_delivery_attempts": (*[_DEFAULT] * 4, 0, 2, 3),
    "attempts_exhausted": (_DEFAULT, _DEFAULT, "dead_letter", "destroy"),
    "delivery_delay": (*[_DEFAULT] * 7, True),
    "redelivery_delay": (*[_DEFAULT] * 7, True),
    "listener_exception": (_DEFAULT, _DEFAULT, "redeliver", "next_message", "swallow", "acknowledge"),
}
"""How often a value is tried; one that the system refuses beside those before it is left at its default."""


@functools.cache
def houses(seed: int, number: int) -> tuple[House, ...]:
    """So many systems, every profile in turn."""
    return tuple(_house(Chance(f"house {seed} {n}"), list(Profile)[n % len(Profile)].value) for n in range(number))


def _house(chance: Chance, profile: str) -> House:
    settings: dict[str, object] = {}
    had = modes(profile, settings)
    for key, options in _SETTINGS.items():
        value = chance.pick(options)
        if value == _DEFAULT:
            continue
        left = modes(profile, {**settings, key: value})
        if len(left) > len(had) / 2:
            settings[key], had = value, left
    first = configured(profile, {**settings, "ack_mode": had[0][0], "consumption": had[0][1]})
    if first is not None and first.confirm_threshold is not None and not first.confirm_timer:
        settings["confirm_timer"] = True  # without it a last message may wait for its answer for ever
    return House(profile, settings, modes(profile, settings))


def modes(profile: str, settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The acknowledgement modes that the system has under these settings, each with a way to consume."""
    return tuple(
        (mode.value, how.value)
        for mode in AckMode
        for how in Consumption
        if configured(profile, {**settings, "ack_mode": mode, "consumption": how}) is not None
    )


def configured(profile: str, settings: Mapping[str, object]) -> Configuration | None:
    """The configuration, ``None`` for one that the system does not have."""
    plain = tuple((key, value.value if isinstance(value, StrEnum) else value) for key, value in settings.items())
    return _configured(profile, plain)


@functools.lru_cache(maxsize=20_000)
def _configured(profile: str, settings: tuple[tuple[str, object], ...]) -> Configuration | None:
    try:
        return shipped().configure(profile, dict(settings))
    except InputError:
        return None


# Programs

_TRANSACTED = "SESSION_TRANSACTED"
_QUEUES = ("a", "b", "c")
_PACES = (
    *["AtOnce()"] * 3,
    *["Timed(seed={seed})"] * 4,
    "Timed(seed={seed}, loss=0.02)",
    "Timed(seed={seed}, loss=0.1)",
    *["Shuffled({seed})"] * 3,
)

_KINDS = _often(send=9, consume=11, fault=5, resend=3, wait=2, recover=2, throw=2, close=2, restart=2, refuse=5, rest=2)
_GROUPS = _often(phase=8, throw=2, doubt=3, commit=3)
_SENDING = ("send", "accept", "accept", "write_record", "sync_record", "confirm", "confirm")
_COMMITTING = (
    *("commit_called", "execute_commit", "execute_commit", "sync_commit", "confirm_commit"),
    *(
        "consumer_commit_called",
        "execute_consumer_commit",
        "execute_consumer_commit",
        "sync_consumer_commit",
        "confirm_consumer_commit",
    ),
    "acknowledge",
)
_STRIKES = _often(crash=3, kill=3, fail_journal=3, lose=5, die=2)
"""Of the broker: power loss, death of its process, a sync that fails.  Of a client: its connection, its process."""
_SHAPES = _often(modelled=2, moving=3, several=3)


def program(chance: Chance, among: Sequence[House]) -> Program:
    """A program on one of these houses."""
    house = chance.pick(among)
    shape = chance.pick(_SHAPES)
    senders, workers = _cast(chance, house, shape)
    seed = chance.number(0, 999)
    phases = tuple(_phases(chance, senders, workers))
    return Program(
        profile=house.profile,
        settings=house.settings,
        pace=chance.pick(_PACES).format(seed=seed),
        seed=seed,
        senders=senders,
        workers=workers,
        phases=phases,
        ending=chance.pick(("close", "close", "die")),
    )


def _cast(chance: Chance, house: House, shape: str) -> tuple[tuple[Sender, ...], tuple[Worker, ...]]:
    mode, how = chance.pick(house.modes)
    if any(m == _TRANSACTED for m, _ in house.modes) and chance.number(1, 10) <= (7 if shape == "moving" else 3):
        mode, how = chance.pick([each for each in house.modes if each[0] == _TRANSACTED])
    at_once = chance.number(0, 1) == 1
    if shape == "modelled":
        worker = Worker(("a",), None, mode, how, at_once)
        return (Sender("a", transacted=mode == _TRANSACTED),), (worker,)
    may = any(m == _TRANSACTED for m, _ in house.modes)
    if shape == "moving":
        first = Worker(chance.pick((("a",), ("a",), ("a", "b"))), "c", mode, how, at_once)
        senders = (Sender("a"), *(_sender(chance, transacted=may) for _ in range(chance.number(0, 1))))
        workers = (first, *(_worker(chance, house) for _ in range(chance.number(0, 1))))
        return senders, workers
    senders = (Sender("a", may and chance.number(0, 2) == 0),)
    senders += tuple(_sender(chance, transacted=may) for _ in range(chance.number(0, 2)))
    workers = (Worker(chance.pick((("a",), ("a", "b"), ("a", "a"))), None, mode, how, at_once),)
    workers += tuple(_worker(chance, house) for _ in range(chance.number(0, 2)))
    return senders, workers


def _sender(chance: Chance, *, transacted: bool) -> Sender:
    return Sender(chance.pick(_QUEUES[:2]), transacted and chance.number(0, 2) == 0)


def _worker(chance: Chance, house: House) -> Worker:
    mode, how = chance.pick(house.modes)
    queues = chance.pick((("a",), ("b",), ("a", "b"), ("c",)))
    output = chance.pick((None, None, "c")) if "c" not in queues else None
    return Worker(queues, output, mode, how, chance.number(0, 1) == 1)


def _phases(chance: Chance, senders: Sequence[Sender], workers: Sequence[Worker]) -> Iterator[Phase]:
    """First something is sent, so that there is something to do."""
    yield Send(0, chance.number(1, 4), chance.pick(("commit", "commit", "commit", "")), strike=_strike(chance, 6))
    for _ in range(chance.number(3, 10)):
        group = chance.pick(_GROUPS)
        if group == "throw":
            yield from _thrown(chance, senders, workers)
        elif group == "doubt":
            who = chance.number(0, len(senders) - 1)
            yield Send(who, chance.number(1, 2), strike=_aimed(chance, _SENDING))
            yield Resend(who)
        elif group == "commit":
            yield from _struck_commit(chance, senders, workers)
        else:
            yield _phase(chance, senders, workers)


def _thrown(chance: Chance, senders: Sequence[Sender], workers: Sequence[Worker]) -> Iterator[Phase]:
    """A listener throws at what comes next, and then the application gives it back, or goes on."""
    who = chance.number(0, len(workers) - 1)
    yield Throw(who, chance.number(1, 2))
    feeding = [n for n, sender in enumerate(senders) if sender.queue in workers[who].queues] or [0]
    yield Send(chance.pick(feeding), chance.number(1, 2))
    yield Consume(who, chance.number(1, 3), chance.pick(("rollback", "last", "none")))


def _struck_commit(chance: Chance, senders: Sequence[Sender], workers: Sequence[Worker]) -> Iterator[Phase]:
    """A fault in the midst of a commit."""
    strike = _aimed(chance, _COMMITTING)
    transacted = [n for n, sender in enumerate(senders) if sender.transacted]
    if transacted and chance.number(0, 1):
        yield Send(chance.pick(transacted), chance.number(1, 3), strike=strike)
    else:
        who = chance.number(0, len(workers) - 1)
        feeding = [n for n, sender in enumerate(senders) if sender.queue in workers[who].queues] or [0]
        yield Send(chance.pick(feeding), chance.number(1, 3))
        yield Consume(who, chance.number(1, 3), chance.pick(("each", "last")), None, strike)


def _aimed(chance: Chance, events: Sequence[str]) -> Strike:
    return Strike(chance.pick(_STRIKES), chance.pick((1, 1, 1, 2)), chance.pick(events))


def _phase(  # noqa: C901, PLR0911 - one case for each kind
    chance: Chance, senders: Sequence[Sender], workers: Sequence[Worker]
) -> Phase:
    kind = chance.pick(_KINDS)
    who = chance.number(0, len(workers) - 1)
    match kind:
        case "send":
            end = chance.pick((*_often(commit=5, rollback=1), ""))
            mixed = chance.number(0, 5) == 0
            return Send(chance.number(0, len(senders) - 1), chance.number(1, 4), end, mixed, _strike(chance, 3))
        case "consume":
            end = chance.pick(_often(each=4, last=4, none=3, rollback=2))
            timeout = chance.pick((None, None, 0.0, 0.001))
            return Consume(who, chance.number(1, 5), end, timeout, _strike(chance, 3))
        case "fault":
            return Fault(chance.pick(_STRIKES), chance.number(0, len(senders) + len(workers) - 1))
        case "resend":
            return Resend(chance.number(0, len(senders) - 1))
        case "wait":
            return Wait(chance.number(0, len(senders) - 1), _strike(chance, 2))
        case "recover":
            return Recover(who)
        case "throw":
            return Throw(who, chance.number(1, 2))
        case "close":
            return Close(chance.number(0, len(senders) + len(workers) - 1), chance.number(0, 3) > 0)
        case "restart":
            return Restart(chance.pick(("close", "kill", "crash")))
        case "refuse":
            return Refuse(chance.pick(("a", "a", "b", "c")), chance.number(1, 2))
        case _:
            return Rest(chance.pick((None, 1, 2, 5)))


def _strike(chance: Chance, one_in: int) -> Strike | None:
    if chance.number(1, one_in) > 1:
        return None
    return Strike(chance.pick(_STRIKES), chance.number(1, 25))
