"""A private RabbitMQ for tests: on ports and in a folder of its own, to be killed and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from model_tests.support.tools import missing

__all__ = ["RabbitMq", "free_ports", "rabbitmq", "until"]

_SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Not the command of that name, which changes the user and writes to the system's own log."""

_PATIENCE: Final = 60.0


class RabbitMq:
    """A broker that runs; it speaks AMQP 0-9-1 and, by a plugin, AMQP 1.0 at ``port``, and STOMP at ``stomp``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port, self.stomp, self._distribution, self._mapper = free_ports(4)
        (folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0,rabbitmq_stomp].\n")
        (folder / "rabbitmq.conf").write_text(f"stomp.listeners.tcp.1 = 127.0.0.1:{self.stomp}\n")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._broker: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker, over what is in its folder, and wait until clients are served."""
        if not self._processes:
            epmd = ["epmd", "-port", str(self._mapper), "-address", "127.0.0.1"]
            self._processes.append(self._begun(epmd))
            until(lambda: _listens(self._mapper), "epmd listens")
        self._broker = self._begun([str(_SERVER)])
        until(lambda: _listens(self.port) and _listens(self.stomp), f"RabbitMQ listens (its logs: {self._log()})")

    def kill(self) -> None:
        """SIGKILL of the broker with all that it started."""
        if self._broker is not None:
            _end(self._broker)
            ports = (self.port, self.stomp, self._distribution)
            until(
                lambda: not any(map(_listens, ports)), "what the broker started has ended"
            )  # its parent waits for none
        self._broker = None

    def stop(self) -> None:
        """End everything that was started."""
        self.kill()
        for process in self._processes:
            _end(process)

    def _begun(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / "output").open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment(),
                cwd=self._folder,
                start_new_session=True,
            )

    def _log(self) -> str:
        return (self._folder / "output").read_text(errors="replace")[-2000:]

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": str(folder / "log" / "broker.log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "feature_flags"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
        }


@contextlib.contextmanager
def rabbitmq() -> Iterator[RabbitMq]:
    """A broker as long as it is needed.  Skips the test where there is no RabbitMQ."""
    if not _SERVER.exists() or shutil.which("epmd") is None:
        missing("there is no RabbitMQ; install it with: apt-get install rabbitmq-server")
    with tempfile.TemporaryDirectory(prefix="rabbitmq-") as folder:
        broker = RabbitMq(Path(folder))
        try:
            broker.start()
            yield broker
        finally:
            broker.stop()


def until(condition: Callable[[], bool], what: str, patience: float = _PATIENCE) -> None:
    """Wait for a condition; fails with ``what`` if it does not come about."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)


def free_ports(number: int) -> list[int]:
    """Ports of this machine that nobody listens at now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
