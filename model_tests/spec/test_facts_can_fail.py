"""The facts can fail: one row of each machine is changed, and a fact falls with it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from ackfsm import tables
from ackfsm.tables import Specification
from ackfsm.terms import Fault, Profile
from model_tests.spec import test_facts as facts
from model_tests.spec.test_facts import CLIENT, DUPLICATE, LOSS, PRE, REPROCESSED, STRICT, UNFLAGGED, UNSYNCED
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import few

Fact: TypeAlias = Callable[[Specification], None]


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One changed row, the fact that falls with it, and what the check then finds under one fault."""

    file: str
    old: str
    new: str
    fact: Fact
    fault: Fault | None
    chosen: dict[str, object]
    gained: set[str] = dataclasses.field(default_factory=set)
    missing: set[str] = dataclasses.field(default_factory=set)


def nothing_lost(fault: Fault) -> Fact:
    return lambda changed: facts.test_auto_with_a_listener_loses_nothing(changed, fault, mark=True, block=False)


def duplicated(fault: Fault) -> Fact:
    return lambda changed: facts.test_auto_with_a_listener_duplicates_under_faults_of_the_consumer_and_its_link(
        changed, fault, mark=True, block=False
    )


def at_most_once(fault: Fault) -> Fact:
    return lambda changed: facts.test_pre_acknowledge_that_blocks_is_at_most_once(
        changed, fault, mark=True, consumption="listener"
    )


def answered(fault: Fault, chosen: dict[str, object]) -> Fact:
    return lambda changed: facts.test_every_call_returns_and_every_send_has_an_outcome(changed, fault, chosen)


def quiet(profile: Profile, mode: str) -> Fact:
    return lambda changed: facts.test_without_a_fault_nothing_goes_wrong(changed, profile, mode)


def flagged(changed: Specification) -> None:
    facts.test_a_broker_crash_may_take_the_flag_unless_the_redelivery_mark_is_persisted(changed, block=False)


PRE_BLOCKING = PRE | {"block_on_acknowledge": True}
IN_MEMORY = STRICT | {"redelivery_mark_persisted": False}

KEPT = 'and has it", when: consumer_reattachment, source: ART client-reconnection}\n'
LATE = (
    "        - {to: delayed, when: redelivery_delay, because: it is sent again after its delay, "
    "source: ART undelivered-messages; EMS-RDELAY}\n"
)
BROKER, CONSUMER, JOURNAL = "machines/broker.yaml", "machines/consumer.yaml", "machines/journal.yaml"
LINK, PRODUCER, FAULTS = "machines/link.yaml", "machines/producer.yaml", "machines/faults.yaml"
CRASH, KILL, GONE = Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.CONSUMER_CRASH
FLAG_CLEAR = """    clear:
      dispatch_first: {to: clear, because: it is sent with the flag clear, source: JMS 3.4.7}
"""
RECORD_READ = "source: ART persistence}\n      recover_ready"
AGAIN, NEVER_ANSWERED = {DUPLICATE, REPROCESSED}, {"stuck", "missing_outcome"}

