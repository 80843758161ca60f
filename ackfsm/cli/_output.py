"""Write results to standard output, where a failure is an error, and notes to standard error, where it is not."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TextIO

from ackfsm.support.files import leads_out, write_file, write_files
from ackfsm.terms import HostError
from ackfsm.text import printable, shown

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID
    from rich.text import Text

    from ackfsm.tables.batch import ProgressBar

_DELAY: Final = 2.0
"""Seconds after which a progress line is shown on a terminal."""

_PLAIN: Final = {
    "→": "->",
    "←": "<-",
    "…": "...",
    "×": "x",  # noqa: RUF001 - it is this one
    "·": "*",
    "•": "*",
    "–": "-",  # noqa: RUF001 - it is this one
    "—": "-",
    "✓": "+",
    "≥": ">=",
}
"""What replaces our own signs where the encoding lacks them; other characters are escaped."""

_CHOSEN: Final = frozenset({"ignore", "namereplace", "replace", "xmlcharrefreplace"})
"""Error handlers that Python never chooses itself: somebody has asked for them with ``PYTHONIOENCODING``."""

_NAMES: Final = frozenset({"-", "/dev/fd/1", "/dev/stdout", "/proc/self/fd/1"})


def is_standard_output(path: Path) -> bool:
    """Return whether ``path`` is a name of standard output, which is open and is appended to."""
    return str(path) in _NAMES


def output_file(arguments: argparse.Namespace) -> Path | None:
    """The file of ``--output``, if it is another than standard output."""
    output: Path | None = arguments.output
    return None if output is None or is_standard_output(output) else output


def print_text(text: str) -> None:
    """Print ``text`` for a person or a program.  Raises :class:`HostError` if it cannot be written."""
    with standard_output() as out:
        out.write(text)


def print_json(value: object) -> None:
    """Print ``value`` as JSON.  Raises as :func:`print_text`."""
    print_text(f"{json.dumps(value, indent=2)}\n")


def print_file(file: str | bytes) -> None:
    """Print the contents of a file: as UTF-8, whatever the terminal has.  Raises as :func:`print_text`."""
    with standard_output() as out:
        if isinstance(out, io.StringIO) and isinstance(file, str):  # a caller that captures text
            out.write(file)
            return
        out.flush()
        out.buffer.write(file.encode() if isinstance(file, str) else file)


def flush() -> None:
    """Write the buffered text, while an error can still be reported.  Raises as :func:`print_text`."""
    with standard_output() as out:
        out.flush()


@contextlib.contextmanager
def standard_output() -> Iterator[TextIO]:
    """Standard output.  Raises :class:`HostError` if it cannot be written."""
    if sys.stdout is None:
        raise HostError("standard output is closed; what was to be written is lost")
    try:
        yield sys.stdout
    except BrokenPipeError:
        raise HostError("nobody read standard output to its end; what was not read is lost") from None
    except OSError as error:
        raise HostError(f"standard output cannot be written ({error.strerror}); what it lacks is lost") from None


def note(sentence: str) -> None:
    """Write one line to standard error; it is ignored if that fails."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(printable(sentence), file=sys.stderr, flush=True)


def prepare_streams() -> None:
    """Make the streams of this process such that writing to them raises nothing but an :class:`OSError`.

    Where the encoding lacks a character another one replaces it.  A stream that is closed becomes one that refuses what
    is written (standard output) or drops it (standard error), so that no file that is opened later gets its number.
    Standard output is buffered whatever ``PYTHONUNBUFFERED`` says.
    """
    codecs.register_error(__name__, _instead)
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as above
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and isinstance(out.buffer, io.RawIOBase):
        # PYTHONUNBUFFERED: what one write does not take would be lost without an error
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(out.buffer), encoding=out.encoding, errors=out.errors, line_buffering=True
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors not in _CHOSEN:
            stream.reconfigure(errors=__name__)


