"""Do the commands by format of docs/importing.md lead from each sample to what the page says?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ackfsm import cli
from ackfsm.history.importing import FORMATS
from model_tests import documents
from model_tests.support.importing import SAMPLES

if TYPE_CHECKING:
    import pytest

PAGE = documents.IMPORTING
TEXT = PAGE.read_text(encoding="utf-8")


def test_each_format_has_a_section_and_a_line_in_the_first_table() -> None:
    found = re.finditer(r"^## [^\n]*`([a-z-]+)`\n.*?(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    sections = {each[1]: each[0] for each in found}
    assert sections.keys() == {name for name, each in FORMATS.items() if not each.mapped}
    for name, section in sections.items():
        assert f"\n| [`{name}`](#" in TEXT
        assert "| events |" in section or name == "rabbitmq-tracing"


def test_a_trace_is_made_a_history_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (console,) = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "trace.jsonl").write_bytes((SAMPLES / "orders-otlp.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    codes, screens = [], []
    for line in console.splitlines():
        codes.append(cli.main(shlex.split(line.removeprefix("$ ackfsm "))))
        screens.append(capsys.readouterr().out)
    assert codes == [0, 3, 3]
    made, written, direct = screens
    assert made.startswith("trace.parquet written: 152 events")
    assert written.split("history ")[0].count("order-11") == direct.split("history ")[0].count("order-11") > 0


def test_the_consumer_of_the_firehose_is_python_that_compiles() -> None:
    (code,) = (code for _, code in documents.blocks(PAGE) if "import pika" in code)
    compile(code, "importing.md", "exec")
