"""``docs/seeds.md``: every sentence of the seed documents has a carrier, and every carrier is there."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking.explore import replay
from ackfsm.checking.network import Bounds, compose, observers_named
from ackfsm.cli import main
from ackfsm.showing.views import systems
from ackfsm.showing.views.seeds import seeds_page
from ackfsm.surveys import claims
from ackfsm.tables import Seed, Sentence
from ackfsm.tables._seeds import check_seeds
from ackfsm.tables.lookup import Lookup
from ackfsm.terms import Fault, SpecError
from model_tests.support.places import PROJECT
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped

PAGE = PROJECT / "docs" / "seeds.md"


@functools.cache
def seeds() -> tuple[Seed, ...]:
    return claims.seeds()


@functools.cache
def lookup() -> Lookup:
    return Lookup(shipped())


@functools.cache
def page_of(profile: str) -> str:
    return systems.system_page(shipped(), profile, ())


def sentences() -> Iterator[tuple[str, Sentence]]:
    for seed in seeds():
        yield from ((seed.file, sentence) for sentence in seed.sentences)


def carriers(kind: str) -> set[str]:
    return {name for _, sentence in sentences() for name in sentence.carriers.get(kind, ())}


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--seeds", "--as", "markdown"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8"), "run make pages"
    assert main(["claims", "--seeds", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["seed"], len(one["sentences"])) for one in found] == [(s.file, len(s.sentences)) for s in seeds()]


def test_all_five_documents_are_there() -> None:
    documents = {claim.seed for claim in claims.read(shipped()) if claim.seed.endswith(".txt")}
    assert documents == {seed.file for seed in seeds()}
    assert [len(seed.sentences) for seed in seeds()] == [15, 21, 24, 33, 38]


def test_a_sentence_has_a_carrier_or_says_nothing_of_messages() -> None:
    for seed, sentence in sentences():
        assert bool(sentence.carriers) != bool(sentence.aside), (seed, sentence.says)
        assert sentence.lines[0] <= sentence.lines[1], (seed, sentence.says)


REFUTED = [sentence for _, sentence in sentences() if sentence.refuted_by is not None]


@pytest.mark.parametrize("sentence", REFUTED, ids=lambda each: str(each.lines[0]))
def test_what_refutes_a_sentence_can_be_performed_and_is_on_the_page(sentence: Sentence) -> None:
    found = sentence.refuted_by
    assert found is not None
    bounds = Bounds(faults=frozenset(map(Fault, found.faults)), max_faults=len(found.faults))
    configuration = shipped().configure(None, found.settings)
    network = compose(shipped(), configuration, bounds, observers_named(shipped(), {found.shows}))
    replay(network, found.shows, found.steps)  # raises if it cannot be
    assert f"**does not hold**: {found.because}" in seeds_page(seeds())
    assert " → ".join(found.steps) in seeds_page(seeds())


def test_one_sentence_does_not_hold() -> None:
    assert [sentence.lines for sentence in REFUTED] == [(39, 39)]


def test_few_sentences_say_nothing_of_messages() -> None:
    assert sum(bool(sentence.aside) for _, sentence in sentences()) <= 10


def test_every_claim_of_the_documents_carries_a_sentence() -> None:
    proved = {*(f"C{number:02}" for number in range(1, 51)), "C66"}
    assert proved == carriers("claims")


@pytest.mark.parametrize("name", sorted(carriers("tests")))
def test_a_test_that_carries_a_sentence_is_there(name: str) -> None:
    file, _, function = name.partition("::")
    assert re.search(rf"^def {re.escape(function)}\(", (PROJECT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", sorted(carriers("pages")))
def test_a_page_that_carries_a_sentence_is_there(page: str) -> None:
    assert (PROJECT / page).is_file()


@pytest.mark.parametrize("row", sorted(carriers("rows")))
def test_a_row_that_carries_a_sentence_is_found_by_where(row: str) -> None:
    assert lookup().find(row.partition("(")[0])[0].cells or "." not in row


# events as vendors call them

EVENTS = [(profile, event) for profile, table in shipped().profiles.items() for event in table.events]


@pytest.mark.parametrize(("profile", "event"), EVENTS, ids=lambda part: getattr(part, "name", None))
def test_an_event_of_an_interface_is_found_and_shown(profile: str, event: tables.VendorEvent) -> None:
    told = f"{event.name} of {profile} ({event.api}) is {event.event}"
    called = event.name.partition("(")[0].rpartition(".")[2]
    for word in (event.name.upper(), f"{called}()"):
        answers = [answer for answer in lookup().find(word) if answer.name == event.event]
        assert any(line.startswith(told) for answer in answers for line in answer.summary), word
    assert event.name in lookup().words()
    file, _, line = event.place.rpartition(":")
    assert event.name in (PROJECT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert f"| {event.api} | `{event.name}` | `{event.event}` |" in page_of(profile)


def test_each_interface_of_solace_tells_of_acceptance_and_rejection() -> None:
    table = shipped().profiles["solace"]
    for api in table.apis:
        told = [event.event for event in table.events if event.api == api]
        assert told == ([] if api == "native" else ["confirmed", "rejected"])


def test_a_profile_of_ones_own_takes_over_the_events_of_the_one_that_it_is_like(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    own = "    SendAcknowledgementHandler.sendAcknowledged: {event: acknowledged, source: model}\n"
    file.write_text(f"system: mine\nlike: artemis\ndefaults: {{}}\nevents:\n  core:\n{own}")
    artemis, mine = (shipped().with_profile(file).profiles[name].events for name in ("artemis", "mine"))
    assert {one.name for one in mine} == {one.name for one in artemis}
    assert [one.event for one in mine if "sendAck" in one.name] == ["acknowledged"]


# the command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "x.md"], "add --seeds, or leave --output out"),
        (["--as", "markdown"], "add --seeds, or leave --as out"),
        (["--seeds", "--id", "C01"], "--seeds lists the sentences and proves none"),
        (["--seeds", "--jobs", "1"], "--seeds lists the sentences and proves none"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", *options]) == 2
    assert said in capsys.readouterr().err


def test_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--seeds", "--output", str(tmp_path / "seeds.md")]) == 0
    assert "seeds.md" in capsys.readouterr().out
    assert (tmp_path / "seeds.md").read_text(encoding="utf-8") == seeds_page(seeds())


# damage

S = "seeds.yaml"
DAMAGES = {
    "a claim": (S, "there is no claim 'C99'", "claims: [C06, C07]", f"{HERE}claims: [C06, C99]"),
    "an event": (S, "there is no event 'confirms'", "events: [confirm, confirmed]", f"{HERE}events: [confirms]"),
    "a setting": (S, "there is no setting 'mode'", "settings: [prefetch, prefetch_freed]", f"{HERE}settings: [mode]"),
    "a value": (
        S,
        "client_ack_scope cannot be 'all'",
        "settings: [client_ack_scope=session]",
        f"{HERE}settings: [client_ack_scope=all]",
    ),
    "a machine": (
        S,
        "no state 'windows'",
        "rows: [publish_window]\n      settings",
        f"{HERE}rows: [windows]\n      settings",
    ),
    "a state": (S, "no state 'entry.broken'", "rows: [entry.crashed]", f"{HERE}rows: [entry.broken]"),
    "an event of a row": (
        S,
        "entry does not react to 'send'",
        "rows: [entry.ready.dispatch_first]",
        f"{HERE}rows: [entry.ready.send]",
    ),
    "an anomaly": (S, "there is no anomaly 'late'", "anomalies: [early_confirm]", f"{HERE}anomalies: [late]"),
    "a promise": (S, "there is no promise 'all'", "promises: [prefetch_bound]", f"{HERE}promises: [all]"),
    "a name": (
        S,
        "the profile qpid has no name 'prefetched'",
        "names: {qpid: [maxprefetch]}",
        f"{HERE}names: {{qpid: [prefetched]}}",
    ),
    "a profile": (S, "there is no profile 'qp'", "names: {qpid: [maxprefetch]}", f"{HERE}names: {{qp: [maxprefetch]}}"),
    "a constant": (
        S,
        "has no constant 'Session.LATE'",
        "constants: {qpid: [Session.PRE_ACKNOWLEDGE]}",
        f"{HERE}constants: {{qpid: [Session.LATE]}}",
    ),
    "an interface": (S, "has no API 'Rust'", "apis: {solace: [Java RTO]}", f"{HERE}apis: {{solace: [Rust]}}"),
    "an event of an interface": (
        S,
        "has no event of its own 'onAck'",
        "vendor_events: {artemis: [ClientSession.commit, ClientSession.rollback]}",
        f"{HERE}vendor_events: {{artemis: [onAck]}}",
    ),
    "the order": (
        S,
        "sentences stand in the document's order",
        "    - at: 24\n      says: Questions",
        f"{HERE}    - at: 2\n      says: Questions",
    ),
    "no carrier": (S, "see spec/schema.json", "      claims: [C36]\n    - at: 39", f"{HERE}    - at: 39"),
    "an API of no profile": (
        "profiles/artemis.yaml",
        "the API 'kernel' is none of JMS 1.1",
        "events:\n  core:",
        f"events:\n{HERE}  kernel:",
    ),
    "an event of no table": (
        "profiles/qpid.yaml",
        "there is no event 'ack'",
        "Message.acknowledge: {event: acknowledge,",
        f"{HERE}Message.acknowledge: {{event: ack,",
    ),
}


def _read(spec: Path, file: str) -> None:
    """What the loader does with the sentences, without the other files; with another file all that it does."""
    if file == S:
        check_seeds(shipped(), tables.read_form(S, "seeds", spec), IDS)
    else:
        tables.load(spec)


IDS = frozenset(claim.id for claim in claims.read(shipped()))


@pytest.mark.parametrize(("file", "says", "old", "new"), DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_not_there_is_named_with_its_line(file: str, says: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, file, (old, new))
    with pytest.raises(SpecError, match=rf"spec/{file}:\d+: ") as error:
        _read(spec, file)
    assert says in str(error.value)
    assert abs(int(re.findall(r":(\d+): ", str(error.value))[0]) - line) <= 3


def test_the_loader_checks_the_sentences(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, S, ("claims: [C06, C07]", "claims: [C06, C99]"))
    with pytest.raises(SpecError, match=r"spec/seeds.yaml:\d+: there is no claim 'C99'"):
        tables.load(spec)


def test_a_computation_that_is_not_there_is_named(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, S, ("computes: [transaction_rate, window_rate]", "computes: [speed]"))
    with pytest.raises(
        SpecError, match=r"seeds.yaml:\d+: there is no computation 'speed' in ackfsm.support.throughput"
    ):
        claims.seeds(spec)
