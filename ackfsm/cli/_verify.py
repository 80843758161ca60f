"""``ackfsm verify``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ackfsm import tables
from ackfsm.cli._backend import BACKEND, spark_session
from ackfsm.cli._exit_codes import error_code, result_code
from ackfsm.cli._import import FORMAT, format_options, importing
from ackfsm.cli._options import CONFIGURATION, Command, Option, names_in, set_options, settings_of, tables_of
from ackfsm.cli._output import emit, note, print_file, print_text, progress_line, written_lines
from ackfsm.cli._picture import PictureWanted, picture_wanted
from ackfsm.cli._reports import Reports, reports_of
from ackfsm.support import throughput
from ackfsm.terms import AckfsmError, Anomaly, Configuration, Fault, HostError, InputError, Verdict
from ackfsm.text import in_words, meant, quoted, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackfsm import verify


_RECORDED: Final = "recorded"
_ANY: Final = "any"
_ESTIMATE: Final = "estimate"


def faults_of(text: str) -> frozenset[Fault]:
    """The faults that ``--faults`` lets happen unrecorded.  Raises :class:`InputError` for a word that is none."""
    words = [word.strip() for word in text.split(",")]
    if words == [_RECORDED]:
        return frozenset()
    if words == [_ANY]:
        return frozenset(Fault)
    for word in words:
        if word not in set(Fault):
            raise InputError(
                f"--faults: there is no fault {quoted(word)}{meant(word, (*Fault, _RECORDED, _ANY))}; "
                f"say {_RECORDED}, {_ANY}, or some of {', '.join(Fault)}"
            )
    return frozenset(map(Fault, words))


def _verify(arguments: argparse.Namespace) -> int:
    arguments.json = arguments.json or arguments.json_lines
    specification = tables_of(arguments)
    set_options(arguments)
    if arguments.overwrite and arguments.output is None:
        raise InputError("--overwrite is for --output; add it, or leave --overwrite out")
    never, skew = _never(arguments.never, specification), skew_of(arguments.skew)
    answers: list[verify.Result | InputError | HostError] = []
    written = _Tables()
    reports = reports_of(arguments.report, specification, json=arguments.json)
    picture = picture_wanted(arguments, specification, typed_options(arguments, arguments.faults), reports.files)
    first = _First(wanted=not arguments.json)
    try:
        with (
            importing(arguments) as imported,
            _staged(arguments) as written.folder,
            _examiner(arguments, specification, skew, faults_of(arguments.faults)) as examine,
        ):
            for number, path in enumerate(arguments.histories):
                judge = functools.partial(_judged, arguments, specification, path, imported, examine, never)
                examined = (
                    functools.partial(written.write, number),
                    functools.partial(reports.take, number, path),
                    functools.partial(first.take, number),
                    functools.partial(picture.take, path),
                )
                answers.append(_answer(arguments, judge, examined))
            written.finish()
    except _NotWrittenError:
        pass
    except (InputError, HostError) as error:
        if len(answers) < len(arguments.histories):
            reports.finish(arguments.histories, [*answers, error])
            raise
        written.error = error
    return _reported(arguments, specification, answers, written, reports, first, picture)


def _reported(  # noqa: PLR0913, PLR0917 - all that was found out, and where it goes
    arguments: argparse.Namespace,
    specification: tables.Specification,
    answers: Sequence[verify.Result | AckfsmError],
    written: _Tables,
    reports: Reports,
    first: _First,
    picture: PictureWanted,
) -> int:
    """Report the findings, then a failure to write tables or reports; return the exit code."""
    results = [each for each in answers if not isinstance(each, AckfsmError)]
    failed = [each for each in answers if isinstance(each, AckfsmError)]
    answer = [_as_json(arguments, path, each) for path, each in zip(arguments.histories, answers, strict=True)]
    there, printed = ([arguments.output] if written.complete else []), None
    try:
        printed = reports.finish(arguments.histories, answers, picture.pages)
        there += [*reports.files, *picture.pages]
    except (InputError, HostError) as error:
        written.error = written.error or error
    if arguments.output is not None or reports.files or arguments.html is not None:
        answer = [{**each, "written": list(map(str, there))} for each in answer]
    if printed is None and arguments.json_lines:
        print_text("".join(f"{json.dumps(each)}\n" for each in answer))
    elif printed is None:
        document = answer[0] if len(answer) == 1 else answer
        emit(arguments, document, lambda: _screen(arguments, specification, answers, first, there))
    else:
        print_file(printed)
    for sentence in dict.fromkeys(map(str, failed)):
        note(f"ackfsm verify: {sentence}")
    if written.error is not None:
        raise written.error
    verdicts = {result.verdict for result in results}
    found = {found for result in results for found in result.never.values()}
    violated = Verdict.INVALID in verdicts or True in found
    if failed and not violated:
        return max(map(error_code, failed))
    return result_code(violated=violated, undetermined=Verdict.UNKNOWN in verdicts or None in found)


def _screen(
    arguments: argparse.Namespace,
    specification: tables.Specification,
    answers: Sequence[verify.Result | AckfsmError],
    first: _First,
    written: Sequence[Path],
) -> RenderableType:
    """Return the screen of the findings in each history, and of the files ``written``."""
    from rich.console import Group

    from ackfsm.showing.views.verify import verify_screen

    typed = ["ackfsm", "explain", *typed_options(arguments, arguments.faults), *format_options(arguments)]
    apart: list[RenderableType] = []
    for number, (path, each) in enumerate(zip(arguments.histories, answers, strict=True)):
        if not isinstance(each, AckfsmError):
            screen = verify_screen(
                each,
                specification,
                everything=arguments.all,
                first=first.found.get(number, {}),
                command=() if path == "-" else (*typed, path),
                width=None,
            )
            apart += ["", screen]
    if written:
        apart += ["", *written_lines(written)]
    return Group(*apart[1:])


_MOST_SKEW = 10**9
"""Seconds; more than any clock is wrong, and few enough for nanoseconds of 64 bits."""


def _never(options: Sequence[str], specification: tables.Specification) -> tuple[Anomaly, ...]:
    """The anomalies of ``--never``, each once.  Raises :class:`InputError` for one that there is not."""
    if not options:
        return ()
    from ackfsm import verify

    names = names_in(options)
    showable = verify.shown_anomalies(specification)
    for name in names:
        if name not in showable:
            hint = meant(name, showable)
            raise InputError(f"--never: there is no anomaly {quoted(name)}{hint}; it is one of {', '.join(showable)}")
    return tuple(dict.fromkeys(map(Anomaly, names)))


def skew_of(text: str) -> int | None:
    """``--skew`` in nanoseconds, ``None`` to estimate it.  Raises :class:`InputError` if it is not a duration."""
    if text.strip() == _ESTIMATE:
        return None
    if text.strip() == "0":
        return 0
    try:
        seconds = throughput.parse_duration(text)
    except InputError as error:
        raise InputError(f"--skew: {error}") from None
    if seconds > _MOST_SKEW:
        raise InputError(f"--skew is at most {_MOST_SKEW}s; correct the clocks of the history instead")
    return int(seconds * 10**9)


def _answer(
    arguments: argparse.Namespace,
    judge: Callable[[], tuple[verify.Examination, verify.Result]],
    write: Sequence[Callable[[verify.Examination, verify.Result], None]],
) -> verify.Result | InputError | HostError:
    """The verdict on one history, or why there is none: a bad one of several does not hide the others' answers."""
    try:
        examination, result = judge()
    except (InputError, HostError) as error:
        if len(arguments.histories) == 1:
            raise
        return error
    for each in write:
        each(examination, result)
    return result


