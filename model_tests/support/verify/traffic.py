"""Histories of ordinary traffic for Hypothesis, with now and then a life that is not ordinary.

Several producers and consumers send and are handed many messages at the same time, so that most lives are over soon and
alike; a few are disturbed: lost, doubled, late, out of order, never processed, told in other lines.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["traffic"]

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
)

AROUND = ("fault", "close", "broken", "recover", "drained", "silent", "rollback")


@st.composite
def traffic(draw: st.DrawFn) -> list[Event]:
    """The events of a history in the order of its lines, mostly that of time."""
    count = draw(st.integers(1, 40))
    acknowledge = draw(st.sampled_from(["never", "message", "message", "session"]))
    several = draw(st.integers(1, 2))
    step = draw(st.sampled_from([0, 1, 10, 10**8]))
    latency = draw(st.integers(0, 3))
    strange = draw(st.dictionaries(st.integers(0, count - 1), st.sampled_from(DISTURBED), max_size=draw(st.sampled_from([0, 1, 4]))))
    around = draw(st.lists(st.tuples(st.integers(0, count * 2), st.sampled_from(AROUND), st.integers(0, 3)), max_size=draw(st.sampled_from([0, 1, 3]))))
    events: list[tuple[int, int, Event]] = []

    def write(at: float, process: str, event: str, **fields: Any) -> None:
        row = {"t": max(0, int((at + 10) * step)), "process": process, "event": event, **fields}
        events.append((int(at * 1000), len(events), {k: v for k, v in row.items() if v is not None}))

    for number in range(count):
        what = strange.get(number)
        who = number % several
        producer, consumer = f"p{who}", f"c{who}"
        m: Event = {"message": f"m{number}", "queue": f"q{who}"}
        mode = ("PERSISTENT", "NON_PERSISTENT")[who]
        tx = "t1" if what == "in transaction" else None
        at = float(number)
        write(at, producer, "send", **m, delivery_mode=mode, transaction=tx)
        if what != "unconfirmed" and not tx:
            write(at + 0.3, "p9" if what == "sent by another" else producer, "confirmed", message=m["message"])
        if tx:
            write(at + 0.4, producer, "commit", transaction=tx)
            write(at + 0.5, producer, "committed", transaction=tx)
        if what == "resent":
            write(at + 0.35, producer, "resend", **m, delivery_mode=mode)
        if what == "journalled":
            write(at + 0.25, "broker", "journal_synced", message=m["message"])
        if what == "dead":
            write(at + 0.5, "broker", "dead_lettered", **m)
            continue
        if what == "lost":
            continue
        came = at + 0.5 + latency + {"overtaken": 3.2, "before its send": -latency - 0.7}.get(str(what), 0)
        to = f"c{1 - who}" if what == "elsewhere" else consumer
        counted = {"delivery_count": 3} if what == "counted wrongly" else {}
        write(came, to, "delivered", **m, redelivered=what == "flagged", **counted)
        if what == "twice":
            write(came + 0.02, to, "delivered", **m, redelivered=False)
        if what != "unprocessed":
            write(came + 0.1, to, "processed", message=m["message"])
        late = 7 if what == "acknowledged late" else 0
        scope = "session" if what == "session acknowledged" else acknowledge
        if scope == "message" or scope == "session" and (number % 3 == 0 or what):
            named = m["message"] if scope == "message" else None
            write(came + 0.2 + late, to, "acknowledge", scope=scope, message=named)
            write(came + 0.3 + late, to, "acknowledged", scope=scope, message=named)
        if what == "late again":
            write(came + 11, consumer, "delivered", **m, redelivered=True)
            write(came + 11.1, consumer, "processed", message=m["message"])
    for place, what, which in around:
        at = place + 0.05
        if what == "fault":
            fault = ("broker_crash", "consumer_crash", "producer_crash", "consumer_link_loss")[which]
            write(at, "nemesis", "fault", fault=fault)
            if which % 2:
                write(at + 2, "nemesis", "recovered", fault=fault)
        elif what == "drained":
            write(at, "nemesis", "drained", queue=(None, "q0", "q1", "q2")[which])
        elif what == "silent":
            write(at, "c5", "delivered", message=f"m{which}", queue="q0", redelivered=False)
        elif what == "rollback":
            write(at, f"c{which % 2}", "rollback", transaction="t9")
        else:
            error = "connection reset" if what == "broken" else None
            write(at, ("c0", "c1", "p0", "c7")[which], "recover" if what == "recover" else "close", error=error)
    if draw(st.booleans()):
        write(count + 30, "nemesis", "drained")
    if draw(st.booleans()):
        write(count + 31, "c0", "close")
    ordered = [event for _, _, event in sorted(events, key=lambda each: each[:2])]
    if draw(st.sampled_from([False, False, False, True])):
        ordered = draw(st.permutations(ordered)) if len(ordered) < 60 else ordered[::-1]
    return list(ordered)
