"""The vocabulary: modes, faults, anomalies, the configuration, and the two kinds of error.

Every name here is the field's own (JMS, AMQP, model checking) and is the name in every
output, on every command line and in every table of ``spec/``.  What a value *does* is not
here: that is in the rows of ``spec/machines``.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Mapping
from enum import StrEnum

from ackfsm.text import meant, quoted, shown

__all__ = [
    "AckEventMode",
    "AckMode",
    "AckScope",
    "AckfsmError",
    "Anomaly",
    "AttemptsExhausted",
    "Configuration",
    "Consumption",
    "DefectError",
    "DeliveryCountFrom",
    "DeliveryMode",
    "Destination",
    "DupsOkAcknowledgement",
    "Fault",
    "HostError",
    "InputError",
    "ListenerException",
    "Maybe",
    "NonPersistentHandling",
    "OutcomeScope",
    "Outcomes",
    "PreAcknowledgeBy",
    "PrefetchFreed",
    "Profile",
    "ReceiverSettles",
    "SendMode",
    "SpecError",
    "TransactionJournalling",
    "UnwindowedConfirm",
    "Verdict",
    "Written",
    "check_names",
    "check_number",
    "is_optional",
    "key_type",
    "legal_values",
    "parse_value",
]


class AckfsmError(Exception):
    """Anything that this package refuses; the message is one sentence for the person who can mend it."""


class InputError(AckfsmError):
    """The user's input is at fault: an option, a setting, a history.  Names the place and the remedy."""


class SpecError(AckfsmError):
    """A table of ``spec/`` is at fault.  Names file, line and remedy."""


class HostError(AckfsmError):
    """The machine that this runs on failed, not the input: a full disk, no memory, a worker that was killed."""


class DefectError(AckfsmError):
    """This package contradicts itself, and gives no answer rather than a wrong one; it asks for a report."""

    def __str__(self) -> str:
        """Return the defect, and the remedy."""
        return f"{super().__str__()}; this is a defect of ackfsm: please report it with what you asked for"


class Profile(StrEnum):
    """A system whose defaults, legal values and deviations apply (``spec/profiles``)."""

    JMS = "jms"
    EMS = "ems"
    SOLACE = "solace"
    SOLACE_JMS = "solace-jms"
    QPID = "qpid"
    QPID_JMS = "qpid-jms"
    ARTEMIS = "artemis"
    ACTIVEMQ = "activemq"
    RABBITMQ = "rabbitmq"


class DeliveryMode(StrEnum):
    """The producer's demand on the broker for a message (JMS 3.1 section 7.7, EMS, Solace)."""

    PERSISTENT = "PERSISTENT"
    NON_PERSISTENT = "NON_PERSISTENT"
    RELIABLE = "RELIABLE"
    DIRECT = "DIRECT"


class AckMode(StrEnum):
    """When and by whom a delivered message is acknowledged (JMS 3.1 section 6.2.10 and the vendors' own)."""

    AUTO_ACKNOWLEDGE = "AUTO_ACKNOWLEDGE"
    CLIENT_ACKNOWLEDGE = "CLIENT_ACKNOWLEDGE"
    DUPS_OK_ACKNOWLEDGE = "DUPS_OK_ACKNOWLEDGE"
    SESSION_TRANSACTED = "SESSION_TRANSACTED"
    PRE_ACKNOWLEDGE = "PRE_ACKNOWLEDGE"
    NO_ACKNOWLEDGE = "NO_ACKNOWLEDGE"
    INDIVIDUAL_ACKNOWLEDGE = "INDIVIDUAL_ACKNOWLEDGE"
    EXPLICIT_CLIENT_ACKNOWLEDGE = "EXPLICIT_CLIENT_ACKNOWLEDGE"
    EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE = "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE"


class Consumption(StrEnum):
    """How the application gets a message: it calls ``receive()``, or its listener is called."""

    RECEIVE = "receive"
    LISTENER = "listener"


