"""The command line: ``ackfsm check``, ``matrix``, ``claims``, ``verify``, ``draw``, ``systems``.

Exit codes: 0 as promised, 1 a violation, 2 the input is at fault (one sentence on standard
error), 3 undetermined.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.progress import MofNCompleteColumn, TaskID
from rich.progress import Progress as RichProgress
from rich.status import Status

import ackfsm
from ackfsm import explore, tables
from ackfsm.network import Bounds
from ackfsm.pages import write_folder
from ackfsm.terms import AckfsmError, Anomaly, Configuration, Fault, InputError, Profile, Verdict, parse_value

if TYPE_CHECKING:
    from ackfsm import draw, history

__all__ = ["main"]

AS_PROMISED, VIOLATION, USAGE, UNDETERMINED = 0, 1, 2, 3

_OPTIONAL = frozenset({"numba", "numpy", "pandas", "pyarrow", "pyspark"})
"""What an extra brings; any other module that is missing is a fault of the installation."""

_PATIENCE = 2.0
"""Seconds after which a person at a terminal is told that something is still going on."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except AckfsmError as error:
        print(f"ackfsm {arguments.command}: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if error.name not in _OPTIONAL:
            raise
        remedy = f"this needs the Python package {error.name}; install it with pip install 'ackfsm[{arguments.extra}]'"
        print(f"ackfsm {arguments.command}: {remedy}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"ackfsm {arguments.command}: interrupted", file=sys.stderr)
    return USAGE


_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - argparse names this type nowhere else


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ackfsm", description="The executable reference of message acknowledgement.")
    parser.add_argument("--version", action="version", version=f"ackfsm {ackfsm.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(commands)
    _add_claims(commands)
    _add_matrix(commands)
    _add_verify(commands)
    _add_draw(commands)
    _add_systems(commands)
    return parser


def _command(
    commands: _Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    words: tuple[str, str],
    extra: str,
) -> argparse.ArgumentParser:
    """A subcommand with the options that all have; ``words`` are its summary and an example of it."""
    summary, example = words
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run, extra=extra)
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def _add_configuration(command: argparse.ArgumentParser) -> None:
    profiles = ", ".join(profile.value for profile in Profile)
    command.add_argument("--profile", metavar="P", help=f"the system whose defaults apply: {profiles}")
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="one setting, by its key or by the system's own name of it; may be repeated",
    )


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    settings: dict[str, object] = {}
    for setting in arguments.settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting!r} is not KEY=VALUE, for example --set ack_mode=CLIENT_ACKNOWLEDGE")
        settings[key.strip()] = value.strip()
    return settings


def _console(*, errors: bool = False) -> Console:
    """Colours only on a terminal; when the output goes elsewhere, lines are not cut."""
    console = Console(stderr=errors, highlight=False)
    return console if console.is_terminal else Console(stderr=errors, highlight=False, width=160)


def _say(arguments: argparse.Namespace, machine: object, person: Callable[[], RenderableType]) -> None:
    if arguments.json:
        print(json.dumps(machine, indent=2))
    else:
        _console().print(person())


@contextlib.contextmanager
def _patience(what: str) -> Iterator[Callable[[int], None]]:
    """On a terminal, after two seconds, a line that says what goes on; the function given updates it."""
    console, begun = _console(errors=True), time.monotonic()
    status = Status(what, console=console)

    def update(done: int) -> None:
        if console.is_terminal and time.monotonic() - begun > _PATIENCE:
            status.update(f"{what}: {done:,}")
            status.start()

    try:
        yield update
    finally:
        status.stop()


@contextlib.contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    """On a terminal a bar for each part of the work, with the time that it will still take."""
    bars = RichProgress(
        *RichProgress.get_default_columns(), MofNCompleteColumn(), console=_console(errors=True), transient=True
    )
    bars.disable = not bars.console.is_terminal
    tasks: dict[str, TaskID] = {}

    def update(what: str, done: int, of: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=of)
        bars.update(tasks[what], completed=done, total=of)

    with bars:
        yield update


