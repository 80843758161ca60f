"""Programs that look like applications, drawn, run and judged; and what they do, which is asserted."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from model_tests.applications import campaign as applications
from model_tests.applications.known import KNOWN, Known, known, tells
from model_tests.applications.mended import MENDED
from model_tests.applications.programs import (
    Consume,
    Fault,
    Program,
    Recover,
    Refuse,
    Send,
    Sender,
    Strike,
    Worker,
)
from model_tests.applications.reports import Failure
from model_tests.applications.runs import perform
from model_tests.applications.statistics import EXCEPTIONS, FEW, Statistics
from model_tests.applications.testbed import Molds
from model_tests.support.engine.bugs import Paging
from model_tests.support.whole import WHOLE

PROGRAMS = 300 if WHOLE else 200
SYSTEMS = 18
SEED = 20
_CALLED_BACK = Program("jms", {"send_mode": "asynchronous"}, "Timed(seed=0)", senders=(Sender(transacted=True),))
SELDOM = {
    "confirmed_by_range": Program("solace", {"ack_event_mode": "WINDOWED"}, "Timed(seed=0)", phases=(Send(number=4),)),
    "consumer_reattached": Program(
        "artemis",
        {"consumer_reattachment": True, "publish_window": 3},
        "Timed(seed=0)",
        phases=(Send(number=4), Consume(number=4, strike=Strike("lose", 2))),
    ),
    "producer_reattached": Program(
        "artemis",
        {"session_reattachment": True, "publish_window": 3},
        "Timed(seed=0)",
        phases=(Send(number=4, strike=Strike("lose", 3)),),
    ),
    "send_completed": dataclasses.replace(_CALLED_BACK, phases=(Send(number=3),)),
    "send_refused": dataclasses.replace(_CALLED_BACK, phases=(Refuse(), Send(number=3))),
    "send_failed": dataclasses.replace(_CALLED_BACK, phases=(Send(number=3, strike=Strike("lose", 1)),)),
    "missed": Program(settings={"destination": "non_durable_subscription"}, phases=(Send(),)),
    "turned_away_at_limit": Program(
        "qpid-jms",
        {"max_delivery_attempts": 2},
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE"),),
        phases=(Send(), Consume(end="none"), Recover(), Consume(end="none"), Recover()),
    ),
}
"""What so few programs do too seldom, or never, each with a program that does it.

Thousands do most of it often enough; none that is drawn subscribes, or has a limit of attempts with `other_consumers`.
"""

_LOSING = Program(phases=(Send(number=4), Consume(), Fault("kill"), Send(number=2), Consume(number=3)))
FORGETS = Known(
    "forgets",
    "a broker that has started does not read the first page of a queue: an example of a defect that is known",
    dataclasses.replace(
        _LOSING,
        settings={"prefetch": 1},
        senders=(Sender(), Sender("b")),
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE"),),
    ),
    lambda _, failure: tells(failure, ("nobody had it",), lambda item: item.stored),
)


@functools.cache
def molds() -> Molds:
    """Shared by all programs here."""
    return Molds()


def test_programs_perform_every_event_of_the_tables_and_keep_what_is_promised() -> None:
    statistics, failures = applications.run_many(SEED, range(PROGRAMS), systems=SYSTEMS)
    assert statistics.rare().keys() == SELDOM.keys(), str(statistics)
    new = [f"--seed {SEED} --only {number}: {said}" for number, name, said in failures if not name]
    assert not new, "\n".join(new)
    assert not statistics.stale(), "these are no exceptions any more"


@pytest.mark.parametrize("event", SELDOM)
def test_what_few_programs_do_seldom_one_of_its_own_does(event: str) -> None:
    assert perform(SELDOM[event], molds()).events[event]


def failure_of(defect: Known) -> Failure | None:
    """What is wrong with the program of a known defect."""
    return perform(
        defect.program, Molds(kind=Paging) if defect is FORGETS else molds(), verified=defect in KNOWN
    ).failure


@pytest.mark.parametrize("defect", [*KNOWN, FORGETS], ids=str)
def test_a_known_defect_is_still_there_or_its_row_goes(defect: Known) -> None:
    failure = failure_of(defect)
    assert failure is not None, f"{defect} is mended: take its row out of KNOWN, and move its program to MENDED"
    assert known(defect.program, failure, [defect]) is defect, str(failure)


LOST = "m1 was received and not acknowledged, and never came again"


@pytest.mark.parametrize("defect", [*KNOWN, FORGETS], ids=str)
def test_a_known_defect_hides_no_other_one(defect: Known) -> None:
    failure = failure_of(defect)
    assert failure is not None
    plain: dict[str, Any] = {"transaction": None, "resent": False, "thrown": False, "stops": 0, "stored": False}
    items = failure.items.items()
    harmed = {name: dataclasses.replace(item, deliveries=1, **plain) for name, item in items}
    others = {
        "beside it": dataclasses.replace(failure, text=f"{failure.text}\n{LOST}"),
        "instead of it": dataclasses.replace(failure, text=LOST),
        "of a message of which it cannot be": dataclasses.replace(failure, items=harmed),
    }
    assert not [how for how, other in others.items() if known(defect.program, other, [defect]) is not None]


@pytest.mark.parametrize("wrong", MENDED)
def test_what_was_mended_stays_so(wrong: str) -> None:
    assert perform(MENDED[wrong], molds()).failure is None


def test_a_program_is_printed_as_the_python_that_makes_it_again() -> None:
    made = applications.drawn(SEED, 7)
    names: dict[str, object] = {}
    exec("from model_tests.applications.programs import *", names)  # noqa: S102 - as whoever reproduces a failure
    assert eval(repr(made), names) == made  # noqa: S307 - what the suites print


def test_statistics_notice_programs_that_do_little() -> None:
    statistics = Statistics()
    for _ in range(FEW):
        statistics.add(perform(Program(phases=(Send(),)), molds()))
    assert {"broker_crash", "committed consumption"} <= statistics.rare().keys()


def test_statistics_notice_what_no_system_has_and_exceptions_that_are_none() -> None:
    statistics = Statistics()
    statistics.add(perform(Program(phases=(Send(),)), molds()))
    assert "timer_fires" in statistics.rare()
    assert statistics.stale() == []
    statistics.performed[next(iter(EXCEPTIONS))] = 1
    assert statistics.stale() == [next(iter(EXCEPTIONS))]


def test_the_books_alone_notice_a_broker_that_forgets() -> None:
    """Neither ``verify`` nor the model is asked."""
    assert perform(FORGETS.program, molds()).failure is None
    failure = failure_of(FORGETS)
    assert failure is not None
    assert failure.judge == "books"
    assert "nobody had it" in failure.text


def test_a_failure_is_shrunk_to_what_it_takes() -> None:
    broken = Molds(kind=Paging)
    failure = perform(_LOSING, broken).failure
    assert failure is not None
    small = applications.shrink(_LOSING, failure, broken)
    assert len(small.phases) <= 3
    assert perform(small, molds()).failure is None
