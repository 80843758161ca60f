"""What holds of messages when the broker crashes, is killed or its disk is full, and starts again."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import Broker, BrokerStopped, JMSException, Shuffled
from ackfsm.engine.journal import FileJournal, OsDisk
from model_tests.support.engine.brokers import broker_of, fill, received, rest
from model_tests.support.tables import shipped

# crash and kill


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE"])
@pytest.mark.parametrize("fault", ["crash", "kill"])
@pytest.mark.parametrize("started", ["by restart", "by the next client"])
def test_a_message_still_queued_at_a_broker_crash_is_removed_when_it_is_acknowledged(
    mode: str, fault: str, started: str
) -> None:
    broker = broker_of(ack_mode=mode)
    fill(broker, "m")
    getattr(broker, fault)()
    if started == "by restart":
        broker.restart()
    consumer = broker.connect().session().consumer("in")
    message = received(consumer)
    assert message.id == "m"
    message.acknowledge()
    assert consumer.receive(None) is None
    assert broker.queue("in").length == 0
    consumer.session.close()
    assert broker.queue("in").length == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_message_restored_from_the_journal_is_dispatched_at_any_pace(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed))
    broker.connect().session().producer("q").send()
    broker.kill()
    consumer = broker.connect().session().consumer("q")
    assert consumer.receive() is not None


def test_a_message_lost_with_the_memory_of_the_broker_is_not_in_its_queue() -> None:
    broker = broker_of(send_mode="unconfirmed")
    with broker.connect() as client:
        client.session().producer("in").send(message_id="m")
        broker.crash()
    broker.restart()
    assert rest(broker) == []
    assert broker.queue("in").length == 0


# records that are synced along with others


def test_a_record_synced_along_with_another_is_restored_once_or_lost() -> None:
    broker = broker_of(send_mode="unconfirmed", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    fill(broker, "m1", "m2")
    broker.connect().session().consumer("in").receive()
    broker.crash()
    broker.restart()
    assert set(rest(broker)) <= {"m1", "m2"}
    broker.crash()
    broker.restart()
    assert rest(broker) == []
    broker.drained()


@pytest.mark.parametrize("seed", range(8))
def test_a_queue_is_emptied_of_records_that_were_synced_for_another_message(seed: int) -> None:
    settings: dict[str, Any] = {
        "ack_mode": "NO_ACKNOWLEDGE",
        "send_mode": "unconfirmed",
        "redelivery_mark_persisted": True,
    }
    broker = Broker("jms", specification=shipped(), seed=seed, max_delivery_attempts=1, **settings)
    broker.connect().session().consumer("q", listener=repr)
    producer = broker.connect().session().producer("q")
    for _ in range(3):
        producer.send()
        broker.crash()
        broker.restart()
        broker.loop.step()
    broker.connect().session().consumer("q", listener=repr)
    assert broker.loop.wait(lambda: not broker.queue("q").length)


def test_a_sync_of_redelivery_marks_also_stores_acknowledgements() -> None:
    broker = Broker("jms", specification=shipped(), redelivery_mark_persisted=True, ack_mode="CLIENT_ACKNOWLEDGE")
    broker.connect().session().consumer("q", listener=lambda message: message.acknowledge())
    producer = broker.connect().session().producer("q")
    for _ in range(3):
        producer.send()
        producer.send(delivery_mode="NON_PERSISTENT")
    broker.kill()
    broker.restart()
    broker.loop.wait(lambda: not broker.queue("q").length)
    broker.drained()


# a full disk


class FullDisk(OsDisk):
    """A disk that has no room while ``full``."""

    full = False

    def write(self, file: int, offset: int, data: bytes) -> int:
        """Nothing, on a full disk."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file, offset, data)


@pytest.mark.parametrize("transacted", [False, True])
def test_a_broker_with_a_full_disk_serves_again_when_there_is_room(tmp_path: Path, transacted: bool) -> None:  # noqa: FBT001
    disk = FullDisk()
    broker = broker_of("jms", journal=FileJournal(tmp_path / "journal", disk=disk))
    session = broker.connect().session("SESSION_TRANSACTED" if transacted else "AUTO_ACKNOWLEDGE")
    producer, confirmed = session.producer("q"), list[str]()

    def send(name: str) -> None:
        producer.send(message_id=name)
        if transacted:
            session.commit()
        confirmed.append(name)

    send("m1")
    disk.full = True
    for _ in range(3):
        with pytest.raises(JMSException):
            send("lost")
    assert not broker.running
    with pytest.raises(BrokerStopped, match=r"cannot be opened .*No space left"):
        broker.restart()
    disk.full = False
    send("m2")
    assert broker.running
    session.close()
    left = rest(broker, "q")
    assert [name for name in left if name in confirmed] == confirmed == ["m1", "m2"]
    broker.close()
    assert not FileJournal(tmp_path / "journal").recovery.live
