"""Names of settings that vendors have: translated values, conditions, several for one setting, connection URLs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.cli import main
from ackfsm.engine import Broker
from ackfsm.surveys import matrix
from ackfsm.tables.lookup import Lookup
from ackfsm.terms import InputError, Profile, SendMode, SpecError
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped

P, N, TX = "PERSISTENT", "NON_PERSISTENT", "SESSION_TRANSACTED"
ANY_WINDOW = 2**31 - 1


def sets(words: str) -> dict[str, object]:
    return {name: value for name, _, value in (word.partition("=") for word in words.split())}


@pytest.mark.parametrize(
    ("profile", "names", "under", "found"),
    [
        ("artemis", "blockOnDurableSend=false", {}, {"send_mode": "unconfirmed"}),
        ("artemis", "blockOnDurableSend=false", {"delivery_mode": N}, {"send_mode": "unconfirmed"}),
        ("artemis", "blockOnNonDurableSend=true", {"delivery_mode": N}, {"send_mode": "blocking"}),
        ("artemis", "blockOnNonDurableSend=true", {}, {"send_mode": "blocking"}),
        ("artemis", "blockOnDurableSend=false blockOnNonDurableSend=true", {}, {"send_mode": "unconfirmed"}),
        (
            "artemis",
            "blockOnDurableSend=false blockOnNonDurableSend=true",
            {"delivery_mode": N},
            {"send_mode": "blocking"},
        ),
        ("artemis", "blockOnDurableSend=false", {"ack_mode": TX}, {"send_mode": "blocking"}),
        ("artemis", "confirmationWindowSize=10MiB", {}, {"publish_window": ANY_WINDOW}),
        ("artemis", "confirmationWindowSize=10485760", {}, {"publish_window": ANY_WINDOW}),
        ("artemis", "confirmationWindowSize=1", {}, {"publish_window": ANY_WINDOW}),
        ("artemis", "confirmationWindowSize=-1", {}, {"publish_window": None}),
        ("artemis", "max-delivery-attempts=-1", {}, {"max_delivery_attempts": 0}),
        ("ems", "npsend_check_mode=always", {"delivery_mode": N}, {"send_mode": "blocking"}),
        ("ems", "npsend_check_mode=never", {"delivery_mode": N}, {"send_mode": "unconfirmed"}),
        ("ems", "npsend_check_mode=never", {}, {"send_mode": "blocking"}),
        ("ems", "npsend_check_mode=always", {"delivery_mode": "RELIABLE"}, {"send_mode": "unconfirmed"}),
        ("ems", "mode=sync", {}, {"journal_sync_non_transactional": True, "journal_sync_transactional": True}),
        (
            "solace-jms",
            "DirectTransport=false",
            {"delivery_mode": N},
            {"send_mode": "blocking", "non_persistent_handling": "stored", "prefetch": 18},
        ),
        (
            "solace-jms",
            "DirectTransport=true",
            {"delivery_mode": N},
            {"send_mode": "unconfirmed", "non_persistent_handling": "direct"},
        ),
        ("solace-jms", "DirectTransport=false", {}, {"non_persistent_handling": "direct"}),
        ("solace-jms", "SendADWindowSize=9", {"delivery_mode": N}, {"publish_window": 9, "confirm_threshold": 3}),
        ("solace-jms", "SendADWindowSize=9", {}, {"publish_window": 1}),
        ("solace", "maxRedeliveryCount=3", {}, {"max_delivery_attempts": 4}),
        ("solace", "maxRedeliveryCount=0", {}, {"max_delivery_attempts": 0}),
        ("qpid", "sync_publish=all", {}, {"send_mode": "blocking"}),
        ("qpid", "sync_client_ack=false", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"block_on_acknowledge": False}),
        ("qpid", "sync_client_ack=true", {}, {"block_on_acknowledge": False}),
        ("qpid-jms", "jms.forceSyncSend=true", {"delivery_mode": N}, {"send_mode": "blocking"}),
        ("qpid-jms", "jms.forceSyncSend=false", {"delivery_mode": N}, {"send_mode": "unconfirmed"}),
        ("qpid-jms", "jms.forceSyncSend=false jms.forceAsyncSend=true", {}, {"send_mode": "unconfirmed"}),
        ("qpid-jms", "jms.redeliveryPolicy.maxRedeliveries=-1", {}, {"max_delivery_attempts": 0}),
        ("qpid-jms", "jms.prefetchPolicy.queuePrefetch=7", {}, {"prefetch": 7}),
        ("activemq", "sendAcksAsync=FALSE", {}, {"block_on_acknowledge": True}),
        ("activemq", "maximumRedeliveries=0", {}, {"max_delivery_attempts": 1}),
        ("rabbitmq", "autoAck=true", {}, {"ack_mode": "NO_ACKNOWLEDGE", "prefetch_freed": "on_dispatch"}),
    ],
)
def test_what_a_vendors_name_sets(
    profile: str, names: str, under: Mapping[str, object], found: Mapping[str, object]
) -> None:
    table = shipped().profiles[profile]
    spaced = {name.replace(" ", "").casefold(): name for name in table.names}
    chosen = shipped().configure(profile, {spaced[n.casefold()]: v for n, v in sets(names).items()} | dict(under))
    assert {key: getattr(chosen, key) for key in found} == found
    others = {key: value for key, value in chosen.as_dict().items() if key not in found and key != "profile"}
    plain = shipped().configure(profile, dict(under)).as_dict()
    assert others == {key: plain[key] for key in others}, "a name sets what it stands for and nothing else"


@pytest.mark.parametrize(
    ("profile", "names", "said"),
    [
        ("artemis", "blockOnDurableSend=false send_mode=blocking", "are one setting, given twice; keep one of them"),
        ("qpid-jms", "jms.forceSyncSend=true jms.forceAsyncSend=true", "are one setting, given twice"),
        ("artemis", "blockOnDurableSend=maybe", "is true, false there, not 'maybe'"),
        ("artemis", "confirmationWindowSize=0", "keeps no command for replay"),
        ("artemis", "confirmationWindowSize=-2", "it counts bytes of commands kept for replay"),
        ("artemis", "confirmationWindowSize=10MiB publish_window=3", "are one setting, given twice"),
        (
            "ems",
            "npsend_check_mode=auth",
            "npsend_check_mode='auth' of ems is not send_mode by another name: what it is",
        ),
        ("qpid-jms", "jms.prefetchPolicy.queuePrefetch=0", "=0 of qpid-jms fetches one message for each receive()"),
        ("activemq", "maximumRedeliveries=some", "max_delivery_attempts cannot be 'some'"),
        ("solace-jms", "Direct\u00a0Transport=true", "there is no setting"),
    ],
)
def test_what_means_nothing_here_is_refused(profile: str, names: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        shipped().configure(profile, sets(names.replace("\u00a0", "_")))
    assert said in str(error.value)


def test_two_names_that_contradict_each_other_in_a_configuration_are_refused() -> None:
    written = (("a=1", SendMode.BLOCKING), ("b=1", SendMode.UNCONFIRMED))
    always = tables.ConditionalValue(tuple(tables.Option(name, tables.ALWAYS, value) for name, value in written))
    with pytest.raises(InputError, match=r"^a=1 and b=1 contradict each other here; keep one of them$"):
        shipped().configure("artemis", {"send_mode": always})


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    main([*words, "--json"])
    said = capsys.readouterr()
    return json.loads(said.out), said.err


CHECK = ("check", "--profile", "artemis", "--fault", "broker_crash")


def test_a_name_that_changes_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    both = ("--set", "blockOnDurableSend=false", "--set", "blockOnNonDurableSend=true")
    answer, said = run(capsys, *CHECK, *both)
    assert answer["config"]["send_mode"] == "unconfirmed"
    assert said == (
        "ackfsm check: note: blockOnNonDurableSend=true changes nothing in this configuration; "
        "it is for delivery_mode == 'NON_PERSISTENT' and not transacted\n"
    )
    answer, said = run(capsys, *CHECK, "--set", "delivery_mode=NON_PERSISTENT", both[0], both[1])
    assert (answer["config"]["send_mode"], said.count("note:")) == ("unconfirmed", 1)


def test_a_matrix_has_the_value_where_the_name_is_for_it_and_all_values_elsewhere() -> None:
    whole = matrix.make_plan(shipped(), "artemis").configurations
    plan = matrix.make_plan(shipped(), "artemis", {"blockOnDurableSend": "false"}).configurations
    wanted = [c for c in whole if c.send_mode == "unconfirmed" or c.delivery_mode != P or c.ack_mode == TX]
    assert set(plan) == set(wanted)
    assert len(plan) == len(wanted) < len(whole)


def test_over_a_header_a_name_leaves_what_it_is_not_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "h.jsonl"
    event = {"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"}
    for mode, sent in ((N, "blocking"), (P, "unconfirmed")):
        header = {"profile": "artemis", "delivery_mode": mode, "send_mode": "blocking"}
        lines = ({"ackfsm_history": 1, "config": header}, event)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        for option in (("--set", "blockOnDurableSend=false"), ("--url", "tcp://h:1?blockOnDurableSend=false")):
            answer, _ = run(capsys, "verify", str(path), *option)
            assert answer["config"]["send_mode"] == sent


def test_the_engine_takes_the_names_for_every_message() -> None:
    broker = Broker("artemis", specification=shipped(), blockOnDurableSend=False, blockOnNonDurableSend=True)
    producer = broker.connect().session().producer("q")
    assert [producer.send(delivery_mode=mode).outcome for mode in (P, N)] == ["unconfirmed", "confirmed"]
    windowed = Broker("artemis", specification=shipped(), confirmationWindowSize="10MiB", send_mode="asynchronous")
    filling = windowed.connect().session().producer("q")
    sent = [filling.send() for _ in range(3)]
    filling.wait()
    assert [message.outcome for message in sent] == ["confirmed"] * 3, "and no table of 2^31 states is made"


def test_where_knows_them() -> None:
    lookup = Lookup(shipped())
    (answer,) = lookup.find("blockOnDurableSend=false", Profile.ARTEMIS)
    assert answer.name == "send_mode=unconfirmed"
    (answer,) = lookup.find("blockOnDurableSend")
    assert answer.summary[0] == (
        "blockOnDurableSend of artemis is send_mode, for delivery_mode == 'PERSISTENT' and not transacted"
    )
    with pytest.raises(InputError, match=r"jms.forceSyncSend=false of qpid-jms leaves its setting as it is"):
        lookup.find("jms.forceSyncSend=false", Profile.QPID_JMS)


# URLs


@pytest.mark.parametrize(
    ("profile", "url", "found", "unknown"),
    [
        (
            "artemis",
            "tcp://host:61616?blockOnDurableSend=false&confirmationWindowSize=10MiB",
            {"send_mode": "unconfirmed", "publish_window": ANY_WINDOW},
            "",
        ),
        ("artemis", "tcp://host:61616?BLOCKONDURABLESEND=False", {"send_mode": "unconfirmed"}, ""),
        ("artemis", "tcp://host:61616", {}, ""),
        (
            "artemis",
            "(tcp://a:1,tcp://b:2)?ha=true&retryInterval=100&blockOnAcknowledge=true",
            {"session_reattachment": False},
            "ha, retryInterval",
        ),
        (
            "artemis",
            "tcp://a:1?confirmationWindowSize=1048576&reconnectAttempts=-1",
            {"session_reattachment": True},
            "",
        ),
        (
            "artemis",
            "tcp://a:1?reconnectAttempts=0&confirmationWindowSize=1048576",
            {"session_reattachment": False},
            "",
        ),
        ("artemis", "tcp://[::1]:1?confirmationWindowSize=-1&x=%41%26", {"publish_window": None}, "x"),
        (
            "qpid-jms",
            "amqp://host:5672?jms.forceSyncSend=true&jms.prefetchPolicy.queuePrefetch=10",
            {"send_mode": "blocking", "prefetch": 10},
            "",
        ),
        (
            "qpid-jms",
            "failover:(amqp://a:5672?transport.tcpNoDelay=true,amqp://b:5672)?jms.redeliveryPolicy.maxRedeliveries=2",
            {"max_delivery_attempts": 3},
            "transport.tcpNoDelay",
        ),
        (
            "activemq",
            "failover:(tcp://a:61616)?jms.useAsyncSend=true&jms.prefetchPolicy.queuePrefetch=1&randomize=",
            {"send_mode": "unconfirmed", "prefetch": 1},
            "randomize",
        ),
        (
            "qpid",
            "amqp://guest:guest@id/?maxprefetch='10'&sync_publish='all'&brokerlist='tcp://localhost:5672'",
            {"send_mode": "blocking", "prefetch": 10},
            "brokerlist",
        ),
    ],
)
def test_a_connection_url_sets_what_its_parameters_name(
    profile: str, url: str, found: Mapping[str, object], unknown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, said = run(capsys, "check", "--profile", profile, "--fault", "broker_crash", "--url", url)
    assert {key: answer["config"][key] for key in found} == found
    told = f"ackfsm check: note: the tables do not know these parameters of the URL: {unknown}\n"
    assert said == (told if unknown else "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--url", "tcp://u:secret@h:1?consumerWindowSize=0"),
            "consumerWindowSize of artemis is not prefetch by another",
        ),
        (
            ("--url", "tcp://h:1?blockOnDurableSend=false&blockOnDurableSend=true"),
            "'blockOnDurableSend' more than once",
        ),
        (
            ("--url", "tcp://h:1?blockOnDurableSend=false", "--set", "blockOnDurableSend=true"),
            "--url and --set both say 'blockOnDurableSend'; say it once",
        ),
        (
            ("--url", "tcp://h:1?blockOnDurableSend=false", "--set", "send_mode=blocking"),
            "are one setting, given twice",
        ),
        (("--url", "tcp://h:1?jms.forceSyncSend=true"), "'jms.forceSyncSend' is in URLs of qpid-jms; name that system"),
        (("--url", "host:secret?x"), "cannot be read: its host, or parameters"),
        (("--url", "//secret"), "--url is no URL; it begins with a scheme"),
        (("--url", "tcp://secret[:1?ha=true"), "cannot be read"),
        (("--url", "tcp://secret?ha=%ff"), "cannot be read"),
        (("--url", ""), "--url is no URL"),
    ],
)
def test_a_url_that_cannot_be_heeded_is_refused_without_a_word_of_it(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CHECK, *options]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.count("\n") == 1
    assert said in told.err
    assert "secret" not in told.err


@given(
    st.sampled_from(list(Profile)),
    st.one_of(st.text(), st.from_regex(r"(tcp|failover):[(]?//[a-z:?&=%(),'\[\]]*")),
)
def test_whatever_a_url_is_it_is_read_or_refused(profile: Profile, url: str) -> None:
    try:
        found, unknown = shipped().url_settings(profile, url)
    except InputError:
        return
    assert not {*found} & {*unknown}
    assert all(shipped().profiles[profile].vendor_alias(name) for name in found)


SPELLED = ("true", "false", "-1", "0", "1", "7", "10MiB", "none", "1e9", "always", "all", "\N{SUPERSCRIPT TWO}")


@given(st.data())
def test_whatever_a_name_is_given_is_a_configuration_or_refused(data: st.DataObject) -> None:
    profile = data.draw(st.sampled_from(list(Profile)))
    names = shipped().profiles[profile].names
    values = st.one_of(st.sampled_from(SPELLED), st.text(max_size=6))
    chosen = data.draw(st.dictionaries(st.sampled_from([own.name for own in names.values()]), values, max_size=3))
    mode = data.draw(st.sampled_from([P, N]))
    try:
        configuration = shipped().configure(profile, {**chosen, "delivery_mode": mode})
    except InputError:
        return
    assert shipped().configure(None, configuration.as_dict()) == configuration


def test_a_parameter_cannot_act_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = run(capsys, *CHECK, "--url", "tcp://h:1?%1b[2J=1&%0Aackfsm:+promised=2")
    assert said == (
        "ackfsm check: note: the tables do not know these parameters of the URL: \\x1b[2J, \\nackfsm: promised\n"
    )


DIRECT_TRANSPORT = """    key: non_persistent_handling
    when: delivery_mode == 'NON_PERSISTENT' and not transacted
    values: {"true": direct, "false": stored}