def _as_json(arguments: argparse.Namespace, path: str, answer: verify.Result | AckfsmError) -> dict[str, Any]:
    """With ``--all`` also what no two runs have alike: the time that it took."""
    if isinstance(answer, AckfsmError):
        return {"history": path, "error": str(answer)}
    found = answer.as_json()
    if arguments.all and found["conformance"] is not None:
        cost = answer.findings.cost
        found["conformance"] |= {"seconds": round(cost.conformance, 3), "share_of_time": cost.share}
    return found


@dataclasses.dataclass(slots=True)
class _Tables:
    """The folder of the tables, or ``None``; the first failure to write them is told after the findings."""

    folder: Path | None = None
    error: InputError | HostError | None = None
    histories: int = 0

    @property
    def complete(self) -> bool:
        """Whether the tables are there."""
        return self.histories > 0 and self.error is None

    def write(self, number: int, examination: verify.Examination, result: verify.Result) -> None:
        """Write the tables of the history of this ``number``, unless that has failed before."""
        if self.folder is None or self.error is not None:
            return
        try:
            examination.write(result, self.folder, number)
            self.histories += 1
        except (InputError, HostError) as error:
            self.error = error

    def finish(self) -> None:
        """Raise :class:`_NotWrittenError` if there are no tables, or not all of them."""
        if self.folder is not None and not self.complete:
            raise _NotWrittenError


