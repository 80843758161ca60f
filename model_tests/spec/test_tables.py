"""What the tables mean once they are read: machines, counters, profiles, promises."""

import dataclasses
import functools
import math
import re
import tracemalloc
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from ackfsm import tables
from ackfsm.checking.network import Bounds
from ackfsm.engine import Broker
from ackfsm.tables import EventRef, Fsm, Machine, Relation, RowKind, Specification
from ackfsm.tables._conditions import ALWAYS
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Profile, SpecError
from model_tests.support.places import SPEC
from model_tests.support.tables import HERE, bounds, configurations, copy_of_spec, replace, shipped, small_spec
from model_tests.support.whole import WHOLE


def test_an_undamaged_copy_is_read_like_the_original(tmp_path: Path) -> None:
    copy = tables.load(copy_of_spec(tmp_path))
    assert copy == tables.load(SPEC) == shipped()
    assert copy.digest == shipped().digest


def test_the_digest_names_the_tables(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "machines/broker.yaml", ("one copy of a message in the queue", "one copy of a message in a queue"))
    assert tables.load(spec).digest != shipped().digest


def _without_a_source(machine: Machine) -> list[str]:
    """The decisions of nobody: one of several rows, or an error that an application sees."""
    rows = (row for cell in machine.cells.values() for row in cell if len(cell) > 1 or row.error)
    return sorted({row.place for row in rows if row.source is None})


def test_every_decision_has_a_source() -> None:
    spec = shipped()
    watching = [monitor.machine for definition in spec.properties.values() for monitor in definition.monitors]
    machines = [*spec.machines.values(), *watching, *(monitor.machine for monitor in spec.monitors.values())]
    assert [place for machine in machines for place in _without_a_source(machine)] == []


# What the tables mean: read a second time by a reader of ten lines, with Python's own evaluation of the conditions.


