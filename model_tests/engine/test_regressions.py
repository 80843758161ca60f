"""Real bugs of brokers and client libraries, seeded into the engine: each is caught by name, and no sound run is.

A row of :data:`SCENARIOS` has a ticket, the bug that makes the engine go wrong in that way, and a program.  With the
bug the history that the engine logs is ``invalid`` with exactly these anomalies of these messages (or a call of the
program can never return); without it the same program is ``valid``.  ``docs/regressions.md`` has the table:
``python -m model_tests.engine.test_regressions`` writes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from ackfsm.engine import Broker, JournalInconsistent, Stuck
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import Result
from model_tests.support.engine import bugs, programs
from model_tests.support.engine.bugs import Bug, Change
from model_tests.support.engine.laboratory import Laboratory, judged
from model_tests.support.places import PROJECT

DOCUMENT = PROJECT / "docs" / "regressions.md"


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One bug: where it was, what it was, how it is seeded, and what catches it.

    ``flagged`` are the anomalies that the history has and the configuration does not allow, with the ids; ``stuck``
    names the message or session in the words of a call that can never return.  ``unseen`` are events that the
    application cannot write down, since its library is silent about them.
    """

    row: str
    ticket: str
    name: str
    wrong: str
    bug: Bug
    program: Callable[[Laboratory], None]
    flagged: Mapping[Anomaly, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    stuck: str | None = None
    unseen: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.row} {self.ticket} {self.name}"

    @property
    def caught(self) -> str:
        """What catches it, in words."""
        found = [f"`{anomaly}` of {', '.join(ids)}" for anomaly, ids in self.flagged.items()]
        return "; ".join([*found, *([f"`Stuck`: {self.stuck}"] if self.stuck else [])])


