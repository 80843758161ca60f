"""What comes again after an exception, recover(), rollback and a close: each cell of the pages of the systems."""

from __future__ import annotations

import functools

import pytest

from ackfsm.surveys.matrix import Action, Fate, GivenBack, given_back
from ackfsm.terms import Profile
from model_tests.support.tables import shipped

AUTO, CLIENT, INDIVIDUAL = "AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE"
KEPT, FLAGGED, CLEAR, EITHER, GONE = Fate.KEPT, Fate.FLAGGED, Fate.CLEAR, Fate.EITHER, Fate.GONE

CELLS = [
    ("artemis", AUTO, Action.EXCEPTION, (GONE, FLAGGED, CLEAR)),
    ("artemis", CLIENT, Action.EXCEPTION, (KEPT, KEPT, KEPT)),
    ("artemis", INDIVIDUAL, Action.EXCEPTION, (EITHER, FLAGGED, EITHER)),
    ("artemis", CLIENT, Action.RECOVER, (FLAGGED, FLAGGED, EITHER)),
    ("artemis", INDIVIDUAL, Action.RECOVER, (EITHER, EITHER, EITHER)),
    ("artemis", INDIVIDUAL, Action.CLOSE, (CLEAR, CLEAR, CLEAR)),
    ("activemq", AUTO, Action.EXCEPTION, (GONE, FLAGGED, KEPT)),
    ("activemq", CLIENT, Action.EXCEPTION, (KEPT, KEPT, KEPT)),
    ("activemq", INDIVIDUAL, Action.EXCEPTION, (FLAGGED, FLAGGED, CLEAR)),
    ("qpid", AUTO, Action.EXCEPTION, (GONE, KEPT, KEPT)),
    ("qpid", CLIENT, Action.CLOSE, (FLAGGED, FLAGGED, FLAGGED)),
    ("qpid-jms", AUTO, Action.EXCEPTION, (GONE, CLEAR, KEPT)),
    ("qpid-jms", INDIVIDUAL, Action.EXCEPTION, (KEPT, KEPT, KEPT)),
    ("rabbitmq", INDIVIDUAL, Action.CANCEL, (KEPT, KEPT, FLAGGED)),
    ("rabbitmq", INDIVIDUAL, Action.CLOSE, (FLAGGED, FLAGGED, FLAGGED)),
    ("rabbitmq", "SESSION_TRANSACTED", Action.ROLLBACK, (KEPT, KEPT, KEPT)),
    ("jms", "SESSION_TRANSACTED", Action.ROLLBACK, (FLAGGED, FLAGGED, FLAGGED)),
    ("jms", CLIENT, Action.CANCEL, (KEPT, KEPT, FLAGGED)),
]


@functools.cache
def of(profile: str) -> dict[tuple[str, Action], GivenBack]:
    return {(each.ack_mode, each.action): each for each in given_back(shipped(), profile)}


@pytest.mark.parametrize(("profile", "mode", "action", "fates"), CELLS)
def test_what_becomes_of_the_messages(profile: str, mode: str, action: Action, fates: tuple[Fate, ...]) -> None:
    assert of(profile)[mode, action].fates == fates


@pytest.mark.parametrize("profile", Profile)
def test_each_cell_says_who_says_so(profile: str) -> None:
    unsaid = [(each.ack_mode, each.action) for each in of(profile).values() if not each.sources]
    assert not unsaid
