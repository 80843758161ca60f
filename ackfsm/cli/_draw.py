"""``ackfsm draw``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import CONFIGURATION, FORMAT, Command, Option, format_of, settings_of, tables_of
from ackfsm.cli._output import emit, emit_folder, output_file, print_file, print_json, progress_line
from ackfsm.support.files import check_place, make_folder, write_file
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from ackfsm.showing import draw


def _draw(arguments: argparse.Namespace) -> int:
    from ackfsm.showing import draw

    specification = tables_of(arguments)
    configured = arguments.profile is not None or arguments.api is not None or bool(arguments.settings)
    configured = configured or arguments.url is not None
    settings = settings_of(arguments, specification)
    configuration = specification.configure(arguments.profile, settings, api=arguments.api) if configured else None
    if arguments.all:
        if arguments.machine or arguments.form or arguments.output is None:
            raise InputError("--all needs --output FOLDER and takes neither MACHINE nor --as")
        make_folder(arguments.output)
        with progress_line("drawing"):
            written = draw.write_all(specification, arguments.output, configuration)
        emit_folder(arguments, written)
        return AS_PROMISED
    as_screen = arguments.form is None and arguments.output is None and not arguments.json
    arguments.output = output_file(arguments)
    endings = {".md": draw.Format.TABLE, ".mmd": draw.Format.MERMAID, ".puml": draw.Format.PLANTUML}
    endings |= {".gv": draw.Format.DOT, **{f".{form}": form for form in draw.Format}}
    form = format_of("--as", arguments.form, arguments.output, endings, draw.Format.TABLE)
    if arguments.output is not None:
        check_place(arguments.output)
    with progress_line("drawing"):
        if arguments.machine is None:
            drawing = draw.overview(specification, form, configuration)
        else:
            drawing = draw.draw(specification, arguments.machine, form, configuration)
    if as_screen:
        from ackfsm.showing.views.page import page_screen

        emit(arguments, None, lambda: page_screen(str(drawing)))
    else:
        _write_or_print(arguments, form, drawing)
    return AS_PROMISED


def _write_or_print(arguments: argparse.Namespace, form: draw.Format, drawing: str | bytes) -> None:
    """Write ``drawing`` to ``--output`` or print it.  Raises :class:`InputError` for bytes on a terminal."""
    if arguments.output is not None:
        write_file(arguments.output, drawing if isinstance(drawing, bytes) else drawing.encode())
    elif isinstance(drawing, bytes) and (arguments.json or sys.stdout.isatty()):
        raise InputError(f"a {form} is not text; add --output FILE.{form}")
    if arguments.json:
        text = None if isinstance(drawing, bytes) else drawing
        there = {} if arguments.output is None else {"written": [str(arguments.output)]}
        print_json({"machine": arguments.machine, "format": form, "drawing": text, **there})
    elif arguments.output is None:
        print_file(drawing)


COMMAND: Final = Command(
    "draw",
    _draw,
    "draw a machine, a property, or (without a name) the whole system",
    "ackfsm draw delivery --output delivery.svg",
    "draw",
    (
        *CONFIGURATION,
        Option("MACHINE", "a machine or an anomaly (default: the whole system)", dest="machine", nargs="?"),
        Option(
            "--as FORM",
            "dot, svg, png, mermaid, plantuml, table (Markdown) (default: what --output ends with, else the table as a "
            "screen)",
            dest="form",
        ),
        FORMAT,
        Option("--output PATH", "write there, a folder with --all (default: print)", Path),
        Option("--all", "write every drawing and table into the folder --output"),
    ),
)
