"""Random histories for Hypothesis: clients that keep to their own rules, and a broker that does whatever it likes.

A history is drawn as a list of small moves and played by a :class:`Recorder`, so it shrinks well.
What the clients write is causal: an outcome follows its send, the end of a transaction follows its
begin, nothing happens in a transaction after its commit or rollback was called.  What they are
handed (which message, how often, flagged or not, with what count) is arbitrary, and so are faults,
acknowledgements that cover nothing or everything, answers without a call, and which queues are seen drained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

__all__ = ["histories", "shuffled"]

Event = dict[str, Any]

PRODUCERS = ("producer-1", "producer-2")
CONSUMERS = ("consumer-1", "consumer-2")
QUEUES = ("q1", "q2", None)
FAULTS = ("producer_crash", "broker_kill", "consumer_crash")
PHANTOM = 11
SCOPES = ("message", "up_to", "session")


class Recorder:
    """Plays moves and keeps what the clients would have recorded; a move that a client cannot make is no event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.time = 0
        self.messages: dict[str, Event] = {}  # the first send of each
        self.transacted: set[str] = set()
        self.sends: dict[str, int] = {}
        self.sessions: dict[str, int] = dict.fromkeys((*PRODUCERS, *CONSUMERS), 1)
        self.open: dict[str, str] = {}  # process -> its open transaction
        self.asked: dict[str, tuple[str, str]] = {}  # process -> (what was called, transaction)
        self.begun: dict[str, int] = defaultdict(int)

    def play(self, move: tuple[str, int, int, int, bool]) -> None:
        name, *arguments, tick = move
        self.time += tick
        MOVES[name](self, *arguments)

    def write(self, process: str, event: str, **fields: Any) -> None:
        row = {"t": self.time, "process": process, "event": event, **fields}
        self.events.append({key: value for key, value in row.items() if value is not None})

    def session(self, process: str) -> str | None:
        """Every other process names its sessions; the others are known by their process."""
        return f"{process}.{self.sessions[process]}" if process.endswith("1") else None

    def known(self, which: int) -> str:
        """One of the messages that were sent, now and then one that was not."""
        return f"m{len(self.messages) if which == PHANTOM else which % max(1, len(self.messages))}"

    # The producers' moves

    def send(self, who: int, which: int, _: int) -> None:
        process, message = PRODUCERS[who % 2], f"m{len(self.messages)}"
        transaction = self.open.get(process)
        fields = {"message": message, "queue": QUEUES[which % 3], "delivery_mode": ("PERSISTENT", None)[which % 2]}
        self.messages[message] = fields
        self.sends[message] = 1
        if transaction is not None:
            self.transacted.add(message)
        self.write(process, "send", **fields, session=self.session(process), transaction=transaction)

    def resend(self, who: int, which: int, _: int) -> None:
        """Sent again, at most once, and inside a transaction if and only if it was before."""
        process, message = PRODUCERS[who % 2], self.known(which)
        transaction = self.open.get(process)
        if self.sends.get(message) != 1 or (message in self.transacted) != (transaction is not None):
            return
        self.sends[message] += 1
        fields = self.messages[message]
        self.write(process, "resend", **fields, session=self.session(process), transaction=transaction)

    def outcome(self, who: int, which: int, kind: int) -> None:
        message = self.known(which)
        if message in self.messages and message not in self.transacted:
            event = ("confirmed", "rejected", "in_doubt", "confirmed")[kind % 4]
            scope = ("up_to", None, "message")[kind // 4 % 3] if event == "confirmed" else None
            self.write(PRODUCERS[who % 2], event, message=message, scope=scope)

    # Everybody's moves

    def begin(self, who: int, _: int, __: int) -> None:
        process = (*PRODUCERS, *CONSUMERS)[who % 4]
        if process not in self.open and process not in self.asked:
            self.begun[process] += 1
            self.open[process] = f"t{self.begun[process]}"  # the same names as other processes use
            self.write(process, "begin", session=self.session(process), transaction=self.open[process])

    def ask(self, who: int, _: int, kind: int) -> None:
        process = (*PRODUCERS, *CONSUMERS)[who % 4]
        if process in self.open:
            call = ("commit", "commit", "rollback")[kind % 3]
            self.asked[process] = (call, self.open.pop(process))
            self.write(process, call, session=self.session(process), transaction=self.asked[process][1])

    def answer(self, who: int, _: int, kind: int) -> None:
        process = (*PRODUCERS, *CONSUMERS)[who % 4]
        if process in self.asked:
            call, transaction = self.asked.pop(process)
            event = "rolled_back" if call == "rollback" else ("committed", "commit_in_doubt")[kind % 2]
            self.write(process, event, session=self.session(process), transaction=transaction)

    def close(self, who: int, _: int, kind: int) -> None:
        process = (*PRODUCERS, *CONSUMERS)[who % 4]
        self.write(process, "close", session=self.session(process), error=(None, "connection reset")[kind % 2])
        self.sessions[process] += 1
        self.open.pop(process, None)

    # The consumers' moves

    def deliver(self, who: int, which: int, kind: int) -> None:
        process = CONSUMERS[who % 2]
        self.write(
            process,
            "delivered",
            message=self.known(which),
            queue=QUEUES[kind // 8 % 3],
            session=self.session(process),
            redelivered=bool(kind & 1),
            delivery_count=(None, 1, 2, 3)[kind // 2 % 4],
            transaction=self.open.get(process),
        )

    def process(self, who: int, which: int, kind: int) -> None:
        event = ("processed", "processed", "failed")[kind % 3]
        self.write(CONSUMERS[who % 2], event, message=self.known(which))

    def acknowledge(self, who: int, which: int, kind: int) -> None:
        self.covering("acknowledge", who, which, kind)

    def acknowledged(self, who: int, which: int, kind: int) -> None:
        self.covering(("acknowledged", "acknowledged", "ack_in_doubt")[kind // 3 % 3], who, which, kind)

    def covering(self, event: str, who: int, which: int, kind: int) -> None:
        process, scope = CONSUMERS[who % 2], SCOPES[kind % 3]
        message = None if scope == "session" and which % 2 else self.known(which)
        self.write(process, event, scope=scope, message=message, session=self.session(process))

    def recover(self, who: int, _: int, __: int) -> None:
        self.write(CONSUMERS[who % 2], "recover", session=self.session(CONSUMERS[who % 2]))

    # The moves of the broker and of fate

    def end(self, _: int, which: int, kind: int) -> None:
        self.write("broker", ("expired", "dead_lettered")[kind % 2], message=self.known(which))

    def journal(self, _: int, which: int, kind: int) -> None:
        """What the journal did, to a message or, as some brokers tell it, to nobody knows what."""
        event = ("journal_synced", "journal_synced", "journal_written")[kind % 3]
        self.write("broker", event, message=None if which == 1 else self.known(which))

    def fault(self, who: int, which: int, kind: int) -> None:
        self.told("fault", who, which, kind)

    def recovered(self, who: int, which: int, kind: int) -> None:
        self.told("recovered", who, which, kind)

    def told(self, event: str, who: int, which: int, kind: int) -> None:
        """Of nobody by name, of a process, of a session, or of a queue; a client's alone can have a session."""
        fault, process = FAULTS[kind % 3], (*PRODUCERS, *CONSUMERS)[who % 4]
        sessions = sorted({row["session"] for row in self.events if "session" in row and row["process"] == process})
        queues = sorted({row["queue"] for row in self.events if "queue" in row})
        if event == "fault" and kind % 12 == 9:
            fault = "acknowledge_timeout"
        teller = process if which % 4 == 1 else "nemesis"
        session = sessions[0] if which % 4 == 2 and sessions and fault != "broker_kill" else None
        if fault == "acknowledge_timeout" and session is None:
            teller = process
        queue = queues[0] if which % 4 == 3 and queues else None
        self.write(teller, event, fault=fault, session=session, queue=queue)

    def drain(self, _: int, which: int, __: int) -> None:
        self.write("nemesis", "drained", queue=QUEUES[which % 3])


MOVES: Mapping[str, Callable[[Recorder, int, int, int], None]] = {
    "send": Recorder.send,
    "deliver": Recorder.deliver,
    "outcome": Recorder.outcome,
    "process": Recorder.process,
    "acknowledge": Recorder.acknowledge,
    "acknowledged": Recorder.acknowledged,
    "resend": Recorder.resend,
    "begin": Recorder.begin,
    "ask": Recorder.ask,
    "answer": Recorder.answer,
    "close": Recorder.close,
    "end": Recorder.end,
    "recover": Recorder.recover,
    "journal": Recorder.journal,
    "fault": Recorder.fault,
    "recovered": Recorder.recovered,
    "drain": Recorder.drain,
}
MOODS: tuple[tuple[str, ...], ...] = (
    tuple(MOVES),
    ("send", "send", "outcome", "resend", "close", "fault", "recovered", "deliver"),
    ("send", "deliver", "deliver", "acknowledge", "acknowledged", "close", "process"),
    ("send", "send", "begin", "ask", "answer", "deliver", "deliver", "end", "drain"),
    ("begin", "deliver", "deliver", "ask", "answer", "send", "resend", "drain"),
    ("send", "send", "deliver", "deliver", "deliver", "drain"),
    ("send", "send", "outcome", "journal", "journal", "resend"),
    ("send", "deliver", "deliver", "deliver", "deliver", "acknowledge", "recover", "process"),
    ("deliver", "deliver", "deliver", "begin", "ask", "close", "fault", "recovered"),
)
"""What a history may be about, so that the moves that need each other meet."""

_SMALL = st.integers(0, PHANTOM)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """The events of a random history in the order of its lines; often several have the same time."""
    recorder = Recorder()
    move = st.tuples(st.sampled_from(draw(st.sampled_from(MOODS))), _SMALL, _SMALL, _SMALL, st.booleans())
    for each in draw(st.lists(move, min_size=draw(st.sampled_from([1, 12, 30])), max_size=60)):
        recorder.play(each)
    if not recorder.events or draw(st.booleans()):
        recorder.time += 1
        recorder.write("nemesis", "drained")
    return recorder.events


@st.composite
def shuffled(draw: st.DrawFn) -> list[Event]:
    """The same with every event at a time of its own and the lines in any order."""
    events = [{**event, "t": t} for t, event in enumerate(draw(histories()))]
    return draw(st.permutations(events))
