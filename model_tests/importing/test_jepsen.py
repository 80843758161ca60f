"""Are Jepsen's histories of queue workloads read as Jepsen means them?"""

from __future__ import annotations

import collections
import json
import math
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import edn_format
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli
from ackfsm.history.importing.edn import EdnError, Keyword, Symbol, read_all
from ackfsm.terms import InputError
from model_tests.support.importing import SAMPLES, events, imported
from model_tests.support.whole import WHOLE

SAMPLE = SAMPLES / "jepsen-queue.edn"
TOLD = ("process", "event", "message", "redelivered", "fault")


def test_the_sample_is_read_as_what_its_clients_did() -> None:
    rows, problems = imported("jepsen", SAMPLE)
    assert events(rows, *TOLD) == [
        ("process-0", "send", "0", None, None),
        ("process-0", "confirmed", "0", None, None),
        ("process-1", "delivered", "0", False, None),
        ("process-1", "processed", "0", None, None),
        ("process-2", "send", "1", None, None),
        ("process-2", "confirmed", "1", None, None),
        ("process-3", "send", "2", None, None),
        ("process-3", "confirmed", "2", None, None),
        ("process-4", "delivered", "1", False, None),
        ("process-4", "processed", "1", None, None),
        ("process-0", "send", "3", None, None),
        ("process-2", "send", "4", None, None),
        ("process-2", "confirmed", "4", None, None),
        ("nemesis", "fault", None, None, "producer_link_loss"),
        ("nemesis", "fault", None, None, "consumer_link_loss"),
        ("process-0", "in_doubt", "3", None, None),
        ("process-4", "delivered", "2", False, None),
        ("process-4", "processed", "2", None, None),
        ("nemesis", "recovered", None, None, "producer_link_loss"),
        ("nemesis", "recovered", None, None, "consumer_link_loss"),
        ("process-3", "send", "5", None, None),
        ("process-3", "confirmed", "5", None, None),
        ("process-1", "delivered", "2", True, None),
        ("process-1", "processed", "2", None, None),
        ("process-5", "delivered", "5", False, None),
        ("process-5", "processed", "5", None, None),
        ("process-5", "delivered", "3", False, None),
        ("process-5", "processed", "3", None, None),
        ("nemesis", "drained", None, None, None),
    ]
    assert {row["queue"] for row in rows if row["process"] != "nemesis" or row["event"] == "drained"} == {"queue"}
    assert not problems.count
    assert not problems.all_not_shown()


def test_its_counts_are_those_of_jepsens_own_checker(capsys: pytest.CaptureFixture[str]) -> None:
    """What ``checker/total-queue`` counts: lost (acknowledged, never dequeued), duplicated, recovered."""
    operations = [value for _, value in read_all(enumerate(SAMPLE.read_text(encoding="utf-8").splitlines(), 1))]
    client = [each for each in operations if each["process"] != "nemesis"]
    acknowledged = {each["value"] for each in client if (each["f"], each["type"]) == ("enqueue", "ok")}
    taken = [each["value"] for each in client if (each["f"], each["type"]) == ("dequeue", "ok")]
    taken += [value for each in client if (each["f"], each["type"]) == ("drain", "ok") for value in each["value"]]
    assert cli.main(["verify", "--json", "--format", "jepsen", "--profile", "rabbitmq", str(SAMPLE)]) == 1
    anomalies = json.loads(capsys.readouterr().out)["anomalies"]
    assert anomalies["loss"]["count"] == len(acknowledged - {*taken}) == 1
    assert anomalies["reprocessed"]["count"] == sum(count > 1 for count in collections.Counter(taken).values()) == 1


