"""Defects for ``python -m model_tests.defects`` in what a line tells: index, table of lines, walks, judgements."""

from __future__ import annotations

from model_tests.defects.form import Defect

__all__ = ["RECORDING"]

_AROUND = "verify/conformance/around.py"
_INDEX_FILE = "history/index.py"
_JUDGEMENTS = "verify/findings/judgements.py"
_LINES = "verify/conformance/lines.py"
_LIVES = "verify/conformance/lives.py"
_LOADER = "tables/_recording.py"
_MESSAGES = "verify/conformance/messages.py"
_OBSERVER = "verify/conformance/observer.py"
_TABLE = "../spec/recording.yaml"
_TOKENS = "verify/conformance/tokens.py"

_CASE = "verify/counts::test_a_case_is_counted"
_CAUSES = "verify/conformance::test_what_is_explained_names_its_cause"
_NAMED = "verify/conformance::test_what_nothing_explains_is_held_against_the_right_message"
_PUBLIC = "verify/cases::test_a_story_is_judged_as_it_should_be"
_STORY = "verify/optional_lines::test_a_story_is_judged"
_TABLES = "verify/tables::test_named_histories_have_their_rows"

_INDEX = (
    Defect(
        "up-to-and-without",
        "an acknowledgement up to a message leaves out the message that it names",
        _INDEX_FILE,
        "at(self.deliveries, found, NONE) + 1",
        "at(self.deliveries, found, NONE)",
        noticed_by=_CAUSES,
    ),
    Defect(
        "one-session-acknowledges-for-another",
        "the acknowledgement of a message in one session is one of what another session was handed",
        _INDEX_FILE,
        "message = self.message if to_the_letter else self.own_message",
        "message = self.message",
        noticed_by=_CAUSES,
    ),
    Defect(
        "an-answer-to-another-scope",
        "the answer to an acknowledgement of one message is taken for one to that of the whole session",
        _INDEX_FILE,
        "number_pairs(number_pairs(self.session[both], self.message[both]), self.scope[both])",
        "number_pairs(self.session[both], self.message[both])",
        noticed_by="verify/expand",
    ),
    Defect(
        "a-later-crash-ends-an-earlier-one",
        "a send during a long outage is held against the broker, since a shorter outage began and ended meanwhile",
        _INDEX_FILE,
        "np.maximum.accumulate(until)",
        "until",
        noticed_by=_CASE,
    ),
    Defect(
        "any-crash-is-of-producers",
        "the crash of a consumer that is not named leaves every send without an outcome",
        _INDEX_FILE,
        "if each[0].victims or each[0].fault == Fault.PRODUCER_CRASH]",
        "if each]",
        noticed_by=_CASE,
    ),
    Defect(
        "one-consumer-gives-back-for-its-session",
        "the close of one consumer gives back what the others of its session were handed",
        _INDEX_FILE,
        "np.union1d(self.places(Event.RECOVER), self.closes_of_sessions())",
        "np.union1d(self.places(Event.RECOVER), self.places(Event.CLOSE))",
        noticed_by=_CAUSES,
    ),
    Defect(
        "a-time-out-after-the-answer",
        "an acknowledgement that was answered before it timed out is taken for one that may have had no effect",
        _INDEX_FILE,
        "self.answered(Event.ACKNOWLEDGED)[its] > rows",
        "self.answered(Event.ACKNOWLEDGED)[its] >= 0",
        noticed_by=_NAMED,
    ),
    Defect(
        "what-came-back-is-open",
        "a send whose message came back to its producer counts against the window for ever",
        _INDEX_FILE,
        "self.places(*OUTCOMES, Event.RETURNED)",
        "self.places(*OUTCOMES)",
        noticed_by=_STORY,
    ),
    Defect(
        "drained-of-every-queue-is-of-none",
        "what is lost is not found where one line says that all queues are empty",
        _INDEX_FILE,
        "np.maximum(last[self.queue_of], last[ABSENT])",
        "last[self.queue_of]",
        noticed_by=_NAMED,
    ),
)

