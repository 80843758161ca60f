"""``ackfsm verify --html`` as a user meets it: where the file goes, what is refused, and what other engines draw."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ackfsm import spark, tables, verify
from ackfsm.cli import main
from ackfsm.showing.views.history import picture_of
from ackfsm.showing.views.picture import Commands, picture_page
from ackfsm.terms import Configuration
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.verify.large_history import CONFIG, Planted, write_parquet
from model_tests.support.whole import WHOLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NIGHT = str(DATA / "last-night.jsonl")
SPEC = tables.load()


def test_the_file_is_named_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "night.html"
    assert main(["verify", "--html", str(file), NIGHT]) == 1
    assert capsys.readouterr().out.endswith(f"{file} written\n")
    assert main(["verify", "--html", str(file), "--json", NIGHT]) == 1
    assert json.loads(capsys.readouterr().out)["written"] == [str(file)]
    assert file.read_text().startswith('<!DOCTYPE html>\n<html lang="en">')


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["--html", "a.html", NIGHT, NIGHT], "--html draws one history"),
        (["--html", "-", NIGHT], "--html writes a file for a browser; name one"),
        (["--html", "a.html", "--report", "junit=a.html", NIGHT], "would both be a.html"),
        (["--html", "no/such/place.html", NIGHT], "cannot be written"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    line: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", *line]) == 2
    told = capsys.readouterr()
    assert sentence in " ".join(told.err.split())
    assert not told.out
    assert not list(tmp_path.iterdir())


def test_a_history_that_cannot_be_read_leaves_the_old_file(tmp_path: Path) -> None:
    file, bad = tmp_path / "night.html", tmp_path / "bad.parquet"
    file.write_text("old")
    bad.write_text("no history")
    assert main(["verify", "--html", str(file), str(bad)]) == 2
    assert file.read_text() == "old"


def test_reports_are_written_beside_it(tmp_path: Path) -> None:
    file, report = tmp_path / "night.html", tmp_path / "night.xml"
    assert main(["verify", "--html", str(file), "--report", f"junit={report}", NIGHT]) == 1
    assert file.exists()
    assert report.exists()


def _configuration(_: verify.Header | None) -> Configuration:
    return SPEC.configure(None, CONFIG)


def _page(found: verify.Examination) -> Any:
    result = verify.verdict(found.findings, SPEC)
    page = picture_page(result, picture_of(found, result, most=5), SPEC, Commands((), (), ()))
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    return json.loads(data[1])


MESSAGES, ROWS = (20_000, 1 << 14) if WHOLE else (5_000, 1 << 12)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large history."""
    file = tmp_path_factory.mktemp("large") / "large.parquet"
    write_parquet(file, MESSAGES, Planted.of(MESSAGES, 8, 1), rows=ROWS)
    return file


@pytest.fixture(scope="module")
def whole(written: Path) -> Any:
    """Its picture, made of all of it."""
    return _page(verify.examination(written, SPEC, _configuration))


@pytest.fixture
def large(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The history in several chunks."""
    monkeypatch.setattr(chunks, "ROWS_AT_ONCE", ROWS)
    return written


def test_a_folded_history_has_the_picture_of_the_whole(large: Path, whole: Any) -> None:
    folded = verify.examination(large, SPEC, _configuration, folded_from=1, binned=True)
    assert len(folded.left()) > 1
    assert _page(folded) == whole
    with pytest.raises(ValueError, match="binned=True"):
        _page(verify.examination(large, SPEC, _configuration, folded_from=1))


@pytest.mark.spark
def test_spark_draws_the_same(large: Path, whole: Any, spark_session: SparkSession) -> None:
    found = spark.examination(large, SPEC, _configuration, spark_session, skew=0, binned=True)
    assert _page(found) == whole
