"""The condition language: what is legal means what it means to Python, everything else is refused with a sentence."""

import os
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from ackfsm.checking.network import Bounds
from ackfsm.tables import Condition
from ackfsm.tables._conditions import parse_condition
from ackfsm.terms import Configuration, Fault, key_type, legal_values
from model_tests.support.places import SPEC
from model_tests.support.tables import bounds, configurations, shipped, values
from model_tests.support.whole import WHOLE

FORBIDDEN = {
    "a call": "f()",
    "a call of a builtin": "__import__('os')",
    "a call of a method": "ack_mode.lower() == 'x'",
    "an attribute": "ack_mode.value",
    "a subscript": "ack_mode[0]",
    "a slice": "ack_mode[1:]",
    "a lambda": "lambda: 1",
    "a sum": "prefetch + 1",
    "a product": "2 * prefetch == 4",
    "a power": "2 ** prefetch == 4",
    "a negative number": "prefetch == -1",
    "a bitwise inversion": "~prefetch",
    "a bitwise or": "queue_durable | resend_in_doubt",
    "a text with fields": "f'{ack_mode}' == 'x'",
    "a list": "ack_mode in ['AUTO_ACKNOWLEDGE']",
    "a set": "ack_mode in {'AUTO_ACKNOWLEDGE'}",
    "a dictionary": "ack_mode in {'AUTO_ACKNOWLEDGE': 1}",
    "a list comprehension": "[x for x in (1, 2)]",
    "a set comprehension": "{x for x in (1, 2)}",
    "a dictionary comprehension": "{x: x for x in (1, 2)}",
    "a generator": "(x for x in (1, 2))",
    "an assignment expression": "(prefetch := 1)",
    "a starred name": "(*ack_mode,)",
    "a choice": "queue_durable if resend_in_doubt else confirm_timer",
    "an await": "await queue_durable",
    "a yield": "(yield)",
    "identity": "publish_window is None",
    "an unknown name": "acknowledge_mode == 'AUTO_ACKNOWLEDGE'",
    "a dunder name": "__builtins__",
    "a condition that has no such name": "journaled",
    "a value of no acknowledgement mode": "ack_mode == 'CLIENT_ACK'",
    "the same, turned round": "'CLIENT_ACK' != ack_mode",
    "the same, among others": "ack_mode in ('AUTO_ACKNOWLEDGE', 'CLIENT_ACK')",
    "the same, deep inside": "queue_durable and not (confirm_timer or ack_mode == 'CLIENT_ACK')",
    "a value of another setting": "delivery_mode == 'AUTO_ACKNOWLEDGE'",
    "None for an enumeration": "ack_mode == None",
    "a fault that does not exist": "'broker_crush' in faults",
    "nothing": "",
    "half an expression": "prefetch <",
    "a statement": "prefetch = 1",
    "two statements": "queue_durable; confirm_timer",
    "two lines": "queue_durable\nconfirm_timer",
    "a null character": "\0",
}

SENSELESS = {
    "a fraction": "prefetch < 1.5",
    "an ellipsis": "prefetch == ...",
    "an imaginary number": "prefetch == 1j",
    "bytes": "prefetch == b'1'",
    "a text for a number": "prefetch == 'many'",
    "a text for a boolean": "queue_durable == 'true'",
    "an unknown value, the setting in a tuple": "'CLIENT_ACK' in (ack_mode, consumption)",
    "a text for a tuple, which Python searches for parts": "ack_mode in ('EXPLICIT_CLIENT_ACKNOWLEDGE')",
    "a number as a container": "prefetch in 3",
    "an order between a number and None": "prefetch < None",
    "an order of a number that may be None": "publish_window < 3",
    "the profile": "profile == 'jms'",
    "a choice by or, compared": "(prefetch or publish_window) == 5",
}
"""Each is Python, but never what its author means, or an error once it is evaluated."""


def environment(configuration: Configuration, limits: Bounds, copy: int = 1) -> dict[str, Any]:
    return shipped().environment(
        configuration, faults=limits.faults, max_faults=limits.max_faults, messages=limits.messages, copy=copy
    )


def python(text: str, settings: Mapping[str, Any]) -> bool:
    """What Python makes of a condition: an evaluation without builtins, named conditions first."""
    names = dict(settings)
    for name, condition in shipped().conditions.items():
        names[name] = bool(eval(condition.text, {"__builtins__": {}}, names))  # noqa: S307 - the independent executor
    return bool(eval(text, {"__builtins__": {}}, names))  # noqa: S307 - the independent executor


def comparisons() -> st.SearchStrategy[str]:
    """Comparisons of every kind of setting with legal values, chains included."""
    keys = st.sampled_from([key for key in shipped().configure().as_dict() if key != "profile"])
    return st.one_of(
        keys.flatmap(_comparison),
        st.builds("'{}' {} faults".format, st.sampled_from(Fault), st.sampled_from(("in", "not in"))),
        st.builds("{} {} copy {} {}".format, _numbers, _orders, _orders, _numbers),
        st.builds("messages {} {}".format, _orders | _equalities, _numbers),
        st.builds("max_faults {} {}".format, _equalities, _numbers | st.none()),
        st.builds("{} {} {}".format, st.sampled_from(list(shipped().conditions)), _equalities, st.booleans()),
    )


