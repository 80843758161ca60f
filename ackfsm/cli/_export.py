"""``ackfsm export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ackfsm.checking import export
from ackfsm.checking.export import Format
from ackfsm.checking.network import compose
from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import CONFIGURATION, FORMAT, Command, Option, bound_options, format_of, query_from
from ackfsm.cli._output import output_file, print_file, print_json, progress_line
from ackfsm.support.files import check_place, write_files
from ackfsm.terms import InputError

_ENDINGS = {".pml": Format.PROMELA, ".tla": Format.TLA, ".json": Format.JSON, ".scxml": Format.SCXML}


def _export(arguments: argparse.Namespace) -> int:
    output = output_file(arguments)
    form = format_of("--as", arguments.form, output, _ENDINGS, Format.PROMELA)
    if output is not None:
        check_place(output)
    path = Path("System") if output is None else output
    with progress_line("exporting"):
        network = compose(*query_from(arguments))
        first, *beside = export.files(network, form, path.stem).items()
    if beside and output is not None and output.suffix != first[0]:
        raise InputError(f"a TLA+ module is in a file of its own name; write --output {output.with_suffix(first[0])}")
    texts = {output or path.with_suffix(first[0]): first[1]} | {path.with_suffix(end): text for end, text in beside}
    if output is not None:
        write_files({file: text.encode() for file, text in texts.items()})
    if arguments.json:
        there = {} if output is None else {"written": [str(file) for file in texts]}
        print_json({"format": form, "files": {file.name: text for file, text in texts.items()}, **there})
    elif output is None:
        print_file(first[1])
    return AS_PROMISED


COMMAND: Final = Command(
    "export",
    _export,
    "write the system that check explores as a model for another tool",
    "ackfsm export --profile artemis --as promela --output artemis.pml",
    "explore",
    (
        *CONFIGURATION,
        *bound_options(),
        Option("--as FORM", f"{', '.join(Format)} (default: what --output ends with, else promela)", dest="form"),
        FORMAT,
        Option("--output FILE", "write there, TLA+ with its .cfg (default: print)", Path),
    ),
)
