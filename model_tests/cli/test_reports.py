"""``ackfsm verify --report``: read by the readers of others, and as strict as the exit code."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sarif_pydantic import Sarif

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.showing.views.reports import WRITERS, report_of
from ackfsm.terms import Configuration
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA, PROJECT
from model_tests.support.tables import shipped
from model_tests.support.whole import in_turn

SYNTHETIC = sorted((DATA / "synthetic").glob("*.jsonl"))
RESURRECTION = DATA / "synthetic" / "resurrection.jsonl"
ANYTHING = ",".join(verify.shown_anomalies(shipped()))
COMMAND = re.compile(r"::(error|warning|notice) file=([^,:]+)(?:,line=(\d+))?,title=([^,:]+)::(.*)")


@pytest.fixture
def reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Verify, and give the exit code, the JSON, and what each report says, as others read it."""

    def verified(*arguments: str | Path) -> tuple[int, Any, dict[str, Any]]:
        files = {str(form): tmp_path / f"report.{form}" for form in WRITERS}
        code = main(
            ["verify", "--json", *(f"--report={form}={file}" for form, file in files.items()), *map(str, arguments)]
        )
        out = capsys.readouterr().out
        text = {str(form): file.read_text() for form, file in files.items()}
        samples = [each for family in text_string_to_metric_families(text["prometheus"]) for each in family.samples]
        return (
            code,
            json.loads(out) if out else None,
            {
                "junit": junitparser.JUnitXml.fromfile(str(files["junit"])),
                "sarif": Sarif.model_validate_json(text["sarif"]).runs[0],
                "github": [COMMAND.fullmatch(line) for line in text["github"].splitlines()],
                "prometheus": samples,
            },
        )

    return verified


@pytest.mark.parametrize(("never", "path"), in_turn([(), ("--never", ANYTHING)], SYNTHETIC, 1))
def test_a_report_is_as_strict_as_the_exit_code(path: Path, never: tuple[str, ...], reported: Any) -> None:
    code, found, reports = reported(path, *never)
    (suite,) = reports["junit"]
    told = {case.name: type(each) for case in suite for each in case.result}
    bad = {name: kind for name, kind in told.items() if kind is not junitparser.Skipped}
    assert bool(bad) == (code != 0)
    assert (junitparser.Failure in bad.values()) == (code == 1)
    assert (suite.failures + suite.errors, suite.tests) == (len(bad), len(list(suite)))
    levels = {each.level.value for each in reports["sarif"].results if each.kind in {None, "fail"}}
    assert levels & {"error", "warning"} == ({"error"} if junitparser.Failure in bad.values() else set()) | (
        {"warning"} if junitparser.Error in bad.values() else set()
    )
    commands = {command[1] for command in reports["github"]}
    assert commands == (levels & {"error", "warning"} or {"notice"})
    values = {
        (each.name, each.labels.get("anomaly") or each.labels.get("verdict")): each for each in reports["prometheus"]
    }
    assert values["ackfsm_verdict", found["verdict"]].value == 1
    for name, anomaly in found["anomalies"].items():
        sample = values["ackfsm_anomalies", name]
        assert sample.labels["allowed"] == {True: "yes", False: "no", None: "open"}[anomaly["allowed"]]
        assert sample.value == anomaly["count"] or values["ackfsm_unknown", name].value == 1
    for name, anomaly in found.get("never", {}).items():
        value = values["ackfsm_never", name].value
        assert math.isnan(value) if anomaly["found"] is None else value == anomaly["found"]


def test_what_failed_is_told_at_the_line_that_is_impossible(reported: Any) -> None:
    code, _, reports = reported(RESURRECTION, "--never", "reprocessed")
    assert code == 1
    told = [command for command in reports["github"] if command[4] == "resurrection"]
    assert [(command[1], command[2], command[3]) for command in told] == [("error", str(RESURRECTION), "15")]
    assert told[0][5].startswith("1 message was delivered again after an acknowledgement was confirmed, which the")
    of_it = [each for each in reports["sarif"].results if each.rule_id == "resurrection"]
    assert [each.locations[0].physical_location.region.start_line for each in of_it] == [15]
    assert "where the model allows nothing more" in of_it[0].message.text
    (case,) = [case for case in next(iter(reports["junit"])) if case.name == "resurrection"]
    assert case.result[0].text.splitlines()[1].startswith("line 15: message 'm2' was delivered again after")


