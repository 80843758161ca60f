"""Composition: which machines there are, who takes part in what, who decides what exists, and how a state is packed."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.options import SearchOptions, Tuning
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Bounds, Index, Network, Place, compose, concerns
from ackfsm.tables import EventRef, RowKind, Specification
from ackfsm.terms import Anomaly, Configuration, Destination, Fault, InputError
from model_tests.support.tables import bounds, composed, configurations, networks, shipped, small_spec, unpacked
from model_tests.support.whole import WHOLE


def small(folder: Path, machines: str, events: str, limits: Bounds | None = None, **chosen: object) -> Network:
    specification = small_spec(folder, machines, events)
    return compose(specification, specification.configure("jms", chosen), limits or Bounds())


def takes_part(network: Network, label: str) -> dict[str, str]:
    """Who takes part in an event, and the name that each has for it."""
    event = next(event for event in network.events if event.label == label)
    return {network.instances[part.instance].label: str(part.event) for part in event.participants}


def after(network: Network, state: Sequence[str], *labels: str) -> dict[str, str] | None:
    """The states, by machine, after these events; ``None`` as soon as one is refused."""
    for label in labels:
        event = next(event for event in network.events if event.label == label)
        step = network.step(state, event)
        if step is None:
            return None
        state = step
    return dict(zip((instance.label for instance in network.instances), state, strict=True))


# the index

ONE_EACH = """
system: {per: system, means: x, owns: [tick], states: {a: {tick: {to: a, because: x, source: model}}}}
message: {per: message, means: x, owns: [post], states: {a: {post: {to: a, because: x, source: model}}}}
copy: {per: copy, means: x, owns: [take], states: {a: {take: {to: a, because: x, source: model}}}}
session: {per: session, means: x, owns: [lose], states: {a: {lose: {to: a, because: x, source: model}}}}
consumer: {per: consumer, means: x, owns: [stop], states: {a: {stop: {to: a, because: x, source: model}}}}
reception: {per: reception, means: x, owns: [get], states: {a: {get: {to: a, because: x, source: model}}}}
delivery: {per: delivery, means: x, owns: [hand], states: {a: {hand: {to: a, because: x, source: model}}}}
"""
ONE_EACH_EVENTS = """
tick: {per: system, lane: broker, means: x}
post: {per: message, lane: producer, means: x}
take: {per: copy, lane: broker, means: x}
lose: {per: session, lane: consumer, means: x}
stop: {per: consumer, lane: consumer, means: x}
get: {per: reception, lane: consumer, means: x}
hand: {per: delivery, lane: consumer, means: x}
"""


TWO_MESSAGES = (
    "system message(m1) message(m2) copy(m1) copy(m2) session consumer "
    "reception(m1) reception(m2) delivery(m1) delivery(m2)"
)
TWO_CONSUMERS = (
    "system message(m1) copy(m1) session(c1) session(c2) consumer(c1) consumer(c2) "
    "reception(m1,c1) reception(m1,c2) delivery(m1,c1) delivery(m1,c2)"
)


@pytest.mark.parametrize(
    ("messages", "resend", "consumers", "machines"),
    [
        (1, False, 1, "system message(m1) copy(m1) session consumer reception(m1) delivery(m1)"),
        (
            1,
            True,
            1,
            "system message(m1) copy(m1) copy(m1#2) session consumer reception(m1) delivery(m1) delivery(m1#2)",
        ),
        (
            2,
            False,
            1,
            TWO_MESSAGES,
        ),
        (
            1,
            False,
            2,
            TWO_CONSUMERS,
        ),
        (1, False, -2, TWO_CONSUMERS.replace("session(c1) session(c2)", "session")),
    ],
)
def test_there_is_one_machine_and_one_event_for_each_index(
    tmp_path: Path, messages: int, consumers: int, machines: str, *, resend: bool
) -> None:
    limits = Bounds(messages=messages, consumers=abs(consumers), one_session=consumers < 0)
    network = small(tmp_path, ONE_EACH, ONE_EACH_EVENTS, limits, resend_in_doubt=resend)
    assert [instance.label for instance in network.instances] == machines.split()
    events = {"system": "tick", "message": "post", "copy": "take", "session": "lose", "consumer": "stop"}
    events["reception"] = "get"
    names = [
        instance.replace(name := instance.partition("(")[0], events.get(name, "hand")) for instance in machines.split()
    ]
    assert [event.label for event in network.events] == names


ROUTED = """
whole: {per: copy, means: x, owns: [take], states: {a: {take: {to: a, because: x, source: model}}}}
each: {per: subscription, means: x, owns: [lose], states: {a: {lose: {to: a, because: x, source: model}}}}
message: {per: routed_message, means: x, owns: [read], states: {a: {read: {to: a, because: x, source: model}}}}
copy:
  per: routed_copy
  means: x
  owns: [store]
  states:
    a:
      store, read(other_subscription): {to: a, because: x, source: model}
