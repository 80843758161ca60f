"""What applications and other consumers did that explains a redelivery or another order, case by case."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.verify.context.actions import RECOVER, TAKEN_ELSEWHERE
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
AGAIN = "c delivered m1 clear session=s queue=q", "c delivered m1 flagged session=s queue=q"
ONE, OTHER = "c delivered m1 clear session=s queue=q", "d delivered m2 clear session=o queue=q"
OWED = "p send m3 session=o queue=q; p confirmed m3"
SENT, TO_R = (f"p send m1 session=o queue={queue}; p confirmed m1" for queue in "qr")

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "recovered": (f"{AGAIN[0]}; c recover session=s; {AGAIN[1]}", ("recover",)),
    "closed": (f"{AGAIN[0]}; c close session=s; {AGAIN[1]}", ("recover",)),
    "broken": (f"{AGAIN[0]}; c close session=s error=reset; {AGAIN[1]}", ()),
    "rolled back": (f"{AGAIN[0]}; c rollback session=s transaction=t error=late; {AGAIN[1]}", ("recover",)),
    "rolled back by the broker": (
        f"{AGAIN[0]}; c commit session=s transaction=t; c rolled_back session=s transaction=t; {AGAIN[1]}",
        ("recover",),
    ),
    "committed": (
        f"{AGAIN[0]}; c commit session=s transaction=t; c committed session=s transaction=t; {AGAIN[1]}",
        (),
    ),
    "broken, then closed": (
        f"{AGAIN[0]}; c close session=s error=reset; c close session=s; {AGAIN[1]}",
        ("recover",),
    ),
    "one consumer's session broke": (f"{ONE}; c close session=s error=reset; {OTHER}", ("taken_elsewhere",)),
    "closed of its own will": (f"{ONE}; c close session=s; {OTHER}", ()),
    "some consumer crashed": (f"{ONE}; n fault fault=consumer_crash; {OTHER}", ("taken_elsewhere",)),
    "some consumer's link was cut": (f"{ONE}; n fault fault=consumer_link_loss; {OTHER}", ("taken_elsewhere",)),
    "the broker was killed": (f"{ONE}; n fault fault=broker_kill; {OTHER}", ()),
    "it was repaired": (f"{ONE}; n recovered fault=consumer_crash; {OTHER}", ()),
    "nothing came after it": (f"{ONE}; {OTHER}; n fault fault=consumer_crash", ()),
    "only to itself": (f"{OTHER}; {ONE}; c close session=s error=reset; {AGAIN[1]}", ()),
    "the crashed one came first after it": (
        f"{OTHER}; n fault fault=consumer_crash; {ONE}; {AGAIN[1]}",
        ("taken_elsewhere",),
    ),
    "a process that consumes nothing": (f"{ONE}; {OTHER}; e close session=e error=reset; {ONE}", ()),
    "one consumer": (f"{ONE}; n fault fault=consumer_crash; {AGAIN[1]}", ()),
    "one process with two sessions": (
        f"{ONE}; n fault fault=consumer_crash; c delivered m2 clear session=s2 queue=q",
        (),
    ),
    "two queues": (f"{ONE}; n fault fault=consumer_crash; d delivered m2 clear session=o queue=r", ()),
    "no queue named": (
        "c delivered m1 clear; c close error=reset; d delivered m2 clear",
        ("taken_elsewhere",),
    ),
    "both": (
        f"{AGAIN[0]}; c recover session=s; {AGAIN[1]}; c close session=s error=reset; {OTHER}",
        ("recover", "taken_elsewhere"),
    ),
    "closed with a message on its way": (f"{OWED}; {ONE}; c close session=s", ("recover",)),
    "closed with a message on its way, whose send is not answered": (
        f"{OWED[:27]}; {ONE}; c close session=s",
        ("recover",),
    ),
    "closed before the message was sent": (f"{ONE}; c close session=s; {OWED}", ()),
    "another queue's consumer was closed": (f"{OWED.replace('=q', '=r')}; {ONE}; c close session=s", ()),
    "its connection broke": (f"{OWED}; {ONE}; c close session=s error=reset", ()),
    "closed before anything came": (f"{OWED}; c close session=s", ("recover",)),
    "its producer was closed": (f"{OWED}; p close session=o", ()),
    "closed with a message on its way, which another one overtook": (
        f"{OWED}; {SENT}; c close session=s; {ONE}; c delivered m3 clear session=s",
        ("recover",),
    ),
    "closed with a message on its way, which none overtook": (
        f"{OWED}; {SENT}; c close session=s; c delivered m3 clear session=s queue=q; {ONE}",
        (),
    ),
    "closed by a session that had nothing, and overtaken": (
        f"{OWED}; {SENT}; c close session=z; {ONE}; c delivered m3 clear session=s",
        ("recover",),
    ),
    "closed, and overtaken at another consumer": (
        f"{OWED}; {SENT}; c close session=s; {ONE}; d delivered m3 clear session=o",
        (),
    ),
    "closed, and the later message was of another queue": (
        f"{OWED}; {TO_R}; c close session=s; c delivered m1 clear session=s queue=r; c delivered m3 clear session=s",
        (),
    ),
    "overtaken, and closed afterwards": (
        f"{OWED}; {SENT}; {ONE}; c delivered m3 clear session=s; c close session=s",
        (),
    ),
    "closed, and it came to another": (f"{OWED}; {ONE}; c close session=s; d delivered m3 clear session=o", ()),
    "closed, and it was refused": (f"{OWED[:27]}; p rejected m3; {ONE}; c close session=s", ()),
    "closed, and it expired": (f"{OWED}; {ONE}; c close session=s; b expired m3", ()),
    "closed, and it was sent in a transaction": (
        f"p send m3 session=o queue=q transaction=t; {ONE}; c close session=s",
        (),
    ),
    "nothing": ("p send m1", ()),
}


@pytest.mark.parametrize(("text", "actions"), CASES.values(), ids=CASES)
def test_the_actions_of_a_history(text: str, actions: tuple[str, ...], tmp_path: Path) -> None:
    recorded = verify.read(write(events_of(text), tmp_path / "h.jsonl"))
    assert verify.examine(recorded, SPEC, SPEC.configure()).actions == actions


BEFORE, LATER = "d delivered m3 clear session=o queue=q", "d delivered m2 clear session=o queue=q"
BESIDE: dict[str, tuple[str, bool]] = {
    "recovered": (f"{ONE}; {BEFORE}; c recover session=s; {LATER}", True),
    "rolled back": (f"{ONE}; {BEFORE}; c rollback session=s transaction=t; {LATER}", True),
    "closed": (f"{ONE}; {BEFORE}; c close session=s; {LATER}", True),
    "closed, having had nothing": (f"{BEFORE}; c close session=s; {LATER}", True),
    "its connection broke": (f"{ONE}; {BEFORE}; c close session=s error=reset; {LATER}", False),
    "its listener threw": (f"{ONE}; {BEFORE}; c failed m1 session=s queue=q; {LATER}", True),
    "it went on itself": (f"{ONE}; {BEFORE}; {LATER}", False),
    "by itself": (f"{BEFORE}; d recover session=o; {LATER}", False),
    "by another session of the process": (f"{BEFORE}; d recover session=s; {LATER}", True),
    "before the other one began": (f"{ONE}; c recover session=s; {BEFORE}; {LATER}", False),
    "after the other one had ended": (f"{ONE}; {BEFORE}; {LATER}; c recover session=s", False),
    "of another queue": (f"{ONE.replace('=q', '=r')}; {BEFORE}; c recover session=s; {LATER}", False),
    "of two queues": (
        f"{ONE}; c delivered m4 clear session=s queue=r; {BEFORE}; c recover session=s; {LATER}",
        True,
    ),
    "two queues, of which none goes on": (
        (
            f"{ONE}; {BEFORE}; {LATER}; c delivered m4 clear session=s queue=r; c recover session=s; "
            "e delivered m5 clear session=e queue=r"
        ),
        False,
    ),
    "a producer was closed": (f"p send m9 session=p queue=q; {BEFORE}; p close session=p; {LATER}", False),
    "nothing": ("p send m1", False),
}


@pytest.mark.parametrize(("text", "beside"), BESIDE.values(), ids=BESIDE)
def test_what_is_given_back_while_another_consumer_goes_on(text: str, *, beside: bool, tmp_path: Path) -> None:
    recorded = verify.read(write(events_of(text), tmp_path / "h.jsonl"))
    gives_back = SPEC.configure("artemis", {"consumption": "listener"})
    assert verify.examine(recorded, SPEC, gives_back, hold=False).given_back_beside is beside


def test_a_listener_that_throws_gives_back_where_its_message_comes_again(tmp_path: Path) -> None:
    recorded = verify.read(write(events_of(BESIDE["its listener threw"][0]), tmp_path / "h.jsonl"))
    for reaction, beside in (("redeliver", True), ("swallow", False)):
        configuration = SPEC.configure("jms", {"listener_exception": reaction})
        assert verify.examine(recorded, SPEC, configuration, hold=False).given_back_beside is beside


def test_every_action_is_an_optional_event_of_the_tables() -> None:
    assert all(SPEC.events[action].optional for action in (RECOVER, TAKEN_ELSEWHERE))


def test_a_parquet_history_without_errors_has_only_clean_ends(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = f"{AGAIN[0]}; c close session=s error=reset; {AGAIN[1]}"
    rows, file = events_of(text), tmp_path / "h.parquet"
    for keep, actions in ((True, ()), (False, ("recover",))):
        names = {name for row in rows for name in row if keep or name != "error"}
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in sorted(names)}), file)
        assert verify.examine(verify.read(file), SPEC, SPEC.configure()).actions == actions
