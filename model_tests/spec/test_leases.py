"""A lease that expires: what is said of the delivery afterwards is in vain, and holds nothing else up."""

from __future__ import annotations

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.terms import Anomaly
from model_tests.support.tables import shipped


@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        ("jms", "CLIENT_ACKNOWLEDGE"),
        ("jms", "SESSION_TRANSACTED"),
        ("ems", "EXPLICIT_CLIENT_ACKNOWLEDGE"),
        ("solace-jms", "INDIVIDUAL_ACKNOWLEDGE"),
        ("qpid", "CLIENT_ACKNOWLEDGE"),
        ("artemis", "DUPS_OK_ACKNOWLEDGE"),
        ("rabbitmq", "SESSION_TRANSACTED"),
    ],
)
def test_an_acknowledgement_that_comes_too_late_blocks_no_other(profile: str, mode: str) -> None:
    bounds = Bounds(messages=2, max_faults=0, actions=frozenset({"lease_expired"}))
    configuration = shipped().configure(profile, {"ack_mode": mode})
    answer = explore.check(shipped(), configuration, bounds, only=[Anomaly.STUCK])
    assert not answer.findings[Anomaly.STUCK].reachable
