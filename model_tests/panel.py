"""The panel: small systems that together make every row of the tables decide (see :mod:`model_tests.mutants`).

A system of the panel has the fewest messages, consumers and faults in which its rows decide.  What is said of one
part of the tables (closing, several consumers, transactions) stands in one function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import Fault, InputError, Profile

__all__ = ["System", "panel", "system_of"]


@dataclasses.dataclass(frozen=True)
class System:
    """One system of the panel: a configuration and the bounds of its search."""

    profile: str
    settings: tuple[tuple[str, object], ...]
    bounds: Bounds

    def network(self, specification: Specification) -> Network:
        """The system that the tables make of it."""
        return compose(specification, specification.configure(self.profile, dict(self.settings)), self.bounds)


def system_of(  # noqa: PLR0913 - bounds of a check, and settings
    profile: str = "jms",
    *,
    messages: int = 1,
    faults: int = 1,
    of: Collection[Fault] = tuple(Fault),
    actions: str = "",
    without: str = "",
    consumers: int = 1,
    one_session: bool = False,
    subscriptions: int = 1,
    non_durable: int = 0,
    **settings: object,
) -> System:
    """A system of any settings; all faults are considered, one at a time, unless others are said."""
    bounds = Bounds(
        messages=messages,
        faults=frozenset(of) if faults else frozenset[Fault](),
        max_faults=faults,
        actions=frozenset(actions.split()),
        without=frozenset(without.split()),
        consumers=consumers,
        one_session=one_session,
        subscriptions=subscriptions,
        non_durable=non_durable,
    )
    return System(profile, tuple(sorted(settings.items())), bounds)


_MODES = ("AUTO", "CLIENT", "DUPS_OK", "PRE", "NO", "INDIVIDUAL", "EXPLICIT_CLIENT", "EXPLICIT_CLIENT_DUPS_OK")
_SENDS = ("blocking", "asynchronous", "unconfirmed")
_LOSSES = (Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL)
_PRODUCER_FAULTS = (Fault.PRODUCER_LINK_LOSS, Fault.PRODUCER_CRASH, Fault.BROKER_KILL, Fault.REJECTION)
_BROKER_FAULTS = (Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE)
_OF_CONSUMER = (Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH)
_THROWN = (Fault.LISTENER_EXCEPTION,)
_KEPT = ("dead_letter", "destroy")
_SETTLES = ("settle_released", "settle_failed", "settle_undeliverable", "settle_rejected")
_ANY_SETTLE = " ".join(_SETTLES)
_TRANSACTED: Mapping[str, Any] = MappingProxyType({"ack_mode": "SESSION_TRANSACTED"})
_BARE: Mapping[str, Any] = MappingProxyType({"delivery_mode": "NON_PERSISTENT", "send_mode": "unconfirmed"})
_OUTCOMES: Mapping[str, Any] = MappingProxyType({"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "outcomes": "undeliverable"})
_UNSETTLED: Mapping[str, Any] = MappingProxyType({"receiver_settles": "second", "block_on_acknowledge": False})
_SECOND: Mapping[str, Any] = MappingProxyType({**_OUTCOMES, **_UNSETTLED})
_ENLISTED: Mapping[str, Any] = MappingProxyType(
    {**_TRANSACTED, "outcomes": "undeliverable", "transacted_outcomes": True}
)


def _panel() -> Iterator[System]:
    yield from _acknowledging()
    yield from _cumulative()
    yield from _publishing()
    yield from _storing()
    yield from _transacted()
    yield from _systems()
    yield from _closing()
    yield from _several_consumers()
    yield from _reattaching()
    yield from _completing()
    yield from _forwarding()
    yield from _settling()
    yield from _asking_at_once()
    yield from _waiting()
    yield from _repeating()
    yield from _recovering()
    yield from _given_back_unseen()
    yield from _rejected_comes_again()
    yield from _three_messages()
    yield from _routed()
    yield from _cancelled()
    yield from _given_back_with_its_consumer()
    yield from _lent()
    yield from _given_up()
    yield from _recovered_by_library()
    yield from _kept_for_others()


def _acknowledging() -> Iterator[System]:
    for mode, consumption in product(_MODES, ("receive", "listener")):
        yield system_of(ack_mode=f"{mode}_ACKNOWLEDGE", consumption=consumption, actions="recover")
    for bound, fault in product((0, 1), (*_LOSSES, Fault.BROKER_CRASH)):
        yield system_of("rabbitmq", ack_mode="SESSION_TRANSACTED", prefetch=bound, messages=2, of=(fault,))
    for offered, kept in product(("accepted", "rejected", "released", "undeliverable"), ("dead_letter", "destroy")):
        one = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "outcomes": offered, "attempts_exhausted": kept}
        yield system_of(actions=_ANY_SETTLE, **one)  # type: ignore[arg-type]
        twice: Mapping[str, Any] = {**one, "prefetch": 1, "max_delivery_attempts": 2}
        for action in _SETTLES:
            yield system_of("qpid-jms", actions=action, of=(Fault.CONSUMER_LINK_LOSS,), **twice)
        yield system_of(actions=_ANY_SETTLE, messages=2, faults=0, **one)  # type: ignore[arg-type]
    for mode, after in product(
        ("AUTO", "CLIENT", "PRE", "EXPLICIT_CLIENT"), ("redeliver", "next_message", "swallow", "acknowledge")
    ):
        yield system_of(ack_mode=f"{mode}_ACKNOWLEDGE", listener_exception=after, block_on_acknowledge=True, faults=2)


def _cumulative() -> Iterator[System]:
    for scope, after, answered in product(("session", "up_to", "message"), ("next_message", "swallow"), (True, False)):
        yield system_of(
            ack_mode="CLIENT_ACKNOWLEDGE",
            client_ack_scope=scope,
            listener_exception=after,
            block_on_acknowledge=answered,
            messages=2,
        )
    for consumption in ("receive", "listener"):
        yield system_of(ack_mode="DUPS_OK_ACKNOWLEDGE", consumption=consumption, messages=2)
        yield system_of(ack_mode="PRE_ACKNOWLEDGE", consumption=consumption, block_on_acknowledge=True, messages=2)
    for mode in ("AUTO", "CLIENT", "DUPS_OK", "NO"):
        yield system_of(ack_mode=f"{mode}_ACKNOWLEDGE", prefetch=1, messages=2)
        solace: Mapping[str, Any] = {"ack_mode": f"{mode}_ACKNOWLEDGE", "prefetch": 1, "send_mode": "blocking"}
        yield system_of("solace", **solace, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))


def _publishing() -> Iterator[System]:
    for delivery, send in product(("PERSISTENT", "NON_PERSISTENT", "RELIABLE", "DIRECT"), _SENDS):
        yield system_of(delivery_mode=delivery, send_mode=send)
    for send in _SENDS:
        yield system_of(send_mode=send, messages=2)
    for mode in ("PER_MESSAGE", "WINDOWED"):
        yield system_of("solace", publish_window=9, ack_event_mode=mode, messages=2, actions="ask_at_once", faults=0)
    windows = product((1, 2), (1, 2, 3), (True, False), ("PER_MESSAGE", "WINDOWED"), (False, True))
    for window, threshold, timer, mode, at_once in windows:
        yield system_of(
            publish_window=window,
            confirm_threshold=threshold,
            confirm_timer=timer,
            ack_event_mode=mode,
            ack_immediately=at_once,
            send_mode="asynchronous",
            messages=2,
        )


def _storing() -> Iterator[System]:
    for fault, mode in product(Fault, ("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED")):
        yield system_of(ack_mode=mode, of=(fault,))  # alone: two faults that do the same hide each other
    yield system_of(journal_sync_non_transactional=False, faults=2)
    yield system_of(redelivery_mark_persisted=False, faults=2)
    for persisted, marks in product((True, False), (True, "maybe")):
        yield system_of(restart_marks_redelivered=marks, redelivery_mark_persisted=persisted, faults=2)
    yield system_of(queue_durable=False, faults=2)
    for profile, persisted, durable in product(("jms", "ems"), (True, False), (True, False)):
        yield system_of(
            profile, max_delivery_attempts=2, redelivery_mark_persisted=persisted, queue_durable=durable, faults=2
        )
    for durable, exhausted in product((True, False), ("dead_letter", "destroy")):
        yield system_of(queue_durable=durable, max_delivery_attempts=1, attempts_exhausted=exhausted, faults=2)
        yield system_of(queue_durable=durable, time_to_live=True)
        yield system_of(queue_durable=durable, delivery_delay=True, redelivery_delay=True)
        yield system_of(
            ack_mode="SESSION_TRANSACTED", queue_durable=durable, delivery_delay=True, redelivery_delay=True
        )
    for send in ("blocking", "asynchronous"):
        yield system_of(resend_in_doubt=True, send_mode=send)
    batches = {"publish_window": 3, "confirm_threshold": 1, "confirm_timer": True, "send_mode": "asynchronous"}
    for mode in ("PER_MESSAGE", "WINDOWED"):
        lost: Mapping[str, Any] = {**batches, "ack_event_mode": mode, "of": (Fault.PRODUCER_LINK_LOSS,)}
        memory: Mapping[str, Any] = {"ack_mode": "NO_ACKNOWLEDGE", "delivery_mode": "NON_PERSISTENT"}
        yield system_of(resend_in_doubt=True, messages=2, **lost, **memory)
    yield system_of(resend_in_doubt=True, duplicate_detection=True, **batches)  # type: ignore[arg-type]
    for delivery, synced, mode in product(
        ("PERSISTENT", "NON_PERSISTENT"), (True, False), ("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED")
    ):
        yield system_of(
            resend_in_doubt=True,
            duplicate_detection=True,
            delivery_mode=delivery,
            journal_sync_non_transactional=synced,
            ack_mode=mode,
            faults=2,
        )


def _transacted() -> Iterator[System]:
    yield system_of(**_TRANSACTED, journal_sync_transactional=False, faults=2)
    yield system_of(**_TRANSACTED, queue_durable=False, faults=2)
    yield system_of(**_TRANSACTED, listener_exception="swallow", faults=2)
    yield system_of(**_TRANSACTED, prefetch=1, messages=2)
    yield system_of(**_TRANSACTED, prefetch=1, messages=2, actions="recover")
    yield system_of(**_TRANSACTED, resend_in_doubt=True)
    yield system_of("artemis", **_TRANSACTED, resend_in_doubt=True, duplicate_detection=True, actions="rollback")
    for profile in ("jms", "ems", "artemis", "rabbitmq"):
        yield system_of(profile, **_TRANSACTED, actions="recover rollback", faults=2)
    for profile in ("jms", "ems", "artemis"):
        yield system_of(profile, **_TRANSACTED, messages=2)


def _systems() -> Iterator[System]:
    for profile, delivery in product(Profile, ("PERSISTENT", "NON_PERSISTENT")):
        yield system_of(profile, delivery_mode=delivery, actions="taken_elsewhere")
    yield system_of("artemis", ack_mode="PRE_ACKNOWLEDGE")
    yield system_of("qpid-jms", ack_mode="PRE_ACKNOWLEDGE")
    yield system_of("artemis", send_mode="asynchronous")


def _closing() -> Iterator[System]:
    for mode, consumption in product((*_MODES, ""), ("receive", "listener")):
        acknowledged = f"{mode}_ACKNOWLEDGE" if mode else "SESSION_TRANSACTED"
        yield system_of(ack_mode=acknowledged, consumption=consumption, actions="consumer_close", of=_LOSSES)
        for after in ("redeliver", "next_message", "swallow"):
            yield system_of(
                ack_mode=acknowledged,
                consumption=consumption,
                listener_exception=after,
                block_on_acknowledge=True,
                actions="consumer_close",
                of=(Fault.LISTENER_EXCEPTION,),
            )
        yield system_of(
            ack_mode=acknowledged,
            consumption=consumption,
            block_on_acknowledge=True,
            actions="recover consumer_close",
            of=(),
        )
    yield system_of("artemis", actions="consumer_close", max_delivery_attempts=2, of=(Fault.CONSUMER_CRASH,))
    yield system_of("qpid-jms", actions="consumer_close recover", of=_LOSSES)
    yield system_of("jms", actions="consumer_close", max_delivery_attempts=2, of=(Fault.CONSUMER_CRASH,))
    yield system_of(actions="consumer_close", prefetch=1, messages=2, faults=0, ack_mode="CLIENT_ACKNOWLEDGE")
    yield system_of(**_TRANSACTED, actions="consumer_close recover", prefetch=1, messages=2, faults=0)
    yield system_of(**_TRANSACTED, actions="consumer_close", redelivery_delay=True, of=())
    yield system_of(actions="consumer_close", redelivery_delay=True, of=())
    for send in _SENDS:
        yield system_of(send_mode=send, actions="producer_close", of=_PRODUCER_FAULTS)
        yield system_of(send_mode=send, resend_in_doubt=True, actions="producer_close", of=_PRODUCER_FAULTS)
        yield system_of(**_TRANSACTED, send_mode=send, actions="producer_close rollback", of=_PRODUCER_FAULTS)
        yield system_of(**_TRANSACTED, send_mode=send, actions="producer_close postpone", of=_PRODUCER_FAULTS)


def _several_consumers() -> Iterator[System]:
    for mode, fault in product(("AUTO", "CLIENT", "DUPS_OK", "PRE", "INDIVIDUAL"), _LOSSES):
        yield system_of(ack_mode=f"{mode}_ACKNOWLEDGE", consumers=2, of=(fault,))
    yield system_of(**_TRANSACTED, consumers=2, of=(Fault.CONSUMER_LINK_LOSS,))
    for mode, consumption in product(("AUTO", "CLIENT", "DUPS_OK", "PRE"), ("receive", "listener")):
        for answered in (True, False):
            yield system_of(
                ack_mode=f"{mode}_ACKNOWLEDGE",
                consumption=consumption,
                block_on_acknowledge=answered,
                consumers=2,
                one_session=True,
                messages=2,
                faults=0,
            )
    for fault in (*_OF_CONSUMER, *_BROKER_FAULTS):
        alone: Mapping[str, Any] = {"exclusive_consumer": True, "delivery_mode": "NON_PERSISTENT"}
        yield system_of(**alone, ack_mode="NO_ACKNOWLEDGE", consumers=2, messages=2, of=(fault,))
        yield system_of(exclusive_consumer=True, consumers=2, of=(fault,))
    yield system_of(exclusive_consumer=True, consumers=2, actions="consumer_close", faults=0)
    for kept in ("durable", "non_durable"):
        yield system_of(destination=f"{kept}_subscription", of=_OF_CONSUMER)
        yield system_of(destination=f"{kept}_subscription", actions="consumer_close", faults=0)
        yield system_of(destination=f"{kept}_subscription", delivery_delay=True, of=_LOSSES)
        yield system_of(destination=f"{kept}_subscription", consumers=2, of=(Fault.CONSUMER_LINK_LOSS,))
        yield system_of(
            destination=f"{kept}_subscription",
            ack_mode="NO_ACKNOWLEDGE",
            consumers=2,
            of=(Fault.CONSUMER_LINK_LOSS,),
            faults=2,
        )


def _reattaching() -> Iterator[System]:
    """What a session that outlives its connection keeps, and loses when it is given up."""
    lasting: Mapping[str, Any] = {"session_reattachment": True, "publish_window": 2}
    for send, given_up in product(_SENDS, ("", "producer_session_lost")):
        yield system_of(**lasting, send_mode=send, actions=given_up, faults=2, of=_PRODUCER_FAULTS)
        yield system_of(**lasting, send_mode=send, resend_in_doubt=True, actions=given_up, of=_PRODUCER_FAULTS)
        yield system_of(
            **lasting, **_TRANSACTED, send_mode=send, actions=f"rollback {given_up}", faults=2, of=_PRODUCER_FAULTS
        )
        for detected in (True, False):
            yield system_of(
                **lasting,
                **_TRANSACTED,
                send_mode=send,
                resend_in_doubt=True,
                duplicate_detection=detected,
                actions=given_up,
                faults=2,
                of=(Fault.PRODUCER_LINK_LOSS,),
            )
    for fault in Fault:
        yield system_of(**lasting, actions="producer_session_lost", faults=2, of=(Fault.PRODUCER_LINK_LOSS, fault))
    for at_once, mode in product((False, True), ("PER_MESSAGE", "WINDOWED")):
        yield system_of(
            **lasting,
            confirm_threshold=2,
            confirm_timer=True,
            ack_event_mode=mode,
            ack_immediately=at_once,
            send_mode="asynchronous",
            actions="producer_session_lost",
            of=(Fault.PRODUCER_LINK_LOSS,),
            messages=2,
            ack_mode="NO_ACKNOWLEDGE",
        )


def _completing() -> Iterator[System]:
    """The callbacks of asynchronous sends in a transaction."""
    called: Mapping[str, Any] = {**_TRANSACTED, "send_mode": "asynchronous"}
    for lasting in (False, True):
        window: Mapping[str, Any] = {"session_reattachment": True, "publish_window": 2} if lasting else {}
        for fault in (*_PRODUCER_FAULTS, Fault.BROKER_CRASH, Fault.JOURNAL_FAILURE):
            lost = "producer_session_lost" if lasting else ""
            of = (fault, Fault.PRODUCER_LINK_LOSS) if lasting else (fault,)
            yield system_of(**called, **window, actions=f"rollback producer_close {lost}", of=of, faults=1 + lasting)
            yield system_of(**called, **window, resend_in_doubt=True, actions=lost, of=of, faults=1 + lasting)
    yield system_of(**called, messages=2, of=(Fault.REJECTION,))
    yield system_of(**called, messages=2, actions="producer_close rollback", of=(Fault.PRODUCER_LINK_LOSS,))
    again: Mapping[str, Any] = {**called, "resend_in_doubt": True, "duplicate_detection": True}
    yield system_of(**again, of=(Fault.BROKER_KILL,), faults=2)
    yield system_of(**again, delivery_mode="NON_PERSISTENT", messages=2, of=(Fault.PRODUCER_LINK_LOSS,))
    for fault in (Fault.PRODUCER_LINK_LOSS, *_BROKER_FAULTS):
        yield system_of(**called, of=(Fault.REJECTION, fault), faults=2)
    yield system_of(**called, transacted_completion=False, of=_PRODUCER_FAULTS)


def _forwarding() -> Iterator[System]:
    for profile, consumption in product(("jms", "rabbitmq"), ("receive", "listener")):
        for fault in (*_OF_CONSUMER, *_BROKER_FAULTS, Fault.LISTENER_EXCEPTION):
            yield system_of(profile, **_TRANSACTED, consumption=consumption, actions="forward", of=(fault,))
    for delivery, synced in product(("PERSISTENT", "NON_PERSISTENT"), (True, False)):
        yield system_of(
            **_TRANSACTED,
            delivery_mode=delivery,
            journal_sync_transactional=synced,
            actions="forward",
            of=(*_BROKER_FAULTS, Fault.CONSUMER_CRASH),
        )
    yield system_of(**_TRANSACTED, actions="forward consumer_close recover", faults=0)
    yield system_of("rabbitmq", **_TRANSACTED, actions="forward consumer_close recover", faults=0)
    yield system_of(actions="forward", faults=0)


def _settling_more() -> Iterator[System]:
    """One frame for several deliveries, transactions, the second settling mode."""
    for action in _SETTLES:
        yield system_of("rabbitmq", outcome_scope="up_to", actions=action, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))
        for requeues in (True, False):
            yield system_of(**_ENLISTED, rollback_requeues=requeues, actions=action, of=_OF_CONSUMER)
        yield system_of(**_ENLISTED, actions=action, messages=2, faults=0, prefetch=1, attempts_exhausted="destroy")
        yield system_of(**_SECOND, actions=action, of=_LOSSES)
        yield system_of(**_SECOND, actions=action, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))


def _reattaching_consumers() -> Iterator[System]:
    """What a consuming session that outlives its connection keeps, and loses when it is given up or a process dies."""
    for mode in ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"):
        lasting: Mapping[str, Any] = {"consumer_reattachment": True, "ack_mode": mode}
        yield system_of(**lasting, actions="consumer_session_lost", of=_LOSSES)
        yield system_of(**lasting, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))
        yield system_of(**lasting, consumers=2, of=(Fault.CONSUMER_LINK_LOSS,))
    kept: Mapping[str, Any] = {**_BARE, "consumer_reattachment": True}
    for fault in (*_BROKER_FAULTS, Fault.CONSUMER_CRASH, Fault.LISTENER_EXCEPTION):
        yield system_of(**kept, of=(Fault.CONSUMER_LINK_LOSS, fault), faults=2)
    lost: Mapping[str, Any] = {**kept, "of": (Fault.CONSUMER_LINK_LOSS,)}
    given_up = "consumer_session_lost"
    yield system_of(**lost, redelivery_delay=True, actions=given_up)
    yield system_of(**lost, **_TRANSACTED, redelivery_delay=True, actions=given_up)
    yield system_of(**lost, destination="non_durable_subscription", actions=given_up)
    yield system_of(**lost, exclusive_consumer=True, consumers=2, actions=given_up)
    yield system_of(**lost, **_TRANSACTED, actions=f"forward {given_up}")
    yield system_of(**lost, **_TRANSACTED, prefetch=1, messages=2, actions=given_up)
    for consumption in ("receive", "listener"):
        yield system_of(**lost, ack_mode="DUPS_OK_ACKNOWLEDGE", consumption=consumption, messages=2, actions=given_up)
    for action in _SETTLES:
        yield system_of(**lost, **_SECOND, actions=f"{action} {given_up}")
        yield system_of(**lost, **_SECOND, actions=f"{action} {given_up}", attempts_exhausted="destroy")
        yield system_of(**lost, **_ENLISTED, actions=f"{action} {given_up}")


def _settling_and_failing() -> Iterator[System]:
    """Outcomes that are enlisted or unsettled as something ends: the session, the broker, the process."""
    for action in _SETTLES:
        for fault in _BROKER_FAULTS:
            yield system_of(**_BARE, **_ENLISTED, actions=action, of=(fault,))
        for fault in (*_BROKER_FAULTS, Fault.CONSUMER_CRASH):
            yield system_of(**_SECOND, actions=action, of=(fault,))
        yield system_of(
            **_BARE, **_ENLISTED, actions=f"{action} recover consumer_close", attempts_exhausted="destroy", faults=0
        )
    yield system_of(**_BARE, **_ENLISTED, actions="settle_rejected", messages=3, faults=0)
    for kept in _KEPT:
        lenient: Mapping[str, Any] = {"journal_sync_non_transactional": False, "attempts_exhausted": kept}
        yield system_of(**_SECOND, **lenient, actions="settle_rejected", of=(Fault.BROKER_KILL,))


def _following() -> Iterator[System]:
    """What is delivered before a message whose acknowledgement or outcome covers it."""
    client: Mapping[str, Any] = {**_BARE, "ack_mode": "CLIENT_ACKNOWLEDGE", "messages": 2}
    for scope in ("session", "up_to"):
        for fault in (*_BROKER_FAULTS, *_OF_CONSUMER):
            yield system_of(**client, client_ack_scope=scope, of=(fault,))
        for after in ("next_message", "swallow"):
            yield system_of(**client, **_UNSETTLED, client_ack_scope=scope, listener_exception=after, of=_THROWN)
            for fault in _OF_CONSUMER:
                yield system_of(
                    **client, client_ack_scope=scope, listener_exception=after, of=(fault, *_THROWN), faults=2
                )
            yield system_of(**client, client_ack_scope=scope, listener_exception=after, actions="recover", of=_THROWN)
    up_to: Mapping[str, Any] = {"client_ack_scope": "up_to", "outcome_scope": "up_to", "outcomes": "undeliverable"}
    for action in _SETTLES:
        yield system_of(**client, **up_to, actions=f"{action} recover", faults=0)
        yield system_of(**client, **up_to, actions=action, listener_exception="next_message", of=_THROWN)
    yield system_of(**client, **up_to, **_UNSETTLED, actions="settle_released", faults=0)
    alone: Mapping[str, Any] = {**client, **up_to, "without": "acknowledge"}
    lasting: Mapping[str, Any] = {"consumer_reattachment": True, "of": (Fault.CONSUMER_LINK_LOSS,)}
    for action in ("settle_released", "settle_rejected"):
        for fault in (*_BROKER_FAULTS, *_OF_CONSUMER):
            yield system_of(**alone, actions=action, attempts_exhausted="destroy", of=(fault,))
        yield system_of(**alone, **lasting, actions=f"{action} consumer_session_lost")
    for kept in _KEPT:
        yield system_of(**alone, **_UNSETTLED, actions="settle_rejected", attempts_exhausted=kept, faults=0)
    yield system_of(**alone, **_UNSETTLED, actions="settle_released settle_rejected", faults=0)
    yield system_of(**alone, actions="settle_released settle_rejected", faults=0)
    three = {**alone, "messages": 3}
    yield system_of(**three, actions="settle_rejected", faults=0)
    yield system_of(**three, actions="settle_released", prefetch=2, faults=0)


def _settling() -> Iterator[System]:
    yield system_of(**_OUTCOMES, actions=f"{_ANY_SETTLE} taken_elsewhere", of=_LOSSES)
    yield system_of(**_OUTCOMES, actions=_ANY_SETTLE, consumers=2, faults=0)
    for action in _SETTLES:
        yield system_of(**_OUTCOMES, actions=action, consumers=2, of=(Fault.CONSUMER_LINK_LOSS,))
        yield system_of(**_OUTCOMES, actions=action, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))
        yield system_of(**_OUTCOMES, actions=f"{action} consumer_close", messages=2, faults=0)
        yield system_of(**_OUTCOMES, actions=action, messages=2, prefetch=1, faults=0, prefetch_freed="on_delivery")
        yield system_of(**_OUTCOMES, actions=action, messages=2, prefetch=1, faults=0)
        yield system_of(
            **_OUTCOMES, actions=action, requeue_clears_mark=True, redelivery_mark_persisted=False, of=_LOSSES
        )
        yield system_of(**_OUTCOMES, actions=action, redelivery_delay=True, of=_OF_CONSUMER)
        yield system_of(**_OUTCOMES, actions=action, messages=2, prefetch=1, faults=0, attempts_exhausted="destroy")
    yield from _settling_more()
    yield from _reattaching_consumers()
    yield from _settling_and_failing()
    yield from _following()
    for mode, scope in product(("AUTO", "CLIENT", "INDIVIDUAL"), ("session", "message")):
        yield system_of(
            ack_mode=f"{mode}_ACKNOWLEDGE", client_ack_scope=scope, outcomes="rejected", actions=_ANY_SETTLE, faults=0
        )
    for durable, kept in product((True, False), ("dead_letter", "destroy")):
        yield system_of(
            **_OUTCOMES, actions="settle_rejected", queue_durable=durable, attempts_exhausted=kept, of=_BROKER_FAULTS
        )


def _asking_at_once() -> Iterator[System]:
    batches: Mapping[str, Any] = {"confirm_threshold": 2, "confirm_timer": True, "send_mode": "asynchronous"}
    for fault in (*_PRODUCER_FAULTS, Fault.BROKER_CRASH, Fault.JOURNAL_FAILURE):
        yield system_of(**batches, actions="ask_at_once", ack_mode="NO_ACKNOWLEDGE", of=(fault,))
    for mode in ("PER_MESSAGE", "WINDOWED"):
        yield system_of(
            **batches, ack_event_mode=mode, actions="ask_at_once", ack_mode="NO_ACKNOWLEDGE", messages=2, faults=0
        )
    yield system_of(
        **batches, actions="ask_at_once", ack_mode="NO_ACKNOWLEDGE", resend_in_doubt=True, of=_PRODUCER_FAULTS
    )
    yield system_of(
        **batches,
        actions="ask_at_once",
        ack_mode="NO_ACKNOWLEDGE",
        resend_in_doubt=True,
        duplicate_detection=True,
        of=_PRODUCER_FAULTS,
        faults=2,
    )
    yield system_of(actions="ask_at_once", faults=0)


def _waiting() -> Iterator[System]:
    """What waits for its time, and what is overtaken meanwhile."""
    for which, mode in product(("delivery_delay", "redelivery_delay"), ("AUTO", "CLIENT", "NO")):
        waits: Mapping[str, Any] = {which: True}
        yield system_of(**waits, ack_mode=f"{mode}_ACKNOWLEDGE", messages=2, of=(Fault.CONSUMER_LINK_LOSS,))
        yield system_of(**waits, ack_mode=f"{mode}_ACKNOWLEDGE", time_to_live=True, of=_LOSSES)
    yield system_of(**_TRANSACTED, redelivery_delay=True, rollback_requeues=False, actions="recover")
    yield system_of(max_delivery_attempts=1, time_to_live=True, redelivery_delay=True, of=_OF_CONSUMER)
    for fault in _BROKER_FAULTS:  # twice: what has expired is read back, and its broker stops again
        yield system_of(time_to_live=True, ack_mode="NO_ACKNOWLEDGE", actions="taken_elsewhere", of=(fault,), faults=2)


def _repeating() -> Iterator[System]:
    """Transactions that are repeated, and leave messages for later ones."""
    again: Mapping[str, Any] = {**_TRANSACTED, "resend_in_doubt": True}
    yield system_of(**_TRANSACTED, actions="postpone", messages=2, of=(Fault.PRODUCER_LINK_LOSS,))
    yield system_of(**_TRANSACTED, actions="postpone", messages=2, of=(Fault.REJECTION,))
    yield system_of(**_TRANSACTED, messages=2, of=(Fault.REJECTION,), faults=2)
    yield system_of(actions="postpone", faults=0)
    bare: Mapping[str, Any] = {"delivery_mode": "NON_PERSISTENT", "ack_mode": "NO_ACKNOWLEDGE", "resend_in_doubt": True}
    for send, detected in product(("blocking", "asynchronous"), (True, False)):
        for faults in (1, 2):
            lost: Mapping[str, Any] = {"of": (Fault.PRODUCER_LINK_LOSS,), "faults": faults}
            yield system_of(**bare, send_mode=send, duplicate_detection=detected, messages=2, **lost)
    for mode in ("PER_MESSAGE", "WINDOWED"):
        batches: Mapping[str, Any] = {"confirm_threshold": 2, "confirm_timer": True, "send_mode": "asynchronous"}
        yield system_of(**bare, **batches, ack_event_mode=mode, messages=2, of=(Fault.PRODUCER_LINK_LOSS,))
        yield system_of(
            **bare,
            **batches,
            ack_event_mode=mode,
            duplicate_detection=True,
            actions="ask_at_once",
            messages=2,
            of=(Fault.PRODUCER_LINK_LOSS,),
        )
    for fault in (Fault.PRODUCER_LINK_LOSS, Fault.PRODUCER_CRASH, Fault.REJECTION):
        yield system_of(**again, messages=2, of=(fault,))
        yield system_of(**again, messages=2, duplicate_detection=True, of=(fault,))
        yield system_of(
            **again,
            duplicate_detection=True,
            duplicate_dooms_transaction=True,
            actions="postpone",
            of=(fault,),
            messages=2,
        )
    for doomed in (True, False):
        yield system_of(
            **again,
            duplicate_detection=True,
            duplicate_dooms_transaction=doomed,
            actions="rollback",
            faults=2,
            of=_PRODUCER_FAULTS,
        )


def _recovering() -> Iterator[System]:
    """What an application has again after an exception or a lost call."""
    thrown = (Fault.LISTENER_EXCEPTION,)
    for consumption, fault in product(("receive", "listener"), _OF_CONSUMER):
        yield system_of(block_on_acknowledge=True, consumption=consumption, messages=2, of=(fault,))
    for clears, other in product((True, False), (*_OF_CONSUMER, *thrown)):
        yield system_of(
            block_on_acknowledge=True,
            requeue_clears_mark=clears,
            delivery_mode="NON_PERSISTENT",
            send_mode="unconfirmed",
            messages=2,
            of=(Fault.CONSUMER_LINK_LOSS, other),
            faults=2,
        )
    for answered in (True, False):
        once: Mapping[str, Any] = {"ack_mode": "PRE_ACKNOWLEDGE", "listener_exception": "next_message"}
        yield system_of(**once, block_on_acknowledge=answered, messages=2, of=thrown)
    for mode in ("CLIENT", "INDIVIDUAL"):
        memory: Mapping[str, Any] = {"ack_mode": f"{mode}_ACKNOWLEDGE", "delivery_mode": "NON_PERSISTENT"}
        yield system_of(**memory, messages=2, of=thrown, faults=2)
        yield system_of(**memory, requeue_clears_mark=True, of=thrown)
        yield system_of(**memory, listener_exception="swallow", actions="recover", of=thrown)
        yield system_of(**memory, listener_exception="swallow", actions="recover consumer_close", messages=2, of=thrown)
    for requeues in (True, False):
        kept: Mapping[str, Any] = {**_TRANSACTED, "rollback_requeues": requeues}
        yield system_of(**kept, messages=2, of=thrown)
        yield system_of(**kept, messages=2, of=thrown, actions="forward")
        yield system_of(**kept, actions="recover consumer_close", of=thrown)
        yield system_of(**kept, requeue_clears_mark=True, of=(*thrown, Fault.CONSUMER_LINK_LOSS))
        yield system_of(**kept, prefetch=1, messages=2, of=thrown, actions="consumer_close")
        yield system_of(**kept, max_delivery_attempts=2, delivery_count_from="delivery", messages=2, of=thrown)
    yield system_of(**_BARE, requeue_clears_mark=True, actions="consumer_close", faults=0)
    for after in ("next_message", "swallow", "acknowledge"):
        lazily: Mapping[str, Any] = {"ack_mode": "DUPS_OK_ACKNOWLEDGE", "consumption": "listener"}
        yield system_of(**_BARE, **lazily, listener_exception=after, messages=2, of=thrown)
    yield system_of(**_BARE, exclusive_consumer=True, consumers=2, of=thrown, faults=2)
    client: Mapping[str, Any] = {**_BARE, "ack_mode": "CLIENT_ACKNOWLEDGE", "listener_exception": "next_message"}
    yield system_of(**client, messages=2, of=(*thrown, Fault.CONSUMER_LINK_LOSS), faults=2)
    for scope, answered in product(("session", "up_to"), (True, False)):
        kept = {"client_ack_scope": scope, "block_on_acknowledge": answered}
        yield system_of(**client, **kept, messages=2, of=thrown, actions="consumer_close")
    for fault in _BROKER_FAULTS:
        for persisted, marks in product((True, False), (True, False)):
            cleared: Mapping[str, Any] = {"requeue_clears_mark": True, "redelivery_mark_persisted": persisted}
            yield system_of(**cleared, restart_marks_redelivered=marks, of=(fault, *thrown), faults=2)


def _given_back_unseen() -> Iterator[System]:
    """What no application has had leaves no mark where the flag is made of the count."""
    for persisted in (True, False):
        counted: Mapping[str, Any] = {"delivery_count_from": "delivery", "redelivery_mark_persisted": persisted}
        client: Mapping[str, Any] = {**counted, "ack_mode": "CLIENT_ACKNOWLEDGE"}
        for fault in _BROKER_FAULTS:
            yield system_of(**counted, actions="recover consumer_close", of=(fault,), faults=2)
        for action in ("recover", "consumer_close"):
            yield system_of(**counted, actions=action, of=_OF_CONSUMER, faults=2)
        yield system_of(**counted, consumption="receive", actions="recover", of=(Fault.BROKER_KILL,))
        yield system_of(**client, actions="recover", messages=2, faults=0)
        yield system_of(**client, listener_exception="next_message", messages=2, of=_THROWN)
        yield system_of(**counted, requeue_clears_mark=True, of=_THROWN, faults=2)
        for requeues, fault in product((True, False), _OF_CONSUMER):
            rolled_back: Mapping[str, Any] = {**counted, **_TRANSACTED, "rollback_requeues": requeues}
            yield system_of(**rolled_back, messages=2, of=(*_THROWN, fault), faults=2)
        for marks in (True, False):
            sent = {**counted, "undelivered_marks_redelivered": marks}
            yield system_of(**sent, actions="recover taken_elsewhere", of=_LOSSES)
        lost: Mapping[str, Any] = {"ended_consumer_marks_redelivered": False, "redelivery_mark_persisted": persisted}
        for fault, begins in product(_OF_CONSUMER, ("dispatch", "delivery", "acknowledgement")):
            yield system_of(**lost, delivery_count_from=begins, of=(fault,), faults=2)
        yield system_of(**lost, actions="recover taken_elsewhere consumer_close", of=_LOSSES)
        yield system_of(**lost, listener_exception="redeliver", of=_THROWN, faults=2)
        yield system_of(**lost, **_OUTCOMES, actions="settle_released settle_failed consumer_close", of=_LOSSES)
        counted = {**lost, **_OUTCOMES, "delivery_count_from": "acknowledgement"}
        for clears, action in product((True, False), ("settle_released", "consumer_close")):
            yield system_of(**counted, requeue_clears_mark=clears, actions=action, faults=0)
        yield system_of(**counted, actions="recover taken_elsewhere", of=_LOSSES)
        yield system_of(**counted, listener_exception="next_message", of=_THROWN, actions="consumer_close", faults=2)


def _rejected_comes_again() -> Iterator[System]:
    """A broker that takes a rejection for a failure, of one message and of two."""
    for messages in (1, 2):
        yield system_of(**_OUTCOMES, rejected_comes_again=True, messages=messages, actions="settle_rejected", faults=0)


def _three_messages() -> Iterator[System]:
    """Kept nowhere and never answered, so that three are not too many."""
    for action in _SETTLES:
        once: Mapping[str, Any] = {"outcomes": "undeliverable", "max_delivery_attempts": 1}
        individual: Mapping[str, Any] = {**once, "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "without": "acknowledge"}
        yield system_of(**_BARE, **individual, actions=action, messages=3, faults=0)
    yield system_of(**_BARE, **_TRANSACTED, prefetch=2, messages=3, faults=0)
    yield system_of(**_BARE, ack_mode="CLIENT_ACKNOWLEDGE", messages=3, faults=0)
    answered: Mapping[str, Any] = {"client_ack_scope": "up_to", "block_on_acknowledge": True}
    yield system_of(**_BARE, **answered, ack_mode="CLIENT_ACKNOWLEDGE", messages=3, faults=0)


def _routed() -> Iterator[System]:
    ids: Mapping[str, Any] = {"resend_in_doubt": True, "duplicate_detection": True}
    for away, mode in product((0, 1), ("NO_ACKNOWLEDGE", "SESSION_TRANSACTED")):
        routed: Mapping[str, Any] = {"subscriptions": 2, "non_durable": away, "destination": "durable_subscription"}
        yield system_of(of=(Fault.BROKER_CRASH,), ack_mode=mode, **routed)
        yield system_of(of=(Fault.BROKER_CRASH,), ack_mode=mode, duplicate_detection=True, **routed)
        yield system_of(of=(Fault.PRODUCER_LINK_LOSS,), ack_mode=mode, **routed, **ids)


def _cancelled() -> Iterator[System]:
    """A consumer that is closed alone, while its session goes on with what the application has had."""
    cancel = "consumer_cancel"
    for mode, consumption in product(("AUTO", "CLIENT", "PRE", "NO"), ("receive", "listener")):
        alone: Mapping[str, Any] = {**_BARE, "ack_mode": f"{mode}_ACKNOWLEDGE", "consumption": consumption}
        yield system_of(**alone, actions=f"{cancel} consumer_close", of=_THROWN)
        yield system_of(**alone, actions=cancel, block_on_acknowledge=True, of=_OF_CONSUMER)
    for requeues in (True, False):
        kept: Mapping[str, Any] = {**_BARE, **_TRANSACTED, "rollback_requeues": requeues}
        yield system_of(**kept, actions=cancel, of=_OF_CONSUMER)
        yield system_of(**kept, actions=f"{cancel} recover", messages=2, of=_THROWN)
    for fault in _LOSSES:
        yield system_of(**_BARE, exclusive_consumer=True, consumers=2, actions=cancel, of=(fault,))
    yield system_of(**_OUTCOMES, **_BARE, consumers=2, actions=f"{cancel} settle_undeliverable", faults=0)
    for begins, persisted in product(("dispatch", "delivery", "acknowledgement"), (True, False)):
        counted: Mapping[str, Any] = {"delivery_count_from": begins, "redelivery_mark_persisted": persisted}
        yield system_of(**counted, ended_consumer_marks_redelivered=False, actions=cancel, of=_LOSSES)
        yield system_of(**counted, max_delivery_attempts=2, actions=f"{cancel} consumer_close", of=_LOSSES)
    yield system_of(**_BARE, actions=cancel, prefetch=1, messages=2, of=(Fault.CONSUMER_LINK_LOSS,))
    yield system_of(**_BARE, destination="non_durable_subscription", actions=cancel, of=(Fault.CONSUMER_LINK_LOSS,))
    yield system_of(**_BARE, ack_mode="NO_ACKNOWLEDGE", prefetch=1, prefetch_freed="on_dispatch", messages=2, faults=0)


def _given_back_with_its_consumer() -> Iterator[System]:
    """A consumer that is closed with what its application was handed, which the broker then has back."""
    cancel = "consumer_cancel"
    closes: Mapping[str, Any] = {**_BARE, "closed_consumer_gives_back": True}
    for mode, waits in product(("CLIENT", "INDIVIDUAL"), (True, False)):
        back: Mapping[str, Any] = {**closes, "ack_mode": f"{mode}_ACKNOWLEDGE", "block_on_acknowledge": waits}
        yield system_of(**back, actions=cancel, messages=2, faults=0)
        yield system_of(**back, actions=cancel, redelivery_delay=True, of=_OF_CONSUMER)
        yield system_of(**back, actions=cancel, prefetch=1, messages=2, faults=0)
        yield system_of(**back, actions=cancel, consumers=2, one_session=True, messages=2, faults=0)
        for marks, clears in product((True, False), repeat=2):
            marked: Mapping[str, Any] = {"ended_consumer_marks_redelivered": marks, "requeue_clears_mark": clears}
            yield system_of(**back, **marked, actions=cancel, of=_LOSSES)
    for begins, persisted in product(("dispatch", "delivery", "acknowledgement"), (True, False)):
        counted: Mapping[str, Any] = {"delivery_count_from": begins, "redelivery_mark_persisted": persisted}
        individual: Mapping[str, Any] = {**counted, "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "max_delivery_attempts": 2}
        yield system_of(**closes, **individual, actions=cancel, faults=0)
        yield system_of(**_BARE, **individual, actions="recover consumer_close", of=_LOSSES)
    for after, scope in product(("next_message", "swallow"), ("session", "up_to")):
        thrown: Mapping[str, Any] = {"consumption": "listener", "listener_exception": after, "client_ack_scope": scope}
        yield system_of(**closes, **thrown, ack_mode="CLIENT_ACKNOWLEDGE", messages=2, actions=cancel, of=_THROWN)


def _lent() -> Iterator[System]:
    """What a consumer has for a time: a lease, or until the message expires."""
    expiring: Mapping[str, Any] = {"time_to_live": True, "expires_in_hand": True}
    for timed, leased in (({}, "lease_expired"), (expiring, "")):
        for mode, consumption in product(("AUTO", "PRE", "DUPS_OK"), ("receive", "listener")):
            lent: Mapping[str, Any] = {**_BARE, **timed, "ack_mode": f"{mode}_ACKNOWLEDGE", "consumption": consumption}
            yield system_of(**lent, actions=leased, messages=2, faults=0)
            yield system_of(**lent, actions=leased, of=(*_LOSSES, *_THROWN))
        individual: Mapping[str, Any] = {**_OUTCOMES, **timed}
        for settle in _SETTLES:
            yield system_of(**individual, **_BARE, actions=f"{leased} {settle}", messages=2, faults=0)
        yield system_of(**individual, actions=leased, ended_consumer_marks_redelivered=False, of=_LOSSES)
        memory: Mapping[str, Any] = {**individual, **_BARE, "actions": leased}
        for begins in ("delivery", "acknowledgement"):
            yield system_of(**memory, delivery_count_from=begins, max_delivery_attempts=2, of=_LOSSES)
        for freed in ("on_delivery", "on_acknowledge"):
            yield system_of(**memory, prefetch=1, prefetch_freed=freed, messages=2, faults=0)
        yield system_of(**memory, consumers=2, faults=0)
        listened: Mapping[str, Any] = {**_BARE, **timed, "consumption": "listener", "actions": leased}
        yield system_of(**listened, consumers=2, of=(*_THROWN, Fault.CONSUMER_LINK_LOSS), faults=2)


def _given_up() -> Iterator[System]:
    """Sends that time out, that the application forgets and sends again, and that no queue takes."""
    memory: Mapping[str, Any] = {"ack_mode": "NO_ACKNOWLEDGE", "delivery_mode": "NON_PERSISTENT"}
    for send, action in product(_SENDS, ("send_timed_out", "outcome_forgotten")):
        alone: Mapping[str, Any] = {**memory, "send_mode": send}
        for fault in _PRODUCER_FAULTS:
            yield system_of(**alone, actions=action, of=(fault,))
        yield system_of(**alone, actions=f"{action} producer_close", of=(Fault.REJECTION, Fault.PRODUCER_CRASH))
        sent: Mapping[str, Any] = {**_TRANSACTED, "delivery_mode": "NON_PERSISTENT", "send_mode": send}
        for also in ("", "rollback"):
            yield system_of(**sent, actions=f"{action} {also}", of=_PRODUCER_FAULTS)
    both = "send_timed_out outcome_forgotten"
    for send in _SENDS:
        yield system_of(**memory, send_mode=send, actions=both, of=(Fault.REJECTION,))
        yield system_of(**memory, send_mode=send, actions=both, duplicate_detection=True, of=_PRODUCER_FAULTS)
    for mode, action in product(("PER_MESSAGE", "WINDOWED"), ("send_timed_out", "outcome_forgotten")):
        ranged: Mapping[str, Any] = {**memory, "send_mode": "asynchronous", "ack_event_mode": mode}
        yield system_of(**ranged, actions=action, messages=2, faults=0)
        yield system_of(**ranged, actions=action, messages=2, publish_window=1, of=(Fault.PRODUCER_LINK_LOSS,))
        batches: Mapping[str, Any] = {**ranged, "confirm_threshold": 2, "confirm_timer": True}
        yield system_of(**batches, actions=action, messages=2, faults=0)
    yield system_of(**memory, send_mode="blocking", actions="outcome_forgotten", messages=2, faults=0)
    again: Mapping[str, Any] = {**memory, "duplicate_detection": True, "actions": both}
    yield system_of(**again, send_mode="asynchronous", ack_event_mode="WINDOWED", messages=2, faults=0)
    for mode, send in product(("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"), _SENDS):
        yield system_of(ack_mode=mode, send_mode=send, actions="returned", of=(Fault.BROKER_KILL,))


def _recovered_by_library() -> Iterator[System]:
    """A library that recovers the session as its listener throws."""
    recovers: Mapping[str, Any] = {"consumption": "listener", "listener_exception": "recover"}
    for mode, answered in product(("AUTO", "CLIENT", "PRE", "NO", "DUPS_OK", "INDIVIDUAL"), (True, False)):
        thrown: Mapping[str, Any] = {
            **_BARE, **recovers, "ack_mode": f"{mode}_ACKNOWLEDGE", "block_on_acknowledge": answered
        }  # fmt: skip
        yield system_of(**thrown, messages=2, of=_THROWN)
        yield system_of(**thrown, delivery_count_from="acknowledgement", messages=2, of=_THROWN)
        yield system_of(**thrown, actions="recover consumer_close consumer_cancel", of=_THROWN)
        for fault in _OF_CONSUMER:
            yield system_of(**thrown, of=(*_THROWN, fault), faults=2)
    for settle in _SETTLES:
        yield system_of(**_BARE, **_OUTCOMES, **recovers, actions=settle, messages=2, of=_THROWN)
    up_to: Mapping[str, Any] = {**_BARE, "ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "up_to"}
    yield system_of(**up_to, **recovers, messages=2, of=_THROWN, faults=2)
    for persisted, begins in product((True, False), ("delivery", "acknowledgement")):
        counted: Mapping[str, Any] = {"redelivery_mark_persisted": persisted, "delivery_count_from": begins}
        client: Mapping[str, Any] = {**counted, "ack_mode": "CLIENT_ACKNOWLEDGE"}
        yield system_of(**client, **recovers, messages=2, of=_THROWN)
        yield system_of(**client, **recovers, max_delivery_attempts=2, messages=2, of=_THROWN)
        yield system_of(**client, **recovers, requeue_clears_mark=True, actions="recover", of=_THROWN)
        for marks in (True, False):
            yield system_of(**client, undelivered_marks_redelivered=marks, actions="recover taken_elsewhere", faults=0)
        yield system_of(**client, actions="recover", of=_BROKER_FAULTS)
        for clears, after in product((True, False), ("recover", "redeliver")):
            held: Mapping[str, Any] = {**counted, "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "listener_exception": after}
            yield system_of(**held, consumption="listener", requeue_clears_mark=clears, of=_THROWN)


def _kept_for_others() -> Iterator[System]:
    """A message that was delivered as often as it may be, and stays in its queue for other consumers."""
    aside: Mapping[str, Any] = {"attempts_exhausted": "other_consumers", "max_delivery_attempts": 1}
    for fault in (*_OF_CONSUMER, *_BROKER_FAULTS):
        yield system_of("qpid-jms", **aside, **_BARE, consumers=2, of=(fault,))
        yield system_of("qpid-jms", **aside, **_BARE, of=(Fault.CONSUMER_LINK_LOSS, fault), faults=2)
    yield system_of("qpid-jms", **aside, of=_OF_CONSUMER)
    yield system_of("qpid-jms", **aside, time_to_live=True, of=(Fault.CONSUMER_LINK_LOSS,))
    yield system_of(
        "qpid-jms", **aside, **_BARE, actions="taken_elsewhere consumer_cancel", consumers=2, of=_OF_CONSUMER
    )
    yield system_of("qpid-jms", **aside, of=_THROWN, faults=2, consumption="listener")
    undeliverable: Mapping[str, Any] = {**_OUTCOMES, "actions": "settle_undeliverable"}
    for fault in _BROKER_FAULTS:
        yield system_of(**undeliverable, max_delivery_attempts=1, of=(fault,))
    others: Mapping[str, Any] = {**undeliverable, **_BARE, "attempts_exhausted": "other_consumers", "faults": 0}
    yield system_of("qpid-jms", **others, consumers=2)
    alone = {**others, "messages": 2, "without": "acknowledge"}
    yield system_of("qpid-jms", **alone)
    yield system_of("qpid-jms", **{**alone, "actions": "settle_undeliverable settle_failed"})
    for settle in _SETTLES:
        thrown: Mapping[str, Any] = {"listener_exception": "next_message", "consumption": "listener"}
        yield system_of(**_BARE, **_ENLISTED, **thrown, actions=settle, messages=2, of=_THROWN)
    released: Mapping[str, Any] = {**_OUTCOMES, "actions": "settle_released", "max_delivery_attempts": 2}
    yield system_of("rabbitmq", **released, of=(Fault.CONSUMER_LINK_LOSS,))
    yield system_of("qpid-jms", **released, requeue_clears_mark=False, of=(Fault.CONSUMER_LINK_LOSS,))


def panel(specification: Specification) -> tuple[System, ...]:
    """The systems that look at each mutant: those of :func:`_panel` that their profiles do not refuse."""
    return tuple(system for system in dict.fromkeys(_panel()) if _exists(system, specification))


def _exists(system: System, specification: Specification) -> bool:
    try:
        specification.configure(system.profile, dict(system.settings))
    except InputError:
        return False
    return True