SCENARIOS = (
    Scenario(
        "B1",
        "ARTEMIS-5895",
        "false commit ok",
        "the broker shuts a connection down and answers the commit on it, which it has not executed",
        Bug(
            (
                Change("commit_frame", "none", "commit_called", "answer_in_flight"),
                Change("consumer_commit_frame", "none", "consumer_commit_called", "answer_in_flight"),
            ),
        ),
        programs.commit_across_a_failover,
        {
            Anomaly.LOSS: ("output",),
            Anomaly.RESURRECTION: ("input",),
            Anomaly.UNFLAGGED_DUPLICATE: ("input",),
            Anomaly.REPROCESSED: ("input",),
        },
    ),
    Scenario(
        "B3",
        "ARTEMIS-2325",
        "double confirm",
        "the handler of a send is called twice",
        Bug(
            (
                Change("publisher_confirm", "in_flight", "confirmed", "covered_by_range"),
                Change("publication", "resolved", "confirmed_by_range", "resolved"),
            ),
        ),
        programs.send_with_a_handler,
        {Anomaly.DOUBLE_OUTCOME: ("m",)},
    ),
    Scenario(
        "B5",
        "ARTEMIS-2092",
        "loss after confirm",
        "a paged queue is read again after a restart without its first page",
        Bug(broker=bugs.Paging),
        programs.restart_of_a_paged_queue,
        {Anomaly.LOSS: ("m1", "m2")},
    ),
    Scenario(
        "B7",
        "ARTEMIS-2430",
        "loss without crash",
        "a page is evicted from its cache while it is being consumed",
        Bug(broker=bugs.Evicting),
        programs.slow_consumption,
        {Anomaly.LOSS: ("m2",)},
    ),
    Scenario(
        "B9",
        "ARTEMIS-1868",
        "missing flag",
        "after a close without an acknowledgement the message comes again with the flag clear",
        Bug((Change("redelivery", "clear", "dispatch_first", "clear"),)),
        programs.close_without_acknowledging,
        {Anomaly.UNFLAGGED_DUPLICATE: ("m",), Anomaly.REPROCESSED: ("m",)},
    ),
    Scenario(
        "B11",
        "ARTEMIS-5106",
        "partial commit",
        "the broker fails at the first send of a transaction, and commits the rest",
        Bug((Change("commit_frame", "none", "rejection", "none"),)),
        programs.transaction_that_is_refused_in_part,
        {Anomaly.LOSS: ("m1",), Anomaly.TORN_TRANSACTION: ("2",)},
    ),
    Scenario(
        "B13",
        "ARTEMIS-3384",
        "dedup hole",
        "a duplicate-id that came in a transaction is not known until later, so a second transaction with it passes",
        Bug((Change("duplicate_id", "unknown", "accept", "unknown"),)),
        programs.bridge_that_reconnects,
        {Anomaly.UNFLAGGED_DUPLICATE: ("m",), Anomaly.REPROCESSED: ("m",)},
    ),
    Scenario(
        "B15",
        "AMQ-4665",
        "acknowledged unprocessed",
        "after a failover the library takes a redelivery for a duplicate and acknowledges it by itself",
        Bug(broker=bugs.Auditing),
        programs.failover_inside_a_listener,
        {Anomaly.UNPROCESSED: ("m",)},
    ),
    Scenario(
        "B17",
        "AMQ-7067",
        "outcome lost",
        "compaction of the journal drops the record of a commit",
        Bug(journal=bugs.WithoutCommits),
        programs.recovery_after_compaction,
        {
            Anomaly.LOSS: ("output",),
            Anomaly.RESURRECTION: ("input",),
            Anomaly.UNFLAGGED_DUPLICATE: ("input",),
            Anomaly.REPROCESSED: ("input",),
        },
    ),
    Scenario(
        "B19",
        "AMQ-3166",
        "commit hides failed send",
        "a send in a transaction fails for want of space, and the commit says ok",
        Bug((Change("commit_frame", "doomed", "commit_called", "committing"),)),
        programs.transaction_into_a_full_queue,
        {Anomaly.LOSS: ("m2",)},
    ),
    Scenario(
        "B21",
        "AMQ-9829",
        "wrongly poisoned",
        "a prefetched message that nobody has seen is taken for a duplicate after a failover, and dead-lettered",
        Bug(broker=bugs.Poisoning),
        programs.failover_with_a_full_prefetch,
        {Anomaly.LOSS: ("m2",)},
    ),
    Scenario(
        "B23",
        "QPIDJMS-393",
        "missing callback",
        "after a failover in a transaction no callback comes, and commit or close hang",
        Bug((Change("transaction", "broken", "transaction_lost", None),)),
        programs.commit_after_a_lost_connection,
        stuck="rollback() of producer.1 would wait for ever",
    ),
    Scenario(
        "B25",
        "QPIDJMS-468",
        "missing count",
        "recover() tells the broker nothing, so the count of the next delivery is the same",
        Bug(broker=bugs.Miscounting),
        programs.recover_twice,
        {Anomaly.COUNT_REGRESSION: ("m",)},
    ),
    Scenario(
        "B27",
        "QPID-2995",
        "missing flag",
        "what was not confirmed before a failover is sent again on the next connection with the flag unset",
        Bug((Change("redelivered_flag", "clear", "dispatch_again", "clear"),)),
        programs.replay_on_the_next_connection,
        {Anomaly.UNFLAGGED_DUPLICATE: ("m",), Anomaly.COUNT_REGRESSION: ("m",), Anomaly.REPROCESSED: ("m",)},
    ),
    Scenario(
        "B29",
        "rabbitmq-server#3870",
        "sequence drift",
        "the confirmation of the first message names the second too, which has not been sent",
        Bug(broker=bugs.Drifting),
        programs.crash_between_two_confirmations,
        {Anomaly.LOSS: ("m2",)},
    ),
    Scenario(
        "B31",
        "rabbitmq-server#854",
        "confirm never",
        "after a purge or a change of leader a message is neither confirmed nor refused",
        Bug((Change("publisher_confirm", "none", "accept", "none"),)),
        programs.wait_for_a_confirmation,
        {Anomaly.MISSING_OUTCOME: ("m",)},
        stuck="the outcomes of producer.1 would wait for ever",
    ),
    Scenario(
        "B33",
        "rabbitmq-server#13326",
        "loss after confirm",
        "the log that a recovery reads has not what was confirmed",
        Bug(journal=bugs.WithoutTheFirst),
        programs.recovery_of_the_journal,
        {Anomaly.LOSS: ("m1",)},
    ),
    Scenario(
        "B35",
        "IBM IT19794",
        "non-persistent duplicate",
        "the library reconnects and puts a NON_PERSISTENT message again that the queue has",
        Bug((Change("publication", "in_doubt", "resend", "resent"),)),
        programs.put_again,
        {  # nobody says that it was put again: it comes again after the answer to its acknowledgement
            Anomaly.UNFLAGGED_DUPLICATE: ("m",),
            Anomaly.REPROCESSED: ("m",),
            Anomaly.RESURRECTION: ("m",),
        },
        unseen=("resend",),
    ),
    Scenario(
        "B37",
        "rabbitmq-server@49108a6",
        "stuck in flight",
        "after a second subscription under the same tag messages count as unacknowledged and are delivered to nobody",
        Bug((Change("entry", "dispatched", "consumer_close", "dispatched"),)),
        programs.subscribe_again,
        {Anomaly.STUCK: ()},
        stuck="m2 is in flight for ever",
    ),
    Scenario(
        "B39",
        "rabbitmq-java-client#395",
        "stale cumulative acknowledgement",
        "an acknowledgement of the connection before is mapped to tag 0, which stands for all that is outstanding",
        Bug(
            (
                Change("delivery", "prefetched", "acknowledge", "absent"),
                Change("delivery", "prefetched", "acknowledge(earlier)", "absent"),
                Change("ack_frame", "none", "acknowledge(earlier)", "in_flight"),
            ),
        ),
        programs.acknowledgement_from_before,
        {Anomaly.LOSS: ("m2", "m3")},
    ),
    Scenario(
        "B41",
        "node-amqp-connection-manager#142",
        "confirm misattributed",
        "confirmations arrive in another order than the sends, and the library crosses out the head of its list",
        Bug(broker=bugs.HeadFirst),
        programs.confirmations_out_of_order,
        {Anomaly.LOSS: ("m1",)},
    ),
    Scenario(
        "B43",
        "nats-server#7564",
        "confirm before fsync",
        "a message is confirmed before it is synced, and the power fails",
        Bug((Change("record", "unwritten", "confirm", "unwritten"),)),
        programs.power_loss_after_a_confirmation,
        {Anomaly.LOSS: ("m2",), Anomaly.EARLY_CONFIRM: ("m1",)},
    ),
    Scenario(
        "B45",
        "pulsar#7683",
        "cumulative acknowledgement",
        "the library takes a cumulative acknowledgement that failed for done, and drops for ever what comes again",
        Bug(broker=bugs.Dropping),
        programs.acknowledgement_that_fails,
        {Anomaly.STUCK: ("m1", "m2", "m3")},
        stuck="m1 is in flight for ever",
    ),
    Scenario(
        "B47",
        "nats-streaming-server#72",
        "acknowledged redelivered",
        "the acknowledgement by a second consumer is not stored, and after a restart the message is back",
        Bug((Change("ack_record", "none", "settle", "none"),)),
        programs.acknowledged_by_the_second_consumer,
        {Anomaly.RESURRECTION: ("m",), Anomaly.REPROCESSED: ("m",)},
    ),
    Scenario(
        "B49",
        "TIBCO KB-41575",
        "unseen to dead letters",
        "messages that were prefetched and never seen reach the limit of attempts, and nobody is told",
        Bug(broker=bugs.Unspoken),
        programs.consumer_that_dies_of_the_first,
        {Anomaly.LOSS: ("m2", "m3", "m4", "m5"), Anomaly.UNPROCESSED: ("m1",)},
    ),
)


