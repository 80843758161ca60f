"""Do the commands and mappings of docs/importing.md do what the page says?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from ackfsm import cli, verify
from ackfsm.history.importing import Options, Problems, format_named
from ackfsm.history.importing.mapping import read_mapping
from ackfsm.terms import Verdict
from model_tests import documents
from model_tests.support.places import DATA, PROJECT

PAGE = documents.IMPORTING.read_text(encoding="utf-8")
MAPPINGS = PROJECT / "docs" / "examples" / "mappings"


def test_the_page_shows_what_is_printed() -> None:
    assert documents.current(documents.IMPORTING) == PAGE, "run python -m model_tests.documents"


def test_the_commands_of_the_page_end_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model_tests").symlink_to(PROJECT / "model_tests")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lines = [re.fullmatch(r"ackfsm (.*) # exit code (\d+)", line) for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        assert line is not None
        assert cli.main(shlex.split(line[1])) == int(line[2]), line[0]


def test_a_complete_log_is_invalid_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = yaml.safe_load((DATA / "imported" / "orders.yaml").read_text(encoding="utf-8"))
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({**mapping, "cannot_show": ["drained"]}), encoding="utf-8")
    line = ["verify", "--format", "table", "--mapping", str(tmp_path / "m.yaml"), str(DATA / "imported" / "orders.csv")]
    assert cli.main(line) == 1
    assert capsys.readouterr().out.startswith(f"{Verdict.INVALID}: ")


def test_every_mapping_of_the_page_can_be_read(tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block, encoding="utf-8")
        assert read_mapping(path).rows


SOLACE = """2026-03-01 10:00:00,100 main sent ID:10.0.0.7f3e:0 to orders
2026-03-01 10:00:00,115 main confirmed ID:10.0.0.7f3e:0 to orders
2026-03-01 10:00:00,120 consumer-1 received ID:10.0.0.7f3e:0 from orders JMSRedelivered=false JMSXDeliveryCount=1
2026-03-01 10:00:00,121 consumer-1 charging the card
2026-03-01 10:00:00,220 consumer-1 processed ID:10.0.0.7f3e:0
2026-03-01 10:00:00,221 consumer-1 acknowledged ID:10.0.0.7f3e:0
"""
EMS = """1772355600000;producer;send;ID:EMS-SERVER.4A1:1;orders;
1772355600004;producer;send returned;ID:EMS-SERVER.4A1:1;orders;
1772355600010;consumer;receive returned;ID:EMS-SERVER.4A1:1;orders;true
1772355600020;consumer;done;ID:EMS-SERVER.4A1:1;orders;
1772355600021;consumer;acknowledge;ID:EMS-SERVER.4A1:1;orders;
1772355600022;consumer;acknowledge returned;ID:EMS-SERVER.4A1:1;orders;
"""
LIFE = ["send", "confirmed", "delivered", "processed", "acknowledge", "acknowledged"]


@pytest.mark.parametrize(("name", "text"), [("solace", SOLACE), ("ems", EMS)])
def test_the_logs_of_vendors_are_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(text, encoding="utf-8")
    problems = Problems()
    importer = format_named("table").importer(Options(mapping=MAPPINGS / f"{name}.yaml"))
    found = [row for batch in importer.batches([tmp_path / "app.log"], problems) for row in batch.to_pylist()]
    assert [row["event"] for row in found] == LIFE
    (message,) = {row["message"] for row in found}
    assert message == ("ID:10.0.0.7f3e:0" if name == "solace" else "ID:EMS-SERVER.4A1:1")
    assert [row["redelivered"] for row in found if row["event"] == "delivered"] == [name == "ems"]
    assert problems.count == 0
    assert sum(problems.all_left_out().values()) == (name == "solace")


@pytest.mark.parametrize("name", ["solace", "ems"])
def test_the_mappings_of_vendors_have_a_configuration_that_there_is(name: str, tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(SOLACE if name == "solace" else EMS, encoding="utf-8")
    line = ["import", "table", "--mapping", str(MAPPINGS / f"{name}.yaml"), str(tmp_path / "app.log")]
    assert cli.main([*line, "-o", str(tmp_path / "h.parquet")]) == 0
    header = verify.read_header(tmp_path / "h.parquet")
    assert header is not None
    assert "drained" in header.cannot_show
    assert cli.main(["verify", str(tmp_path / "h.parquet")]) == 3
