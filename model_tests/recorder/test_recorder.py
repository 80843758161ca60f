"""Is whatever the recorder writes a history, whoever writes to the file beside it and whatever happens meanwhile?"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.history.format import FIELDS, VOCABULARY, Kind
from ackfsm.history.lines import parse_block
from ackfsm.recorder import HistoryHandler, Recorder, RecordingError
from ackfsm.terms import AckMode, HostError, InputError
from model_tests.support.commands import environment
from model_tests.support.recorder.judged import judged

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "send_mode": "blocking", "prefetch": 0}


def lines(path: Path) -> list[dict[str, Any]]:
    """The events of a file, as JSON alone reads them; blank lines are none."""
    return [json.loads(line) for line in path.read_text().splitlines() if line][1:]


def events(path: Path) -> list[str]:
    return [line["event"] for line in lines(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "night.jsonl"


@pytest.fixture
def recorder(path: Path) -> Iterator[Recorder]:
    with Recorder(path, "client-1", config=CONFIG) as opened:
        yield opened


TEXT = st.one_of(st.text(max_size=4), st.sampled_from(["m1", "m2", "message", "up_to", "receive", "broker", "\ud800"]))
VALUE = {
    Kind.TEXT: TEXT,
    Kind.WHOLE: st.one_of(st.integers(-1, 3), st.integers(-(2**65), 2**65)),
    Kind.FLAG: st.booleans(),
}
ANY = st.one_of(st.none(), TEXT, st.integers(), st.booleans(), st.floats(), st.binary(max_size=2))


def _fields(name: str) -> st.SearchStrategy[object]:
    listed = st.sampled_from(VOCABULARY[name]) if name in VOCABULARY else st.nothing()
    return st.one_of(VALUE[FIELDS[name]], listed, ANY)


WRITES = st.tuples(
    st.one_of(st.sampled_from(VOCABULARY["event"]), TEXT),
    st.fixed_dictionaries({}, optional={name: _fields(name) for name in FIELDS if name != "event"}),
)
MESSAGES = st.lists(st.tuples(TEXT, st.sampled_from(["returns", "raises", "refuses"])), max_size=4)


@given(st.lists(WRITES, max_size=30), MESSAGES)
def test_whatever_is_called_no_line_is_unreadable(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, dict[str, Any]]], calls: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("drawn") / "drawn.jsonl"
    with Recorder(path, config=CONFIG) as recorder:
        for event, fields in writes:
            with suppress(RecordingError):
                recorder.write(event, **fields)
        for message, end in calls:
            with suppress(RecordingError, OSError, ValueError):
                _whole_life(recorder, message, end)
    header, _, rest = path.read_bytes().partition(b"\n")
    read = parse_block(rest, 2)
    assert json.loads(header)["ackfsm_history"] == 1
    assert [str(each) for each in read.unreadable] == []
    assert read.events.num_rows == rest.count(b"\n")


def _whole_life(recorder: Recorder, message: str, end: str) -> None:
    with recorder.send(message, queue="q", rejects=ValueError):
        if end == "refuses":
            raise ValueError(message)
    with recorder.processing(message, queue="q", redelivered=False, delivery_count=1):
        if end == "raises":
            raise OSError(message)
    with recorder.acknowledge("message", message=message, answered=True):
        pass


def test_a_run_without_mishap_is_valid(recorder: Recorder, path: Path) -> None:
    for number in range(5):
        with recorder.send(f"m{number}", queue="q", session="p.1", delivery_mode="PERSISTENT"):
            pass
    consumer = recorder.as_process("client-2")
    for number in range(5):
        with consumer.processing(f"m{number}", queue="q", session="c.1", redelivered=False):
            pass
        with consumer.acknowledge("message", message=f"m{number}", queue="q", session="c.1", answered=False):
            pass
    recorder.drained("q")
    found = judged(path)
    assert (found.verdict, found.reasons, found.counts, found.messages, found.unread) == ("valid", (), {}, 5, 0)
    assert path.read_text().count('"acknowledged"') == 0


def test_the_ends_of_calls_are_told_apart(recorder: Recorder, path: Path) -> None:
    with suppress(TimeoutError), recorder.send("m1", rejects=ValueError):
        raise TimeoutError
    with suppress(ValueError), recorder.send("m1", rejects=ValueError):
        raise ValueError("no room")
    with recorder.send("m1") as sending:
        sending.rejected("nacked")
    with recorder.send("m1"):
        pass
    with recorder.send("m1", answered=False):
        pass
    with suppress(KeyboardInterrupt), recorder.processing("m1", redelivered=False):
        raise KeyboardInterrupt
    with suppress(OSError), recorder.acknowledge("session", answered=True):
        raise OSError
    with recorder.acknowledge("session", answered=True):
        pass
    assert events(path) == [
        *("send", "in_doubt", "resend", "rejected", "resend", "rejected", "resend", "confirmed", "send"),
        *("delivered", "failed", "acknowledge", "ack_in_doubt", "acknowledge", "acknowledged"),
    ]
    assert lines(path)[3]["error"] == "ValueError: no room"


def test_the_outcome_of_a_transacted_send_is_that_of_the_commit(recorder: Recorder, path: Path) -> None:
    recorder.begin("t1", session="s")
    with recorder.send("m1", session="s", transaction="t1"):
        pass
    with suppress(OSError), recorder.send("m2", session="s", transaction="t1"):
        raise OSError
    with recorder.commit("t1", session="s"):
        pass
    for error in (OSError, ValueError):
        recorder.begin("t2", session="s")
        with suppress(error), recorder.commit("t2", session="s", rolls_back=ValueError):
            raise error
    recorder.begin("t3")
    with recorder.rollback("t3"):
        pass
    recorder.begin("t3")
    with suppress(OSError), recorder.rollback("t3"):
        raise OSError
    assert events(path) == [
        *("begin", "send", "send", "commit", "committed", "begin", "commit", "commit_in_doubt"),
        *("begin", "commit", "rolled_back", "begin", "rollback", "rolled_back", "begin", "rollback"),
    ]


def test_single_lines_say_what_the_format_says(recorder: Recorder, path: Path) -> None:
    recorder.confirmed("m1", session="s", up_to=True)
    recorder.rejected("m1", error="x")
    recorder.in_doubt("m1")
    recorder.recover("s")
    recorder.closing("s", error="lost")
    recorder.drained("q")
    recorder.depth("q", ready=2, unacknowledged=1)
    recorder.waiting("receive", queue="q")
    recorder.fault("consumer_link_loss", victim="client-2", error="cut")
    recorder.recovered("consumer_link_loss", victim="client-2")
    recorder.fault("broker_kill")
    recorder.expired("m1", queue="q")
    recorder.dead_lettered("m1", queue="q")
    told = [{key: value for key, value in line.items() if key != "t"} for line in lines(path)]
    assert told == [
        {"process": "client-1", "message": "m1", "session": "s", "scope": "up_to", "event": "confirmed"},
        {"process": "client-1", "message": "m1", "error": "x", "event": "rejected"},
        {"process": "client-1", "message": "m1", "event": "in_doubt"},
        {"process": "client-1", "session": "s", "event": "recover"},
        {"process": "client-1", "session": "s", "error": "lost", "event": "close"},
        {"process": "client-1", "queue": "q", "event": "drained"},
        {"process": "client-1", "queue": "q", "position": 2, "delivery_count": 1, "event": "depth"},
        {"process": "client-1", "error": "receive", "queue": "q", "event": "waiting"},
        {"process": "client-2", "fault": "consumer_link_loss", "error": "cut", "event": "fault"},
        {"process": "client-2", "fault": "consumer_link_loss", "event": "recovered"},
        {"process": "nemesis", "fault": "broker_kill", "event": "fault"},
        {"process": "client-1", "message": "m1", "queue": "q", "event": "expired"},
        {"process": "client-1", "message": "m1", "queue": "q", "event": "dead_lettered"},
    ]


MISTAKES: dict[str, tuple[Callable[[Recorder], object], str]] = {
    "event": (lambda r: r.write("sent", message="m"), "there is no event 'sent'"),
    "field": (lambda r: r.write("send", message="m", topic="x"), "there is no field 'topic'"),
    "need": (lambda r: r.write("delivered", message="m"), "delivered needs `redelivered`"),
    "kind": (lambda r: r.write("send", message=7), "`message` is 7; it has to be text"),
    "flag": (lambda r: r.write("delivered", message="m", redelivered=0), "it has to be true or false"),
    "not a number": (lambda r: r.write("send", message="m", position=True), "a whole number of 64 bits"),
    "scope": (lambda r: r.acknowledge("up_to", answered=True).__enter__(), "the scope up_to needs `message`"),
    "call": (lambda r: r.waiting("recieve"), "there is no call 'recieve'"),
    "surrogate": (lambda r: r.confirmed("\udc80"), "no text in UTF-8"),
    "negative": (lambda r: r.depth("q", ready=-1, unacknowledged=0), "`position` is negative"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_use_is_one_sentence_and_writes_nothing(recorder: Recorder, path: Path, mistake: str) -> None:
    call, said = MISTAKES[mistake]
    with pytest.raises(RecordingError, match=said):
        call(recorder)
    assert lines(path) == []


def test_settings_are_checked_before_the_run(path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no setting 'ack_mod' \(did you mean ack_mode\?\)"):
        Recorder(path, config={"ack_mod": "AUTO_ACKNOWLEDGE"})
    with pytest.raises(InputError, match="ack_mode cannot be 'AUTO'"):
        Recorder(path, queues={"q": {"ack_mode": "AUTO"}})
    assert not path.exists()
    Recorder(path, config={"profile": "harbour", "ack_mode": AckMode.AUTO_ACKNOWLEDGE, "prefetch": 3}, note="n").close()
    header = json.loads(path.read_text())
    assert header["config"] == {"profile": "harbour", "ack_mode": "AUTO_ACKNOWLEDGE", "prefetch": 3}


def test_a_file_is_gone_on_with_under_the_same_settings_alone(recorder: Recorder, path: Path) -> None:
    recorder.drained("q")
    with Recorder(path, "client-2") as other, Recorder(path, "client-3", config=CONFIG):
        other.drained("q")
    assert [line["process"] for line in lines(path)] == ["client-1", "client-2"]
    with pytest.raises(RecordingError, match="begun with a different 'config'; name another file"):
        Recorder(path, config={"profile": "jms"})


@pytest.mark.parametrize("text", ["hello\n", '{"ackfsm_history":2}\n', "[1]\n", '{"ackfsm_history":1'])
def test_a_file_of_somebody_else_is_left_alone(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(RecordingError, match="name another file"):
        Recorder(path)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["night.jsonl.gz", "night.parquet", "no/such/folder.jsonl", "folder", "pipe"])
def test_what_cannot_be_appended_to_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingError, match=r"cannot be opened|plain text|no file that can be appended to"):
        Recorder(tmp_path / name)


def test_a_line_that_stayed_torn_does_not_take_the_next_one_with_it(recorder: Recorder, path: Path) -> None:
    recorder.drained("q")
    with path.open("ab") as file:
        file.write(b'{"t":1,"process":"killed')
    with Recorder(path, "client-2") as again:
        again.drained("q")
    read = verify.read(path)
    assert (read.unreadable_count, len(read.events)) == (1, 2)


def test_a_full_disk_is_said_and_the_next_line_is_whole(recorder: Recorder, path: Path) -> None:
    """The limit of the size of a file does what a full disk does: the last line before it is written in part."""
    recorder.drained("q")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
        with pytest.raises(HostError, match=r"night.jsonl cannot be written \(File too large\)"):
            recorder.drained("q")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, heard)
    recorder.drained("q")
    read = verify.read(path)
    assert (read.unreadable_count, len(read.events)) == (1, 2)


def test_short_writes_are_gone_on_with(recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[:7]))
    recorder.drained("q")
    assert events(path) == ["drained"]


def test_nothing_is_written_after_the_end(recorder: Recorder) -> None:
    recorder.close()
    recorder.close()
    with pytest.raises(RecordingError, match="was closed"):
        recorder.as_process("other").drained("q")


def test_each_line_is_one_write_and_is_synced_if_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    whole, sync = os.write, os.fdatasync

    def write(descriptor: int, data: memoryview) -> int:
        calls.append("write")
        return whole(descriptor, data)

    def synced(descriptor: int) -> None:
        calls.append("sync")
        sync(descriptor)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fdatasync", synced)
    with Recorder(path, fsync=True) as recorder:
        recorder.drained("q")
    assert calls == ["write", "sync"] * 2


def _child(path: Path, recorder: Recorder, number: int) -> None:
    own = Recorder(path)
    for each in range(50):
        recorder.write("send", message=f"{number}.{each}.{'x' * 5000}")
        own.write("confirmed", message=f"{number}.{each}.{'x' * 5000}")
    os._exit(0)


def test_threads_children_and_other_openers_share_a_file(path: Path) -> None:
    """A thread holds the lock when children are forked: they must neither wait for it nor mix their lines."""
    recorder = Recorder(path, config=CONFIG)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            recorder.write("expired", message="y" * 3000)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_child, args=(path, recorder, number)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    done.set()
    for thread in threads:
        thread.join()
    read = verify.read(path)
    assert read.unreadable_count == 0
    found = [line for line in lines(path) if line["event"] != "expired"]
    assert len(found) == 400
    assert len({line["process"] for line in found}) == 4


def test_of_several_that_open_the_file_at_once_one_writes_the_header(path: Path) -> None:
    def run(number: int) -> None:
        with Recorder(path, f"p{number}", config=CONFIG) as recorder:
            recorder.drained("q")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(path)) == 16
    assert verify.read(path).unreadable_count == 0


def test_a_kill_leaves_every_line_whose_call_returned(path: Path) -> None:
    program = (
        "import sys\nfrom ackfsm.recorder import Recorder\nr = Recorder(sys.argv[1], 'p')\n"
        "for n in range(10**9):\n r.write('send', message=str(n))\n print(n, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=environment()
    ) as run:
        assert run.stdout is not None
        for _ in range(500):
            last = int(run.stdout.readline())
        run.kill()
        last = max([last, *(int(number) for number in run.stdout.read().split())])
    read = verify.read(path)
    assert (read.unreadable_count, [line["message"] for line in lines(path)][: last + 1]) == (
        0,
        [str(number) for number in range(last + 1)],
    )


def test_the_time_is_that_of_the_calendar_and_is_never_set_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.time_ns
    before = clock()
    with Recorder(path, "a") as one:
        one.drained("q")
        set_back = time.time_ns() - 3600 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: set_back)
        with Recorder(path, "b") as other:
            other.drained("q")
            one.drained("q")
    times = [line["t"] for line in lines(path)]
    assert times == sorted(times)
    assert before - 10**7 < times[0]
    assert times[2] < clock() + 10**7


def test_times_are_those_of_the_machine_where_others_write_them_too(path: Path) -> None:
    before = time.monotonic_ns()
    for _ in range(2):
        with Recorder(path, "a", cannot_show=["drained"], monotonic=True) as recorder:
            recorder.write("expired", message="m", queue="q")
    times = [line["t"] for line in lines(path)]
    assert before < times[0] < times[1] < time.monotonic_ns()
    assert json.loads(path.read_text().splitlines()[0])["cannot_show"] == ["drained"]


def test_a_clock_of_another_start_of_the_machine_is_not_taken(path: Path) -> None:
    header = {"ackfsm_history": 1, "clock": {"offset": 5, "boot": "another"}}
    path.write_text(json.dumps(header) + "\n")
    before = time.time_ns()
    with Recorder(path, "a") as recorder:
        recorder.drained("q")
    assert lines(path)[0]["t"] > before - 10**7


def test_a_handler_of_logging_writes_the_records_that_have_a_line(recorder: Recorder, path: Path) -> None:
    logger = logging.Logger("orders")  # noqa: LOG001 - of this test alone
    logger.addHandler(HistoryHandler(recorder))
    logger.info("started")
    logger.info("sent", extra={"ackfsm": {"event": "send", "message": "m1", "queue": "q", "process": "other"}})
    logger.info("confirmed", extra={"ackfsm": {"event": "confirmed", "message": "m1", "t": 5}})
    first, second = lines(path)
    assert {**first, "t": 0} == {"t": 0, "process": "other", "event": "send", "message": "m1", "queue": "q"}
    assert second == {"t": 5, "process": "client-1", "event": "confirmed", "message": "m1"}
    for extra, said in (({"event": "sent"}, "no event 'sent'"), ({"message": "m"}, "no `event`"), ("send", "fields")):
        with pytest.raises(RecordingError, match=said):
            logger.info("wrong", extra={"ackfsm": extra})
