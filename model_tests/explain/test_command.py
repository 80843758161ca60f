"""``ackfsm explain HISTORY``: what is asked, in which form it is written, and how it ends."""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ackfsm.cli import main
from ackfsm.showing.views.typed import lines_in_shell
from ackfsm.showing.views.verify import verify_screen
from model_tests import documents
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.stories import examined_history
from model_tests.support.whole import few, in_turn

NIGHT = str(DATA / "last-night.jsonl")


def _told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    assert main(["explain", *arguments]) == code
    out, err = capsys.readouterr()
    assert not err
    return out


def test_a_message_is_explained_in_words_that_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(_told(capsys, NIGHT, "--message", "m2", code=1).split())
    assert said.startswith("invalid: message 'm2' was lost, and nothing recorded explains it ")
    assert (
        "m2: confirmed at 10:01:07.200 on producer-1; the queue was seen empty at 10:05:00; never delivered; "
        "no fault after 10:00:12 explains it" in said
    )
    said = " ".join(_told(capsys, NIGHT, "--message", "m1", code=0).split())
    assert "allowed: broker_kill explains it" in said
    assert "explained by broker_kill at 10:00:05 (line 6)" in said


def test_without_a_message_the_worst_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    worst = _told(capsys, NIGHT, code=1)
    assert worst == _told(capsys, NIGHT, "--message", "m2", code=1) == _told(capsys, NIGHT, "--anomaly", "loss", code=1)
    assert "'m1' was delivered again" in _told(capsys, NIGHT, "--anomaly", "duplicate", code=0)


@pytest.mark.parametrize("time", ["10:00:06", "10:00:06.000Z", "2026-03-01 10:00:06", "2026-03-01T10:00:06Z", "5.9s"])
def test_what_was_open_at_a_time(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = _told(capsys, NIGHT, "--at", time, code=1)
    assert said.startswith("at 10:00:06, in a history that is invalid:\n")
    assert "broker_kill, line 6, 10:00:05 to 10:00:12 was there" in said
    before, after = said.split("← here")
    assert "consumer-1  'm1'     processed" in before
    assert "consumer-2  'm1'     delivered again, flagged" in after


def test_open_sends_deliveries_and_messages_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_told(capsys, NIGHT, "--at", "10:01:07.150", "--json", code=1))
    assert [(each["what"], each["count"], each["first"][0]["name"]) for each in found["open"]] == [
        ("send without an answer", 1, "m2"),
        ("message not yet delivered", 1, "m2"),
    ]
    found = json.loads(_told(capsys, NIGHT, "--at", "10:00:01.010", "--json", code=1))
    assert [each["what"] for each in found["open"]] == ["delivery not yet processed"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([NIGHT, "--message", "m3"], "has no message 'm3' (did you mean 'm"),
        ([NIGHT, "--message", "M2"], "has no message 'M2' (did you mean 'm2'?)"),
        ([NIGHT, "--message", "nothing like it"], "has no message 'nothing like it'; ackfsm verify lists"),
        ([NIGHT, "--anomaly", "lost"], "there is no anomaly 'lost' (did you mean loss?); it is one of loss, "),
        ([NIGHT, "--at", "yesterday"], "--at 'yesterday' is no time; say it in UTC, as 10:05:00"),
        ([NIGHT, "--at", "25:00:00"], "--at '25:00:00' is no time"),
        ([NIGHT, "--at", "10:05", "--message", "m1"], "--message and --at each say what to explain"),
        ([NIGHT, "--at", "10:05", "--as", "svg"], "is written as steps or json"),
        ([NIGHT, "--as", "itf"], "itf names no format; --as is one of steps, mermaid, plantuml, svg, json"),
        ([NIGHT, "--max-faults", "2"], "--max-faults is about what is explored"),
        ([NIGHT, "--fault", "broker_kill"], "--fault is about what is explored"),
        ([NIGHT, "--faults", "flood"], "--faults: there is no fault 'flood'"),
        ([NIGHT, "--skew", "much"], "--skew: "),
        (["--message", "m1"], "--message is about a history; name its file"),
        (["--at", "10:05"], "--at is about a history; name its file"),
        (["none.jsonl", "--message", "m1"], "none.jsonl"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("ackfsm explain: ")
    assert why in err
    assert err.count("\n") == 1


def test_a_history_in_which_nothing_is_wrong_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in Path(NIGHT).read_text(encoding="utf-8").splitlines() if '"m2"' not in line]
    file = tmp_path / "clean.jsonl"
    file.write_text("\n".join(line for line in lines if "consumer-2" not in line or "acknowledge" in line))
    code = main(["explain", str(file), "--anomaly", "loss"])
    out, err = capsys.readouterr()
    assert code in {0, 1, 3}
    assert not out
    assert "no message has the anomaly loss; name a message with --message" in err


def test_each_form_is_written_to_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("way.txt", "way.mmd", "way.puml", "way.svg", "way.json"):
        file = tmp_path / name
        assert f"{file} written" in _told(capsys, NIGHT, "--output", str(file), code=1)
        assert "m2" in file.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "way.json").read_text())["messages"][0]["message"] == "m2"
    ET.parse(tmp_path / "way.svg")  # noqa: S314 - our own
    found = json.loads(_told(capsys, NIGHT, "--json", "--as", "mermaid", code=1))
    assert (found["as"], found["text"]) == ("mermaid", (tmp_path / "way.mmd").read_text())


