"""The names of the tables that Python refers to: each stands here alone, and is checked when the tables are read.

A name that the tables change is changed here too; Python elsewhere says ``Event.SEND``, never ``"send"``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class Event(enum.StrEnum):
    """Events of ``spec/events.yaml``."""

    SEND = "send"
    SEND_IN_TRANSACTION = "send_in_transaction"
    SEND_TIMED_OUT = "send_timed_out"
    RESEND = "resend"
    ACCEPT = "accept"
    COMMIT_CALLED = "commit_called"
    ROLLBACK = "rollback"
    EXECUTE_COMMIT = "execute_commit"
    DISPATCH_FIRST = "dispatch_first"
    DISPATCH_AGAIN = "dispatch_again"
    ARRIVE = "arrive"
    DELIVERED_CLEAR = "delivered_clear"
    DELIVERED_FLAGGED = "delivered_flagged"
    PROCESSED = "processed"
    PROCESSED_IN_VAIN = "processed_in_vain"
    LISTENER_EXCEPTION = "listener_exception"
    ACKNOWLEDGE = "acknowledge"
    SETTLE = "settle"
    SETTLE_RELEASED = "settle_released"
    SETTLE_FAILED = "settle_failed"
    SETTLE_UNDELIVERABLE = "settle_undeliverable"
    SETTLE_REJECTED = "settle_rejected"
    ACKNOWLEDGED = "acknowledged"
    ACK_IN_DOUBT = "ack_in_doubt"
    REQUEUE = "requeue"
    RECOVER = "recover"
    CONSUMER_CLOSE = "consumer_close"
    CONSUMER_COMMIT_CALLED = "consumer_commit_called"
    CONSUMER_ROLLBACK = "consumer_rollback"
    CREDIT_RETURNED = "credit_returned"
    EXECUTE_CONSUMER_COMMIT = "execute_consumer_commit"
    DEAD_LETTERED = "dead_lettered"
    DESTROYED = "destroyed"
    MISSED = "missed"
    REJECTION = "rejection"
    PRODUCER_CLOSE = "producer_close"
    PRODUCER_CRASH = "producer_crash"
    PRODUCER_LINK_LOSS = "producer_link_loss"
    PRODUCER_LINK_UP = "producer_link_up"
    PRODUCER_REATTACHED = "producer_reattached"
    CONSUMER_CRASH = "consumer_crash"
    CONSUMER_LINK_LOSS = "consumer_link_loss"
    CONSUMER_LINK_UP = "consumer_link_up"
    CONSUMER_REATTACHED = "consumer_reattached"
    BROKER_CRASH = "broker_crash"
    BROKER_KILL = "broker_kill"
    JOURNAL_FAILURE = "journal_failure"
    BROKER_RESTART = "broker_restart"
    RECOVER_READY = "recover_ready"
    RECOVER_REMOVED = "recover_removed"
    RECOVER_LOST = "recover_lost"
    CONSUMER_CANCEL = "consumer_cancel"
    CONSUMER_RECOVER = "consumer_recover"
    OUTCOME_FORGOTTEN = "outcome_forgotten"
    RETURNED = "returned"
    LEASE_EXPIRED = "lease_expired"
    COMMIT_RETURNED = "commit_returned"
    CONSUMER_COMMIT_RETURNED = "consumer_commit_returned"
    CONFIRMED = "confirmed"
    CONFIRMED_BY_RANGE = "confirmed_by_range"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    COMMITTED = "committed"
    EXPIRED = "expired"
    TAKEN_ELSEWHERE = "taken_elsewhere"
    WRITE_RECORD = "write_record"
    SYNC_RECORD = "sync_record"


class Machine(enum.StrEnum):
    """Machines of ``spec/machines``."""

    PUBLICATION = "publication"
    COMPLETION = "completion"
    PUBLISH_FRAME = "publish_frame"
    DUPLICATE_ID = "duplicate_id"
    ENTRY = "entry"
    RECORD = "record"
    ACK_RECORD = "ack_record"
    REDELIVERY = "redelivery"
    DELIVERY_ATTEMPTS = "delivery_attempts"
    DELIVERY = "delivery"
    PROCESSING = "processing"
    ACK_CALL = "ack_call"
    REDELIVERED_FLAG = "redelivered_flag"
    TRANSACTION = "transaction"
    COMMIT_FRAME = "commit_frame"
    CONSUMER_TRANSACTION = "consumer_transaction"
    PRODUCER_LINK = "producer_link"
    CONSUMER_LINK = "consumer_link"
    CONSUMER_SESSION = "consumer_session"
    BROKER = "broker"
    ACK_FRAME = "ack_frame"
    RECOVERY = "recovery"


class Publication(enum.StrEnum):
    """States of the machine ``publication``."""

    RESOLVED = "resolved"


class Completion(enum.StrEnum):
    """States of the machine ``completion``."""

    NONE = "none"


class PublishFrame(enum.StrEnum):
    """States of the machine ``publish_frame``."""

    GONE = "gone"


class DuplicateId(enum.StrEnum):
    """States of the machine ``duplicate_id``."""

    UNKNOWN = "unknown"
    UNWRITTEN = "unwritten"
    UNSYNCED = "unsynced"
    KNOWN = "known"


class Entry(enum.StrEnum):
    """States of the machine ``entry``."""

    STAGED = "staged"
    COMMITTING = "committing"
    DELAYED = "delayed"
    SET_ASIDE = "set_aside"
    FOR_OTHERS = "for_others"
    READY = "ready"
    DISPATCHED = "dispatched"
    ACKED_IN_TRANSACTION = "acked_in_transaction"
    REMOVED = "removed"
    DISCARDED = "discarded"
    NOT_RECOVERED = "not_recovered"


class Record(enum.StrEnum):
    """States of the machines ``record`` and ``ack_record``."""

    WITH_COMMIT = "with_commit"
    DURABLE = "durable"


class Redelivery(enum.StrEnum):
    """States of the machine ``redelivery``."""

    CLEAR = "clear"
    COUNTED_OR_NOT = "counted_or_not"
    WITHDRAWN = "withdrawn"
    MARKED = "marked"


class Redelivered(enum.StrEnum):
    """States of the machine ``redelivered_flag``."""

    FLAGGED = "flagged"


class AckCall(enum.StrEnum):
    """States of the machine ``ack_call``."""

    NONE = "none"


class Transaction(enum.StrEnum):
    """States of the machine ``transaction``."""

    IDLE = "idle"


class CommitFrame(enum.StrEnum):
    """States of the machine ``commit_frame``."""

    DOOMED = "doomed"


class ConsumerTransaction(enum.StrEnum):
    """States of the machine ``consumer_transaction``."""

    IDLE = "idle"
    OPEN = "open"
    FAILED = "failed"


class ConsumerSession(enum.StrEnum):
    """States of the machine ``consumer_session``."""

    DETACHED = "detached"


class Process(enum.StrEnum):
    """States of the broker and of the links."""

    UP = "up"


class Condition(enum.StrEnum):
    """Conditions of ``spec/conditions.yaml``."""

    TRANSACTED = "transacted"
    COMPLETES_TRANSACTED_SENDS = "completes_transacted_sends"
    DIRECT = "direct"
    ACK_COVERS_LATER = "ack_covers_later"
    ACK_COVERS_EARLIER = "ack_covers_earlier"
    CLOSE_GIVES_BACK = "close_gives_back"
    ACKS_AUTOMATICALLY = "acks_automatically"
    ACKS_BEFORE_DELIVERY = "acks_before_delivery"
    CONFIRMS_PLAIN_SENDS = "confirms_plain_sends"
    CONFIRMS_ACKS = "confirms_acks"
    COMMIT_WAITS_FOR_SYNC = "commit_waits_for_sync"
    OFFERS_FAILED_AND_REJECTED = "offers_failed_and_rejected"
    CREDIT_FREED_ON_DELIVERY = "credit_freed_on_delivery"
    JOURNALLED = "journalled"


class Monitor(enum.StrEnum):
    """Machines of ``spec/properties``."""

    BLOCKED_SEND = "blocked_send"
    BLOCKED_ACKNOWLEDGE = "blocked_acknowledge"
    OPEN_TRANSACTION = "open_transaction"
    OPEN_CONSUMER_TRANSACTION = "open_consumer_transaction"
    IN_FLIGHT = "in_flight"


class Agent(enum.StrEnum):
    """Agents of ``spec/execution.yaml``."""

    APPLICATION = "application"
    LISTENER = "listener"
    LIBRARY = "library"
    PRODUCER_TO_BROKER = "producer_to_broker"
    BROKER_TO_PRODUCER = "broker_to_producer"
    CONSUMER_TO_BROKER = "consumer_to_broker"
    BROKER_TO_CONSUMER = "broker_to_consumer"
    BROKER = "broker"
    QUEUE = "queue"
    DISK = "disk"
    TIMER = "timer"
    RECOVERY = "recovery"
    OPERATOR = "operator"
    NEMESIS = "nemesis"
    NOT_IN_ENGINE = "not_in_engine"


class AckFrom(enum.StrEnum):
    """What acknowledges, or requeues: ``decided_by`` in ``spec/execution.yaml``."""

    APPLICATION = "application"
    LIBRARY = "library"
    LIBRARY_LAZILY = "library_lazily"


STATES: Mapping[Machine, type[enum.StrEnum]] = MappingProxyType(
    {
        Machine.PUBLICATION: Publication,
        Machine.COMPLETION: Completion,
        Machine.PUBLISH_FRAME: PublishFrame,
        Machine.DUPLICATE_ID: DuplicateId,
        Machine.ENTRY: Entry,
        Machine.RECORD: Record,
        Machine.ACK_RECORD: Record,
        Machine.REDELIVERY: Redelivery,
        Machine.REDELIVERED_FLAG: Redelivered,
        Machine.ACK_CALL: AckCall,
        Machine.TRANSACTION: Transaction,
        Machine.COMMIT_FRAME: CommitFrame,
        Machine.CONSUMER_TRANSACTION: ConsumerTransaction,
        Machine.PRODUCER_LINK: Process,
        Machine.CONSUMER_LINK: Process,
        Machine.CONSUMER_SESSION: ConsumerSession,
        Machine.BROKER: Process,
    }
)

FRAMES = frozenset(
    {Agent.PRODUCER_TO_BROKER, Agent.BROKER_TO_PRODUCER, Agent.CONSUMER_TO_BROKER, Agent.BROKER_TO_CONSUMER}
)
"""The agents whose events are frames that are read."""

LINK_FAULTS: Mapping[tuple[str, str], Event] = MappingProxyType(
    {
        ("producer", "crash"): Event.PRODUCER_CRASH,
        ("producer", "link_loss"): Event.PRODUCER_LINK_LOSS,
        ("consumer", "crash"): Event.CONSUMER_CRASH,
        ("consumer", "link_loss"): Event.CONSUMER_LINK_LOSS,
    }
)
"""The fault of each kind of link."""

IN_FLIGHT = frozenset({Entry.DISPATCHED, Entry.ACKED_IN_TRANSACTION})
"""A message in these states is with a consumer, or acknowledged in a transaction that is open."""

IN_QUEUE = frozenset({Entry.READY}) | IN_FLIGHT
"""A message in these states is in the queue: neither of an open transaction any more nor removed."""

CLIENT_SIDE = (Machine.DELIVERY, Machine.PROCESSING, Machine.ACK_CALL)
"""The machines of a copy that say what a session has to do with it."""