def _add_check(commands: _Commands) -> None:
    command = _command(
        commands,
        "check",
        _check,
        words=(
            "explore everything that a configuration can do when something fails",
            "ackfsm check --profile artemis --set ack_mode=PRE_ACKNOWLEDGE --fault broker_crash --max-faults 2",
        ),
        extra="explore",
    )
    _add_configuration(command)
    faults = ", ".join(fault.value for fault in Fault)
    command.add_argument(
        "--fault", metavar="F", action="append", dest="faults", help=f"what may fail (default: anything): {faults}"
    )
    command.add_argument(
        "--max-faults", metavar="K", type=_count, default=1, help="how many faults in all, or any (default: 1)"
    )
    command.add_argument(
        "--action",
        metavar="A",
        action="append",
        default=[],
        dest="actions",
        help="what else applications do: recover, rollback, taken_elsewhere",
    )
    command.add_argument(
        "--without",
        metavar="E",
        action="append",
        default=[],
        help="an event that never happens, for example acknowledge or timer_fires",
    )
    command.add_argument("--messages", metavar="N", type=_count, default=1, help="how many messages (default: 1)")
    command.add_argument("--max-states", metavar="N", type=_count, help="stop, undetermined, after so many states")


def _count(text: str) -> int | None:
    if text == "any":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _check(arguments: argparse.Namespace) -> int:
    specification = tables.load()
    configuration = specification.configure(None, specification.in_vocabulary(arguments.profile, _settings(arguments)))
    bounds = Bounds(
        messages=_at_least_one(arguments.messages, "--messages"),
        faults=frozenset(Fault) if arguments.faults is None else frozenset(map(_fault, arguments.faults)),
        max_faults=arguments.max_faults,
        actions=frozenset(arguments.actions),
        without=frozenset(arguments.without),
    )
    with _patience("states found") as progress:
        answer = explore.check(specification, configuration, bounds, max_states=arguments.max_states, progress=progress)
    from ackfsm.report.check import check_screen

    _say(arguments, answer.as_json(), lambda: check_screen(answer))
    if answer.violations:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED


def _at_least_one(number: int | None, option: str) -> int:
    if not number:
        raise InputError(f"{option} is a whole number from 1")
    return number


