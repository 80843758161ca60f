"""What tests need of others: a lack is told in one line, and is an error where all of it has to be there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from model_tests.support.places import PROJECT
from model_tests.support.tools import REQUIRED, missing

SERVERS = PROJECT / ".ci" / "servers"


def test_a_test_without_its_tool_is_skipped_or_fails_where_tools_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^no spin$"):
        missing("no spin")
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match=r"^no spin \("):
        missing("no spin")


@pytest.mark.skipif(not SERVERS.is_file(), reason="the scripts of CI are not in a source distribution")
@pytest.mark.parametrize(("options", "code"), [([], 0), (["--require"], 1)])
def test_a_server_that_cannot_be_installed_is_an_error_where_it_is_required(
    options: list[str], code: int, tmp_path: Path
) -> None:
    """A machine with a shell, and neither apt nor any of the tools."""
    for program in ("bash", "id"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    done = subprocess.run(
        [str(tmp_path / "bash"), str(SERVERS), *options],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert "Not installed (it takes root and apt):" in done.stderr
    assert "spin" in done.stderr
