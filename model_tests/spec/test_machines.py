"""The tables as machines of the ``transitions`` library: one table for any model, and a system with its hook."""

from pathlib import Path

import pytest
import transitions
from hypothesis import given, settings

from ackfsm.checking.explore import Interpreter, Refused
from ackfsm.checking.machines import Model, machine, trigger
from ackfsm.checking.network import Bounds, Instance, Network, compose
from ackfsm.tables import EventRef, Fsm, Relation, Row, RowKind, Specification
from ackfsm.terms import AckfsmError, Configuration, Fault
from model_tests.support.tables import bounds, configurations, shipped, small_spec

DOOR = """
door:
  per: system
  means: x
  owns: [open, close, knock, look]
  states:
    shut:
      open: {to: ajar, because: the handle turns, source: model}
      close: {refuse: it is shut already, error: DoorException, source: model}
      knock: {to: shut, because: it stays shut, source: model}
      look: {ignore: doors do not mind}
    ajar:
      open, knock: {refuse: it is open}
      close: {to: shut, because: the latch falls, source: model}
      look: {ignore: doors do not mind}
guest:
  per: system
  means: x
  states:
    outside: {open: {to: inside, because: in one goes, source: model}}
    inside: {open: {refuse: the guest is inside already}}
"""
DOOR_EVENTS = "\n".join(
    f"{name}: {{per: system, lane: broker, means: x}}" for name in ("open", "close", "knock", "look")
)


@pytest.fixture
def house(tmp_path: Path) -> Specification:
    return small_spec(tmp_path, DOOR, DOOR_EVENTS)


@pytest.fixture
def network(house: Specification) -> Network:
    return compose(house, house.configure(), Bounds())


@pytest.fixture
def door(network: Network) -> Fsm:
    return network.instances[0].fsm


class _Porch:
    """A model of one's own: it counts what ``transitions`` calls."""

    state: str

    def __init__(self) -> None:
        self.left: list[str] = []
        self.told: list[str] = []

    def on_exit_shut(self, _who: str) -> None:
        self.left.append("shut")

    def tell(self, who: str) -> None:
        self.told.append(f"{self.state} for {who}")


def test_any_object_can_be_the_model(door: Fsm) -> None:
    porch = _Porch()
    machine(door, porch, after=porch.tell)
    assert porch.state == "shut"
    assert porch.trigger("open", "Ada")  # type: ignore[attr-defined]
    assert porch.close("Bob")  # type: ignore[attr-defined]
    assert porch.told == ["ajar for Ada", "shut for Bob"]


def test_without_a_model_the_machine_is_its_own(door: Fsm) -> None:
    own = machine(door)
    own.trigger("open")
    assert own.state == "ajar"
    assert own.get_triggers("ajar") == ["close", "look"]


def test_a_row_that_keeps_the_state_leaves_it_and_an_ignored_event_does_not(door: Fsm) -> None:
    porch = _Porch()
    machine(door, porch)
    porch.look("Ada")  # type: ignore[attr-defined]
    assert (porch.state, porch.left) == ("shut", [])
    porch.knock("Ada")  # type: ignore[attr-defined]
    assert (porch.state, porch.left) == ("shut", ["shut"])


def test_a_refused_event_is_an_error_of_the_library_and_changes_nothing(door: Fsm) -> None:
    own = machine(door)
    with pytest.raises(transitions.MachineError):
        own.trigger("close")
    assert own.state == "shut"


def test_there_is_a_machine_for_every_table_and_it_does_what_the_table_says() -> None:
    specification = shipped()
    environment = specification.environment(specification.configure(), faults=frozenset(Fault), max_faults=2)
    for table in specification.machines.values():
        does_what_the_table_says(table.fsm(environment))


@settings(max_examples=5)
@given(configurations(), bounds())
def test_so_it_does_in_every_configuration(configuration: Configuration, limits: Bounds) -> None:
    for instance in compose(shipped(), configuration, limits).instances:
        if instance.index in {(), (1,), (1, 2)}:
            does_what_the_table_says(instance.fsm)


def does_what_the_table_says(fsm: Fsm) -> None:
    own = machine(fsm)
    assert own.state == fsm.initial
    assert set(own.states) == set(fsm.states)
    for state in fsm.states:
        for event in fsm.alphabet:
            own.set_state(state)
            after = fsm.step(state, event)
            if after is None:
                assert trigger(event) not in own.get_triggers(state)
            else:
                own.trigger(trigger(event))
                assert own.state == after, (fsm.name, state, str(event))