def _fault(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        faults = ", ".join(fault.value for fault in Fault)
        raise InputError(f"there is no fault {name!r}; the faults are {faults}") from None


def _add_claims(commands: _Commands) -> None:
    command = _command(
        commands,
        "claims",
        _claims,
        words=(
            "prove or refute every sentence of the vendors' documents on the tables, with evidence",
            "ackfsm claims --id C31 --id C32",
        ),
        extra="explore",
    )
    command.add_argument(
        "--id", metavar="C", action="append", default=[], dest="ids", help="one claim; may be repeated"
    )
    command.add_argument("--jobs", metavar="N", type=_count, help="how many processes (default: one a processor)")
    command.add_argument(
        "--max-states", metavar="N", type=_count, help="a search gives up, undetermined, after so many"
    )


def _claims(arguments: argparse.Namespace) -> int:
    from ackfsm import claims
    from ackfsm.report.claims import claims_screen

    if arguments.jobs == 0:
        raise InputError("--jobs is a whole number from 1")
    specification = tables.load()
    chosen = claims.choose(claims.read(specification), arguments.ids)
    with _bars() as progress:
        decided = claims.decide(
            specification,
            chosen,
            jobs=arguments.jobs or os.cpu_count() or 1,
            max_states=arguments.max_states or claims.MAX_STATES,
            progress=lambda done, of: progress("questions", done, of),
        )
    _say(arguments, [one.as_json() for one in decided], lambda: claims_screen(decided))
    found = {one.status for one in decided}
    if claims.Status.REFUTED in found:
        return VIOLATION
    return UNDETERMINED if claims.Status.UNKNOWN in found else AS_PROMISED


def _add_matrix(commands: _Commands) -> None:
    command = _command(
        commands,
        "matrix",
        _matrix,
        words=(
            "check all modes and switches of a system under every fault and pair of faults",
            "ackfsm matrix --profile artemis --set delivery_mode=PERSISTENT --output guarantees",
        ),
        extra="verify",
    )
    _add_configuration(command)
    command.add_argument("--messages", metavar="N", type=_count, default=1, help="how many messages (default: 1)")
    command.add_argument(
        "--pairs", action=argparse.BooleanOptionalAction, default=True, help="two faults as well (default: yes)"
    )
    command.add_argument("--jobs", metavar="N", type=_count, help="processes (default: one for each processor)")
    command.add_argument(
        "--output", metavar="DIR", type=Path, help="write matrix.parquet and matrix.html into this folder"
    )
    command.add_argument(
        "--max-states", metavar="N", type=_count, help="stop each search, undetermined, after so many states"
    )


def _matrix(arguments: argparse.Namespace) -> int:
    from ackfsm import matrix

    specification, settings = tables.load(), _settings(arguments)
    plan = matrix.make_plan(
        specification,
        arguments.profile,
        settings,
        messages=_at_least_one(arguments.messages, "--messages"),
        pairs=arguments.pairs,
        max_states=arguments.max_states,
    )
    if arguments.output is not None:
        matrix.make_folder(arguments.output)
    jobs = os.cpu_count() if arguments.jobs is None else arguments.jobs
    with _bars() as progress:
        found = matrix.run(plan, specification, jobs=jobs or 1, progress=progress)
    summary = matrix.summarise(found)
    written = [] if arguments.output is None else [str(file) for file in matrix.write(found, summary, arguments.output)]
    answer = {**matrix.matrix_json(found, summary), "written": written}
    _say(
        arguments, answer, lambda: Group(matrix.matrix_screen(found, summary), *(f"{file} written" for file in written))
    )
    if found.broken:
        return VIOLATION
    return AS_PROMISED if found.complete else UNDETERMINED


def _add_verify(commands: _Commands) -> None:
    command = _command(
        commands,
        "verify",
        _verify,
        words=(
            "count what went wrong in recorded histories, and say whether it was allowed",
            "ackfsm verify --engine spark --master 'local[2]' last-night.jsonl.gz",
        ),
        extra="all",
    )
    _add_configuration(command)
    command.add_argument(
        "histories", metavar="HISTORY", nargs="+", help="JSONL, .jsonl.gz, Parquet, or a folder of parts"
    )
    command.add_argument("--engine", choices=["local", "spark"], default="local", help="one process, or Spark")
    command.add_argument(
        "--master", metavar="URL", help="Spark's master, or sc://HOST for Spark Connect (default: local[*])"
    )


def _verify(arguments: argparse.Namespace) -> int:
    from ackfsm.report.verify import verify_screen

    if arguments.master is not None and arguments.engine != "spark":
        raise InputError("--master is for --engine spark; add it, or leave --master out")
    specification = tables.load()
    with _engine(arguments, specification) as examine:
        results = [_judged(arguments, specification, path, examine) for path in arguments.histories]
    answer = [result.as_json() for result in results]
    screens = [verify_screen(result, specification) for result in results]
    _say(arguments, answer[0] if len(answer) == 1 else answer, lambda: Group(*screens))
    verdicts = {result.verdict for result in results}
    if Verdict.INVALID in verdicts:
        return VIOLATION
    return UNDETERMINED if Verdict.UNKNOWN in verdicts else AS_PROMISED


_Examine: TypeAlias = "Callable[[str, Configuration | None], history.Findings]"


@contextlib.contextmanager
def _engine(arguments: argparse.Namespace, specification: tables.Specification) -> Iterator[_Examine]:
    """What examines one history: this process, or a Spark session that lives as long as the command."""
    if arguments.engine == "local":
        from ackfsm import history

        yield lambda path, configuration: history.examine(history.read(path), specification, configuration)
        return
    from ackfsm import spark

    session = spark.session(arguments.master)
    try:
        yield lambda path, configuration: spark.examine(path, specification, configuration, session)
    finally:
        session.stop()


def _judged(
    arguments: argparse.Namespace, specification: tables.Specification, path: str, examine: _Examine
) -> history.Result:
    from ackfsm import history

    configuration = _configuration(specification, arguments, history.read_header(path))
    with _patience("reading"):
        findings = examine(path, configuration)
    allowed: dict[Anomaly, bool | None] = {}
    why: dict[Anomaly, str | None] = {}
    if configuration is not None:
        with _patience("states found") as progress:
            allowed = explore.allowed(
                specification,
                configuration,
                findings.faults,
                actions=findings.actions,
                found=[anomaly for anomaly, finding in findings.anomalies.items() if finding.found],
                progress=progress,
            )
            why = {anomaly: explore.why_undecided(specification, configuration, anomaly) for anomaly in Anomaly}
    return history.judge(findings, allowed, why, specification.guarantees)


def _configuration(
    specification: tables.Specification, arguments: argparse.Namespace, header: history.Header | None
) -> Configuration | None:
    """The configuration of a history: its header's, with ``--profile`` and ``--set`` over it; ``None`` without any."""
    recorded, given = (header and header.config) or {}, _settings(arguments)
    if not recorded and not given and arguments.profile is None:
        return None
    profile = arguments.profile or {**recorded, **given}.get("profile")
    over = specification.in_vocabulary(profile, given)
    return specification.configure(None, specification.in_vocabulary(profile, recorded) | over)


def _add_draw(commands: _Commands) -> None:
    command = _command(
        commands,
        "draw",
        _draw,
        words=(
            "draw a machine, a property, or (without a name) the whole system",
            "ackfsm draw delivery --output delivery.svg",
        ),
        extra="draw",
    )
    _add_configuration(command)
    command.add_argument(
        "machine", metavar="MACHINE", nargs="?", help="a machine or an anomaly (default: the whole system)"
    )
    forms = "dot, svg, png, mermaid, plantuml, table"
    command.add_argument("--format", metavar="F", help=f"{forms} (default: what --output ends with, else table)")
    command.add_argument(
        "--output", metavar="PATH", type=Path, help="write there, a folder with --all (default: print)"
    )
    command.add_argument("--all", action="store_true", help="write every drawing and table into the folder --output")


def _draw(arguments: argparse.Namespace) -> int:
    from ackfsm import draw

    specification = tables.load()
    asked = arguments.profile is not None or bool(arguments.settings)
    configuration = specification.configure(arguments.profile, _settings(arguments)) if asked else None
    if arguments.all:
        if arguments.machine or arguments.format or arguments.output is None:
            raise InputError("--all needs --output FOLDER and takes neither MACHINE nor --format")
        with _patience("drawing"):
            written = [str(path) for path in draw.write_all(specification, arguments.output, configuration)]
        _say(arguments, {"written": written}, lambda: f"{len(written)} files written to {arguments.output}")
        return AS_PROMISED
    form = _format(arguments.format, arguments.output)
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
        raise InputError(f"{name or output} names no format; --format is one of {forms}") from None


def _hand_out(arguments: argparse.Namespace, form: draw.Format, drawing: str | bytes) -> None:
    """Write ``drawing`` where it is wanted; a picture of bytes is not thrown at a terminal."""
    data = drawing if isinstance(drawing, bytes) else drawing.encode()
    if arguments.output is not None:
        try:
            arguments.output.write_bytes(data)
        except OSError as error:
            raise InputError(f"{arguments.output}: cannot be written ({error.strerror}); name another file") from None
    elif isinstance(drawing, bytes) and (arguments.json or sys.stdout.isatty()):
        raise InputError(f"a {form} is not text; add --output FILE.{form}")
    if arguments.json:
        text = None if isinstance(drawing, bytes) else drawing
        print(json.dumps({"machine": arguments.machine, "format": form, "drawing": text}, indent=2))
    elif arguments.output is None:
        sys.stdout.buffer.write(data)


def _add_systems(commands: _Commands) -> None:
    command = _command(
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
    command.add_argument("profile", metavar="PROFILE", nargs="?", help=f"one of {profiles} (default: all of them)")
    command.add_argument("--output", metavar="DIR", type=Path, help="write a page for each system there")
    command.add_argument("--jobs", metavar="N", type=_count, help="processes that search (default: one for each CPU)")


def _systems(arguments: argparse.Namespace) -> int:
    from ackfsm.report import systems

    if arguments.profile is not None and arguments.output is not None:
        raise InputError("--output is for the pages of all systems; leave PROFILE out, or leave --output out")
    specification = tables.load()
    if arguments.profile is None and arguments.output is None:
        _show(arguments, systems.systems_json(specification), systems.systems_page(specification))
        return AS_PROMISED
    profiles = list(Profile) if arguments.profile is None else [_profile(arguments.profile)]
    jobs = (os.cpu_count() or 1) if arguments.jobs is None else _at_least_one(arguments.jobs, "--jobs")
    with _patience("searches done") as progress:
        surveyed = systems.survey(specification, profiles, jobs=jobs, progress=progress)
    if arguments.output is not None:
        pages = write_folder(arguments.output, systems.system_pages(specification, surveyed), systems.MADE)
        written = [str(path) for path in pages]
        _say(arguments, {"written": written}, lambda: f"{len(written)} files written to {arguments.output}")
    for profile in [] if arguments.output is not None else profiles:
        answer = systems.system_json(specification, profile, surveyed[profile])
        _show(arguments, answer, systems.system_page(specification, profile, surveyed[profile]))
    return VIOLATION if any(mode.broken for modes in surveyed.values() for mode in modes) else AS_PROMISED


def _profile(name: str) -> Profile:
    return Profile(str(parse_value("profile", name)))


def _show(arguments: argparse.Namespace, machine: object, page: str) -> None:
    """JSON, or a page of Markdown: set on a terminal, as it stands elsewhere."""
    if arguments.json or _console().is_terminal:
        _say(arguments, machine, lambda: Markdown(page))
    else:
        print(page, end="")


if __name__ == "__main__":
    sys.exit(main())
