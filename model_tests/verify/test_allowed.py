"""What a configuration allows in any number is asked of one authority, whose answers are cached."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.terms import Anomaly, Fault
from ackfsm.verify.context.allowed import Allowed
from model_tests.support.tables import shipped


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ackfsm" / "allowed"


def test_what_is_allowed_is_what_a_check_with_any_number_of_faults_reaches(cache: Path) -> None:
    configuration = shipped().configure("artemis", {"ack_mode": "PRE_ACKNOWLEDGE"})
    faults = {Fault.BROKER_CRASH, Fault.CONSUMER_CRASH}
    answer = explore.check(shipped(), configuration, Bounds(faults=frozenset(faults), max_faults=None))
    expected = dict.fromkeys(Anomaly, Allowed(None)) | {a: Allowed(f.reachable) for a, f in answer.findings.items()}
    expected |= dict.fromkeys(BETWEEN_MESSAGES, Allowed(None))
    assert verify.allowed(shipped(), configuration, faults) == expected
    assert len(list(cache.iterdir())) == 1
    assert verify.allowed(shipped(), configuration, faults) == expected, "as kept"


def test_what_was_kept_is_not_searched_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = verify.allowed(shipped(), shipped().configure(), {Fault.CONSUMER_CRASH})
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", None)
    assert verify.allowed(shipped(), shipped().configure(), [Fault.CONSUMER_CRASH]) == first
    with pytest.raises(TypeError):
        verify.allowed(shipped(), shipped().configure(), {Fault.CONSUMER_LINK_LOSS})
    assert len(list(cache.iterdir())) == 1


BETWEEN_MESSAGES = (
    Anomaly.TORN_TRANSACTION,
    Anomaly.REORDER,
    Anomaly.WINDOW_OVERRUN,
    Anomaly.PREFETCH_OVERRUN,
)
"""What one message cannot have."""

ACTIVEMQ = ("activemq", {"ack_mode": "AUTO_ACKNOWLEDGE"})
TWO = {
    "overtaken after another consumer died with it": (
        *ACTIVEMQ,
        Anomaly.REORDER,
        {Fault.CONSUMER_CRASH},
        ["taken_elsewhere"],
        True,
    ),
    "overtaken though nobody else consumes": (*ACTIVEMQ, Anomaly.REORDER, {Fault.CONSUMER_CRASH}, [], False),
    "overtaken, where it would be flagged": ("jms", {}, Anomaly.REORDER, set(), ["taken_elsewhere"], False),
    "a transaction that holds or does not": (
        "jms",
        {"ack_mode": "SESSION_TRANSACTED"},
        Anomaly.TORN_TRANSACTION,
        {Fault.CONSUMER_LINK_LOSS},
        ["recover"],
        False,
    ),
    "a transaction that is stored in parts": (
        "rabbitmq",
        {"ack_mode": "SESSION_TRANSACTED"},
        Anomaly.TORN_TRANSACTION,
        {Fault.BROKER_KILL},
        [],
        True,
    ),
    "a window of many": ("jms", {"publish_window": 50}, Anomaly.WINDOW_OVERRUN, set(), [], False),
    "a bound of many": (
        "rabbitmq",
        {"prefetch": 50},
        Anomaly.PREFETCH_OVERRUN,
        {Fault.CONSUMER_LINK_LOSS},
        [],
        False,
    ),
}


@pytest.mark.parametrize(("profile", "settings", "anomaly", "faults", "actions", "reached"), TWO.values(), ids=TWO)
def test_what_was_found_between_messages_is_searched_for_with_two(  # noqa: PLR0913, PLR0917 - the columns of the cases
    cache: Path,
    profile: str,
    settings: dict[str, object],
    anomaly: Anomaly,
    faults: set[Fault],
    actions: list[str],
    *,
    reached: bool,
) -> None:
    configuration = shipped().configure(profile, settings)
    told = verify.allowed(shipped(), configuration, faults, actions=actions, found=[anomaly])
    assert told[anomaly].answer is reached
    assert {a for a in BETWEEN_MESSAGES if told[a].answer is None} == set(BETWEEN_MESSAGES) - {anomaly}
    assert len(list(cache.iterdir())) == 2
    again = verify.allowed(shipped(), configuration, faults, actions=actions, found=[anomaly])
    assert again == told, "as kept"


@pytest.mark.usefixtures("cache")
def test_what_neither_a_proof_nor_a_search_decides_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.verify.context.allowed._MOST_STATES", 20)
    for _ in range(2):
        told = verify.allowed(shipped(), shipped().configure(), {Fault.BROKER_KILL}, found=[Anomaly.REORDER])
        assert told[Anomaly.REORDER] == Allowed(None, "neither a proof nor the search with two messages came to an end")


@pytest.mark.usefixtures("cache")
def test_a_no_that_is_not_proved_says_that_it_is_of_two_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = shipped().configure("rabbitmq", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    monkeypatch.setattr("ackfsm.checking.unbounded._decide._BYTES_OF_A_VIEW", 10**9)  # no proof has room
    told = verify.allowed(shipped(), configuration, (), found=[Anomaly.REORDER])
    assert told[Anomaly.REORDER] == Allowed(answer=False, limit="with two messages; of more nothing is proved")


WRONG = {
    "of one message": ("jms", {}, Anomaly.DUPLICATE, {Fault.CONSUMER_LINK_LOSS}, [], 1),
    "of two messages": (*ACTIVEMQ, Anomaly.REORDER, {Fault.CONSUMER_CRASH}, ["taken_elsewhere"], 2),
}


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(("profile", "settings", "anomaly", "faults", "actions", "messages"), WRONG.values(), ids=WRONG)
def test_a_no_of_few_messages_is_not_believed_where_more_show_it(  # noqa: PLR0913, PLR0917 - the columns of the cases
    profile: str,
    settings: dict[str, object],
    anomaly: Anomaly,
    faults: set[Fault],
    actions: list[str],
    messages: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search of so many messages, and of fewer, says no wrongly, as if the anomaly took one message more."""
    check = explore.check

    def says_no(*asked: Any, **how: Any) -> explore.Answer:
        answer = check(*asked, **how)
        if answer.bounds.messages > messages:
            return answer
        found = {name: dataclasses.replace(one, reachable=False) for name, one in answer.findings.items()}
        return dataclasses.replace(answer, findings=found)

    monkeypatch.setattr("ackfsm.verify.context.allowed.check", says_no)
    monkeypatch.setattr("ackfsm.checking.explore.check", says_no)
    monkeypatch.setattr("ackfsm.checking.unbounded._decide._BYTES_OF_A_VIEW", 10**5)  # nothing is lost on proofs
    configuration = shipped().configure(profile, settings)
    told = verify.allowed(shipped(), configuration, faults, actions=actions, found=[anomaly])
    assert told[anomaly] == Allowed(answer=True)


