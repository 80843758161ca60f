"""Whatever happened to a message is told: what was impossible, what excuses it, and that nothing does."""

from __future__ import annotations

import functools
import io
import json
import re
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from ackfsm import verify
from ackfsm.history.format import Event
from ackfsm.showing import draw
from ackfsm.showing.views.history import Story, WhyNot, stories_of
from ackfsm.showing.views.story import story_json, story_screen, story_text
from ackfsm.showing.views.story_words import life_sentence, story_clock
from ackfsm.terms import Anomaly, Fault, Verdict
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.stories import RECORDED, examined_file, named_stories
from model_tests.support.whole import WHOLE, few

NAMED = named_histories()


@functools.cache
def _stories(name: str) -> tuple[Story, ...]:
    """The stories of all messages of a named history."""
    stories = named_stories(name)
    return tuple(map(stories.of, stories.ids()))


@functools.cache
def _forms_of(name: str) -> tuple[tuple[Story, dict[str, str]], ...]:
    """The same, each in every form in which it can be written."""
    return tuple((story, _forms(story)) for story in _stories(name))


def _forms(story: Story) -> dict[str, str]:
    diagram = draw.story_diagram(shipped(), story)
    return {
        "steps": story_text(story, shipped()),
        "json": json.dumps(story_json(story, shipped())),
        "mermaid": draw.sequence_mermaid(diagram),
        "plantuml": draw.sequence_plantuml(diagram),
        "svg": draw.sequence_svg([diagram]),
    }


def _every_message_of_every_named_history_is_told_in_every_form(name: str) -> None:
    for story, forms in _forms_of(name):
        assert all(len(line) <= 80 for line in forms["steps"].splitlines()), forms["steps"]
        assert forms["steps"].startswith(f"{story.verdict}: ")
        ET.fromstring(forms["svg"])  # noqa: S314 - our own
        lines = {each.line for each in story.moments}
        assert lines, "some line tells of it"
        for form in ("steps", "mermaid", "svg"):
            shown = {int(number) for number in re.findall(r"line (\d+)", forms[form])}
            assert shown <= lines | {each.line for each in story.faults} | {each.until_line for each in story.faults}
        assert {
            int(number) for number in re.findall(r", line (\d+)", forms["mermaid"].partition("Note over")[0])
        } == lines


def _what_is_no_run_of_the_model_has_its_impossible_line(name: str) -> None:
    accused = named_stories(name).result.findings.explanation
    for story, forms in _forms_of(name):
        chapter, marked = story.chapters[0], [each for each in story.moments if each.impossible]
        if chapter.impossible is None:
            assert not marked
            continue
        (moment,) = marked
        assert moment.line == (chapter.impossible.line or (chapter.drained and chapter.drained.line))
        text = " ".join(forms["steps"].split())
        assert f"line {moment.line}, " in text
        assert "allowed there instead: " in text
        assert "← impossible" in text
    expected = {each.message for each in accused.examples} if accused is not None else set()
    expected |= {each.message for each in accused.pairs.examples} if accused is not None and accused.pairs else set()
    told = {each.chapters[0].impossible.message for each in _stories(name) if each.chapters[0].impossible is not None}
    assert told <= expected, "those that verify tells of"
    assert all(named_stories(name).of(message).chapters[0].impossible is not None for message in expected)


def _the_causes_of_all_messages_are_those_that_verify_counts(name: str) -> None:
    """Counted message by message, for what is counted of messages."""
    counted = {
        anomaly: dict(finding.causes)
        for anomaly, finding in named_stories(name).result.findings.anomalies.items()
        if anomaly not in {Anomaly.TORN_TRANSACTION, Anomaly.REORDER} and finding.causes
    }
    told: dict[Anomaly, Counter[str]] = {}
    for story in _stories(name):
        for found in story.chapters[0].anomalies:
            told.setdefault(found.anomaly, Counter()).update({cause.name for cause in found.causes})
    assert {anomaly: dict(told.get(anomaly, {})) for anomaly in counted} == counted


