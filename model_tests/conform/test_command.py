"""What does a command get for an answer that is none, for silence, for its death; and is it gone afterwards?"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import cli
from ackfsm.driving.conform import PROTOCOL, Command, Limits, conform, serve
from ackfsm.driving.conform._wire import claims_json, claims_of, delivery_of, depth_of, fields_of, parsed
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.terms import AckfsmError, AckMode, Consumption, DeliveryMode, Fault, InputError
from model_tests.support.commands import environment

HELLO = {"id": 1, "protocol": PROTOCOL, "name": "x", "profile": "jms", "ack_modes": ["AUTO_ACKNOWLEDGE"]}


def scripted(folder: Path, lines: list[bytes]) -> list[str]:
    """A command that answers each request with the next of these lines, whatever it was, and then ends."""
    told = folder / "answers"
    told.write_bytes(repr(lines).encode())
    program = (
        "import sys\nfor a in eval(open(sys.argv[1]).read()):\n sys.stdin.readline()\n sys.stdout.buffer.write(a)\n"
    )
    return [sys.executable, "-I", "-S", "-c", program + " sys.stdout.flush()", str(told)]


def answered(folder: Path, *answers: Mapping[str, object] | bytes) -> list[str]:
    return scripted(folder, [a if isinstance(a, bytes) else json.dumps(a).encode() + b"\n" for a in answers])


def said(argv: list[str], folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code of the command and what it says on standard error."""
    code = cli.main(
        ["conform", "--timeout", "2", "--runs", "2", "--output", str(folder / "kept"), *options, "--", *argv]
    )
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        ("no-such-program", 2, "no-such-program cannot be started (No such file or directory)"),
        ("true", 70, "ended with exit code 0 before it answered 'hello' (request 1)"),
        ("sh -c 'echo out of cheese >&2; exit 3'", 70, "exit code 3 .* the last line of its standard error: 'out of"),
        ("sh -c 'kill -9 $$'", 70, "ended with signal SIGKILL before"),
        ("sleep 60", 70, "did not answer 'hello' (request 1) within 2s and was ended"),
        ("yes", 2, "it wrote 'y', which is not JSON"),
        ("cat /dev/zero", 2, "wrote a line of more than 65,536 bytes"),
        (
            "sh -c 'while :; do echo x >&2; done'",
            70,
            "within 2s and was ended; the last line of its standard error: 'x'",
        ),
    ],
)
def test_a_command_that_does_not_do_gets_one_sentence(
    argv: str, code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, err = said(shlex.split(argv), tmp_path, capsys)
    assert found == code, err
    assert re.search(re.escape(sentence).replace(r"\.\*", ".*"), err), err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": 2}, "which has another id"),
        ({"protocol": 2}, "it speaks protocol 2; this ackfsm speaks 1"),
        ({"profile": "kafka"}, "profile cannot be 'kafka'"),
        (
            {"ack_modes": ["AUTO"]},
            'its answer says ack_modes "AUTO" (did you mean AUTO_ACKNOWLEDGE?), which is not AUTO_ACKNOWLEDGE',
        ),
        ({"ack_modes": "AUTO_ACKNOWLEDGE"}, "which is not a list"),
        ({"ack_modes": []}, "no acknowledgement mode, delivery mode or consumption is claimed"),
        ({"ack_modes": ["CLIENT_ACKNOWLEDGE"]}, "claims CLIENT_ACKNOWLEDGE and not the operation acknowledge"),
        ({"ack_modes": ["SESSION_TRANSACTED"]}, "claims SESSION_TRANSACTED and not the operation commit"),
        ({"fault": ["broker_kill"]}, "its answer has a field 'fault' (did you mean faults?); it may have "),
        ({"faults": ["listener_exception"]}, "no consumption by listener"),
        ({"settings": {"prefetch": "many"}}, "prefetch cannot be 'many'"),
        ({"settings": {"ack_mode": "AUTO_ACKNOWLEDGE"}}, "the settings name ack_mode, which the claimed modes decide"),
        ({"name": ""}, 'its answer says name "", which is not a text'),
    ],
)
def test_claims_that_cannot_be_are_refused_with_the_remedy(
    change: dict[str, object], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = said(answered(tmp_path, {**HELLO, **change}), tmp_path, capsys)
    assert (code, sentence in err) == (2, True), err


@pytest.mark.parametrize(
    ("answers", "code", "sentence"),
    [
        (
            [{"id": 2}, {"id": 3, "outcome": "maybe"}],
            2,
            'its answer says outcome "maybe", which is not confirmed, rejected, in_doubt or sent',
        ),
        ([{"id": 2}, {"id": 3}], 2, "its answer lacks 'outcome'"),
        ([{"id": 2}, {"id": 3, "error": "refused", "reason": "not today"}], 2, "it refused ('not today')"),
        ([{"id": 2}, {"id": 3, "error": "broken"}], 2, "it answered the error 'broken'"),
        ([{"id": 2}], 70, "before it answered 'send' (request 3)"),
        ([{"id": 2, "more": 1}], 2, "its answer has a field 'more'; it may have none"),
    ],
)
def test_an_answer_that_is_none_ends_the_campaign_and_says_where(
    answers: list[dict[str, object]], code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, err = said(answered(tmp_path, HELLO, *answers), tmp_path, capsys)
    assert (found, sentence in err) == (code, True), err
    assert "(in AUTO_ACKNOWLEDGE, PERSISTENT, receive; none; run 1)" in err
    assert len(err.splitlines()) == 1


def test_the_command_and_its_children_are_gone_afterwards(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ > {told}; echo no answer; exec sleep 60"
    with pytest.raises(AckfsmError), Command(["sh", "-c", script], timeout=60) as command:
        command.claims()
    for pid in map(int, told.read_text(encoding="utf-8").split()):
        assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_by_the_line_protocol_the_engine_is_judged_as_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> EngineAdapter:
        return EngineAdapter(ack_modes=[AckMode.CLIENT_ACKNOWLEDGE], seed=5)

    for name, value in environment().items():
        monkeypatch.setitem(os.environ, name, value)
    argv = [sys.executable, "-m", "ackfsm.driving.conform.engine", "--ack-mode", "CLIENT_ACKNOWLEDGE", "--seed", "5"]
    limits, faults = Limits(runs=1, wait=0.01), [None, Fault.BROKER_KILL, Fault.CONSUMER_CRASH, Fault.REJECTION]
    with Command(argv, timeout=60) as command:
        by_lines = conform(command, limits=limits, faults=faults)
    assert by_lines.as_json() == conform(asked(), limits=limits, faults=faults).as_json()


# Anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from([*HELLO, "faults", "operations", "settings", "message", "redelivered", "delivery_count"])
ANSWERS = st.dictionaries(
    FIELDS | st.sampled_from(["ready", "unacknowledged", "dead_letters", "outcome", "error"]), JSON, max_size=6
)


def refusal(read: Callable[[], object]) -> str:
    """What is said of something that cannot be read, nothing of what can."""
    try:
        read()
    except InputError as error:
        return str(error)
    return ""


@given(ANSWERS)
def test_whatever_an_answer_holds_it_is_read_or_refused(answer: dict[str, Any]) -> None:
    for read in (claims_of, delivery_of, depth_of):
        for given_fields in (answer, {**HELLO, **answer}):
            assert refusal(lambda read=read, its=given_fields: read(its)).isprintable()  # type: ignore[misc]


@given(st.binary(max_size=200))
def test_whatever_a_line_holds_it_is_an_object_or_refused(line: bytes) -> None:
    assert refusal(lambda: fields_of(parsed(line), [], parsed(line))).isprintable()


@given(st.lists(st.binary(max_size=60) | ANSWERS.map(lambda a: json.dumps(a).encode() + b"\n"), max_size=4))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_command_writes_the_campaign_ends(tmp_path: Path, lines: list[bytes]) -> None:
    """After a good hello, with the ids that are asked for where there are any."""
    numbered = [re.sub(rb'"id": [^,}]*', b'"id": %d' % n, line) for n, line in enumerate(lines, 2)]
    argv = answered(tmp_path, HELLO, *numbered)
    with Command(argv, timeout=0.5) as command:
        report = conform(command, limits=Limits(runs=1, wait=0.01))
    assert isinstance(report.stopped, AckfsmError)
    assert str(report.stopped).isprintable()


@given(
    st.sets(st.sampled_from(AckMode), min_size=1),
    st.sets(st.sampled_from(DeliveryMode)),
    st.sets(st.sampled_from(Consumption)),
)
def test_claims_go_through_the_wire_as_they_are(
    acks: set[AckMode], deliveries: set[DeliveryMode], ways: set[Consumption]
) -> None:
    claims = EngineAdapter("jms", ack_modes=sorted(acks), delivery_modes=sorted(deliveries), consumptions=sorted(ways))
    assert claims_of(parsed(json.dumps(claims_json(claims.claims())).encode())) == claims.claims()


def test_a_served_adapter_answers_each_request_with_its_id() -> None:
    requests = [
        {"id": 1, "op": "hello"},
        {"id": 2, "op": "begin", "queue": "q", "ack_mode": "AUTO_ACKNOWLEDGE", "delivery_mode": "PERSISTENT",
         "consumption": "receive"},
        {"id": 3, "op": "send", "client": "p", "queue": "q", "message": "m1"},
        {"id": 4, "op": "receive", "client": "c", "queue": "q", "timeout": 0},
        {"id": 5, "op": "depth", "queue": "q"},
        {"id": 6, "op": "fault", "fault": "broker_kill"},
        {"id": 7, "op": "depth", "queue": "q"},
        {"id": 8, "op": "restart"},
        {"id": 9, "op": "close", "client": "c"},
        {"id": 10, "op": "receive", "client": "c", "queue": "q", "timeout": 0},
    ]  # fmt: skip
    out = io.BytesIO()
    serve(EngineAdapter(), io.BytesIO("".join(f"{json.dumps(each)}\n" for each in requests).encode()), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer.pop("id") for answer in answers] == list(range(1, 11))
    assert answers[2:] == [
        {"outcome": "confirmed"},
        {"message": "m1", "redelivered": False, "delivery_count": 1},
        {"ready": 0, "unacknowledged": 0, "dead_letters": None},
        {},
        {"error": "down"},
        {},
        {},
        {"error": "closed"},
    ]
