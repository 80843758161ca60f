"""A profile that does not ship: somebody's own broker, described in one YAML file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables
from ackfsm.cli import main
from ackfsm.engine import Broker
from ackfsm.terms import InputError, Profile, SpecError
from model_tests.support.places import DATA, PROJECT, SPEC
from model_tests.support.tables import shipped

HARBOUR = DATA / "harbour.yaml"


def ackfsm(capsys: pytest.CaptureFixture[str], *line: object) -> tuple[int, Any]:
    code = main([str(word) for word in line] + ["--json"])
    return code, json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *line: object) -> str:
    """The sentence with which a command is refused."""
    assert main([str(word) for word in line]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    return said


def thrown_once(broker: Broker, history: Path) -> list[bool]:
    """A listener throws at its first delivery; the flags that it sees."""
    seen: list[bool] = []

    def listener(message: Any) -> None:
        seen.append(message.redelivered)
        if len(seen) == 1:
            raise RuntimeError("the application fails")

    broker.connect().session().consumer("q", listener=listener)
    broker.connect().session().producer("q").send()
    assert broker.history
    broker.history.write(history)
    return seen


def test_one_setting_of_its_own_changes_the_verdict_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ackfsm(capsys, "check", "--profile", HARBOUR)
    assert (code, answer["config"]["profile"], answer["config"]["requeue_clears_mark"]) == (1, "harbour", True)
    assert answer["anomalies"]["unflagged_duplicate"]["reachable"]
    assert answer["anomalies"]["unflagged_duplicate"]["promised_absent"]
    same = ("--set", "redelivery_mark_persisted=true", "--set", "listener_exception=redeliver")
    code, answer = ackfsm(capsys, "check", "--profile", "artemis", *same)
    assert code == 0
    assert not answer["anomalies"]["unflagged_duplicate"]["reachable"]
    assert answer == ackfsm_without_seconds(capsys, answer, "--set", "requeue_clears_mark=false")


def ackfsm_without_seconds(capsys: pytest.CaptureFixture[str], like: Any, *line: str) -> Any:
    """Harbour's check with ``line``, its profile and its seconds as those of ``like``."""
    code, answer = ackfsm(capsys, "check", "--profile", HARBOUR, *line)
    assert code == 0
    return {**answer, "seconds": like["seconds"], "config": {**answer["config"], "profile": like["config"]["profile"]}}


def test_a_history_of_its_engine_is_verified_by_its_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "h.jsonl"
    assert thrown_once(Broker(str(HARBOUR), history=True), history) == [False, False]
    _, own = ackfsm(capsys, "verify", history, "--profile", HARBOUR)
    kept_mark = ("--profile", "artemis", "--set", "requeue_clears_mark=false")
    code, other = ackfsm(capsys, "verify", history, *kept_mark)
    assert own["anomalies"]["unflagged_duplicate"] | {"allowed": True} == own["anomalies"]["unflagged_duplicate"]
    assert (code, other["anomalies"]["unflagged_duplicate"]["allowed"]) == (1, False)
    sentence = refused(capsys, "verify", history)
    assert sentence.startswith(
        f"ackfsm verify: {history}, line 1, its header: profile cannot be 'harbour'; it is one of jms, "
    )
    assert sentence.endswith("or the YAML file of another one (--profile FILE.yaml)")


def test_brokers_take_its_tables_from_one_that_has_read_them(tmp_path: Path) -> None:
    first = Broker(str(HARBOUR))
    second = Broker("harbour", like=first, history=True)
    assert second.specification is first.specification
    assert thrown_once(second, tmp_path / "h.jsonl") == [False, False]
    artemis = Broker("artemis", like=first, history=True, redelivery_mark_persisted=True)
    assert thrown_once(artemis, tmp_path / "a.jsonl") == [False, True]


SMALL = (
    "--set delivery_mode=PERSISTENT --set ack_mode=AUTO_ACKNOWLEDGE --set send_mode=blocking"
    " --set resend_in_doubt=false --set consumption=listener --set block_on_acknowledge=false"
)
COMMANDS = {
    "explain": "explain --anomaly unflagged_duplicate",
    "draw": "draw redelivery --as mermaid",
    "matrix in other processes": f"matrix --jobs 2 --no-pairs {SMALL}",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_command_takes_its_file(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ackfsm(capsys, *command.split(), "--profile", HARBOUR)
    assert code in {0, 1}
    assert answer


def test_a_survey_in_other_processes_reads_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ackfsm(capsys, "systems", HARBOUR, "--jobs", "2")
    assert (code, answer["profile"], answer["system"]) == (1, "harbour", "Harbour, a broker of our own")
    thrown = [mode["causes"]["listener_exception"]["anomalies"] for mode in answer["checked"]]
    assert any("unflagged_duplicate" in anomalies for anomalies in thrown)


def test_a_test_that_is_exported_reads_it_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "test_harbour.py"
    line = ["explain", "--profile", str(HARBOUR), "--anomaly", "unflagged_duplicate", "--as", "pytest"]
    assert main([*line, "--output", str(output)]) in {0, 1}
    capsys.readouterr()
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(output)]) == 0


