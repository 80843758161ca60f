"""A private PostgreSQL server for tests, on a socket of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from model_tests.support.tools import missing

_QUICK = ("fsync=off", "full_page_writes=off", "autovacuum=off")
_QUIET = (
    "fsync=on",
    "synchronous_commit=off",
    "autovacuum=off",
    "wal_writer_delay=10s",
    "wal_level=minimal",
    "max_wal_senders=0",
)
"""With real syncs, and a log that is synced for those who ask for it alone: not by default, nor soon by itself."""


def _programs() -> Path | None:
    """The folder that has initdb and postgres."""
    found = shutil.which("postgres")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@dataclasses.dataclass(frozen=True)
class Server:
    """A server that runs: how to connect, and how to kill it and start it again."""

    dsn: str
    data: Path
    again: Callable[[], None]


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A server as long as it is needed, which syncs nothing; gives the dsn.  Skips the test without PostgreSQL."""
    with running(_QUICK) as found:
        yield found.dsn


@contextlib.contextmanager
def running(settings: Sequence[str] = _QUIET) -> Iterator[Server]:
    """A server as long as it is needed, by default one that syncs.  Skips the test where there is no PostgreSQL."""
    programs = _programs()
    if programs is None:
        missing("there is no PostgreSQL; install it with: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="install it with: pip install 'ackfsm[postgres]'")
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # short: the path of a socket is at most 107 bytes
        folder = Path(name)
        user = _other_user() if os.geteuid() == 0 else None
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        _run([programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-N"], user)
        options = " ".join(
            f"-c {setting}" for setting in (*settings, "listen_addresses=''", f"unix_socket_directories={folder}")
        )
        control = [programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
        start, kill = [*control, "-o", options, "start"], [*control, "-m", "immediate", "stop"]

        def again() -> None:
            _run(kill, user)
            _run(start, user)

        _run(start, user)
        try:
            yield Server(f"host={folder} user=tester dbname=postgres", data, again)
        finally:
            _run(kill, user)


def _other_user() -> pwd.struct_passwd:
    """The server refuses to run as root."""
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _run(command: list[object], user: pwd.struct_passwd | None) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        user=None if user is None else user.pw_uid,
        group=None if user is None else user.pw_gid,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stderr + done.stdout