def test_an_event_of_another_index_has_a_method_of_its_own() -> None:
    assert trigger(EventRef("dispatch_first")) == "dispatch_first"
    assert trigger(EventRef("dispatch_first", Relation.LATER)) == "dispatch_first_later"
    assert trigger(EventRef("dispatch_first", consumer=2)) == "dispatch_first_c2"
    for table in shipped().machines.values():
        assert len({trigger(event) for event in table.alphabet}) == len(table.alphabet), table.name


def test_a_system_moves_every_participant(network: Network) -> None:
    system = Interpreter(network)
    assert system.state == network.initial == ("shut", "outside")
    system.fire("open")
    assert system.state == ("ajar", "inside")
    assert [event.label for event in system.enabled()] == ["close"], "to look moves nothing, so it does not exist"


def test_a_refusal_names_the_event_the_machine_the_state_the_reason_the_error_and_the_place(network: Network) -> None:
    system = Interpreter(network)
    with pytest.raises(Refused) as error:
        system.fire("close")
    assert str(error.value) == (
        "close is refused by door in state shut: it is shut already (DoorException), spec/machines/all.yaml:9"
    )
    assert isinstance(error.value, AckfsmError)
    assert (error.value.event.label, error.value.instance.label, error.value.row.error) == (
        "close",
        "door",
        "DoorException",
    )


def test_a_refusal_by_any_participant_leaves_all_of_them_where_they_were(network: Network) -> None:
    heard: list[str] = []
    system = Interpreter(network, lambda instance, _row: heard.append(instance.label))
    system.fire("open")
    system.fire("close")
    with pytest.raises(Refused, match=r"^open is refused by guest in state inside: the guest is inside already, "):
        system.fire("open")
    assert system.state == ("shut", "inside")
    assert heard == ["door", "guest", "door"], "the hook hears of what happened, not of what was refused"


def test_the_hook_hears_of_every_row_that_decides(network: Network) -> None:
    heard: list[tuple[str, str, str]] = []

    def hook(instance: Instance, row: Row) -> None:
        heard.append((instance.label, row.state, row.because))

    Interpreter(network, hook).fire("open")
    assert heard == [("door", "shut", "the handle turns"), ("guest", "outside", "in one goes")]


def test_a_hook_sees_the_machine_in_its_new_state(network: Network) -> None:
    seen: list[str] = []

    def hook(instance: Instance, _row: Row) -> None:
        seen.append(system.state[network.instances.index(instance)])

    system = Interpreter(network, hook)
    system.fire("open")
    assert seen == ["ajar", "inside"]


def test_the_models_are_typed_for_the_reader(network: Network) -> None:
    model: Model = Interpreter(network).models[0]
    assert model.trigger("open")
    assert model.state == "ajar"


def test_a_message_goes_all_the_way_by_the_names_of_the_tables() -> None:
    specification = shipped()
    system = Interpreter(compose(specification, specification.configure("jms"), Bounds()))
    sent = ["send", "accept", "write_record", "sync_record", "confirm", "confirmed"]
    consumed = ["dispatch_first", "arrive", "delivered_clear", "processed"]
    settled = ["acknowledge", "settle", "write_ack_record", "sync_ack_record"]
    answered = ["confirm_acknowledgement", "acknowledged"]
    for step in [*sent, *consumed, *settled, *answered]:
        system.fire(f"{step}(m1)")
    assert system.enabled() == [], "at rest"
    states = {i.label: state for i, state in zip(system.network.instances, system.state, strict=True)}
    assert (states["entry(m1)"], states["record(m1)"], states["ack_record(m1)"]) == ("removed", "durable", "durable")
    assert (states["publication(m1)"], states["delivery(m1)"]) == ("resolved", "absent")


@settings(max_examples=10)
@given(configurations(), bounds())
def test_every_refusal_can_be_explained(configuration: Configuration, limits: Bounds) -> None:
    system = Interpreter(compose(shipped(), configuration, limits))
    enabled = {event.label for event in system.enabled()}
    for event in system.network.events:
        if event.label not in enabled:
            with pytest.raises(Refused) as error:
                system.fire(event.label)
            row = error.value.row
            assert row.kind is RowKind.REFUSE
            assert str(error.value).endswith(row.place)
            assert system.state == system.network.initial


def test_a_message_is_with_the_consumer_that_it_was_sent_to() -> None:
    specification = shipped()
    for consumer in (1, 2):
        system = Interpreter(compose(specification, specification.configure("jms"), Bounds(consumers=2)))
        for step in ("send", "accept", "write_record", "sync_record", "confirm", "confirmed"):
            system.fire(f"{step}(m1)")
        system.fire(f"dispatch_first(m1,c{consumer})")
        states = {i.label: state for i, state in zip(system.network.instances, system.state, strict=True)}
        assert states["entry(m1)"] == f"dispatched_c{consumer}"