def test_the_how_to_has_the_file_that_is_tested() -> None:
    page = (PROJECT / "docs" / "own-broker.md").read_text(encoding="utf-8")
    body = HARBOUR.read_text(encoding="utf-8").split("\n", 1)[1]
    assert f"```yaml\n# harbour.yaml\n{body}```" in page


def test_what_it_does_not_state_is_as_in_the_profile_that_it_is_like() -> None:
    specification = shipped().with_profile(HARBOUR)
    own, like = specification.profiles["harbour"], specification.profiles["artemis"]
    assert (own.unsupported, own.names, own.constants) == (like.unsupported, like.names, like.constants)
    assert (own.apis, own.deviates, own.promises) == (like.apis, like.deviates, like.promises)
    changed = {"redelivery_mark_persisted": True, "listener_exception": "redeliver", "requeue_clears_mark": True}
    assert own.stated == like.stated | changed.keys()
    changed["profile"] = "harbour"
    assert specification.configure("harbour").as_dict() == {**specification.configure("artemis").as_dict(), **changed}
    assert specification.configure("harbour", {"max-delivery-attempts": 3}).max_delivery_attempts == 3


def test_without_another_one_it_has_the_defaults_of_jms_and_promises_nothing(tmp_path: Path) -> None:
    file = tmp_path / "bare.yml"
    file.write_text("system: bare\ndefaults: {}\n", encoding="utf-8")
    specification, name = shipped().of_profile(str(file))
    assert name == "bare"
    assert specification.configure("bare").as_dict() == {**shipped().configure().as_dict(), "profile": "bare"}
    assert specification.promised_absent(specification.configure("bare")) == {}
    assert specification.digest != shipped().digest
    assert list(specification.profiles) == [*Profile, "bare"]


BARE = "system: x\ndefaults: {}\n"
DEFAULT = "system: x\ndefaults:\n  {}: {{value: {}, because: x, source: {}}}\n"
MISTAKES = {
    "no table": ("", 1, "the table is empty"),
    "another form": ("system: x\n", 1, "'defaults' is a required property"),
    "an unknown key": (f"{BARE}promise: [progress]\n", 3, "'promise' was unexpected"),
    "an unknown setting": (DEFAULT.format("mark", "true", "model"), 3, "there is no setting 'mark'"),
    "an unknown value": (DEFAULT.format("prefetch_freed", "never", "model"), 3, "it is one of on_delivery"),
    "an unknown source": (DEFAULT.format("prefetch", "1", "HEARSAY"), 3, "begins with no tag"),
    "an unknown promise": (f"{BARE}promises: [progress,\n  peace]\n", 4, "there is no promise 'peace'"),
    "like nothing": (f"like: kafka\n{BARE}", 1, "there is no profile 'kafka'"),
    "a default that the other refuses": (
        f"like: artemis\n{DEFAULT.format('delivery_mode', 'DIRECT', 'model')}",
        3,
        "spec/profiles/artemis.yaml:",
    ),
    "a default that it refuses": (
        f"{BARE}unsupported:\n  - {{when: queue_durable, because: x, source: model, instead: y}}\n",
        4,
        "this refuses the profile's own defaults",
    ),
}


@pytest.mark.parametrize(("text", "line", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_in_it_is_told_with_its_line(
    text: str, line: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    sentence = refused(capsys, "check", "--profile", file)
    assert sentence.startswith(f"ackfsm check: {file}:{line}: ")
    assert said in sentence


@pytest.mark.parametrize("name", ["artemis.yaml", "jms.yml", "a b.yaml", ".yaml"])
def test_a_name_that_is_taken_or_none_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(HARBOUR, tmp_path / name)
    assert "rename the file" in refused(capsys, "check", "--profile", tmp_path / name)


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.yaml: there is no such file" in refused(capsys, "check", "--profile", "nowhere.yaml")
    with pytest.raises(InputError, match="there is no such file"):
        Broker("nowhere.yaml")
    with pytest.raises(InputError, match="is a file; give it as --profile"):
        shipped().configure(None, {"profile": str(HARBOUR)})


def test_tags_of_the_shipped_profiles_stand_in_one_place(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(SPEC, tmp_path / "spec"))
    file = spec / "profiles" / "ems.yaml"
    file.write_text(f"sources: {{MINE: a handbook}}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(SpecError, match=r"ems\.yaml:1: tags of the tables are in sources\.yaml"):
        tables.load(spec)