def _an_allowed_anomaly_names_what_excuses_it(name: str) -> None:
    for story, forms in _forms_of(name):
        assert story.verdict is not Verdict.INVALID
        for found in story.chapters[0].anomalies:
            expected = (NAMED[name].valid or {}).get(found.anomaly, "")
            causes = {cause.name for cause in found.causes}
            if not expected:
                continue
            if found.anomaly is not Anomaly.TORN_TRANSACTION:
                assert set(expected.split(" and ")) <= causes
            text = " ".join(forms["steps"].split())
            assert all(cause in text for cause in causes)
            for cause in found.causes:
                assert cause.line is None or f"(line {cause.line})" in text


def _what_nothing_explains_is_said_to_be_so(name: str) -> None:
    stories = named_stories(name)
    for anomaly, ids in (NAMED[name].invalid or {}).items():
        for message in ids if anomaly != Anomaly.TORN_TRANSACTION else ():
            story = stories.of(message)
            assert story.verdict is Verdict.INVALID
            assert anomaly in {each.anomaly for each in story.chapters[0].anomalies if each.unexplained}
            text = " ".join(story_text(story, shipped()).split())
            assert "nothing recorded explains" in text.partition("life")[0]
            assert "no fault" in life_sentence(story, story.chapters[0], story_clock(story))
        first = stories.first(Anomaly(anomaly))
        assert first is not None
        assert first.verdict is Verdict.INVALID, "unexplained ones come first"
        if anomaly != Anomaly.TORN_TRANSACTION:
            assert first.chapters[0].message in ids


def _every_fault_of_the_history_is_there_with_what_it_has_to_do_with_the_message(name: str) -> None:
    lines = [each for each in NAMED[name].lines if each["event"] == "fault" and each["fault"] != "acknowledge_timeout"]
    for story in _stories(name):
        recorded = [each for each in story.faults if each.recorded and each.fault != "acknowledge_timeout"]
        assert sorted(each.fault for each in recorded) == sorted(each["fault"] for each in lines)
        for each in story.faults:
            assert (each.why_not is None) is bool(each.explains)
            moment = story.chapters[0].own[0].t if story.chapters[0].own else 0
            if each.why_not is WhyNot.OVER_BEFORE:
                assert each.until is not None
                assert each.until <= moment + NAMED[name].skew * 10**6


@pytest.mark.parametrize("name", few([*NAMED], 16))
def test_the_messages_of_a_named_history_are_told(name: str) -> None:
    """One history, its stories made once, and everything that is asked of them."""
    _every_message_of_every_named_history_is_told_in_every_form(name)
    _what_is_no_run_of_the_model_has_its_impossible_line(name)
    _the_causes_of_all_messages_are_those_that_verify_counts(name)
    _every_fault_of_the_history_is_there_with_what_it_has_to_do_with_the_message(name)
    if NAMED[name].valid is not None:
        _an_allowed_anomaly_names_what_excuses_it(name)
    _what_nothing_explains_is_said_to_be_so(name)


@pytest.mark.parametrize("name", [name for name, each in NAMED.items() if each.pairs])
def test_a_pair_is_told_side_by_side(name: str) -> None:
    for one, other in NAMED[name].pairs:
        story = next(each for each in map(named_stories(name).of, (one, other)) if each.chapters[0].impossible)
        assert {each.message for each in story.chapters} >= {one} or {each.message for each in story.chapters} >= {
            other
        }
        assert len(story.chapters) == 2
        assert story.why_together
        heading = next(line for line in story_text(story, shipped()).splitlines() if " line " in line and "who" in line)
        assert all(f"'{each.message}'" in heading for each in story.chapters)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_screen_is_as_wide_as_the_terminal(width: int) -> None:
    """A column for each process where there is room, else one that names them; never wider."""
    heads = set()
    for name in few(list(NAMED), 16):
        for story in _stories(name):
            console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
            with console.capture() as said:
                console.print(story_screen(story, shipped(), [["ackfsm", "explain", "x" * 300]]))
            lines = said.get().splitlines()
            assert all(len(line) <= width for line in lines)
            heads |= {"who" in line.split() for line in lines if line.split()[:2] == ["time", "line"]}
    assert True in heads
    assert False in heads or width < 80