@pytest.mark.usefixtures("cache")
def test_an_overrun_of_a_bound_that_nothing_keeps_is_reached() -> None:
    """Without the machine that keeps the bound the monitor has to see it, whatever the bound."""
    machines = {name: machine for name, machine in shipped().machines.items() if name != "prefetch"}
    broken = dataclasses.replace(shipped(), machines=machines, digest="without prefetch")
    configuration = broken.configure("rabbitmq", {"prefetch": 50})
    told = verify.allowed(broken, configuration, (), found=[Anomaly.PREFETCH_OVERRUN])
    assert told[Anomaly.PREFETCH_OVERRUN].answer is True


def test_where_nothing_can_be_kept_the_answer_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    allowed = verify.allowed(shipped(), shipped().configure(), {Fault.CONSUMER_CRASH})
    assert allowed[Anomaly.DUPLICATE].answer is True
    assert allowed[Anomaly.LOSS].answer is False
    assert allowed[Anomaly.REORDER].answer is None


def test_an_optional_action_counts_only_where_it_is_asked_for(cache: Path) -> None:
    configuration = shipped().configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    assert verify.allowed(shipped(), configuration, ())[Anomaly.DUPLICATE].answer is False
    assert verify.allowed(shipped(), configuration, (), actions=["recover"])[Anomaly.DUPLICATE].answer is True
    assert len(list(cache.iterdir())) == 2
