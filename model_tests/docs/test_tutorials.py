"""The tutorials are followed word for word, and lead to where they say."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from model_tests import tutorials
from model_tests.support.places import PROJECT
from model_tests.support.tables import shipped


@pytest.fixture(autouse=True)
def tables_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.tables.load", shipped)


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


def test_the_adapter_for_pika_takes_what_a_channel_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page cannot run it without a broker: here with a channel that answers as pika's does."""
    (page,) = (page for page in tutorials.PAGES if page.stem == "developer")
    files = {found["file"]: found["body"] for found in tutorials.files(page)}
    module, booking = types.ModuleType("pika_orders"), types.ModuleType("booking")
    monkeypatch.setitem(sys.modules, "booking", booking)
    for made, name in ((module, "pika_orders.py"), (booking, "booking.py")):
        exec(compile(files[name], name, "exec"), made.__dict__)  # noqa: S102 - only text of the project

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
        module.PikaOrders(channel, "orders"),
        lambda order: booked.append((order.id, order.body, order.redelivered, list(channel.calls))),
    )
    assert channel.calls == ["orders", 1, "orders", 2, "orders"]
    assert booked == [
        ("m1", b"tea", False, ["orders"]),
        ("m2", b"tea", True, ["orders", 1, "orders"]),
    ]
