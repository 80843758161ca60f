"""``ackfsm systems``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ackfsm.cli._exit_codes import AS_PROMISED, result_code
from ackfsm.cli._options import MARKDOWN, PROFILES, Command, Option, at_least, tables_of
from ackfsm.cli._output import emit, emit_folder, print_file, progress_bars
from ackfsm.support.files import make_folder, write_folder
from ackfsm.terms import InputError, Profile


def _systems(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views import systems
    from ackfsm.surveys import matrix

    if arguments.profile is not None and arguments.output is not None:
        raise InputError("--output is for the pages of all systems; leave PROFILE out, or leave --output out")
    specification = tables_of(arguments)
    if arguments.profile is None and arguments.output is None:
        _show(arguments, systems.systems_json, systems.systems_page, specification)
        return AS_PROMISED
    profiles: list[str] = list(Profile) if arguments.profile is None else [specification.profile_of(arguments.profile)]
    jobs = arguments.jobs or min(os.cpu_count() or 1, len(profiles))
    if arguments.output is not None:
        make_folder(arguments.output)
    with progress_bars() as progress_bar:
        modes = matrix.mode_sweep(specification, profiles, jobs=jobs, progress_bar=progress_bar)
    if arguments.output is not None:
        emit_folder(arguments, write_folder(arguments.output, systems.system_pages(specification, modes), systems.MADE))
    for profile in [] if arguments.output is not None else profiles:
        _show(arguments, systems.system_json, systems.system_page, specification, profile, modes[profile])
    return result_code(violated=any(mode.broken for some in modes.values() for mode in some))


def _show(
    arguments: argparse.Namespace, document: Callable[..., object], page: Callable[..., str], *told: object
) -> None:
    """JSON, a screen, or the page as it is written into a file, of what is ``told``."""
    if arguments.form is not None and not arguments.json:
        print_file(page(*told))
        return
    from ackfsm.showing.views.page import page_screen

    emit(arguments, document(*told) if arguments.json else None, lambda: page_screen(page(*told)))


COMMAND: Final = Command(
    "systems",
    _systems,
    "tell what a system has, refuses and promises, and what each fault can cause in it",
    "ackfsm systems artemis",
    "explore",
    (
        Option(
            "PROFILE",
            f"one of {PROFILES}, or a YAML file that describes another one (default: all of them)",
            dest="profile",
            nargs="?",
        ),
        Option("--output DIR", "write a page for each system there", Path),
        MARKDOWN,
        Option("--jobs N", "how many processors take part (default: all, but one for one system)", at_least(1)),
    ),
)
