"""What optional lines and fields tell: what was returned or given back, priorities, leases, two-phase commits."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackfsm import verify
from ackfsm.verify.folding import chunks
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.notation import events_of
from model_tests.support.whole import in_turn

SPEC = shipped()

SECOND: Final = 10**9
INDIVIDUAL: Final = MappingProxyType({"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "receive"})


@dataclasses.dataclass(frozen=True)
class Story:
    """Some events of one queue, a second apart, and how they are judged."""

    verdict: str
    text: str
    profile: str = "rabbitmq"
    settings: Mapping[str, Any] = dataclasses.field(default_factory=lambda: INDIVIDUAL)
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What its header says of lines."""

    def lines(self) -> list[dict[str, Any]]:
        """Its events."""
        return [{**each, "t": (each["t"] + 1) * SECOND, "queue": "q"} for each in events_of(self.text)]

    def header(self) -> dict[str, Any]:
        """What says its configuration."""
        return {"ackfsm_history": 1, "config": {"profile": self.profile, **self.settings}, **self.words}


def sent(message: str, more: str = "") -> str:
    return f"p send {message} {more}; p confirmed {message}; "


def used(message: str, by: str, flag: str = "clear") -> str:
    return f"{by} delivered {message} {flag}; {by} processed {message}; {by} acknowledge {message} scope=message; "


TRANSACTED: Final = MappingProxyType({"ack_mode": "SESSION_TRANSACTED", "consumption": "receive"})
UP_TO: Final = MappingProxyType(
    {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "listener", "client_ack_scope": "up_to"}
)
EXCLUSIVE: Final = MappingProxyType(
    {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "receive", "exclusive_consumer": True}
)
WINDOW: Final = MappingProxyType({**INDIVIDUAL, "send_mode": "asynchronous", "publish_window": 2})
RETURNED: Final = "p send m1; p returned m1; "
LENT: Final = f"{sent('m1')}c delivered m1 clear; broker lease_expired m1; "
USED: Final = f"{sent('m0')}{used('m0', 'c')}"
BOTH: Final = f"{USED}{sent('m1')}{sent('m2')}c delivered m1 clear; c delivered m2 clear; "
FAILED: Final = f"{USED}{sent('m1')}c delivered m1 clear; c failed m1 outcome="
PREPARED: Final = (
    "p begin transaction=t1; p send m1 transaction=t1; p prepare transaction=t1; p prepared transaction=t1; "
)
BROKEN: Final = "p close error=broken; "
ENDED: Final = "tm {0} transaction=t1; tm {1} transaction=t1; "
COMMITTED: Final = ENDED.format("commit", "committed")
ROLLED_BACK: Final = ENDED.format("rollback", "rolled_back")
CONSUMED: Final = (
    "c delivered m1 clear transaction=u; c processed m1; c commit transaction=u; c committed transaction=u; "
)
TAKEN: Final = (
    "p begin transaction=s; p send m1 transaction=s; p commit transaction=s; p committed transaction=s; "
    "c delivered m1 clear transaction=t1; c processed m1; c prepare transaction=t1; c prepared transaction=t1; "
    "c close error=broken; "
)
TAKEN_AGAIN: Final = (
    "d delivered m1 flagged transaction=u; d processed m1; d commit transaction=u; d committed transaction=u; "
)
TIMED_OUT: Final = "c fault fault=acknowledge_timeout; "
KILLED: Final = "nemesis fault fault=broker_kill; nemesis recovered fault=broker_kill; "
DRAINED: Final = "n drained"

MOVED: Final = MappingProxyType({"dead_lettered": "moved"})
LIMITED: Final = MappingProxyType(
    {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "max_delivery_attempts": 1}
)
KEPT: Final = MappingProxyType({**INDIVIDUAL, "attempts_exhausted": "dead_letter"})
AT_ITS_LIMIT: Final = f"{USED}{sent('m1')}c delivered m1 clear; c recover; "
TOLD: Final = "broker dead_lettered m1; "


