"""The tutorials are followed word for word, and lead to where they say."""

from __future__ import annotations

import contextlib
import logging
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.recorder import Recorder
from ackfsm.recorder.pika import recorded
from model_tests import tutorials
from model_tests.support.brokers import running
from model_tests.support.places import PROJECT
from model_tests.support.recorder.judged import judged
from model_tests.support.whole import before_a_release


def test_there_is_one_for_each_reader() -> None:
    assert [page.stem for page in tutorials.PAGES] == ["broker-author", "developer", "sre"]
    text = (PROJECT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"(tutorials/{page.name})" in text for page in tutorials.PAGES)


@pytest.mark.parametrize("page", tutorials.PAGES, ids=lambda page: page.stem)
def test_what_a_tutorial_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    assert page.read_text(encoding="utf-8") == tutorials.followed(page, tmp_path), "run python -m model_tests.tutorials"


@pytest.mark.parametrize("page", tutorials.PAGES, ids=lambda page: page.stem)
def test_a_tutorial_has_ten_minutes_of_commands(page: Path) -> None:
    lines = tutorials.commands(page)
    assert 3 <= len([line for line in lines if line.startswith(("ackfsm ", "pytest "))]) <= 15


def test_a_command_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file a.txt -->\n```text\none\n```\n\n```console\n"
        "$ python -c 'import pathlib; print(pathlib.Path(\"a.txt\").read_text())' | head -n 1\ntwo\n"
        "$ ackfsm verify none.jsonl\n$ echo $?\n0\n```\n",
        encoding="utf-8",
    )
    folder = tmp_path / "empty"
    folder.mkdir()
    text = tutorials.followed(page, folder)
    assert "\none\n$ ackfsm verify none.jsonl\nackfsm verify: " in text
    assert text.endswith("$ echo $?\n2\n```\n")


@pytest.fixture
def developer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], types.ModuleType]:
    """The modules of the developer's tutorial, by their names."""
    (page,) = (page for page in tutorials.PAGES if page.stem == "developer")
    files = {found["file"]: found["body"] for found in tutorials.files(page)}

    def made(name: str) -> types.ModuleType:
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(files[f"{name}.py"], f"{name}.py", "exec"), module.__dict__)  # noqa: S102 - only text of the project
        return module

    return made


def test_the_adapter_for_pika_takes_what_a_channel_gives(developer: Callable[[str], types.ModuleType]) -> None:
    """With a channel that answers as pika's does: what is called, in which order."""
    booking, adapter = developer("booking"), developer("pika_orders")

    class Channel:
        """Two messages, then none, as ``BlockingChannel.basic_get`` has it."""

        def __init__(self) -> None:
            self.calls: list[object] = []

        def basic_get(self, queue: str) -> tuple[object, object, object]:
            number = len([call for call in self.calls if isinstance(call, int)]) + 1
            self.calls.append(queue)
            if number > 2:
                return None, None, None
            method = types.SimpleNamespace(delivery_tag=number, redelivered=number == 2)
            return method, types.SimpleNamespace(message_id=f"m{number}"), b"tea"

        def basic_ack(self, tag: int) -> None:
            self.calls.append(tag)

    channel, booked = Channel(), []
    booking.book_orders(
        adapter.PikaOrders(channel, "orders"),
        lambda order: booked.append((order.id, order.body, order.redelivered, list(channel.calls))),
    )
    assert channel.calls == ["orders", 1, "orders", 2, "orders"]
    assert booked == [
        ("m1", b"tea", False, ["orders"]),
        ("m2", b"tea", True, ["orders", 1, "orders"]),
    ]


@before_a_release
def test_the_adapter_for_pika_runs_on_rabbitmq(
    developer: Callable[[str], types.ModuleType], broker: RabbitMq, tmp_path: Path
) -> None:
    """A process dies between the work on an order and its acknowledgement; another one goes on, and is recorded."""
    booking, adapter = developer("booking"), developer("pika_orders")
    path = tmp_path / "run.jsonl"
    config = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "receive"}
    recorder = Recorder(path, "shop", config=config)
    booked: list[tuple[str, bytes, bool]] = []

    def booking_of(*, dies: bool = False) -> Callable[[Any], None]:
        def book(order: Any) -> None:
            booked.append((order.id, order.body, order.redelivered))
            if dies:
                raise _Death

        return book

    with _channel(broker, recorder) as channel:
        channel.queue_declare("orders")
        channel.confirm_delivery()
        for name in ("tea", "milk"):
            channel.basic_publish("", "orders", name.encode(), pika.BasicProperties(message_id=name, delivery_mode=2))
    first, second = recorder.as_process("billing-1"), recorder.as_process("billing-2")
    with pytest.raises(_Death), _channel(broker, first) as channel:
        booking.book_orders(adapter.PikaOrders(channel, "orders"), booking_of(dies=True))
    first.fault("consumer_crash")
    first.recovered("consumer_crash")
    with _channel(broker, second) as channel:
        booking.book_orders(adapter.PikaOrders(channel, "orders"), booking_of())
        assert channel.queue_declare("orders", passive=True).method.message_count == 0, "all are acknowledged"
    recorder.drained("orders")
    assert booked == [("tea", b"tea", False), ("tea", b"tea", True), ("milk", b"milk", False)]
    found = judged(path)
    assert (found.verdict, found.counts, found.messages) == ("valid", {"duplicate": 1}, 2)


class _Death(Exception):  # noqa: N818 - of a process
    """The application's process ends."""


@pytest.fixture
def broker() -> Iterator[RabbitMq]:
    with running(RabbitMq) as started:
        logging.getLogger("pika").setLevel(logging.CRITICAL)
        yield started


@contextlib.contextmanager
def _channel(broker: RabbitMq, recorder: Recorder) -> Iterator[Any]:
    parameters = pika.ConnectionParameters("127.0.0.1", broker.ports["amqp"])
    with recorded(pika.BlockingConnection(parameters), recorder) as connection:
        yield connection.channel()
