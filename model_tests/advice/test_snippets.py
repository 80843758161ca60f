"""Snippets: every setting that is not the default is named, what a URL says is read back, and each syntax is one."""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import itertools
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel

from ackfsm import tables
from ackfsm.cli._options import settings_of
from ackfsm.driving.live.brokers.artemis import JARS
from ackfsm.driving.live.java import compiled, jars
from ackfsm.surveys import matrix
from ackfsm.surveys.advice import CANNOT, UNSAID, Snippet, Snippets, snippets_of
from ackfsm.tables import Document, Specification, read_form
from ackfsm.terms import Configuration, InputError, Profile, SpecError
from model_tests.support.brokers import had
from model_tests.support.places import SPEC
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped
from model_tests.support.whole import before_a_release, few

_NUMBERS: dict[str, list[Any]] = {
    "publish_window": [None, 0, 1, 50, 255, 2147483647],
    "prefetch": [0, 1, 10, 255, 10_000],
    "max_delivery_attempts": [0, 1, 2, 5],
    "duplicate_detection": [True],
}
"""Values that no matrix varies."""

_URL = "connection URL"

_NOTED = {"the tables do not know these parameters of the URL: brokerlist"}
"""Notes that are known."""


@functools.cache
def drawn(profile: str) -> tuple[Configuration, ...]:
    """Every legal configuration of the matrix, and some of them with each of these numbers."""
    whole = matrix.make_plan(shipped(), profile).configurations
    others = itertools.cycle(whole)
    table = shipped().profiles[profile]
    found = [*whole]
    for key, values in _NUMBERS.items():
        for value in values:
            for _ in range(40):
                changed = shipped().varied(next(others), **{key: value})
                if not any(table.refused(changed.as_dict())):
                    found.append(changed)
    return tuple(found)


def chosen(configuration: Configuration) -> dict[str, Any]:
    return shipped().profiles[configuration.profile].chosen(configuration.as_dict())


@functools.cache
def shipped_snippets(profile: str) -> tuple[tuple[Configuration, tuple[Snippet, ...]], ...]:
    """What the tables as they are have for each of these configurations; most tests look at all of it."""
    return tuple(_written(profile, Snippets(shipped())))


def _written(profile: str, book: Snippets) -> Iterator[tuple[Configuration, tuple[Snippet, ...]]]:
    return ((configuration, tuple(book.of(configuration))) for configuration in drawn(profile))


def everything(profile: str, directory: Path | None = None) -> Iterator[tuple[Configuration, Snippet]]:
    written = shipped_snippets(profile) if directory is None else _written(profile, Snippets(shipped(), directory))
    return ((configuration, snippet) for configuration, snippets in written for snippet in snippets)


# (a) Nothing is left out.


@pytest.mark.parametrize("profile", few([*Profile], 3))
def test_every_setting_that_is_not_the_default_is_named(profile: Profile) -> None:
    for configuration, snippets in shipped_snippets(profile):
        named = {key for snippet in snippets for key in snippet.sets}
        assert chosen(configuration).keys() - named == set(), configuration
        assert all(snippet.where != UNSAID for snippet in snippets)


@pytest.mark.parametrize("profile", Profile)
def test_what_cannot_be_asked_for_says_why(profile: Profile) -> None:
    seldom = [one for settings in _SELDOM if (one := supported(profile, settings)) is not None]
    snippets = [*everything(profile), *((one, each) for one in seldom for each in snippets_of(shipped(), one))]
    told = {snippet.text for _, snippet in snippets if snippet.where == CANNOT}
    assert all(re.match(r"[a-z_]+=\S+(?: and [a-z_]+=\S+)*: \S", " ".join(text.split())) for text in told)
    file = yaml.safe_load((SPEC / "snippets" / f"{profile}.yaml").read_text(encoding="utf-8"))
    flat = " ".join(" ".join(told).split())
    unseen = [row["because"] for row in file.get("cannot", ()) if " ".join(row["because"].split()) not in flat]
    assert unseen == []