delivery: {per: delivery, means: x, owns: [hand], states: {a: {hand: {to: a, because: x, source: model}}}}
feels:
  per: delivery
  means: x
  states:
    a:
      take, store, lose, hand(elsewhere): {to: a, because: x, source: model}
all:
  per: system
  means: x
  states:
    a:
      take, store, read, hand, lose: {to: a, because: x, source: model}
"""
ROUTED_EVENTS = """
take: {per: copy, lane: broker, means: x}
lose: {per: subscription, lane: broker, means: x}
read: {per: routed_message, lane: broker, means: x}
store: {per: routed_copy, lane: broker, means: x}
hand: {per: delivery, lane: broker, means: x}
"""


def test_a_message_has_a_copy_in_each_subscription_and_consumers_belong_to_one(tmp_path: Path) -> None:
    network = small(tmp_path, ROUTED, ROUTED_EVENTS, Bounds(subscriptions=2, consumers=2))
    labels = "take(m1) lose(s1) lose(s2) read(m1,s1) read(m1,s2) store(m1,s1) store(m1,s2)"
    handed = [f"hand(m1,s{s},c{c})" for s in (1, 2) for c in (1, 2)]
    assert [event.label for event in network.events] == [*labels.split(), *handed]
    consuming = [f"feels(m1,s{s},c{c})" for s in (1, 2) for c in (1, 2)]
    assert takes_part(network, "take(m1)") == dict.fromkeys(["whole(m1)", *consuming, "all"], "take")
    assert takes_part(network, "lose(s2)") == dict.fromkeys(["each(s2)", *consuming[2:], "all"], "lose")
    assert takes_part(network, "store(m1,s2)") == dict.fromkeys(["copy(m1,s2)", *consuming[2:], "all"], "store")
    assert takes_part(network, "read(m1,s2)") == {
        "message(m1,s2)": "read",
        "copy(m1,s1)": "read(other_subscription)",
        "all": "read",
    }
    assert takes_part(network, "hand(m1,s2,c1)") == {
        "delivery(m1,s2,c1)": "hand",
        "feels(m1,s2,c2)": "hand(elsewhere)",
        "all": "hand",
    }


def test_what_happens_in_all_subscriptions_at_once_exists_if_the_machine_of_one_has_a_row(tmp_path: Path) -> None:
    machines = """
copy:
  per: routed_copy
  means: x
  owns: [take]
  states: {a: {take: [{to: a, when: destination == 'queue', because: x, source: model}, {ignore: x, source: model}]}}
