"""Histories of ordinary traffic for Hypothesis, with now and then a life that is not ordinary.

Several producers and consumers send and are handed many messages at the same time, so that most lives are over soon and
alike; a few are disturbed: lost, doubled, late, out of order, never processed, told in other lines.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["Event", "traffic"]

Event = dict[str, Any]

DISTURBED = (
    "lost",
    "twice",
    "flagged",
    "late again",
    "unprocessed",
    "unconfirmed",
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
AROUND = ("fault", "close", "broken", "recover", "drained", "silent", "rollback")
FAULTS = ("broker_crash", "consumer_crash", "producer_crash", "consumer_link_loss")

_SETTINGS = st.fixed_dictionaries(
    {
        "scope": st.sampled_from([None, "message", "message", "session"]),
        "named": st.booleans(),
        "answered": st.sampled_from([True, True, False]),
        "clients": st.integers(1, 2),
        "step": st.sampled_from([0, 1, 10, 10**8]),
        "latency": st.integers(0, 3),
    }
)


class _Traffic:
    """Writes lines at moments that are numbers of messages, which stand ``step`` nanoseconds apart."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.lines: list[tuple[int, int, Event]] = []

    def write(self, at: float, process: str, event: str, **fields: Any) -> None:
        row = {"t": max(0, int((at + 10) * self.settings["step"])), "process": process, "event": event, **fields}
        self.lines.append((int(at * 1000), len(self.lines), {k: v for k, v in row.items() if v is not None}))

    def live(self, number: int, what: str | None) -> None:
        who = number % self.settings["clients"]
        self.sent(number, who, what)
        if what == "dead":
            self.write(number + 0.5, "broker", "dead_lettered", message=f"m{number}", queue=f"q{who}")
        elif what != "lost":
            self.consumed(number, who, what)

    def sent(self, number: int, who: int, what: str | None) -> None:
        message, producer, mode = f"m{number}", f"p{who}", ("PERSISTENT", "NON_PERSISTENT")[who]
        fields = {"message": message, "queue": f"q{who}", "delivery_mode": mode}
        transaction = "t1" if what == "in transaction" else None
        self.write(number, producer, "send", **fields, transaction=transaction)
        if transaction:
            self.write(number + 0.4, producer, "commit", transaction=transaction)
            self.write(number + 0.5, producer, "committed", transaction=transaction)
        elif what != "unconfirmed":
            self.write(number + 0.3, "p9" if what == "sent by another" else producer, "confirmed", message=message)
        if what == "resent":
            self.write(number + 0.35, producer, "resend", **fields)
        if what == "journalled":
            self.write(number + 0.25, "broker", "journal_synced", message=message)

    def consumed(self, number: int, who: int, what: str | None) -> None:
        message, to = f"m{number}", f"c{1 - who}" if what == "elsewhere" else f"c{who}"
        latency = self.settings["latency"]
        at = number + 0.5 + latency + {"overtaken": 3.2, "before its send": -latency - 0.7}.get(str(what), 0)
        fields = {"message": message, "queue": f"q{who}"}
        count = 3 if what == "counted wrongly" else None
        self.write(at, to, "delivered", **fields, redelivered=what == "flagged", delivery_count=count)
        if what == "twice":
            self.write(at + 0.02, to, "delivered", **fields, redelivered=False)
        if what != "unprocessed":
            self.write(at + 0.1, to, "processed", message=message)
        self.acknowledged(number, at + (7 if what == "acknowledged late" else 0), to, what)
        if what == "late again":
            self.write(at + 11, f"c{who}", "delivered", **fields, redelivered=True)
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

    def around(self, at: float, what: str, which: int) -> None:
        if what == "fault":
            self.write(at, "nemesis", "fault", fault=FAULTS[which])
            if which % 2:
                self.write(at + 2, "nemesis", "recovered", fault=FAULTS[which])
        elif what == "drained":
            self.write(at, "nemesis", "drained", queue=(None, "q0", "q1", "q2")[which])
        elif what == "silent":
            self.write(at, "c5", "delivered", message=f"m{which}", queue="q0", redelivered=False)
        elif what == "rollback":
            self.write(at, f"c{which % 2}", "rollback", transaction="t9")
        else:
            error = "connection reset" if what == "broken" else None
            self.write(at, ("c0", "c1", "p0", "c7")[which], "recover" if what == "recover" else "close", error=error)


@st.composite
def traffic(draw: st.DrawFn) -> list[Event]:
    """The events of a history in the order of its lines, mostly that of time."""
    count, this = draw(st.integers(1, 40)), _Traffic(draw(_SETTINGS))
    disturbed = st.dictionaries(st.integers(0, count - 1), st.sampled_from(DISTURBED), max_size=draw(_FEW))
    moments = st.tuples(st.integers(0, count * 2), st.sampled_from(AROUND), st.integers(0, 3))
    strange = draw(disturbed)
    for number in range(count):
        this.live(number, strange.get(number))
    for at, what, which in draw(st.lists(moments, max_size=draw(_FEW))):
        this.around(at + 0.05, what, which)
    if draw(st.booleans()):
        this.write(count + 30, "nemesis", "drained")
    if draw(st.booleans()):
        this.write(count + 31, "c0", "close")
    ordered = [event for _, _, event in sorted(this.lines, key=lambda each: each[:2])]
    return list(draw(st.permutations(ordered))) if draw(st.sampled_from([False, False, False, True])) else ordered


_FEW = st.sampled_from([0, 1, 4])