_ROWS = (
    Defect(
        "a-call-in-doubt-is-sure",
        "an acknowledgement of which nobody knows the outcome had its effect",
        _TABLE,
        "    doubts: [acknowledge]\n",
        "",
        noticed_by=_PUBLIC,
    ),
    Defect(
        "a-closed-consumer-closes-its-session",
        "the close of one consumer is the end of its session",
        _TABLE,
        "lacks: [error, queue, consumer], of: session",
        "lacks: [error], of: session",
        noticed_by=_PUBLIC,
    ),
    Defect(
        "a-consumer-dies-without-its-producer",
        "of a process that consumes and sends the producer outlives the crash of the consumer",
        _TABLE,
        "if: {fault: [producer_crash, consumer_crash]}",
        "if: {fault: producer_crash}",
        noticed_by=_CAUSES,
    ),
    Defect(
        "what-is-in-vain-is-awaited",
        "a message is not at rest, as nobody has processed it in vain",
        _TABLE,
        '  processed_in_vain: {because: "nobody waits for an acknowledgement of it", source: RMQ confirms}\n',
        "",
        noticed_by=_CAUSES,
    ),
    Defect(
        "an-end-is-no-certainty",
        "what is written is taken for something that may have been impossible: a broker gets away with anything",
        _LOADER,
        'data.get("sure", "certain")',
        'data.get("sure", "if_possible")',
        noticed_by=_NAMED,
    ),
    Defect(
        "a-fact-that-is-not-so",
        "a reason for messages of which a fact does not hold is one for those of which it does",
        _LOADER,
        "return Fact(name), name == text",
        "return Fact(name), True",
        noticed_by=_CAUSES,
    ),
    Defect(
        "one-fact-is-enough",
        "a reason that takes two facts holds with one of them",
        _LOADER,
        "and all((fact in facts) is holds for fact, holds in self.facts.items())",
        "and (not self.facts or any((fact in facts) is holds for fact, holds in self.facts.items()))",
        noticed_by=_CAUSES,
    ),
    Defect(
        "late-everywhere",
        "a listener that a library acknowledges for may have processed a message long before its line",
        _LOADER,
        "for row in rows if row.late_where.holds(environment))",
        "for row in rows)",
        noticed_by=_NAMED,
    ),
    Defect(
        "late-lines-are-in-order",
        "work that is written down when the next message is there already was not done in time",
        "verify/context/signs.py",
        "row if row.late_where.holds(environment) else dataclasses.replace(row, when=When.AFTER) for row in rows",
        "dataclasses.replace(row, when=When.AFTER) if row.when is When.LATE else row for row in rows",
        noticed_by=_CAUSES,
    ),
    Defect(
        "a-broken-connection-befalls-nobody",
        "a connection that its client found broken explains nothing",
        _LOADER,
        ' or self.line == "fault" or (self.of is Of.PROCESS and self.only is None)',
        ' or self.line == "fault"',
        noticed_by=_CAUSES,
    ),
)

_WALKS = (
    Defect(
        "the-surer-of-two",
        "a line that may be of other messages is taken for certain of this one",
        _OBSERVER,
        "certainty = max(sign.certainty, row.sure)",
        "certainty = min(sign.certainty, row.sure)",
        noticed_by=_CAUSES,
    ),
    Defect(
        "what-was-possible-may-not-have-happened",
        "a message that its consumer gave back may still be with it, so that it need not come again",
        _OBSERVER,
        "after |= {state for state in belief if not possible[state]}",
        "after |= belief",
        noticed_by=_NAMED,
    ),
    Defect(
        "what-is-held-is-at-rest",
        "a message that its consumer never acknowledged may be gone, though applications write down what they settle",
        _OBSERVER,
        "own = (Side.PRODUCER,) if hearing.settles else (Side.PRODUCER, Side.CONSUMER)",
        "own = (Side.PRODUCER, Side.CONSUMER)",
        noticed_by=_NAMED,
    ),
    Defect(
        "a-call-covers-both-or-none",
        "a call that acknowledges one of two messages has to acknowledge the other one, too",
        _OBSERVER,
        "sign.if_possible() if covers else sign",
        "sign if covers else sign.if_possible()",
        noticed_by=_CAUSES,
    ),
    Defect(
        "the-dead-have-called",
        "a process that died may have acknowledged before, though its call has a line before it",
        _OBSERVER,
        "            and event.name not in self._recording.calls\n",
        "",
        noticed_by=_NAMED,
    ),
    Defect(
        "either-message-will-do",
        "a line of one message of a pair is taken for one of the other",
        _OBSERVER,
        "return of in {0, BOTH} or self._whose(event) in {0, of}",
        "return True",
        noticed_by=_NAMED,
    ),
    Defect(
        "one-hidden-event-at-a-time",
        "between two lines no more than one thing happens that no line tells, so that nothing conforms",
        _OBSERVER,
        "            while front:\n",
        "            if front:\n",
        noticed_by=_NAMED,
    ),
    Defect(
        "nobody-goes-on-after-a-fault",
        "a client that starts its session over after a fault, as its library does, is taken for impossible",
        _OBSERVER,
        "then = (Move(after, Certainty.PERHAPS),) if after else ()",
        "then = ()",
        noticed_by=_CAUSES,
    ),
)