SOME = RECORDED if WHOLE else few([path for path in RECORDED if path.suffix != ".gz"], 3)
"""The packed ones are of brokers, and large; the page in HTML tells of one of them."""


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.name)
def test_messages_of_recorded_histories_are_told(path: Path) -> None:
    """All that have an anomaly or are no run of the model, and some that are in order."""
    stories = examined_file(path)
    ids = stories.ids()
    wrong = [story for anomaly in verify.shown_anomalies(shipped()) if (story := stories.first(anomaly)) is not None]
    some = [stories.of(each) for each in {*ids[:20], *ids[-20:], *ids[:: max(1, len(ids) // 20)]}]
    for story in (*wrong, *some):
        forms = _forms(story)
        ET.fromstring(forms["svg"])  # noqa: S314 - our own
        assert all(len(line) <= 80 for line in forms["steps"].splitlines())
        own = [each for each in story.moments if story.chapters[0].message in each.of]
        assert own
        assert all(each.event in set(Event) for each in own)


def test_the_first_message_with_an_anomaly_is_the_one_that_verify_names() -> None:
    for name in few(list(NAMED), 16):
        stories = named_stories(name)
        for anomaly, finding in stories.result.findings.anomalies.items():
            story = stories.first(anomaly)
            assert (story is None) is (finding.found == 0) or anomaly is Anomaly.STUCK, (name, anomaly)


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.name)
def test_the_first_messages_of_a_folded_history_are_the_same(path: Path) -> None:
    stories = examined_file(path)
    configuration = stories.result.findings.configuration
    folded = verify.examination(path, shipped(), lambda _: configuration, skew=None, folded_from=1)
    result = verify.verdict(folded.findings, shipped())
    first = folded.first(result)
    assert first.keys() == {name for name, each in result.findings.anomalies.items() if each.found}
    for anomaly, message in first.items():
        story = stories.first(anomaly)
        assert story is not None
        assert message.message == story.chapters[0].message or anomaly is Anomaly.TORN_TRANSACTION
        assert message.line == min(each.line for each in story.chapters[0].own if each.t == message.t)
    if path.suffix != ".gz":
        with pytest.raises(ValueError, match="a folded history has no stories"):
            stories_of(folded, result)


@pytest.mark.parametrize("name", ["a duplicate after the link broke", "loss in the crash that is allowed"])
def test_faults_that_nobody_recorded_are_told_as_such(name: str) -> None:
    would = _without_faults(name, ())
    assert would.verdict is Verdict.INVALID
    assert set(would.would_explain) == set((NAMED[name].valid or {}).values())
    assert "may explain it: say --faults any" in " ".join(story_text(would, shipped()).split())
    assumed = _without_faults(name, tuple(Fault))
    assert assumed.verdict is Verdict.VALID
    assert not assumed.would_explain
    (fault,) = assumed.faults
    assert not fault.recorded
    assert fault.line is None
    assert f"unrecorded {fault.fault}" in story_text(assumed, shipped())
    assert set(fault.explains) == set(NAMED[name].valid or ())


def _without_faults(name: str, assumed: tuple[Fault, ...]) -> Story:
    """The story of the first message of a named history of which nobody recorded the faults."""
    history = NAMED[name].without_faults()
    with tempfile.TemporaryDirectory() as folder:
        examination = verify.examination(
            history.write(Path(folder)),
            shipped(),
            lambda _: history.configuration(shipped()),
            assumed=assumed,
            folded_from=None,
        )
    story = stories_of(examination, verify.verdict(examination.findings, shipped())).first()
    assert story is not None
    return story
