"""The client of Artemis and of Broker-J: one JVM that does all runs, with Artemis' own client or with Qpid JMS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ackfsm.driving.live.clients import jms
from ackfsm.driving.live.clients.client import Client, ClientError
from ackfsm.driving.live.java import compiled
from model_tests.reality.runs import Outcome, Run

__all__ = ["OPTIONS", "JmsClient", "jms_client"]

OPTIONS: Final = ("-Xms768m", "-Xmx768m", "-XX:MaxDirectMemorySize=256m", "-XX:TieredStopAtLevel=1")
"""Of every JVM.  The first compiler alone, since what the second does in the background would be measured too."""

_MODES: Final = {
    "SESSION_TRANSACTED": 0,
    "AUTO_ACKNOWLEDGE": 1,
    "CLIENT_ACKNOWLEDGE": 2,
    "DUPS_OK_ACKNOWLEDGE": 3,
    "PRE_ACKNOWLEDGE": 100,
    "INDIVIDUAL_ACKNOWLEDGE": 101,
}


class JmsClient:
    """A JVM that does runs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def measure(self, run: Run, port: int) -> Outcome:
        """Do ``run`` on the broker that listens at ``port``."""
        words = {
            "url": _url(run, port),
            "what": run.what,
            "queue": run.queue,
            "size": run.size,
            "window": run.window,
            "batch": run.batch,
            "ack_mode": _MODES[run.ack_mode],
            "persistent": run.persistent,
            "warm_up": run.warm_up,
            "seconds": run.seconds,
            "messages": run.messages,
        }
        try:
            return Outcome(**self._client.ask("run", **words).result())
        except ClientError as error:
            raise RuntimeError(f"{run}: {error}") from error


def _url(run: Run, port: int) -> str:
    """Where to connect, and how: no bound but those of the run."""
    if run.protocol == "core":
        options = {
            "blockOnDurableSend": "true",
            "blockOnNonDurableSend": "true",
            "blockOnAcknowledge": str(run.block_on_acknowledge).lower(),
            "confirmationWindowSize": 10_485_760,  # less, and sends complete before the broker has them (-1)
            "producerWindowSize": -1,
            "consumerWindowSize": 1_048_576,  # bytes, as by default: so much is under way that nothing else bounds it
        }
        return f"tcp://127.0.0.1:{port}?" + "&".join(f"{name}={value}" for name, value in options.items())
    options = {
        "amqp.saslMechanisms": "PLAIN",
        "jms.username": "guest",
        "jms.password": "guest",
        "jms.prefetchPolicy.all": run.prefetch or 1000,
        "jms.forceSyncSend": str(run.what == "blocking").lower(),  # what is not persistent too
    }
    return f"amqp://127.0.0.1:{port}?" + "&".join(f"{name}={value}" for name, value in options.items())


@contextlib.contextmanager
def jms_client(jars: Path, folder: Path) -> Iterator[JmsClient]:
    """A client as long as it is needed."""
    sources = [Path(jms.__file__).parent / "java" / "Json.java", Path(__file__).parent / "java" / "JmsDriver.java"]
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    options = [*OPTIONS, f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", compiled(sources, f"{jars}/*")]
    with Client("jms", ["java", *options, "JmsDriver"], folder / "JmsDriver.log") as client:
        yield JmsClient(client)
