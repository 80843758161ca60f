"""Histories of ordinary traffic for Hypothesis, with now and then a life that is not ordinary.

Several producers and consumers send and are handed many messages at the same time, so that most lives are over soon and
alike; a few are disturbed: lost, doubled, late, out of order, never processed, told in other lines.  Often producers or
consumers have transactions of several messages, cut differently, and a few of these are disturbed as well.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

Event = dict[str, Any]

DISTURBED = (
    "lost",
    "twice",
    "flagged",
    "late again",
    "unprocessed",
    "unconfirmed",
    "confirmed up to",
    "resent",
    "overtaken",
    "elsewhere",
    "in transaction",
    "acknowledged late",
    "session acknowledged",
    "counted wrongly",
    "before its send",
    "dead",
    "sent by another",
    "journalled",
    "unanswered",
    "answered wrongly",
    "in doubt",
)
DISTURBED_TRANSACTIONS = (
    "rolled back",
    "in doubt",
    "answered with rolled back",
    "not answered",
    "not committed",
    "committed twice",
    "answered twice",
    "in another session",
    "named as the first",
    "late member",
    "answered late",
    "with a message",
)
AROUND = (
    "time-out",
    "fault",
    "fault of one",
    "fault of a queue",
    "close",
    "broken",
    "recover",
    "drained",
    "silent",
    "rollback",
)
FAULTS = ("broker_crash", "consumer_crash", "producer_crash", "consumer_link_loss")

_SETTINGS = st.fixed_dictionaries(
    {
        "scope": st.sampled_from([None, "message", "message", "session"]),
        "named": st.booleans(),
        "answered": st.sampled_from([True, True, False]),
        "clients": st.integers(1, 2),
        "step": st.sampled_from([0, 1, 10, 10**8]),
        "latency": st.integers(0, 3),
        "sent_at_once": st.sampled_from([0, 0, 2, 3, 5]),
        "taken_at_once": st.sampled_from([0, 0, 1, 2, 4]),
        "relayed": st.sampled_from([False, False, True]),
        "begins": st.booleans(),
        "names": st.sampled_from([1000, 1000, 1000, 1, 3]),
    }
)


class _Traffic:
    """Writes lines at moments that are numbers of messages, which stand ``step`` nanoseconds apart."""

    def __init__(self, settings: dict[str, Any], count: int, strange: dict[int, str]) -> None:
        self.settings, self.count, self.strange = settings, count, strange
        self.lines: list[tuple[int, int, Event]] = []

    def write(self, at: float, process: str, event: str, **fields: Any) -> None:
        row = {"t": max(0, int((at + 10) * self.settings["step"])), "process": process, "event": event, **fields}
        self.lines.append((int(at * 1000), len(self.lines), {k: v for k, v in row.items() if v is not None}))

    def members(self, number: int, at_once: int) -> range:
        """The messages that one client sends or takes in a transaction with that of this number."""
        clients = self.settings["clients"]
        first = number - number // clients % at_once * clients
        return range(first, min(first + at_once * clients, self.count), clients)

    def committed_at(self, number: int) -> float:
        """When what was sent may be delivered."""
        at_once: int = self.settings["sent_at_once"]
        return self.members(number, at_once)[-1] + 0.35 if at_once else number

    def arrives_at(self, number: int) -> float:
        members = self.members(number, self.settings["sent_at_once"] or 1)
        latency: int = self.settings["latency"]
        return self.committed_at(number) + 0.5 + latency + 0.01 * members.index(number)

    def relayed_by(self, number: int) -> range | None:
        """What its consumer sends in the transaction in which it takes this message, if it relays messages."""
        at_once, clients = self.settings["sent_at_once"], self.settings["clients"]
        later = number + clients * math.ceil((self.arrives_at(number) + 0.5 - number) / clients)
        relays = self.settings["relayed"] and at_once and later < self.count
        return self.members(later, at_once) if relays else None

    def delivered_at(self, number: int) -> float:
        relayed = self.relayed_by(number)
        return max(self.arrives_at(number), relayed[0] - 0.3 if relayed else 0)

    def name(self, kind: str, number: int, at_once: int) -> str:
        """The name of a transaction; after some, names are used again."""
        what = self.strange.get(self.members(number, at_once)[0])
        which = number // (self.settings["clients"] * at_once) % self.settings["names"]
        return f"{kind}{0 if what == 'named as the first' else which}"

    def sent_in(self, number: int) -> str | None:
        at_once = self.settings["sent_at_once"]
        return self.name("t", number, at_once) if at_once else None

    def taken_in(self, number: int) -> str | None:
        """The transaction in which a message is taken; who relays sends others in it."""
        at_once, sent = self.settings["taken_at_once"], self.settings["sent_at_once"]
        if self.settings["relayed"] and sent:
            relayed = self.relayed_by(number)
            return self.name("t", relayed[0], sent) if relayed else None
        return self.name("u", number, at_once) if at_once else None

    def ends(self, number: int, process: str, transaction: str, at: float) -> None:
        """The end of the transaction of which this is the first message, at the moment when it is committed."""
        what, of = self.strange.get(number), {"transaction": transaction}
        if what == "in another session":
            of["session"] = "another"
        if what == "not committed":
            return
        self.write(at, process, "rollback" if what == "rolled back" else "commit", **of)
        if what == "committed twice":
            self.write(at + 0.01, process, "commit", **of)
        answers = {
            "rolled back": "rolled_back",
            "answered with rolled back": "rolled_back",
            "in doubt": "commit_in_doubt",
        }
        if what == "late member":
            self.write(at + 0.01, process, "delivered", message=f"m{number}", redelivered=True, **of)
        if what != "not answered":
            message = f"m{number}" if what == "with a message" else None
            late = 9 if what == "answered late" else 0.02
            self.write(at + late, process, answers.get(str(what), "committed"), message=message, **of)
        if what == "answered twice":
            self.write(at + 0.03, process, "committed", **of)

    def transactions(self) -> None:
        """The lines of transactions that tell of no message."""
        sent, taken = self.settings["sent_at_once"], self.settings["taken_at_once"]
        relayed = self.settings["relayed"] and sent
        for number in range(self.count):
            who = number % self.settings["clients"]
            first = self.members(number, sent or 1)[0] == number
            if sent and first:
                at = self.committed_at(number)
                self.ends(number, self.producer(who), self.name("t", number, sent), at)
                if self.settings["begins"]:
                    self.write(number - 0.4, self.producer(who), "begin", transaction=self.name("t", number, sent))
            if taken and not relayed and self.members(number, taken)[0] == number:
                last = max(self.delivered_at(each) for each in self.members(number, taken))
                self.ends(number, f"c{who}", self.name("u", number, taken), last + 0.15)
                if self.settings["begins"]:
                    begin = self.delivered_at(number) - 0.005
                    self.write(begin, f"c{who}", "begin", transaction=self.name("u", number, taken))

    def producer(self, who: int) -> str:
        return f"c{who}" if self.settings["relayed"] else f"p{who}"

    def live(self, number: int, what: str | None) -> None:
        who = number % self.settings["clients"]
        self.sent(number, who, what)
        if what == "dead":
            self.write(number + 0.5, "broker", "dead_lettered", message=f"m{number}", queue=f"q{who}")
        elif what != "lost":
            self.consumed(number, who, what)

    def sent(self, number: int, who: int, what: str | None) -> None:
        message, producer, mode = f"m{number}", self.producer(who), ("PERSISTENT", "NON_PERSISTENT")[who]
        fields = {"message": message, "queue": f"q{who}", "delivery_mode": mode}
        transaction = "t1" if what == "in transaction" else self.sent_in(number)
        self.write(number, producer, "send", **fields, transaction=transaction)
        if what == "in transaction":
            self.write(number + 0.4, producer, "commit", transaction=transaction)
            self.write(number + 0.5, producer, "committed", transaction=transaction)
        elif what != "unconfirmed" and not transaction:
            by, scope = "p9" if what == "sent by another" else producer, "up_to" if what == "confirmed up to" else None
            self.write(number + 0.3, by, "confirmed", message=message, scope=scope)
        if what == "resent":
            self.write(number + 0.35, producer, "resend", **fields, transaction=transaction)
        if what == "journalled":
            self.write(number + 0.25, "broker", "journal_synced", message=message)

    def consumed(self, number: int, who: int, what: str | None) -> None:
        message, to = f"m{number}", f"c{1 - who}" if what == "elsewhere" else f"c{who}"
        latency, transaction = self.settings["latency"], self.taken_in(number)
        at = self.delivered_at(number)
        at += {"overtaken": 3.2, "before its send": number - self.committed_at(number) - latency - 0.7}.get(
            str(what), 0
        )
        fields = {"message": message, "queue": f"q{who}", "transaction": transaction}
        count = 3 if what == "counted wrongly" else None
        self.write(at, to, "delivered", **fields, redelivered=what == "flagged", delivery_count=count)
        if what == "twice":
            self.write(at + 0.02, to, "delivered", **fields, redelivered=False)
        if what != "unprocessed":
            self.write(at + 0.1, to, "processed", message=message)
        if transaction is None or what == "acknowledged late":
            self.acknowledged(number, at + (7 if what == "acknowledged late" else 0), to, what)
        if what == "late again":
            self.write(at + 11, f"c{who}", "delivered", **{**fields, "transaction": None}, redelivered=True)
            self.write(at + 11.1, f"c{who}", "processed", message=message)

    def acknowledged(self, number: int, at: float, to: str, what: str | None) -> None:
        scope = "session" if what == "session acknowledged" else self.settings["scope"]
        if scope is None or (scope == "session" and number % 3 and not what):
            return
        named = f"m{number}" if scope == "message" or self.settings["named"] else None
        self.write(at + 0.2, to, "acknowledge", scope=scope, message=named)
        if self.settings["answered"] and what != "unanswered":
            other = f"m{number - 1}" if what == "answered wrongly" else named
            event = "ack_in_doubt" if what == "in doubt" else "acknowledged"
            self.write(at + 0.3, to, event, scope=scope, message=other)

    def befalls(self, at: float, event: str, victim: str, fault: str) -> None:
        """A line of a fault, or of its repair, by its victim or by somebody who names that."""
        if self.settings["named"]:
            self.write(at, victim, event, fault=fault)
        else:
            self.write(at, "nemesis", event, fault=fault, session=victim)

    def around(self, at: float, what: str, which: int) -> None:
        if what == "fault":
            self.write(at, "nemesis", "fault", fault=FAULTS[which])
            if which % 2:
                self.write(at + 2, "nemesis", "recovered", fault=FAULTS[which])
        elif what == "time-out":
            self.befalls(at, "fault", f"c{which % 2}", "acknowledge_timeout")
        elif what == "fault of one":
            victims = ("c0", "c1", "p0", "c0")
            fault = ("consumer_link_loss", "consumer_crash", "producer_crash", "consumer_link_loss")[which]
            self.befalls(at, "fault", victims[which], fault)
            self.befalls(at + 1, "recovered", victims[which - 1], fault)
            self.befalls(at + 2 + 9 * (which % 2), "recovered", victims[which], fault)
        elif what == "fault of a queue":
            self.write(at, "nemesis", "fault", fault=FAULTS[which], queue=f"q{which % 2}")
            self.write(at + 2, "nemesis", "recovered", fault=FAULTS[which], queue=(None, None, "q0", "q1")[which])
        elif what == "drained":
            self.write(at, "nemesis", "drained", queue=(None, "q0", "q1", "q2")[which])
        elif what == "silent":
            self.write(at, "c5", "delivered", message=f"m{which}", queue="q0", redelivered=False)
        elif what == "rollback":
            self.write(at, f"c{which % 2}", "rollback", transaction="t9")
        else:
            error = "connection reset" if what == "broken" else None
            self.write(at, ("c0", "c1", "p0", "c7")[which], "recover" if what == "recover" else "close", error=error)


_TRANSACTED = st.fixed_dictionaries({"sent_at_once": st.integers(2, 3), "begins": st.booleans()})


def _of_somebody(events: list[Event]) -> list[Event]:
    """Without the faults of sessions and queues in which nothing is done, which a file must not have."""
    told = {"fault", "recovered"}
    others = [event for event in events if event["event"] not in told]
    sessions = {None, *(event.get("session", event["process"]) for event in others)}
    queues = {None, *(event.get("queue") for event in others)}
    return [
        event
        for event in events
        if event["event"] not in told or (event.get("session") in sessions and event.get("queue") in queues)
    ]


@st.composite
def traffic(draw: st.DrawFn, *, transacted: bool = False) -> list[Event]:
    """The events of a history in the order of its lines, mostly that of time; if ``transacted``, of more messages."""
    count = draw(st.integers(30, 70) if transacted else st.integers(1, 40))
    its = draw(_SETTINGS) | (draw(_TRANSACTED) if transacted else {})
    of_transactions = st.dictionaries(
        st.integers(0, count - 1), st.sampled_from(DISTURBED_TRANSACTIONS), max_size=draw(_FEW)
    )
    this = _Traffic(its, count, draw(of_transactions))
    disturbed = st.dictionaries(st.integers(0, count - 1), st.sampled_from(DISTURBED), max_size=draw(_FEW))
    moments = st.tuples(st.integers(0, count * 2), st.sampled_from(AROUND), st.integers(0, 3))
    strange = draw(disturbed)
    for number in range(count):
        this.live(number, strange.get(number))
    this.transactions()
    for at, what, which in draw(st.lists(moments, max_size=draw(_FEW))):
        this.around(at + 0.05, what, which)
    if draw(st.booleans()):
        this.write(count + 30, "nemesis", "drained")
    if draw(st.booleans()):
        this.write(count + 31, "c0", "close")
    ordered = _of_somebody([event for _, _, event in sorted(this.lines, key=lambda each: each[:2])])
    return list(draw(st.permutations(ordered))) if draw(st.sampled_from([False, False, False, True])) else ordered


_FEW = st.sampled_from([0, 1, 4])
