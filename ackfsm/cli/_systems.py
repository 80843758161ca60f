"""``ackfsm systems``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.text import Text

from ackfsm.cli._codes import AS_PROMISED, VIOLATION
from ackfsm.cli._common import Commands, at_least, command, console, patience, say, tables_of
from ackfsm.cli._output import hand_out
from ackfsm.files import make_folder
from ackfsm.pages import write_folder
from ackfsm.terms import InputError, Profile
from ackfsm.text import shown

__all__ = ["add_systems"]


def add_systems(commands: Commands) -> None:
    parser = command(
        commands,
        "systems",
        _systems,
        words=(
            "tell what a system has, refuses and promises, and what each fault can cause in it",
            "ackfsm systems artemis",
        ),
        extra="explore",
    )
    profiles = ", ".join(profile.value for profile in Profile)
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        nargs="?",
        help=f"one of {profiles}, or a YAML file that describes another one (default: all of them)",
    )
    parser.add_argument("--output", metavar="DIR", type=Path, help="write a page for each system there")
    parser.add_argument(
        "--jobs", metavar="N", type=at_least(1), help="processes that search (default: one for each CPU)"
    )


def _systems(arguments: argparse.Namespace) -> int:
    from ackfsm.report import systems

    if arguments.profile is not None and arguments.output is not None:
        raise InputError("--output is for the pages of all systems; leave PROFILE out, or leave --output out")
    specification = tables_of(arguments)
    if arguments.profile is None and arguments.output is None:
        _show(arguments, systems.systems_json(specification), systems.systems_page(specification))
        return AS_PROMISED
    profiles = list(Profile) if arguments.profile is None else [specification.profile_of(arguments.profile)]
    jobs = arguments.jobs or os.cpu_count() or 1
    if arguments.output is not None:
        make_folder(arguments.output)
    with patience("searches done") as progress:
        surveyed = systems.survey(specification, profiles, jobs=jobs, progress=progress)
    if arguments.output is not None:
        pages = write_folder(arguments.output, systems.system_pages(specification, surveyed), systems.MADE)
        written = [str(path) for path in pages]
        say(
            arguments,
            {"written": written},
            lambda: Text(f"{len(written)} files written to {shown(str(arguments.output))}"),
        )
    for profile in [] if arguments.output is not None else profiles:
        answer = systems.system_json(specification, profile, surveyed[profile])
        _show(arguments, answer, systems.system_page(specification, profile, surveyed[profile]))
    return VIOLATION if any(mode.broken for modes in surveyed.values() for mode in modes) else AS_PROMISED


def _show(arguments: argparse.Namespace, machine: object, page: str) -> None:
    """JSON, or a page of Markdown: set on a terminal, as it stands elsewhere."""
    if arguments.json or console().is_terminal:
        from rich.markdown import Markdown

        say(arguments, machine, lambda: Markdown(page))
    else:
        hand_out(page)
