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
        "    if _of_its_kind(finding) or not finding.found:\n",
        "    if _of_its_kind(finding) or not finding.found or allowed:\n",
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

_TOUCH = "verify/timeline::test_intervals_that_touch_have_a_moment_in_common"
_SEEN_BY_NOBODY = "verify/unrecorded::test_a_consumer_that_died_explains_what_nobody_had_seen_of_it"
_BRUTE_FORCE = "verify/unrecorded::test_one_fault_explains_just_where_one_that_is_told_there_would"

_UNRECORDED = (
    Defect(
        "a-fault-for-each-of-ten",
        "the moment that explains the fewest messages is told first",
        "verify/_timeline.py",
        "key=lambda each: (-each[0], each[2].likely)",
        "key=lambda each: (each[0], each[2].likely)",
        noticed_by="verify/timeline::test_one_crash_explains_what_ten_broken_connections_would",
    ),
    Defect(
        "stabbed-by-their-beginnings",
        "the moments of a victim are more than its intervals take",
        "verify/_timeline.py",
        "sorted(taken, key=lambda each: each[1].high)",
        "sorted(taken, key=lambda each: -each[1].low)",
        noticed_by="verify/timeline::test_faults_of_one_victim_are_the_fewest",
    ),
    Defect(
        "two-faults-are-one",
        "a message that takes two faults is explained by one of them twice",
        "verify/_timeline.py",
        "if message not in other.messages and each.low <= other.high",
        "if each.low <= other.high",
        noticed_by="verify/timeline::test_one_fault_is_not_taken_for_two",
    ),
    Defect(
        "intervals-that-touch-are-apart",
        "what one moment explains takes two faults",
        "verify/_timeline.py",
        'depth = np.searchsorted(low, high, side="right")',
        'depth = np.searchsorted(low, high, side="left")',
        noticed_by=_TOUCH,
    ),
    Defect(
        "one-exception-for-all",
        "the listener's exceptions on three messages are told as one",
        "verify/_unrecorded.py",
        "message = lived.message if kind in OF_MESSAGES else None",
        "message = None",
        noticed_by="verify/unrecorded::test_each_message_has_an_exception_of_its_own",
    ),
    Defect(
        "a-fault-anywhere-is-enough",
        "the interval of a fault is the whole life of the message",
        "verify/_unrecorded.py",
        "self._fewest[key] = self.fewest({gap: belief}, most) is not None",
        "self._fewest[key] = True",
        noticed_by=_BRUTE_FORCE,
    ),
    Defect(
        "any-kind-is-assumed",
        "--faults producer_crash explains a redelivery",
        "verify/_unrecorded.py",
        "return _explained(conformance, events, messages, assumed, assumed=True)",
        "return _explained(conformance, events, messages, frozenset(Fault), assumed=True)",
        noticed_by="verify/unrecorded::test_only_the_kinds_that_are_named_explain",
    ),
    Defect(
        "any-number-of-faults",
        "a message that takes ten unrecorded faults is explained by them",
        "verify/_unrecorded.py",
        "if best[0] > MOST_FAULTS:",
        "if best[0] > 99:",
        noticed_by="verify/unrecorded::test_more_faults_than_the_bound_leave_it_open",
    ),
    Defect(
        "nobody-else-had-it",
        "a message that a dead consumer had not seen is explained by another fault than what it had seen",
        "verify/_unrecorded.py",
        "return dataclasses.replace(lived, consumers=(*lived.consumers, OTHERS))",
        "return lived",
        noticed_by=_SEEN_BY_NOBODY,
    ),
    Defect(
        "rest-explains-itself",
        "a loss needs no fault",
        "verify/_unrecorded.py",
        "if belief and self._at_rest else belief",
        "if False else belief",
        noticed_by="verify/unrecorded",
    ),
    Defect(
        "what-is-told-may-come-before",
        "signs that certainly came before a fault may come after it",
        "verify/_unrecorded.py",
        "reach=sum(place - this.reach <= other < place for other in others)",
        "reach=this.reach",
        noticed_by=_BRUTE_FORCE,
    ),
    Defect(
        "assumed-and-held-against",
        "what assumed faults explain is held against the broker all the same",
        "verify/_explain.py",
        "            self._contradicted = np.setdiff1d(contradicted, self._assumed)\n",
        "",
        noticed_by="verify/unrecorded::test_what_recorded_faults_explain_is_explained_when_nobody_recorded_them",
    ),
    Defect(
        "kinds-without-the-assumed",
        "a kind of anomaly is not allowed although an assumed fault causes it",
        "verify/_verdict.py",
        "{*findings.faults, *findings.broken, *findings.assumed}",
        "{*findings.faults, *findings.broken}",
        noticed_by="verify/unrecorded::test_what_was_not_found_is_allowed_by_kind",
    ),
)


_CHUNKS = "verify/fold_chunks::test_what_a_chunk_cannot_know_is_found"
_TRANSACTIONS = "verify/fold_chunks::test_of_ordinary_transactions_few_rows_are_kept_and_a_torn_one_is_found"

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
        "for ask in (_touched, _entangled, _covering, _unnamed, _opened):",
        "for ask in (_touched, _covering, _unnamed, _opened):",
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
    Defect(
        "a-part-of-a-transaction",
        "of a transaction that took effect in part only the lost message is looked at, so that it is not torn",
        "verify/_summary.py",
        "plain[whole[self._inside].any(axis=1)] = 0",
        "pass",
        noticed_by=_TRANSACTIONS,
    ),
    Defect(
        "a-transaction-without-its-commit",
        "the messages that stand for others lose the commit of their transaction",
        "verify/_summary.py",
        "self._with_members(plain != 1)",
        "self._with_members(plain == 0)",
        noticed_by=_TRANSACTIONS,
    ),
    Defect(
        "transactions-that-go-on",
        "every chunk is folded twice, as a transaction goes on from the one before",
        "verify/_kernel.py",
        "            clean[its] &= seen[session[row]]\n",
        "",
        noticed_by=_TRANSACTIONS,
    ),
    Defect(
        "a-range-of-another-chunk",
        "a message that a range of outcomes in a later chunk confirms counts as one without outcome",
        "verify/_passes.py",
        "for ask in (_touched, _entangled, _covering, _unnamed, _opened):",
        "for ask in (_touched, _entangled, _covering, _opened):",
        noticed_by="verify/fold_chunks::test_what_a_line_of_another_chunk_is_of_without_naming_it_is_kept",
    ),
    Defect(
        "a-queue-that-was-left-out",
        "a fault is refused, as no line that was kept names its queue",
        "verify/_passes.py",
        "refuse_impossible(victims, events, queues)",
        "refuse_impossible(victims, events)",
        noticed_by="verify/fold_chunks::test_a_queue_that_only_lines_name_that_were_left_out_may_be_a_victim",
    ),
    Defect(
        "a-transaction-in-two-chunks",
        "that a part of a transaction in another chunk did not come is not held against its rest",
        "verify/_passes.py",
        "            pins.transactions(each.place, its)\n",
        "            pass\n",
        noticed_by="verify/fold_chunks::test_a_transaction_of_which_another_chunk_tells_is_kept",
    ),
)

VERIFY = (*_AROUND, *_ONE_MESSAGE, *_ANOMALIES, *_UNRECORDED, *_FOLD)
