"""Defects for ``python -m model_tests.defects``: small changes of the source that judges histories."""

from __future__ import annotations

from model_tests.defects.form import Defect

__all__ = ["VERIFY"]

_NAMED = "verify/conformance::test_what_nothing_explains_is_held_against_the_right_message"
_CAUSES = "verify/conformance::test_what_is_explained_names_its_cause"

_AROUND = (
    Defect(
        "a-fault-of-clients-hits-everybody",
        "the link of one consumer broke, and what another consumer had is excused by it",
        "verify/_circumstances.py",
        "return frozenset(lost | gone) if lost else everybody",
        "return everybody",
        noticed_by=_NAMED,
    ),
    Defect(
        "a-fault-names-nobody",
        "a fault that names its victim excuses what befell others",
        "verify/_victims.py",
        "return victims if some is None else victims & some",
        "return frozenset()",
        noticed_by=_NAMED,
    ),
    Defect(
        "a-repair-is-of-everybody",
        "the repair of one consumer ends the fault of another, whose message is then held against the broker",
        "verify/_victims.py",
        "return meets and",
        "return True and",
        noticed_by=_CAUSES,
    ),
    Defect(
        "a-time-out-is-a-broken-link",
        "a session that goes on after an acknowledgement timed out is held against the broker",
        "verify/_circumstances.py",
        "if of_clients and not timed_out else",
        "if of_clients else",
        noticed_by="verify/spelled",
    ),
    Defect(
        "a-range-confirms-what-was-sent-later",
        "a message that was never confirmed is taken for lost",
        "verify/_spelled.py",
        "place[last] + 1",
        "ranges",
        noticed_by="verify/spelled",
    ),
    Defect(
        "applications-owe-nothing",
        "a broker is accused of what its application has not acknowledged",
        "verify/_rest.py",
        " - len(owed)",
        "",
        noticed_by="verify/rest",
    ),
    Defect(
        "a-fault-lasts-for-ever",
        "a loss an hour after the crash is excused by it",
        "verify/_circumstances.py",
        "EFFECT: Final = 10**9",
        "EFFECT: Final = 10**13",
        noticed_by=_NAMED,
    ),
    Defect(
        "a-broken-connection-was-closed",
        "a connection that broke is taken for one that its application closed",
        "verify/_circumstances.py",
        "kind=BROKEN if event is Event.CLOSE and events.errs[row] == 1 else event.value,",
        "kind=event.value,",
        noticed_by=_CAUSES,
    ),
    Defect(
        "given-back-to-itself",
        "a consumer that recovers its session is excused for another order, as if another one had given back",
        "verify/_actions.py",
        " - ((first[own] < at) & (at < last[own]))",
        "",
        noticed_by="verify/actions::test_what_is_given_back_while_another_consumer_goes_on",
    ),
    Defect(
        "nothing-befalls-after-the-last-line",
        "a message that was lost in a crash while nobody had to do with it is held against the broker",
        "verify/_conformance.py",
        "for to_the_end in (False, True):",
        "for to_the_end in (False,):",
        noticed_by=_CAUSES,
    ),
)

_ONE_MESSAGE = (
    Defect(
        "at-rest-whatever-is-due",
        "a message that was confirmed and never delivered is a run of the model",
        "verify/_observer.py",
        "return frozenset(state for state in belief if not self._due & self._states.after[state].keys())",
        "return belief",
        noticed_by=_NAMED,
    ),
    Defect(
        "every-line-perhaps",
        "a line that is impossible is taken for one of another message",
        "verify/_observer.py",
        "        if sign.certainty is Certainty.PERHAPS:\n",
        "        if sign.certainty is not Certainty.IF_POSSIBLE:\n",
        noticed_by=_NAMED,
    ),
    Defect(
        "a-process-writes-all-its-lines",
        "a process that died before its last line makes a correct broker guilty",
        "verify/_observer.py",
        "self._with_last_words(belief, sign) if sign.name in _LANE_OF_CRASH else belief",
        "belief",
        noticed_by=_CAUSES,
    ),
    Defect(
        "one-consumer-is-as-good-as-another",
        "what one consumer had acknowledged may come again, since another lost its link",
        "verify/_observer.py",
        "return not event.consumer or not consumer or event.consumer == consumer",
        "return True",
        noticed_by=_NAMED,
    ),
    Defect(
        "lanes-are-in-no-order",
        "the lines of one process may have happened in any order",
        "verify/_life.py",
        "if heard[other].lane == this.lane)",
        "if heard[other].lane is None)",
        noticed_by=_NAMED,
    ),
    Defect(
        "the-mode-of-the-header",
        "a NON_PERSISTENT message of a PERSISTENT run must not be lost, and the reverse may",
        "verify/_conformance.py",
        "        if lived.mode != ABSENT:\n",
        "        if lived.mode == ABSENT - 1:\n",
        noticed_by=_NAMED,
    ),
    Defect(
        "order-is-no-part-of-a-life",
        "messages with the same lines in another order are decided once",
        "verify/_lives.py",
        "mixed = _mixed(packed ^ _mixed(position + np.uint64(1)))",
        "mixed = _mixed(packed ^ _mixed(position * np.uint64(0)))",
        noticed_by=_NAMED,
    ),
)