def test_json_has_what_the_screen_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_told(capsys, NIGHT, "--json", code=1))
    assert found.keys() == {
        "history", "begun", "config", "verdict", "messages", "why_together", "moments", "faults", "would_explain",
        "sentences", "written",
    }  # fmt: skip
    (message,) = found["messages"]
    assert (message["message"], message["queue"], message["verdict"]) == ("m2", "orders", "invalid")
    assert [each["anomaly"] for each in message["anomalies"]] == ["loss"]
    assert message["anomalies"][0]["unexplained"]
    (fault,) = found["faults"]
    assert (fault["fault"], fault["line"], fault["to_line"], fault["why_not"]) == ("broker_kill", 6, 7, "over before")
    assert [each["line"] for each in found["moments"] if each["impossible"]] == [14]


@pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["Windows", "Unix"])
def test_windows_line_ends_and_other_clocks_change_no_line(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *events = map(json.loads, Path(NIGHT).read_text(encoding="utf-8").splitlines())
    begun = events[0]["t"]
    file = tmp_path / "night.jsonl"
    lines = [header, *(each | {"t": each["t"] - begun + 5} for each in events)]
    file.write_bytes("".join(f"{json.dumps(line)}{end}" for line in lines).encode())
    said = " ".join(_told(capsys, str(file), code=1).split())
    assert "confirmed at 67.100s on producer-1; the queue was seen empty at 299.900s" in said
    assert "times are seconds of the clock of the history" in said
    assert "60.000s of" not in said
    assert "at 5.900s, in a history" in _told(capsys, str(file), "--at", "5.9", code=1)
    assert main(["explain", str(file), "--at", "10:05:00"]) == 2
    assert "whose clock has no date" in capsys.readouterr().err


def test_the_screens_of_five_histories_are_as_they_were_looked_at() -> None:
    screens = documents.screens()
    assert len(screens) == 5
    for path, text in screens.items():
        assert path.read_text(encoding="utf-8") == text, "run python -m model_tests.documents, and look at it"


_WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=150)


@given(words=st.lists(_WORDS, min_size=1, max_size=4), width=st.integers(40, 120))
def test_a_command_that_is_broken_into_lines_is_the_same_to_a_shell(words: list[str], width: int) -> None:
    lines = lines_in_shell(words, width)
    assert all(len(line) <= width and line.isprintable() for line in lines)
    assert _as_bash_reads("\n".join(lines)) == words


def _as_bash_reads(typed: str) -> list[str]:
    script = f"printf '%s\\0' {typed}"
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    return done.stdout.decode().split("\0")[:-1]


