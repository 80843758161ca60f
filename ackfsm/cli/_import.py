"""``ackfsm import``, and ``--format`` of the commands that read histories."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ackfsm.cli._exit_codes import AS_PROMISED, result_code
from ackfsm.cli._options import CONFIGURATION, Command, Option, at_least, settings_of, tables_of
from ackfsm.cli._output import emit, hand_out, is_standard_output, progress_line
from ackfsm.history.importing import FORMATS, Importer, Options, format_named
from ackfsm.support.files import check_place
from ackfsm.tables import Specification
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm.history.importing.write import Imported

_FOREIGN_STANDARD_INPUT: Final = "-"


class _Alone(argparse.Action):
    """An option that is given instead of the arguments, which are needed otherwise."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del option_string
        setattr(namespace, self.dest, values)
        for each in parser._actions:  # noqa: SLF001 - argparse has no public way
            each.required = False


def _import(arguments: argparse.Namespace) -> int:
    if arguments.guess is not None:
        return _guess(arguments)
    importer = _importer(arguments)
    if arguments.output is None or is_standard_output(arguments.output):
        raise InputError("name the file that the history goes to: -o history.parquet")
    from ackfsm.history.importing.write import form_of, import_history
    from ackfsm.showing.views.imported import imported_json, imported_screen

    form_of(arguments.output)
    check_place(arguments.output)
    specification = tables_of(arguments)
    header = _header(arguments, specification, importer, arguments.inputs)
    with progress_line("events imported") as progress:
        found = import_history(importer, list(map(Path, arguments.inputs)), arguments.output, header, progress)
    following = ["ackfsm", "verify", *([] if "config" in header else ["--profile", "PROFILE"]), str(arguments.output)]
    emit(
        arguments,
        imported_json(found, arguments.output, arguments.format, following),
        lambda: imported_screen(found, arguments.output, following),
    )
    return _code(found)


def _code(found: Imported) -> int:
    return result_code(violated=False, undetermined=bool(found.unread))


def _guess(arguments: argparse.Namespace) -> int:
    for name, value in (("FORMAT", arguments.format), ("--mapping", arguments.mapping)):
        if value is not None:
            raise InputError(f"--guess proposes a mapping for one file, and needs nothing else; leave {name} out")
    from ackfsm.history.importing.guess import guess

    if arguments.output is not None and not is_standard_output(arguments.output):
        check_place(arguments.output)
    guessed = guess(arguments.guess)
    not_found = {"not_found": list(guessed.not_found)}
    hand_out(arguments, guessed.text, {"mapping": guessed.text, **not_found}, beside=not_found)
    return result_code(violated=False, undetermined=True) if guessed.not_found else AS_PROMISED


def _importer(arguments: argparse.Namespace) -> Importer:
    options = Options(mapping=arguments.mapping, jobs=arguments.jobs or os.cpu_count() or 1)
    return format_named(arguments.format).importer(options)


def _header(
    arguments: argparse.Namespace, specification: Specification, importer: Importer, inputs: Sequence[str]
) -> dict[str, Any]:
    """Return the header of the history: the mapping's, with the options over it."""
    header: dict[str, Any] = dict(getattr(importer, "header", {}))
    recorded: Mapping[str, object] = header.get("config", {})
    given = settings_of(arguments, specification, recorded.get("profile"))
    profile = arguments.profile or {**recorded, **given}.get("profile")
    if recorded or given or profile is not None:
        below, over = (specification.resolve_aliases(profile, one) for one in (recorded, given))
        config = {**specification.override(below, over), **({"profile": profile} if profile is not None else {})}
        api = arguments.api or header.get("api")
        specification.configure(None, config, api=api)
        header["config"] = config
    if arguments.api is not None:
        header["api"] = arguments.api
    names = ", ".join(shown(Path(each).name, 60) for each in inputs[:5])
    header.setdefault("note", f"imported from {names}{', ...' if len(inputs) > 5 else ''} ({arguments.format})")  # noqa: PLR2004 - as above
    return header


FORMAT: Final = (
    Option(
        "--format FORMAT",
        f"what HISTORY is instead of a history, as ackfsm import has it: {', '.join(FORMATS)}",
        dest="foreign",
    ),
    Option("--mapping FILE", "with --format table: what each column means", Path),
)
"""The options of a command that can read other formats than histories."""


def format_options(arguments: argparse.Namespace) -> list[str]:
    """These options, as they would be typed again."""
    found = [] if arguments.foreign is None else ["--format", arguments.foreign]
    return [*found, *([] if arguments.mapping is None else ["--mapping", str(arguments.mapping)])]


@contextlib.contextmanager
def importing(arguments: argparse.Namespace) -> Iterator[Callable[[str], str]]:
    """What gives, for the path that was named, that of the history to read: imported, if ``--format`` was given.

    Raises :class:`InputError` for a format that there is not, and where something cannot be imported.
    """
    if arguments.foreign is None:
        if arguments.mapping is not None:
            raise InputError("--mapping is for --format table; add it, or leave --mapping out")
        yield lambda path: path
        return
    importer = format_named(arguments.foreign).importer(Options(mapping=arguments.mapping))
    with tempfile.TemporaryDirectory(prefix="ackfsm-") as folder:

        def imported(path: str) -> str:
            from ackfsm.history.importing.write import import_history

            name = "standard-input" if path == _FOREIGN_STANDARD_INPUT else Path(path).name
            output = Path(tempfile.mkdtemp(dir=folder)) / f"{name}.parquet"
            with progress_line("events imported") as progress:
                import_history(importer, [Path(path)], output, dict(getattr(importer, "header", {})), progress)
            return str(output)

        yield imported


_EXAMPLES: Final = (
    "ackfsm import --guess orders.csv --output mapping.yaml\n"
    "  ackfsm import table --mapping mapping.yaml orders.csv -o orders.parquet\n\nformats:\n"
    + "\n".join(f"  {each.name:{max(map(len, FORMATS))}}  {each.description}" for each in FORMATS.values())
)

COMMAND: Final = Command(
    "import",
    _import,
    "make a history of somebody else's log, trace or table",
    _EXAMPLES,
    "verify",
    (
        *CONFIGURATION,
        Option("FORMAT", "what is read; see formats below", dest="format"),
        Option(
            "INPUT",
            "files, which together are one history; may be gzipped; - is standard input",
            dest="inputs",
            nargs="+",
        ),
        Option("--mapping FILE", "YAML that says what each column means (docs/importing.md)", Path),
        Option(
            "--guess FILE",
            "propose a mapping for this file, from its first thousand rows; exit code 3 if something was not found",
            Path,
            action=_Alone,
        ),
        Option("--jobs N", "how many processors take part where inputs are large (default: all)", at_least(1)),
        Option(
            "-o --output FILE",
            "where the history goes: .parquet, .jsonl or .jsonl.gz; with --guess the mapping (default: print it)",
            Path,
        ),
    ),
)