_ANOMALIES = (
    Defect(
        "undecided-is-allowed",
        "an anomaly of messages of which nothing was decided passes",
        "verify/_verdict.py",
        "return False if finding.unexplained else None if finding.undecided else True",
        "return not finding.unexplained",
        noticed_by="verify/verdict",
    ),
    Defect(
        "unexplained-kinds-are-allowed",
        "what nothing explains is allowed, since the configuration can reach its kind",
        "verify/_verdict.py",
        "    if finding.unexplained is None or not finding.found:\n",
        "    if finding.unexplained is None or not finding.found or allowed:\n",
        noticed_by=_NAMED,
    ),
    Defect(
        "resent-messages-overtake",
        "a message that was sent again is called reordered",
        "verify/_count.py",
        "eligible = (sent != NONE) & (delivered != NONE) & (_first(events, count, Event.RESEND) == NONE)",
        "eligible = (sent != NONE) & (delivered != NONE)",
        noticed_by="verify/counts",
    ),
    Defect(
        "one-more-than-the-window",
        "a producer may have one message more outstanding than its window",
        "verify/_count.py",
        "opened - gone >= window",
        "opened - gone > window",
        noticed_by="verify/counts",
    ),
    Defect(
        "in-doubt-and-committed",
        "a transaction that was committed after all is judged as one in doubt",
        "verify/_count.py",
        "    doubt[events.transaction[events.places(Event.COMMITTED)]] = NONE\n",
        "",
        noticed_by="verify/counts",
    ),
    Defect(
        "drained-before-it-was-sent",
        "a queue that was seen empty before a message was sent shows that it is lost",
        "verify/_quiescence.py",
        "judged = drained > anchor",
        "judged = drained != NONE",
        noticed_by="verify/counts",
    ),
)

_CHUNKS = "verify/fold_chunks::test_what_a_chunk_cannot_know_is_found"

_FOLD = (
    Defect(
        "a-duplicate-in-a-later-chunk",
        "a message that was left out of one chunk and is delivered again in another is taken for two",
        "verify/_passes.py",
        "        _suspects(pins, summaries)\n",
        "",
        noticed_by="verify/fold_chunks::test_of_ordinary_messages_few_rows_are_kept_and_a_late_duplicate_is_found",
    ),
    Defect(
        "overtaken-and-left-out",
        "a message that was overtaken within a chunk is only counted",
        "verify/_kernel.py",
        "        if best[lane] > sent:\n            plain[m] = 0\n",
        "        if best[lane] > sent:\n            pass\n",
        noticed_by=_CHUNKS,
    ),
    Defect(
        "no-bounds-of-lanes",
        "a message that is delivered a chunk later than sent is not compared with those that overtook it",
        "verify/_kernel.py",
        "            plain[first[lane]] = STANDS\n            plain[last[lane]] = STANDS\n",
        "            pass\n",
        noticed_by=_CHUNKS,
    ),
    Defect(
        "chunks-of-the-same-time",
        "two parts of a history that tell of the same time are taken as if one came after the other",
        "verify/_passes.py",
        "for ask in (_touched, _entangled, _covering, _opened):",
        "for ask in (_touched, _covering, _opened):",
        noticed_by=_CHUNKS,
    ),
    Defect(
        "open-in-another-chunk",
        "sends that were open since an earlier chunk are not counted against the window",
        "verify/_passes.py",
        "if (its[:, 2] + open_ >= bound).any():",
        "if (its[:, 2] >= bound).any():",
        noticed_by=_CHUNKS,
    ),
    Defect(
        "plain-by-itself-alone",
        "what is plain in a history of its own stays so, whatever else the whole history tells",
        "verify/_passes.py",
        "strange[held.contradicted()] = True",
        "pass",
        noticed_by=_CHUNKS,
    ),
)

VERIFY = (*_AROUND, *_ONE_MESSAGE, *_ANOMALIES, *_FOLD)
