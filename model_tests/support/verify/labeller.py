"""An independent labeller of recorded histories: plain sets and dicts over a list of events, definition by definition.

It follows the definitions of the labels in words (one function each) and shares nothing with the
package: no tables, no arrays, no code.  It is slow and small on purpose.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Event = dict[str, Any]
Ids = set[str]

SENDS = ("send", "resend")
TELLERS = ("nemesis", "broker")
OUTCOMES = ("confirmed", "rejected", "in_doubt")
ENDS = ("expired", "dead_lettered")
CONSUMING_FAULTS = ("broker_crash", "broker_kill", "journal_failure", "consumer_link_loss", "consumer_crash")


@dataclasses.dataclass(frozen=True)
class Labels:
    """What is in a history: the ids that have each anomaly (``None``: unknown), and counts of messages."""

    anomalies: Mapping[str, Ids | None]
    counters: Mapping[str, int]


def in_order(events: Iterable[Event]) -> list[Event]:
    """The events by time; those of one moment in the order of their lines."""
    return sorted(events, key=lambda event: event["t"])


def label(  # noqa: PLR0913 - the settings that labels depend on, each by name
    events: Iterable[Event],
    *,
    send_mode: str,
    publish_window: int | None,
    waits_for_sync: bool = False,
    prefetch: int | None = None,
    attempts: int = 0,
    rejection_excludes_delivery: bool = False,
) -> Labels:
    """Label the events of one history.

    ``waits_for_sync`` says whether a confirmation waits for the journal; ``prefetch`` is the bound of
    deliveries that the application has not acknowledged, ``None`` if there is none; ``attempts`` is the limit of
    deliveries, 0 if there is none.
    """
    log = _Log(spelt_out(in_order(events)))
    at_rest = all(log.judged(message) for message in log.ids)
    return Labels(
        anomalies={
            "loss": log.loss() if at_rest else None,
            "unprocessed": log.unprocessed() if at_rest else None,
            "duplicate": log.repeated(flag=True),
            "unflagged_duplicate": log.repeated(flag=False),
            "reprocessed": log.reprocessed(),
            "resurrection": log.resurrection(),
            "phantom": log.phantom(),
            "dirty_delivery": log.dirty_delivery(),
            "torn_transaction": log.torn_transaction() if at_rest else None,
            "reorder": log.reorder(),
            "early_confirm": log.early_confirm() if waits_for_sync else set(),
            "prefetch_overrun": log.prefetch_overrun(prefetch) if prefetch else set(),
            "window_overrun": log.window_overrun(publish_window if send_mode != "unconfirmed" else None),
            "double_outcome": log.double_outcome(),
            "missing_outcome": log.missing_outcome() if send_mode != "unconfirmed" else set(),
            "count_regression": log.count_regression(),
            "over_delivered": log.over_delivered(attempts),
            "ghost": log.ghost() if rejection_excludes_delivery else set(),
        },
        counters=log.counters(),
    )


class Covering:
    """Which deliveries of a history an acknowledgement covers."""

    def __init__(self, log: Sequence[Event]) -> None:
        self.log = log
        self.calls: dict[tuple[str, str | None, str], list[int]] = defaultdict(list)
        self.of_message: dict[str | None, list[int]] = defaultdict(list)
        self.of_session: dict[str, list[int]] = defaultdict(list)
        for place, event in enumerate(log):
            if event["event"] == "acknowledge":
                self.calls[_call(event)].append(place)
            elif event["event"] == "delivered":
                self.of_message[event["message"]].append(place)
                self.of_session[_session(event)].append(place)

    def by(self, place: int) -> list[int]:
        """The places of the deliveries that the acknowledgement at ``place`` covers.

        A confirmation covers what its call covered: the latest call of the same session, message and scope,
        and if there is none, what a call at its own moment would cover.
        """
        event, call = self.log[place], place
        if event["event"] != "acknowledge":
            call = next((i for i in reversed(self.calls[_call(event)]) if i < place), place)
        named = [i for i in self.of_message[event.get("message")] if i < call]
        if event["scope"] == "message":
            return named
        mine = _up_to(self.of_session[_session(event)], call - 1)
        if event["scope"] == "session":
            return mine
        last = [i for i in named if _session(self.log[i]) == _session(event)][-1:]
        return _up_to(mine, last[0]) if last else []


def _up_to(places: list[int], last: int) -> list[int]:
    """Those of ``places``, which ascend, that are not after ``last``."""
    return places[: bisect.bisect_right(places, last)]


def _call(event: Event) -> tuple[str, str | None, str]:
    return _session(event), event.get("message"), event["scope"]


def _session(event: Event) -> str:
    return str(event.get("session") or event["process"])


def _transaction(event: Event) -> tuple[str, str] | None:
    return (event["process"], event["transaction"]) if event.get("transaction") is not None else None


def spelt_out(log: list[Event]) -> list[Event]:
    """``log``, in order, with a line for each message that a range confirms, and for each call that timed out."""
    labelled, found, covered = _Log(log), list[Event](), set[int]()
    for place, event in enumerate(log):
        found.append(event)
        if event["event"] == "confirmed" and event.get("scope") == "up_to":
            messages = dict.fromkeys(labelled.log[i]["message"] for i in labelled.confirmed_by(place, covered))
            found += [{**event, "message": message} for message in sorted(messages) if message != event["message"]]
        if event["event"] == "fault" and event["fault"] == "acknowledge_timeout":
            calls = [one for one in log[:place] if one["event"] == "acknowledge"]
            mine = [call for call in calls if _session(call) == _session(event)]
            mine = mine or [call for call in calls if call["process"] == event["process"] not in TELLERS]
            found += [{**call, "t": event["t"], "event": "ack_in_doubt"} for call in mine[-1:]]
    return found


def outages(log: list[Event], send: int) -> list[tuple[int, int]]:
    """From where to where a crash of the producer of the send at that place, or of nobody by name, lasted."""
    labelled = _Log(log)
    return [(start, end) for start, end in labelled.crashes if labelled.meets(start, send)]


class _Log:
    """The events of a history in the order of time; a place is an index into them."""

    def __init__(self, log: list[Event]) -> None:
        self.log = log
        self.covering = Covering(log)
        self.by_message: dict[str, list[int]] = defaultdict(list)
        self.by_transaction: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, event in enumerate(log):
            if event.get("message") is not None:
                self.by_message[event["message"]].append(place)
            if (transaction := _transaction(event)) is not None:
                self.by_transaction[transaction].append(place)
        self.ids = set(self.by_message)
        self.drained = self.everywhere("drained")
        self.crashes = self._crashes()

    def of(self, message: str, *events: str) -> list[int]:
        return [i for i in self.by_message[message] if self.log[i]["event"] in events]

    def sends(self, message: str) -> list[int]:
        return self.of(message, *SENDS)

    def delivered(self, message: str) -> list[int]:
        return self.of(message, "delivered")

    def ends_of(self, send: int, *events: str) -> list[int]:
        """The ``events`` of the transaction that the send at ``send`` was made in."""
        transaction = _transaction(self.log[send])
        return (
            [i for i in self.by_transaction.get(transaction, []) if self.log[i]["event"] in events]
            if transaction
            else []
        )

    def everywhere(self, *events: str) -> list[int]:
        return [i for i, event in enumerate(self.log) if event["event"] in events]

    def confirmed_by(self, place: int, covered: set[int]) -> list[int]:
        """The sends that the range at ``place`` confirms, but for those ``covered`` by an earlier one; it adds them."""
        sends = [i for i in self.everywhere(*SENDS) if i < place and _transaction(self.log[i]) is None]
        last = [i for i in sends if self.log[i]["message"] == self.log[place]["message"]][-1:]
        mine = [i for i in sends if last and i <= last[0] and _session(self.log[i]) == _session(self.log[last[0]])]
        found = [i for i in mine if i not in covered and self._open(i, place)]
        covered.update(mine)
        return found

    def _open(self, send: int, now: int) -> bool:
        closes = [i for i in self.everywhere("close") if _session(self.log[i]) == _session(self.log[send])]
        answers = self.of(self.log[send]["message"], *OUTCOMES)
        return not any(send < i < now for i in (*closes, *answers)) and not self._crashed(send, now)

    # What became of a message

    def confirmed(self, message: str) -> bool:
        return bool(self.of(message, "confirmed")) or any(self.ends_of(i, "committed") for i in self.sends(message))

    def in_doubt(self, message: str) -> bool:
        doubted = bool(self.of(message, "in_doubt")) or any(
            self.ends_of(i, "commit_in_doubt") for i in self.sends(message)
        )
        return doubted and not self.confirmed(message)

    def rolled_back(self, message: str) -> bool:
        return any(self.ends_of(i, "rollback", "rolled_back") for i in self.sends(message))

    def gone(self, message: str) -> bool:
        return bool(self.of(message, *ENDS))

    def without_outcome(self, message: str) -> bool:
        plain = [i for i in self.sends(message) if _transaction(self.log[i]) is None]
        return len(plain) == len(self.sends(message)) > 0 and not self.of(message, *OUTCOMES)

    def judged(self, message: str) -> bool:
        """Whether its queue was seen drained after its last send (if it was never sent: after it was last named)."""
        return self._drained_after(message, (self.sends(message) or self.by_message[message])[-1])

    def queue(self, message: str) -> str | None:
        """The queue of its last send that names one; if none does, of its last line that does."""
        places = [*self.by_message[message], *self.sends(message)]
        named: list[str] = [self.log[i]["queue"] for i in places if self.log[i].get("queue") is not None]
        return named[-1] if named else None

    # The anomalies

    def loss(self) -> Ids:
        return {m for m in self.ids if self.confirmed(m) and not self.delivered(m) and not self.gone(m)}

    def unprocessed(self) -> Ids | None:
        """Unknown where nobody records what was processed, but for messages that came to another end."""
        found = {m for m in self.ids if self.delivered(m) and not self.of(m, "processed") and not self.gone(m)}
        return found if self.everywhere("processed") or not found else None

    def reprocessed(self) -> Ids | None:
        """Unknown where nobody records what was processed, but for messages that came once."""
        if not self.everywhere("processed") and any(len(self.delivered(m)) > 1 for m in self.ids):
            return None
        return {m for m in self.ids if len(self.of(m, "processed")) > 1}

    def repeated(self, *, flag: bool) -> Ids:
        return {m for m in self.ids if any(self.log[i]["redelivered"] is flag for i in self.delivered(m)[1:])}

    def resurrection(self) -> Ids:
        certain: list[tuple[int, set[str]]] = [
            (i, {self.log[j]["message"] for j in self.covering.by(i)}) for i in self.everywhere("acknowledged")
        ]
        for i in self.everywhere("committed"):
            consumed = self.by_transaction[self.log[i]["process"], self.log[i]["transaction"]]
            certain.append(
                (i, {self.log[j]["message"] for j in consumed if j < i and self.log[j]["event"] == "delivered"})
            )
        risen = {m for i, messages in certain for m in messages if self.delivered(m)[-1] > i}
        return {m for m in risen if not self.of(m, "resend")}

    def phantom(self) -> Ids:
        return {m for m in self.ids if self.delivered(m) and not [i for i in self.sends(m) if i < self.delivered(m)[0]]}

    def dirty_delivery(self) -> Ids:
        return {m for m in self.ids if any(self._dirty(m, i) for i in self.delivered(m))}

    def _dirty(self, message: str, delivery: int) -> bool:
        sends = [i for i in self.sends(message) if i < delivery]
        commits = [c for i in sends for c in self.ends_of(i, "commit") if c < delivery]
        return bool(sends) and all(_transaction(self.log[i]) for i in sends) and not commits

    def torn_transaction(self) -> Ids | None:
        torn = set()
        for (_, name), places in self.by_transaction.items():
            sent = {self.log[i]["message"] for i in places if self.log[i]["event"] in SENDS}
            arrived = {m for m in sent if self.delivered(m) or self.gone(m)}
            if arrived and arrived != sent:
                torn.add(name)
            kinds = {self.log[i]["event"]: i for i in places}
            if "commit_in_doubt" not in kinds or "committed" in kinds:
                continue
            taken = {self.log[i]["message"]: i for i in places if self.log[i]["event"] == "delivered"}
            taken = {m: i for m, i in taken.items() if not self.of(m, "resend")}
            again = {m for m, i in taken.items() if self.gone(m) or [j for j in self.of(m, "delivered") if j > i]}
            if not all(self._drained_after(m, kinds["commit_in_doubt"]) for m in taken):
                return None
            if again and again != set(taken):
                torn.add(name)
        return torn

    def _drained_after(self, message: str, place: int) -> bool:
        queue = self.queue(message)
        return any(i > place and self.log[i].get("queue") in {None, queue} for i in self.drained)

    def reorder(self) -> Ids:
        lanes: dict[tuple[object, ...], list[tuple[int, int, str]]] = defaultdict(list)
        for m in self.ids:
            delivered, sent = self.delivered(m)[:1], self.sends(m)[:1]
            if delivered and sent and not self.of(m, "resend") and not self.log[delivered[0]]["redelivered"]:
                send = self.log[sent[0]]
                taken = self.log[delivered[0]]
                consumer = _session(taken), taken.get("consumer")
                lane = (*consumer, send["process"], self.queue(m), send.get("delivery_mode"))
                lanes[lane].append((sent[0], delivered[0], m))
        over: Ids = set()
        for lane_of in lanes.values():
            earliest = len(self.log)  # at which one that was sent later was delivered
            for _, place, m in sorted(lane_of, reverse=True):
                over |= {m} if earliest < place else set()
                earliest = min(earliest, place)
        return over

    def window_overrun(self, window: int | None) -> Ids:
        over: Ids = set()
        if window is None:
            return over
        open_sends: dict[str, list[int]] = defaultdict(list)
        for place, event in enumerate(self.log):
            kind, mine = event["event"], open_sends[_session(event)]
            if kind in SENDS and _transaction(event) is None:
                if len(mine) >= window:
                    over.add(event["message"])
                if not self._crashed(place, place):
                    mine.append(place)
            elif kind == "close":
                mine.clear()
            for session in open_sends.values():
                session[:] = [
                    i
                    for i in session
                    if not (kind in OUTCOMES and self.log[i]["message"] == event["message"])
                    and not self._crashed(i, place)
                ]
        return over

    def _crashed(self, send: int, now: int) -> bool:
        """Whether a producer's crash up to ``now`` left this send without an outcome."""
        if [i for i in self.of(self.log[send]["message"], *OUTCOMES) if i > send]:
            return False
        return any(start <= now and send < end and self.meets(start, send) for start, end in self.crashes)

    def _crashes(self) -> list[tuple[int, int]]:
        """What producers died of; one that consumes too dies of what is told of its consumer, if that names it."""
        found = list[tuple[int, int]]()
        for kind in ("producer_crash", "consumer_crash"):
            told = [i for i in self.everywhere("fault", "recovered") if self.log[i]["fault"] == kind]
            deaths = [i for i in told if self.log[i]["event"] == "fault"]
            found += [(i, self._end_of(i, told)) for i in deaths if kind == "producer_crash" or self._victims(i)]
        return sorted(found)

    def _end_of(self, fault: int, told: list[int]) -> int:
        """The place of the repair: one of the victim, or where none is named one of all, else the last of somebody."""
        repairs = [i for i in told if i > fault and self.log[i]["event"] == "recovered"]
        mine = [i for i in repairs if self._same_victim(fault, i)]
        if self._victims(fault):
            return min(mine, default=len(self.log))
        following = min((i for i in told if i > min(mine, default=fault) and i not in repairs), default=len(self.log))
        of_all = [i for i in mine if not self._victims(i)]
        some = [i for i in mine if i < following]
        if of_all and (of_all[0] < following or not some):
            return of_all[0]
        return max(some, default=len(self.log))

    def _victims(self, place: int) -> Ids:
        """The producers that a fault or its repair names."""
        senders = {event["process"] for event in self.log if event["event"] in SENDS and _transaction(event) is None}
        event = self.log[place]
        owners = {
            other["process"]
            for other in self.log
            if other["event"] not in {"fault", "recovered"} and _session(other) == _session(event)
        }
        return (owners - set(TELLERS) or {event["process"]} - set(TELLERS)) & senders

    def _same_victim(self, fault: int, repair: int) -> bool:
        first, second = self._victims(fault), self._victims(repair)
        queues = {self.log[i].get("queue") for i in (fault, repair)} - {None}
        return (not first or not second or bool(first & second)) and len(queues) < 2

    def meets(self, fault: int, send: int) -> bool:
        """Whether a fault may be of who made this send, to its queue."""
        victims, queue = self._victims(fault), self.log[fault].get("queue")
        return (not victims or self.log[send]["process"] in victims) and queue in {None, self.log[send].get("queue")}

    def early_confirm(self) -> Ids:
        """Confirmed, and only then synced; a message that was resent before that is left out."""
        told = {
            m: [self.log[i]["event"] for i in self.of(m, "confirmed", "journal_synced", "resend")] for m in self.ids
        }
        return {
            m
            for m, events in told.items()
            if events[:1] == ["confirmed"] and [e for e in events if e != "confirmed"][:1] == ["journal_synced"]
        }

    def prefetch_overrun(self, bound: int) -> Ids:
        """Handed over while ``bound`` messages of the session and queue were neither acknowledged nor given up."""
        over: Ids = set()
        held: dict[str, list[int]] = defaultdict(list)
        old: Ids = set()  # what may have been prefetched before the last fault, by another connection
        for place, event in enumerate(self.log):
            self._release(held, place)
            if event.get("fault") in CONSUMING_FAULTS:
                held.clear()
                old = {m for m in self.ids if not any(i > place for i in self.of(m, "send")[:1])}
            if event["event"] == "delivered" and event["message"] not in old:
                mine = [i for i in held[_session(event)] if self.log[i].get("queue") == event.get("queue")]
                if len(mine) >= bound:
                    over.add(event["message"])
                held[_session(event)].append(place)
        return over

    def _release(self, held: dict[str, list[int]], place: int) -> None:
        """Take out of ``held`` the deliveries that nobody can be sure of from ``place`` on."""
        event = self.log[place]
        kind, covered = event["event"], set()
        if kind in {"acknowledge", "acknowledged", "ack_in_doubt"}:
            covered = set(self.covering.by(place))
        if kind in {"delivered", "failed", *ENDS}:
            covered = {i for i in self.of(event["message"], "delivered") if i < place}
        if kind in {"commit", "rollback", "committed", "commit_in_doubt"}:
            covered = set(self.by_transaction[event["process"], event["transaction"]])
        if kind in {"commit", "rollback", "recover", "close"}:
            held[_session(event)].clear()
        for deliveries in held.values():
            deliveries[:] = [i for i in deliveries if i not in covered]

    def double_outcome(self) -> Ids:
        """More outcomes than sends is read in time: a send that comes later does not make up for it."""
        both = {m for m in self.ids if self.of(m, "confirmed") and self.of(m, "rejected")}
        return both | {m for m in self.ids if self._answered_too_often(m)}

    def _answered_too_often(self, message: str) -> bool:
        places = self.of(message, *SENDS, "confirmed", "rejected")
        due = itertools.accumulate(1 if self.log[i]["event"] in SENDS else -1 for i in places)
        return any(balance < 0 for balance in due)

    def missing_outcome(self) -> Ids:
        waiting = {m for m in self.ids if self.without_outcome(m)}
        return {
            m
            for m in waiting
            if not any(i < end and self.meets(start, i) for i in self.sends(m) for start, end in self.crashes)
        }

    def count_regression(self) -> Ids:
        found = set()
        for m in self.ids:
            counted = [self.log[i] for i in self.delivered(m) if self.log[i].get("delivery_count") is not None]
            counts = [event["delivery_count"] for event in counted]
            fell = not self.of(m, "resend") and any(later < earlier for earlier, later in itertools.pairwise(counts))
            if fell or any((event["delivery_count"] > 1) != event["redelivered"] for event in counted):
                found.add(m)
        return found

    def over_delivered(self, attempts: int) -> Ids:
        found = set()
        for m in self.ids:
            expired = self.of(m, "expired")
            often = bool(attempts) and len(self.delivered(m)) > attempts and not self.of(m, "resend")
            if often or any(i > expired[0] for i in self.delivered(m) if expired):
                found.add(m)
        return found

    def ghost(self) -> Ids:
        rejected = {event.get("message") for event in self.log if event["event"] == "rejected"}
        return {m for m in self.ids if m in rejected and self.delivered(m)}

    def counters(self) -> dict[str, int]:
        repeated = self.repeated(flag=False)
        sent = {m for m in self.ids if self.sends(m)}
        return {
            "messages": len(sent),
            "confirmed": sum(map(self.confirmed, self.ids)),
            "in_doubt": sum(map(self.in_doubt, self.ids)),
            "no_outcome": sum(map(self.without_outcome, self.ids)),
            "delivered": sum(bool(self.delivered(m)) for m in self.ids),
            "flag_first_sight": sum(self.log[i]["redelivered"] for m in self.ids for i in self.delivered(m)[:1]),
            "unflagged_duplicate_not_resent": sum(not self.of(m, "resend") for m in repeated),
            "undelivered_unconfirmed": sum(
                not (
                    self.confirmed(m)
                    or self.of(m, "rejected")
                    or self.rolled_back(m)
                    or self.delivered(m)
                    or self.gone(m)
                )
                for m in sent
            ),
        }
