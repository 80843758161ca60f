"""What a message carries: bodies of three kinds, time, reply_to and correlation_id, in memory and through journals."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.engine import Body, Broker, MapValue, Message, MessageFormatException, Queue, Sent, Timed
from ackfsm.engine.core.codec import pack, unpack
from ackfsm.engine.journal import FileJournal, Journal, Kind, MemoryJournal, SqliteJournal
from ackfsm.terms import DeliveryMode, InputError
from model_tests.support.engine.brokers import received
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

JOURNALS: Mapping[str, Callable[[Path], Journal]] = {
    "file": lambda folder: FileJournal(folder / "journal"),
    "sqlite": lambda folder: SqliteJournal(folder / "journal.db"),
}

MAPPING: dict[str, MapValue] = {
    "leaf": "green",
    "grams": 2**63,
    "price": 1.0,
    "in stock": True,
    "note": None,
    "seal": b"\x00\xff",
    "e": b"",
}
BODIES: list[Body] = [b"", b"\x00\xff", "", "té\x00", {}, MAPPING]


def broker_of(**settings: Any) -> Broker:
    return Broker("artemis", specification=shipped(), **{"consumption": "receive", "history": True, **settings})


def taken(broker: Broker, queue: str = "q") -> list[Message]:
    """All messages of a queue, acknowledged."""
    consumer, found = broker.connect("taker").session("CLIENT_ACKNOWLEDGE").consumer(queue), []
    while (message := consumer.receive(None)) is not None:
        message.acknowledge()
        found.append(message)
    return found


def same(one: Body, other: Body) -> bool:
    """Equal, and of the same types."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return [(k, type(v), v) for k, v in one.items()] == [(k, type(v), v) for k, v in other.items()]
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("kind", JOURNALS)
def test_bodies_keep_their_type_through_a_journal(kind: str, tmp_path: Path) -> None:
    with broker_of(journal=JOURNALS[kind](tmp_path)) as broker:
        producer = broker.connect().session().producer("q")
        for body in BODIES:
            producer.send(body)
    with broker_of(journal=JOURNALS[kind](tmp_path)) as broker:
        found = taken(broker)
    assert all(same(message.body, body) for message, body in zip(found, BODIES, strict=True))


@pytest.mark.parametrize("kind", JOURNALS)
@pytest.mark.parametrize("fault", ["none", "crash", "kill"])
def test_what_is_said_of_a_message_is_kept(kind: str, fault: str, tmp_path: Path) -> None:
    clock = iter(range(1000, 2000))
    with broker_of(journal=JOURNALS[kind](tmp_path), clock=lambda: next(clock)) as broker:
        session = broker.connect().session()
        first, second = session.producer("q"), session.producer(broker.queue("q"))
        first.send("tea?", reply_to="answers", correlation_id="ü-1")
        second.send("milk?", {"from": "Assam"}, reply_to=broker.queue("answers"))
        if fault != "none":
            getattr(broker, fault)()
            broker.restart()
    with broker_of(journal=JOURNALS[kind](tmp_path), history=broker.history) as broker:
        one, two = taken(broker)
        assert_kept(broker)
    assert (one.body, one.timestamp, one.reply_to, one.correlation_id) == ("tea?", 1000, "answers", "ü-1")
    assert (two.body, two.timestamp, two.reply_to, two.correlation_id) == ("milk?", 1001, "answers", None)
    assert two.headers == {"from": "Assam"}
    with pytest.raises(TypeError):
        two.headers["from"] = "nowhere"  # type: ignore[index] # they are as they were sent


def test_an_answer_goes_where_it_is_wanted() -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE")
    session = broker.connect().session()
    question = session.producer("questions").send("tea?", reply_to="answers")
    asked = received(session.consumer("questions"), 0.0)
    assert asked.reply_to is not None
    session.producer(asked.reply_to).send("yes", correlation_id=asked.id)
    answer = received(session.consumer("answers"), 0.0)
    assert (answer.body, answer.correlation_id, answer.reply_to) == ("yes", question.id, None)