class SendMode(StrEnum):
    """What ``send()`` waits for: the outcome, nothing now (the outcome comes later), nothing ever."""

    BLOCKING = "blocking"
    ASYNCHRONOUS = "asynchronous"
    UNCONFIRMED = "unconfirmed"


class AckEventMode(StrEnum):
    """How a publisher's library reports acknowledged messages (Solace)."""

    PER_MESSAGE = "PER_MESSAGE"
    WINDOWED = "WINDOWED"


class AckScope(StrEnum):
    """Which deliveries one acknowledgement covers."""

    SESSION = "session"
    UP_TO = "up_to"
    MESSAGE = "message"


class ListenerException(StrEnum):
    """The library's reaction to an exception of the application's listener."""

    REDELIVER = "redeliver"
    RECOVER = "recover"
    NEXT_MESSAGE = "next_message"
    SWALLOW = "swallow"
    ACKNOWLEDGE = "acknowledge"


class NonPersistentHandling(StrEnum):
    """The broker's way with a NON_PERSISTENT message: in memory, stored, or passed on unacknowledged."""

    VOLATILE = "volatile"
    STORED = "stored"
    DIRECT = "direct"


class TransactionJournalling(StrEnum):
    """Whether one journal record makes a transaction count, or each of its messages is stored by itself."""

    ATOMIC = "atomic"
    PER_MESSAGE = "per_message"


class UnwindowedConfirm(StrEnum):
    """What completes an asynchronous send where there is no window: the broker's answer, or the write to the socket."""

    BROKER = "broker"
    SOCKET_WRITE = "socket_write"


class PreAcknowledgeBy(StrEnum):
    """Who settles a message of PRE_ACKNOWLEDGE: the client before it delivers, or the broker as it dispatches."""

    CLIENT = "client"
    BROKER = "broker"


class DupsOkAcknowledgement(StrEnum):
    """How a DUPS_OK_ACKNOWLEDGE session acknowledges: lazily, a batch at a time, or each message as AUTO does."""

    LAZY = "lazy"
    AUTOMATIC = "automatic"


class PrefetchFreed(StrEnum):
    """What makes room within the prefetch bound: the delivery to the application, or its acknowledgement (or commit).

    ``on_delivery`` counts what waits in the client's buffer, ``on_acknowledge`` also what the application has had;
    ``on_dispatch`` counts nothing, as what is settled as it is sent waits for nobody.
    """

    ON_DELIVERY = "on_delivery"
    ON_ACKNOWLEDGE = "on_acknowledge"
    ON_DISPATCH = "on_dispatch"


class DeliveryCountFrom(StrEnum):
    """The event that raises the count of delivery attempts: dispatch, delivery, or the application's answer.

    ``acknowledgement`` (Artemis) counts what is acknowledged, and of what recover() gives back the first.
    """

    DISPATCH = "dispatch"
    DELIVERY = "delivery"
    ACKNOWLEDGEMENT = "acknowledgement"


class Destination(StrEnum):
    """The source of a consumer: a queue, or a subscription to a topic, durable or not."""

    QUEUE = "queue"
    DURABLE_SUBSCRIPTION = "durable_subscription"
    NON_DURABLE_SUBSCRIPTION = "non_durable_subscription"


class AttemptsExhausted(StrEnum):
    """What becomes of a message that has used up its attempts.

    The broker keeps it as a dead letter, or destroys it; or it stays in its queue, for other consumers than this one.
    """

    DEAD_LETTER = "dead_letter"
    DESTROY = "destroy"
    OTHER_CONSUMERS = "other_consumers"


class Outcomes(StrEnum):
    """What an application can say of one delivery: each value has those before it as well.

    ``accepted`` is the acknowledgement alone; ``rejected`` also that it failed, or is not to come again;
    ``released`` also that the delivery does not count; ``undeliverable`` that it is to go to other consumers.
    """

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    UNDELIVERABLE = "undeliverable"


