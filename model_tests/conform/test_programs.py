"""Are programs the same for the same seed, within their limits, and is what is made smaller ever smaller?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ackfsm.driving.conform import Claims, Mode, Operation
from ackfsm.driving.conform._judge import shrunk
from ackfsm.driving.conform._program import Cancel, Close, Inject, Program, Receive, Recover, Send, draw, smaller
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault

MODES = st.builds(Mode, st.sampled_from(AckMode), st.sampled_from(DeliveryMode), st.sampled_from(Consumption))
OPERATIONS = st.frozensets(st.sampled_from(Operation))
FAULTS = st.none() | st.sampled_from(Fault)


def program(seed: int, mode: Mode, fault: Fault | None, operations: frozenset[Operation], messages: int = 6) -> Program:
    return draw(str(seed), mode, fault, Claims(name="x", ack_modes=(mode.ack_mode,), operations=operations), messages)


@given(st.integers(0, 10**6), MODES, FAULTS, OPERATIONS, st.integers(1, 20))
def test_a_program_keeps_its_limits_and_asks_for_nothing_that_is_not_claimed(
    seed: int, mode: Mode, fault: Fault | None, operations: frozenset[Operation], messages: int
) -> None:
    drawn = program(seed, mode, fault, operations, messages)
    assert drawn == program(seed, mode, fault, operations, messages)
    sends = [step for step in drawn.steps if isinstance(step, Send)]
    assert 1 <= sum(step.number for step in sends) <= messages
    faults = [step for step in drawn.steps if isinstance(step, Inject)]
    assert {step.fault for step in faults} == ({fault} if fault else set())
    assert len(faults) <= 2
    if Operation.DURING not in operations:
        assert all(step.at in {"idle", "delivered"} for step in faults)
    if Operation.CLOSE not in operations:
        assert not any(isinstance(step, Close) for step in drawn.steps)
    if Operation.CANCEL not in operations or mode.consumption is Consumption.LISTENER:
        assert not any(isinstance(step, Cancel) for step in drawn.steps)
    back = Operation.ROLLBACK if mode.ack_mode is AckMode.SESSION_TRANSACTED else Operation.RECOVER
    if back not in operations:
        assert not any(isinstance(step, Recover) for step in drawn.steps)
    assert str(drawn).isprintable()


@given(st.integers(0, 10**6), MODES, FAULTS)
def test_one_consumer_at_a_time_is_no_second_one(seed: int, mode: Mode, fault: Fault | None) -> None:
    claims = Claims(name="x", ack_modes=(mode.ack_mode,), operations=frozenset(Operation), consumers=1)
    assert {getattr(step, "who", 0) for step in draw(str(seed), mode, fault, claims, 6).steps} <= {0, -1}


def size(of: Program) -> int:
    return sum(
        2 + getattr(step, "number", 0) + getattr(step, "who", 0) + (getattr(step, "at", "idle") != "idle")
        for step in of.steps
    )


@given(st.integers(0, 10**6), MODES, FAULTS, OPERATIONS)
def test_what_is_smaller_is_smaller(
    seed: int, mode: Mode, fault: Fault | None, operations: frozenset[Operation]
) -> None:
    drawn = program(seed, mode, fault, operations)
    assert all(size(each) < size(drawn) for each in smaller(drawn))


def test_a_failing_program_becomes_the_smallest_that_fails_and_no_more_is_tried_than_allowed() -> None:
    big = Program((Send(3), Receive(1, 3, "last"), Recover(), Inject(Fault.BROKER_KILL, "send", 1), Close(), Send(2)))

    def fails(candidate: Program) -> bool:
        return any(isinstance(step, Inject) for step in candidate.steps) and any(
            isinstance(step, Send) for step in candidate.steps
        )

    small, tried = shrunk(big, fails)
    assert small.steps == (Inject(Fault.BROKER_KILL, "idle", 0), Send(1)) or small.steps == (
        Send(1),
        Inject(Fault.BROKER_KILL, "idle", 0),
    )
    assert tried < 60
    assert shrunk(big, fails, 1)[1] == 1
    assert shrunk(big, lambda _: False) == (big, len(list(smaller(big))))