MUTATIONS = {
    "broker: it never starts again": Mutation(
        BROKER,
        "broker_restart: {to: up, because: somebody starts it again, source: model}",
        "broker_restart: {refuse: nobody starts it again}",
        nothing_lost(KILL),
        KILL,
        STRICT,
        gained={LOSS, "stuck"},
        missing=AGAIN,
    ),
    "entry: what a dead consumer had is removed": Mutation(
        BROKER,
        f"      consumer_crash, consumer_session_lost:\n{LATE}        - {{to: ready,",
        f"      consumer_crash, consumer_session_lost:\n{LATE}        - {{to: removed,",
        nothing_lost(GONE),
        GONE,
        STRICT,
        gained={LOSS, "unprocessed"},
        missing=AGAIN,
    ),
    "entry: what was on a broken link stays out": Mutation(
        BROKER,
        f"{KEPT}{LATE}        - {{to: ready,",
        f"{KEPT}{LATE}        - {{to: dispatched,",
        nothing_lost(Fault.CONSUMER_LINK_LOSS),
        Fault.CONSUMER_LINK_LOSS,
        STRICT,
        gained={LOSS},
        missing=AGAIN,
    ),
    "redelivery: the mark in memory outlives the broker": Mutation(
        BROKER,
        '- {to: marked, because: "the mark is gone',
        '- {refuse: "the mark is gone',
        flagged,
        CRASH,
        IN_MEMORY,
        missing={UNFLAGGED},
    ),
    "redelivery: nothing is marked": Mutation(
        BROKER,
        "- {to: marked, because: from now on any further delivery is a redelivery, source: JMS 3.4.7}\n"
        "      dispatch_again",
        "- {to: clear, because: from now on any further delivery is a redelivery, source: JMS 3.4.7}\n"
        "      dispatch_again",
        duplicated(GONE),
        GONE,
        STRICT,
        gained={UNFLAGGED},
        missing={DUPLICATE},
    ),
    "consumer: it never starts again": Mutation(
        CONSUMER,
        "consumer_restart: {to: running, because: somebody starts it again, source: model}",
        "consumer_restart: {refuse: nobody starts it again}",
        nothing_lost(GONE),
        GONE,
        STRICT,
        gained={LOSS, "unprocessed"},
        missing=AGAIN,
    ),
    "delivery: in doubt, it is handed over nevertheless": Mutation(
        CONSUMER,
        'ack_in_doubt:\n        to: absent\n        because: "the broker may',
        'ack_in_doubt:\n        to: acked_undelivered\n        because: "the broker may',
        at_most_once(KILL),
        KILL,
        PRE_BLOCKING,
        gained=AGAIN | {"resurrection"},
        missing={LOSS},
    ),
    "redelivered_flag: the library drops it": Mutation(
        CONSUMER,
        f"{FLAG_CLEAR}      dispatch_again: {{to: flagged,",
        f"{FLAG_CLEAR}      dispatch_again: {{to: clear,",
        duplicated(GONE),
        GONE,
        STRICT,
        gained={UNFLAGGED},
        missing={DUPLICATE},
    ),
    "ack_frame: the broker never answers": Mutation(
        CONSUMER,
        "- to: answer_due\n          when: confirms_acks",
        "- to: none\n          when: confirms_acks",
        quiet(Profile.JMS, "CLIENT"),
        None,
        CLIENT,
        gained={"stuck"},
    ),
    "fault_budget: there is no power loss": Mutation(
        FAULTS,
        "- {when: \"'broker_crash' in faults\",",
        "- {refuse: never, when: \"'broker_crash' in faults\", source: model} #",
        flagged,
        CRASH,
        IN_MEMORY,
        missing={UNFLAGGED, DUPLICATE, REPROCESSED},
    ),
    "record: confirmed before the sync": Mutation(
        JOURNAL,
        '- {refuse: "the response waits for the sync", when: answer_waits_for_sync, source',
        "- {to: written, because: impatience, when: answer_waits_for_sync, source",
        nothing_lost(CRASH),
        CRASH,
        STRICT,
        gained={LOSS, "early_confirm"},
    ),
    "record: a kill takes what was written": Mutation(
        JOURNAL,
        f"broker_kill: {{to: written, because: the operating system still has it, {RECORD_READ}",
        f"broker_kill: {{to: lost, because: the operating system has lost it, {RECORD_READ}",
        lambda changed: facts.test_without_sync_a_power_loss_loses_and_a_killed_broker_does_not(changed, mark=True),
        KILL,
        UNSYNCED,
        gained={LOSS},
    ),
    "ack_record: answered before the sync": Mutation(
        JOURNAL,
        "- {refuse: the response waits for the sync, when: answer_waits_for_sync, source",
        "- {to: written, because: impatience, when: answer_waits_for_sync, source",
        at_most_once(CRASH),
        CRASH,
        PRE_BLOCKING,
        gained=AGAIN | {"resurrection"},
    ),
    "producer_link: a call on a broken connection never fails": Mutation(
        LINK,
        "in_doubt, commit_failed, send_failed: {to: down, because: no answer can come any more, source: JMS 7.3.2}",
        "in_doubt, commit_failed, send_failed: {refuse: never}",
        answered(Fault.PRODUCER_LINK_LOSS, STRICT),
        Fault.PRODUCER_LINK_LOSS,
        STRICT,
        gained=NEVER_ANSWERED,
    ),
    "consumer_link: it never comes back": Mutation(
        LINK,
        "consumer_link_up, consumer_reattached: {to: up, because: the consumer reconnects, source: model}",
        "consumer_link_up, consumer_reattached: {refuse: never}",
        nothing_lost(Fault.CONSUMER_LINK_LOSS),
        Fault.CONSUMER_LINK_LOSS,
        STRICT,
        gained={LOSS},
        missing=AGAIN,
    ),
    "producer: it never sends": Mutation(
        PRODUCER,
        "commit_called, rollback: {to: running, because: only a running process acts, source: model}",
        "commit_called, rollback: {refuse: never}",
        duplicated(GONE),
        GONE,
        STRICT,
        gained={"stuck"},
        missing=AGAIN,
    ),
    "publication: nobody listens for the outcome": Mutation(
        PRODUCER,
        "- {to: awaiting_outcome, when: confirms_sends",
        "- {to: resolved, when: confirms_sends",
        quiet(Profile.JMS, "AUTO"),
        None,
        STRICT,
        gained=NEVER_ANSWERED,
    ),
    "publish_frame: the frame never leaves": Mutation(
        PRODUCER,
        "- {to: in_flight, when: copy == 1",
        "- {to: gone, when: copy == 1",
        quiet(Profile.JMS, "AUTO"),
        None,
        STRICT,
        gained=NEVER_ANSWERED,
    ),
    "publisher_confirm: a rejection arrives as a confirmation": Mutation(
        PRODUCER,
        "- {to: reject_in_flight, when: confirms_sends",
        "- {to: in_flight, when: confirms_sends",
        nothing_lost(Fault.REJECTION),
        Fault.REJECTION,
        STRICT,
        gained={LOSS},
    ),
    "a property: twice is not counted": Mutation(
        "properties/reprocessed.yaml",
        "processed, processed_in_vain: {to: twice,",
        "processed, processed_in_vain: {to: once,",
        flagged,
        CRASH,
        IN_MEMORY,
        missing={REPROCESSED},
    ),
    "a property: nothing is owed outside a transaction": Mutation(
        "properties/loss.yaml",
        "at_rest: [owed]",
        "at_rest: [in_transaction]",
        lambda changed: facts.test_without_sync_a_power_loss_loses_and_a_killed_broker_does_not(changed, mark=True),
        CRASH,
        UNSYNCED,
        missing={LOSS},
    ),
    "a condition: receive() acknowledges after the call": Mutation(
        "conditions.yaml",
        " or acks_automatically and consumption == 'receive'",
        "",
        lambda changed: facts.test_auto_and_pre_are_the_same_with_receive(changed, GONE),
        GONE,
        STRICT | {"consumption": "receive"},
        gained=AGAIN,
        missing={LOSS, "unprocessed"},
    ),
}


@pytest.mark.parametrize("name", few([*MUTATIONS], 8))
def test_a_changed_row_breaks_a_fact(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    spec = copy_of_spec(tmp_path)
    replace(spec, mutation.file, (mutation.old, mutation.new))
    changed = tables.load(spec)
    mutation.fact(shipped())
    with pytest.raises(AssertionError):
        mutation.fact(changed)
    before, after = (facts.reached(each, mutation.fault, mutation.chosen) for each in (shipped(), changed))
    assert (after - before, before - after) == (mutation.gained, mutation.missing)