def test_the_time_is_virtual_unless_there_is_a_clock() -> None:
    broker = broker_of(pace=Timed(latency=(100, 100), disk=1000), ack_mode="AUTO_ACKNOWLEDGE")
    producer = broker.connect().session().producer("q")
    assert [producer.send().timestamp for _ in range(2)] == [0, 1200]
    assert [message.timestamp for message in taken(broker)] == [0, 1200]


@pytest.mark.parametrize("said", ["now", 1.5, True, 2**63, None])
def test_a_clock_that_says_no_time_sends_nothing(said: object) -> None:
    broker = broker_of(clock=lambda: said)
    producer = broker.connect().session().producer("q")
    with pytest.raises(InputError, match=r"clock cannot say .*; it says whole nanoseconds, of 64 bits"):
        producer.send(b"tea", delivery_mode="NON_PERSISTENT")
    assert broker.queue("q").length == 0
    assert len(producer.session.senders) == 1


def test_dead_letters_keep_what_is_said_of_them(tmp_path: Path) -> None:
    with broker_of(journal=FileJournal(tmp_path), max_delivery_attempts=1, clock=lambda: 7) as broker:
        session = broker.connect().session("CLIENT_ACKNOWLEDGE")
        session.producer("q").send({"leaf": "green"}, reply_to="answers", correlation_id="c")
        assert session.consumer("q").receive() is not None
        session.recover()
        broker.loop.wait(lambda: bool(broker.dead_letters))
    with broker_of(journal=FileJournal(tmp_path)) as broker:
        (letter,) = taken(broker, "DLQ")
    assert (letter.body, letter.timestamp, letter.reply_to, letter.correlation_id) == (
        {"leaf": "green"},
        7,
        "answers",
        "c",
    )


def test_a_mapping_is_delivered_as_it_was_sent() -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE")
    session = broker.connect().session()
    body: dict[str, Any] = {"leaf": "green", "seal": bytearray(b"x")}
    session.producer("q").send(body)
    body["leaf"] = "black"
    body["seal"][:] = b"y"
    (message,) = taken(broker)
    assert message.body == {"leaf": "green", "seal": b"x"}
    with pytest.raises(TypeError):
        message.body["leaf"] = "black"  # type: ignore[index] # it is as it was sent
    copied = message.body_as(dict)
    copied["leaf"] = "black"
    assert message.body_as(dict)["leaf"] == "green"


def test_a_body_of_another_type_than_was_asked_for_is_an_error() -> None:
    broker = broker_of()
    producer = broker.connect().session().producer("q")
    for body in (b"tea", "tea", {"leaf": "green"}):
        producer.send(body, message_id="m")
    data, text, mapping = taken(broker)
    assert (data.body_as(bytes), text.body_as(str), mapping.body_as(dict)) == (b"tea", "tea", {"leaf": "green"})
    with pytest.raises(MessageFormatException, match="the body of m is text, and bytes was asked for"):
        text.body_as(bytes)
    with pytest.raises(MessageFormatException, match="the body of m is a mapping, and text was asked for"):
        mapping.body_as(str)
    with pytest.raises(MessageFormatException, match="the body of m is bytes, and a mapping was asked for"):
        data.body_as(dict)


# The form in the journal

_HEADERS = b'{"from": "Assam", "n": 1, "ok": true, "none": null, "x": 1.5}'
OF_FORM_0 = (
    b"\x00\x06\x00\x04\x00\x04\x00=\x00\x00\x00ordersm-\xc3\xbcid-1" + _HEADERS + b"tea",
    b"\x00\x06\x00\x08\x00\x00\x00\x00\x00\x00\x00ordersshop.1-2\x00\xff",
)
"""What the engine wrote before messages had a time and bodies had kinds."""


