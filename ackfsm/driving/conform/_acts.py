"""Acts by the events of the tables: each with the call that it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ackfsm.driving.conform._adapter import Adapter, Delivery, Strike
from ackfsm.driving.conform._claims import Claimed, Mode
from ackfsm.driving.conform._program import Act, Program, Step
from ackfsm.driving.conform._run import Performed, Run
from ackfsm.history.format import Outcome
from ackfsm.tables.names import Event
from ackfsm.terms import Fault, SendMode


@dataclasses.dataclass(slots=True)
class Hand:
    """A message that a consumer was handed, until its listener has returned; ``client`` is that of the run."""

    client: Any
    delivery: Delivery
    processed: bool = False


def perform(adapter: Adapter, claimed: Claimed, mode: Mode, program: Program, wait: float) -> Performed:
    """Run ``program``; ``wait`` seconds is how long a receive waits for a message.

    Raises whatever the adapter raises beside the errors of :mod:`ackfsm.driving.conform`.
    """
    return _Led(adapter, claimed, mode, wait).go(program)


class _Led(Run):
    """A run of acts by the events of the tables as well."""

    def __init__(self, adapter: Adapter, claimed: Claimed, mode: Mode, wait: float) -> None:
        super().__init__(adapter, claimed, mode, wait)
        self.hands: dict[int, Hand] = {}

    def step(self, step: Step) -> None:
        """Do what an act is; it is left out where the broker has done something else than the model's run."""
        if not isinstance(step, Act):
            super().step(step)
        elif step.event in set(Fault) - {Fault.LISTENER_EXCEPTION}:
            self.befall(Fault(step.event), step.who, at_stake=step.who in self.hands)
        else:
            ACTS[step.event](self, step)

    def drain(self) -> None:
        """Let the listeners return first."""
        for who in list(self.hands):
            _let_go(self, who)
        super().drain()


def _strike(act: Act) -> Strike | None:
    return None if act.during is None else Strike(act.during, act.after)


def _send(run: _Led, act: Act) -> None:
    run.send(_strike(act))


def _resend(run: _Led, act: Act) -> None:
    told = run.configuration.send_mode is not SendMode.UNCONFIRMED  # whoever sends again knows what became of the first
    if act.message in run.sent_ids() and told and not run.transacted:  # in the model a second one is in no transaction
        run.send(_strike(act), again=act.message)


def _deliver(run: _Led, act: Act) -> None:
    _let_go(run, act.who)
    got = run.receive(act.who)
    if got is not None:
        run.hands[act.who] = Hand(*got)


def _let_go(run: _Led, who: int) -> None:
    """The listener returns, if it holds a message still."""
    hand = run.hands.pop(who, None)
    if hand is None or hand.client not in run.clients():
        return
    if not hand.processed:
        run.processed(hand.client, hand.delivery.message)
    run.returned(hand.client, hand.delivery.message)


def _process(run: _Led, act: Act) -> None:
    hand = run.hands.get(act.who)
    if hand is None or hand.processed or hand.client not in run.clients():
        return
    hand.processed = True
    run.processed(hand.client, hand.delivery.message)
    if not (run.transacted or run.by_application):
        _let_go(run, act.who)


def _acknowledge(run: _Led, act: Act) -> None:
    client = run.consumers.get(act.who)
    if client is None or not client.held or not run.by_application:
        return
    message = act.message if act.message in client.held else client.held[-1]
    run.acknowledge(client, message, _strike(act))
    _let_go(run, act.who)


def _settle(run: _Led, act: Act) -> None:
    hand, client = run.hands.get(act.who), run.consumers.get(act.who)
    if client is None:
        return
    if hand is not None and hand.client is client and hand.delivery.message == act.message:
        del run.hands[act.who]
    elif act.message not in client.held:
        return
    run.give_up(client, act.message, SETTLES[act.event])
    if hand is not None and act.who not in run.hands:
        run.returned(client, act.message)


def _commit(run: _Led, act: Act) -> None:
    if run.producer is not None:
        run.commit(run.producer, _strike(act))


def _rollback(run: _Led, _: Act) -> None:
    if run.producer is not None:
        run.rollback(run.producer)


def _commit_received(run: _Led, act: Act) -> None:
    client = run.consumers.get(act.who)
    if client is not None:
        run.commit(client, _strike(act))
        _let_go(run, act.who)


def _rollback_received(run: _Led, act: Act) -> None:
    client = run.consumers.get(act.who)
    if client is not None:
        run.rollback(client)
        _let_go(run, act.who)


def _recover(run: _Led, act: Act) -> None:
    _let_go(run, act.who)
    run.recover(act.who)


def _cancel(run: _Led, act: Act) -> None:
    run.cancel(run.consumer(act.who))


def _close(run: _Led, act: Act) -> None:
    _let_go(run, act.who)
    run.close(run.consumers.get(act.who))


def _close_producer(run: _Led, _: Act) -> None:
    run.close(run.producer)


def _throw(run: _Led, act: Act) -> None:
    hand = run.hands.pop(act.who, None)
    if hand is not None and not hand.processed and hand.client in run.clients() and not hand.client.given_back:
        run.fail(hand.client, hand.delivery)


SETTLES: Final[Mapping[str, Outcome]] = MappingProxyType(
    {
        Event.SETTLE_RELEASED: Outcome.RELEASED,
        Event.SETTLE_FAILED: Outcome.MODIFIED,
        Event.SETTLE_UNDELIVERABLE: Outcome.UNDELIVERABLE,
        Event.SETTLE_REJECTED: Outcome.REJECTED,
    }
)
"""The outcomes that an application states."""
ACTS: Final[Mapping[str, Callable[[_Led, Act], None]]] = MappingProxyType(
    {
        Event.SEND: _send,
        Event.SEND_IN_TRANSACTION: _send,
        Event.RESEND: _resend,
        Event.DELIVERED_CLEAR: _deliver,
        Event.DELIVERED_FLAGGED: _deliver,
        Event.PROCESSED: _process,
        Event.PROCESSED_IN_VAIN: _process,
        Event.ACKNOWLEDGE: _acknowledge,
        **dict.fromkeys(SETTLES, _settle),
        Event.COMMIT_CALLED: _commit,
        Event.ROLLBACK: _rollback,
        Event.CONSUMER_COMMIT_CALLED: _commit_received,
        Event.CONSUMER_ROLLBACK: _rollback_received,
        Event.RECOVER: _recover,
        Event.CONSUMER_CANCEL: _cancel,
        Event.CONSUMER_CLOSE: _close,
        Event.PRODUCER_CLOSE: _close_producer,
        Event.LISTENER_EXCEPTION: _throw,
    }
)
"""By event of ``spec/events.yaml``."""