def told(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.edn"
        path.write_text(text, encoding="utf-8")
        return imported("jepsen", path)


def test_a_vector_and_records_are_read_as_lines_are() -> None:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    records = [f"#jepsen.history.Op{line}" for line in lines]
    rows = imported("jepsen", SAMPLE)[0]
    for text in (f"[{' '.join(lines)}]", "[\n" + "\n".join(records) + "\n] ; all", "(\n\n" + "\n".join(lines) + ")"):
        assert told(text)[0] == rows


def test_what_nemeses_do_and_what_crashed() -> None:
    start = "{:type :invoke :f :enqueue :value 1 :process 0 :time 1}"

    def nemesis(name: str, time: int) -> str:
        return "".join(f"{{:type :info :f :{name} :process :nemesis :time {time + step}}}\n" for step in (0, 1))

    rows, problems = told(
        start + nemesis("kill", 10) + nemesis("start", 20) + nemesis("start", 30) + nemesis("stop", 40)
    )
    assert events(rows, "t", "event", "fault")[1:] == [
        (10, "fault", "broker_kill"),
        (21, "recovered", "broker_kill"),
        (30, "fault", "producer_link_loss"),
        (30, "fault", "consumer_link_loss"),
        (41, "recovered", "producer_link_loss"),
        (41, "recovered", "consumer_link_loss"),
    ]
    assert "drained" in problems.all_not_shown()
    rows, problems = told(
        start
        + "{:type :info :f :dequeue :process 1 :time 2 :error :timeout}"
        + nemesis("bump-clock", 3)
        + "{:type :ok :f :drain :process 2 :time 5 :value []} {:type :info :f :drain :process 3 :time 6}"
    )
    assert events(rows, "event", "process", "error") == [
        ("send", "process-0", None),
        ("close", "process-1", ":timeout"),
        ("close", "process-3", "crashed"),
    ]
    assert problems.count == 2
    assert "drained" in problems.all_not_shown()


def test_a_queue_is_drained_only_if_nothing_was_sent_after_the_last_drain() -> None:
    drained = "{:type :ok :f :drain :process 2 :time 5 :value []}"
    sent = "{:type :invoke :f :enqueue :value 1 :process 0 :time 9}"
    assert [row["event"] for row in told(sent + drained)[0]] == ["send", "drained"]
    rows, problems = told(drained + sent)
    assert [row["event"] for row in rows] == ["send"]
    assert "drained" in problems.all_not_shown()


def test_operations_that_cannot_be_read_are_counted_with_their_lines() -> None:
    good = "{:type :invoke :f :enqueue :value 1 :process 0 :time 1}\n"
    bad = [
        "7",
        "{:type :ok :f :txn :process 0 :time 1}",
        "{:f :enqueue}",
        "{:type :ok :f :enqueue :value 1 :time -1}",
        "{:type :ok :f :enqueue :value 9 :time 2}",
        "{:type :invoke :f :enqueue :value 1 :process 0 :time 3}",
        "{:type :ok :f :drain :value 3 :process 0 :time 3}",
    ]
    rows, problems = told(good + "\n".join(bad))
    assert events(rows, "event", "message") == [("send", "1")]
    assert problems.count == len(bad)
    lines = sorted(int(place.split()[-1]) for each in problems.reasons() for place in each.places)
    assert lines == list(range(2, 2 + len(bad)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no operation of a queue"),
        ("{:type :ok :f :read :process 0 :time 1}", "no operation of a queue"),
        ("{:a 1", "ends within a {"),
        ("{:type :invoke}]", "line 1: a ] that closes nothing"),
        ('{:a "b', "a string that does not end"),
        ("\n{:a 1 :a 2}", "line 2: a map that has a key twice"),
        ("{:a}", "a key that has no value"),
        ("{:a ^b}\x07 \\", "is not EDN"),
        ("{:a 1x}", "is no number"),
    ],
)
def test_what_is_no_history_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(InputError, match=r"history\.edn") as refused:
        told(text)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


# What the reader makes of EDN is what edn_format makes of it.

WORDS = st.from_regex(r"[a-z][a-z0-9\-]{0,6}", fullmatch=True)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6),
    WORDS.map(edn_format.Keyword),
    WORDS.filter(lambda word: word not in {"nil", "true", "false"}).map(edn_format.Symbol),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(WORDS.map(edn_format.Keyword), inner, max_size=4),
        st.frozensets(st.integers(0, 99), max_size=4),
    ),
    max_leaves=12,
)


def plain(value: Any) -> Any:
    """A value of either reader, so that both can be compared."""
    if isinstance(value, edn_format.Keyword):
        return "keyword", value.name
    if isinstance(value, edn_format.Symbol):
        return "symbol", str(value)
    if isinstance(value, Keyword | Symbol):
        return type(value).__name__.lower(), str(value)
    if isinstance(value, dict) or hasattr(value, "items"):
        return "map", {repr(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "ImmutableList":
        is_set = isinstance(value, set | frozenset)
        return ("set", frozenset(map(plain, value))) if is_set else ("sequence", tuple(map(plain, value)))
    return type(value).__name__, value


@settings(max_examples=150 if WHOLE else 25, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=4), lines=st.booleans())
def test_edn_is_read_as_another_reader_reads_it(values: list[Any], lines: bool) -> None:  # noqa: FBT001
    texts = [edn_format.dumps(value) for value in values]
    text = ("\n" if lines else " ").join(texts)
    whole = f"[{text}\n]"
    read = [value for _, value in read_all(enumerate(whole.splitlines(), 1))]
    expected = list(edn_format.loads(whole))
    assert plain(read) == plain(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\newline \a \u0041 \u", ("\n", "a", "A", "u")),
        ("1N -2.5M 1/2 1e3", (1, Decimal("-2.5"), Fraction(1, 2), 1000.0)),
        ('#inst "2026-01-01" #a.b/c [1]', ("2026-01-01", (1,))),
        ("#_ 1 2 #_ #_ 3 4 5 ;c\n ,", (2, 5)),
        (r'"a\"\n\u00e4\\"', ('a"\nä\\',)),
        ("##Inf", (math.inf,)),
    ],
)
def test_what_edn_has_besides(text: str, value: Any) -> None:
    assert tuple(each for _, each in read_all(enumerate(text.splitlines(), 1))) == value


def test_the_first_values_come_before_the_text_ends() -> None:
    def endless() -> Any:
        yield 1, "[{:a 1}"
        yield 2, "{:a 2}"
        raise AssertionError("more was read than was asked for")

    read = read_all(endless())
    assert next(read) == (1, {"a": 1})
    assert next(read) == (2, {"a": 2})
    with pytest.raises(EdnError):
        list(read_all([(1, "}")]))
