"""Programs in process groups of their own, on ports of this machine, which end with this process however it ends."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ackfsm.terms import HostError

__all__ = ["Group", "free_ports", "listens", "until"]

_PORTS: Final = range(10_240, 32_768)
"""Below those that a machine gives to clients: a client that dials a killed broker may else be given its port, and then
answers itself."""
_BEGUN: Final = 'read -r _ && exec "$@" </dev/null'
_GUARDIAN: Final = 'read -r _ || kill -s KILL -- "-$1"'
_SHELL: Final = "/bin/sh"
_LAST_WORDS: Final = 2000


class Group:
    """A program with all that it starts; its output goes to ``log``.

    A guardian reads a pipe that we hold.  The pipe ends with us, and the guardian then kills the group.  The program
    itself waits for a line before it starts, so that nothing runs unguarded.
    """

    def __init__(self, command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - a broker, or a client of one
                [_SHELL, "-c", _BEGUN, _SHELL, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        self._guardian = subprocess.Popen(  # noqa: S603 - the shell
            [_SHELL, "-c", _GUARDIAN, _SHELL, str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _told(self._process)

    @property
    def runs(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The end of the program's output."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self, number: signal.Signals, patience: float) -> None:
        """Send a signal, and wait until the program has ended; what is left of the group then is killed."""
        self.send(number)
        self.send(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        ended = not self.runs
        self.send(signal.SIGKILL)
        self._process.wait()
        _told(self._guardian)
        self._guardian.wait()
        if not ended:
            raise HostError(f"a program did not end within {patience:.0f} s and was killed; see {self._log}")


def until(condition: Callable[[], bool], what: str, patience: float = 60) -> None:
    """Wait for a condition; raises :class:`HostError` if that does not come about."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise HostError(f"waited {patience:.0f} s in vain until {what}")
        time.sleep(0.02)


def free_ports(number: int) -> list[int]:
    """Ports of this machine at which nobody listens, and which no client is given."""
    found: set[int] = set()
    while len(found) < number:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as each, contextlib.suppress(OSError):
            each.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


def listens(port: int) -> bool:
    """Whether a connection to a port of this machine is taken."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _told(process: subprocess.Popen[bytes]) -> None:
    """Write a line to a program, and no more."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError), process.stdin as line:
            line.write(b"\n")