"""
    events = "take: {per: copy, lane: broker, means: x}"
    network = small(tmp_path, machines, events, Bounds(subscriptions=2, non_durable=1))
    assert [event.label for event in network.events] == ["take(m1)"]
    assert takes_part(network, "take(m1)") == {"copy(m1,s1)": "take"}


WATCHERS = """
decides: {per: copy, means: x, owns: [take], states: {a: {take: {to: a, because: x, source: model}}}}
system: {per: system, means: x, states: {a: {take: {to: a, because: x, source: model}}}}
message: {per: message, means: x, states: {a: {take: {to: a, because: x, source: model}}}}
starts: {per: system, means: x, owns: [tick], states: {a: {tick: {to: a, because: x, source: model}}}}
feels: {per: copy, means: x, states: {a: {tick: {to: a, because: x, source: model}}}}
"""
WATCHERS_EVENTS = "take: {per: copy, lane: broker, means: x}\ntick: {per: system, lane: broker, means: x}"


def test_a_coarser_machine_takes_part_in_what_it_contains_and_a_finer_one_in_what_contains_it(tmp_path: Path) -> None:
    network = small(tmp_path, WATCHERS, WATCHERS_EVENTS, Bounds(messages=2), resend_in_doubt=True)
    assert takes_part(network, "take(m1)") == {"decides(m1)": "take", "system": "take", "message(m1)": "take"}
    assert takes_part(network, "take(m2#2)") == {"decides(m2#2)": "take", "system": "take", "message(m2)": "take"}
    copies = ["feels(m1)", "feels(m1#2)", "feels(m2)", "feels(m2#2)"]
    assert takes_part(network, "tick") == dict.fromkeys(["starts", *copies], "tick")


def related(*relations: str) -> str:
    """A machine that reacts to ``take`` of other copies, and one that reacts to it of other messages."""
    rows = ", ".join(f"take({relation}): {{to: a, because: x, source: model}}" for relation in relations)
    return f"""
decides: {{per: copy, means: x, owns: [take], states: {{a: {{take: {{to: a, because: x, source: model}}}}}}}}
copy: {{per: copy, means: x, states: {{a: {{{rows}}}}}}}
message: {{per: message, means: x, states: {{a: {{{rows}}}}}}}
"""


TAKE = "take: {per: copy, lane: broker, means: x}"


def test_a_machine_reacts_to_the_events_of_earlier_and_later_indices(tmp_path: Path) -> None:
    network = small(tmp_path, related("earlier", "later"), TAKE, Bounds(messages=2), resend_in_doubt=True)
    earlier, later = "take(earlier)", "take(later)"
    assert takes_part(network, "take(m1#2)") == {
        "decides(m1#2)": "take",
        "copy(m1)": later,
        "copy(m2)": earlier,
        "copy(m2#2)": earlier,
        "message(m2)": earlier,
    }
    assert takes_part(network, "take(m2)") == {
        "decides(m2)": "take",
        "copy(m1)": later,
        "copy(m1#2)": later,
        "copy(m2#2)": earlier,
        "message(m1)": later,
    }


def test_a_machine_reacts_to_the_events_of_any_other_index(tmp_path: Path) -> None:
    network = small(tmp_path, related("other"), TAKE, Bounds(messages=2), resend_in_doubt=True)
    others = ["copy(m1)", "copy(m2)", "copy(m2#2)", "message(m2)"]
    assert takes_part(network, "take(m1#2)") == {"decides(m1#2)": "take", **dict.fromkeys(others, "take(other)")}


# composition

TWO = """
switch:
  per: system
  means: x
  owns: [press]
  states:
    off: {press: {to: "on", because: x, source: model}}
    "on": {press: {to: "off", because: x, source: model}}
lamp:
  per: system
  means: x
  owns: [fail]
  states:
    dark: {press: {to: bright, because: x, source: model}, fail: {refuse: x}}
    bright: {press: {to: dark, because: x, source: model}, fail: {to: broken, because: x, source: model}}
    broken: {press: {refuse: x}, fail: {refuse: x}}
cat:
  per: system
  means: x
  states:
    asleep: {press: {ignore: x}}