def on(*entries: bytes) -> MemoryJournal:
    journal = MemoryJournal()
    for number, data in enumerate(entries, 1):
        journal.append(Kind.STORE, 4 * number + 1, data)
    journal.sync()
    return journal.kill()


def test_messages_of_the_first_form_are_read_and_kept_so() -> None:
    broker = broker_of(journal=on(*OF_FORM_0))
    one, two = taken(broker, "orders")
    assert (one.id, one.body, two.id, two.body) == ("m-ü", b"tea", "shop.1-2", b"\x00\xff")
    assert one.headers == {"from": "Assam", "n": 1, "ok": True, "none": None, "x": 1.5}
    assert (one.timestamp, one.reply_to, one.correlation_id) == (None, None, None)


@pytest.mark.parametrize("data", OF_FORM_0, ids=["headers", "plain"])
def test_a_message_of_the_first_form_is_written_as_it_was(data: bytes) -> None:
    broker = broker_of()
    read = unpack(data, broker.queue)
    assert read.delivery_mode is DeliveryMode.PERSISTENT
    assert pack(read) == data


def test_a_message_of_a_later_form_is_refused() -> None:
    later = bytes([2 << 4]) + OF_FORM_0[1][1:]
    with pytest.raises(
        InputError, match="a message of form 2, and this version of ackfsm knows the forms 0 to 1; open"
    ):
        broker_of(journal=on(later))


def sent(queue: Queue, body: Body, **about: Any) -> Sent:
    return Sent("m", body, {"h": 1}, DeliveryMode.PERSISTENT, queue, b"id", 5, **about)


@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_a_message_that_is_cut_off_is_no_message(body: Body) -> None:
    queue = broker_of().queue("orders")
    data = pack(sent(queue, body, reply_to="answers", correlation_id="c"))
    whole = len(data) - len(pack(sent(queue, body))) + len(pack(sent(queue, b"")))
    for length in range(whole):
        with pytest.raises(InputError, match="an entry that is no message"):
            unpack(data[:length], lambda _: queue)


def test_a_body_of_a_kind_that_nobody_knows_is_no_message() -> None:
    queue = broker_of().queue("orders")
    data = bytearray(pack(sent(queue, b"tea")))
    data[struct.calcsize("<BHHHIq")] = 3
    with pytest.raises(InputError, match=r"no message \(there is no body of kind 3\)"):
        unpack(bytes(data), lambda _: queue)
    for damaged in (b"[1]", b"{", b'{"a": ["?"]}', b'{"a": []}', b'{"a": {}}', b"7"):
        data = bytearray(pack(sent(queue, damaged)))
        data[struct.calcsize("<BHHHIq")] = 2
        with pytest.raises(InputError, match="an entry that is no message"):
            unpack(bytes(data), lambda _: queue)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = TEXTS | st.binary(max_size=8) | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans() | st.none()
ANY_BODY: st.SearchStrategy[Body] = st.one_of(
    st.binary(max_size=20), TEXTS, st.dictionaries(TEXTS.filter(bool), VALUES, max_size=4)
)


@given(
    body=ANY_BODY,
    reply=TEXTS.filter(bool) | st.none(),
    correlation=TEXTS.filter(bool) | st.none(),
    at=st.integers(-(2**63), 2**63 - 1),
)
def test_what_is_packed_is_unpacked(body: Body, reply: str | None, correlation: str | None, at: int) -> None:
    queue = broker_of().queue("orders")
    message = Sent("m", body, {}, DeliveryMode.NON_PERSISTENT, queue, None, at, reply, correlation)
    again = unpack(pack(message), lambda _: queue)
    assert (again.timestamp, again.reply_to, again.correlation_id) == (at, reply, correlation)
    assert again.delivery_mode is DeliveryMode.NON_PERSISTENT
    if isinstance(body, Mapping) and any(isinstance(value, float) and math.isnan(value) for value in body.values()):
        assert isinstance(again.body, MappingProxyType)
        assert list(again.body) == list(body)
    else:
        assert same(again.body, body)
