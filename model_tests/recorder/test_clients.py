"""Do the wrappers of clients record what happened between these clients and a real broker?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm.recorder import Recorder
from model_tests.support.recorder.judged import events, judged
from model_tests.support.recorder.rabbitmq import RabbitMq, rabbitmq
from model_tests.support.recorder.side_by_side import CONFIG, SideBySide


@pytest.fixture(scope="session")
def broker() -> Iterator[RabbitMq]:
    """One for all tests; each has a queue of its own."""
    with rabbitmq() as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "night.jsonl"


@pytest.fixture
def recorder(path: Path) -> Iterator[Recorder]:
    with Recorder(path, "client", config=CONFIG) as opened:
        yield opened


def _told(path: Path) -> Counter[tuple[object, ...]]:
    """What a history tells, whatever its sessions are called."""
    about = ("process", "event", "message", "queue", "redelivered", "scope", "delivery_mode", "fault")
    return Counter(tuple(line.get(name) for name in about) for line in events(path))


def test_pika_is_recorded_as_by_hand_through_a_kill_of_the_broker(broker: RabbitMq, tmp_path: Path) -> None:
    run = SideBySide(broker, tmp_path, messages=600)
    run.run(kill_after=250)
    by_hand, by_wrapper = judged(run.by_hand), judged(run.by_wrapper)
    assert by_wrapper == by_hand
    assert (by_hand.verdict, by_hand.reasons, by_hand.messages, by_hand.unread) == ("valid", (), 600, 0)
    assert (by_hand.counts["duplicate"] or 0) > 20
    hand, wrapper = _told(run.by_hand), _told(run.by_wrapper)
    opened_only = Counter({key: number for key, number in wrapper.items() if key[:2] == ("nemesis", "close")})
    assert wrapper - opened_only == hand