class OutcomeScope(StrEnum):
    """Which deliveries one release or rejection covers: its own, or all that were delivered up to it (``multiple``)."""

    MESSAGE = "message"
    UP_TO = "up_to"


class ReceiverSettles(StrEnum):
    """When a receiver settles a delivery (AMQP 1.0 rcv-settle-mode).

    ``first``: as it states the outcome; ``second``: when it hears that the sender has settled.
    """

    FIRST = "first"
    SECOND = "second"


class Written(StrEnum):
    """What an answer of the broker may also wait for, beside the sync (true) and nothing (false): the write."""

    WRITTEN = "written"


class Maybe(StrEnum):
    """A value beside true and false: it varies from time to time, and no record tells when."""

    MAYBE = "maybe"


class Fault(StrEnum):
    """What may go wrong, one at a time or several (``spec/machines/faults.yaml``)."""

    BROKER_CRASH = "broker_crash"
    BROKER_KILL = "broker_kill"
    PRODUCER_LINK_LOSS = "producer_link_loss"
    CONSUMER_LINK_LOSS = "consumer_link_loss"
    PRODUCER_CRASH = "producer_crash"
    CONSUMER_CRASH = "consumer_crash"
    LISTENER_EXCEPTION = "listener_exception"
    JOURNAL_FAILURE = "journal_failure"
    REJECTION = "rejection"


class Anomaly(StrEnum):
    """What may come of it; each is defined by the property machine of the same name in ``spec/properties``."""

    LOSS = "loss"
    UNPROCESSED = "unprocessed"
    DUPLICATE = "duplicate"
    UNFLAGGED_DUPLICATE = "unflagged_duplicate"
    REPROCESSED = "reprocessed"
    RESURRECTION = "resurrection"
    PHANTOM = "phantom"
    DIRTY_DELIVERY = "dirty_delivery"
    TORN_TRANSACTION = "torn_transaction"
    REORDER = "reorder"
    WINDOW_OVERRUN = "window_overrun"
    PREFETCH_OVERRUN = "prefetch_overrun"
    DOUBLE_OUTCOME = "double_outcome"
    MISSING_OUTCOME = "missing_outcome"
    EARLY_CONFIRM = "early_confirm"
    COUNT_REGRESSION = "count_regression"
    OVER_DELIVERED = "over_delivered"
    GHOST = "ghost"
    STUCK = "stuck"