@dataclasses.dataclass(slots=True)
class _First:
    """The first message of each anomaly, by the number of the history, where they are ``wanted`` for a screen."""

    wanted: bool
    found: dict[int, Mapping[Anomaly, verify.FirstMessage]] = dataclasses.field(default_factory=dict)

    def take(self, number: int, examination: verify.Examination, result: verify.Result) -> None:
        """Find the first messages of the history of this ``number``."""
        if self.wanted:
            self.found[number] = examination.first(result)


class _NotWrittenError(Exception):
    """No table takes its place."""


def _staged(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[Path | None]:
    """Where the tables are written, which are in ``--output`` at the end: all of them, or none.

    Whether they can be there is seen before anything is read.
    """
    if arguments.output is None:
        return contextlib.nullcontext()
    from ackfsm import verify

    return verify.staged(arguments.output, overwrite=arguments.overwrite)


_OVER: Final = ("--profile", "--url", "--set", "--api")
"""The options that go before a header."""

_Configure: TypeAlias = "Callable[[verify.Header | None], verify.Configurations | Configuration | None]"
_Examine: TypeAlias = "Callable[[str, _Configure], verify.Examination]"


@contextlib.contextmanager
def _examiner(
    arguments: argparse.Namespace,
    specification: tables.Specification,
    skew: int | None,
    assumed: Collection[Fault],
) -> Iterator[_Examine]:
    """What examines one history: this process, or Spark, as ``--engine`` says."""
    with spark_session(arguments) as session:
        if session is None:
            yield functools.partial(_examine_here, specification, skew, assumed, arguments.html is not None)
        else:
            from ackfsm import spark

            yield lambda path, configure: spark.examination(
                path,
                specification,
                configure,
                session,
                skew=skew,
                assumed=assumed,
                binned=arguments.html is not None,
            )


def _examine_here(  # noqa: PLR0913, PLR0917 - what is examined, and how
    specification: tables.Specification,
    skew: int | None,
    assumed: Collection[Fault],
    binned: bool,  # noqa: FBT001 - given in order
    path: str,
    configure: _Configure,
) -> verify.Examination:
    from ackfsm import verify

    return verify.examination(path, specification, configure, skew=skew, assumed=assumed, binned=binned)


def _judged(  # noqa: PLR0913, PLR0917 - what is judged, and how
    arguments: argparse.Namespace,
    specification: tables.Specification,
    path: str,
    imported: Callable[[str], str],
    examine: _Examine,
    never: Sequence[Anomaly],
) -> tuple[verify.Examination, verify.Result]:
    from ackfsm import verify

    place = imported(path)
    with progress_line("reading"):
        found = examine(place, lambda header: configuration_of(specification, arguments, header, path))
        found = found if place == path else found.named(path)
    with progress_line("states found") as progress:
        return found, verify.verdict(found.findings, specification, never=never, progress=progress)


def configuration_of(
    specification: tables.Specification, arguments: argparse.Namespace, header: verify.Header | None, path: str
) -> verify.Configurations | Configuration | None:
    """The configuration of a history: its header's, with the options over it; ``None`` without any.

    Over that are the settings of each queue that the header names.
    """
    recorded = (header and header.config) or {}
    given = settings_of(arguments, specification, recorded.get("profile"))
    api = header.api if header is not None and arguments.api is None else arguments.api
    settings, general = dict[str, object](), None
    if recorded or given or arguments.profile is not None or api is not None:
        profile = arguments.profile or {**recorded, **given}.get("profile")
        try:
            below, over = (specification.resolve_aliases(profile, one) for one in (recorded, given))
            settings = specification.override(below, over)
            general = specification.configure(None, settings, api=api)
        except InputError as error:
            if header is None or not (recorded or header.api):
                raise
            place = header.place or shown(path)
            raise InputError(f"{place}, its header{_with_options_over(arguments)}: {error}") from None
    if header is None or not header.queues:
        return general
    return _of_queues(specification, arguments, header, general, settings, api)


def _of_queues(  # noqa: PLR0913, PLR0917 - what stands in the header, and what it stands over
    specification: tables.Specification,
    arguments: argparse.Namespace,
    header: verify.Header,
    general: Configuration | None,
    settings: Mapping[str, object],
    api: str | None,
) -> verify.Configurations:
    """The ``general`` configuration, and for each queue that the header names the one with its own settings over it."""
    from ackfsm import verify

    found = {}
    for queue, own in (header.queues or {}).items():
        try:
            over = specification.resolve_aliases(own.get("profile", settings.get("profile")), own)
            found[queue] = specification.configure(None, specification.override(settings, over), api=api)
        except InputError as error:
            place = f"{header.place_of_queues}, queue {quoted(queue)}{_with_options_over(arguments, 'below')}"
            raise InputError(f"{place}: {error}; correct `queues` in the header") from None
    return verify.Configurations(general, found)


def typed_options(arguments: argparse.Namespace, unrecorded: str) -> list[str]:
    """The options of a command line that change how a history is judged, as they would be typed again."""
    given = [("--url", arguments.url), ("--api", arguments.api), ("--profile", arguments.profile_given)]
    words = [word for option, value in given if value is not None for word in (option, value)]
    words += [word for setting in arguments.settings for word in ("--set", setting)]
    words += ["--skew", arguments.skew] if arguments.skew != _ESTIMATE else []
    return [*words, *(["--faults", unrecorded] if unrecorded != _RECORDED else [])]


def _with_options_over(arguments: argparse.Namespace, where: str = "over") -> str:
    """Return the options that change the settings of a header, as a message names them."""
    values = (arguments.profile, arguments.url, arguments.settings, arguments.api)
    chosen = [option for option, value in zip(_OVER, values, strict=True) if value]
    return f" with {in_words(chosen)} {where} it" if chosen else ""


COMMAND: Final = Command(
    "verify",
    _verify,
    "count what went wrong in recorded histories, and say whether it was allowed",
    "ackfsm verify --engine spark --master 'local[2]' last-night.jsonl.gz",
    "all",
    (
        *CONFIGURATION,
        Option(
            "HISTORY",
            "JSONL (also gzipped), Parquet, a folder of parts, or - (standard input)",
            dest="histories",
            nargs="+",
        ),
        *FORMAT,
        Option(
            "--never ANOMALY,...",
            "exit 1 if one of these is found, whether it is allowed or not: loss,unprocessed; may be repeated",
            repeated=True,
        ),
        Option(
            "--skew DURATION",
            "by how much the clocks of two processes may differ: 0, 100us, 2ms (default: estimate, from what is"
            " delivered before it was sent)",
            default=_ESTIMATE,
        ),
        Option("--all", "show the anomalies that were not found, and what each means"),
        Option(
            "--faults recorded|any|FAULT,...",
            "what may have failed: what is recorded (default), beside it anything that nobody recorded, or only these"
            " kinds; says when they must have happened: ackfsm verify --faults any last-night.jsonl.gz",
            default=_RECORDED,
        ),
        Option(
            "--output DIR",
            "write what was found of every message as tables into this folder: Parquet, partitioned by queue",
            Path,
        ),
        Option("--overwrite", "replace the tables that an earlier call wrote into --output"),
        Option(
            "--report FORMAT[=FILE]",
            "write a report for other programs: junit, sarif, github (annotations), prometheus; without FILE, or with"
            " -, it is printed instead of the screen; may be repeated: --report junit=ackfsm.xml",
            repeated=True,
        ),
        Option("--json-lines", "print JSON, a line for each HISTORY: the same shape for one and for many"),
        Option(
            "--html FILE",
            "write a picture of the whole into this file, which a browser shows without a server: faults, throughput,"
            " open messages, anomalies and the lives behind them",
            Path,
        ),
        *BACKEND,
    ),
)
