"""Is what a source cannot show unknown, for that reason, and everything else decided as before?"""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ackfsm import verify
from ackfsm.history.format import SHOWABLE, Event
from ackfsm.terms import Anomaly, InputError, Verdict
from ackfsm.verify.counting.machines import fold
from ackfsm.verify.counting.observables import OBSERVABLES, Observable, observable_code
from ackfsm.verify.counting.shown import countable, missing_events
from ackfsm.verify.counting.watch import folded_properties, machines_of
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.whole import WHOLE as EVERYTHING
from model_tests.support.whole import before_a_release

SPEC = shipped()
CLIENT = {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE"}

Line = Mapping[str, Any]


def line(t: int, event: str, process: str = "p", **more: Any) -> Line:
    return {"t": t * 10**6, "event": event, "process": process, "message": "m1", **more}


SENT = [line(1, "send"), line(2, "confirmed")]
GOT = line(3, "delivered", "c", redelivered=False)
DONE = line(4, "processed", "c")
ACKNOWLEDGED = [line(5, "acknowledge", "c", scope="message"), line(6, "acknowledged", "c", scope="message")]
DRAINED = {"t": 9 * 10**6, "event": "drained", "process": "nemesis"}
WHOLE = [*SENT, GOT, DONE, *ACKNOWLEDGED, DRAINED]
AGAIN = line(7, "delivered", "c", redelivered=True)


def judged(
    lines: Sequence[Line],
    cannot_show: Collection[str],
    folder: Path,
    config: Mapping[str, Any] = CLIENT,
    folded_from: int | None = None,
) -> verify.Result:
    path = folder / "h.jsonl"
    header = {"ackfsm_history": 1, "config": config, "cannot_show": list(cannot_show)}
    path.write_text("".join(f"{json.dumps(each)}\n" for each in [header, *lines]), encoding="utf-8")
    found = verify.examination(
        path, SPEC, lambda header: SPEC.configure(None, header.config if header else {}), folded_from=folded_from
    )
    return verify.verdict(found.findings, SPEC)


def counts(result: verify.Result) -> dict[Anomaly, int | None]:
    return {anomaly: each.count for anomaly, each in result.findings.anomalies.items()}


def test_with_everything_shown_the_history_is_valid(tmp_path: Path) -> None:
    assert judged(WHOLE, (), tmp_path).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("lines", "cannot_show", "anomaly", "verdict"),
    [
        ([*SENT, DRAINED], ["expired"], Anomaly.LOSS, Verdict.UNKNOWN),
        ([*SENT, DRAINED], ["dead_lettered"], Anomaly.LOSS, Verdict.UNKNOWN),
        ([*SENT, DRAINED], ["delivered"], Anomaly.LOSS, Verdict.UNKNOWN),
        (SENT, ["drained"], Anomaly.LOSS, Verdict.UNKNOWN),
        ([*SENT, GOT, *ACKNOWLEDGED, DRAINED], ["processed"], Anomaly.UNPROCESSED, Verdict.UNKNOWN),
        ([line(1, "send"), GOT, DONE, *ACKNOWLEDGED, DRAINED], ["confirmed"], Anomaly.MISSING_OUTCOME, Verdict.UNKNOWN),
        ([GOT, DONE, *ACKNOWLEDGED, DRAINED], ["send"], Anomaly.PHANTOM, Verdict.UNKNOWN),
        # a send that is neither rejected nor in doubt was confirmed, and then it must be delivered
        ([SENT[0], DRAINED], ["confirmed"], Anomaly.LOSS, Verdict.INVALID),
        # without a fault nothing comes twice, whatever its flag
        ([*WHOLE[:4], AGAIN, DRAINED], ["redelivered"], Anomaly.DUPLICATE, Verdict.INVALID),
        ([*WHOLE[:4], AGAIN, DRAINED], ["acknowledged"], Anomaly.RESURRECTION, Verdict.INVALID),
    ],
)
def test_an_anomaly_that_needs_what_is_not_shown_is_unknown(
    lines: Sequence[Line], cannot_show: list[str], anomaly: Anomaly, verdict: Verdict, tmp_path: Path
) -> None:
    result = judged(lines, cannot_show, tmp_path)
    assert result.verdict is verdict, result.reasons
    finding = result.findings.anomalies[anomaly]
    assert finding.count is None
    assert finding.unknown is not None
    assert finding.unknown.startswith("the source cannot show")
    assert f"`{cannot_show[0]}`" in finding.unknown
    assert any(anomaly in reason and "cannot show" in reason for reason in result.reasons)


@pytest.mark.parametrize("cannot_show", [["processed"], ["confirmed", "processed"], ["delivery_count"]])
def test_a_loss_that_does_not_hang_on_it_stays_a_loss(cannot_show: list[str], tmp_path: Path) -> None:
    assert judged([*SENT, DRAINED], cannot_show, tmp_path).verdict is Verdict.INVALID


