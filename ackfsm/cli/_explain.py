"""``ackfsm explain``: the witnesses of a configuration, or the life of a message of a recorded history."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ackfsm.cli._check import explain_witnesses, exploration_options
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._import import FORMAT, format_options, importing
from ackfsm.cli._options import CONFIGURATION, Command, Option, format_of, set_options, tables_of
from ackfsm.cli._output import (
    hand_out_texts,
    note,
    output_file,
    piped_width,
    print_file,
    print_json,
    progress_line,
    show_text,
)
from ackfsm.cli._verify import configuration_of, faults_of, skew_of, typed_options
from ackfsm.cli._witnesses import FORM
from ackfsm.support.files import check_place
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, InputError, Verdict
from ackfsm.text import meant, quoted, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackfsm.showing import draw
    from ackfsm.showing.views.history import Stories, Story


class _Form(StrEnum):
    """The form of a written story."""

    STEPS = "steps"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"
    SVG = "svg"
    JSON = "json"


_ENDINGS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        ".txt": _Form.STEPS,
        ".mmd": _Form.MERMAID,
        ".puml": _Form.PLANTUML,
        ".svg": _Form.SVG,
        ".json": _Form.JSON,
    }
)


def _explain(arguments: argparse.Namespace) -> int:
    if arguments.history is None:
        for option in (each.name for each in _OF_A_HISTORY if each.is_given(arguments)):
            raise InputError(
                f"{option} is about a history; name its file: ackfsm explain last-night.jsonl.gz {option} ..."
            )
        return explain_witnesses(arguments)
    for option in (each.name for each in _OF_A_CHECK if each.is_given(arguments)):
        raise InputError(
            f"{option} is about what is explored, and {shown(arguments.history)} is a history; leave one out"
        )
    return _explain_history(arguments)


def _explain_history(arguments: argparse.Namespace) -> int:
    arguments.extra = "all"
    anomaly, form = _asked(arguments)
    specification = tables_of(arguments)
    set_options(arguments)
    stories = _stories(arguments, specification)
    if arguments.at is not None:
        return _around(arguments, form, stories)
    story = stories.first(anomaly) if arguments.message is None else stories.of(arguments.message)
    if story is None:
        return _nothing(arguments, stories, anomaly)
    _hand_out(arguments, form, _of_story(arguments, specification, story))
    return _code(story.verdict)


def _asked(arguments: argparse.Namespace) -> tuple[Anomaly | None, _Form]:
    """The anomaly that is asked for, and the form, before anything is read."""
    chosen = [option for option in ("message", "anomaly", "at") if getattr(arguments, option) is not None]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} each say what to explain; leave one of them out")
    faults_of(arguments.unrecorded)
    skew_of(arguments.skew)
    output = output_file(arguments)
    form = format_of("--as", arguments.form, output, _ENDINGS, _Form.STEPS)
    if arguments.at is not None and form not in {_Form.STEPS, _Form.JSON}:
        raise InputError(f"what happened around a time is written as {_Form.STEPS} or {_Form.JSON}; leave --as out")
    if output is not None:
        check_place(output)
    if arguments.anomaly is None:
        return None, form
    from ackfsm import tables, verify

    showable = verify.shown_anomalies(tables.load())
    if arguments.anomaly not in showable:
        hint = meant(arguments.anomaly, showable)
        raise InputError(f"there is no anomaly {quoted(arguments.anomaly)}{hint}; it is one of {', '.join(showable)}")
    return Anomaly(arguments.anomaly), form


def _stories(arguments: argparse.Namespace, specification: Specification) -> Stories:
    from ackfsm import verify
    from ackfsm.showing.views.history import stories_of

    path = arguments.history
    with importing(arguments) as imported, progress_line("reading"):
        place = imported(path)
        examined = verify.examination(
            place,
            specification,
            lambda header: configuration_of(specification, arguments, header, path),
            skew=skew_of(arguments.skew),
            assumed=faults_of(arguments.unrecorded),
            folded_from=None,
        )
        examined = examined if place == path else examined.named(path)
    with progress_line("states found") as progress:
        return stories_of(examined, verify.verdict(examined.findings, specification, progress=progress))


def _nothing(arguments: argparse.Namespace, stories: Stories, anomaly: Anomaly | None) -> int:
    """Say that there is nothing to explain; the exit code is that of the verdict on the history."""
    verdict = stories.result.verdict
    what = "nothing was found in any message" if anomaly is None else f"no message has the anomaly {anomaly}"
    if arguments.json:
        print_json({"history": arguments.history, "verdict": verdict.value, "messages": [], "why": what})
    note(f"ackfsm explain: {shown(arguments.history)} is {verdict}, and {what}; name a message with --message")
    return _code(verdict)


class _Told:
    """A story or a moment, in every form in which it can be written."""

    def __init__(
        self,
        screen: Callable[[], RenderableType],
        text: Callable[[], str],
        document: Callable[[], dict[str, Any]],
        diagram: Callable[[], draw.SequenceDiagram] | None = None,
    ) -> None:
        self.screen = screen
        self.text = text
        self.document = document
        self._diagram = diagram

    def written(self, form: _Form) -> str:
        """It in this form."""
        import json

        if form is _Form.STEPS:
            return self.text()
        if form is _Form.JSON or self._diagram is None:
            return f"{json.dumps(self.document(), indent=2)}\n"
        from ackfsm.showing import draw

        diagram = self._diagram()
        if form is _Form.SVG:
            return draw.sequence_svg([diagram])
        return draw.sequence_mermaid(diagram) if form is _Form.MERMAID else draw.sequence_plantuml(diagram)


def _of_story(arguments: argparse.Namespace, specification: Specification, story: Story) -> _Told:
    from ackfsm.showing.views import story as view

    def diagram() -> draw.SequenceDiagram:
        from ackfsm.showing import draw

        return draw.story_diagram(specification, story)

    nexts = _next(arguments, story)
    return _Told(
        lambda: view.story_screen(story, specification, nexts),
        lambda: view.story_text(story, specification, nexts, piped_width()),
        lambda: view.story_json(story, specification),
        diagram,
    )


def _next(arguments: argparse.Namespace, story: Story) -> list[list[str]]:
    """Return the commands to type next: the messages that were open when it went wrong."""
    from ackfsm.showing.views.story_words import story_clock

    wrong = next((each for each in story.moments if each.impossible), None)
    if wrong is None:
        return []
    time = story_clock(story)(wrong.t)
    return [["ackfsm", "explain", *_typed(arguments), arguments.history, "--at", time]]


def _typed(arguments: argparse.Namespace) -> list[str]:
    return [*typed_options(arguments, arguments.unrecorded), *format_options(arguments)]


def _around(arguments: argparse.Namespace, form: _Form, stories: Stories) -> int:
    from ackfsm.showing.views import story as view
    from ackfsm.showing.views.times import Clock

    clock = Clock(stories.begun)
    around = stories.at(clock.parsed(arguments.at, stories.ended))
    told = _Told(
        lambda: view.around_screen(around),
        lambda: view.around_text(around, width=piped_width()),
        around.as_json,
    )
    _hand_out(arguments, form, told)
    return _code(around.verdict)


def _hand_out(arguments: argparse.Namespace, form: _Form, told: _Told) -> None:
    """Write it to ``--output``, or print it; as JSON with ``--json``."""
    output = output_file(arguments)

    def document() -> Mapping[str, object]:
        text = {} if form in {_Form.STEPS, _Form.JSON} else {"as": form.value, "text": told.written(form)}
        return {**told.document(), **text}

    def show() -> None:
        if form is _Form.STEPS:
            show_text(told.text, lambda: [told.screen()])
        else:
            print_file(told.written(form))

    hand_out_texts(arguments, lambda: {} if output is None else {output: told.written(form)}, document, show)


def _code(verdict: Verdict) -> int:
    return result_code(violated=verdict is Verdict.INVALID, undetermined=verdict is Verdict.UNKNOWN)


_OF_A_CHECK: Final = exploration_options()
"""The options that say what is explored, which a history has none of."""

_OF_A_HISTORY: Final = (
    Option("--message M", "of HISTORY: the life of the message with this id"),
    Option(
        "--at TIME",
        "of HISTORY: what was open at this time, and what happened around it: 10:05:00, 2026-03-01 10:05:00 (UTC), or"
        " 12.5s, where the clock has no date",
    ),
    Option(
        "--faults recorded|any|FAULT,...",
        "of HISTORY: what may have failed, as verify has it (default: recorded)",
        default="recorded",
        dest="unrecorded",
    ),
    Option(
        "--skew DURATION",
        "of HISTORY: by how much clocks may differ, as verify has it (default: estimate)",
        default="estimate",
    ),
    *FORMAT,
)

COMMAND: Final = Command(
    "explain",
    _explain,
    "show the life of a message of a history, or the shortest ways to anomalies",
    "ackfsm explain last-night.jsonl.gz --message m2\n  ackfsm explain --fault consumer_crash --anomaly duplicate",
    "explore",
    (
        Option(
            "HISTORY",
            "a recorded history, as verify reads it; without one, the witnesses of a check are shown",
            dest="history",
            nargs="?",
        ),
        *_OF_A_HISTORY,
        *CONFIGURATION,
        *_OF_A_CHECK,
        *FORM,
    ),
)