"""


# the tables

WINDOW = '  confirmationWindowSize:\n    key: publish_window\n    values: {"-1": null}\n'
DURABLE = "    when: delivery_mode == 'PERSISTENT' and not transacted\n"
VALUES = '    values: {"true": blocking, "false": unconfirmed}\n'
SOURCE = "    source: 004 non-transactional sends\n  blockOnNonDurableSend:"
DAMAGES = {
    "no value under a condition": ("artemis", "has a condition; say what its values are", f"{VALUES}{SOURCE}", SOURCE),
    "a condition on a later setting": (
        "artemis",
        "may only read settings before send_mode, not prefetch",
        DURABLE,
        f"{HERE}    when: prefetch == 3\n",
    ),
    "a condition on the check": ("artemis", "not messages", DURABLE, f"{HERE}    when: messages == 1\n"),
    "an unknown value": (
        "artemis",
        "send_mode cannot be 'maybe'",
        f"{VALUES}{SOURCE}",
        f'{HERE}    values: {{"true": maybe}}\n{SOURCE}',
    ),
    "a value twice": (
        "qpid-jms",
        "says twice what 'true' is",
        '    leaves: ["false"]\n    source: QJ JmsSession\n  jms.forceAsync',
        f'{HERE}    refuses: {{"true": is odd}}\n    source: QJ JmsSession\n  jms.forceAsync',
    ),
    "a value of one of two": (
        "solace-jms",
        "ack_mode is none of them",
        DIRECT_TRANSPORT,
        f"""    key: [send_mode, non_persistent_handling]
    values:
{HERE}      "true": {{send_mode: unconfirmed, ack_mode: AUTO_ACKNOWLEDGE}}
      "false": {{send_mode: blocking, non_persistent_handling: stored}}
""",
    ),
    "two names in a URL": (
        "activemq",
        "is called the same in a URL; keep one of them",
        "    url: jms.alwaysSyncSend\n",
        f"{HERE}    url: jms.useAsyncSend\n",
    ),
    "a size that is none": (
        "artemis",
        "publish_window cannot be 'many'",
        f"{WINDOW}    positive: 2147483647",
        f"{WINDOW}{HERE}    positive: many",
    ),
}


@pytest.mark.parametrize(("profile", "says", "old", "new"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_to_a_name_is_named(profile: str, says: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, f"profiles/{profile}.yaml", (old, new))
    with pytest.raises(SpecError, match=f"spec/profiles/{profile}.yaml:\\d+: ") as error:
        tables.load(spec)
    assert says in str(error.value)