def supported(profile: Profile, settings: dict[str, object]) -> Configuration | None:
    """The configuration, unless the system does not have it."""
    try:
        return shipped().configure(profile, settings)
    except InputError:
        return None


_SELDOM: list[dict[str, object]] = [
    {"journal_sync_non_transactional": "written", "max_delivery_attempts": 5},
    {"ack_mode": "SESSION_TRANSACTED", "journal_sync_transactional": "written"},
    {"queue_durable": False, "max_delivery_attempts": 5},
    {"ack_mode": "SESSION_TRANSACTED", "journal_sync_non_transactional": False, "journal_sync_transactional": True},
    {"ack_mode": "SESSION_TRANSACTED", "journal_sync_non_transactional": True, "journal_sync_transactional": False},
    {"journal_sync_non_transactional": False, "journal_sync_transactional": True},
    {"journal_sync_non_transactional": True, "journal_sync_transactional": False},
    {"send_mode": "asynchronous", "publish_window": 10, "ack_event_mode": "WINDOWED"},
]
"""Settings that a reason is for and that are not drawn."""


def test_what_no_line_is_about_is_said_too() -> None:
    exclusive = shipped().configure("activemq", {"exclusive_consumer": True})
    (unsaid,) = [one for one in snippets_of(shipped(), exclusive) if one.where == UNSAID]
    assert unsaid == Snippet(UNSAID, "exclusive_consumer=true", frozenset())


@pytest.mark.parametrize("profile", Profile)
def test_what_an_application_writes_anyway_is_there_by_default(profile: Profile) -> None:
    default = shipped().configure(profile)
    named = {key for snippet in snippets_of(shipped(), default) for key in snippet.sets}
    assert {"ack_mode", "delivery_mode", "consumption"} - named <= {"ack_mode"}
    assert not any(snippet.where in {CANNOT, UNSAID} for snippet in snippets_of(shipped(), default))


# (b) What a URL or a file says is what the command line reads in it.


def in_url(configuration: Configuration, url: str) -> dict[str, object]:
    """What the command line takes out of ``--url``, by the vendor's names."""
    profile = configuration.profile
    options = argparse.Namespace(url=url, settings=[], profile=profile, noted=_NOTED, command="check")
    return settings_of(options, shipped())


def in_file(configuration: Configuration, text: str) -> dict[str, object]:
    """What stands under the vendor's names in XML, in parameters, or in lines with an equals sign."""
    table = shipped().profiles[configuration.profile]
    pairs = re.findall(r"<([a-z-]+)>([^<]*)</|([\w-]+) ?= ?\"?(\w+)|\"(\w+)\": (\w+)", text)
    found = (tuple(part for part in pair if part) for pair in pairs)
    return {name: value for name, value in found if table.vendor_alias(name)}


def read_back(configuration: Configuration, found: Mapping[str, object]) -> Iterator[str]:
    """The settings that are otherwise by the names ``found``; what is refused has to differ by its own word."""
    spec, profile = shipped(), configuration.profile
    table = spec.profiles[profile]
    names: dict[str, object] = {}
    under: dict[str, str] = {}
    for name, value in found.items():
        alias = table.vendor_alias(name)
        assert alias is not None
        try:
            under |= {key: name for key in spec.given(profile, {name: value}) if key != "profile"}
            names[name] = value
        except InputError:
            if alias.differs is None:
                yield name
    others = {key: value for key, value in chosen(configuration).items() if key not in under}
    back = table.settings(spec.given(profile, {**others, **names}))
    idle = f"journal_sync_{'non_' if configuration.ack_mode == 'SESSION_TRANSACTED' else ''}transactional"
    for key in sorted(under):
        alias = table.vendor_alias(under[key])
        assert alias is not None
        mine, own = back[key], getattr(configuration, key)
        if alias.positive and mine and own:
            continue  # any size is the same there: the application counts
        if len(alias.keys) > 1 and key == idle:
            continue  # one name for two settings, of which this one does nothing here
        if mine != own:
            yield f"{key}: {mine} is read, and {own} is meant"