def test_a_duplicate_is_decided_as_long_as_faults_would_be_shown(tmp_path: Path) -> None:
    lines = [*WHOLE[:-1], AGAIN, line(8, "processed", "c"), DRAINED]
    for cannot_show, verdict in [([], Verdict.INVALID), (["expired", "dead_lettered", "rejected"], Verdict.INVALID)]:
        assert judged(lines, cannot_show, tmp_path).verdict is verdict
    before = [
        *SENT,
        GOT,
        AGAIN,
        line(8, "processed", "c"),
        *(line(9 + i, e, "c", scope="message") for i, e in enumerate(["acknowledge", "acknowledged"])),
    ]
    assert judged(before, [], tmp_path).verdict is Verdict.INVALID
    unknown = judged(before, ["fault"], tmp_path)
    assert unknown.verdict is Verdict.UNKNOWN
    assert any("duplicate of 1 message ('m1'), and the source cannot show `fault`" in why for why in unknown.reasons)


def test_a_message_that_is_no_run_for_want_of_hidden_events_is_left_open(tmp_path: Path) -> None:
    """It came again, flagged, without a fault: impossible, unless its session had it back unseen."""
    lines = [*SENT, GOT, line(7, "delivered", "c", redelivered=True), {**DONE, "t": 8 * 10**6}]
    assert judged(lines, (), tmp_path).verdict is Verdict.INVALID
    for cannot_show in (["fault"], ["recover"], ["close", "recover"]):
        opened = judged(lines, cannot_show, tmp_path)
        assert opened.verdict is Verdict.UNKNOWN, cannot_show
        assert opened.findings.explanation is not None
        assert list(opened.findings.explanation.undecided.values()) == [1]
        assert opened.findings.explanation.contradicted == 0


def test_what_is_impossible_whatever_happened_unseen_stays_impossible(tmp_path: Path) -> None:
    """No fault sets an acknowledged and confirmed message free again in this configuration."""
    lines = [*WHOLE[:-1], line(7, "delivered", "c", redelivered=False), line(8, "processed", "c"), DRAINED]
    config = {**CLIENT, "block_on_acknowledge": True}
    result = judged(lines, ["fault", "recovered", "close", "recover", "expired"], tmp_path, config)
    assert result.verdict is Verdict.INVALID


def test_an_anomaly_of_two_messages_is_open_where_an_excuse_could_be_hidden(tmp_path: Path) -> None:
    """The second message overtakes the first one, neither of them flagged."""
    sent = [{**each, "message": name, "t": each["t"] + at} for name, at in (("m1", 0), ("m2", 10**7)) for each in SENT]
    got = [{**GOT, "message": name, "t": at * 10**6} for name, at in (("m2", 30), ("m1", 40))]
    assert judged([*sent, *got], (), tmp_path).verdict is Verdict.INVALID
    opened = judged([*sent, *got], ["fault"], tmp_path)
    assert opened.verdict is Verdict.UNKNOWN
    assert any(
        f"{Anomaly.REORDER} of 1 message ('m1'), and the source cannot show `fault`" in why for why in opened.reasons
    )


@pytest.mark.parametrize("name", sorted(SHOWABLE))
def test_a_history_that_lacks_what_cannot_be_shown_is_never_accused_for_it(name: str, tmp_path: Path) -> None:
    """Take from a valid history all that one name stands for; it may become unknown, never invalid."""
    lines = [each for each in WHOLE if each["event"] != name]
    if name == "redelivered":
        lines = [{**each, "redelivered": False} if "redelivered" in each else each for each in lines]
    assert judged(lines, [name], tmp_path).verdict is not Verdict.INVALID


RABBITMQ, ACTIVEMQ = "rabbitmq-b-confirm-manual-broker-kill", "activemq-a2-auto-receive-consumer-kill"