"""
TWO_EVENTS = "press: {per: system, lane: broker, means: x}\nfail: {per: system, lane: broker, means: x}"


def test_all_participants_move_at_once_or_none_does(tmp_path: Path) -> None:
    network = small(tmp_path, TWO, TWO_EVENTS)
    start = network.initial
    assert start == ("off", "dark", "asleep")
    assert after(network, start, "press") == {"switch": "on", "lamp": "bright", "cat": "asleep"}
    assert after(network, start, "press", "press") == {"switch": "off", "lamp": "dark", "cat": "asleep"}
    assert after(network, start, "fail") is None
    assert after(network, start, "press", "fail") == {"switch": "on", "lamp": "broken", "cat": "asleep"}
    assert after(network, start, "press", "fail", "press") is None, "the switch would, the lamp refuses"


def test_the_row_of_every_participant_is_told(tmp_path: Path) -> None:
    network = small(tmp_path, TWO, TWO_EVENTS)
    press = next(event for event in network.events if event.name == "press")
    told = {instance.label: (row.kind, row.target) for instance, row in network.rows(("on", "broken", "asleep"), press)}
    assert told["switch"] == (RowKind.TO, "off")
    assert told["lamp"] == (RowKind.REFUSE, "broken")


OWNED = """
umbrella: {per: system, means: x, states: {up: {work: {to: up, because: x, source: model}}}}
worker:
  per: message
  means: x
  owns: [work]
  states:
    idle:
      work:
        - {to: done, when: queue_durable, because: x, source: model}
        - {refuse: there is no work in this configuration, source: model}
    done:
      work: {refuse: once}
"""
OWNED_EVENTS = "work: {per: message, lane: broker, means: x}"


def test_an_event_exists_only_where_its_owner_has_a_row(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    durable = small(tmp_path / "with", OWNED, OWNED_EVENTS, queue_durable=True)
    assert [event.label for event in durable.events] == ["work(m1)"]
    volatile = small(tmp_path / "without", OWNED, OWNED_EVENTS, queue_durable=False)
    assert volatile.events == ()


def test_conditions_read_the_bounds_and_the_number_of_the_copy(tmp_path: Path) -> None:
    machines = """
sender:
  per: copy
  means: x
  owns: [put]
  states:
    a:
      put:
        - to: b
          when: copy == 2 and messages == 1 and 'rejection' in faults and max_faults == None
          because: x
          source: model
        - {refuse: x, source: model}
    b: {put: {refuse: x}}
