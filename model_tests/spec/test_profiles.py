"""What a profile says of a system: refusals with their remedies, names, numbers, interfaces, deviations."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.tables import Condition, ConditionalValue, Refusal
from ackfsm.terms import AckMode, Anomaly, Configuration, Fault, InputError, Profile, SpecError, parse_value
from model_tests.support.places import DATA
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped, values
from model_tests.support.whole import few

STANDARD = "AUTO_ACKNOWLEDGE CLIENT_ACKNOWLEDGE DUPS_OK_ACKNOWLEDGE SESSION_TRANSACTED"
MODES = {
    "jms": " ".join(AckMode),
    "ems": f"{STANDARD} NO_ACKNOWLEDGE EXPLICIT_CLIENT_ACKNOWLEDGE EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE",
    "solace": "AUTO_ACKNOWLEDGE CLIENT_ACKNOWLEDGE SESSION_TRANSACTED",
    "solace-jms": f"{STANDARD} INDIVIDUAL_ACKNOWLEDGE",
    "qpid": f"{STANDARD} PRE_ACKNOWLEDGE NO_ACKNOWLEDGE",
    "qpid-jms": f"{STANDARD} PRE_ACKNOWLEDGE NO_ACKNOWLEDGE INDIVIDUAL_ACKNOWLEDGE",
    "artemis": f"{STANDARD} PRE_ACKNOWLEDGE INDIVIDUAL_ACKNOWLEDGE",
    "activemq": f"{STANDARD} INDIVIDUAL_ACKNOWLEDGE",
    "rabbitmq": "CLIENT_ACKNOWLEDGE SESSION_TRANSACTED NO_ACKNOWLEDGE INDIVIDUAL_ACKNOWLEDGE",
}
REFUSALS = [
    (Profile(profile), i) for profile, table in shipped().profiles.items() for i, _ in enumerate(table.unsupported)
]


@pytest.mark.parametrize("profile", Profile)
def test_a_system_has_these_modes(profile: Profile) -> None:
    assert " ".join(shipped().supported_values(profile, "ack_mode")) == MODES[profile]
    own = {"ems": {"RELIABLE"}, "solace": {"DIRECT"}, "jms": {"RELIABLE", "DIRECT"}}.get(profile, set())
    assert set(shipped().supported_values(profile, "delivery_mode")) == {"PERSISTENT", "NON_PERSISTENT", *own}


@pytest.mark.parametrize("profile", Profile)
def test_the_defaults_of_every_mode_are_accepted_and_survive_json(profile: Profile) -> None:
    for delivery_mode in shipped().supported_values(profile, "delivery_mode"):
        for ack_mode in shipped().supported_values(profile, "ack_mode", {"delivery_mode": delivery_mode}):
            chosen = shipped().configure(profile, {"delivery_mode": delivery_mode, "ack_mode": ack_mode})
            assert shipped().configure(None, json.loads(json.dumps(chosen.as_dict()))) == chosen


HISTORIES = [path for path in sorted(DATA.rglob("*.jsonl*")) if "imports" not in path.parts]
"""Those in format 1; other formats have no header."""


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.name)
def test_the_configuration_of_every_recorded_history_is_accepted(path: Path) -> None:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        config = json.loads(file.readline())["config"]
    assert shipped().configure(None, config).profile == config["profile"]


# refusals


def assignments(condition: Condition) -> Iterator[dict[str, Any]]:
    """Every assignment of values to the settings that ``condition`` reads (of numbers a few)."""
    keys = sorted(condition.settings())
    everything = [values(key) for key in keys]
    yield from (dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*everything))


def refused_by(profile: Profile, row: Refusal) -> dict[str, Any]:
    """Settings that ``row`` refuses."""
    table = shipped().profiles[profile]
    if row.when is not None:
        return next(chosen for chosen in assignments(row.when) if row in table.refused(table.settings(chosen)))
    others: dict[str, Any] = {} if row.fixed else {"delivery_mode": "NON_PERSISTENT"}
    return next(
        {**others, row.key: value}
        for value in values(row.key)
        if next(table.refused(table.settings({**others, row.key: value})), None) is row
    )


@pytest.mark.parametrize(("profile", "number"), REFUSALS)
def test_what_is_refused_is_said_with_the_reason_the_source_and_a_remedy_that_works(
    profile: Profile, number: int
) -> None:
    table = shipped().profiles[profile]
    row = table.unsupported[number]
    chosen = refused_by(profile, row)
    (place, line) = row.place.split(":")
    assert place == f"spec/profiles/{profile}.yaml"
    assert int(line) > 0
    first = next(table.refused(table.settings(chosen)))
    with pytest.raises(InputError) as error:
        shipped().configure(profile, chosen)
    sentence = str(error.value)
    for part in (f"the profile {profile} does not have ", first.because, f"({first.source})", first.instead):
        assert part in sentence
    assert all(f"{key}={tables.format_value(chosen[key])}" in sentence for key in first.settings() & chosen.keys())
    remedies = re.findall(r"(?:set|leave) (\w+)(?:=| at )(\w+)", row.instead)
    better = {key: value for key, value in chosen.items() if key != row.fixed} | dict(remedies)
    assert row.fixed or remedies, "a remedy that can be typed"
    assert row not in table.refused(table.settings({key: parse_value(key, value) for key, value in better.items()}))


@pytest.mark.parametrize("profile", ["solace", "solace-jms"])
def test_threshold_and_timer_of_solace_follow_the_window_and_cannot_be_set(profile: str) -> None:
    mode = {"delivery_mode": "NON_PERSISTENT"}
    for window, third in ((50, 17), (1, 1), (3, 1), (4, 2), (255, 85)):
        chosen = shipped().configure(profile, {**mode, "publish_window": window})
        assert (chosen.confirm_threshold, chosen.confirm_timer) == (third, True)
        said = {**mode, "publish_window": window, "confirm_threshold": third, "confirm_timer": True}
        assert shipped().configure(profile, said) == chosen
    for settings in ({"confirm_threshold": 5}, {"confirm_threshold": "none"}, {"confirm_timer": "false"}):
        with pytest.raises(InputError, match=f"^the profile {profile} does not have {next(iter(settings))}="):
            shipped().configure(profile, {**mode, "publish_window": 50, **settings})


@pytest.mark.parametrize(
    ("profile", "settings", "said"),
    [
        ("ems", "ack_mode=PRE_ACKNOWLEDGE", "does not have ack_mode=PRE_ACKNOWLEDGE: no mode acknowledges a message "),
        (
            "ems",
            "delivery_mode=RELIABLE send_mode=blocking",
            "does not have delivery_mode=RELIABLE, send_mode=blocking",
        ),
        (
            "solace",
            "delivery_mode=DIRECT ack_mode=SESSION_TRANSACTED",
            "direct messages are forbidden in a transacted ",
        ),
        ("solace", "ack_mode=NO_ACKNOWLEDGE", "does not have ack_mode=NO_ACKNOWLEDGE"),
        ("solace-jms", "publish_window=2", "for persistent messages the window is fixed at 1 (SOL-SEMP)"),
        ("solace-jms", "send_mode=asynchronous", "(000 Persistent Publishing with JMS version 1.1)"),
        ("artemis", "ack_mode=NO_ACKNOWLEDGE", "set ack_mode=PRE_ACKNOWLEDGE"),
        ("qpid", "duplicate_detection=true", "does not have duplicate_detection=true"),
        ("activemq", "delivery_mode=DIRECT", "it belongs to Solace"),
    ],
)
def test_a_combination_is_refused(profile: str, settings: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        shipped().configure(profile, dict(setting.split("=") for setting in settings.split()))
    assert said in str(error.value)


def test_without_a_confirmation_window_the_handler_of_artemis_proves_nothing() -> None:
    """The call comes from the library itself, so a message can be lost after it; with a window it cannot."""
    bounds = Bounds(faults=frozenset({Fault.BROKER_CRASH}))
    for window, lost in ((None, True), (10, False)):
        chosen = shipped().configure("artemis", {"send_mode": "asynchronous", "publish_window": window})
        assert explore.check(shipped(), chosen, bounds).findings[Anomaly.LOSS].reachable is lost


def test_only_settings_with_a_list_of_values_can_be_offered() -> None:
    assert shipped().supported_values("ems", "duplicate_detection") == (False,)
    with pytest.raises(InputError, match=r"^prefetch is a number and has no list of values"):
        shipped().supported_values("ems", "prefetch")


# names

NAMES = [(profile, name) for profile, table in shipped().profiles.items() for name in table.names.values()]


@pytest.mark.parametrize(("profile", "name"), NAMES, ids=lambda part: getattr(part, "name", None))
def test_a_name_that_means_the_same_can_be_set_and_another_says_what_to_set(
    profile: Profile, name: tables.VendorAlias
) -> None:
    (key, *_) = name.keys
    default = getattr(shipped().configure(profile), key)
    if name.is_synonym:
        assert shipped().resolve_aliases(profile, {name.name.upper(): default}) == {key: default, "profile": profile}
        assert shipped().configure(profile, {name.name: tables.format_value(default)}) == shipped().configure(profile)
    for text, sets in name.values.items():
        found = shipped().resolve_aliases(profile, {name.name.upper(): text.upper()})
        assert found.pop("profile") == profile
        assert {
            key: one.options[0].value if isinstance(one, ConditionalValue) else one for key, one in found.items()
        } == sets
        assert all(isinstance(one, ConditionalValue) == (name.when is not None) for one in found.values())
    for text in (*name.refused, *["something else"] * (not name.is_synonym and not name.anything)):
        with pytest.raises(InputError) as error:
            shipped().configure(profile, {name.name: text})
        assert name.name in str(error.value) or key in str(error.value)
        if name.differs or text in name.refused:
            assert str(error.value).endswith(f"; set {' and '.join(name.keys)}")


@pytest.mark.parametrize(
    ("profile", "settings", "said"),
    [
        ("ems", {"mode": "x"}, "is sync, async there, not 'x'"),
        ("qpid", {"sync_publish": "persistent"}, "persistent is send_mode=blocking for PERSISTENT messages alone"),
        ("artemis", {"confirmationWindowSize": "many"}, "it counts bytes of commands kept for replay, not messages"),
        ("artemis", {"producerWindowSize": "10"}, "it counts bytes of credit, not messages; set publish_window"),
        ("artemis", {"blockOnAcknowledge": "true", "block_on_acknowledge": "true"}, "are one setting, given twice"),
        (None, {"blockOnAcknowledge": "true"}, "is a name that artemis has for block_on_acknowledge, and jms has not"),
        (
            None,
            {"blockonacknowledge": "true"},
            "there is no setting 'blockonacknowledge' (did you mean block_on_acknowledge?)",
        ),
        ("qpid", {"maxprefetch": "many"}, "prefetch cannot be 'many'"),
    ],
)
def test_a_name_that_cannot_be_set_is_answered_in_one_sentence(
    profile: str | None, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError) as error:
        shipped().configure(profile, settings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_number_under_its_own_name_is_taken_as_it_is() -> None:
    assert shipped().configure("artemis", {"max-delivery-attempts": "3"}).max_delivery_attempts == 3
    assert shipped().configure(None, {"profile": "solace", "PUB_ACK_WINDOW_SIZE": 6}).confirm_threshold == 2


# numbers


@pytest.mark.parametrize(
    ("profile", "key", "numbers"),
    [
        ("jms", "ack_mode", {0: "SESSION_TRANSACTED", 1: "AUTO", 2: "CLIENT", 3: "DUPS_OK"}),
        ("jms", "delivery_mode", {1: "NON_PERSISTENT", 2: "PERSISTENT"}),
        ("ems", "ack_mode", {22: "NO", 23: "EXPLICIT_CLIENT", 24: "EXPLICIT_CLIENT_DUPS_OK"}),
        ("ems", "delivery_mode", {1: "NON_PERSISTENT", 2: "PERSISTENT", 22: "RELIABLE"}),
        ("solace", "ack_mode", {1: "AUTO", 2: "CLIENT"}),
        ("solace", "delivery_mode", {0: "DIRECT", 16: "PERSISTENT", 32: "NON_PERSISTENT"}),
        ("qpid", "ack_mode", {257: "NO", 258: "PRE"}),
        ("qpid-jms", "ack_mode", {100: "PRE", 101: "INDIVIDUAL", 257: "NO"}),
        ("artemis", "ack_mode", {100: "PRE", 101: "INDIVIDUAL"}),
        ("activemq", "ack_mode", {4: "INDIVIDUAL"}),
    ],
)
def test_a_system_has_these_numbers(profile: str, key: str, numbers: dict[int, str]) -> None:
    table = shipped().profiles[Profile(profile)]
    found = {constant.number: constant.setting for constant in table.constants if constant.setting}
    found = {number: setting for number, setting in found.items() if setting[0] == key} or found
    for number, name in numbers.items():
        value = f"{name}_ACKNOWLEDGE" if key == "ack_mode" and name != "SESSION_TRANSACTED" else name
        (constant,) = table.constants_of(key, value)
        assert constant.number == number


@pytest.mark.parametrize("profile", Profile)
def test_a_number_stands_for_one_value_that_the_system_has(profile: Profile) -> None:
    told = [c for c in shipped().profiles[profile].constants if c.setting is not None]
    assert len({(c.setting[0], c.number) for c in told if c.setting}) == len(told)
    for constant in told:
        assert constant.setting is not None
        key, value = constant.setting
        assert value in shipped().supported_values(profile, key)


# interfaces


@pytest.mark.parametrize(
    ("profile", "api", "key", "value", "source"),
    [
        ("jms", "JMS 1.1", "send_mode", "asynchronous", "000 Persistent Publishing with JMS version 1.1"),
        ("jms", "JMS 1.1", "send_mode", "blocking", None),
        ("jms", "JMS 1.1", "ack_mode", "NO_ACKNOWLEDGE", "API Session"),
        ("jms", "JMS 2.0", "ack_mode", "CLIENT_ACKNOWLEDGE", None),
        ("jms", "JMS 2.0", "send_mode", "asynchronous", "JMS 7.3.1; 004 asynchronous send acknowledgements"),
        ("jms", "JMS 2.0", "delivery_mode", "DIRECT", "API DeliveryMode"),
        *(("jms", "JMS 2.0 simplified", "ack_mode", mode, None) for mode in STANDARD.split()),
        ("ems", "JMS 1.1", "ack_mode", "EXPLICIT_CLIENT_ACKNOWLEDGE", None),
        *(
            ("ems", "JMS 2.0 simplified", "ack_mode", mode, "001 the warning on the simplified API")
            for mode in ("NO_ACKNOWLEDGE", "EXPLICIT_CLIENT_ACKNOWLEDGE", "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE")
        ),
        ("ems", "JMS 2.0 simplified", "ack_mode", "AUTO_ACKNOWLEDGE", None),
        ("ems", "JMS 2.0", "ack_mode", "PRE_ACKNOWLEDGE", "EMS-MODES"),
        ("artemis", "JMS 1.1", "send_mode", "asynchronous", "JMS 7.3"),
        ("artemis", "core", "send_mode", "asynchronous", None),
        ("artemis", "JMS 2.0 simplified", "ack_mode", "PRE_ACKNOWLEDGE", None),
    ],
)
def test_what_an_interface_does_not_take(profile: str, api: str, key: str, value: str, source: str | None) -> None:
    refusal = _api_refusal(profile, api, {key: value})
    assert (refusal and refusal.source) == source


def test_an_interface_is_asked_under_other_settings_too() -> None:
    sent = {"send_mode": "asynchronous", "publish_window": 10}
    assert _api_refusal("jms", "JMS 2.0", sent) is None
    assert _api_refusal("jms", "JMS 2.0", {"publish_window": 0, "send_mode": "asynchronous"}) is not None


@pytest.mark.parametrize("profile", ["rabbitmq", "solace"])
def test_an_interface_that_the_system_has_not_is_named(profile: str) -> None:
    with pytest.raises(InputError, match=f"^the profile {profile} has no API 'JMS 2.0'[^;]*; its APIs are: "):
        _api_refusal(profile, "JMS 2.0", {"ack_mode": "AUTO_ACKNOWLEDGE"})


def _api_refusal(profile: str, api: str, settings: Mapping[str, object]) -> Refusal | None:
    """The first row by which an interface does not take a value of the first of these settings."""
    given = shipped().given(profile, settings)
    table = shipped().profiles[given["profile"]]
    rows = table.refused(table.settings(given), table.api(api))
    return next((row for row in rows if next(iter(settings)) in row.settings()), None)


# deviations


@pytest.mark.parametrize("profile", Profile)
def test_a_deviation_is_shown_by_some_configuration_that_the_system_has(profile: Profile) -> None:
    table = shipped().profiles[profile]
    assert bool(table.deviates) == (profile is not Profile.JMS)
    for deviation in table.deviates:
        if deviation.when is not None:
            assert any(deviation.when.holds(shipped().environment(one)) for one in accepted(profile, deviation.when))


def accepted(profile: Profile, condition: Condition) -> Iterator[Configuration]:
    for chosen in assignments(condition):
        try:
            yield shipped().configure(profile, chosen)
        except InputError:
            continue


# damage

EMS = "profiles/ems.yaml"
SOLACE = "profiles/solace.yaml"
PRE = "when: ack_mode == 'PRE_ACKNOWLEDGE'"
THIRD = "  confirm_threshold: {third_of: publish_window"
REASON = "    because: no mode acknowledges a message before it is handed over\n    source: EMS-MODES"
DAMAGES = {
    "a refusal of an unknown value": (EMS, "'PRE_ACK' is not one of AUTO", PRE, f"{HERE}when: ack_mode == 'PRE_ACK'"),
    "a refusal by an unknown name": (EMS, "'mode' is neither a setting", PRE, f"{HERE}when: mode == 'PRE'"),
    "a refusal by the bounds of a check": (EMS, "not messages", PRE, f"{HERE}when: messages == 1"),
    "a refusal by the profile": (EMS, "not the profile", PRE, f"{HERE}when: profile == 'ems'"),
    "a refusal of its own default": (
        EMS,
        "this refuses the profile's own defaults",
        PRE,
        f"{HERE}when: ack_mode == 'AUTO_ACKNOWLEDGE'",
    ),
    "a refusal without remedy": (
        EMS,
        "'instead' is a required property",
        f"- {PRE}\n{REASON}\n    instead:",
        f"{HERE}- {PRE}\n{REASON}\n    x:",
    ),
    "a refusal by nothing": (EMS, "unsupported/0", f"- {PRE}\n    because", f"{HERE}- because"),
    "a fixed setting that does not exist": (
        SOLACE,
        "no setting 'timer'",
        "fixed: confirm_timer",
        f"{HERE}fixed: timer",
    ),
    "a fixed profile": (SOLACE, "no setting of it", "fixed: confirm_timer", f"{HERE}fixed: profile"),
    "a third of no number": (SOLACE, "cannot be a third of ack_mode", THIRD, f"{HERE}{THIRD[:-14]}ack_mode"),
    "a third of a later setting": (SOLACE, "settings before it, not prefetch", THIRD, f"{HERE}{THIRD[:-14]}prefetch"),
    "a third and a value": (SOLACE, "defaults/confirm_threshold", THIRD, f"{HERE}{THIRD}, value: 3"),
    "a constant of an unknown value": (
        EMS,
        "ack_mode cannot be 'NONE'",
        "  TIBEMS_NO_ACKNOWLEDGE: {number: 22, is: {ack_mode: NO_ACKNOWLEDGE}",
        f"{HERE}  TIBEMS_NO_ACKNOWLEDGE: {{number: 22, is: {{ack_mode: NONE}}",
    ),
    "a constant that is no number": (
        EMS,
        "does not match",
        "  TIBEMS_NO_ACKNOWLEDGE: {number: 22",
        f"{HERE}  TIBEMS_NO_ACKNOWLEDGE: {{number: many",
    ),
    "a name of an unknown setting": (
        EMS,
        "no setting 'attempts'",
        "  maxRedelivery:\n    key: max_delivery_",
        f"{HERE}  maxRedelivery:\n    key: ",
    ),
    "a name that is a setting": (
        EMS,
        "is a setting of the vocabulary itself",
        "  maxRedelivery:\n",
        f"{HERE}  Prefetch:\n",
    ),
    "a name that stands twice": (EMS, "stands twice, but for capitals", "  maxRedelivery:\n", f"{HERE}  MODE:\n"),
    "a name with an unknown value": (EMS, "cannot be 'yes'", "values: {sync: true", f"{HERE}values: {{sync: 'yes'"),
    "a name of two settings": (
        EMS,
        "is not one setting by another name",
        "    values: {sync: true, async: false}\n",
        "",
    ),
    "a deviation by an unknown name": (
        EMS,
        "'sync' is neither a setting",
        "when: delivery_mode == 'PERSISTENT' and answer_waits_for_nothing",
        f"{HERE}when: sync",
    ),
    "a source without a tag": (EMS, "begins with no tag", "source: EMS-MAXR\n\n", f"{HERE}source: hearsay\n\n"),
}


@pytest.mark.parametrize("damage", few([*DAMAGES], 8))
def test_damage_to_a_profile_is_named_with_file_and_line(damage: str, tmp_path: Path) -> None:
    file, says, old, new = DAMAGES[damage]
    spec = copy_of_spec(tmp_path)
    line = replace(spec, file, (old, new))
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    place, _, sentence = str(error.value).partition(": ")
    name, _, number = place.rpartition(":")
    assert name.endswith(f"spec/{file}")
    assert says in sentence
    assert not line or abs(int(number) - line) <= 1, "the row, or the line within it"


def test_rabbitmq_flags_what_comes_again_in_whatever_way_it_can_be_set() -> None:
    """Without the flag a message is guaranteed not to have been seen (RMQ reliability)."""
    marks = shipped().supported_values("rabbitmq", "redelivery_mark_persisted")
    assert marks
    for mark in marks:
        configuration = shipped().configure("rabbitmq", {"redelivery_mark_persisted": mark})
        found = explore.check(shipped(), configuration, Bounds(faults=frozenset(Fault), max_faults=1))
        assert not found.violations
    with pytest.raises(InputError, match="after a restart what was seen is flagged"):
        shipped().configure("rabbitmq", {"redelivery_mark_persisted": False})
