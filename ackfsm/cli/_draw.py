"""``ackfsm draw``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ackfsm.cli._codes import AS_PROMISED
from ackfsm.cli._common import Commands, add_configuration, command, patience, say, settings_of, tables_of
from ackfsm.cli._output import hand_out, is_standard_output, put_json
from ackfsm.files import check_place, make_folder, write_file
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm import draw

__all__ = ["add_draw"]


def add_draw(commands: Commands) -> None:
    parser = command(
        commands,
        "draw",
        _draw,
        words=(
            "draw a machine, a property, or (without a name) the whole system",
            "ackfsm draw delivery --output delivery.svg",
        ),
        extra="draw",
    )
    add_configuration(parser)
    parser.add_argument(
        "machine", metavar="MACHINE", nargs="?", help="a machine or an anomaly (default: the whole system)"
    )
    forms = "dot, svg, png, mermaid, plantuml, table"
    parser.add_argument("--format", metavar="F", help=f"{forms} (default: what --output ends with, else table)")
    parser.add_argument("--output", metavar="PATH", type=Path, help="write there, a folder with --all (default: print)")
    parser.add_argument("--all", action="store_true", help="write every drawing and table into the folder --output")


def _draw(arguments: argparse.Namespace) -> int:
    from ackfsm import draw

    specification = tables_of(arguments)
    asked = arguments.profile is not None or bool(arguments.settings)
    configuration = specification.configure(arguments.profile, settings_of(arguments)) if asked else None
    if arguments.all:
        if arguments.machine or arguments.format or arguments.output is None:
            raise InputError("--all needs --output FOLDER and takes neither MACHINE nor --format")
        make_folder(arguments.output)
        with patience("drawing"):
            written = [str(path) for path in draw.write_all(specification, arguments.output, configuration)]
        say(
            arguments,
            {"written": written},
            lambda: Text(f"{len(written)} files written to {shown(str(arguments.output))}"),
        )
        return AS_PROMISED
    if arguments.output is not None and is_standard_output(arguments.output):
        arguments.output = None
    form = _format(arguments.format, arguments.output)
    if arguments.output is not None:
        check_place(arguments.output)
    if arguments.machine is None:
        drawing = draw.overview(specification, form, configuration)
    else:
        drawing = draw.draw(specification, arguments.machine, form, configuration)
    _hand_out(arguments, form, drawing)
    return AS_PROMISED


def _format(name: str | None, output: Path | None) -> draw.Format:
    from ackfsm.draw import Format

    endings = {".md": Format.TABLE, ".mmd": Format.MERMAID, ".puml": Format.PLANTUML, ".gv": Format.DOT}
    endings |= {f".{form}": form for form in Format}
    try:
        return Format(name) if name is not None else endings[output.suffix] if output is not None else Format.TABLE
    except (ValueError, KeyError):
        forms = ", ".join(form.value for form in Format)
        raise InputError(f"{shown(str(name or output))} names no format; --format is one of {forms}") from None


def _hand_out(arguments: argparse.Namespace, form: draw.Format, drawing: str | bytes) -> None:
    """Write ``drawing`` where it is wanted; a picture of bytes is not thrown at a terminal."""
    if arguments.output is not None:
        write_file(arguments.output, drawing if isinstance(drawing, bytes) else drawing.encode())
    elif isinstance(drawing, bytes) and (arguments.json or sys.stdout.isatty()):
        raise InputError(f"a {form} is not text; add --output FILE.{form}")
    if arguments.json:
        text = None if isinstance(drawing, bytes) else drawing
        put_json({"machine": arguments.machine, "format": form, "drawing": text})
    elif arguments.output is None:
        hand_out(drawing)
