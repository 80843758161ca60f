"""A run of the model as a history in format 1, as a recorder beside such a system would write it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ackfsm.checking.explore import Step, Witness
from ackfsm.checking.network import Index, Instance
from ackfsm.history.format import HEADER_KEY, VERSION
from ackfsm.tables import Event, Lane, Specification
from ackfsm.tables.names import Condition, Machine, Monitor
from ackfsm.terms import Anomaly, Configuration, Fault, InputError

_QUEUE = "q"
_BETWEEN_LINES = 1_000_000
"""Nanoseconds."""

_PRODUCER, _CONSUMER = "producer-1", "consumer-{}"
_CLIENTS = frozenset({Lane.PRODUCER, Lane.CONSUMER, Lane.FAULT})
_PROCESS = {
    Lane.PRODUCER: _PRODUCER,
    Lane.CONSUMER: _CONSUMER,
    Lane.FAULT: _CONSUMER,
    Lane.BROKER: "broker",
    Lane.JOURNAL: "broker",
}
_VICTIM = {
    Fault.PRODUCER_CRASH: _PRODUCER,
    Fault.PRODUCER_LINK_LOSS: _PRODUCER,
    Fault.CONSUMER_CRASH: _CONSUMER,
    Fault.CONSUMER_LINK_LOSS: _CONSUMER,
}
"""The processes that a fault hits; what hits the broker, or one message, is told by the nemesis."""

_SESSION_OF: Mapping[str, str] = {Machine.TRANSACTION: _PRODUCER, Machine.CONSUMER_TRANSACTION: _CONSUMER}
"""Whose transaction a machine follows."""

_WAITS: Mapping[str, tuple[str, str]] = {
    Monitor.BLOCKED_SEND: (_PRODUCER, "send"),
    Monitor.BLOCKED_ACKNOWLEDGE: (_CONSUMER, "acknowledge"),
    Monitor.OPEN_TRANSACTION: (_PRODUCER, "commit"),
    Monitor.OPEN_CONSUMER_TRANSACTION: (_CONSUMER, "commit"),
}
"""The machines of ``stuck`` that follow a call: whose it is, and which."""

_DRAINED = {"process": "broker", "event": "drained", "queue": _QUEUE}

_SENDS = frozenset({"send", "resend"})
_NEMESIS = "nemesis"


def witness_history(specification: Specification, witness: Witness) -> str:
    """``witness`` as a history; see :func:`run_history`.

    Raises :class:`InputError` for one of several subscriptions: a history has one name for a message, and would show
    what each of them is delivered as deliveries of the same one; and for one of several consumers in one session, which
    its lines would not tell apart.
    """
    if witness.network.bounds.subscriptions > 1:
        raise InputError("a history is of one subscription; leave --subscriptions out")
    if witness.network.bounds.one_session:
        raise InputError("a history has one consumer in each session; leave --one-session out")
    return run_history(
        specification,
        witness.network.configuration,
        witness.steps,
        at_rest=witness.at_rest,
        stuck_of=witness.network.bounds.messages if witness.anomaly == Anomaly.STUCK else 0,
        note=" ".join(witness.ending),
    )


def run_history(  # noqa: PLR0913 - what is written, and how it ends
    specification: Specification,
    configuration: Configuration,
    steps: Iterable[Step],
    *,
    at_rest: bool,
    stuck_of: int = 0,
    note: str = "",
) -> str:
    """``steps`` as lines of JSON, header first, as ``ackfsm verify`` reads them.

    A step leaves the line that ``spec/events.yaml`` gives its event; what no recorder sees leaves none.  A run that
    ends ``at_rest`` ends with ``drained``; where it is asked what is stuck, of so many messages, with the calls that
    wait and with how many are in flight for ever, which leaves open what became of these.
    """
    lines = run_lines(specification, configuration, steps, at_rest=at_rest, stuck_of=stuck_of)
    header = {HEADER_KEY: VERSION, "config": configuration.as_dict(), "note": note}
    timed = [{"t": number * _BETWEEN_LINES, **line} for number, line in enumerate(lines, start=1)]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (header, *timed))


def run_lines(
    specification: Specification,
    configuration: Configuration,
    steps: Iterable[Step],
    *,
    at_rest: bool,
    stuck_of: int = 0,
) -> list[dict[str, Any]]:
    """The lines of :func:`run_history` after its header, without their times."""
    recorder = _Recorder(specification, configuration)
    lines = [line for step in steps for line in recorder.lines(step)]
    if at_rest and stuck_of:
        lines += recorder.stuck(stuck_of)
    elif at_rest:
        lines.append(_DRAINED)
    return lines


class _Recorder:
    """Writes the lines of one run, and knows which faults and transactions are open meanwhile."""

    def __init__(self, specification: Specification, configuration: Configuration) -> None:
        self._events, self._recording = specification.events, specification.recording
        environment = specification.environment(configuration)
        self._is_transacted = specification.conditions[Condition.TRANSACTED].holds(environment)
        self._delivery_mode = configuration.delivery_mode.value
        self._ack_scope = configuration.client_ack_scope.value
        self._ended: Counter[str] = Counter()
        self._open_faults: set[tuple[str, int]] = set()
        self._stuck: dict[str, tuple[Instance, str]] = {}
        self._sent: set[str] = set()

    def lines(self, step: Step) -> Iterator[dict[str, Any]]:
        """Yield the lines that the step leaves."""
        event, consumer = self._events[step.event.name], step.event.consumer or 1
        told = self._recording.line_of(event.name)
        if told is not None:
            line = self._line(event, told, step.event.index, consumer)
            yield line | ({"scope": self._ack_scope} if _covers_others(told, step) else {})
        for fault in self._recording.repaired_by(event.name):
            if (fault, consumer) in self._open_faults:
                self._open_faults.remove((fault, consumer))
                yield {"process": _told_by(fault, consumer), "event": "recovered", "fault": fault}
        if event.name in set(Fault):
            self._open_faults.add((event.name, consumer))
            yield {"process": _told_by(event.name, consumer), "event": "fault", "fault": event.name}
        self._ended.update(_transactions_ended(step))
        self._stuck |= {
            change.instance.label: (change.instance, change.row.target)
            for change in step.changes
            if change.instance.anomaly == Anomaly.STUCK
        }

    def stuck(self, messages: int) -> Iterator[dict[str, Any]]:
        """Yield the calls that wait, the ones that never began to send, and the rest in the queue."""
        left = [instance for instance, state in self._stuck.values() if state in instance.marked_at_rest]
        for instance in left:
            name = instance.fsm.name
            if name in _WAITS:
                process, call = _WAITS[name]
                who = process.format(instance.consumer or 1)
                line = {"process": who, "event": "waiting", "session": who, "error": call, "queue": _QUEUE}
                yield line | ({"message": f"m{instance.index[0]}"} if instance.index else {})
        unsent = {f"m{number}" for number in range(1, messages + 1)} - self._sent
        for message in sorted(unsent):
            yield {"process": _PRODUCER, "event": "waiting", "error": "send", "queue": _QUEUE, "message": message}
        flying = sum(instance.fsm.name == Monitor.IN_FLIGHT for instance in left)
        yield {**_DRAINED, "event": "depth", "position": 0, "delivery_count": flying}

    def _line(self, event: Event, told: Mapping[str, str | bool], index: Index, consumer: int) -> dict[str, Any]:
        process = _PROCESS[event.lane].format(consumer)
        line: dict[str, Any] = {"process": process, **told}
        if event.lane in _CLIENTS:
            line["session"] = process
            if self._is_transacted:
                line["transaction"] = f"{process}.{self._ended[process] + 1}"
        if index:
            line |= {"queue": _QUEUE, "message": f"m{index[0]}"}
        if told["event"] in _SENDS:
            self._sent.add(line["message"])
            line["delivery_mode"] = self._delivery_mode
        return line


def _covers_others(told: Mapping[str, str | bool], step: Step) -> bool:
    """Whether the step is a call that acknowledges deliveries of other messages as well."""
    return told["event"] == "acknowledge" and any(
        change.instance.fsm.name == Machine.ACK_FRAME and change.instance.index != step.event.index
        for change in step.moved()
    )


def _told_by(fault: str, consumer: int) -> str:
    return _VICTIM.get(Fault(fault), _NEMESIS).format(consumer)


def _transactions_ended(step: Step) -> Iterator[str]:
    """The processes whose transaction the step ends: its machine is idle again."""
    for change in step.moved():
        fsm = change.instance.fsm
        if fsm.name in _SESSION_OF and change.row.target == fsm.initial:
            yield _SESSION_OF[fsm.name].format(change.instance.consumer or 1)
