"""Qpid Broker-J, of Maven Central: AMQP 0-8 to 1.0 at one port, over a store of Berkeley DB or of Derby."""

from __future__ import annotations

import base64
import http.client
import json
import signal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.driving.conform import Depth
from ackfsm.driving.live import java
from ackfsm.driving.live.brokers.broker import ANSWERS, LiveBroker
from ackfsm.terms import HostError

__all__ = ["JARS", "BrokerJ"]

JARS: Final = "org.apache.qpid:apache-qpid-broker-j:10.1.0:tar.gz:bin"
_HOST: Final = "default/default"
_ATTEMPTS: Final = "maximumDeliveryAttempts"
_WITH: Final = {
    "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
    "Content-Type": "application/json",
}


class BrokerJ(LiveBroker):
    """Broker-J, asked by its REST interface; ``store`` is BDB or DERBY, and the other setting is of queues."""

    name = "broker-j"
    profile = "qpid"
    dead_letters = "DLQ"
    SETTINGS = ("store", _ATTEMPTS)
    LIMIT = (_ATTEMPTS, 0)
    PORTS = ("amqp amqp1",)
    # What a session had prefetched and never handed over comes again flagged and counted.
    SEEN = MappingProxyType(
        {
            # Its client releases what it had prefetched unmarked, and with it what a listener threw on; it sends again
            # what it has told to be in doubt.
            "amqp": {
                "delivery_count_from": "dispatch",
                "ended_consumer_marks_redelivered": False,
                "resend_in_doubt": True,
            },
            "amqp1": {"delivery_count_from": "dispatch", "rejected_comes_again": True},
        }
    )

    @classmethod
    def lacks(cls) -> str:
        """What is missing on this machine to start the broker, and how that is had; empty if nothing is."""
        return java.lacks(JARS)

    @property
    def version(self) -> str:
        """The vendor's."""
        return JARS.split(":")[2]

    def remove(self, queue: str) -> None:
        """Remove a queue with its messages."""
        self._request("DELETE", f"queue/{_HOST}/{queue}")

    def depth(self, queue: str) -> Depth:
        """What a queue has now, by the broker's own count."""
        counts = self._request("GET", f"queue/{_HOST}/{queue}")["statistics"]
        held = int(counts["unacknowledgedMessages"])
        return Depth(int(counts["queueDepthMessages"]) - held, held)

    def _declare(self, queue: str, kind: str) -> None:
        del kind
        attributes: dict[str, Any] = {"durable": True}
        if queue != self.dead_letters:
            attributes["alternateBinding"] = {"destination": self.dead_letters}
            attributes |= {name: self.vendor_settings[name] for name in self.vendor_settings if name == _ATTEMPTS}
        self._request("PUT", f"queue/{_HOST}/{queue}", attributes)

    def _serves(self) -> bool:
        """Whether the virtual host is active; one whose files are torn never is, and then the broker is killed."""
        try:
            if self._request("GET", "virtualhostnode/default")["state"] == "ERRORED":
                self._running().send(signal.SIGKILL)
            return bool(self._request("GET", f"virtualhost/{_HOST}")["state"] == "ACTIVE")
        except (HostError, KeyError):
            return False

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._more_ports[0], timeout=ANSWERS)
        try:
            connection.request(method, f"/api/latest/{path}", None if body is None else json.dumps(body), _WITH)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise HostError(f"{self.name} does not answer {method} {path}: {error}") from error
        finally:
            connection.close()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise HostError(f"{self.name} does not do {method} {path}: {text.decode(errors='replace')[:500]}")
        found = json.loads(text) if text else {}
        return dict(found[0] if isinstance(found, list) else found or {})

    def _command(self) -> Sequence[str]:
        configuration = self.folder / "broker.json"
        configuration.write_text(json.dumps(self._configuration()), encoding="utf-8")
        options = [*self._jvm, f"-Dderby.stream.error.file={self.folder}/derby.log", "-cp", f"{java.jars(JARS)}/*"]
        work = ["-prop", f"qpid.work_dir={self.folder}/work", "-icp", str(configuration)]
        return ["java", *options, "org.apache.qpid.server.Main", *work]

    def _configuration(self) -> dict[str, Any]:
        """What the broker reads when it starts for the first time, and then keeps."""
        users = [{"name": "guest", "type": "managed", "password": "guest"}]
        rules = [{"name": "Root", "type": "NameAndLevel", "level": "WARN", "loggerName": "ROOT"}]
        listens = {"bindingAddress": "127.0.0.1", "authenticationProvider": "plain"}
        aliases = [{"name": each, "type": f"{each}Alias"} for each in ("default", "name", "hostname")]
        store = {"type": self.vendor_settings.get("store", "BDB"), "modelVersion": "9.0"}
        return {
            "name": "live",
            "modelVersion": "9.0",
            "authenticationproviders": [{"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": users}],
            "brokerloggers": [{"name": "console", "type": "Console", "brokerloginclusionrules": rules}],
            "ports": [
                {"name": "AMQP", "type": "AMQP", "port": self.ports["amqp"], "virtualhostaliases": aliases, **listens},
                {"name": "HTTP", "type": "HTTP", "port": self._more_ports[0], "protocols": ["HTTP"], **listens},
            ],
            "plugins": [
                {"type": "MANAGEMENT-HTTP", "name": "httpManagement", "httpBasicAuthenticationEnabled": "true"}
            ],
            "virtualhostnodes": [
                {
                    "name": "default",
                    "type": "JSON",
                    "defaultVirtualHostNode": "true",
                    "virtualHostInitialConfiguration": json.dumps(store),
                }
            ],
        }
