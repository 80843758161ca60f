"""What is said of damaged tables: the right file, the right line, and what to do."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.tables import _source
from ackfsm.tables._cross_check import check_claims
from ackfsm.terms import SpecError
from model_tests.support.places import SPEC
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped
from model_tests.support.whole import few

BROKER, JOURNAL, PRODUCER = "machines/broker.yaml", "machines/journal.yaml", "machines/producer.yaml"
CONSUMER, FAULTS, LOSS = "machines/consumer.yaml", "machines/faults.yaml", "properties/loss.yaml"
RECORDING = "recording.yaml"
GROUP = "  group: session_starts_over"
EXECUTE = (
    "      execute_consumer_commit: {to: removed, because: the transaction that acknowledged it has committed, "
    "source: JMS 6.2.7}"
)
WAITS = "{refuse: the response waits for the sync, when: answer_waits_for_sync"
NO_SESSION = "{refuse: there is no session to recover, error: IllegalStateException"
RECOVERS = "      recover, consumer_recover, library_recover, consumer_rollback:"
NPSEND = "delivery_mode == 'NON_PERSISTENT'"
UNCHECKED = f"- value: unconfirmed\n      when: {NPSEND}"
DISPATCHED = "        - {to: dispatched, because: kept until acknowledged, source: JMS 6.2.10}"


@dataclasses.dataclass(frozen=True)
class Damage:
    """Edits of one file, with :data:`HERE` in the line that the error has to name, and what it has to say."""

    file: str
    edits: tuple[tuple[str, str], ...]
    says: str


def damage(file: str, says: str, *edits: tuple[str, str]) -> Damage:
    return Damage(file, edits, says)


DAMAGES = {
    # decisions of nobody
    "an alternative without a source": damage(
        BROKER,
        "redelivery.clear: which row decides recover_ready is a matter of the configuration",
        (
            "        - {ignore: it has not been sent before, source: JMS 3.4.7}",
            f"        {HERE}- {{ignore: it is new}}",
        ),
    ),
    "a condition without a source": damage(
        JOURNAL,
        "ack_record.written: which row decides confirm_acknowledgement is a matter of the configuration",
        (f"        - {WAITS}, source: ART persistence}}", f"        {HERE}- {WAITS}}}"),
    ),
    "an alternative of a property without a source": damage(
        "properties/stuck.yaml",
        "blocked_acknowledge.free: which row decides acknowledge is a matter of the configuration",
        (
            "          - {ignore: the call does not wait, source: 004 non-transactional acknowledgements}",
            f"          {HERE}- {{ignore: the call does not wait}}",
        ),
    ),
    "an error that the application sees without a source": damage(
        "machines/link.yaml",
        "consumer_link.down: recover ends in IllegalStateException, and the row has no source",
        (f"{RECOVERS}\n        {NO_SESSION}, source: JMS 6.2.10}}", f"{HERE}{RECOVERS}\n        {NO_SESSION}}}"),
    ),
    # groups of events
    "a group that is called as an event": damage(
        "events.yaml",
        "settle is an event; rename the group",
        (f"\nrecover:\n  per: session\n{GROUP}\n", f"\nrecover:\n  per: session\n  {HERE}group: settle\n"),
    ),
    "a group of one event": damage(
        "events.yaml",
        "consumer_close is alone in the group close; delete it here",
        (f"consumer_close:\n  per: session\n{GROUP}\n", f"consumer_close:\n  per: session\n  {HERE}group: close\n"),
    ),
    "a group of events that exist for different things": damage(
        "events.yaml",
        "the events of the group session_starts_over exist for different things; take one out",
        (f"\nrecover:\n  per: session\n{GROUP}\n", f"\nrecover:\n  per: session\n  {HERE}{GROUP.strip()}\n"),
        (f"consumer_close:\n  per: session\n{GROUP}\n", f"consumer_close:\n  per: consumer\n{GROUP}\n"),
    ),
    "a group that no row is for": damage(
        "events.yaml",
        "no row is for the group at_once; delete it here",
        ("\nsend:\n  per: message\n", f"\nsend:\n  per: message\n  {HERE}group: at_once\n"),
        ("ask_at_once:\n  per: message\n", "ask_at_once:\n  per: message\n  group: at_once\n"),
    ),
    "a group beside an event of it": damage(
        "machines/consumer.yaml",
        "delivery.in_flight: recover is decided twice; keep one",
        (
            '      session_starts_over: {to: absent, because: "it comes again, so this',
            f'      {HERE}recover, session_starts_over: {{to: absent, because: "it comes again, so this',
        ),
    ),
    # holes and rows that cannot be
    "a hole": damage(
        BROKER,
        "broker.down does not decide broker_restart; give it a row, ignore or refuse",
        ("      broker_restart: {to: up, because: somebody starts it again, source: model}\n", ""),
        ("    down:\n", f"    {HERE}down:\n"),
    ),
    "a hole in a property": damage(
        "properties/reprocessed.yaml",
        "processed_again.twice does not decide processed; give it a row, ignore or refuse",
        ("      twice:\n        processed, processed_in_vain: {ignore: twice is enough}", f"      {HERE}twice: {{}}"),
    ),
    "an unknown target": damage(
        BROKER,
        "entry.acked_in_transaction: execute_consumer_commit leads to 'gone', which is no state",
        (EXECUTE, HERE + EXECUTE.replace("removed", "gone")),
    ),
    "an unknown target in a list": damage(
        BROKER,
        "entry.ready: dispatch_first leads to 'sent', which is no state",
        (DISPATCHED, HERE + DISPATCHED.replace("to: dispatched", "to: sent")),
    ),
    "a row that can never decide": damage(
        BROKER,
        "entry.ready: this row for dispatch_first can never decide",
        (DISPATCHED, f"{DISPATCHED}\n{HERE}{DISPATCHED}"),
    ),
    "a last row with a condition": damage(
        BROKER,
        "entry.ready: the last row for dispatch_first must have no condition",
        (DISPATCHED, HERE + DISPATCHED.replace("because", "when: queue_durable, because")),
    ),
    "a single row with a condition": damage(
        BROKER,
        "entry.acked_in_transaction: the last row for execute_consumer_commit must have no condition",
        (EXECUTE, HERE + EXECUTE.replace("because", "when: queue_durable, because")),
    ),
    "a list of one row": damage(
        BROKER,
        "is too short",
        (f"{DISPATCHED}\n", ""),
        ("    ready:\n      dispatch_first", f"    ready:\n      {HERE}dispatch_first"),
    ),
    "an event decided twice": damage(
        BROKER,
        "entry.acked_in_transaction: execute_consumer_commit is decided twice; keep one",
        (EXECUTE, f"{EXECUTE}\n{HERE}      accept, execute_consumer_commit: {{ignore: x}}"),
    ),
    "a row for states that all decide": damage(
        PRODUCER,
        "publish_frame: every state decides accept; delete it here",
        (
            "    none:\n      send, send_in_transaction:\n",
            "    none:\n      accept: {refuse: x}\n      send, send_in_transaction:\n",
        ),
        ("    gone:\n", "    gone:\n      accept: {refuse: x}\n"),
        (
            "    accept, rejection, discard_duplicate: {refuse: the frame",
            f"    {HERE}accept, rejection, discard_duplicate: {{refuse: the frame",
        ),
    ),
    "a condition that is none": damage(
        BROKER,
        "entry: condition '1 +' is not an expression",
        (EXECUTE, HERE + EXECUTE.replace("because", "when: 1 +, because")),
    ),
    "a condition with an unknown name": damage(
        BROKER,
        "'removed_when_sent' is neither a setting nor a condition of conditions.yaml",
        ("when: settled_on_dispatch,", f"{HERE}when: removed_when_sent,"),
    ),
    "a comparison with an unknown name": damage(
        BROKER,
        "'ackmode' is neither a setting nor a condition of conditions.yaml",
        ("when: settled_on_dispatch,", f"{HERE}when: ackmode == 'NO_ACKNOWLEDGE',"),
    ),
    "a condition with an unknown value": damage(
        CONSUMER,
        "'swallows' is not one of redeliver",
        ("listener_exception == 'acknowledge'", f"{HERE}listener_exception == 'swallows'"),
    ),
    "a condition that is no text": damage(
        BROKER, "True is not of type 'string'", ("when: settled_on_dispatch,", f"{HERE}when: true,")
    ),
    # the form
    "a duplicate key": damage(
        BROKER,
        "'execute_consumer_commit' stands twice in one mapping; keep one of them",
        (EXECUTE, f"{EXECUTE}\n{HERE}{EXECUTE}"),
    ),
    "a duplicate state": damage(
        BROKER, "'ready' stands twice in one mapping; keep one of them", ("    not_recovered:\n", f"    {HERE}ready:\n")
    ),
    "an unknown key of a row": damage(
        BROKER, "('until' was unexpected)", (EXECUTE, HERE + EXECUTE.replace("to:", "until: x, to:"))
    ),
    "a row that moves and refuses": damage(
        BROKER, "('refuse' was unexpected)", (EXECUTE, HERE + EXECUTE.replace("to:", "refuse: x, to:"))
    ),
    "an unknown key of a machine": damage(
        BROKER, "('owner' was unexpected)", ("  means: one copy of", f"  {HERE}owner: x\n  means: one copy of")
    ),
    "an unknown key of a profile": damage(
        "profiles/ems.yaml", "('vendor' was unexpected)", ("defaults:\n", f"{HERE}vendor: TIBCO\ndefaults:\n")
    ),
    "a row without a reason": damage(
        BROKER,
        "'because' is a required property",
        (EXECUTE, HERE + EXECUTE.replace("because: the transaction that acknowledged it has committed, ", "")),
    ),
    "a row without a source": damage(
        BROKER, "'source' is a required property", (EXECUTE, HERE + EXECUTE.replace(", source: JMS 6.2.7", ""))
    ),
    "an empty reason": damage(
        BROKER,
        "because: ",
        (EXECUTE, HERE + EXECUTE.replace("the transaction that acknowledged it has committed", "''")),
    ),
    "a reason that is a number": damage(
        BROKER,
        "5 is not of type 'string'",
        (EXECUTE, HERE + EXECUTE.replace("the transaction that acknowledged it has committed", "5")),
    ),
    "a reason that is a date of no calendar": damage(
        BROKER,
        "2024-13-45",
        (EXECUTE, HERE + EXECUTE.replace("the transaction that acknowledged it has committed", "2024-13-45")),
    ),
    "a tag that YAML does not know": damage(
        BROKER,
        "!python/name:os.system",
        (
            EXECUTE,
            HERE + EXECUTE.replace("the transaction that acknowledged it has committed", "!python/name:os.system ''"),
        ),
    ),
    "a machine that is a table and a counter": damage(
        FAULTS,
        "fault_budget",
        ("fault_budget:\n", f"{HERE}fault_budget:\n"),
        ("  down:\n", "  states: {one: {}}\n  down:\n"),
    ),
    "a machine per nothing": damage(
        BROKER,
        "'queue' is not one of ['system', 'message', 'copy', 'subscription', 'routed_message', 'routed_copy', "
        "'session', 'consumer', 'reception', 'delivery']",
        ("per: routed_copy\n  means: one copy", f"{HERE}per: queue\n  means: one copy"),
    ),
    # events and owners
    "an unknown event in a state": damage(
        BROKER,
        "entry reacts to 'execute'; declare it in events.yaml",
        (EXECUTE, HERE + EXECUTE.replace("execute_consumer_commit", "execute")),
        (
            "consumer_rollback, execute_consumer_commit:\n      {ignore: it is not",
            "consumer_rollback, execute_consumer_commit, execute:\n      {ignore: it is not",
        ),
    ),
    "an unknown event elsewhere": damage(
        BROKER,
        "entry reacts to 'setle'; declare it in events.yaml",
        (
            "    settle, requeue, withdraw, time_is_over:",
            f"    {HERE}settle, setle, requeue, withdraw, time_is_over:",
        ),
    ),
    "an event of no relation": damage(
        BROKER,
        "entry: 'dispatch_first(latter)' is not an event; write name, or one of name(other), name(earlier),",
        (
            "      dispatch_first(later), dispatch_again(later):",
            f"      {HERE}dispatch_first(latter), dispatch_again(later):",
        ),
    ),
    "another index of the system": damage(
        PRODUCER,
        "producer: send(other) has no other index; drop (other)",
        (
            "    running:\n      producer_crash: {to: down",
            f"    running:\n      {HERE}send(other): {{ignore: x}}\n      producer_crash: {{to: down",
        ),
        (
            "    closed:\n      producer_crash: {to: down",
            "    closed:\n      send(other): {ignore: x}\n      producer_crash: {to: down",
        ),
        (
            "      producer_crash: {refuse: it is down",
            "      send(other): {ignore: x}\n      producer_crash: {refuse: it is down",
        ),
    ),
    "another subscription of what is in none": damage(
        PRODUCER,
        "publication: accept(other_subscription) has no other subscription; drop (other_subscription)",
        (
            "    send_returned: {refuse",
            f"    {HERE}accept(other_subscription): {{ignore: x}}\n    send_returned: {{refuse",
        ),
    ),
    "an owner at one consumer of what is in all subscriptions": damage(
        "machines/consumer.yaml",
        "processing is per delivery and owns send_completed, which is per copy; give it a coarser owner",
        ("\nprocessing:\n", f"\n{HERE}processing:\n"),
        ("  owns: [processed, processed_in_vain]\n", "  owns: [processed, processed_in_vain, send_completed]\n"),
        (
            "    processed, forward: {refuse: the application is not processing it}\n",
            "    processed, forward: {refuse: the application is not processing it}\n    send_completed: {ignore: x}\n",
        ),
    ),
    "mixed relations": damage(
        PRODUCER,
        "publication has both send(other) and send(earlier or later); keep one kind",
        ("publication:", f"{HERE}publication:"),
        ("    send_returned: {refuse", "    send(other): {ignore: x}\n    send_returned: {refuse"),
    ),
    "an event that nobody has": damage(
        "events.yaml",
        "the event spare is unused (no machine has it in its alphabet); delete it",
        ("accept:\n", f"{HERE}spare:\n  {{per: copy, lane: broker, means: x, recorded: x}}\naccept:\n"),
    ),
    "an event that nobody decides": damage(
        "events.yaml",
        "no machine owns spare and no history records it; give it an owner",
        ("accept:\n", f"{HERE}spare:\n  {{per: copy, lane: broker, means: x}}\naccept:\n"),
    ),
    "two owners": damage(
        JOURNAL,
        "ack_record and entry both own settle; keep one owner",
        ("\nack_record:\n  per:", f"\n{HERE}ack_record:\n  per:"),
        ("  owns: [write_ack_record,", "  owns: [settle, write_ack_record,"),
    ),
    "an owner without a row": damage(
        BROKER,
        "entry owns confirm but has no row for it",
        ("entry:\n", f"{HERE}entry:\n"),
        ("owns: [accept,", "owns: [confirm, accept,"),
    ),
    "an owner that exists more often than its event": damage(
        BROKER,
        "broker_restart",
        ("entry:\n", f"{HERE}entry:\n"),
        ("owns: [broker_restart]\n", "owns: []\n"),
        ("owns: [accept,", "owns: [broker_restart, accept,"),
    ),
    "two machines of one name": damage(
        JOURNAL, "there are two machines 'entry'; rename one", ("\nrecord:\n", f"\n{HERE}entry:\n")
    ),
    # what nobody uses
    "an unused condition": damage(
        "conditions.yaml",
        "the condition spare is unused (no row reads it); delete it",
        ("journalled:\n", f"{HERE}spare:\n  {{when: queue_durable, because: x, source: model}}\njournalled:\n"),
    ),
    "an unused source": damage(
        "sources.yaml", "the source spare is unused (nothing cites it); delete it", ("JMS: ", f"{HERE}spare: x\nJMS: ")
    ),
    "a source that nobody explains": damage(
        BROKER,
        "source 'JSM 6.2.7' begins with no tag of sources.yaml; add the tag",
        (EXECUTE, HERE + EXECUTE.replace("JMS", "JSM")),
    ),
    "a second source that nobody explains": damage(
        "conditions.yaml",
        "source 'ARTEMIS x' begins with no tag",
        ("  source: JMS 7.2; JMS 7.3; EMS-REL;", f"  {HERE}source: JMS 7.2; ARTEMIS x; EMS-REL;"),
    ),
    "a condition that reads a later one": damage(
        "conditions.yaml",
        "'settled_on_dispatch' is neither a setting nor a condition of conditions.yaml",
        ("  when: send_mode != 'unconfirmed'", f"  {HERE}when: settled_on_dispatch"),
    ),
    # what lines tell
    "a sign without a source": damage(
        RECORDING,
        "'source' is a required property",
        ("  send:\n", f"  {HERE}send:\n"),
        (", source: H1 send; JMS 7.2", ""),
    ),
    "a line that nobody waits for without a source": damage(
        RECORDING,
        "'source' is a required property",
        ("  resend: {because:", f"  {HERE}resend: {{because:"),
        ('before sending again", source: JMS 6.2.12', 'before sending again"'),
    ),
    "a line that tells of what does not exist": damage(
        RECORDING,
        "there is no event 'spare'; name one of events.yaml",
        ("    tells: [resend]", f"    {HERE}tells: [spare]"),
    ),
    "an event that leaves two lines": damage(
        RECORDING,
        "send leaves the line of 'send' already; let this row say it under also",
        ("    tells: [resend]", f"    {HERE}tells: [resend, send]"),
    ),
    "a line that tells nothing": damage(
        RECORDING,
        "this row tells nothing; name its events, or a state that it excludes",
        ("  resend:\n    line", f"  {HERE}resend:\n    line"),
        ("    tells: [resend]\n", ""),
    ),
    "a fact that nobody knows": damage(
        RECORDING, "there is no fact 'known'", ("free: [{life: sent_plainly}]", f"\n     {HERE}free: [{{life: known}}]")
    ),
    "a sign that does not exist": damage(
        RECORDING, "there is no sign 'sent'", ("    - {unless: [confirmed, rejected]", f"    - {HERE}{{unless: [sent]")
    ),
    "a deviation after a sign that does not exist": damage(
        "profiles/artemis.yaml",
        "recording.yaml has no sign 'closed'; name one of it",
        ("      after: [consumer's close,", f"      {HERE}after: [closed,"),
    ),
    "a deviation that is judged with a setting that does not exist": damage(
        "profiles/artemis.yaml",
        "there is no setting 'attempts'",
        ("      as_if: {max_delivery_attempts: 0}", f"      as_if: {{{HERE}attempts: 0}}"),
    ),
    "an untold event that happens without a line anyway": damage(
        RECORDING, "accept is not optional", ("  postpone: {between", f"  {HERE}accept: {{between")
    ),
    "an untold event that a line tells": damage(
        RECORDING, "a line tells recover; delete it here", ("  postpone: {between", f"  {HERE}recover: {{between")
    ),
    # counters
    "a counter without a bound": damage(
        FAULTS, "'bound' is a required property", ("counter: {bound: max_faults,", f"{HERE}counter: {{")
    ),
    "a counter with an unknown end": damage(
        FAULTS, "'wait' is not one of ['ignore', 'refuse']", ("at_zero: refuse", f"{HERE}at_zero: wait")
    ),
    "a counter bound by no setting": damage(FAULTS, "max_errors", ("bound: max_faults", f"{HERE}bound: max_errors")),
    "a counter bound by no number": damage(FAULTS, "ack_mode", ("bound: max_faults", f"{HERE}bound: ack_mode")),
    "a counter that goes to a state": damage(
        FAULTS,
        "('to' was unexpected)",
        ("  down:\n", f"  down:\n    {HERE}spare: {{to: x, because: x, source: model}}\n"),
    ),
    # properties
    "an unknown anomaly": damage(LOSS, "'lost' is not one of ['loss', ", ("anomaly: loss", f"{HERE}anomaly: lost")),
    "an anomaly in the file of another": damage(
        LOSS, "reorder belongs in reorder.yaml; rename the file", ("anomaly: loss", f"{HERE}anomaly: reorder")
    ),
    "a property that refuses": damage(
        LOSS,
        "owed_to_the_application refuses confirmed; a property only watches, write ignore",
        ("      settled: {}", f"      settled: {{\n        {HERE}confirmed: {{refuse: x}}}}"),
    ),
    "a property that refuses elsewhere": damage(
        LOSS,
        "refuses send_in_transaction",
        ("      send_in_transaction, rollback_returned,", f"      {HERE}send_in_transaction, rollback_returned,"),
        ("commit_failed, producer_crash:\n        {ignore:", "commit_failed, producer_crash:\n        {refuse:"),
    ),
    "a mark on no state": damage(
        LOSS,
        "owed_to_the_application marks 'owned', which is no state of it",
        ("  owed_to_the_application:", f"  {HERE}owed_to_the_application:"),
        ("at_rest: [owed]", "at_rest: [owned]"),
    ),
    "a property that owns": damage(
        LOSS,
        "owed_to_the_application",
        ("  owed_to_the_application:", f"  {HERE}owed_to_the_application:"),
        ("    marked: []", "    marked: []\n    owns: [send]"),
    ),
    "a machine with marks": damage(
        BROKER,
        "entry",
        ("entry:\n", f"{HERE}entry:\n"),
        ("  means: one copy of", "  marked: [lost]\n  means: one copy of"),
    ),
    # profiles, promises
    "a default that reads a later setting": damage(
        "profiles/ems.yaml",
        "the default of send_mode may only read settings before it, not prefetch",
        (UNCHECKED, f"{HERE}{UNCHECKED.replace(NPSEND, 'prefetch == 5')}"),
    ),
    "a default that reads itself": damage(
        "profiles/ems.yaml",
        "the default of send_mode may only read settings before it, not send_mode",
        (UNCHECKED, HERE + UNCHECKED.replace(NPSEND, "send_mode == 'blocking'")),
    ),
    "a default that reads the bounds of a check": damage(
        "profiles/ems.yaml", "send_mode", (UNCHECKED, f"{HERE}{UNCHECKED.replace(NPSEND, 'messages == 1')}")
    ),
    "a default of the wrong type": damage(
        "profiles/ems.yaml",
        "prefetch cannot be 'many'; it is a whole number from 0",
        ("value: 5", f"{HERE}value: many"),
    ),
    "a default of an unknown setting": damage(
        "profiles/ems.yaml", "there is no setting 'prefetched'", ("  prefetch_freed:", f"  {HERE}prefetched:")
    ),
    "a default of the profile": damage(
        "profiles/ems.yaml",
        "profile",
        ("  prefetch:", f"  {HERE}profile: {{value: jms, because: x, source: model}}\n  prefetch:"),
    ),
    "defaults without a last word": damage(
        "profiles/ems.yaml",
        "send_mode: every row but the last has a condition, the last has none",
        ("    - {value: blocking,", f"    {HERE}- {{value: blocking, when: queue_durable,"),
    ),
    "a default that nobody states": damage(
        "profiles/jms.yaml",
        "no default for prefetch; every other profile builds on this one",
        ("defaults:", f"{HERE}defaults:"),
        ("  prefetch: {value: 0, because: JMS sets no bound, source: JMS 6.2.10}\n", ""),
    ),
    "a promise under no condition": damage(
        "promises.yaml",
        "'awaits' is neither a setting nor a condition of conditions.yaml",
        (
            "  when: journalled and answer_waits_for_sync\n",
            f"  {HERE}when: awaits and answer_waits_for_sync\n",
        ),
    ),
    "a promise that nobody makes": damage(
        "promises.yaml",
        "the promise peace is unused (no profile makes it); delete it",
        ("no_phantom:\n", f'{HERE}peace: {{absent: stuck, when: "True", because: x, source: model}}\nno_phantom:\n'),
    ),
    "a promise of an unknown anomaly": damage(
        "promises.yaml", "'struck' is not one of", ("  absent: stuck", f"  {HERE}absent: struck")
    ),
}


@pytest.mark.parametrize("name", few([*DAMAGES], 12))
def test_damage_is_named_with_file_and_line(name: str, tmp_path: Path) -> None:
    damaged = DAMAGES[name]
    spec = copy_of_spec(tmp_path)
    line = replace(spec, damaged.file, *damaged.edits)
    assert line > 0, "the case names a line"
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    place, _, sentence = str(error.value).partition(": ")
    assert place.endswith(f"spec/{damaged.file}:{line}")
    assert damaged.says in sentence
    assert len(str(error.value).splitlines()) == 1
    assert len(sentence) < 700, "a sentence, not the table itself"


FILES = {
    "empty": ("", 1, "the table is empty; restore the file"),
    "of comments alone": ("# nothing\n# at all\n", 1, "the table is empty; restore the file"),
    "a list": ("- a\n- b\n", 1, "is not of type 'object'; see spec/schema.json for the form"),
    "a word": ("broker\n", 1, "is not of type 'object'; see spec/schema.json for the form"),
    "with an open bracket": ("a: x\nb: [1\n", 3, "not YAML: "),
    "with a tab": ("a:\n  b: x\n\tc: x\n", 3, "not YAML: "),
    "with an unknown alias": ("a: x\nb: *c\n", 2, "not YAML: "),
    "of two documents": ("a: x\n---\nb: x\n", 2, "not YAML: "),
}


@pytest.mark.parametrize("file", [BROKER, "events.yaml", "profiles/jms.yaml"])
@pytest.mark.parametrize(("text", "line", "says"), FILES.values(), ids=FILES.keys())
def test_a_file_that_is_no_table_is_named(file: str, text: str, line: int, says: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / file).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / file}:{line}: ")
    assert says in str(error.value)


def test_a_table_that_contains_itself_is_named(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / "sources.yaml").write_text("JMS: x\nmodel: &all {all: *all}\n", encoding="utf-8")
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / 'sources.yaml'}:2: ")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / BROKER).write_bytes(b"broker: \xff\xfe\n")
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / BROKER}:1: not YAML: ")


LAST = "    - refused: {profile: solace, settings: {confirm_timer: false}}\n"
"""The last check of a claim."""

UNKNOWN = {
    "an event that has to happen": (
        "never: loss\n      although: [confirmed,\n        «here»no_such_event]",
        "there is no event 'no_such_event'; events.yaml lists the events",
    ),
    "an event that never happens": ("never: loss\n      without: [«here»gone]", "there is no event 'gone'"),
    "an event that is seen": (
        "equal: {left: {prefetch: 1}, right: {prefetch: 2}}\n      events: [«here»gone]",
        "there is no event 'gone'",
    ),
    "an event of a witness": ("possible: loss\n      by: [«here»gone(m1)]", "there is no event 'gone'"),
    "one of two events": ("same_effect: [acknowledge(m1), «here»gone(m2)]", "there is no event 'gone'"),
    "an action": ("never: loss\n      actions: [«here»gone]", "there is no event 'gone'"),
    "an action that everybody does": ("never: loss\n      actions: [«here»send]", "only optional events are actions"),
    "a monitor": ("never: «here»lossy", "there is nothing called 'lossy' to watch for"),
    "an event to watch for": ("possible: happens(«here»gone)", "there is no event 'gone'"),
    "an event that no machine decides": ("possible: happens(«here»committed)", "no machine decides committed"),
    "a setting of a group": ("never: loss\n      in: {«here»mode: any}", "there is no setting 'mode'"),
    "a value of a group": ("never: loss\n      in: {ack_mode: «here»LAZY}", "ack_mode cannot be 'LAZY'"),
    "a setting of a side": ("differ: {left: {prefetch: 1}, right: {«here»mode: 2}}", "there is no setting 'mode'"),
    "a setting with a default": ("default: {profile: jms, key: «here»mode, value: 1}", "there is no setting 'mode'"),
    "a setting that is refused": ("refused: {profile: jms, settings: {«here»mode: 1}}", "there is no setting 'mode'"),
    "an interface": ("accepted: {profile: jms, api: «here»AMQP, settings: {prefetch: 1}}", "jms has no API 'AMQP'"),
    "a machine": ("row: {machine: «here»desk, state: ready, event: settle, to: gone}", "there is no machine 'desk'"),
    "a state": ("row: {machine: entry, state: «here»red, event: settle, to: removed}", "entry has no state 'red'"),
    "a target": ("row: {machine: entry, state: ready, event: settle, to: «here»red}", "entry has no state 'red'"),
    "an event of a machine": (
        "row: {machine: entry, state: ready, event: «here»confirmed, to: removed}",
        "entry does not react to 'confirmed'",
    ),
}
"""Checks of a claim, each with a name that the tables do not have, and what is said of it."""


@pytest.mark.parametrize("name", few([*UNKNOWN], 7))
def test_an_unknown_name_in_a_claim_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    check, says = UNKNOWN[name]
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "claims.yaml", (LAST, f"    - {check}\n"))
    with pytest.raises(SpecError) as error:
        check_claims(shipped(), tables.read_form("claims.yaml", "claims", spec))
    assert str(error.value).startswith(f"{spec / 'claims.yaml'}:{line}: ")
    assert says in str(error.value)


CONTRADICTED = """    - refused: {{profile: solace, settings: {{confirm_timer: false}}}}
  contradiction:
    - says: "no"
      source: {}
      checks:
        - never: {}
