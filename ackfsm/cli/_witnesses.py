"""Write the witnesses of a search: which ones, in which format, to which files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from ackfsm.checking.explore import Answer, Witness
from ackfsm.cli._options import Option, format_of
from ackfsm.cli._output import hand_out_texts, note, output_file, piped_width, print_file, show_text
from ackfsm.support.files import check_place, leads_out
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, InputError
from ackfsm.text import meant, quoted

if TYPE_CHECKING:
    from ackfsm.checking.unbounded import Decision


class Form(StrEnum):
    """The form of a written witness."""

    STEPS = "steps"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"
    SVG = "svg"
    PYTEST = "pytest"
    ITF = "itf"
    HISTORY = "history"


_ENDINGS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        ".txt": Form.STEPS,
        ".mmd": Form.MERMAID,
        ".puml": Form.PLANTUML,
        ".svg": Form.SVG,
        ".py": Form.PYTEST,
        ".json": Form.ITF,
        ".jsonl": Form.HISTORY,
    }
)

_ONE_A_FILE: Final = frozenset({Form.MERMAID, Form.ITF, Form.HISTORY})
"""A file of these holds one witness; one of the others as many as there are."""


FORM: Final = (
    Option(
        "--as F", f"show the witnesses as {', '.join(Form)} (default: what --output ends with, else steps)", dest="form"
    ),
    Option("--anomaly A", "only the witness of this anomaly"),
    Option("--output FILE", "write the witnesses there (default: print)", Path),
)
"""What :func:`form_of` and :func:`show` read."""


def form_of(arguments: argparse.Namespace) -> Form | None:
    """The format of the witnesses; ``None`` if none are to be shown.

    Raises :class:`InputError` for an unknown one, and for a history of several subscriptions.
    """
    if arguments.anomaly is not None:
        _anomaly(arguments.anomaly)
    if arguments.form is None and arguments.output is None:
        return None if arguments.anomaly is None else Form.STEPS
    output = output_file(arguments)
    form = format_of("--as", arguments.form, output, _ENDINGS, Form.STEPS)
    if form is Form.HISTORY and arguments.subscriptions > 1:
        raise InputError("a history is of one subscription; leave --subscriptions out, or choose another form (--as)")
    if output is not None:
        check_place(output)
    return form


def _anomaly(name: str) -> Anomaly:
    try:
        return Anomaly(name)
    except ValueError:
        hint = meant(name, Anomaly)
        raise InputError(f"there is no anomaly {quoted(name)}{hint}; the anomalies are {', '.join(Anomaly)}") from None


def show(  # noqa: PLR0913 - the answer, its witnesses and its JSON
    arguments: argparse.Namespace,
    form: Form,
    specification: Specification,
    answer: Answer | Decision,
    witnesses: Sequence[Witness],
    *,
    told: Mapping[str, object],
) -> None:
    """Write the chosen witnesses to ``--output`` or print them, and report the files, or why there is no witness.

    With ``--json`` they stand beside what is ``told``, the JSON of the answer without them.
    """
    chosen = [one for one in witnesses if arguments.anomaly in {None, one.anomaly}]
    write, files = _writer(form), _files(output_file(arguments), form, chosen)

    def document() -> Mapping[str, object]:
        return {**told, "as": form, "witnesses": {one.anomaly: write(specification, [one]) for one in chosen}}

    def shown() -> None:
        if chosen:
            _print(form, specification, chosen)
        else:
            note(f"ackfsm {arguments.command}: {_why_none(answer, arguments.anomaly)}")

    hand_out_texts(arguments, lambda: {path: write(specification, few) for path, few in files.items()}, document, shown)


def _files(output: Path | None, form: Form, witnesses: Sequence[Witness]) -> dict[Path, Sequence[Witness]]:
    """What goes into which file: ``way.mmd``, or ``way-loss.mmd`` and others where a file holds one of several.

    A pipe or a device gets them all.
    """
    if output is None:
        return {}
    if len(witnesses) < 2 or form not in _ONE_A_FILE or leads_out(output):  # noqa: PLR2004 - several
        return {output: witnesses} if witnesses else {}
    stem, dot, ending = output.name.partition(".")
    return {output.with_name(f"{stem}-{one.anomaly}{dot}{ending}"): [one] for one in witnesses}


def _why_none(answer: Answer | Decision, name: str | None) -> str:
    """Why there is nothing to be shown."""
    if name is not None and name not in answer.findings:
        return f"{name} is counted on histories; no machine of the tables decides it"
    return _why_none_of_few(answer, name) if isinstance(answer, Answer) else _why_none_of_any(answer, name)


def _why_none_of_any(decision: Decision, name: str | None) -> str:
    every = [*decision.findings.values(), *decision.ends.values()]
    asked = [finding for finding in every if name in {None, finding.anomaly}]
    if long := next((finding for finding in asked if finding.filled is not None), None):
        steps = f"{len(long.steps):,} steps with {long.messages:,} messages"
        return f"the way to {long.anomaly} is of {steps}, too many to be shown; --json without --as has them"
    if undecided := next((finding for finding in asked if finding.reachable is None), None):
        return f"{undecided.anomaly} is undecided: {undecided.undecided}"
    return f"there is no way to {name or 'any anomaly'}, with any number of messages"


def _why_none_of_few(answer: Answer, name: str | None) -> str:
    from ackfsm.showing.views.check import limit_of

    states, anomaly = f"{answer.exploration.states:,} states", name or "any anomaly"
    if not answer.exploration.complete:
        return f"{anomaly} was not reached in {states}, where the search stopped; raise {limit_of(answer)}"
    return f"there is no way to {anomaly}: all {states} are explored"


def _print(form: Form, specification: Specification, witnesses: Sequence[Witness]) -> None:
    from ackfsm.showing.views.witness import witness_screen

    if form is not Form.STEPS:
        print_file(_writer(form)(specification, witnesses))
        return
    show_text(
        lambda: _writer(form)(specification, witnesses),
        lambda: [part for one in witnesses for part in (witness_screen(specification, one), "")],
    )


_Writer: TypeAlias = Callable[[Specification, Sequence[Witness]], str]


def _writer(form: Form) -> _Writer:
    from ackfsm.checking import export
    from ackfsm.showing import draw
    from ackfsm.showing.views.witness import witness_text

    def drawn(write: Callable[[draw.SequenceDiagram], str]) -> _Writer:
        return lambda tables, some: "\n".join(write(draw.witness_diagram(tables, one)) for one in some)

    writers: dict[Form, _Writer] = {
        Form.STEPS: lambda tables, some: witness_text(tables, some, piped_width()),
        Form.MERMAID: drawn(draw.sequence_mermaid),
        Form.PLANTUML: drawn(draw.sequence_plantuml),
        Form.SVG: lambda tables, some: draw.sequence_svg([draw.witness_diagram(tables, one) for one in some]),
        Form.PYTEST: export.pytest_file,
        Form.ITF: lambda _, some: "".join(map(export.itf, some)),
        Form.HISTORY: lambda tables, some: "".join(export.witness_history(tables, one) for one in some),
    }
    return writers[form]