"""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    put = "put: {per: copy, lane: broker, means: x}"
    open_ended = Bounds(faults=frozenset({Fault.REJECTION}), max_faults=None)
    network = small(tmp_path / "a", machines, put, open_ended, resend_in_doubt=True)
    assert [event.label for event in network.events] == ["put(m1#2)"]
    assert small(tmp_path / "b", machines, put, Bounds(), resend_in_doubt=True).events == ()


# the system of the project


def test_the_machines_of_the_system_come_first_and_the_properties_after_them() -> None:
    specification = shipped()
    network = compose(specification, specification.configure(), Bounds())
    watching = [instance for instance in network.instances if instance.anomaly is not None]
    assert {instance.anomaly for instance in watching} == {
        *specification.properties,
        *specification.guarantees.monitors,
    }
    assert network.instances[-len(watching) :] == tuple(watching)
    assert {i.fsm.name for i in network.instances if i.anomaly is None} == set(specification.machines)


@settings(max_examples=30 if WHOLE else 10)
@given(configurations(), bounds())
def test_the_faults_of_a_check_are_those_that_it_names(configuration: Configuration, limits: Bounds) -> None:
    network = compose(shipped(), configuration, limits)
    faults = {event.name for event in network.events if event.may_never_happen} - limits.actions
    possible = limits.faults if limits.max_faults != 0 else set()
    assert faults <= possible
    assert possible - faults <= {Fault.LISTENER_EXCEPTION}, "only a listener can throw"
    assert (Fault.LISTENER_EXCEPTION in faults) == (
        Fault.LISTENER_EXCEPTION in possible and configuration.consumption == "listener"
    )


STRANGE_BOUNDS: list[tuple[dict[str, Any], str]] = [
    ({"messages": 0}, "messages cannot be 0; it is a whole number from 1"),
    ({"messages": -1}, "messages cannot be -1; it is a whole number from 1"),
    ({"messages": None}, "messages cannot be None; it is a whole number from 1"),
    ({"messages": True}, "messages cannot be True; it is a whole number from 1"),
    ({"messages": "2"}, "messages cannot be '2'; it is a whole number from 1"),
    ({"messages": 1.0}, "messages cannot be 1.0; it is a whole number from 1"),
    ({"max_faults": -1}, "max_faults cannot be -1; it is a whole number from 0, or None for no limit"),
    ({"max_faults": "any"}, "max_faults cannot be 'any'; it is a whole number from 0, or None for no limit"),
    ({"max_faults": 1001}, "a budget of 1001 faults is more than 1000; leave it without limit (any)"),
    ({"faults": frozenset({"x"})}, f"there is no fault 'x'; the faults are {', '.join(Fault)}"),
    ({"faults": "broker_crash"}, "faults cannot be 'broker_crash'; it is a set of names, in Python {'name'}"),
    ({"faults": Fault.BROKER_CRASH}, "faults cannot be 'broker_crash'; it is a set of names"),
    ({"faults": None}, "faults cannot be None; it is a set of names, in Python {'name'}"),
    ({"faults": [["x"]]}, "faults cannot have ['x']; all that is in it are names"),
    ({"faults": {"\x1b[2J"}}, r"there is no fault '\x1b[2J'; the faults are"),
    ({"actions": "recover"}, "actions cannot be 'recover'; it is a set of names, in Python {'name'}"),
    ({"actions": {1}}, "actions cannot have 1; all that is in it are names"),
    ({"consumers": 2, "one_session": 1}, "one_session cannot be 1; it is true or false"),
    ({"one_session": True}, "one consumer is in one session as it is; one_session is for several consumers"),
    ({"subscriptions": 0}, "subscriptions cannot be 0; it is a whole number from 1"),
    ({"non_durable": -1}, "non_durable cannot be -1; it is a whole number from 0"),
    ({"non_durable": 1}, "non_durable is how many of several subscriptions are; for all of them set destination"),
    ({"subscriptions": 2, "non_durable": 2}, "non_durable is how many of several subscriptions are; for all of them"),
    ({"without": 7}, "without cannot be 7; it is a set of names, in Python {'name'}"),
]


@pytest.mark.parametrize(("chosen", "sentence"), STRANGE_BOUNDS, ids=[repr(chosen) for chosen, _ in STRANGE_BOUNDS])
def test_bounds_that_bound_nothing_or_are_not_known_are_refused(chosen: dict[str, Any], sentence: str) -> None:
    """Faults that were not known were left out, and a search without faults said that nothing can happen."""
    with pytest.raises(InputError, match="^" + re.escape(sentence)):
        Bounds(**chosen)


@pytest.mark.parametrize("messages", [1_000, 10**12])
def test_systems_that_are_too_large_are_refused_before_they_are_made(messages: int) -> None:
    with pytest.raises(InputError, match=r"messages make a system too large to be composed; ask about \d+ at most$"):
        compose(shipped(), shipped().configure(), Bounds(messages=messages))


def test_composing_many_messages_looks_at_little_more_than_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every machine was asked about every event: messages squared, whatever hears of whom."""
    asked = [0]

    def counted(*arguments: Any, one_session: bool) -> bool:
        asked[0] += 1
        return concerns(*arguments, one_session=one_session)

    monkeypatch.setattr("ackfsm.checking.network.concerns", counted)
    network = composed(messages=30)
    assert asked[0] < 3 * sum(len(event.participants) for event in network.events)


def test_what_a_search_of_many_messages_works_on_grows_with_its_steps_and_not_with_the_square() -> None:
    """A scratch had room for a step of every event in every number of components: gigabytes for 200 messages."""
    network = composed(messages=30)
    packed = pack(network)
    with Search(packed, SearchOptions(every_step=True, tuning=Tuning(plain_states=None))) as search:
        rooms = {name: len(numbers) for name, numbers in search._scratches[0]._asdict().items()}  # noqa: SLF001
        assert max(rooms.values()) <= 16 * len(packed.free) * search.layout.words
        assert len(search.interned.delta) == len(search.system.mover) * (search.layout.words + 1)