"""
"""A claim with what another source says instead, and a check of that."""

BESIDE = {
    "a source of a claim": (
        "claims.yaml",
        (LAST, CONTRADICTED.format(f"{HERE}hearsay", "loss")),
        "source 'hearsay' begins with no tag of sources.yaml; add the tag",
    ),
    "an event of a contradiction": (
        "claims.yaml",
        (LAST, CONTRADICTED.format("model", f"happens({HERE}gone)")),
        "there is no event 'gone'",
    ),
    "a source of a call": (
        "execution.yaml",
        ("because: the application calls acknowledge(), source: JMS", f"because: x, {HERE}source: hearsay"),
        "source 'hearsay 6.2.10' begins with no tag of sources.yaml; add the tag",
    ),
    "a condition of a call": (
        "execution.yaml",
        ("by: library_lazily\n      when: acks_lazily\n", f"by: library_lazily\n      {HERE}when: lazily\n"),
        "'lazily' is neither a setting nor a condition of conditions.yaml",
    ),
}


@pytest.mark.parametrize(("file", "edit", "says"), BESIDE.values(), ids=BESIDE.keys())
def test_what_others_read_is_checked_with_the_tables(
    file: str, edit: tuple[str, str], says: str, tmp_path: Path
) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, file, edit)
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / file}:{line}: ")
    assert says in str(error.value)


def test_a_condition_that_only_the_engine_asks_for_is_used(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    leisure = "at_leisure:\n  when: acks_lazily\n  because: x\n  source: model\n\n"
    replace(spec, "conditions.yaml", ("confirms_acks:\n", f"{leisure}confirms_acks:\n"))
    with pytest.raises(SpecError, match="the condition at_leisure is unused"):
        tables.load(spec)
    replace(
        spec,
        "execution.yaml",
        ("by: library_lazily\n      when: acks_lazily\n", "by: library_lazily\n      when: at_leisure\n"),
    )
    assert "at_leisure" in tables.load(spec).conditions


@pytest.mark.parametrize("file", ["sources.yaml", "events.yaml", "conditions.yaml", "promises.yaml"])
def test_a_missing_file_is_named(file: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / file).unlink()
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value) == f"{spec / file}: cannot be read (No such file or directory); restore the file"


@pytest.mark.parametrize("folder", ["machines", "properties", "profiles"])
def test_a_missing_folder_is_named(folder: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    shutil.rmtree(spec / folder)
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / folder}: ")


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_tables_is_named(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError) as error:
        tables.load(tmp_path / folder)
    remedy = "no tables here (schema.json is missing); name the folder that holds spec/"
    assert str(error.value) == f"{tmp_path / folder}: {remedy}"


def test_a_table_of_aliases_of_aliases_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12)]
    (spec / "sources.yaml").write_text("l0: &l0 [x]\n" + "".join(levels), encoding="utf-8")
    with pytest.raises(SpecError, match="more than 200,000 values") as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / 'sources.yaml'}: ")


DEEP = {
    "brackets": "model: " + "[" * 50_000,
    "closed brackets": "model: " + "[" * 400 + "]" * 400,
    "mappings in a line": "model: " + "{a: " * 5_000 + "1" + "}" * 5_000,
    "mappings in lines": "".join(f"{' ' * n}a:\n" for n in range(2_000)),
    "dashes": "model:\n" + "- " * 900 + "x\n",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_a_table_too_deep_is_refused_before_it_takes_the_stack(text: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / "sources.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=r"values are more than 50 deep|exceeded maximum nesting depth") as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / 'sources.yaml'}:")


def test_a_schema_of_another_form_is_refused(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    for text in ('{"$defs": {}}', '{"$defs": {"sources": {"$ref": "#"}}}', "5", "[]"):
        (spec / "schema.json").write_text(text, encoding="utf-8")
        with pytest.raises(SpecError, match="not the form that this version of ackfsm reads"):
            tables.load(spec)


def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot be read \(File name too long\); name a folder of tables"):
        tables.load(tmp_path / ("x" * 300))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_damaged_schema_is_named(text: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    (spec / "schema.json").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(f"{spec / 'schema.json'}:")


@pytest.mark.parametrize(("profile", "present"), [("hornetq", True), ("ems", False)])
def test_a_profile_too_many_or_too_few_is_named(profile: str, tmp_path: Path, *, present: bool) -> None:
    spec = copy_of_spec(tmp_path)
    file = spec / "profiles" / f"{profile}.yaml"
    if present:
        file.write_text("system: x\ndefaults: {}\n", encoding="utf-8")
    else:
        file.unlink()
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value) == f"{spec / 'profiles'}: {profile}.yaml is missing or names no profile"


# what was held against the schema before


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cache of its own, and the tables that are held against the schema from now on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told: list[str] = []
    validate = _source._validate  # noqa: SLF001

    def noted(document: _source.Document, schema: dict[str, object]) -> None:
        told.append(document.name)
        validate(document, schema)

    monkeypatch.setattr(_source, "_validate", noted)
    monkeypatch.setattr("ackfsm.tables._load.read_document", _source.read_document)
    return told


def test_tables_are_held_against_the_schema_once_for_each_version(held: list[str], tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    first = tables.load(spec)
    files = len(held)
    assert files > 30
    assert tables.load(spec) == first
    assert len(held) == files, "nothing more"
    with (spec / "sources.yaml").open("a", encoding="utf-8") as file:
        file.write("# a comment\n")
    tables.load(spec)
    assert len(held) == 2 * files, "all of it again"


def test_what_was_not_in_form_is_held_against_the_schema_again(held: list[str], tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "properties/loss.yaml", ("per: routed_message", "pro: routed_message"))
    for _ in range(2):
        held.clear()
        with pytest.raises(SpecError, match=r"loss\.yaml"):
            tables.load(spec)
        assert "spec/properties/loss.yaml" in held


def test_where_nothing_can_be_kept_tables_are_read_all_the_same(
    held: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    spec = copy_of_spec(tmp_path)
    assert tables.load(spec) == tables.load(spec)
    assert held.count("spec/events.yaml") == 2


# what was read of the tables that ship


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what is kept, of the tables in a copy as if they were those that ship."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy = copy_of_spec(tmp_path)
    monkeypatch.setattr("ackfsm.tables._load.shipped_tables", lambda: copy)
    tables.load()
    (file,) = (tmp_path / "cache").rglob("*.pickle")
    return file


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are read from now on."""
    read: list[str] = []
    original = _source.read_document

    def noted(file: Path, name: str, form: dict[str, Any] | None) -> _source.Document:
        read.append(name)
        return original(file, name, form)

    monkeypatch.setattr("ackfsm.tables._load.read_document", noted)
    return read