def misread(profile: str, directory: Path | None = None, *, files: bool = False) -> Iterator[str]:
    """What is read otherwise than it is meant, as it is met: who asks whether there is any need not read on."""
    for configuration, snippet in everything(profile, directory):
        if files is (snippet.where == _URL) or (files and snippet.where not in _FILES[profile]):
            continue
        try:
            found = (in_file if files else in_url)(configuration, snippet.text)
        except InputError as error:
            yield str(error)
            continue
        yield from (f"{snippet.text}: {one}" for one in read_back(configuration, found))


_FILES = {
    "artemis": ["broker.xml, <core>", "broker.xml, <address-settings>"],
    "activemq": ["activemq.xml, <persistenceAdapter>", "activemq.xml, <policyEntries>"],
    "ems": ["tibemsd.conf", "stores.conf", "queues.conf"],
    "solace": ["queue, SEMP v2"],
}
"""Files with the vendor's names."""


@pytest.mark.parametrize("profile", _FILES)
def test_the_names_in_a_file_say_what_it_is_for(profile: str) -> None:
    assert list(misread(profile, files=True)) == []
    texts = [(one, snippet) for one, snippet in everything(profile) if snippet.where in _FILES[profile]]
    assert {snippet.where for _, snippet in texts} == set(_FILES[profile])
    assert sum(len(in_file(configuration, snippet.text)) for configuration, snippet in texts) > 40


@pytest.mark.parametrize(
    ("profile", "old", "new"),
    [
        ("artemis", "{name: journal-sync-transactional}", '{name: journal-sync-transactional, value: "true"}'),
        (
            "artemis",
            "{name: max-delivery-attempts}",
            '{name: max-delivery-attempts, value: "{max_delivery_attempts-1}"}',
        ),
        ("activemq", "value: periodic", "value: always"),
        ("activemq", "{name: persistJMSRedelivered}", '{name: persistJMSRedelivered, value: "false"}'),
        ("ems", "{name: npsend_check_mode}", "{name: npsend_check_mode, text: npsend_check_mode = never}"),
        ("ems", "value: sync", "value: async"),
        (
            "solace",
            "{name: maxRedeliveryCount}",
            "{name: maxRedeliveryCount, text: '\"{name}\": {max_delivery_attempts}'}",
        ),
    ],
)
def test_a_line_of_a_file_that_says_something_else_is_noticed(profile: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, f"snippets/{profile}.yaml", (old, new))
    assert any(misread(profile, spec, files=True))


_WITH_URLS = [Profile.ARTEMIS, Profile.ACTIVEMQ, Profile.QPID, Profile.QPID_JMS]


@pytest.mark.parametrize("profile", _WITH_URLS)
def test_the_command_line_reads_in_a_url_what_it_is_for(profile: Profile) -> None:
    assert list(misread(profile)) == []
    read = {key for _, snippet in everything(profile) if snippet.where == _URL for key in snippet.sets}
    assert {"send_mode", "prefetch"} <= read