def test_several_histories_have_a_suite_each_and_one_that_cannot_be_read_is_an_error(
    tmp_path: Path, reported: Any
) -> None:
    legal = DATA / "synthetic" / "legal_lines_in_any_order.jsonl"
    code, _, reports = reported(legal, tmp_path / "none.jsonl", RESURRECTION)
    assert code == 1
    assert [(suite.name, suite.errors, suite.failures > 0) for suite in reports["junit"]] == [
        (str(legal), 0, False),
        (str(tmp_path / "none.jsonl"), 1, False),
        (str(RESURRECTION), 0, True),
    ]
    invocation = reports["sarif"].invocations[0]
    assert not invocation.execution_successful
    assert "there is no file" in invocation.model_extra["toolExecutionNotifications"][0]["message"]["text"]
    readable = [each.value for each in reports["prometheus"] if each.name == "ackfsm_read"]
    assert readable == [1, 0, 1]


def test_of_a_history_that_cannot_be_read_there_is_a_report_too(tmp_path: Path, reported: Any) -> None:
    code, found, reports = reported(tmp_path / "none.jsonl")
    assert (code, found) == (2, None)
    assert [suite.errors for suite in reports["junit"]] == [1]
    assert [command[1] for command in reports["github"]] == ["error"]


def test_what_a_history_says_forges_nothing(tmp_path: Path, reported: Any) -> None:
    evil = 'm\n::error::forged\x1b[2J"%0A</failure>]]>\\'
    path = tmp_path / 'a,b: "c"%.jsonl'
    path.write_text(RESURRECTION.read_text().replace('"m2"', json.dumps(evil)))
    code, _, reports = reported(path)
    assert code == 1
    lines = (tmp_path / "report.github").read_text().splitlines()
    assert all(line.startswith("::error file=") and "a%2Cb%3A" in line.split("::")[1] for line in lines)
    assert "\x1b" not in "".join((tmp_path / f"report.{form}").read_text() for form in WRITERS)
    assert next(iter(reports["junit"])).name == str(path)
    assert {each.labels["history"] for each in reports["prometheus"]} == {str(path)}
    uris = {each.locations[0].physical_location.artifact_location.uri for each in reports["sarif"].results}
    assert uris == {
        str(path).replace(",", "%2C").replace(":", "%3A").replace(" ", "%20").replace('"', "%22").replace("%.", "%25.")
    }