def _instead(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    plain = (_PLAIN.get(character) or character.encode("unicode_escape").decode() for character in lacking)
    return "".join(plain), error.end


def flush_or_discard() -> None:
    """Flush both streams, or drop what they hold, so that Python has nothing to write when the process ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()


def console(*, errors: bool = False) -> Console:
    """As wide as the terminal, elsewhere :func:`piped_width`.  Colours only on a terminal; text is text, not markup."""
    from ackfsm.cli._console import StrictConsole

    made = StrictConsole(stderr=errors, highlight=False, markup=False, emoji=False)
    if made.is_terminal:
        return made
    return StrictConsole(stderr=errors, highlight=False, markup=False, emoji=False, width=piped_width())


_PIPED: Final = 80
_NARROWEST: Final = 40


def piped_width() -> int:
    """Return the columns of an output that is no terminal: ``COLUMNS`` of the environment, else 80."""
    asked = os.environ.get("COLUMNS", "")
    return max(_NARROWEST, int(asked)) if asked.isascii() and asked.isdecimal() and 0 < len(asked) < 5 else _PIPED  # noqa: PLR2004 - no screen has 10,000 columns


def emit(arguments: argparse.Namespace, document: object, screen: Callable[[], RenderableType]) -> None:
    """Print ``document`` as JSON with ``--json``, otherwise ``screen``.  Raises as :func:`print_text`."""
    if arguments.json:
        print_json(document)
        return
    renderable = screen()
    with standard_output():
        console().print(renderable, crop=False)


def emit_folder(arguments: argparse.Namespace, written: Sequence[Path]) -> None:
    """Print that the files ``written`` are in the folder ``--output``.  Raises as :func:`print_text`."""
    from rich.text import Text

    names = [str(path) for path in written]
    sentence = f"{len(names)} files written to {shown(str(arguments.output))}"
    emit(arguments, {"written": names}, lambda: Text(sentence))


def hand_out(
    arguments: argparse.Namespace,
    page: str,
    document: object,
    screen: Callable[[], RenderableType] | None = None,
    *,
    beside: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write a page to ``--output`` and say so, or print it, as a ``screen`` if there is one.

    With ``--json`` that it was written, with what is told ``beside``, or what it is made of.

    Raises as :func:`print_text`.
    """
    if arguments.output is not None and not is_standard_output(arguments.output):
        write_file(arguments.output, page.encode())
        (line,) = written_lines([arguments.output])
        emit(arguments, {**beside, "written": [str(arguments.output)]}, lambda: line)
    elif arguments.json:
        print_json(document)
    elif screen is None or arguments.output is not None:
        print_file(page)
    else:
        emit(arguments, document, screen)


def write_then_report(write: Callable[[], Sequence[Path]], report: Callable[[Sequence[Path]], None]) -> None:
    """``write`` files, then ``report`` the result and the files; the result also where writing fails."""
    try:
        written = write()
    except Exception:
        report(())
        raise
    report(written)


def hand_out_texts(
    arguments: argparse.Namespace,
    texts: Callable[[], Mapping[Path, str]],
    document: Callable[[], Mapping[str, object]],
    show: Callable[[], None],
) -> None:
    """Write ``texts`` into their files and name these, or ``show`` what there is where no file is written.

    With ``--json`` print the ``document`` with the files, also where they cannot be written.
    Raises as :func:`print_text` and :func:`ackfsm.support.files.write_files`.
    """

    def write() -> Sequence[Path]:
        files = {path: text.encode() for path, text in texts().items()}
        write_files(files)
        return tuple(files)

    def report(written: Sequence[Path]) -> None:
        if arguments.json:
            print_json({**document(), "written": list(map(str, written))})
        elif not written:
            show()
        elif not any(map(leads_out, written)):
            print_text("".join(f"{line.plain}\n" for line in written_lines(written)))

    write_then_report(write, report)


def show_text(text: Callable[[], str], screens: Callable[[], Sequence[RenderableType]]) -> None:
    """Print the ``screens`` on a terminal, and the ``text`` elsewhere."""
    screen = console()
    if not screen.is_terminal:
        print_text(text())
        return
    renderables = screens()
    with standard_output():
        screen.print(*renderables, sep="\n")


def written_lines(written: Sequence[Path]) -> list[Text]:
    """A line for each file that was written, however long, so that its name can be copied."""
    from rich.text import Text

    return [Text(f"{shown(str(path))} written", no_wrap=True, overflow="ignore") for path in written]


@contextlib.contextmanager
def progress_line(what: str) -> Iterator[Callable[[int], None]]:
    """On a terminal, after two seconds, a line that says ``what`` goes on, and for how long.

    The function yielded adds how far it has come; the line is there without it.
    """
    screen = console(errors=True)
    if not screen.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    line = Progress(*columns, transient=True, console=screen)
    task = line.add_task(what)
    with _begun_later(line):
        yield lambda done: line.update(task, description=f"{what}: {done:,}")


@contextlib.contextmanager
def progress_bars(*, later: bool = False) -> Iterator[ProgressBar]:
    """On a terminal a progress bar for each part of the work, with the time that it has taken and will still take.

    With ``later`` it is shown after two seconds.
    """
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console(errors=True), transient=True)
    bars.disable = not bars.console.is_terminal
    tasks: dict[str, TaskID] = {}

    def update(what: str, done: int, of: int, /) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=of)
        bars.update(tasks[what], completed=done, total=of)

    with _begun_later(bars) if later else bars:
        yield update


@contextlib.contextmanager
def _begun_later(shown_later: Progress) -> Iterator[None]:
    begins = threading.Timer(_DELAY, shown_later.start)
    begins.daemon = True
    begins.start()
    try:
        yield
    finally:
        begins.cancel()
        begins.join()
        shown_later.stop()
