"""Do the wrappers of clients record what happened between these clients and a real broker?"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aio_pika
import pika
import proton
import pytest
from proton.handlers import MessagingHandler, Reject, Release
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.driving.live.processes import until
from ackfsm.recorder import Recorder, RecordingError
from ackfsm.recorder import aio_pika as recorded_aio_pika
from ackfsm.recorder import pika as recorded_pika
from ackfsm.recorder import proton as recorded_proton
from ackfsm.recorder import stomp as recorded_stomp
from model_tests.support.brokers import Lent
from model_tests.support.commands import ended
from model_tests.support.places import PROJECT
from model_tests.support.recorder.judged import events, judged, shape
from model_tests.support.recorder.reference import Reference
from model_tests.support.recorder.side_by_side import CONFIG, SideBySide
from model_tests.support.recorder.small_runs import (
    MESSAGES,
    aio_pika_run,
    proton_handler_run,
    proton_run,
    run_recorded,
    stomp_run,
)


@pytest.fixture(scope="module")
def broker(lent: Lent[RabbitMq]) -> RabbitMq:
    """One for all tests; each has a queue of its own."""
    for client in ("pika", "aio_pika", "aiormq", "stomp.py"):
        logging.getLogger(client).setLevel(logging.CRITICAL)
    return lent(RabbitMq)


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
    assert wrapper == hand


RUNS: dict[str, Callable[..., object]] = {
    "aio-pika": aio_pika_run,
    "proton": proton_run,
    "proton-handler": proton_handler_run,
    "stomp": stomp_run,
}


@pytest.mark.parametrize("client", RUNS)
def test_the_other_clients_are_recorded_as_by_hand(broker: RabbitMq, tmp_path: Path, client: str) -> None:
    by_hand, by_wrapper = tmp_path / "by-hand.jsonl", tmp_path / "by-wrapper.jsonl"
    hand = Reference(by_hand, CONFIG)
    with _channel(broker) as channel:
        channel.queue_declare(client, durable=True)
        with Recorder(by_wrapper, "client", config=CONFIG) as recorder:
            run = RUNS[client](broker, client, hand, recorder)
            if asyncio.iscoroutine(run):
                asyncio.run(run)
            until(lambda: _depth(channel, client) == 0, "the queue is empty")
            recorder.drained(client)
        hand("client", "drained", queue=client)
    assert (_told(by_wrapper) - _told(by_hand)).keys() == {("client", "close", *[None] * 6)}
    assert _told(by_hand) - _told(by_wrapper) == Counter()
    found = judged(by_wrapper)
    assert found == judged(by_hand)
    assert (found.verdict, found.reasons, found.counts) == ("valid", (), {"duplicate": MESSAGES // 5})


def _connection(broker: RabbitMq) -> Any:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.ports["amqp"]))


@contextlib.contextmanager
def _channel(broker: RabbitMq) -> Iterator[Any]:
    """One that nobody records."""
    with _connection(broker) as connection:
        yield connection.channel()


def _depth(channel: Any, queue: str) -> int:
    found: int = channel.queue_declare(queue, passive=True).method.message_count
    return found


def _published(channel: Any, queue: str, *messages: str) -> None:
    for message in messages:
        channel.basic_publish("", queue, b"", pika.BasicProperties(message_id=message, delivery_mode=2), mandatory=True)


def test_pika_says_what_became_of_each_publish(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        channel.queue_declare("published")
        _published(channel, "published", "unanswered")
        channel.confirm_delivery()
        _published(channel, "published", "answered")
        channel.basic_publish("", "published", b"")
        with pytest.raises(pika.exceptions.UnroutableError):
            _published(channel, "no such queue", "unroutable")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.basic_publish("no such exchange", "key", b"", pika.BasicProperties(message_id="lost"))
    assert shape(path, "unanswered") == ["send"]
    assert shape(path, "answered") == ["send", "confirmed"]
    assert shape(path, "unroutable") == ["send", "returned", "confirmed"]
    assert shape(path, "lost") == ["send", "in_doubt"]
    lines = events(path)
    assert [line["event"] for line in lines[-3:]] == ["send", "close", "in_doubt"]
    assert "queue" not in lines[-1]
    given = [line for line in lines if line["event"] == "send"][2]
    assert len(given["message"]) == 32
    assert given["delivery_mode"] == "NON_PERSISTENT"


def test_pika_says_what_the_application_did_with_each_delivery(
    broker: RabbitMq, recorder: Recorder, path: Path
) -> None:
    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("fetched")
        _published(channel, "fetched", *(f"m{number}" for number in range(6)))
        tags = [channel.basic_get("fetched")[0].delivery_tag for _ in range(6)]
        channel.basic_ack(tags[1], multiple=True)
        channel.basic_nack(tags[2])
        channel.basic_reject(tags[3], requeue=False)
        channel.basic_ack(tags[5], multiple=True)
        channel.basic_ack(channel.basic_get("fetched")[0].delivery_tag)
        channel.basic_get("fetched")
        channel.basic_recover(requeue=True)
    recorder.drained("fetched")
    acknowledged = ["send", "confirmed", "delivered", "processed"]
    assert shape(path, "m0") == acknowledged
    assert shape(path, "m1") == [*acknowledged, "acknowledge up_to"]
    again = ["delivered redelivered", "processed", "acknowledge message"]
    assert shape(path, "m2") == [*acknowledged, "failed", *again]
    assert shape(path, "m3") == [*acknowledged, "failed", "dead_lettered"]
    assert shape(path, "m4") == [*acknowledged, "acknowledge message"]
    assert shape(path, "m5") == [*acknowledged, "acknowledge message"]
    assert [line["event"] for line in events(path)][-3:] == ["recover", "close", "drained"]
    found = judged(path, "--set", "consumption=receive")
    assert (found.verdict, found.reasons, found.counts) == ("valid", (), {"duplicate": 1, "reprocessed": 1})


def test_pika_hands_over_by_callbacks_and_generators(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    def work(channel: Any, method: Any, properties: Any, _: bytes) -> None:
        if properties.message_id == "m1" and not method.redelivered:
            channel.stop_consuming()
            raise ValueError("no order")
        channel.basic_ack(method.delivery_tag)
        if properties.message_id == "m2":
            channel.stop_consuming()

    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("handed")
        _published(channel, "handed", "m0", "m1", "m2")
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume("handed", work)
        with pytest.raises(ValueError, match="no order"):
            channel.start_consuming()
        channel.basic_nack(2)
        channel.basic_consume("handed", work)
        channel.start_consuming()
        _published(channel, "handed", "m3", "m4")
        for method, _properties, _body in channel.consume("handed", auto_ack=True, inactivity_timeout=0.2):
            if method is None:
                break
        channel.cancel()
    recorder.drained("handed")
    told = ["send", "confirmed", "delivered"]
    assert shape(path, "m0") == [*told, "acknowledge message", "processed"]
    assert shape(path, "m1") == [*told, "failed", "delivered redelivered", "acknowledge message", "processed"]
    assert shape(path, "m4") == [*told, "processed"]
    assert judged(path, "--set", "prefetch=1").unread == 0


def test_pika_says_that_one_consumer_has_ended(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("cancelled")
        _published(channel, "cancelled", "m0", "m1")
        channel.basic_qos(prefetch_count=1)
        method, _, _ = next(channel.consume("cancelled"))
        assert channel.cancel() == 0
        channel.basic_ack(method.delivery_tag)
        tag = channel.basic_consume("cancelled", lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
        connection.process_data_events(5)
        channel.basic_cancel(tag)
    recorder.drained("cancelled")
    lines = events(path)
    handed = [line["consumer"] for line in lines if line["event"] == "delivered"]
    ended = [(line["consumer"], line["queue"]) for line in lines if line["event"] == "close" and "consumer" in line]
    assert ended == [(each, "cancelled") for each in handed]
    found = judged(path, "--set", "consumption=receive")
    assert (found.verdict, found.reasons, found.counts) == ("valid", (), {})


def test_proton_settles_in_any_order(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    with _channel(broker) as channel:
        channel.queue_declare("any-order", durable=True)
        url, address = f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp1']}", "/amq/queue/any-order"
        connection = recorded_proton.recorded(BlockingConnection(url, allowed_mechs="PLAIN"), recorder)
        sender, receiver = connection.create_sender(address), connection.create_receiver(address)
        for name in ("m0", "m1", "m2"):
            sender.send(proton.Message(id=name, body="", durable=True))
            receiver.receive(5)
        receiver.next_is("m1")
        receiver.accept()
        with pytest.raises(KeyError):
            receiver.next_is("m1")
        receiver.next_is("m2")
        receiver.reject()
        receiver.accept()
        connection.close()
        assert connection.closed
        assert _depth(channel, "any-order") == 0
    recorder.drained(address)
    told = [line["message"] for line in events(path) if line["event"] in {"acknowledge", "failed"}]
    assert told == ["m1", "m2", "m0"]
    assert judged(path, "--set", "consumption=receive").verdict == "valid"


def test_what_is_worked_on_at_once_is_a_session_each(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    """The model works on one message of a session after the other: else such a run could be no run of it."""
    asyncio.run(_five_at_once(broker, recorder))
    recorder.drained("at-once")
    delivered = [line["session"] for line in events(path) if line["event"] == "delivered"]
    name = delivered[0]
    assert delivered == [name, *(f"{name}+{number}" for number in range(2, 6))]
    closed = [line["session"] for line in events(path) if line["event"] == "close"]
    assert closed == delivered
    found = judged(path)
    assert (found.verdict, found.reasons, found.counts) == ("valid", (), {})


async def _five_at_once(broker: RabbitMq, recorder: Recorder) -> None:
    connection = recorded_aio_pika.recorded(
        await aio_pika.connect(f"amqp://127.0.0.1:{broker.ports['amqp']}"), recorder
    )
    working, all_work, done = 0, asyncio.Event(), asyncio.Event()

    async def work(message: Any) -> None:
        nonlocal working
        async with message.process():
            working += 1
            if working == 5:
                all_work.set()
            await all_work.wait()
        working -= 1
        if not working:
            done.set()

    async with connection, connection.channel() as channel:
        queue = await channel.declare_queue("at-once")
        for _ in range(5):
            await channel.default_exchange.publish(aio_pika.Message(b"", delivery_mode=2), "at-once")
        await queue.consume(work)
        await asyncio.wait_for(done.wait(), 20)
        await asyncio.sleep(0.1)


def test_pika_says_what_a_transaction_did(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        channel.queue_declare("transacted")
        channel.tx_select()
        _published(channel, "transacted", "m0", "m1")
        channel.tx_commit()
        _published(channel, "transacted", "m2")
        channel.tx_rollback()
        channel.tx_commit()
        tags = [channel.basic_get("transacted")[0].delivery_tag for _ in range(2)]
        channel.basic_ack(tags[0])
        channel.tx_rollback()
        channel.basic_nack(0, multiple=True)
        channel.tx_commit()
        tags = [channel.basic_get("transacted")[0].delivery_tag for _ in range(2)]
        channel.basic_ack(tags[1], multiple=True)
        channel.tx_commit()
    recorder.drained("transacted")
    told = [line["event"] for line in events(path) if "transaction" in line]
    assert told == [
        *("begin", "send", "send", "commit", "committed", "begin", "send", "rollback", "rolled_back"),
        *("begin", "delivered", "processed", "delivered", "acknowledge", "rollback", "rolled_back"),
        *("begin", "delivered", "processed", "delivered", "processed", "acknowledge", "commit", "committed"),
    ]
    found = judged(path, "--set", "ack_mode=SESSION_TRANSACTED", "--set", "consumption=receive")
    assert (found.verdict, found.reasons, found.unread) == ("valid", (), 0)


def test_a_message_that_nobody_can_name_is_refused(broker: RabbitMq, recorder: Recorder) -> None:
    with _channel(broker) as channel:
        channel.queue_declare("nameless")
        channel.basic_publish("", "nameless", b"")
    with recorded_pika.recorded(_connection(broker), recorder) as connection:
        channel = connection.channel()
        until(lambda: _depth(channel, "nameless") == 1, "the message is there")
        with pytest.raises(RecordingError, match="a message of the queue 'nameless' has no message_id"):
            channel.basic_get("nameless")


class _Handler(MessagingHandler):
    """Sends ``messages`` to a queue, and then does what a test asks for with what comes from there."""

    def __init__(self, broker: RabbitMq, queue: str, *messages: str, auto_accept: bool = True, **options: Any) -> None:
        super().__init__(auto_accept=auto_accept)
        self._url, self._address = f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp']}", f"/amq/queue/{queue}"
        self._messages, self._options = list(messages), options
        self.open = len(messages)

    def on_start(self, event: Any) -> None:
        self.connection = event.container.connect(self._url, allowed_mechs="PLAIN", reconnect=[0.1])
        self.sender = event.container.create_sender(self.connection, self._address, **self._options)

    def on_sendable(self, event: Any) -> None:
        assert event.sender == event.link == self.sender
        while self._messages:
            self.sender.send(proton.Message(id=self._messages.pop(0), body="", durable=True))

    def on_settled(self, event: Any) -> None:
        self.open -= event.delivery.link.is_sender
        if not self.open:
            self.answered(event)

    def answered(self, event: Any) -> None:
        event.container.create_receiver(self.connection, self._address)


def test_a_handler_of_proton_says_what_it_did_with_each_message(
    broker: RabbitMq, recorder: Recorder, path: Path
) -> None:
    class Worker(_Handler):
        def on_message(self, event: Any) -> None:
            if event.message.id == "m1":
                event.connection.close()
                raise Reject

    with _channel(broker) as channel:
        channel.queue_declare("handled", durable=True)
        run_recorded(Worker(broker, "handled", "m0", "m1"), recorder)
        assert _depth(channel, "handled") == 0
    recorder.drained("handled")
    sent = ["send", "confirmed"]
    assert shape(path, "m0") == [*sent, "delivered", "processed", "acknowledge message"]
    assert shape(path, "m1") == [*sent, "delivered", "failed", "dead_lettered"]
    assert len({line["session"] for line in events(path) if "session" in line}) == 1
    found = judged(path)
    assert (found.verdict, found.reasons, found.counts) == ("valid", (), {})


def test_a_session_that_the_broker_ends_is_closed_by_an_error(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    """This RabbitMQ does not know the state ``modified``, which says that the delivery counts as an attempt."""

    class Worker(_Handler):
        def on_message(self, _: Any) -> None:
            raise Release

    with _channel(broker) as channel:
        channel.queue_declare("ended", durable=True)
        run_recorded(Worker(broker, "ended", "m0"), recorder)
    assert shape(path, "m0") == ["send", "confirmed", "delivered", "failed"]
    (closed,) = (line for line in events(path) if line["event"] == "close")
    assert "modified" in closed["error"]


def test_a_handler_of_proton_settles_later_or_by_no_state(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    class Worker(_Handler):
        def on_message(self, event: Any) -> None:
            order = event.message
            if order.id == "m0":
                self.first = event.delivery
            elif order.first_acquirer:
                self.release(event.delivery, delivered=False)
            else:
                self.settle(event.delivery)
                self.accept(self.first)
                event.connection.close()

    with _channel(broker) as channel:
        channel.queue_declare("settled", durable=True)
        run_recorded(Worker(broker, "settled", "m0", "m1", auto_accept=False), recorder)
    sent = ["send", "confirmed"]
    assert shape(path, "m0") == [*sent, "delivered", "processed", "acknowledge message"]
    assert shape(path, "m1") == [*sent, "delivered", "failed", "delivered redelivered", "failed"]


def test_a_handler_of_proton_that_raises_has_failed(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    class Worker(_Handler):
        def on_message(self, event: Any) -> None:  # noqa: ARG002 - as Proton calls it
            raise ValueError("no order")

    with _channel(broker) as channel:
        channel.queue_declare("raising", durable=True)
        with pytest.raises(ValueError, match="no order"):
            run_recorded(Worker(broker, "raising", "m0"), recorder)
    assert shape(path, "m0") == ["send", "confirmed", "delivered", "failed"]


def test_a_handler_of_proton_goes_on_after_its_connection_broke(
    broker: RabbitMq, recorder: Recorder, path: Path
) -> None:
    class Sender(_Handler):
        lost = False

        def on_sendable(self, event: Any) -> None:
            super().on_sendable(event)
            if not self.lost:
                event.transport.close_tail()

        def on_disconnected(self, event: Any) -> None:  # noqa: ARG002 - as Proton calls it
            if not self.lost:
                self.lost, self._messages = True, ["m0", "m1"]
                self.open = 2

        def answered(self, event: Any) -> None:
            event.connection.close()

    with _channel(broker) as channel:
        channel.queue_declare("lost", durable=True)
        run_recorded(Sender(broker, "lost", "m0"), recorder)
    assert shape(path, "m0") == ["send", "in_doubt", "resend", "confirmed"]
    assert shape(path, "m1") == ["send", "confirmed"]
    lines = events(path)
    told = [line["event"] for line in lines]
    assert told == ["send", "close", "in_doubt", "resend", "send", "confirmed", "confirmed", "close"]
    assert ["error" in line for line in lines if line["event"] == "close"] == [True, False]
    assert len({line["session"] for line in lines}) == 2


def test_an_application_that_closes_before_the_answer_accuses_nobody(
    broker: RabbitMq, recorder: Recorder, path: Path
) -> None:
    class Sender(_Handler):
        def on_sendable(self, event: Any) -> None:
            super().on_sendable(event)
            event.connection.close()
            event.transport.close_tail()

    with _channel(broker) as channel:
        channel.queue_declare("early", durable=True)
        run_recorded(Sender(broker, "early", "m0"), recorder)
    assert [(line["event"], "error" in line) for line in events(path)] == [
        *(("send", False), ("close", False)),
        *(("close", True), ("in_doubt", True)),
    ]
    assert judged(path).verdict == "unknown", "nobody looked what is in the queue; but it is not invalid"


def test_a_sender_that_settles_at_once_is_told_nothing(broker: RabbitMq, recorder: Recorder, path: Path) -> None:
    class Sender(_Handler):
        def on_sendable(self, event: Any) -> None:
            super().on_sendable(event)
            event.connection.close()

    with _channel(broker) as channel:
        channel.queue_declare("untold", durable=True)
        run_recorded(Sender(broker, "untold", "m0", options=AtMostOnce()), recorder)
    assert shape(path, "m0") == ["send"]


UNSEEN: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "bytes": (lambda worker, _: worker.sender.send(b"tea"), "bytes have no id"),
    "transaction": (lambda worker, event: event.container.declare_transaction(worker.connection), "transactions of"),
    "connection": (lambda worker, event: event.container.connect("amqp://x", handler=worker), "a handler of one link"),
    "sender": (lambda worker, event: event.container.create_sender("x", handler=worker), "a handler of one link"),
    "receiver": (lambda worker, event: event.container.create_receiver("x", handler=worker), "a handler of one link"),
}


@pytest.mark.parametrize("what", UNSEEN)
def test_what_a_handler_of_proton_does_unseen_is_refused(broker: RabbitMq, recorder: Recorder, what: str) -> None:
    does, says = UNSEEN[what]

    class Worker(_Handler):
        def on_sendable(self, event: Any) -> None:
            does(self, event)

    with _channel(broker) as channel:
        channel.queue_declare("refused", durable=True)
        with pytest.raises(RecordingError, match=says):
            run_recorded(Worker(broker, "refused"), recorder)


def test_what_is_no_handler_is_refused(recorder: Recorder) -> None:
    with pytest.raises(RecordingError, match=r"'object' cannot be recorded; wrap a proton\.handlers\.MessagingHandler"):
        recorded_proton.recorded_handler(object(), recorder)


WRAPPERS = (recorded_pika, recorded_aio_pika, recorded_proton, recorded_stomp)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda module: str(module.__name__))
def test_what_is_no_connection_is_refused(recorder: Recorder, wrapper: Any) -> None:
    with pytest.raises(RecordingError, match="'object' cannot be recorded; wrap a"):
        wrapper.recorded(object(), recorder)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda module: str(module.__name__))
def test_a_client_that_is_not_installed_is_named(
    recorder: Recorder, wrapper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = wrapper.__name__.rpartition(".")[2]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RecordingError, match=r"install it with: pip install [a-z.-]+$"):
        wrapper.recorded(object(), recorder)


EXAMPLES = sorted((PROJECT / "docs" / "examples").glob("recorded_*.py"), key=lambda file: file.name)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: str(file.stem))
def test_the_examples_of_the_documents_make_valid_histories(broker: RabbitMq, path: Path, example: Path) -> None:
    with _channel(broker) as channel:
        channel.queue_declare("amqp-orders", durable=True)
    port = broker.ports["stomp" if example.stem == "recorded_stomp" else "amqp"]
    done = ended(str(example), str(path), str(port), program=[sys.executable])
    assert (done.code, done.err) == (0, "")
    found = judged(path)
    assert (found.verdict, found.reasons, found.counts, found.messages, found.unread) == ("valid", (), {}, 3, 0)
    assert [line["event"] for line in events(path) if line["event"] == "acknowledge"] == ["acknowledge"] * 3