def test_what_verify_says_to_type_next_is_what_explains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / ("a folder with a long name, in which the files of the night are " * 2)
    folder.mkdir()
    file = folder / "it's last night.jsonl"
    file.write_bytes(Path(NIGHT).read_bytes())
    assert main(["verify", "--set", "prefetch=9", str(file)]) == 1
    screen = capsys.readouterr().out
    assert all(len(line) <= 80 for line in screen.splitlines())
    commands = [each for each in _commands(screen) if "m2" in each]
    assert commands == [["ackfsm", "explain", "--set", "prefetch=9", str(file), "--message", "m2"]]
    assert "message 'm2' was lost" in _told(capsys, *commands[0][2:], code=1)


def _commands(screen: str) -> list[list[str]]:
    """The commands on a screen, as a shell reads them."""
    found: list[list[str]] = []
    lines = iter(screen.splitlines())
    for line in lines:
        if line.startswith("  ackfsm "):
            typed = line.rstrip()
            while typed.endswith("\\"):
                typed += "\n" + next(lines).rstrip().removeprefix("  ")
            found.append(_as_bash_reads(typed))
    return found


def test_the_screen_of_verify_is_as_wide_as_it_may_be() -> None:
    words = ["ackfsm", "explain", "some/where/" + "deep/" * 20 + "night.jsonl"]
    for history in few([*named_histories().values()], 12):
        examination, result = examined_history(history)
        first = examination.first(result)
        for width, everything in itertools.product((80, 100, 160), (False, True)):
            console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, force_terminal=False)
            with console.capture() as said:
                console.print(
                    verify_screen(result, shipped(), everything=everything, first=first, command=words, width=None)
                )
            assert all(len(line) <= width for line in said.get().splitlines())


ODD = (
    *("m\n2", "ключ 鍵 🔑", "é\u0301", "m" * 5_000, "'quoted' \"twice\" $HOME `id`"),
    *("-x", "\\", "a\\nb", " ", "m2 — end"),
)


@pytest.mark.parametrize(("form", "name"), in_turn(["mermaid", "plantuml", "svg", "json"], ODD, 1))
def test_odd_ids_are_found_and_shown(form: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in Path(NIGHT).read_text(encoding="utf-8").splitlines()]
    file = tmp_path / "odd.jsonl"
    file.write_text(
        "".join(f"{json.dumps(line | ({'message': name} if line.get('message') == 'm2' else {}))}\n" for line in lines)
    )
    said = _told(capsys, str(file), f"--message={name}", code=1)
    assert said == _told(capsys, str(file), "--anomaly", "loss", code=1)
    assert all(character.isprintable() or character == "\n" for character in said)
    assert max(map(len, said.splitlines())) <= 80
    _told(capsys, str(file), f"--message={name}", "--as", form, code=1)
    assert main(["verify", str(file)]) == 1
    (command,) = [each for each in _commands(capsys.readouterr().out) if "m1" not in each]
    assert _told(capsys, *command[2:], code=1) == said


def test_a_flag_that_the_source_does_not_have_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"ackfsm_history": 1, "config": {"profile": "rabbitmq"}, "cannot_show": ["redelivered", "fault"]},
        {"t": 1, "process": "p", "event": "send", "message": "m"},
        {"t": 2, "process": "c", "event": "delivered", "message": "m", "redelivered": False},
        {"t": 3, "process": "d", "event": "delivered", "message": "m", "redelivered": True},
    ]
    path = tmp_path / "h.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    told = " ".join(_told(capsys, str(path), "--message", "m", code=3).split())
    assert "to d (flag not recorded)" in told
    assert "delivered again, flag not recorded" in told
    assert "(flagged)" not in told
    assert "flag clear)" not in told


def test_events_of_an_import_are_not_called_lines_of_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    log = ["--format", "table", "--mapping", str(DATA / "imported" / "orders.yaml")]
    told = _told(capsys, *log, str(DATA / "imported" / "orders.csv"), "--message", "o-1002", code=3)
    assert "event" in told
    assert "line" not in told.replace("delivered", "")
