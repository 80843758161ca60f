"""Modes that behave alike: what is said of two modes, and that a changed row is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.terms import Configuration
from model_tests.alike import AlikeModes, alike_modes, rows_digest
from model_tests.support.tables import copy_of_spec, replace, shipped


def pairs(profile: str) -> dict[tuple[str, str], AlikeModes]:
    found = alike_modes(shipped(), profile)
    return {(_name(pair.second), _name(pair.first)): pair for pair in found}


def _name(mode: Configuration) -> str:
    return f"{mode.ack_mode.removesuffix('_ACKNOWLEDGE')} {mode.consumption}"


def test_dups_ok_of_classic_is_auto_by_the_same_rows() -> None:
    """AMQ:ActiveMQMessageConsumer: on a queue each message is acknowledged."""
    found = pairs("activemq")
    for way, shared in (
        ("listener", {"acks_automatically"}),
        ("receive", {"acks_automatically", "acks_before_delivery"}),
    ):
        pair = found[f"DUPS_OK {way}", f"AUTO {way}"]
        assert (pair.rows, pair.two_messages, pair.with_two_messages) == ((), None, True)
        assert set(pair.conditions) >= shared


def test_client_and_individual_part_with_the_second_message() -> None:
    pair = pairs("solace-jms")["INDIVIDUAL receive", "CLIENT receive"]
    assert {machine for machine, _, _ in pair.rows} == {"ack_call", "ack_frame", "recovery"}
    assert pair.with_two_messages is False
    assert pair.two_messages is not None
    assert pair.two_messages.only is not None
    assert any("m2" in label for label in pair.two_messages.trace)


def test_the_two_modes_of_solace_are_not_alike() -> None:
    assert pairs("solace") == {}


def test_what_stops_at_its_limit_is_undecided() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model_tests.alike.ALIKE_STATES", 10)
        found = pairs("solace-jms")
    undecided = {name for name, pair in found.items() if pair.with_two_messages is None}
    assert ("INDIVIDUAL receive", "CLIENT receive") in undecided


def test_another_row_is_another_digest_and_another_reason_is_not(tmp_path: Path) -> None:
    spec, file, before = copy_of_spec(tmp_path), "machines/consumer.yaml", rows_digest(shipped(), ["solace"])
    replace(spec, file, ("because: the library prefetches", "because: it buffers"))
    assert rows_digest(tables.load(spec), ["solace"]) == before
    replace(
        spec, file, ("processed: {to: idle, because: the application", "processed: {to: busy, because: the application")
    )
    assert rows_digest(tables.load(spec), ["solace"]) != before