def _ended(verdict: str, text: str, **more: Any) -> Story:
    return Story(verdict, f"{text}{DRAINED}", **{"profile": "jms", "settings": LIMITED, **more})


def _destroyed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {**settings, "attempts_exhausted": "destroy"}


DEAD_LETTERS: Final = MappingProxyType(
    {
        "at its limit, told without a word of where it is": _ended("valid", AT_ITS_LIMIT + TOLD),
        "at its limit, told so where the tables destroy it": _ended(
            "valid", AT_ITS_LIMIT + TOLD, settings=_destroyed(LIMITED)
        ),
        "at its limit, and not told": _ended("invalid", AT_ITS_LIMIT),
        "at its limit, and not told where the tables destroy it": _ended(
            "invalid", AT_ITS_LIMIT, settings=_destroyed(LIMITED)
        ),
        "found in the dead-letter queue": _ended("valid", AT_ITS_LIMIT + TOLD, words=MOVED),
        "found in the dead-letter queue, where the tables destroy it": _ended(
            "invalid", AT_ITS_LIMIT + TOLD, words=MOVED, settings=_destroyed(LIMITED)
        ),
        "not found in the dead-letter queue, where the tables have it": _ended("invalid", AT_ITS_LIMIT, words=MOVED),
        "destroyed, as the tables say": _ended("valid", AT_ITS_LIMIT, words=MOVED, settings=_destroyed(LIMITED)),
        "found in the dead-letter queue before its limit": _ended(
            "invalid", AT_ITS_LIMIT + TOLD, words=MOVED, settings={**LIMITED, "max_delivery_attempts": 2}
        ),
        "gone before its limit": _ended(
            "invalid", AT_ITS_LIMIT, words=MOVED, settings={**_destroyed(LIMITED), "max_delivery_attempts": 2}
        ),
        "not found in the dead-letter queue of a broker that was killed": _ended(
            "valid", f"{AT_ITS_LIMIT}{KILLED}", words=MOVED
        ),
        "rejected, and not found": Story("valid", f"{FAILED}rejected; {DRAINED}", words=MOVED),
        "rejected, and not told": Story("valid", f"{FAILED}rejected; {DRAINED}", settings=KEPT),
        "rejected, and not found, where the tables have it": Story(
            "invalid", f"{FAILED}rejected; {DRAINED}", settings=KEPT, words=MOVED
        ),
        "rejected by one that closed since, and found": Story(
            "valid", f"{FAILED}rejected; c close; {TOLD}{DRAINED}", settings=KEPT, words=MOVED
        ),
        "rejected by one that died since, and found": Story(
            "valid",
            f"{FAILED}rejected; c fault fault=consumer_crash; c recovered fault=consumer_crash; {TOLD}{DRAINED}",
            settings=KEPT,
            words=MOVED,
        ),
        "rejected without a line of its own, and found": Story(
            "valid", f"{USED}{sent('m1')}c delivered m1 clear; {TOLD}{DRAINED}", settings=KEPT, words=MOVED
        ),
        "rejected, and found, where the tables destroy it": Story(
            "invalid", f"{FAILED}rejected; {TOLD}{DRAINED}", words=MOVED
        ),
    }
)

