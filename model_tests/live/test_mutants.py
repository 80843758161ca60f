"""A row of a profile that says what a broker does not do is refuted by that broker."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from ackfsm.driving.conform import Limits, _campaign
from ackfsm.driving.live.brokers import BROKERS
from ackfsm.driving.live.campaign import live
from ackfsm.driving.live.clients.drivers import drivers
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault, Verdict
from model_tests.support.brokers import driven_by, running
from model_tests.support.tools import missing
from model_tests.support.whole import few


@dataclasses.dataclass(frozen=True)
class Believed:
    """A setting of a profile that was believed, or might be, and where the broker refutes it."""

    setting: str
    value: str
    broker: str
    client: str
    mode: AckMode
    consumption: Consumption
    fault: Fault | None
    started: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """With what broker and client are started: what the tables make of that is believed to be the value."""
    delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT

    def __str__(self) -> str:
        return f"{self.broker} {self.client} {self.mode} {self.delivery_mode} {self.setting}={self.value}"

    def profile(self, folder: Path) -> Path:
        """The profile with that setting, as a file."""
        path = folder / "believed.yaml"
        because = f"{{value: {self.value}, because: believed before it was tried, source: JMS 8.7}}"
        like = next(each.profile for each in drivers(self.broker) if each.client == self.client)
        path.write_text(
            f"system: As believed\nlike: {like}\ndefaults:\n  {self.setting}: {because}\n", encoding="utf-8"
        )
        return path


_CLIENT, _INDIVIDUAL = AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE
_TRANSACTED = AckMode.SESSION_TRANSACTED
_LISTENER, _RECEIVE = Consumption.LISTENER, Consumption.RECEIVE
_THROWS, _KILLED, _CUT = Fault.LISTENER_EXCEPTION, Fault.BROKER_KILL, Fault.CONSUMER_LINK_LOSS

_UNSYNCED: Final = MappingProxyType(
    {"journal-sync-non-transactional": "false", "journal-buffer-timeout": "500000000"}  # nanoseconds
)

_ONCE: Final = MappingProxyType({"jms.redeliveryPolicy.maximumRedeliveries": "0"})
_NOWHERE: Final = MappingProxyType({"dead-letter-address": ""})


def _ended(  # noqa: PLR0913 - of what broker, and how
    value: str,
    broker: str,
    client: str,
    mode: AckMode,
    started: Mapping[str, str] = MappingProxyType({}),
    *,
    fault: Fault | None = None,
    delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT,
) -> Believed:
    """What was believed of messages that used up their attempts, or were rejected (T5)."""
    return Believed("attempts_exhausted", value, broker, client, mode, _RECEIVE, fault, started, delivery_mode)


BELIEVED: Final = [
    Believed("listener_exception", "redeliver", "artemis", "artemis", _CLIENT, _LISTENER, _THROWS),
    Believed("redelivery_mark_persisted", "true", "artemis", "artemis", _INDIVIDUAL, _RECEIVE, _KILLED),
    Believed("client_ack_scope", "message", "artemis", "artemis", _CLIENT, _RECEIVE, None),
    Believed("listener_exception", "redeliver", "activemq", "activemq", _CLIENT, _LISTENER, _THROWS),
    Believed("client_ack_scope", "message", "activemq", "activemq", _CLIENT, _RECEIVE, None),
    Believed("client_ack_scope", "message", "rabbitmq", "pika", _CLIENT, _RECEIVE, None),
    Believed("listener_exception", "redeliver", "artemis", "artemis", _INDIVIDUAL, _LISTENER, _THROWS),
    Believed("client_ack_scope", "message", "artemis", "qpid-jms", _CLIENT, _RECEIVE, None),
    Believed("client_ack_scope", "message", "broker-j", "qpid-jms", _CLIENT, _RECEIVE, None),
    Believed("redelivery_mark_persisted", "true", "broker-j", "qpid-jms", _INDIVIDUAL, _RECEIVE, _KILLED),
    Believed("journal_sync_non_transactional", "true", "artemis", "artemis", _CLIENT, _RECEIVE, _KILLED, _UNSYNCED),
    _ended("destroy", "artemis", "artemis", _CLIENT, {"max-delivery-attempts": "2"}, fault=_CUT),
    _ended("dead_letter", "artemis", "artemis", _CLIENT, {"max-delivery-attempts": "2", **_NOWHERE}, fault=_CUT),
    _ended("destroy", "activemq", "activemq", _TRANSACTED, _ONCE),
    _ended("dead_letter", "activemq", "activemq", _TRANSACTED, _ONCE, delivery_mode=DeliveryMode.NON_PERSISTENT),
    _ended("destroy", "activemq", "stomp", _INDIVIDUAL),
    _ended("dead_letter", "activemq", "stomp", _INDIVIDUAL, delivery_mode=DeliveryMode.NON_PERSISTENT),
    _ended("destroy", "rabbitmq", "pika", _INDIVIDUAL, {"x-dead-letter-exchange": ""}),
    _ended("dead_letter", "rabbitmq", "pika", _INDIVIDUAL),
]


@pytest.mark.parametrize("believed", few(BELIEVED, 1), ids=str)
def test_a_broker_refutes_what_was_believed_of_it(
    believed: Believed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = BROKERS[believed.broker]
    (driver,) = (each for each in drivers(believed.broker) if each.client == believed.client)
    if why := kind.lacks() or driver.lacks():
        missing(why)

    kept = {name: value for name, value in believed.started.items() if name in kind.SETTINGS}

    def verdict(profile: Path | None, seconds: float) -> Verdict:
        return live(
            believed.broker,
            folder=tmp_path / ("believed" if profile else "shipped"),
            settings=believed.started,
            profile=None if profile is None else str(profile),
            clients=[believed.client],
            ack_modes=[believed.mode],
            consumptions=[believed.consumption],
            delivery_modes=[believed.delivery_mode],
            faults=[believed.fault],
            limits=Limits(runs=3, wait=0.3, seconds=seconds),
        ).verdict

    monkeypatch.setattr(_campaign, "shrunk", lambda program, _: (program, 0))
    with running(kind, kept) as broker, monkeypatch.context() as patched:
        driven_by(patched, broker)
        known = kind.settings
        hidden = {believed.setting} if believed.started else set()
        patched.setattr(
            kind, "settings", lambda *of: {key: value for key, value in known(*of).items() if key not in hidden}
        )
        assert verdict(believed.profile(tmp_path), 60) is Verdict.INVALID
        patched.setattr(kind, "settings", known)
        assert verdict(None, 5) is not Verdict.INVALID
