"""What the pytest plugin says of ids, queues and errors of others moves no cursor, ends no line and fills no screen."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import Run, run

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]

_CLEAR = "\\x1b[2J\\x1b[H"
_FORGED = f"{_CLEAR}ok\\n===== 1 passed =====\\r\\x00\\u202e"

_IDS = {"forged": f"'{_FORGED}'", "long": "'x' * 60_000", "spaced": "'a, b: none'"}

_SUITE = """
    ID = {ident}
    @SETTINGS
    @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
    def test_lost(ackfsm):
        def early(connection):
            consumer = connection.session().consumer(ID)
            while (message := consumer.receive()) is not None:
                message.acknowledge()
                ackfsm.processed(message)
        ackfsm.send(ID, "m", message_id=ID)
        ackfsm.run(early)
    @SETTINGS
    def test_left(ackfsm):
        ackfsm.send(ID, "m", message_id=ID)
        ackfsm.send("q", "m")
        ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
    @SETTINGS
    def test_not_drained(ackfsm):
        ackfsm.send(ID, "m", message_id=ID)
        ackfsm.run(lambda connection: connection.session().consumer(ID))
    @SETTINGS
    @pytest.mark.ackfsm_faults("consumer_crash")
    def test_raises(ackfsm):
        def application(connection):
            consumer = connection.session().consumer(ID)
            while (message := consumer.receive()) is not None:
                message.acknowledge()
        ackfsm.send(ID, "m", message_id=ID)
        ackfsm.run(application)
        assert not ackfsm.fault_run.injected
    @SETTINGS
    @pytest.mark.ackfsm_faults(ID, never=[ID])
    def test_fault(ackfsm):
        pass
    @SETTINGS
    def test_unknown(ackfsm):
        ackfsm.processed(ID)
    @pytest.mark.ackfsm(**{{"colour": ID}})
    def test_setting(ackfsm):
        pass
"""


@pytest.mark.parametrize("ident", _IDS)
def test_nothing_of_it_is_more_than_text(run: Run, ident: str) -> None:
    result = run(_SUITE.format(ident=_IDS[ident]), "--junitxml=report.xml", "--tb=short")
    assert result.parseoutcomes() == {"failed": 5, "errors": 2}
    out = result.stdout.str()
    assert len(out) < 60_000
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert sum(line.startswith("===== 1 passed") for line in out.splitlines()) == 0
    report = Path("report.xml").read_text(encoding="utf-8")
    assert len(report) < 120_000
    assert len(ET.fromstring(report).findall(".//testcase")) == 7  # noqa: S314 - of our own making
    if ident == "forged":
        assert "unprocessed of '\\x1b[2J\\x1b[Hok\\n===== 1 passed =====\\r\\x00\\u202e': " in out
        assert "1 message that the test sent to '\\x1b[2J" in out
        assert "1 message in '\\x1b[2J" in out


def test_an_id_of_ten_megabytes_is_refused_in_a_line(run: Run) -> None:
    result = run("def test(ackfsm):\n    ackfsm.send('q', 'm', message_id='x' * 10_000_000)\n", "--tb=line")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*message_id has at most 65,535 bytes, and 'xxx*' (10,000,000 characters) has more; *"]
    )
    assert len(result.stdout.str()) < 3_000


def test_what_cannot_be_written_is_one_sentence(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        def test(ackfsm, monkeypatch):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
            monkeypatch.setattr("os.fsync", full)
        def full(descriptor):
            raise OSError(28, "No space left on device")
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*history.jsonl: cannot be written (No space left on device); *"])
    result.stdout.no_fnmatch_line("*_verdict.py*")