def test_a_folded_history_has_the_same_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    specification = shipped()

    def configured(header: verify.Header | None) -> Configuration:
        assert header is not None
        return specification.configure(None, header.config or {})

    def made(**how: Any) -> list[str]:
        found = verify.examination(RESURRECTION, specification, configured, **how)
        result = verify.verdict(found.findings, specification)
        report = report_of("h.jsonl", result, found.anomalies(result), specification)
        return [write([report]) for write in WRITERS.values()]

    at_once = made()
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 300)
    assert made(folded_from=0, workers=1) == at_once


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--report", "xunit=a.xml"], "there is no format 'xunit' (did you mean junit?); it is one of junit, sarif, "),
        (["--report", "junit=a", "--report", "junit=b"], "junit is given more than once"),
        (["--report", "junit=a", "--report", "sarif=a"], "two reports would go to one place"),
        (["--report", "junit", "--report", "sarif=-"], "two reports would go to one place"),
        (["--report", "junit", "--json"], "--json and a report without a FILE are both printed"),
        (["--report", "junit=none/a.xml"], "none/a.xml"),
    ],
)
def test_what_cannot_be_written_is_refused(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(RESURRECTION), *arguments]) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_workflow_of_the_documents_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (PROJECT / "docs" / "verifying.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    steps = [step.get("run", "") for step in yaml.safe_load(block)["jobs"]["soak"]["steps"]]
    (command,) = [step for step in steps if step.startswith("ackfsm ")]
    monkeypatch.chdir(tmp_path)
    Path("soak.jsonl").write_bytes(RESURRECTION.read_bytes())
    assert main(shlex.split(command)[1:]) == 1
    assert capsys.readouterr().out.startswith("::error file=soak.jsonl,")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ackfsm.sarif", "ackfsm.xml", "soak.jsonl"]


def test_the_metrics_of_the_documents_are_those_that_there_are(reported: Any) -> None:
    page = (PROJECT / "docs" / "verifying.md").read_text(encoding="utf-8")
    rows = {
        name: set(re.findall("`([a-z]+)`", labels)) for name, labels in re.findall(r"\| `(ackfsm_\w+)` \|(.*?)\|", page)
    }
    _, _, reports = reported(RESURRECTION, "--never", "loss")
    there = {each.name: {*each.labels} - {"history"} for each in reports["prometheus"]}
    assert there.keys() == rows.keys()
    assert all(labels <= rows[name] for name, labels in there.items())


def test_a_report_without_a_file_is_printed_and_the_others_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.xml"
    assert main(["verify", "--report", "github", str(RESURRECTION)]) == 1
    assert COMMAND.match(capsys.readouterr().out)
    assert main(["verify", "--report", f"junit={file}", str(RESURRECTION)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].strip() == f"{file} written"
    assert main(["verify", "--json", "--report", f"junit={file}", str(RESURRECTION)]) == 1
    assert json.loads(capsys.readouterr().out)["written"] == [str(file)]


def test_what_something_explains_is_not_counted_as_not_allowed(tmp_path: Path, reported: Any) -> None:
    """One second copy is the resend's after a doubt, the other has no cause: one of two is held against the system."""
    times = iter(range(0, 10**12, 10**9))

    def line(process: str, event: str, message: str, **fields: object) -> str:
        told = {"t": next(times), "process": process, "event": event, "message": message, "queue": "q", **fields}
        return f"{json.dumps(told)}\n"

    history = tmp_path / "two.jsonl"
    lines = [f"{json.dumps({'ackfsm_history': 1, 'config': {'profile': 'jms', 'resend_in_doubt': True}})}\n"]
    lines += [
        line("p", "send", "m1"),
        line("nemesis", "fault", "", fault="producer_link_loss"),
        line("p", "in_doubt", "m1"),
    ]
    lines += [line("nemesis", "recovered", "", fault="producer_link_loss"), line("p", "resend", "m1")]
    lines += [line("p", "confirmed", "m1"), line("p", "send", "m2"), line("p", "confirmed", "m2")]
    for message in ("m1", "m1", "m2", "m2"):
        lines += [line("c", "delivered", message, redelivered=False), line("c", "processed", message)]
    history.write_text(
        "".join([*lines, line("nemesis", "drained", "")]).replace('"message": "", ', ""), encoding="utf-8"
    )
    code, found, reports = reported(history)
    anomaly = found["anomalies"]["unflagged_duplicate"]
    assert (code, anomaly["count"], anomaly["unexplained"]) == (1, 2, 1)
    (suite,) = reports["junit"]
    (failure,) = [each for case in suite for each in case.result if case.name == "unflagged_duplicate"]
    assert failure.message == "2 messages were delivered again with the flag clear: 1 not allowed, 1 allowed"
    its = [each for each in reports["prometheus"] if each.labels.get("anomaly") == "unflagged_duplicate"]
    counted = {each.labels["allowed"]: each.value for each in its if each.name == "ackfsm_anomalies"}
    assert counted == {"no": 1, "yes": 1}


def test_no_line_of_a_log_is_accused_by_the_number_of_an_imported_event(tmp_path: Path, reported: Any) -> None:
    mapping = yaml.safe_load((DATA / "imported" / "orders.yaml").read_text(encoding="utf-8"))
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({**mapping, "cannot_show": ["drained"]}), encoding="utf-8")
    how = ["--format", "table", "--mapping", str(tmp_path / "m.yaml")]
    code, _, reports = reported(*how, DATA / "imported" / "orders.csv")
    assert code == 1
    failed = [each for each in reports["sarif"].results if each.level.value == "error"]
    assert failed
    assert all(each.locations[0].physical_location.region is None for each in failed)
    assert any("event " in each.message.text and "(imported)" in each.message.text for each in failed)
    assert all(command[3] is None for command in reports["github"])