@pytest.mark.parametrize(
    ("profile", "old", "new"),
    [
        ("artemis", "{name: blockOnAcknowledge}", '{name: blockOnAcknowledge, value: "false"}'),
        ("artemis", "{name: reconnectAttempts}", "{text: blockOnDurableSend=true, always: true, source: model}"),
        ("activemq", "{name: queuePrefetch}", '{name: queuePrefetch, value: "{prefetch+1}"}'),
        ("activemq", "{name: maximumRedeliveries}", '{name: maximumRedeliveries, value: "{max_delivery_attempts}"}'),
        ("activemq", "{name: sendAcksAsync}", "{name: sendAcksAsync, text: jms.sendAcksAsync=true}"),
        ("qpid", "{name: sync_publish}", "{name: sync_publish, text: \"maxprefetch='7'\"}"),
        (
            "qpid-jms",
            "{name: jms.forceSyncSend, when: not transacted}",
            "{name: jms.forceSyncSend, text: jms.forceAsyncSend=true}",
        ),
    ],
)
def test_a_line_that_says_something_else_is_noticed(profile: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, f"snippets/{profile}.yaml", (old, new))
    assert any(misread(profile, spec))


# (c) The names are the system's.

_PLACES = {"queue", "directory", "address-setting", "match", "dead-letter-address", "address"}
"""What says where a setting is for."""


@pytest.mark.parametrize("profile", Profile)
def test_every_parameter_of_a_url_and_every_property_is_a_name_of_the_profile(profile: Profile) -> None:
    table = shipped().profiles[profile]
    for _, snippet in everything(profile):
        if snippet.where == _URL:
            _, unknown = shipped().url_settings(profile, snippet.text)
            assert set(unknown) <= {"brokerlist"}, snippet
        if snippet.where == "Java, JCSMPProperties":
            names = set(re.findall(r"setProperty\(JCSMPProperties\.(\w+)", snippet.text))
            assert all(table.vendor_alias(name) for name in names - {"ACK_EVENT_MODE"})
        if snippet.where.startswith("broker.xml, <") or snippet.where.startswith("activemq.xml"):
            names = set(re.findall(r"<([a-z-]+)>", snippet.text)) | set(re.findall(r' (\w+)="', snippet.text))
            assert all(table.vendor_alias(name) for name in names - _PLACES), snippet


@pytest.mark.parametrize(
    ("profile", "key", "where"),
    [
        ("ems", "ack_mode", "C, session"),
        ("ems", "delivery_mode", "C, producer"),
        ("artemis", "delivery_mode", "Java, producer"),
        ("qpid", "ack_mode", "Java, session"),
        ("activemq", "ack_mode", "Java, session"),
    ],
)
def test_a_mode_is_written_by_its_constant(profile: str, key: str, where: str) -> None:
    table = shipped().profiles[profile]
    seen = set()
    for configuration, snippets in shipped_snippets(profile):
        (text,) = [one.text for one in snippets if one.where == where]
        for constant in table.constants_of(key, getattr(configuration, key)):
            seen.add(constant.name)
            assert constant.name in text
    assert seen == {constant.name for constant in table.constants if constant.setting and constant.setting[0] == key}


# (d) Each is written in its syntax.


@pytest.mark.parametrize("profile", Profile)
def test_xml_json_and_python_can_be_parsed(profile: Profile) -> None:
    for _, snippet in {(snippet.text, snippet) for _, snippet in everything(profile)}:
        if ".xml" in snippet.where:
            ET.fromstring(f"<root>{snippet.text}</root>")  # noqa: S314 - it is ours
        elif "SEMP" in snippet.where or "PUT" in snippet.where:
            json.loads(snippet.text)
        elif snippet.where.startswith("Python"):
            ast.parse(snippet.text)
        elif snippet.where.startswith(("Java", "C, ")):
            for opening, closing in ("()", "{}"):
                assert snippet.text.count(opening) == snippet.text.count(closing), snippet.text


@pytest.mark.parametrize("profile", Profile)
def test_no_line_is_wide(profile: Profile) -> None:
    wide = {
        line
        for _, snippet in everything(profile)
        if snippet.where != _URL and ".xml" not in snippet.where
        for line in snippet.text.splitlines()
        if len(line) > 72
    }
    assert wide == set()


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of methods of a channel."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="channel"))):
                yield node