_numbers = st.integers(0, 3)
_orders = st.sampled_from(("<", "<=", ">", ">="))
_equalities = st.sampled_from(("==", "!="))


def _comparison(key: str) -> st.SearchStrategy[str]:
    kind = key_type(key)
    literals = st.sampled_from([repr(v.value if isinstance(v, StrEnum) else v) for v in values(key)])
    equal = st.builds("{} {} {}".format, st.just(key), _equalities, literals)
    turned = st.builds("{} {} {}".format, literals, _equalities, st.just(key))
    several = st.lists(literals, min_size=1).map(lambda chosen: f"({', '.join(chosen)},)")
    among = st.builds("{} {} {}".format, st.just(key), st.sampled_from(("in", "not in")), several)
    order = st.builds("{} {} {} {} {}".format, _numbers, _orders, st.just(key), _orders, _numbers)
    return st.one_of(equal, turned, among, *([order] if kind is int and None not in values(key) else []))


def conditions() -> st.SearchStrategy[str]:
    """Legal conditions at random."""
    booleans = [key for key in shipped().configure().as_dict() if legal_values(key) == (True, False)]
    atoms = st.one_of(comparisons(), st.sampled_from([*booleans, *shipped().conditions, "True", "False"]))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("not ({})".format, inner),
            st.builds("({}) and ({})".format, inner, inner),
            st.builds("{} or {}".format, inner, inner),
            st.builds("({} and {} or not {})".format, inner, inner, inner),
        ),
        max_leaves=8,
    )


@given(st.deferred(conditions), configurations(), bounds(), st.integers(1, 2))
@example("not not queue_durable", shipped().configure(), Bounds(), 1)
@example("True or prefetch == 0 and False", shipped().configure(), Bounds(), 1)
@example("not queue_durable == False", shipped().configure(), Bounds(), 1)
@example("0 <= copy < messages", shipped().configure(), Bounds(messages=2), 1)
def test_a_condition_means_what_it_means_to_python(
    text: str, configuration: Configuration, limits: Bounds, copy: int
) -> None:
    settings = environment(configuration, limits, copy)
    assert parse_condition(text, shipped().conditions).holds(settings) is python(text, settings)


@settings(max_examples=100 if WHOLE else 30)
@given(configurations(), bounds())
def test_the_conditions_of_the_tables_mean_what_they_mean_to_python(
    configuration: Configuration, limits: Bounds
) -> None:
    specification, settings = shipped(), environment(configuration, limits)
    machines = [
        *specification.machines.values(),
        *(m.machine for p in specification.properties.values() for m in p.monitors),
    ]
    stated = {row.when for machine in machines for row in machine.rows()} | {
        p.when for p in specification.promises.values()
    }
    assert len(stated) > 20
    for condition in stated | set(specification.conditions.values()):
        assert condition.holds(settings) is python(condition.text, settings), condition.text


@pytest.mark.parametrize("text", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_what_is_not_of_the_language_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("text", SENSELESS.values(), ids=SENSELESS.keys())
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    refused(text)


def refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^condition ") as error:
        parse_condition(text, shipped().conditions)
    sentence = str(error.value)
    assert type(error.value) is ValueError
    assert sentence.startswith(f"condition {text!r}")
    assert len(sentence) > len(f"condition {text!r}") + 10, "it says what is wrong"
    assert "\n" not in sentence


def test_a_value_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="'CLIENT_ACK' is not one of AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE, "):
        parse_condition("ack_mode == 'CLIENT_ACK'", {})


def test_a_condition_knows_the_settings_that_it_reads() -> None:
    condition = parse_condition("journalled and copy == 1 or not confirm_timer", shipped().conditions)
    assert condition.names() == {"journalled", "copy", "confirm_timer"}
    assert condition.settings() == {
        "delivery_mode",
        "non_persistent_handling",
        "queue_durable",
        "destination",
        "copy",
        "confirm_timer",
    }
    assert condition == Condition(condition.text, {}, frozenset(), frozenset()), "the text alone makes it equal"


def test_nothing_of_a_table_is_executed() -> None:
    """Python reports every code object that is about to run; after a first load there is none."""
    program = """
import sys, pathlib
from ackfsm import tables
from ackfsm.checking.network import Bounds, compose
executed = []
def run():
    specification = tables.load(pathlib.Path(sys.argv[1]))
    compose(specification, specification.configure("artemis"), Bounds())
run()
sys.addaudithook(lambda event, arguments: event == "exec" and executed.append(arguments))
run()
found = list(executed)
eval("1")
print(len(found), len(executed))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(SPEC)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SPEC.parent)},
    )
    assert done.stdout.split() == ["0", "1"], "the hook hears of eval, and heard of nothing before"


@pytest.mark.parametrize("profile", ["jms", "rabbitmq", "solace-jms"])
def test_conditions_hold_in_another_process_where_they_hold_in_this_one(profile: str) -> None:
    """Tables go to Spark's workers so; a condition may be read there before those that it names."""
    specification = shipped()
    sent = cloudpickle.loads(cloudpickle.dumps(specification))  # type: ignore[no-untyped-call]
    environment = specification.environment(specification.configure(profile))
    here, there = (
        {name: condition.holds(environment) for name, condition in each.conditions.items()}
        for each in (specification, sent)
    )
    assert there == here
    assert len(set(here.values())) == 2
