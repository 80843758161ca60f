"""Does one worker drive the real libraries of JMS, each in its modes, and record what they do?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ackfsm import tables
from ackfsm.driving.live.brokers import ActiveMq, Artemis, BrokerJ, LiveBroker
from ackfsm.driving.live.clients.client import Client, ClosedError, DownError, RefusedError
from ackfsm.driving.live.clients.jms import LIBRARIES
from ackfsm.terms import AckMode
from model_tests.support.brokers import Lent, had
from model_tests.support.live.jms import Run
from model_tests.support.recorder.judged import events, judged
from model_tests.support.whole import few

Begin = Callable[..., Run]
BROKERS: Final[dict[str, type[LiveBroker]]] = {
    "artemis": Artemis,
    "qpid-jms": BrokerJ,
    "qpid": BrokerJ,
    "activemq": ActiveMq,
}
"""With which each library is driven."""
PATIENCE: Final = 9
CLIENT, INDIVIDUAL = AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE


FAILOVER: Final = {
    "artemis": {"reconnectAttempts": "-1", "retryInterval": "50"},
    "qpid-jms": {"failover.maxReconnectAttempts": "-1", "failover.reconnectDelay": "50"},
    "qpid": {"failover.retries": "1000"},
    "activemq": {"failover.maxReconnectAttempts": "-1", "failover.initialReconnectDelay": "50"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jms")


@pytest.fixture(scope="module")
def begin(folder: Path, lent: Lent[LiveBroker]) -> Iterator[Begin]:
    """Begin a run; brokers and workers are started when they are first needed."""
    clients: dict[str, Client] = {}
    with contextlib.ExitStack() as stack:

        def run(
            library: str,
            queue: str,
            settings: dict[str, str] | None = None,
            *,
            on: type[LiveBroker] | None = None,
            **config: object,
        ) -> Run:
            broker = lent(on or BROKERS[library])
            with had():
                if library not in clients or not clients[library].alive:
                    command = LIBRARIES[library].command()
                    clients[library] = stack.enter_context(Client(library, command, folder / f"{library}.log"))
            file, told = folder / f"{queue}.{library}.jsonl", {"consumption": "receive", **config}
            return Run(clients[library], LIBRARIES[library], broker, file, settings=settings or {}, config=told)

        yield run


def settled(run: Run, mode: AckMode, message: str, name: str = "s") -> None:
    if mode in {CLIENT, INDIVIDUAL}:
        run.acknowledge(message, name)
    elif mode is AckMode.SESSION_TRANSACTED:
        assert run.do("commit", name) == "committed"


def produced(run: Run, mode: AckMode, *messages: str) -> None:
    """Send the messages in a session of its own."""
    run.session(mode, "p")
    run.send(*messages, name="p")
    settled(run, mode if mode is AckMode.SESSION_TRANSACTED else AckMode.AUTO_ACKNOWLEDGE, "", "p")


def valid(run: Run, **counts: int) -> None:
    found = judged(run.file)
    assert (found.verdict, found.reasons, found.counts, found.unread) == ("valid", (), counts, 0)


def told(run: Run, message: str) -> list[str]:
    lines = [line for line in events(run.file) if line.get("message") == f"{run.queue}-{message}"]
    return [f"{line['event']} again" if line.get("redelivered") else line["event"] for line in lines]


# What the table says


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=lambda library: library.name)
def test_the_modes_are_those_of_the_profile(library: Any) -> None:
    profile = tables.load().profiles[library.profile]
    for mode, number in library.modes.items():
        assert number in {constant.number for constant in profile.constants_of("ack_mode", mode)}, mode
    assert set(library.modes) == {
        constant.setting[1] for constant in profile.constants if constant.setting and constant.setting[0] == "ack_mode"
    }


def test_the_settings_of_a_url_are_those_of_the_profile() -> None:
    mode = {"ack_mode": CLIENT}
    artemis = LIBRARIES["artemis"].profile_settings({"blockOnAcknowledge": "true", "callTimeout": "9"}, mode)
    assert artemis == {
        "profile": "artemis",
        "ack_mode": CLIENT,
        "block_on_acknowledge": True,
        "session_reattachment": False,
    }
    activemq = LIBRARIES["activemq"].profile_settings({"jms.redeliveryPolicy.maximumRedeliveries": "2"}, mode)
    assert activemq == {"profile": "activemq", "ack_mode": CLIENT, "max_delivery_attempts": 3}


# Every library in every mode


@pytest.mark.parametrize(
    ("library", "mode"),
    [(library, mode) for library in LIBRARIES for mode in few([*LIBRARIES[library].modes], 2, library)],
)
def test_messages_are_received_in_every_mode(begin: Begin, library: str, mode: AckMode) -> None:
    run = begin(library, f"received-{mode}", ack_mode=mode)
    before = time.monotonic_ns()
    produced(run, mode, "m1", "m2")
    run.session(mode, listener=False)
    for message in ("m1", "m2"):
        assert (run.receive() or "").startswith(message)
        settled(run, mode, message)
    run.end()
    valid(run)
    assert before < events(run.file)[0]["t"] < events(run.file)[-1]["t"] < time.monotonic_ns()


THROWN: Final[dict[tuple[str, AckMode], list[str]]] = {
    # Nothing is done about it, and acknowledge() of the third covers the first.
    ("artemis", CLIENT): ["m1", "m2", "m3"],
    ("activemq", CLIENT): ["m1", "m2", "m3"],
    ("qpid-jms", CLIENT): ["m1", "m2", "m3"],
    ("qpid", CLIENT): ["m1", "m2", "m3"],
    ("artemis", INDIVIDUAL): ["m1", "m1 redelivered 2", "m2", "m3"],
    ("activemq", INDIVIDUAL): ["m1", "m1 redelivered 2", "m2", "m3"],
    ("artemis", AckMode.AUTO_ACKNOWLEDGE): ["m1", "m1 redelivered 2", "m2", "m3"],
    ("activemq", AckMode.AUTO_ACKNOWLEDGE): ["m1", "m1 redelivered 2", "m2", "m3"],
}


@pytest.mark.parametrize(("library", "mode"), few([*THROWN], 4))
def test_a_listener_throws_at_its_first_message(begin: Begin, library: str, mode: AckMode) -> None:
    run = begin(library, f"thrown-{mode}", ack_mode=mode, consumption="listener")
    produced(run, mode, "m1", "m2", "m3")
    run.session(mode, listener=True)
    called: list[str] = []
    while message := run.listened(timeout=10 if len(called) < len(THROWN[library, mode]) else 1):
        name = message.split()[0]
        if (mode is INDIVIDUAL and called) or (mode is CLIENT and name == "m3"):
            run.acknowledge(name)
        run.done(name, failed=not called)
        called.append(message)
    if library == "artemis":  # it may flag the second, which it had prefetched and never shown
        called = [each.replace("m2 redelivered 2", "m2") for each in called]
    assert called == THROWN[library, mode]
    run.end()
    valid(run, **({"duplicate": 1} if len(called) == 4 else {"unprocessed": 1}))


HELD: Final = {
    "artemis": ["m1 redelivered 2", "m2", "m3 redelivered 2"],
    "activemq": ["m1 redelivered 2", "m2 redelivered 2", "m3 redelivered 2"],
}


@pytest.mark.parametrize("library", HELD)
def test_a_listener_throws_and_its_session_holds_messages(begin: Begin, library: str) -> None:
    run = begin(library, "held", ack_mode=INDIVIDUAL, consumption="listener")
    produced(run, INDIVIDUAL, "m1", "m2", "m3")
    run.session(INDIVIDUAL, listener=True)
    for message in ("m1", "m2", "m3"):
        assert run.listened() == message
        run.done(message, failed=message == "m3")
    for message in HELD[library]:
        assert run.listened() == message
        run.acknowledge(message[:2])
        run.done(message[:2])
    run.end()
    valid(run, duplicate=2 if library == "artemis" else 3, reprocessed=2, **_unflagged(library))


def _unflagged(library: str) -> dict[str, int]:
    return {"unflagged_duplicate": 1} if library == "artemis" else {}


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "sends"))
def test_a_transaction_consumes_and_sends(begin: Begin, library: str) -> None:
    run = begin(library, "transacted", ack_mode=AckMode.SESSION_TRANSACTED)
    produced(run, AckMode.SESSION_TRANSACTED, "m1")
    run.session(AckMode.SESSION_TRANSACTED, listener=False)
    assert (run.receive(), run.send("m2")) == (run.receive(timeout=0) or "m1", ["sent"])
    run.do("rollback")
    assert (run.receive() or "").startswith("m1 redelivered")
    assert (run.send("m3"), run.do("commit")) == (["sent"], "committed")
    assert run.receive() == "m3"
    assert run.do("commit") == "committed"
    run.end()
    valid(run, duplicate=1, reprocessed=1)
    assert told(run, "m2") == ["send"]


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "commits"))
def test_a_listener_rolls_back_and_commits(begin: Begin, library: str) -> None:
    """What it does runs in its own thread: from another one the library would wait for it, or refuse."""
    run = begin(library, "during", ack_mode=AckMode.SESSION_TRANSACTED, consumption="listener")
    produced(run, AckMode.SESSION_TRANSACTED, "m1")
    run.session(AckMode.SESSION_TRANSACTED, listener=True)
    assert run.listened() == "m1"
    run.do("rollback")
    with pytest.raises(RefusedError, match="the listener holds a message"):
        run.do("close")
    run.done("m1")
    assert (run.listened() or "").startswith("m1 redelivered")
    assert run.do("commit") == "committed"
    run.done("m1")
    run.end()
    valid(run, duplicate=1)
    assert told(run, "m1") == ["send", "delivered", "delivered again", "processed"]


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "on"))
def test_a_commit_takes_along_what_the_listener_threw_on(begin: Begin, library: str) -> None:
    """JMS 8.7: the application may commit or roll back; nothing is rolled back by itself."""
    mode = AckMode.SESSION_TRANSACTED
    run = begin(library, "thrown-and-committed", ack_mode=mode, consumption="listener")
    produced(run, mode, "m1", "m2")
    run.session(mode, listener=True)
    assert run.listened() == "m1"
    run.done("m1", failed=True)
    assert run.listened() == "m2"
    assert run.do("commit") == "committed"
    run.done("m2")
    run.end()
    valid(run, unprocessed=1)


@pytest.mark.parametrize("library", ["artemis", "qpid-jms"])
def test_an_asynchronous_send_is_answered_by_its_completion(begin: Begin, library: str) -> None:
    settings = {"confirmationWindowSize": "1048576"} if library == "artemis" else {}
    run = begin(library, "completed", settings, ack_mode=CLIENT, send_mode="asynchronous")
    run.session(CLIENT, listener=False)
    assert run.send("m1", "m2", asynchronous=True) == ["confirmed", "confirmed"]
    assert (run.receive(), run.receive()) == ("m1", "m2")
    run.acknowledge("m2")
    run.end()
    valid(run)


@pytest.mark.parametrize("library", ["qpid", "activemq"])
def test_a_library_of_jms_1_1_refuses_asynchronous_sends(begin: Begin, library: str) -> None:
    run = begin(library, "refused", ack_mode=CLIENT)
    run.session(CLIENT)
    with pytest.raises(RefusedError, match="the library has no CompletionListener"):
        run.send("m1", asynchronous=True)
    run.close()
    assert events(run.file)[:-1] == []


def test_a_send_or_an_acknowledgement_that_does_not_wait_has_no_answer(begin: Begin) -> None:
    run = begin("artemis", "waits", {"blockOnAcknowledge": "true"}, ack_mode=CLIENT, delivery_mode="NON_PERSISTENT")
    run.session(CLIENT, listener=False)
    assert run.send("m1", delivery_mode="NON_PERSISTENT") == ["sent"]
    assert (run.receive(), run.acknowledge("m1")) == ("m1", "acknowledged")
    run.close()
    assert told(run, "m1") == ["send", "delivered", "processed"]


def test_qpid_jms_gives_messages_back_by_other_outcomes(begin: Begin) -> None:
    run = begin("qpid-jms", "settled", ack_mode=INDIVIDUAL)
    run.session(INDIVIDUAL, listener=False)
    run.send("m1", "m2")
    assert (run.receive(), run.receive()) == ("m1", "m2")
    for message, outcome in (("m1", "released"), ("m2", "modified")):
        run.do("settle", message=f"{run.queue}-{message}", outcome=outcome)
    again = sorted(str(run.receive()) for _ in range(2))
    assert again == ["m1", "m2 redelivered 2"]
    for message in again:
        run.acknowledge(message[:2])
    run.end()
    valid(run, duplicate=1, unflagged_duplicate=1, reprocessed=1)
    assert [line["outcome"] for line in events(run.file) if line["event"] == "failed"] == ["released", "modified"]


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "closed"))
def test_one_consumer_is_closed(begin: Begin, library: str) -> None:
    run = begin(library, "cancelled", ack_mode=CLIENT)
    run.session(CLIENT, listener=False)
    run.send("m1")
    assert run.receive() == "m1"
    run.acknowledge("m1")
    run.do("close", consumer="s")
    with pytest.raises(ClosedError, match="the session has no consumer s"):
        run.receive()
    assert run.send("m2") == ["confirmed"]
    run.consumer()
    assert run.receive() == "m2"
    run.acknowledge("m2")
    run.end()
    valid(run)
    closes = [line for line in events(run.file) if line["event"] == "close"]
    assert [line.get("queue") for line in closes] == [run.queue, None]
    assert closes[0]["consumer"] == next(line["consumer"] for line in events(run.file) if line["event"] == "delivered")


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "connects again"))
def test_a_library_connects_again_by_itself(begin: Begin, library: str) -> None:
    mark = {"redelivery_mark_persisted": False} if BROKERS[library] is BrokerJ else {}
    run = begin(library, "failover", FAILOVER[library], ack_mode=CLIENT, **mark)
    run.session(CLIENT, listener=False)
    run.send("m1")
    assert run.receive() == "m1"
    run.write("fault", fault="broker_kill")
    run.broker.kill()
    run.broker.start()
    run.write("recovered", fault="broker_kill")
    assert run.send("m2") == ["confirmed"]
    assert (run.receive(timeout=30) or "").startswith("m1")
    if run.acknowledge("m1") == "in_doubt":  # what was received before the failover hinders it, once
        run.do("recover")
        assert (run.receive() or "").startswith("m1")
        run.acknowledge("m1")
    assert (run.receive() or "").startswith("m2")
    run.acknowledge("m2")
    run.end()
    assert judged(run.file).verdict == "valid"
    (broken,) = [line for line in events(run.file) if line["event"] == "close" and "error" in line]
    assert broken["process"] == "c1.s"


@pytest.mark.parametrize("library", few([*LIBRARIES], 1, "killed"))
def test_a_worker_is_killed(begin: Begin, library: str) -> None:
    run = begin(library, "killed", ack_mode=CLIENT)
    run.session(CLIENT, listener=False)
    run.send("m1")
    assert run.receive() == "m1"
    run.write("fault", "c1.s", fault="consumer_crash")
    run.client.kill()
    run.write("recovered", "c1.s", fault="consumer_crash")
    after = begin(library, "killed", ack_mode=CLIENT)
    after.session(CLIENT, listener=False)
    assert (after.receive(timeout=30) or "").startswith("m1 redelivered")
    after.acknowledge("m1")
    after.end()
    valid(after, duplicate=1)


@pytest.mark.parametrize("library", few([*LIBRARIES], 1, "input"))
def test_a_worker_ends_with_its_input(begin: Begin, library: str) -> None:
    run = begin(library, "ended", ack_mode=CLIENT)
    before = time.monotonic()
    run.client.stop()
    assert (run.client.alive, time.monotonic() - before < PATIENCE) == (False, True)  # it was not killed


@pytest.mark.parametrize("library", few([*LIBRARIES], 2, "back"))
def test_a_broker_is_killed_and_comes_back(begin: Begin, library: str) -> None:
    mark = {"redelivery_mark_persisted": False} if BROKERS[library] is BrokerJ else {}
    run = begin(library, "broken", ack_mode=CLIENT, **mark)
    run.session(CLIENT, listener=False)
    run.send("m1")
    assert run.receive() == "m1"
    run.write("fault", fault="broker_kill")
    run.broker.kill()
    with pytest.raises(DownError):
        run.do("reopen", None)
    with pytest.raises(ClosedError):
        run.receive()
    run.broker.start()
    run.write("recovered", fault="broker_kill")
    run.do("reopen", None)
    run.session(CLIENT, listener=False)
    assert (run.receive() or "").startswith("m1")
    run.acknowledge("m1")
    run.end()
    assert judged(run.file).verdict == "valid"


SEEN: Final[dict[tuple[str, type[LiveBroker]], tuple[list[str], str]]] = {
    # An individual acknowledgement of the last takes the mark from those before it.
    ("activemq", ActiveMq): (["m1", "m2"], "valid"),
    ("artemis", Artemis): (["m1", "m2"], "valid"),
    # The client gives them back as if they had not been delivered, and Broker-J flags them by itself.
    ("qpid-jms", Artemis): (["m1", "m2"], "valid"),
    ("qpid-jms", BrokerJ): (["m1 redelivered 2", "m2 redelivered 2"], "valid"),
}


@pytest.mark.parametrize(("library", "broker"), SEEN, ids=lambda each: each if isinstance(each, str) else each.name)
def test_a_session_is_closed_that_holds_messages(begin: Begin, library: str, broker: type[LiveBroker]) -> None:
    """What the vendors' software does, and whether the tables allow it."""
    seen = broker.SEEN.get(LIBRARIES[library].protocol, {})
    run = begin(library, f"left-{broker.name}", on=broker, ack_mode=INDIVIDUAL, **seen)
    produced(run, INDIVIDUAL, "m1", "m2", "m3")
    run.session(INDIVIDUAL, listener=False)
    assert [run.receive() for _ in range(3)] == ["m1", "m2", "m3"]
    run.acknowledge("m3")
    run.do("close")
    run.session(INDIVIDUAL, listener=False)
    again = [str(run.receive()) for _ in range(2)]
    for message in again:
        run.acknowledge(message[:2])
    run.end()
    assert (again, judged(run.file).verdict) == SEEN[library, broker]


@pytest.mark.parametrize(
    ("broker", "again", "verdict"), [(Artemis, "", "unknown"), (BrokerJ, "m1 redelivered", "valid")]
)
def test_qpid_jms_rejects_a_message(begin: Begin, broker: type[LiveBroker], again: str, verdict: str) -> None:
    """Broker-J delivers what is rejected again; Artemis moves it to a queue that no line tells of."""
    config = {"ack_mode": INDIVIDUAL, "outcomes": "undeliverable", **broker.SEEN["amqp1"]}
    run = begin("qpid-jms", f"rejected-{broker.name}", on=broker, **config)
    run.session(INDIVIDUAL, listener=False)
    run.send("m1")
    assert run.receive() == "m1"
    run.do("settle", message=f"{run.queue}-m1", outcome="rejected")
    run.do("close")
    run.session(INDIVIDUAL, listener=False)
    found = run.receive(timeout=3) or ""
    assert found.startswith(again)
    assert bool(found) is bool(again)
    if found:
        run.acknowledge("m1")
    run.end()
    assert judged(run.file).verdict == verdict