def test_faults_may_be_given_by_their_names() -> None:
    named: Any = ["broker_crash", "consumer_crash"]
    assert Bounds(faults=named) == Bounds(faults=frozenset({Fault.BROKER_CRASH, Fault.CONSUMER_CRASH}))
    assert all(isinstance(fault, Fault) for fault in Bounds(faults=named).faults)


def test_what_a_check_goes_without_never_happens() -> None:
    configuration = shipped().configure()
    network = compose(shipped(), configuration, Bounds(without=frozenset({"acknowledge"})))
    everything = compose(shipped(), configuration, Bounds())
    assert {e.name for e in everything.events} - {e.name for e in network.events} == {"acknowledge"}
    with pytest.raises(InputError, match=r"^there is no event 'acknowledged_late' to go without"):
        compose(shipped(), configuration, Bounds(without=frozenset({"acknowledged_late"})))


def test_a_system_at_rest_does_not_wait_for_what_need_not_happen() -> None:
    """An application that may recover its session does not keep a lost message from being lost."""
    chosen = {"ack_mode": "NO_ACKNOWLEDGE"}
    bounds = Bounds(faults=frozenset({Fault.CONSUMER_CRASH}), actions=frozenset({"recover"}))
    found = explore.check(shipped(), shipped().configure("jms", chosen), bounds)
    assert found.findings[Anomaly.LOSS].reachable


Machine: TypeAlias = tuple[str, Place]
State: TypeAlias = Mapping[Machine, str]