@functools.cache
def _recorded(name: str) -> tuple[Line, list[Line], verify.Result]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        header, *lines = map(json.loads, file)
    ids = dict.fromkeys(each["message"] for each in lines if "message" in each)
    left = {*list(ids)[:: 1 if EVERYTHING else 4]}
    lines = [each for each in lines if each.get("message") in left or "message" not in each]
    with tempfile.TemporaryDirectory() as folder:
        whole = judged(lines, (), Path(folder), header["config"])
    assert whole.verdict is not Verdict.INVALID, whole.reasons
    return header, lines, whole


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (RABBITMQ, {"confirmed"}),
        (RABBITMQ, {"acknowledge", "acknowledged", "ack_in_doubt"}),
        (RABBITMQ, {"fault", "recovered"}),
        (ACTIVEMQ, {"processed"}),
        pytest.param(ACTIVEMQ, {"drained"}, marks=before_a_release),
        (ACTIVEMQ, {"close", "recover"}),
        (ACTIVEMQ, {"in_doubt", "rejected", "resend"}),
    ],
    ids=lambda each: each if isinstance(each, str) else "-".join(sorted(each)),
)
def test_a_recorded_history_without_some_of_its_events_is_not_accused(
    name: str, hidden: set[str], tmp_path: Path
) -> None:
    """The recordings are valid, and so is each without some messages: what is found in them would be found wrongly."""
    header, lines, whole = _recorded(name)
    left = [each for each in lines if each["event"] not in hidden]
    result = judged(left, hidden, tmp_path, header["config"])
    assert result.verdict is not Verdict.INVALID, result.reasons
    known = {anomaly: count for anomaly, count in counts(result).items() if count is not None}
    for anomaly, count in known.items():
        assert count == counts(whole)[anomaly], anomaly


def test_folded_in_chunks_it_is_the_same(tmp_path: Path) -> None:
    messages = [
        {**each, "message": f"m{number}", "t": each["t"] + number * 10**8}
        for number, each in itertools.product(range(300), WHOLE[:-1])
    ]
    lost = [
        {**each, "message": f"lost{i}", "t": each["t"] + i * 10**9} for i, each in itertools.product(range(3), SENT)
    ]
    lines = [*messages, *lost, {**DRAINED, "t": 10**12}]
    for cannot_show in (["expired"], ["processed", "fault"], ["drained"]):
        at_once, folded = (judged(lines, cannot_show, tmp_path, folded_from=n) for n in (None, 0))
        assert comparable(at_once.findings) == comparable(folded.findings)
        assert (at_once.verdict, at_once.reasons) == (folded.verdict, folded.reasons)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("drained", "`cannot_show` must be a list of names"),
        ([1], "`cannot_show` must be a list of names"),
        (["drain"], "`cannot_show` names 'drain', which is no event or field that could be missing"),
        (["t"], "`cannot_show` names 't'"),
    ],
)
def test_a_header_with_other_names_is_refused(names: object, said: str, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    header = {"ackfsm_history": 1, "cannot_show": names}
    path.write_text(f"{json.dumps(header)}\n{json.dumps(GOT)}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"h\.jsonl, line 1") as raised:
        verify.read(path)
    assert said in str(raised.value)


def test_headers_of_parts_are_taken_together(tmp_path: Path) -> None:
    for name, unshown in (("a", ["drained"]), ("b", ["fault", "drained"])):
        header = {"ackfsm_history": 1, "cannot_show": unshown}
        (tmp_path / f"{name}.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(GOT)}\n", encoding="utf-8")
    found = verify.read(tmp_path).header
    assert found is not None
    assert found.cannot_show == ("drained", "fault")


def test_what_is_counted_is_what_every_completion_says() -> None:
    """Against all short lives: what the product of a machine says hangs on hidden events does, and nothing else."""
    configuration = SPEC.configure(None, CLIENT)
    machines = machines_of(SPEC, configuration)
    events = verify.Events(
        **{each: np.empty(0, np.int64) for each in verify.Events.__dataclass_fields__ if each != "names"}, names={}
    )
    observables = [Observable.SEND, Observable.CONFIRMED, Observable.DELIVERED_CLEAR, Observable.DELIVERED_FLAGGED]
    for hidden, extra in ((Event.EXPIRED, Observable.EXPIRED), (Event.PROCESSED, Observable.PROCESSED)):
        missing = missing_events([hidden], SPEC, configuration)
        said = countable(missing, machines, events, SPEC, configuration)
        differing = set[Anomaly]()
        for life in itertools.chain.from_iterable(itertools.product(observables, repeat=n) for n in range(4)):
            plain = _ends(machines, life)
            for place in range(len(life) + 1):
                more = _ends(machines, (*life[:place], extra, *life[place:]))
                twice = _ends(machines, (*life[:place], extra, extra, *life[place:]))
                differing |= {each for each in plain if not plain[each] == more[each] == twice[each]}
        assert differing == said.keys() & folded_properties(SPEC).keys()


def _ends(machines: Any, life: Sequence[Observable]) -> dict[Anomaly, tuple[bool, bool]]:
    codes = np.array([observable_code(each) for each in life], np.uint8)
    assert len(OBSERVABLES) < 256
    states = fold(machines, np.array([0]), codes) if len(codes) else np.array([machines.initial])
    return {
        anomaly: (
            bool(machines.means(anomaly, states, np.array([False]))[0]),
            bool(machines.means(anomaly, states, np.array([True]))[0]),
        )
        for anomaly in folded_properties(SPEC)
        if anomaly in machines.names
    }
