"""What bash, zsh and fish offer to complete a command line: asked in the real shells."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from argcomplete.finders import CompletionFinder

from ackfsm.cli._completion import add_completers
from ackfsm.cli._run import _make_parser
from model_tests.support.commands import environment
from model_tests.support.tools import missing

OFFERED = {
    "ackfsm ver": {"verify"},
    "ackfsm --js": {"--json"},
    "ackfsm help exp": {"explain", "export"},
    "ackfsm check --prof": {"--profile"},
    "ackfsm check --profile art": {"artemis"},
    "ackfsm check --set ack_mode=PRE": {"ack_mode=PRE_ACKNOWLEDGE"},
    "ackfsm plan --sweep message_": {"message_size="},
    "ackfsm plan --sweep publish_w": {"publish_window="},
    "ackfsm plan --spread sync": {"sync_time="},
    "ackfsm plan --spread rtt=e": {"rtt=exponential"},
    "ackfsm plan --fault producer": {"producer_link_loss"},
    "ackfsm check --set queue_durable=": {"queue_durable=true", "queue_durable=false"},
    "ackfsm check --profile artemis --set blockOnDur": {"blockOnDurableSend="},
    "ackfsm check --fault broker_": {"broker_crash", "broker_kill"},
    "ackfsm explain --anomaly unp": {"unprocessed"},
    "ackfsm verify --never loss,reo": {"loss,reorder"},
    "ackfsm verify --faults any,broker_k": {"any,broker_kill"},
    "ackfsm verify hist": {"history.jsonl"},
    "ackfsm verify --report j": {"junit"},
    "ackfsm claims --id C3": {f"C3{n}" for n in range(10)},
    "ackfsm check --profile=artemis --api jms-1": {"jms-1.1"},
    "ackfsm draw deli": {"delivery", "delivery_attempts"},
    "ackfsm export --as t": {"tla"},
    "ackfsm where redelivery_mark": {"redelivery_mark_persisted"},
    "ackfsm journal comp": {"compact"},
    "ackfsm conform --fault rej": {"rejection"},
    "ackfsm live broker": {"broker-j"},
    "ackfsm live rabbitmq --fault b": {"blackhole", "broker_crash", "broker_kill"},
}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a history in it, and ``ackfsm`` and argcomplete's own command on the path."""
    programs = {
        "ackfsm": f"{shlex.quote(sys.executable)} -m ackfsm.cli",
        "register-python-argcomplete": f"{sys.executable} -m argcomplete.scripts.register_python_argcomplete",
    }
    (tmp_path / "bin").mkdir()
    for name, command in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "history.jsonl").touch()
    for name, value in environment(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _said(program: str, *words: str) -> str:
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=120).stdout


BASH = """
eval "$(register-python-argcomplete ackfsm)"
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9 COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    COMP_WORDBREAKS=$' \\t\\n"\\'><;|&('
    cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    _python_argcomplete ackfsm "$cur" "$prev"
    [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")  # what -o default does
    printf '%s' "$line"; printf '\\t%s' "${COMPREPLY[@]}"; printf '\\n'
done
"""


def _offered(line: str) -> set[str]:
    """What is offered, in this process."""
    parser = _make_parser()
    add_completers(parser)
    finder = CompletionFinder(parser, always_complete_options="long")
    *words, last = line.split()
    found = finder._get_completions(words, last, "", None)  # type: ignore[no-untyped-call] # noqa: SLF001 - else it takes descriptors
    return {word.strip() for word in found}


@pytest.mark.parametrize("line", OFFERED)
def test_what_may_come_next_is_offered(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history.jsonl").touch()
    monkeypatch.setenv("COMP_LINE", line)
    assert _offered(line) == OFFERED[line]


FEW = ("ackfsm ver", "ackfsm check --set ack_mode=PRE", "ackfsm verify hist")
"""What each shell is asked itself."""


@pytest.mark.usefixtures("shell")
def test_bash_offers_what_may_come_next() -> None:
    bash = shutil.which("bash") or missing("bash is not installed")
    asked = "".join(f"{line}\n" for line in FEW)
    done = subprocess.run(
        [bash, "--norc", "-c", BASH], input=asked, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    answers = {line: {one.strip() for one in said} for line, *said in (each.split("\t") for each in done.splitlines())}
    assert answers == {line: OFFERED[line] for line in FEW}


@pytest.mark.usefixtures("shell")
def test_fish_offers_what_may_come_next() -> None:
    fish = shutil.which("fish") or missing("fish is not installed: apt-get install fish")
    for line in FEW:
        asked = f"register-python-argcomplete --shell fish ackfsm | source; complete -C {shlex.quote(line)}"
        offered = {word.split("\t")[0].strip() for word in _said(fish, "--no-config", "-c", asked).splitlines()}
        assert offered == OFFERED[line], line


ZSH = r"""
import os, pty, select, sys, time

def read(fd, until, seconds):
    seen, end = b"", time.monotonic() + seconds
    while until not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    return seen

pid, fd = pty.fork()
if not pid:
    os.execvp("zsh", ["zsh", "-f", "-i"])
def say(text):
    os.write(fd, text)
say(b"PS1='> '; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -d ./dump; "
    b"eval \"$(register-python-argcomplete ackfsm)\"; echo rea''dy\n")
assert b"ready" in read(fd, b"ready", 60)
for line in sys.argv[1:]:
    # the line is completed, then shown by a command of its own instead of being run
    say(b"shown() { print -r -- \"<$BUFFER>\" >>out; BUFFER= }; zle -N shown; bindkey '^X' shown; echo do''ne\n")
    assert b"done" in read(fd, b"done", 30)
    say(line.encode() + b"\t")
    time.sleep(0.2)
    say(b"\x18")
    for _ in range(600):
        if os.path.exists("out") and open("out").read().endswith(">\n"):
            break
        time.sleep(0.1)
    print(open("out").read().strip()[1:-1].strip())
    os.remove("out")
os.kill(pid, 9)
"""


@pytest.mark.usefixtures("shell")
def test_zsh_completes_the_line() -> None:
    _ = shutil.which("zsh") or missing("zsh is not installed: apt-get install zsh")
    shown = _said(sys.executable, "-c", ZSH, *FEW).splitlines()
    wanted = [f"{line.rpartition(' ')[0]} {next(iter(OFFERED[line]))}" for line in FEW]
    assert shown == wanted


def test_a_shell_that_asks_without_argcomplete_gets_no_command_run(tmp_path: Path) -> None:
    program = "import sys; sys.modules['argcomplete'] = None; from ackfsm.cli import main; sys.exit(main())"
    line = f"ackfsm draw --all --output {tmp_path / 'out'}"
    asked = environment(_ARGCOMPLETE="1", COMP_LINE=line, COMP_POINT=str(len(line)))
    words = [sys.executable, "-c", program, *line.split()[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=asked, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'ackfsm[completion]'" in done.stderr
    assert not (tmp_path / "out").exists()