_JUDGED = (
    Defect(
        "a-doubt-of-the-recording-accuses",
        "a message is invalid that nobody says is processed, at a consumer that never says so",
        _JUDGEMENTS,
        "unsure = np.isin(codes, doubted.get(anomaly, _NOTHING))",
        "unsure = none",
        noticed_by="verify/judgements",
    ),
    Defect(
        "undecided-is-allowed-of-a-message",
        "the tables call a message valid of which the model decided nothing",
        _JUDGEMENTS,
        '    allowed = pc.if_else(rows["undecided"], none, allowed)\n',
        "",
        noticed_by="verify/judgements",
    ),
    Defect(
        "a-doubt-is-allowed",
        "the tables call a message valid that may be an anomaly of the recording alone",
        _JUDGEMENTS,
        "pc.if_else(kind.fill_null(false), true, none), allowed)",
        "true, allowed)",
        noticed_by="verify/judgements",
    ),
    Defect(
        "a-cause-in-the-place-of-its-message",
        "the cause of one case stands with another, since the number of its message is taken for that of its row",
        _JUDGEMENTS,
        "[places[np.searchsorted(codes, of)], ",
        "[of, ",
        noticed_by=_TABLES,
    ),
    Defect(
        "transactions-are-messages",
        "a torn transaction whose number is that of a message says what is impossible of it",
        _JUDGEMENTS,
        " if name is not Anomaly.TORN_TRANSACTION)",
        ")",
        noticed_by=_TABLES,
    ),
)

_WORDS = (
    Defect(
        "as-sure-as-the-surer-message",
        "a call that perhaps covers one message of a pair covers it for certain, as it covers the other one",
        _TOKENS,
        "certainty=np.where(shared[starts], least, most)",
        "certainty=least",
        noticed_by=_CAUSES,
    ),
    Defect(
        "a-fault-of-every-queue",
        "a crash of one queue's node explains what was lost from another queue",
        _AROUND,
        "kept = (queue == ABSENT) | (lines.queues[message] == queue)",
        "kept = queue == queue",
        noticed_by="verify/queues",
    ),
    Defect(
        "delivered-before-it-was-sent-again",
        "a message that was delivered, though its transaction was rolled back, is forgiven when it is sent again",
        _LINES,
        " & ((events.first_delivery == NONE) | (events.first_delivery > last))",
        "",
        noticed_by=_NAMED,
    ),
    Defect(
        "the-other-side-is-alone",
        "a message that was sent plainly and consumed in a transaction is read as the reverse",
        _MESSAGES,
        "{Fact.SENT_PLAINLY: Side.PRODUCER, Fact.CONSUMED_PLAINLY: Side.CONSUMER}",
        "{Fact.SENT_PLAINLY: Side.CONSUMER, Fact.CONSUMED_PLAINLY: Side.PRODUCER}",
        noticed_by=_CAUSES,
    ),
)

RECORDING = (*_INDEX, *_ROWS, *_WALKS, *_JUDGED, *_WORDS)