def test_a_channel_of_pika_takes_these_calls() -> None:
    met = set()
    for configuration, snippet in everything(Profile.RABBITMQ):
        if not snippet.where.startswith("Python"):
            continue
        with_callbacks = snippet.where == "Python, publisher" and configuration.send_mode == "asynchronous"
        kind = Channel if with_callbacks and configuration.ack_mode != "SESSION_TRANSACTED" else BlockingChannel
        for call in calls(ast.parse(snippet.text)):
            assert isinstance(call.func, ast.Attribute)
            names = [keyword.arg for keyword in call.keywords]
            signature = inspect.signature(getattr(kind, call.func.attr))
            signature.bind(None, *call.args, **{name: None for name in names if name is not None})
            met.add(call.func.attr)
    assert met >= {
        "queue_declare",
        "confirm_delivery",
        "tx_commit",
        "basic_qos",
        "basic_ack",
        "basic_consume",
        "consume",
    }


_JAVA = """
import javax.jms.*;
import java.util.concurrent.Semaphore;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSConstants;

abstract class Snippets {{
    interface Listener {{ void onMessage(Message message) throws Exception; }}
    abstract void listen(MessageConsumer consumer, Listener listener);
    abstract void process(Message message);
    Connection connection; MessageProducer producer; Message message; Queue queue; Topic topic; String id;
    CompletionListener completionListener; Semaphore open; boolean running;
{methods}
}}
"""