class Verdict(StrEnum):
    """The verdict on a history.  ``unknown`` is never a pass."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One system with every switch set.

    There are no defaults here: a profile (``spec/profiles``) supplies them, see
    :meth:`ackfsm.tables.Specification.configure`.  ``publish_window`` and ``confirm_threshold`` count
    messages, ``None`` means that there is none; ``journal_sync_non_transactional`` and
    ``journal_sync_transactional`` say what an answer waits for: the sync (true), the write (:class:`Written`)
    or nothing (false); ``prefetch`` counts messages, 0 means no
    bound; ``max_delivery_attempts`` 0 means no limit.  ``delivery_count_persisted`` says
    whether the count outlives the broker (where the redelivered mark does),
    ``undelivered_marks_redelivered`` whether a dispatch that reached no application marks
    the message, ``ended_consumer_marks_redelivered`` whether what a consumer held that was closed or lost is marked
    (if not, it may be), ``closed_consumer_gives_back`` whether a consumer that is closed gives back what its
    application was handed and has not acknowledged (if not, that stays with its session), ``requeue_clears_mark``
    whether a requeue takes the mark away,
    ``restart_marks_redelivered`` whether a broker that starts again marks all that it finds, or may (:class:`Maybe`).
    ``attempts_exhausted`` says what becomes of a message that has used up its attempts, ``release_counts`` whether a
    delivery that is released is one of them, ``rejected_comes_again`` whether what a consumer rejects is delivered
    again as if it had failed, ``time_to_live``
    whether messages may expire, ``expires_in_hand`` whether also one that a consumer has not acknowledged may,
    ``rejection_excludes_delivery`` whether what the broker has rejected is
    delivered by no queue, ``exclusive_consumer`` whether one consumer of the queue is sent all messages
    while the others wait, ``session_reattachment`` whether a session that sends outlives its connection,
    ``consumer_reattachment`` whether one that consumes does,
    ``transacted_completion`` whether an asynchronous send completes in a transaction too, before its commit,
    ``duplicate_dooms_transaction`` whether a duplicate that the broker finds takes its whole transaction with it,
    ``outcomes`` what an application can say of a delivery besides acknowledging it,
    ``outcome_scope`` which deliveries a release or a rejection covers,
    ``transacted_outcomes`` whether an outcome may be part of a transaction too, and is applied when that commits,
    ``receiver_settles`` whether a receiver settles as it states the outcome, or when the sender has settled,
    ``rollback_requeues`` whether a rollback gives back what was consumed, and does not leave that to the application,
    ``delivery_delay`` whether a message waits for its delivery time, ``redelivery_delay`` whether it waits again before
    each redelivery.

    ``profile`` is a :class:`Profile`, or the name of a profile that somebody has written
    himself (:meth:`ackfsm.tables.Specification.with_profile`).
    """

    profile: str
    delivery_mode: DeliveryMode
    ack_mode: AckMode
    consumption: Consumption
    non_persistent_handling: NonPersistentHandling
    send_mode: SendMode
    publish_window: int | None
    confirm_threshold: int | None
    confirm_timer: bool
    ack_immediately: bool
    ack_event_mode: AckEventMode
    journal_sync_non_transactional: bool | Written
    journal_sync_transactional: bool | Written
    block_on_acknowledge: bool
    queue_durable: bool
    destination: Destination
    redelivery_mark_persisted: bool
    resend_in_doubt: bool
    duplicate_detection: bool
    client_ack_scope: AckScope
    prefetch: int
    max_delivery_attempts: int
    listener_exception: ListenerException
    transaction_journalling: TransactionJournalling
    unwindowed_confirm: UnwindowedConfirm
    pre_acknowledge_by: PreAcknowledgeBy
    dups_ok_acknowledgement: DupsOkAcknowledgement
    prefetch_freed: PrefetchFreed
    delivery_count_persisted: bool
    delivery_count_from: DeliveryCountFrom
    undelivered_marks_redelivered: bool
    ended_consumer_marks_redelivered: bool
    closed_consumer_gives_back: bool
    rejected_comes_again: bool
    requeue_clears_mark: bool
    restart_marks_redelivered: bool | Maybe
    attempts_exhausted: AttemptsExhausted
    time_to_live: bool
    expires_in_hand: bool
    rejection_excludes_delivery: bool
    exclusive_consumer: bool
    session_reattachment: bool
    consumer_reattachment: bool
    transacted_completion: bool
    duplicate_dooms_transaction: bool
    outcomes: Outcomes
    outcome_scope: OutcomeScope
    release_counts: bool
    transacted_outcomes: bool
    receiver_settles: ReceiverSettles
    rollback_requeues: bool
    delivery_delay: bool
    redelivery_delay: bool

    def as_dict(self) -> dict[str, str | int | bool | None]:
        """The configuration as plain JSON values, in the order of the fields."""
        return {
            field.name: value.value if isinstance(value, StrEnum) else value
            for field in dataclasses.fields(self)
            for value in (getattr(self, field.name),)
        }


