"""Three executors of one network must agree in every step: ``transitions``, the tables, and the packed integers."""

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ackfsm.checking.explore import Interpreter, Refused, pack
from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose
from ackfsm.tables import RowKind
from ackfsm.terms import Configuration
from model_tests.support.tables import bounds, configurations, shipped, unpacked
from model_tests.support.whole import WHOLE


class _Interpreter:
    """The packed tables, run by the description of :class:`~ackfsm.checking.explore.PackedNetwork` alone."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.packed = pack(network)
        self.numbers = list(self.packed.initial)

    @property
    def state(self) -> tuple[str, ...]:
        return unpacked(self.network, self.numbers)

    def enabled(self) -> list[str]:
        return [event.label for number, event in enumerate(self.network.events) if self.targets(number) is not None]

    def targets(self, event: int) -> dict[int, int] | None:
        """The next state of each instance that takes part; ``None`` if one of them refuses."""
        packed, after = self.packed, dict[int, int]()
        for participant in range(packed.first[event], packed.first[event + 1]):
            instance = packed.instance[participant]
            after[instance] = packed.table[packed.offset[participant] + self.numbers[instance]]
        return None if -1 in after.values() else after

    def fire(self, event: int) -> bool:
        after = self.targets(event)
        for instance, target in (after or {}).items():
            self.numbers[instance] = target
        return after is not None


class _Executors(RuleBasedStateMachine):
    """A random system under a random sequence of events, most of which can happen."""

    network: Network
    system: Interpreter
    integers: _Interpreter
    state: tuple[str, ...]

    @initialize(configuration=configurations(), limits=bounds())
    def compose(self, configuration: Configuration, limits: Bounds) -> None:
        self.network = compose(shipped(), configuration, limits)
        self.system = Interpreter(self.network)
        self.integers = _Interpreter(self.network)
        self.state = self.network.initial

    def pick(self, events: Sequence[NetworkEvent], choice: int) -> NetworkEvent:
        return events[choice % len(events)]

    @rule(choice=st.integers(0, 1000), arbitrary=st.sampled_from((False, False, False, True)))
    def happen(self, choice: int, *, arbitrary: bool) -> None:
        possible = [event for event in self.network.events if self.network.step(self.state, event) is not None]
        event = self.pick(self.network.events if arbitrary or not possible else possible, choice)
        after = self.network.step(self.state, event)
        happened = self.integers.fire(self.network.events.index(event))
        assert happened == (after is not None)
        if after is None:
            self.refuse(event)
        else:
            self.system.fire(event.label)
            self.state = after

    def refuse(self, event: NetworkEvent) -> None:
        with pytest.raises(Refused) as error:
            self.system.fire(event.label)
        refusing = [(i, row) for i, row in self.network.rows(self.state, event) if row.kind is RowKind.REFUSE]
        assert (error.value.instance, error.value.row) == refusing[0], "the first that refuses is the one that is named"

    @invariant()
    def they_are_in_one_state(self) -> None:
        assert self.system.state == self.integers.state == self.state

    @invariant()
    def the_same_events_can_happen(self) -> None:
        by_rows = [event.label for event in self.network.events if self.network.step(self.state, event) is not None]
        assert [event.label for event in self.system.enabled()] == self.integers.enabled() == by_rows


TestExecutors = _Executors.TestCase
TestExecutors.settings = settings(max_examples=40 if WHOLE else 14, stateful_step_count=30)