@before_a_release
@pytest.mark.slow
def test_javac_takes_what_is_for_artemis_and_qpid_jms(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("java")
    methods = set[str]()
    for _, snippets in (*shipped_snippets("artemis"), *shipped_snippets("qpid-jms")):
        parts = {one.where: one.text for one in snippets if one.where.startswith("Java")}
        parts = {
            where: text.replace("consumer.setMessageListener(", "listen(consumer, ") for where, text in parts.items()
        }
        inside = "\n".join((parts.pop("Java, session"), *parts.values()))
        consumer = parts.pop("Java, consumer")
        inside = inside.replace(consumer, f"{{\n{consumer.replace('Message message = ', 'message = ')}\n}}")
        methods.add(inside)
    text = "\n".join(f"void m{i}() throws Exception {{\n{one}\n}}" for i, one in enumerate(sorted(methods)))
    source = folder / "Snippets.java"
    source.write_text(_JAVA.format(methods=text), encoding="utf-8")
    with had():
        compiled([source], f"{jars(JARS)}/*")
    assert len(methods) > 50


# Numbers, and values that are written otherwise.


def text_of(profile: str, where: str, settings: dict[str, object] | None = None, **numbers: int) -> str:
    found = Snippets(shipped()).of(shipped().configure(profile, settings), **numbers)
    return next((one.text for one in found if one.where == where), "")


def test_a_vendor_counts_otherwise() -> None:
    assert "maximumRedeliveries=4" in text_of("activemq", _URL, {"max_delivery_attempts": 5})
    assert "maximumRedeliveries=-1" in text_of("activemq", _URL, {"max_delivery_attempts": 0})
    assert '"maxRedeliveryCount": 4' in text_of("solace", "queue, SEMP v2", {"max_delivery_attempts": 5})
    assert text_of("solace", "queue, SEMP v2", {"max_delivery_attempts": 1}) == ""  # 0 would be no limit
    assert "maxRedelivery=5" in text_of("ems", "queues.conf", {"max_delivery_attempts": 5})
    assert '["x-delivery-limit"] = 4' in text_of("rabbitmq", "Python, queue", {"max_delivery_attempts": 5})


def test_a_vendor_counts_bytes() -> None:
    settings: dict[str, object] = {"prefetch": 10, "send_mode": "asynchronous", "publish_window": 50}
    url = text_of("artemis", _URL, settings, message_size=2000)
    assert url == "tcp://HOST:61616?confirmationWindowSize=100000&consumerWindowSize=20000"
    assert "new Semaphore(50)" in text_of("artemis", "Java, producer", settings)


def test_the_sizes_of_a_workload_are_written_where_they_matter() -> None:
    transacted: dict[str, object] = {"ack_mode": "SESSION_TRANSACTED"}
    assert "transaction: 100" in text_of("jms", "Java, producer", transacted, per_commit=100)
    assert "transaction: 100" in text_of("jms", "Java, consumer", transacted, per_commit=100)
    client: dict[str, object] = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
    assert "messages: 7" in text_of("jms", "Java, consumer", client, per_acknowledge=7)
    with pytest.raises(InputError, match="per_commit cannot be 0"):
        text_of("jms", "Java, consumer", per_commit=0)


def test_a_mode_without_a_constant_of_its_own_is_written_as_its_language_does() -> None:
    mode: dict[str, object] = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
    assert "101 /* INDIVIDUAL_ACKNOWLEDGE */" in text_of("qpid-jms", "Java, session", mode)
    assert "ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE" in text_of("artemis", "Java, session", mode)
    assert "SupportedProperty.SOL_CLIENT_ACKNOWLEDGE" in text_of("solace-jms", "Java, session", mode)


def test_what_the_application_does_itself_is_there() -> None:
    again: dict[str, object] = {"resend_in_doubt": True, "duplicate_detection": True}
    assert "send the message again" in text_of("artemis", "Java, producer", again)
    assert '"_AMQ_DUPL_ID"' in text_of("artemis", "Java, before each send", again)
    assert text_of("activemq", _URL, {"resend_in_doubt": True}) == "failover:(tcp://HOST:61616)"


# Profiles of somebody's own, and tables that are wrong.


def own_profile(folder: Path, text: str) -> Specification:
    file = folder / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    return shipped().with_profile(file)


def test_a_profile_of_ones_own_has_the_snippets_of_the_one_that_it_is_like(tmp_path: Path) -> None:
    spec = own_profile(tmp_path, "system: x\nlike: artemis\ndefaults: {}\n")
    settings: dict[str, object] = {"block_on_acknowledge": True}
    mine = snippets_of(spec, spec.configure("mine", settings))
    assert mine == snippets_of(spec, spec.configure("artemis", settings))
    assert "blockOnAcknowledge=true" in mine[0].text


def test_a_queue_of_an_artemis_is_declared_where_it_is_not_an_ordinary_one() -> None:
    where = "broker.xml, <addresses>"
    assert text_of("artemis", where) == ""
    kinds: list[tuple[dict[str, object], dict[str, str], str | None]] = [
        ({"exclusive_consumer": True}, {"exclusive": "true"}, None),
        ({"queue_durable": False}, {}, "false"),
        ({"queue_durable": False, "exclusive_consumer": True}, {"exclusive": "true"}, "false"),
    ]
    for settings, attributes, inside in kinds:
        queue = ET.fromstring(text_of("artemis", where, settings)).find("anycast/queue")  # noqa: S314 - it is ours
        assert queue is not None
        assert queue.attrib == {"name": "QUEUE", **attributes}
        assert queue.findtext("durable") == inside


def test_what_has_used_up_its_attempts_has_somewhere_to_go() -> None:
    limit: dict[str, object] = {"max_delivery_attempts": 5}
    gone, kept = (limit | {"attempts_exhausted": end} for end in ("destroy", "dead_letter"))
    for profile, where, word in (
        ("artemis", "broker.xml, <address-settings>", "<dead-letter-address>"),
        ("qpid", "Broker-J, PUT api/latest/queue/NODE/VHOST/QUEUE", '"alternateBinding"'),
        ("rabbitmq", "Python, queue", '["x-dead-letter-exchange"]'),
        ("solace", "Java, producer", "setDMQEligible(true)"),
        ("solace-jms", "Java, SolConnectionFactory", "setDmqEligible(true)"),
    ):
        assert word in text_of(profile, where, kept)
        assert word not in text_of(profile, where, gone)
    assert "PRESERVE_UNDELIVERED" in text_of("ems", "C, producer", kept)
    assert "PRESERVE_UNDELIVERED" not in text_of("ems", "C, producer", limit)


def test_a_profile_that_is_like_none_has_none(tmp_path: Path) -> None:
    spec = own_profile(tmp_path, "system: x\ndefaults: {}\n")
    assert snippets_of(spec, spec.configure("mine")) == ()


def test_a_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(name: str, form: str, directory: Path | None) -> Document:
        read.append(name)
        return read_form(name, form, directory)

    monkeypatch.setattr("ackfsm.surveys.advice._snippets.read_form", counting)
    book = Snippets(shipped())
    for _ in range(3):
        book.of(shipped().configure("artemis"))
        book.of(shipped().configure("qpid"))
    assert read == ["snippets/artemis.yaml", "snippets/jms.yaml", "snippets/qpid.yaml"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("{name: blockOnAcknowledge}", "{HERE}{name: blockOnAcknowledged}", "has no name 'blockOnAcknowledged'"),
        (
            "{name: blockOnAcknowledge}",
            "{HERE}{name: blockOnAcknowledge, sets: prefetsch}",
            "there is no setting 'prefetsch'",
        ),
        ('writes: "{url}={value}"\n    lines:\n      ', "lines:\n      HERE", "nothing says how this name is written"),
        ("when: duplicate_detection}", "HEREwhen: duplicates}", "neither a setting nor a condition"),
        ("{prefetch*message_size}", "HERE{prefetch*message_sice}", r"\{prefetch\*message_sice\} has no value"),
        ("like: jms", "HERElike: artemis", "there is no other profile"),
        (
            "PRE_ACKNOWLEDGE: ActiveMQJMSConstants.PRE",
            "HEREPREACKNOWLEDGE: ActiveMQJMSConstants.PRE",
            "ack_mode cannot be",
        ),
        ("source: ART duplicate-detection", "HEREsource: hearsay", "begins with no tag"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_its_line(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "snippets/artemis.yaml", (old, new.replace("{HERE}", HERE).replace("HERE", HERE)))
    book, default = Snippets(shipped(), spec), shipped().configure("artemis")
    with pytest.raises(SpecError, match=sentence) as error:
        book.of(default)
    assert f"artemis.yaml:{line}: " in str(error.value)


def test_the_loader_reads_the_forms_and_sources_of_snippets_too(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "snippets/artemis.yaml", ("source: ART duplicate-detection", f"{HERE}source: hearsay"))
    with pytest.raises(SpecError, match=rf"artemis.yaml:{line}: source 'hearsay' begins with no tag"):
        tables.load(spec)


def test_the_loader_refuses_a_line_of_another_form(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "snippets/artemis.yaml", ("{name: reconnectAttempts}", f"{HERE}{{text: reconnectAttempts=1}}"))
    with pytest.raises(SpecError, match=rf"artemis.yaml:{line}: "):
        tables.load(spec)


def test_a_number_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    new = f'{HERE}{{name: consumerWindowSize, value: "{{confirm_threshold+1}}", always: true}}'
    line = replace(spec, "snippets/artemis.yaml", ("{name: reconnectAttempts}", new))
    with pytest.raises(SpecError, match=rf"artemis.yaml:{line}: confirm_threshold is none here and no number"):
        Snippets(shipped(), spec).of(shipped().configure("artemis"))


def test_the_last_beginning_alone_has_no_condition(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(
        spec,
        "snippets/activemq.yaml",
        ('      - {text: "tcp://HOST:61616", ', f'{HERE}      - {{text: "tcp://HOST:61616", when: resend_in_doubt, '),
    )
    with pytest.raises(SpecError, match=rf"activemq.yaml:{line}: the last beginning"):
        Snippets(shipped(), spec).of(shipped().configure("activemq"))