def check_number(what: str, value: object, least: int = 1, *, optional: bool = True) -> None:
    """Raise :class:`InputError` unless ``value`` is a whole number from ``least`` or, if that is ``optional``, None."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        legal = f"a whole number from {least}" + (", or None for no limit" if optional else "")
        raise InputError(f"{what} cannot be {_told(value)}; it is {legal}")


def check_names(what: str, value: object) -> None:
    """Raise :class:`InputError` unless ``value`` is a collection of texts; a single text is refused."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InputError(f"{what} cannot be {_told(value)}; it is a set of names, in Python {{'name'}}")
    for name in value:
        if not isinstance(name, str):
            raise InputError(f"{what} cannot have {_told(name)}; all that is in it are names")


_TYPES: Mapping[str, object] = types.MappingProxyType({**typing.get_type_hints(Configuration), "profile": Profile})


def key_type(key: str) -> type[StrEnum | bool | int]:
    """The type of a configuration key's value (``int`` also where ``None`` is allowed, ``bool`` also beside words).

    Raises :class:`InputError` for a key that does not exist.
    """
    if key not in _TYPES:
        remedy = meant(key, _TYPES) or "; `ackfsm where` shows all of them"
        raise InputError(f"there is no setting {quoted(key)}{remedy}")
    return _kinds(key)[0]


def is_optional(key: str) -> bool:
    """Whether the value of a configuration key may be ``None``."""
    return types.NoneType in _kinds(key)


def legal_values(key: str) -> tuple[StrEnum | bool, ...]:
    """All values of a configuration key, true before false; of a number, which has no list of them, none.

    Raises :class:`InputError` for a key that does not exist.
    """
    key_type(key)
    kinds: list[typing.Any] = [(True, False) if kind is bool else kind for kind in _kinds(key)]
    return tuple(value for kind in kinds if isinstance(kind, tuple) or issubclass(kind, StrEnum) for value in kind)


def _kinds(key: str) -> tuple[type, ...]:
    """The types of a key's value; the first is that of all numbers, or of true and false."""
    return typing.get_args(_TYPES[key]) or (typing.cast("type", _TYPES[key]),)


def parse_value(key: str, value: object) -> StrEnum | bool | int | None:
    """The value of a setting, from text (``--set key=value``), JSON or YAML.

    Raises :class:`InputError` that lists what would have been legal.
    """
    kind = key_type(key)
    if issubclass(kind, StrEnum):
        return _member(key, kind, value)
    if kind is bool:
        return _boolean(key, value)
    return _count(key, value)


_SPELLED: Mapping[str, bool] = types.MappingProxyType({"synced": True, "nothing": False})
"""What an answer waits for, as a word, for the settings that also know :class:`Written`."""


def _told(value: object) -> str:
    """A value that is not legal, as a person wrote it; escaped and short."""
    return quoted(value) if isinstance(value, str) else shown(repr(value))


def _member(key: str, kind: type[StrEnum], value: object) -> StrEnum:
    if isinstance(value, kind):
        return value
    try:
        return kind(str(value))
    except ValueError:
        legal = ", ".join(member.value for member in kind)
        hint = meant(value, [member.value for member in kind])
        raise InputError(f"{key} cannot be {_told(value)}{hint}; it is one of {legal}") from None


def _boolean(key: str, value: object) -> StrEnum | bool:
    legal = legal_values(key)
    words = {str(each).lower(): each for each in legal}
    if Written.WRITTEN in legal:
        words |= _SPELLED
    if isinstance(value, (bool, str)) and str(value).lower() in words:
        return words[str(value).lower()]
    *first, last = words
    raise InputError(f"{key} cannot be {_told(value)}{meant(value, words)}; it is {', '.join(first)} or {last}")


_LEAST = {"confirm_threshold": 1}
"""Numbers that are not from 0: a broker that answers as soon as 0 messages wait has always something to answer."""


def _count(key: str, value: object) -> int | None:
    optional, least = is_optional(key), _LEAST.get(key, 0)
    if optional and (value is None or value == "none"):
        return None
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool) and number >= least:
        return number
    legal = f"a whole number from {least}" + (", or none" if optional else "")
    raise InputError(f"{key} cannot be {_told(value)}; it is {legal}")