STORIES: Final[Mapping[str, Story]] = MappingProxyType(
    {
        "returned and then confirmed, as RabbitMQ documents": Story("valid", f"{RETURNED}p confirmed m1; {DRAINED}"),
        "returned instead of an outcome": Story("valid", f"{RETURNED}{DRAINED}"),
        "returned, confirmed and rejected are two outcomes": Story(
            "invalid", f"{RETURNED}p confirmed m1; p rejected m1; {DRAINED}"
        ),
        "what was returned fills no window": Story(
            "valid",
            f"{RETURNED}p send m2; p send m3; p confirmed m1; p confirmed m2; p confirmed m3; "
            f"{used('m2', 'c')}{used('m3', 'c')}{DRAINED}",
            settings=WINDOW,
        ),
        "what was returned went nowhere": Story("invalid", f"{RETURNED}p confirmed m1; {used('m1', 'c')}{DRAINED}"),
        "another one was not returned": Story("invalid", f"{RETURNED}p confirmed m1; {sent('m2')}{DRAINED}"),
        "a higher priority overtakes": Story(
            "valid", f"{sent('m1')}{sent('m2', 'priority=9')}{used('m2', 'c')}{used('m1', 'c')}{DRAINED}"
        ),
        "within a priority nothing overtakes": Story(
            "invalid",
            f"{sent('m1', 'priority=9')}{sent('m2', 'priority=9')}{used('m2', 'c')}{used('m1', 'c')}{DRAINED}",
        ),
        "none is 4 in JMS": Story(
            "invalid", f"{sent('m1', 'priority=4')}{sent('m2')}{used('m2', 'c')}{used('m1', 'c')}{DRAINED}", "artemis"
        ),
        "none is 0 in RabbitMQ": Story(
            "invalid", f"{sent('m1', 'priority=0')}{sent('m2')}{used('m2', 'c')}{used('m1', 'c')}{DRAINED}"
        ),
        "4 is not none in RabbitMQ": Story(
            "valid", f"{sent('m1', 'priority=4')}{sent('m2')}{used('m2', 'c')}{used('m1', 'c')}{DRAINED}"
        ),
        "a nack of the whole session": Story(
            "valid",
            f"{BOTH}c failed m1 scope=session; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}",
        ),
        "a nack up to the last": Story(
            "valid", f"{BOTH}c failed m2 scope=up_to; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}"
        ),
        "a nack up to the first": Story(
            "invalid",
            f"{BOTH}c failed m1 scope=up_to; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}",
        ),
        "a nack of one": Story(
            "invalid", f"{BOTH}c failed m2; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}"
        ),
        "a nack with multiple, as the header says": Story(
            "valid",
            f"{BOTH}c failed m2; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}",
            settings={"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "receive", "outcome_scope": "up_to"},
        ),
        "each given back by itself, where acknowledgements cover several": Story(
            "valid",
            f"{sent('m1')}{sent('m2')}c delivered m1 clear; c processed m1; c delivered m2 clear; c processed m2; "
            "c failed m1; c failed m2; d delivered m1 flagged; d processed m1; d delivered m2 flagged; d processed m2; "
            f"d acknowledge m2 scope=up_to; {DRAINED}",
            settings=UP_TO,
        ),
        "released, and unflagged over AMQP 1.0": Story(
            "valid", f"{FAILED}released; {used('m1', 'c')}{DRAINED}", "activemq"
        ),
        "released, and flagged over AMQP 1.0": Story(
            "invalid", f"{FAILED}released; {used('m1', 'c', 'flagged')}{DRAINED}", "activemq"
        ),
        "modified, and flagged": Story("valid", f"{FAILED}modified; {used('m1', 'c', 'flagged')}{DRAINED}", "activemq"),
        "modified, and unflagged": Story("invalid", f"{FAILED}modified; {used('m1', 'c')}{DRAINED}", "activemq"),
        "turned away, and sent to another one": Story(
            "valid", f"{FAILED}undeliverable; {used('m1', 'd', 'flagged')}{DRAINED}", "artemis"
        ),
        "turned away, and sent to the same": Story(
            "invalid", f"{FAILED}undeliverable; {used('m1', 'c', 'flagged')}{DRAINED}", "artemis"
        ),
        "rejected, and dead-lettered": Story(
            "valid", f"{FAILED}rejected; broker dead_lettered m1; {DRAINED}", "artemis"
        ),
        "rejected, and sent again": Story(
            "invalid", f"{FAILED}rejected; {used('m1', 'c', 'flagged')}{DRAINED}", "artemis"
        ),
        "an outcome where no application can say one": Story(
            "unknown",
            f"{FAILED}released; c delivered m1 clear; c processed m1; {DRAINED}",
            "activemq",
            {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "listener"},
        ),
        "lent for a time that ran out": Story(
            "valid", f"{LENT}{used('m1', 'd', 'flagged')}c processed m1; c acknowledge m1 scope=message; {DRAINED}"
        ),
        "lent, acknowledged too late, and lent again": Story(
            "valid", f"{LENT}c processed m1; c acknowledge m1 scope=message; {used('m1', 'c', 'flagged')}{DRAINED}"
        ),
        "lent, and given to another one in time": Story(
            "invalid", f"{sent('m1')}c delivered m1 clear; {used('m1', 'd', 'flagged')}c processed m1; {DRAINED}"
        ),
        "the lease of another message": Story(
            "invalid",
            f"{BOTH}broker lease_expired m2; {used('m1', 'd', 'flagged')}{used('m2', 'd', 'flagged')}{DRAINED}",
        ),
        "lent, and never seen again": Story("invalid", f"{LENT}{sent('m2')}{used('m2', 'd')}{DRAINED}"),
        "a time-out of no acknowledgement": Story(
            "invalid",
            f"{sent('m1')}c delivered m1 clear; {TIMED_OUT}{used('m1', 'd', 'flagged')}{DRAINED}",
        ),
        "a time-out of an acknowledgement": Story(
            "valid",
            f"{sent('m1')}{used('m1', 'c')}{TIMED_OUT}{used('m1', 'd', 'flagged')}{DRAINED}",
        ),
        "two consumers of an exclusive queue": Story(
            "invalid",
            f"{sent('m1')}{sent('m2')}c delivered m1 clear; d delivered m2 clear; c processed m1; d processed m2; "
            f"c acknowledge m1 scope=message; d acknowledge m2 scope=message; {DRAINED}",
            settings=EXCLUSIVE,
        ),
        "one consumer of an exclusive queue after the other": Story(
            "valid", f"{sent('m1')}{sent('m2')}{used('m1', 'c')}c close; {used('m2', 'd')}{DRAINED}", settings=EXCLUSIVE
        ),
        **DEAD_LETTERS,
        "prepared, and committed after its connection broke": Story(
            "valid", f"{PREPARED}{BROKEN}{COMMITTED}{CONSUMED}{DRAINED}", "artemis", TRANSACTED
        ),
        "prepared, and committed after a crash of the broker": Story(
            "valid",
            f"{PREPARED}{KILLED}{COMMITTED}{CONSUMED}{DRAINED}",
            "artemis",
            TRANSACTED,
        ),
        "prepared, committed and lost": Story(
            "invalid", f"{PREPARED}{BROKEN}{COMMITTED}{DRAINED}", "artemis", TRANSACTED
        ),
        "prepared, and rolled back later": Story(
            "valid", f"{PREPARED}{BROKEN}{ROLLED_BACK}{DRAINED}", "artemis", TRANSACTED
        ),
        "prepared, rolled back and delivered": Story(
            "invalid", f"{PREPARED}{BROKEN}{ROLLED_BACK}{CONSUMED}{DRAINED}", "artemis", TRANSACTED
        ),
        "prepared, and delivered before the commit": Story(
            "invalid", f"{PREPARED}{CONSUMED}{DRAINED}", "artemis", TRANSACTED
        ),
        "consumed and prepared, and rolled back later": Story(
            "valid", f"{TAKEN}{ROLLED_BACK}{TAKEN_AGAIN}{DRAINED}", "artemis", TRANSACTED
        ),
        "consumed and prepared, and sent again before its end": Story(
            "invalid", f"{TAKEN}{TAKEN_AGAIN}{DRAINED}", "artemis", TRANSACTED
        ),
    }
)


def as_lines(story: Story, folder: Path) -> Path:
    file = folder / "h.jsonl"
    file.write_text("\n".join(map(json.dumps, [story.header(), *story.lines()])))
    return file


def _as_gzip(story: Story, folder: Path) -> Path:
    file = folder / "h.jsonl.gz"
    file.write_bytes(gzip.compress(as_lines(story, folder).read_bytes()))
    return file


def _as_parquet(story: Story, folder: Path) -> Path:
    rows, file = story.lines(), folder / "h.parquet"
    table = pa.table({name: [row.get(name) for row in rows] for name in {field for row in rows for field in row}})
    pq.write_table(table.replace_schema_metadata({"ackfsm_history": json.dumps(story.header())}), file)
    return file


def _judged(path: Path, story: Story) -> verify.Result:
    found = verify.examine(verify.read(path), SPEC, SPEC.configure(story.profile, dict(story.settings)))
    return verify.verdict(found, SPEC)


@pytest.mark.parametrize(("written", "name"), in_turn([as_lines, _as_gzip, _as_parquet], list(STORIES), 1))
def test_a_story_is_judged(
    name: str, written: Callable[[Story, Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a whole, and folded in chunks of a few lines."""
    story = STORIES[name]
    file, configuration = written(story, tmp_path), SPEC.configure(story.profile, dict(story.settings))
    whole = _judged(file, story)
    assert (whole.verdict, whole.findings.parse_errors) == (story.verdict, 0), whole.reasons
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 200)
    monkeypatch.setattr(chunks, "ROWS_AT_ONCE", 2)
    folded = verify.examine_path(file, SPEC, lambda _: configuration, folded_from=0, workers=1)
    assert comparable(folded) == comparable(whole.findings)


BAD: Final[Sequence[tuple[str, dict[str, Any]]]] = (
    (
        "there is no outcome 'lost'; it is one of released, modified",
        {"event": "failed", "message": "m1", "outcome": "lost"},
    ),
    ("`priority` is negative (-1)", {"event": "send", "message": "m1", "priority": -1}),
    ("`priority` is not a whole number of 64 bits", {"event": "send", "message": "m1", "priority": "high"}),
    ("there is no scope 'all'; it is one of session", {"event": "failed", "message": "m1", "scope": "all"}),
    ("returned needs `message`", {"event": "returned"}),
    ("lease_expired needs `message`", {"event": "lease_expired"}),
    ("prepare needs `transaction`", {"event": "prepare"}),
    ("`consumer` is not text", {"event": "close", "consumer": 7}),
)


@pytest.mark.parametrize(("why", "line"), BAD, ids=[why for why, _ in BAD])
def test_a_bad_value_is_one_sentence(why: str, line: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    good = {"t": 1, "process": "p", "event": "send", "message": "m0"}
    file.write_text("\n".join(map(json.dumps, [good, {"t": 2, "process": "p", **line}])))
    found = verify.read(file)
    assert found.unreadable_count == 1
    assert str(found.unreadable[0]).startswith(f"line 2: {why}")


@pytest.mark.parametrize("written", [as_lines, _as_gzip, _as_parquet], ids=["lines", "gzip", "Parquet"])
def test_a_field_that_there_is_not_is_named_once_and_ignored(
    written: Callable[[Story, Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(
        "valid", f"{sent('m1', 'prio=9 colour=red')}{sent('m2', 'prio=9')}{used('m1', 'c')}{used('m2', 'c')}{DRAINED}"
    )
    file, configuration = written(story, tmp_path), SPEC.configure(story.profile, dict(story.settings))
    found = _judged(file, story)
    assert found.verdict == "valid"
    assert found.as_json()["ignored_fields"] == ["colour", "prio"]
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 200)
    folded = verify.examine_path(file, SPEC, lambda _: configuration, folded_from=0, workers=1)
    assert folded.ignored == ("colour", "prio")