def verified(laboratory: Laboratory, folder: Path, unseen: Collection[str] = ()) -> Result:
    """What is said of the history, by the tables of the project."""
    assert laboratory.history is not None
    return judged(laboratory.history, folder, unseen)


def violations(result: Result) -> dict[Anomaly, tuple[str, ...]]:
    """What was found and is not allowed, with the ids."""
    found = result.findings.anomalies.items()
    return {
        anomaly: each.unexplained_examples if each.unexplained else each.examples
        for anomaly, each in found
        if each.found and result.allowed[anomaly] is False
    }


def table() -> list[str]:
    """The lines of the table in ``docs/regressions.md``."""
    head = ["| | ticket | what went wrong | what catches it |", "|---|---|---|---|"]
    return head + [f"| {s.row} | {s.ticket} ({s.name}) | {s.wrong} | {s.caught} |" for s in SCENARIOS]


def write(file: Path) -> None:
    """Put the table, as it is now, where it stands in ``file``."""
    before, _, rest = file.read_text(encoding="utf-8").partition("\n| | ticket |")
    after = rest.partition("\n\n")[2]
    file.write_text("\n".join([before, *table(), "", after]), encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_bug_is_caught_by_name(scenario: Scenario, tmp_path: Path) -> None:
    laboratory = Laboratory(scenario.bug)
    if scenario.stuck is None:
        scenario.program(laboratory)
    else:
        with pytest.raises(Stuck, match=scenario.stuck.replace("(", r"\(").replace(")", r"\)")):
            scenario.program(laboratory)
    result = verified(laboratory, tmp_path, scenario.unseen)
    assert violations(result) == scenario.flagged
    assert result.verdict is (Verdict.INVALID if scenario.flagged else Verdict.UNKNOWN)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_without_the_bug_the_same_program_is_valid(scenario: Scenario, tmp_path: Path) -> None:
    laboratory = Laboratory(None)
    scenario.program(laboratory)
    result = verified(laboratory, tmp_path)
    assert violations(result) == {}
    assert (result.verdict, result.reasons) == (Verdict.VALID, ())
    for anomaly in scenario.flagged:
        finding = result.findings.anomalies.get(anomaly)  # of what is stuck a history says nothing that is drained
        assert finding is None or not finding.unexplained


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.row in {"B17", "B33"}], ids=str)
def test_a_broker_that_is_restarted_misses_what_its_journal_lost(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restarted(_: Laboratory, broker: Broker) -> Broker:
        broker.restart()
        return broker

    monkeypatch.setattr(Laboratory, "again", restarted)
    lost = scenario.flagged[Anomaly.LOSS][0]
    with pytest.raises(JournalInconsistent, match=lost):
        scenario.program(Laboratory(scenario.bug))


def test_the_dead_letters_that_nobody_saw_are_known_to_the_broker(tmp_path: Path) -> None:
    laboratory = Laboratory(None)
    programs.consumer_that_dies_of_the_first(laboratory)
    assert laboratory.history is not None
    ended = [line["message"] for line in laboratory.history.lines if line["event"] == "dead_lettered"]
    seen = {line["message"] for line in laboratory.history.lines if line["event"] == "delivered"}
    assert (ended, seen) == (["m1", "m2", "m3", "m4", "m5"], {"m1"})
    assert verified(laboratory, tmp_path).verdict is Verdict.VALID


def test_every_row_is_there_once() -> None:
    assert [scenario.row for scenario in SCENARIOS] == [f"B{number}" for number in range(1, 50, 2)]
    assert all(scenario.flagged or scenario.stuck for scenario in SCENARIOS)


@pytest.mark.skipif(not DOCUMENT.parent.is_dir(), reason="the documents are not in a source distribution")
def test_the_document_is_fresh() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("|")] == table(), (
        "run python -m model_tests.engine.test_regressions"
    )


if __name__ == "__main__":
    write(DOCUMENT)