@pytest.mark.usefixtures("kept")
def test_tables_that_ship_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = _reads(monkeypatch)
    found = tables.load()
    assert read == []
    assert found == tables.load(SPEC)
    rows = [row for machine in found.machines.values() for row in machine.rows()]
    assert any(row.when is tables.ALWAYS for row in rows), "of which there is one"


@pytest.mark.parametrize("place", few([0.0, 0.1, 0.5, 0.99], 2))
def test_what_is_kept_and_damaged_is_read_again_and_replaced(
    place: float, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kept.read_bytes()
    at = int(len(whole) * place)
    kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    read = _reads(monkeypatch)
    assert tables.load() == tables.load(SPEC)
    assert "spec/events.yaml" in read
    read.clear()
    tables.load()
    assert read == []


@pytest.mark.parametrize("left", [b"", b"short"])
def test_what_is_kept_and_cut_is_read_again(left: bytes, kept: Path) -> None:
    kept.write_bytes(left)
    assert tables.load() == tables.load(SPEC)


def test_tables_that_were_changed_are_read_again(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(tmp_path / "spec", "sources.yaml", ("# What the tags", "# The tags"))
    read = _reads(monkeypatch)
    tables.load()
    assert "spec/sources.yaml" in read
    assert [*kept.parent.glob("*.pickle")] == [kept], "in place of the others"