class _Reference:
    """The composition once more, by the formula of ``spec/README.md``, without participants or numbers.

    ``δ`` of a machine is asked for every event of its alphabet that stands in its relation to
    the event's place; a system is a dictionary.  Who holds what is read from the end of a state.
    """

    def __init__(self, specification: Specification, configuration: Configuration, limits: Bounds) -> None:
        self.specification, self.limits = specification, limits
        self.copies = 2 if configuration.resend_in_doubt or "outcome_forgotten" in limits.actions else 1
        machines = [*specification.machines.values()]
        machines += [monitor.machine for prop in specification.properties.values() for monitor in prop.monitors]
        machines += [specification.monitors[name].machine for name in specification.guarantees.monitors]
        by_copy = {}
        routed = limits.subscriptions > 1
        for copy, subscription in itertools.product(range(1, self.copies + 1), range(1, limits.subscriptions + 1)):
            durable = [configuration.destination != "non_durable_subscription"] * (
                limits.subscriptions - limits.non_durable
            ) + [False] * limits.non_durable
            away = subscription > limits.subscriptions - limits.non_durable
            environment = specification.environment(
                dataclasses.replace(configuration, destination=Destination.NON_DURABLE_SUBSCRIPTION)
                if away
                else configuration,
                faults=limits.faults,
                max_faults=limits.max_faults,
                messages=limits.messages,
                consumers=limits.consumers,
                sessions=1 if limits.one_session else limits.consumers,
                durable_beside=any(durable[: subscription - 1]) or any(durable[subscription:]),
                copy=copy,
                copies=limits.messages * self.copies,
                repeats=None if limits.actions else limits.max_faults,
            )
            by_copy[copy, subscription if routed else 0] = {m.name: m.fsm(environment) for m in machines}
        self.fsms = {
            (machine.name, place): by_copy[place[0][1] if len(place[0]) == 2 else 1, place[2] or int(routed)][
                machine.name
            ]
            for machine in machines
            for place in self.places(machine.per)
        }
        self.held = {machine.name: self.held_states(machine) for machine in machines}
        self.events = [
            (name, place)
            for name, event in specification.events.items()
            if (owner := specification.owner(name)) is not None
            if not event.optional or name in limits.actions
            for place in self.places(event.per)
            if self.can_ever(owner.name, name, place)
        ]
        self.participants = {event: self.concerned(*event) for event in self.events}
        self.events = [event for event in self.events if not self.is_always_refused(event)]

    def held_states(self, machine: tables.Machine) -> set[str]:
        if self.limits.consumers == 1:
            return set()
        states = {state for (name, _), fsm in self.fsms.items() if name == machine.name for state in fsm.states}
        counter = machine.counter is not None
        return {state for state in states if state in machine.held or (counter and state.endswith("_open"))}

    def places(self, per: str) -> list[Place]:
        messages = range(1, self.limits.messages + 1)
        copies = [(m, c) for m in messages for c in range(1, self.copies + 1)]
        of_message: list[Index] = [(m,) for m in messages]
        consumers = range(1, self.limits.consumers + 1) if self.limits.consumers > 1 else [0]
        routes = range(1, self.limits.subscriptions + 1) if self.limits.subscriptions > 1 else [0]
        by_per: dict[str, Iterable[tuple[Index, int, int]]] = {
            "system": [((), 0, 0)],
            "message": [(index, 0, 0) for index in of_message],
            "copy": [(index, 0, 0) for index in copies],
            "subscription": [((), 0, s) for s in routes],
            "routed_message": [(index, 0, s) for index in of_message for s in routes],
            "routed_copy": [(index, 0, s) for index in copies for s in routes],
            "session": [((), k, s) for s in routes for k in ([0] if self.limits.one_session else consumers)],
            "consumer": [((), k, s) for s in routes for k in consumers],
            "reception": [(index, k, s) for index in of_message for s in routes for k in consumers],
            "delivery": [(index, k, s) for index in copies for s in routes for k in consumers],
        }
        return list(itertools.starmap(Place, by_per[per]))

    def can_ever(self, owner: str, name: str, place: Place) -> bool:
        index, consumer, subscription = place
        fsms = [
            fsm
            for (own, (mine, k, s)), fsm in self.fsms.items()
            if own == owner
            and mine == index[: len(mine)]
            and k in {0, consumer}
            and (s == subscription or not s * subscription)
        ]
        assert len(fsms) == 1 or not subscription, "one machine decides, or those of all subscriptions"
        rows = [item for fsm in fsms for item in fsm.rows.items()]
        return any(row.kind is RowKind.TO for (_, event), row in rows if event == EventRef(name))

    def states(self, machine: Machine) -> list[str]:
        """All that this machine can be in, with the consumers that hold it."""
        held, consumers = self.held[machine[0]], range(1, self.limits.consumers + 1)
        return [
            name
            for state in self.fsms[machine].states
            for name in ([f"{state}_c{k}" for k in consumers] if state in held else [state])
        ]

    def is_always_refused(self, event: tuple[str, Place]) -> bool:
        """Whether some machine that it concerns refuses it in every state."""
        return any(
            all(self.after(machine, state, called, event) is None for state in self.states(machine))
            for machine, called in self.participants[event]
        )

    def concerned(self, name: str, place: Place) -> list[tuple[Machine, EventRef]]:
        """The machines, by name and place, that an event concerns, and their names for it."""
        return [
            ((machine, mine), event)
            for (machine, mine), fsm in self.fsms.items()
            for event in fsm.alphabet
            if event.name == name and stands(event.relation, mine, place, one_session=self.limits.one_session)
        ]

    def after(self, machine: Machine, state: str, called: EventRef, event: tuple[str, Place]) -> str | None:
        """The next state of one machine; ``None`` if it refuses."""
        base, _, holder = state.rpartition("_c") if state not in self.fsms[machine].states else (state, "", "")
        row, mine = self.fsms[machine].rows[base, called], event[1][1]
        if holder and mine and int(holder) != mine and called.relation == "own":
            of_the_message = self.specification.events[event[0]].per == "delivery"
            return None if row.kind is RowKind.REFUSE or of_the_message else state
        if row.kind is RowKind.REFUSE:
            return None
        if row.kind is RowKind.IGNORE:
            return state
        return f"{row.target}_c{holder or mine}" if row.target in self.held[machine[0]] else row.target

    def step(self, state: State, name: str, place: Place) -> State | None:
        moved = dict(state)
        for machine, called in self.participants[name, place]:
            after = self.after(machine, state[machine], called, (name, place))
            if after is None:
                return None
            moved[machine] = after
        return moved


