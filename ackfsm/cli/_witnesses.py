"""Witnesses on request: which of them, written as what, and where to; the same for every command that explores."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from ackfsm import explore
from ackfsm.cli._codes import AS_PROMISED, UNDETERMINED, VIOLATION
from ackfsm.cli._common import (
    add_bounds,
    add_configuration,
    asked,
    at_least,
    console,
    patience,
    size,
    written_first,
    written_lines,
)
from ackfsm.cli._engine import add_search, search_of
from ackfsm.cli._output import hand_out, is_standard_output, note, put, put_json, writing
from ackfsm.explore import Answer, Witness
from ackfsm.files import check_place, leads_out, write_files
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, InputError
from ackfsm.text import quoted, shown

__all__ = ["Form", "add_exploration", "exit_code", "explored", "form_of", "show"]


class Form(StrEnum):
    """What a witness is written as."""

    STEPS = "steps"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"
    SVG = "svg"
    PYTEST = "pytest"
    ITF = "itf"


_ENDINGS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        ".txt": Form.STEPS,
        ".mmd": Form.MERMAID,
        ".puml": Form.PLANTUML,
        ".svg": Form.SVG,
        ".py": Form.PYTEST,
        ".json": Form.ITF,
    }
)

_NONE: Final = "none"
"""In place of a reduction: spare nothing."""

_ONE_A_FILE: Final = frozenset({Form.MERMAID, Form.ITF})
"""A file of these holds one witness; one of the others as many as there are."""


def add_exploration(parser: argparse.ArgumentParser) -> None:
    """What to explore, and what to show of it."""
    add_configuration(parser)
    add_bounds(parser)
    add_search(parser)
    parser.add_argument(
        "--max-states", metavar="N", type=at_least(1, or_any=True), help="stop, undetermined, after so many states"
    )
    parser.add_argument(
        "--max-memory", metavar="M", type=size, help="stop, undetermined, before the states take more: 512MiB, 8GiB"
    )
    parser.add_argument(
        "--reduce",
        metavar="R",
        dest="reductions",
        action="append",
        default=[],
        choices=[_NONE, *(reduction.value for reduction in explore.Reduction)],
        help=f"{', '.join(explore.Reduction)}: the same verdicts from fewer states, witnesses perhaps longer; "
        f"{_NONE}: also take the steps that are otherwise only counted, as other orders of the same events lead there",
    )
    parser.add_argument("--workers", metavar="N", type=at_least(1), help="processors to use (default: all)")
    parser.add_argument(
        "--progress", action="store_true", help="tell also what happens in the end, or what may go on for ever instead"
    )
    parser.add_argument(
        "--forever",
        metavar="E",
        action="append",
        default=[],
        help="--progress where this fault or action may happen without end, for example listener_exception",
    )
    parser.add_argument(
        "--as",
        metavar="F",
        dest="form",
        help=f"show the witnesses as {', '.join(Form)} (default: what --output ends with, else steps)",
    )
    parser.add_argument("--anomaly", metavar="A", help="only the witness of this anomaly")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the witnesses there (default: print)")


def explored(arguments: argparse.Namespace) -> tuple[Specification, Answer, tuple[Witness, ...]]:
    """The tables, what the search found, and its witnesses, each performed before anything is said of it."""
    specification, configuration, bounds = asked(arguments)
    every_step = _NONE in arguments.reductions
    if every_step and set(arguments.reductions) != {_NONE}:
        raise InputError(f"--reduce {_NONE} reduces nothing; leave it out, or the other --reduce")
    with search_of(arguments) as search, patience("states found") as progress:
        answer = explore.check(
            specification,
            configuration,
            bounds,
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            workers=arguments.workers,
            progress=progress,
            search=search,
            reductions=[explore.Reduction(name) for name in arguments.reductions if name != _NONE],
            every_step=every_step,
            forever=arguments.forever if arguments.progress or arguments.forever else None,
        )
    return specification, answer, answer.witnesses()


def exit_code(answer: Answer) -> int:
    """What the answer is, to the shell."""
    if not answer.keeps_promises:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED


def form_of(arguments: argparse.Namespace) -> Form | None:
    """What witnesses are asked for as; ``None`` if nobody asks.  Raises :class:`InputError` for what is none."""
    if arguments.anomaly is not None:
        _anomaly(arguments.anomaly)
    if arguments.form is not None:
        form = next((form for form in Form if form == arguments.form), None)
    elif arguments.output is not None:
        form = Form.STEPS if is_standard_output(arguments.output) else _ENDINGS.get(arguments.output.suffix)
    else:
        return None if arguments.anomaly is None else Form.STEPS
    if form is None:
        named = shown(str(arguments.form or arguments.output))
        raise InputError(f"{named} names no format; --as is one of {', '.join(Form)}")
    if (output := _output(arguments)) is not None:
        check_place(output)
    return form


def _output(arguments: argparse.Namespace) -> Path | None:
    """The file to write, if it is another than standard output."""
    output: Path | None = arguments.output
    return None if output is None or is_standard_output(output) else output


def _anomaly(name: str) -> Anomaly:
    try:
        return Anomaly(name)
    except ValueError:
        raise InputError(f"there is no anomaly {quoted(name)}; the anomalies are {', '.join(Anomaly)}") from None


def show(
    arguments: argparse.Namespace,
    form: Form,
    specification: Specification,
    answer: Answer,
    witnesses: Sequence[Witness],
) -> None:
    """Write the witnesses that are asked for where they are wanted, tell where, and say so if there is none."""
    wanted = [one for one in witnesses if arguments.anomaly in {None, one.anomaly}]
    write, output = _writer(form), _output(arguments)

    def files() -> Sequence[Path]:
        some = {} if output is None else _files(output, form, wanted)
        write_files({path: write(specification, few).encode() for path, few in some.items()})
        return tuple(some)

    def tell(written: Sequence[Path]) -> None:
        if arguments.json:
            texts = {one.anomaly: write(specification, [one]) for one in wanted}
            told = {"as": form, "witnesses": texts, "written": [str(path) for path in written]}
            put_json({**answer.as_json(), **told})
        elif not wanted:
            note(f"ackfsm {arguments.command}: {_none(answer, arguments.anomaly)}")
        elif not written:
            _print(form, specification, wanted)
        elif not any(map(leads_out, written)):
            put("".join(f"{line.plain}\n" for line in written_lines(written)))

    written_first(files, tell)


def _files(output: Path, form: Form, witnesses: Sequence[Witness]) -> dict[Path, Sequence[Witness]]:
    """What goes into which file: ``way.mmd``, or ``way-loss.mmd`` and others where a file holds one of several.

    A pipe or a device gets them all.
    """
    if len(witnesses) < 2 or form not in _ONE_A_FILE or leads_out(output):  # noqa: PLR2004 - several
        return {output: witnesses} if witnesses else {}
    stem, dot, ending = output.name.partition(".")
    return {output.with_name(f"{stem}-{one.anomaly}{dot}{ending}"): [one] for one in witnesses}


def _none(answer: Answer, name: str | None) -> str:
    """Why there is nothing to be shown."""
    from ackfsm.report.check import limit_of

    states, told = f"{answer.exploration.states:,} states", name or "any anomaly"
    if name is not None and name not in answer.findings:
        return f"{name} is counted on histories; no machine of the tables decides it"
    if not answer.exploration.complete:
        return f"{told} was not reached in {states}, where the search stopped; raise {limit_of(answer)}"
    return f"there is no way to {told}: all {states} are explored"


def _print(form: Form, specification: Specification, witnesses: Sequence[Witness]) -> None:
    if form is not Form.STEPS or not (screen := console()).is_terminal:
        text = _writer(form)(specification, witnesses)
        (put if form is Form.STEPS else hand_out)(text)
        return
    from ackfsm.report.witness import witness_screen

    for witness in witnesses:
        told = witness_screen(specification, witness)
        with writing():
            screen.print(told, "", sep="\n")


_Writer: TypeAlias = Callable[[Specification, Sequence[Witness]], str]


def _writer(form: Form) -> _Writer:
    from ackfsm import draw, export
    from ackfsm.report.witness import witness_text

    def drawn(write: Callable[[draw.SequenceDiagram], str]) -> _Writer:
        return lambda tables, some: "\n".join(write(draw.witness_diagram(tables, one)) for one in some)

    writers: dict[Form, _Writer] = {
        Form.STEPS: witness_text,
        Form.MERMAID: drawn(draw.sequence_mermaid),
        Form.PLANTUML: drawn(draw.sequence_plantuml),
        Form.SVG: lambda tables, some: draw.sequence_svg([draw.witness_diagram(tables, one) for one in some]),
        Form.PYTEST: export.pytest_file,
        Form.ITF: lambda _, some: "".join(map(export.itf, some)),
    }
    return writers[form]
