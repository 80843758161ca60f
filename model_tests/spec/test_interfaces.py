"""``--api``: what an application cannot ask for through a programming interface is refused, and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackfsm import tables, verify
from ackfsm.cli import main
from ackfsm.engine import Broker
from ackfsm.engine.aio import AsyncBroker
from ackfsm.surveys import matrix
from ackfsm.terms import AckMode, DeliveryMode, InputError, Profile, SendMode, SpecError
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped

STANDARD = ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "SESSION_TRANSACTED")
BLOCKS = "send() blocks until the message is safe, and there is no handler to hear of it later"
MUST_WAIT = "send() of a PERSISTENT message must not return before the provider has acknowledged it"
INTERFACES = [(profile, api) for profile, table in shipped().profiles.items() for api in table.apis]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.count("\n") == 1
    return said.err


def test_every_profile_lists_its_interfaces() -> None:
    assert {profile: ", ".join(table.apis) for profile, table in shipped().profiles.items()} == {
        "jms": "JMS 1.1, JMS 2.0, JMS 2.0 simplified",
        "ems": "JMS 1.1, JMS 2.0, JMS 2.0 simplified, C, .NET",
        "solace": "native, C, JCSMP, Java RTO, .NET, JavaScript",
        "solace-jms": "JMS 1.1",
        "qpid": "JMS 1.1",
        "qpid-jms": "JMS 1.1, JMS 2.0, JMS 2.0 simplified",
        "artemis": "JMS 1.1, JMS 2.0, JMS 2.0 simplified, core",
        "activemq": "JMS 1.1, native",
        "rabbitmq": "AMQP 0-9-1",
    }


@pytest.mark.parametrize(("profile", "api"), INTERFACES)
def test_an_interface_is_spelled_as_one_likes(profile: Profile, api: str) -> None:
    table = shipped().profiles[profile]
    for spelled in (api, api.upper(), api.lower().replace(" ", "-"), f" {api.replace(' ', '_')} "):
        assert table.api(spelled) == api


@pytest.mark.parametrize(
    ("profile", "spelled", "api"),
    [
        ("jms", "simplified", "JMS 2.0 simplified"),
        ("jms", "1.1", "JMS 1.1"),
        ("jms", "jms2.0", "JMS 2.0"),
        ("ems", "net", ".NET"),
        ("rabbitmq", "amqp", "AMQP 0-9-1"),
        ("solace", "rto", "Java RTO"),
    ],
)
def test_a_part_that_no_other_interface_has_is_enough(profile: Profile, spelled: str, api: str) -> None:
    assert shipped().profiles[profile].api(spelled) == api


@pytest.mark.parametrize("spelled", ["JMS", "2.0", "JMS 3.1", "", " ", "---", "core", "simplified core", "\n"])
def test_what_is_no_interface_or_several_is_answered_with_those_that_there_are(spelled: str) -> None:
    with pytest.raises(InputError) as error:
        shipped().configure("jms", api=spelled)
    assert str(error.value).startswith("the profile jms has no API ")
    assert str(error.value).endswith("; its APIs are: JMS 1.1, JMS 2.0, JMS 2.0 simplified")


@pytest.mark.parametrize(("profile", "api"), INTERFACES)
def test_an_interface_takes_what_no_row_of_it_refuses_and_nothing_else(profile: Profile, api: str) -> None:
    """The rows of ``apis`` alone decide: compared with a walk over them."""
    table = shipped().profiles[profile]
    for delivery_mode, ack_mode, send_mode in itertools.product(DeliveryMode, AckMode, SendMode):
        settings = {"delivery_mode": delivery_mode, "ack_mode": ack_mode, "send_mode": send_mode}
        try:
            whole = shipped().configure(profile, settings)
        except InputError:
            with pytest.raises(InputError):
                shipped().configure(profile, settings, api=api)
            continue
        environment = shipped().environment(whole)
        if any(row.when is not None and row.when.holds(environment) for row in table.apis[api]):
            with pytest.raises(InputError, match=f"^the profile {profile} through {api} does not have "):
                shipped().configure(profile, settings, api=api)
        else:
            assert shipped().configure(profile, settings, api=api) == whole


@pytest.mark.parametrize(
    ("profile", "api", "settings", "said"),
    [
        ("jms", "jms-1.1", "send_mode=asynchronous", BLOCKS),
        ("jms", "jms-1.1", "send_mode=unconfirmed", MUST_WAIT),
        ("jms", "jms-2.0", "send_mode=unconfirmed", MUST_WAIT),
        ("jms", "simplified", "send_mode=unconfirmed", MUST_WAIT),
        ("jms", "jms-2.0", "ack_mode=NO_ACKNOWLEDGE", "one of the four modes of the standard"),
        ("solace-jms", None, "send_mode=unconfirmed", MUST_WAIT),
        ("ems", "simplified", "ack_mode=EXPLICIT_CLIENT_ACKNOWLEDGE", "does not support the extended session modes"),
        ("artemis", "jms-1.1", "send_mode=asynchronous", "a CompletionListener is of JMS 2.0"),
        ("activemq", "jms-1.1", "send_mode=asynchronous", "AsyncCallback is an argument of the client's own classes"),
        ("solace", "javascript", "ack_mode=SESSION_TRANSACTED", "session transactions are in the APIs for "),
        ("solace", "native", "send_mode=unconfirmed", "the broker acknowledges every guaranteed message"),
    ],
)
def test_what_an_interface_does_not_have(
    profile: str, api: str | None, settings: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--profile", profile, "--set", settings, *([] if api is None else ["--api", api])]
    for command in (["check"], ["explain"], ["export"], ["draw"]):
        sentence = refused(capsys, *command, *words)
        assert said in sentence
        assert (" through " in sentence) == (api is not None)
    fixed = {"ack_mode": "AUTO_ACKNOWLEDGE", "delivery_mode": "PERSISTENT"}
    rest = [word for key, value in fixed.items() if key not in settings for word in ("--set", f"{key}={value}")]
    assert said in refused(capsys, "matrix", *words, *rest)


@pytest.mark.parametrize(
    ("profile", "api", "settings"),
    [
        ("jms", "jms-1.1", {"send_mode": "unconfirmed", "delivery_mode": "NON_PERSISTENT"}),
        ("jms", "jms-1.1", {"send_mode": "unconfirmed", "ack_mode": "SESSION_TRANSACTED"}),
        ("jms", None, {"send_mode": "unconfirmed"}),
        ("solace-jms", "jms-1.1", {"send_mode": "unconfirmed", "ack_mode": "SESSION_TRANSACTED"}),
        ("solace-jms", "jms-1.1", {"delivery_mode": "NON_PERSISTENT"}),
        ("artemis", "core", {"send_mode": "unconfirmed"}),
        ("qpid", "jms-1.1", {}),
        ("artemis", "core", {"send_mode": "asynchronous"}),
        ("activemq", "native", {"send_mode": "asynchronous"}),
        ("solace", "jcsmp", {"ack_mode": "SESSION_TRANSACTED"}),
    ],
)
def test_what_an_interface_has(profile: str, api: str | None, settings: Mapping[str, object]) -> None:
    """A send of a PERSISTENT message that nobody waits for is legal where a native API, or a vendor, has it."""
    chosen = shipped().configure(profile, settings, api=api)
    assert chosen == shipped().configure(profile, settings)
    assert {key: getattr(chosen, key) for key in settings} == settings
    if profile == "qpid":
        assert (chosen.delivery_mode, chosen.send_mode) == ("PERSISTENT", "unconfirmed")


def test_check_tells_the_interface_and_counts_what_it_counts_without(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", "--profile", "ems", "--fault", "broker_crash")
    code, through = run(capsys, *words, "--api", "SIMPLIFIED")
    assert through.pop("api") == "JMS 2.0 simplified"
    plain = run(capsys, *words)
    assert (code, through | {"seconds": 0}) == (plain[0], plain[1] | {"seconds": 0})
    assert main([*words, "--api", "SIMPLIFIED"]) == code
    assert capsys.readouterr().out.startswith("through JMS 2.0 simplified\n")
    assert "is given more than once" in _usage(capsys, *words, "--api", "c", "--api", "c")


def _usage(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_matrix_leaves_out_what_the_interface_refuses_and_counts_it() -> None:
    whole = matrix.make_plan(shipped(), "ems")
    plan = matrix.make_plan(shipped(), "ems", api="simplified")
    assert (whole.api, plan.api) == (None, "JMS 2.0 simplified")
    gone = set(whole.configurations) - set(plan.configurations)
    assert {one.ack_mode for one in gone} == {
        "NO_ACKNOWLEDGE",
        "EXPLICIT_CLIENT_ACKNOWLEDGE",
        "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE",
    }
    assert set(plan.configurations) < set(whole.configurations)
    why = "ack_mode: the simplified API does not support the extended session modes"
    counts = {row.because: row.count for row in plan.left_out}
    before = {row.because: row.count for row in whole.left_out}
    assert counts.pop(why) - len(gone) == sum(before.values()) - sum(counts.values()), (
        "said once, by the interface first"
    )
    assert counts.keys() <= before.keys()
    with pytest.raises(InputError, match="no configuration is left to be explored: ack_mode: the simplified API"):
        matrix.make_plan(shipped(), "ems", {"ack_mode": "NO_ACKNOWLEDGE"}, api="simplified")
    with pytest.raises(InputError, match="has no API 'core'"):
        matrix.make_plan(shipped(), "ems", api="core")


def test_a_matrix_tells_the_interface(capsys: pytest.CaptureFixture[str]) -> None:
    kept = ("journal_sync_non_transactional", "journal_sync_transactional", "redelivery_mark_persisted")
    fixed = {"delivery_mode": "PERSISTENT", "consumption": "receive", **dict.fromkeys(kept, "true")}
    words = ("matrix", "--no-pairs", "--jobs", "1", "--api", "jms-1.1", "--set", "resend_in_doubt=false")
    code, found = run(capsys, *words, *(word for key, value in fixed.items() for word in ("--set", f"{key}={value}")))
    assert (code, found["api"]) == (0, "JMS 1.1")
    assert {line["ack_mode"] for line in found["lines"]} == {*STANDARD}
    why = [row["because"] for row in found["left_out"]]
    assert all(any(said in because for because in why) for said in (BLOCKS, MUST_WAIT, "four modes of the standard"))
    assert main([*words, "--set", "delivery_mode=NON_PERSISTENT", "--set", "ack_mode=DUPS_OK_ACKNOWLEDGE"]) == 0
    assert capsys.readouterr().out.startswith("jms through JMS 1.1: ")


# the engine


def _refuses(call: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert said in str(error.value)


def test_the_engine_refuses_a_session_in_a_mode_that_the_interface_does_not_have() -> None:
    broker = Broker("ems", api="simplified", specification=shipped())
    assert broker.api == broker.connect().api == "JMS 2.0 simplified"
    connection = broker.connect()
    _refuses(lambda: connection.session("EXPLICIT_CLIENT_ACKNOWLEDGE"), "through JMS 2.0 simplified does not have ")
    assert not connection.sessions
    assert connection.session("CLIENT_ACKNOWLEDGE").configuration.ack_mode == "CLIENT_ACKNOWLEDGE"
    classic = broker.connect(api="jms-2.0")
    assert classic.session("EXPLICIT_CLIENT_ACKNOWLEDGE").api == "JMS 2.0"
    _refuses(lambda: broker.connect(api="core"), "the profile ems has no API 'core'")
    _refuses(lambda: broker.connect(api=1), "api cannot be 1; it is text")  # type: ignore[arg-type]
    mode = "NO_ACKNOWLEDGE"
    _refuses(lambda: Broker("ems", api="simplified", specification=shipped(), ack_mode=mode), "extended session modes")
    _refuses(lambda: Broker("ems", api="core", specification=shipped()), "has no API 'core'")


def test_the_engine_refuses_a_producer_and_a_message_that_the_interface_does_not_have() -> None:
    broker = Broker(api="jms-1.1", specification=shipped())
    connection = broker.connect()
    _refuses(lambda: connection.session(send_mode="asynchronous").producer("q"), BLOCKS)
    _refuses(lambda: connection.session(send_mode="unconfirmed").producer("q"), MUST_WAIT)
    session = connection.session(send_mode="unconfirmed", delivery_mode="NON_PERSISTENT")
    producer = session.producer("q")
    producer.send(b"1")
    _refuses(lambda: producer.send(b"2", delivery_mode="PERSISTENT"), MUST_WAIT)
    _refuses(lambda: producer.send(b"3", delivery_mode="DIRECT"), "the standard has two delivery modes")
    assert broker.queues["q"].length == 1, "a refused message is not sent"


def test_a_message_of_another_delivery_mode_has_that_modes_defaults() -> None:
    """A system's refusals hold for it too, and a PERSISTENT send is waited for although the session's are not."""
    broker = Broker("ems", specification=shipped())
    producer = broker.connect().session(delivery_mode="NON_PERSISTENT").producer("q")
    _refuses(lambda: producer.send(b"", delivery_mode="DIRECT"), "it belongs to Solace")
    modes = [producer.send(b"", delivery_mode=mode).outcome for mode in ("PERSISTENT", "RELIABLE")]
    assert modes == ["confirmed", "open"] or modes[0] == "confirmed" != modes[1]


def test_what_the_broker_does_of_its_own_is_no_application_of_the_interface() -> None:
    broker = Broker("jms", api="jms-1.1", specification=shipped(), history=True)
    broker.connect().session().producer("q").send(b"")
    assert broker.purge("q") == 1
    assert broker.history
    assert broker.history.header["api"] == "JMS 1.1"


def test_tasks_use_an_interface_too() -> None:
    async def go() -> None:
        broker = AsyncBroker(Broker("artemis", specification=shipped()))
        async with broker.connect(api="core") as connection:
            assert connection.session().session.api == "core"
        async with broker.connect(api="jms-1.1") as connection:
            _refuses(connection.session, "a CompletionListener is of JMS 2.0")

    asyncio.run(go())


# histories

EVENTS = ({"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"},)


def recorded(path: Path, header: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in ({"ackfsm_history": 1, **header}, *EVENTS)))
    return path


CLIENT = {"config": {"profile": "ems", "ack_mode": "EXPLICIT_CLIENT_ACKNOWLEDGE"}}


def test_a_history_of_a_configuration_that_its_interface_cannot_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "h.jsonl", {**CLIENT, "api": "JMS 2.0 simplified"})
    sentence = refused(capsys, "verify", str(path))
    said = "its header: the profile ems through JMS 2.0 simplified does not have ack_mode=EXPLICIT_CLIENT_ACKNOWLEDGE"
    assert sentence.startswith(f"ackfsm verify: {path}, line 1, {said}: ")
    assert main(["verify", str(path), "--api", "c"]) == 3, "the option goes before the header"
    assert "missing_outcome of 1 message" in capsys.readouterr().out
    over = refused(capsys, "verify", str(recorded(path, CLIENT)), "--api", "simplified")
    assert f"{path}, line 1, its header with --api over it: the profile ems through " in over
    none = refused(capsys, "verify", str(recorded(path, {**CLIENT, "api": "core"})))
    assert none.endswith("has no API 'core'; its APIs are: JMS 1.1, JMS 2.0, JMS 2.0 simplified, C, .NET\n")


def test_the_interface_may_stand_beside_the_history_or_in_its_metadata(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = pa.Table.from_pylist(list(EVENTS)).schema
    parts = {"ackfsm_history": "1", "config": json.dumps(CLIENT["config"]), "api": "simplified"}
    path = tmp_path / "h.parquet"
    pq.write_table(pa.Table.from_pylist(list(EVENTS), schema.with_metadata(parts)), path)
    assert verify.read_header(path) == verify.Header(CLIENT["config"], None, "simplified")
    assert f"{path}, schema metadata, its header: the profile ems through " in refused(capsys, "verify", str(path))
    lines = recorded(tmp_path / "h.jsonl", CLIENT)
    beside = tmp_path / "h.jsonl.header.json"
    beside.write_text('{"ackfsm_history": 1, "api": "simplified"}')
    assert verify.read(lines).header == verify.Header(CLIENT["config"], None, "simplified")
    assert f"{lines}, line 1, its header: the profile ems through " in refused(capsys, "verify", str(lines))
    recorded(lines, {**CLIENT, "api": "C"})
    with pytest.raises(InputError, match=r" names another `api` than .*header\.json; correct one of them$"):
        verify.read(lines)
    with pytest.raises(InputError, match="line 1: `api` must be the name of a programming interface, as text"):
        verify.read_header(recorded(tmp_path / "g.jsonl", {"api": 11}))
    whole = {"ackfsm_history": json.dumps({"ackfsm_history": 1}), "api": "C"}
    pq.write_table(pa.Table.from_pylist(list(EVENTS), schema.with_metadata(whole)), path)
    with pytest.raises(InputError, match="'api' stands beside a whole header; keep one of them"):
        verify.read_header(path)


def test_an_interface_alone_is_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path / "h.jsonl", {"api": "jms-1.1"})
    main(["verify", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["config"]["profile"] == "jms"
    assert "has no API 'core'" in refused(capsys, "verify", str(recorded(path, {"api": "core"})))


# the tables

DAMAGES = {
    "refuses the defaults": (
        "profiles/solace-jms.yaml",
        "refuses the profile's own defaults",
        "    - when: send_mode == 'asynchronous'\n      because: no further",
        f"{HERE}    - when: send_mode == 'blocking'\n      because: no further",
    ),
    "spelled alike": ("profiles/ems.yaml", "is spelled like 'C'; rename it", "  .NET: []\n", f"{HERE}  c: []\n"),
    "without a letter": ("profiles/ems.yaml", "neither a letter nor a number", "  .NET: []\n", f"{HERE}  '-': []\n"),
}


@pytest.mark.parametrize(("file", "says", "old", "new"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_to_an_interface_is_named(file: str, says: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, file, (old, new))
    with pytest.raises(SpecError, match=f"spec/{file}:\\d+: .*{says}") as error:
        tables.load(spec)
    assert line
    assert f"{file}:{line}:" in str(error.value) or "own defaults" in says


def test_a_row_that_is_taken_out_is_no_longer_enforced(tmp_path: Path) -> None:
    """The mutant: with the row gone the interface takes what it refused, so that nothing but the row decides."""
    spec = copy_of_spec(tmp_path)
    replace(spec, "profiles/artemis.yaml", ("    - when: send_mode == 'asynchronous'", "    - when: prefetch == 77"))
    mutant = tables.load(spec)
    assert mutant.configure("artemis", {"send_mode": "asynchronous"}, api="jms-1.1").send_mode == "asynchronous"
    with pytest.raises(InputError, match="a CompletionListener is of JMS"):
        mutant.configure("artemis", {"prefetch": 77}, api="jms-1.1")