def stands(relation: str, mine: Place, its: Place, *, one_session: bool) -> bool:
    """Whether ``its`` is, for a machine at ``mine``, its own place or an earlier, a later, another one."""
    pairs = list(zip(mine[0], its[0], strict=False))
    first = next(((m, i) for m, i in pairs if m != i), None)
    if mine[2] * its[2] and mine[2] != its[2]:
        return relation == "other_subscription" and first is None
    if mine[1] and its[1] and mine[1] != its[1]:
        if first is None:
            return relation == "elsewhere"
        if not one_session:
            return relation == "other_elsewhere"
        order = {"earlier"} if first[1] < first[0] else {"later", "later_beside"}
        return relation in {"other", "other_elsewhere", *order}
    if first is None:
        return relation == "own"
    return relation in {"other", *({"earlier"} if first[1] < first[0] else {"later", "later_here"})}


@settings(max_examples=30 if WHOLE else 10)
@given(
    configurations(),
    bounds(),
    st.sampled_from([(1, False), (2, False), (3, False), (2, True), (3, True)]),
    st.sampled_from([(1, 0), (1, 0), (2, 0), (2, 1), (3, 1)]),
    st.data(),
)
def test_the_system_is_the_composition_of_its_machines(
    configuration: Configuration,
    limits: Bounds,
    consuming: tuple[int, bool],
    routed: tuple[int, int],
    data: st.DataObject,
) -> None:
    limits = dataclasses.replace(limits, consumers=consuming[0], one_session=consuming[1])
    limits = dataclasses.replace(limits, subscriptions=routed[0], non_durable=routed[1])
    network, reference = compose(shipped(), configuration, limits), _Reference(shipped(), configuration, limits)
    places = [(instance.fsm.name, instance.place) for instance in network.instances]
    assert sorted(places) == sorted(reference.fsms)
    assert sorted((event.name, event.place) for event in network.events) == sorted(reference.events)
    state = network.initial
    for _ in range(20):
        told = {(event.name, event.place): network.step(state, event) for event in network.events}
        by_name = dict(zip(places, state, strict=True))
        for (name, place), step in told.items():
            expected = reference.step(by_name, name, place)
            assert (step and dict(zip(places, step, strict=True))) == expected, (name, place)
        enabled = [step for step in told.values() if step is not None]
        if not enabled:
            break
        state = data.draw(st.sampled_from(enabled))


@given(networks())
def test_a_packed_system_begins_as_its_machines_do(network: Network) -> None:
    packed = pack(network)
    assert unpacked(network, packed.initial) == network.initial
    assert packed.size == [len(instance.fsm.states) for instance in network.instances]


@given(networks())
def test_the_machines_of_one_index_are_in_one_component(network: Network) -> None:
    packed = pack(network)
    of_index = {
        instance.index: component for instance, component in zip(network.instances, packed.component, strict=True)
    }
    assert [of_index[instance.index] for instance in network.instances] == packed.component
    assert sorted(set(packed.component)) == list(range(max(packed.component) + 1))


@given(networks())
def test_the_marks_of_a_packed_system_are_those_of_its_watchers(network: Network) -> None:
    packed = pack(network)
    watching = [number for number, instance in enumerate(network.instances) if instance.anomaly is not None]
    assert packed.observers == watching
    assert set(packed.anomalies) == {network.instances[number].anomaly for number in watching}
    for number, offset in zip(packed.observers, packed.mark, strict=True):
        instance = network.instances[number]
        for place, state in enumerate(instance.fsm.states):
            assert marks(packed.always[offset + place], packed.anomalies) == marked(
                instance.anomaly, state in instance.marked
            )
            assert marks(packed.at_rest[offset + place], packed.anomalies) == marked(
                instance.anomaly, state in instance.marked_at_rest
            )


def marks(bits: int, anomalies: Sequence[str]) -> set[str]:
    return {anomaly for place, anomaly in enumerate(anomalies) if bits >> place & 1}


def marked(anomaly: str | None, is_marked: bool) -> set[str]:  # noqa: FBT001
    return {anomaly} if is_marked and anomaly is not None else set()