def cells(table: Mapping[str, Any], states: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Every state and event of a table with the cell that decides, as the format is described."""
    stated = {
        (state, event): cell
        for state in states
        for events, cell in (table["states"][state] or {}).items()
        for event in each_of(events)
    }
    elsewhere = {event: cell for events, cell in table.get("otherwise", {}).items() for event in each_of(events)}
    for state, event in product(states, {event for _, event in stated} | elsewhere.keys()):
        yield state, event, stated.get((state, event), elsewhere.get(event))


def each_of(events: str) -> Iterator[str]:
    """The events that a key names, those of a group one by one."""
    for event in events.split(","):
        name, bracket, relation = event.strip().partition("(")
        for each in groups().get(name, [name]):
            yield f"{each}{bracket}{relation}"


def first_that_holds(cell: Any, environment: Mapping[str, Any]) -> dict[str, str]:
    rows = cell if isinstance(cell, list) else [cell]
    return next(row for row in rows if eval(row.get("when", "True"), {"__builtins__": {}}, dict(environment)))  # noqa: S307


@functools.cache
def read_again() -> dict[str, dict[str, Any]]:
    """Every machine and property machine of ``spec/``, as YAML has it."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(SPEC.glob("machines/*.yaml")):
        found |= yaml.safe_load(file.read_text(encoding="utf-8"))
    for file in sorted(SPEC.glob("properties/*.yaml")):
        found |= yaml.safe_load(file.read_text(encoding="utf-8"))["machines"]
    return found


@functools.cache
def groups() -> dict[str, list[str]]:
    """The events of each group."""
    found: dict[str, list[str]] = {}
    for name, event in yaml.safe_load((SPEC / "events.yaml").read_text(encoding="utf-8")).items():
        if "group" in event:
            found.setdefault(event["group"], []).append(name)
    return found


def machines(specification: Specification) -> list[Machine]:
    watching = [monitor.machine for prop in specification.properties.values() for monitor in prop.monitors]
    return [*specification.machines.values(), *watching]


def environments(configuration: Configuration, limits: Bounds) -> Iterator[dict[str, Any]]:
    for copy in (1, 2) if configuration.resend_in_doubt else (1,):
        yield shipped().environment(
            configuration, faults=limits.faults, max_faults=limits.max_faults, messages=limits.messages, copy=copy
        )


def test_every_machine_of_the_files_is_read_once() -> None:
    names = [machine.name for machine in machines(shipped())]
    assert sorted(names) == sorted(read_again())
    assert len(names) == len(set(names))


@settings(max_examples=40 if WHOLE else 13)
@given(configurations(), bounds())
def test_every_machine_is_total_and_deterministic(configuration: Configuration, limits: Bounds) -> None:
    for environment in environments(configuration, limits):
        for machine in machines(shipped()):
            total_and_deterministic(machine.fsm(environment))


def total_and_deterministic(fsm: Fsm) -> None:
    assert fsm.initial in fsm.states
    assert len(set(fsm.states)) == len(fsm.states)
    assert len(set(fsm.alphabet)) == len(fsm.alphabet) == len(set(fsm.events))
    assert set(fsm.rows) == set(product(fsm.states, fsm.alphabet)), f"{fsm.name} has exactly one row for each"
    for (state, event), row in fsm.rows.items():
        assert (row.state, row.event) == (state, event)
        assert row.target in fsm.states
        assert row.kind is RowKind.TO or row.target == state
        assert (
            fsm.step(state, event)
            == fsm.step(state, str(event))
            == (None if row.kind is RowKind.REFUSE else row.target)
        )


@settings(max_examples=40 if WHOLE else 14)
@given(configurations(), bounds())
def test_a_machine_is_what_its_file_says(configuration: Configuration, limits: Bounds) -> None:
    conditions = yaml.safe_load((SPEC / "conditions.yaml").read_text(encoding="utf-8"))
    for environment in environments(configuration, limits):
        known = dict(environment)
        for name, condition in conditions.items():
            known[name] = eval(condition["when"], {"__builtins__": {}}, known)  # noqa: S307 - the independent reader
        for machine in machines(shipped()):
            if machine.counter is None:
                as_the_file_says(machine.fsm(environment), read_again()[machine.name], known)


def as_the_file_says(fsm: Fsm, table: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    states = list(table["states"])
    assert list(fsm.states) == states
    assert fsm.initial == states[0]
    expected = {(state, event): first_that_holds(cell, known) for state, event, cell in cells(table, states)}
    assert {(state, str(event)) for state, event in fsm.rows} == expected.keys()
    for (state, event), row in fsm.rows.items():
        says = expected[state, str(event)]
        move = "refuse" if "refuse" in says else "ignore" if "ignore" in says else "to"
        assert (row.kind, row.target) == (move, says.get("to", state))
        assert row.because == (says["because"] if move == "to" else says[move])
        assert (row.source, row.error) == (says.get("source"), says.get("error"))


def test_every_row_has_its_reason_and_every_move_its_source() -> None:
    rows = [row for machine in machines(shipped()) for row in machine.rows()]
    assert len(rows) > 300
    for row in rows:
        assert row.because.strip(), row.place
        assert row.source or row.kind is not RowKind.TO, row.place


def test_every_row_knows_its_line() -> None:
    for machine in machines(shipped()):
        for row in machine.rows():
            lines = (SPEC.parent / row.file).read_text(encoding="utf-8").splitlines()
            near = " ".join(" ".join(lines[row.line - 1 : row.line + 6]).split())
            stands_elsewhere = re.search(r": \*\w+$", lines[row.line - 1])
            assert stands_elsewhere or row.because in near.replace('""', '"'), row.place
            assert row.place == f"{row.file}:{row.line}"


def test_every_event_of_the_system_has_one_owner_with_a_coarser_or_equal_index() -> None:
    coordinates = {
        "system": "",
        "message": "m",
        "copy": "mc",
        "subscription": "b",
        "routed_message": "mb",
        "routed_copy": "mcb",
        "session": "bs",
        "consumer": "bsk",
        "reception": "mbsk",
        "delivery": "mcbsk",
    }
    specification = shipped()
    for name, event in specification.events.items():
        owner = specification.owner(name)
        owners = [machine for machine in specification.machines.values() if name in machine.owns]
        assert owners == ([] if owner is None else [owner])
        if owner is None:
            assert event.recorded, f"{name} is only for histories"
        else:
            finer = set(coordinates[owner.per]) - set(coordinates[event.per])
            assert finer <= ({"b"} if not owner.per.of_consumer else set()), f"{name}: all subscriptions decide at most"


# counters

EVENTS = "up: {per: system, lane: broker, means: x}\ndown: {per: system, lane: broker, means: x}"


def counter(folder: Path, end: str, bound: int | None, starts: str = "empty", zero: str = "ignore") -> Fsm:
    machine = f"""
count:
  per: system
  means: x
  owns: [up, down]
  counter: {{bound: publish_window, starts: {starts}, at_zero: {zero}, at_bound: {end}}}
  up:
    up: {{because: one more, source: model}}
  down:
    down: {{because: one less, source: model}}
"""
    specification = small_spec(folder, machine, EVENTS)
    configuration = specification.configure("jms", {"publish_window": bound})
    return specification.machines["count"].fsm(specification.environment(configuration))


def steps(fsm: Fsm, *events: str) -> list[str | None]:
    """The states after each event, from the first; ``None`` where it is refused (and then nothing changes)."""
    state, found = fsm.initial, list[str | None]()
    for event in events:
        after = fsm.step(state, event)
        found.append(after)
        state = after or state
    return found


def test_a_counter_refuses_at_its_bound(tmp_path: Path) -> None:
    fsm = counter(tmp_path, "refuse", 2)
    assert fsm.states == ("0", "1", "2")
    assert steps(fsm, "up", "up", "up", "down", "down", "down", "up") == ["1", "2", None, "1", "0", "0", "1"]


def test_a_counter_overruns_its_bound_for_good(tmp_path: Path) -> None:
    fsm = counter(tmp_path, "overrun", 1)
    assert fsm.states == ("0", "1", "overrun")
    assert steps(fsm, "down", "up", "up", "up", "down", "down") == ["0", "1"] + ["overrun"] * 4


def test_a_counter_starts_full_and_refuses_at_zero(tmp_path: Path) -> None:
    fsm = counter(tmp_path, "refuse", 1, starts="full", zero="refuse")
    assert (fsm.initial, steps(fsm, "up", "down", "down", "up")) == ("1", [None, "0", None, "1"])


@pytest.mark.parametrize("starts", ["empty", "full"])
def test_a_counter_without_a_bound_counts_nothing(tmp_path: Path, starts: str) -> None:
    fsm = counter(tmp_path, "refuse", None, starts=starts, zero="refuse")
    assert (fsm.states, steps(fsm, "up", "down", "down", "up")) == (("unlimited",), ["unlimited"] * 4)


def test_a_counter_of_zero_refuses_or_overruns_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert steps(counter(tmp_path / "a", "refuse", 0), "up", "down") == [None, "0"]
    assert steps(counter(tmp_path / "b", "overrun", 0), "up", "down") == ["overrun", "overrun"]


HEADINGS = ("up", "down", "over", "reached", "any")


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (2, {"up": ["1", "2", "2"], "over": ["0", "0", "0"], "reached": [None, None, "2"], "any": [None, "1", "2"]}),
        (None, {"up": ["unlimited"], "over": ["unlimited"], "reached": [None], "any": [None]}),
    ],
)
def test_a_counter_stays_at_its_bound_starts_over_and_tells_some_from_none_and_full(
    bound: int | None, expected: dict[str, list[str | None]], tmp_path: Path
) -> None:
    rows = "".join(
        f"  {heading}: {{{event}: {{because: x, source: model}}}}\n"
        for heading, event in zip(("up", "down", "reset", "full", "some"), HEADINGS, strict=True)
    )
    machine = f"""
count:
  per: system
  means: x
  owns: [{", ".join(HEADINGS)}]
  counter: {{bound: publish_window, starts: empty, at_zero: ignore, at_bound: stays}}
{rows}"""
    events = "\n".join(f"{event}: {{per: system, lane: broker, means: x}}" for event in HEADINGS)
    specification = small_spec(tmp_path, machine, events)
    configuration = specification.configure("jms", {"publish_window": bound})
    fsm = specification.machines["count"].fsm(specification.environment(configuration))
    for event, after in expected.items():
        assert [fsm.step(state, event) for state in fsm.states] == after


COUNTERS = [name for name, machine in shipped().machines.items() if machine.counter is not None]


@pytest.mark.parametrize("bound", [0, 1, 2, 3, 5, None])
@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("profile", ["jms", "artemis"])
def test_what_is_said_of_a_counter_is_what_all_of_its_rows_say(name: str, bound: int | None, profile: str) -> None:
    """Its states and rows are made when they are asked for; what it reacts to is told by a few of them."""
    machine = shipped().machines[name]
    assert machine.counter is not None
    environment = shipped().environment(shipped().configure(profile), faults=tuple(Fault), max_faults=None)
    fsm = machine.fsm({**environment, machine.counter.bound: bound})
    every = dict(fsm.rows)
    assert len(every) == len(fsm.rows) == len(fsm.states) * len(fsm.alphabet)
    assert list(fsm.states) == [fsm.states[n] for n in range(len(fsm.states))]
    assert all(state in fsm.states for state in fsm.states)
    assert "-1" not in fsm.states
    assert str(len(fsm.states)) not in fsm.states
    kinds = {event: {every[state, event].kind for state in fsm.states} for event in fsm.alphabet}
    assert fsm.possible == {event for event, found in kinds.items() if found != {RowKind.REFUSE}}
    reactive = {each for refs in fsm.reactive_events.values() for each in refs}
    assert reactive == {event for event, found in kinds.items() if found != {RowKind.IGNORE}}
    assert fsm.moving == {event for event, found in kinds.items() if RowKind.TO in found}


def test_a_counter_with_a_bound_of_a_million_is_not_written_out() -> None:
    """Before, an engine with such a publish window took two minutes and 2 GB."""
    tracemalloc.start()
    broker = Broker("jms", specification=shipped(), send_mode="asynchronous", publish_window=1_000_000)
    with broker.connect() as client:
        client.session().producer("q").send(b"x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000


UNDOING = ("up", "over", "back", "seen")


@pytest.mark.parametrize(("bound", "undoes"), [(2, True), (2, False), (None, True)])
def test_a_counter_takes_the_last_one_back_unless_something_has_kept_it(
    bound: int | None,
    undoes: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
) -> None:
    when = f"{{when: confirm_timer == {not undoes}, because: x, source: model}}, {{ignore: x, source: model}}"
    cells = (("up", "up", ""), ("reset", "over", ""), ("undo", "back", f"[{when}]"), ("keep", "seen", ""))
    rows = "".join(
        f"  {heading}: {{{event}: {row or '{because: x, source: model}'}}}\n" for heading, event, row in cells
    )
    machine = f"""
count:
  per: system
  means: x
  owns: [{", ".join(UNDOING)}]
  counter: {{bound: publish_window, starts: empty, at_zero: ignore, at_bound: refuse}}
{rows}"""
    events = "\n".join(f"{event}: {{per: system, lane: broker, means: x}}" for event in UNDOING)
    specification = small_spec(tmp_path, machine, events)
    configuration = specification.configure("jms", {"publish_window": bound})
    fsm = specification.machines["count"].fsm(specification.environment(configuration))
    if bound is None:
        assert fsm.states == ("unlimited",)
    elif undoes:
        assert fsm.states == ("0", "1", "2", "1_open", "2_open")
        taken = steps(fsm, "up", "back", "back", "up", "seen", "back", "up", "up", "back", "up", "seen", "up", "over")
        assert taken == ["1_open", "0", "0", "1_open", "1", "1", "2_open", None, "1", "2_open", "2", None, "0"]
    else:
        assert fsm.states == ("0", "1", "2")
        assert steps(fsm, "up", "back", "seen", "up", "back", "up") == ["1", "1", "1", "2", "2", None]


@pytest.mark.parametrize(
    ("settings", "copies", "repeats", "counted"),
    [
        ({"publish_window": 50, "confirm_threshold": 17, "prefetch": 5}, 2, 1, (None, 3, None, None)),
        ({"publish_window": 1, "confirm_threshold": 1, "prefetch": 1}, 2, 1, (1, 1, 1, None)),
        ({"publish_window": 50, "confirm_threshold": 17, "prefetch": 5}, None, None, (50, 17, 5, None)),
        ({"max_delivery_attempts": 2}, 1, 1, (None, None, None, 2)),
        ({"max_delivery_attempts": 3}, 1, 1, (None, None, None, None)),
        ({"max_delivery_attempts": 10}, 1, None, (None, None, None, 10)),
    ],
)
def test_what_a_check_cannot_reach_is_not_counted(
    settings: dict[str, object], copies: int | None, repeats: int | None, counted: tuple[int | None, ...]
) -> None:
    configuration = shipped().configure("jms", settings)
    found = shipped().environment(configuration, copies=copies, repeats=repeats)
    assert tuple(found[name] for name in ("window", "threshold", "prefetched", "attempts")) == counted


# profiles, promises


@pytest.mark.parametrize("profile", Profile)
def test_a_profile_sets_what_its_file_says_over_the_defaults_of_jms(profile: Profile) -> None:
    stated = yaml.safe_load((SPEC / f"profiles/{profile}.yaml").read_text(encoding="utf-8"))["defaults"]
    base = yaml.safe_load((SPEC / "profiles/jms.yaml").read_text(encoding="utf-8"))["defaults"]
    chosen = shipped().configure(profile).as_dict()
    for key, cell in (base | stated).items():
        row = first_that_holds(cell, chosen)
        assert chosen[key] == (row["value"] if "value" in row else math.ceil(int(str(chosen[row["third_of"]])) / 3)), (
            key
        )
    assert chosen["profile"] == profile


def test_a_setting_changes_the_defaults_after_it() -> None:
    configure = shipped().configure
    assert configure("artemis").send_mode == "blocking"
    assert configure("artemis", {"delivery_mode": "NON_PERSISTENT"}).send_mode == "unconfirmed"
    assert configure("artemis", {"delivery_mode": "NON_PERSISTENT", "send_mode": "blocking"}).send_mode == "blocking"


def test_a_profile_may_stand_among_the_settings_and_an_argument_wins() -> None:
    configure = shipped().configure
    assert configure(None, {"profile": "ems"}) == configure("ems")
    assert configure("artemis", {"profile": "ems"}) == configure("artemis")
    assert configure() == configure("jms")


def test_a_profile_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(InputError, match=r"^profile cannot be 'kafka'; it is one of jms, ems, solace, "):
        shipped().configure("kafka")


def test_what_is_promised_depends_on_the_configuration() -> None:
    promised = shipped().promised_absent(shipped().configure("jms"))
    assert promised[Anomaly.LOSS] == shipped().promises["no_loss_of_persistent"]
    assert {Anomaly.LOSS, Anomaly.PHANTOM, Anomaly.DOUBLE_OUTCOME, Anomaly.STUCK} <= promised.keys()
    assert Anomaly.DUPLICATE not in promised
    assert Anomaly.LOSS not in shipped().promised_absent(shipped().configure("jms", {"ack_mode": "PRE_ACKNOWLEDGE"}))


def test_of_two_promises_the_first_in_the_file_is_cited() -> None:
    one = shipped().promises["no_loss_of_persistent"]
    two = {name: dataclasses.replace(one, name=name, when=ALWAYS) for name in ("first", "second")}
    jms = dataclasses.replace(shipped().profiles["jms"], promises=frozenset(two))
    specification = dataclasses.replace(shipped(), promises=two, profiles={**shipped().profiles, "jms": jms})
    assert specification.promised_absent(specification.configure()) == {Anomaly.LOSS: two["first"]}


VENDORS = [
    "non_persistent_handling",
    "transaction_journalling",
    "unwindowed_confirm",
    "pre_acknowledge_by",
    "dups_ok_acknowledgement",
    "prefetch_freed",
    "delivery_count_persisted",
    "delivery_count_from",
    "undelivered_marks_redelivered",
    "requeue_clears_mark",
    "restart_marks_redelivered",
    "attempts_exhausted",
    "expires_in_hand",
    "rejection_excludes_delivery",
    "exclusive_consumer",
    "transacted_completion",
    "duplicate_dooms_transaction",
    "outcomes",
    "transacted_outcomes",
    "rollback_requeues",
]
"""The settings by which vendors differ."""


def test_no_table_outside_the_profiles_names_one_in_a_condition() -> None:
    named = [
        f"{file.relative_to(SPEC)}: {text}"
        for file in SPEC.rglob("*.yaml")
        if file.parent.name != "profiles"
        for text in _conditions(yaml.safe_load(file.read_text(encoding="utf-8")))
        if re.search(r"\bprofile\b", text)
    ]
    assert named == []


def _conditions(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        yield from (text for key, text in data.items() if key == "when" and isinstance(text, str))
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _conditions(value)


@pytest.mark.parametrize("key", VENDORS)
def test_a_setting_by_which_vendors_differ_is_read_by_a_row_and_set_by_a_profile(key: str) -> None:
    assert key in {name for condition in shipped().conditions_of_machines() for name in condition.settings()}
    assert len({getattr(shipped().configure(profile), key) for profile in Profile}) > 1


def test_a_row_that_compares_the_profile_is_refused(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(
        spec, "conditions.yaml", ("  when: transaction_journalling == 'atomic'", f"  {HERE}when: profile != 'rabbitmq'")
    )
    with pytest.raises(SpecError) as error:
        tables.load(spec)
    assert str(error.value).startswith(
        f"{spec / 'conditions.yaml'}:{line}: condition \"profile != 'rabbitmq'\": a table reads"
    )


@pytest.mark.parametrize("promise", shipped().promises)
def test_a_promise_is_made_by_a_profile(promise: str) -> None:
    assert [table for table in shipped().profiles.values() if promise in table.promises]


@given(configurations())
def test_a_promise_holds_exactly_where_its_condition_does(configuration: Configuration) -> None:
    environment = shipped().environment(configuration)
    made = [shipped().promises[name] for name in shipped().profiles[configuration.profile].promises]
    held = {promise.absent for promise in made if promise.when.holds(environment)}
    assert shipped().promised_absent(configuration).keys() == held


def test_an_anomaly_has_a_meaning_where_a_property_decides_it() -> None:
    assert [
        anomaly for anomaly in Anomaly if bool(shipped().meaning(anomaly)) != (anomaly in shipped().properties)
    ] == []


def test_the_settings_that_are_read_are_those_of_the_rows() -> None:
    read = shipped().settings_read()
    assert {"profile", "ack_mode", "queue_durable", "publish_window", "max_faults", "redelivery_mark_persisted"} <= read
    assert read - {
        "max_faults",
        "messages",
        "consumers",
        "sessions",
        "durable_beside",
        "copy",
        "faults",
        "window",
        "threshold",
        "prefetched",
        "attempts",
    } == {field.name for field in dataclasses.fields(Configuration)}


def test_a_specification_cannot_be_changed() -> None:
    specification = shipped()
    with pytest.raises(dataclasses.FrozenInstanceError):
        specification.machines = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        specification.machines["x"] = specification.machines["broker"]  # type: ignore[index]


def test_an_event_reference_is_written_as_in_the_tables() -> None:
    assert str(EventRef("send")) == "send"
    assert str(EventRef("send", Relation.LATER)) == "send(later)"
    fsm = shipped().machines["publication"].fsm(shipped().environment(shipped().configure(), faults=frozenset(Fault)))
    assert fsm.row("new", "send(later)") is fsm.row("new", EventRef("send", Relation.LATER)) is not None
    assert fsm.row("new", "settle") is None
    assert fsm.step("new", "settle") == "new", "an event outside the alphabet changes nothing"


def test_a_person_can_read_every_line() -> None:
    long = [
        f"{file.relative_to(SPEC)}:{number}"
        for file in SPEC.rglob("*.yaml")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 140
    ]
    assert not long
