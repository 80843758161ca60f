"""Find the files of the history at a path, by one rule for both backends.

A path is a file, a pipe, ``-`` (standard input), or a folder whose files together are one history.  In a folder
nothing is passed over in silence: each entry is a part, is known to hold no event, or makes the folder refused.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from ackfsm.support.files import cannot_read
from ackfsm.terms import InputError
from ackfsm.text import shown

STANDARD_INPUT = "-"
"""The path of standard input, as text; a file of that name is ``Path("-")``, or ``./-`` to a shell."""

HEADER_SUFFIX = ".header.json"
"""What is added to the name of a history for the file beside it that holds its header."""


class Form(StrEnum):
    """How events are stored; the value is how a message to a person calls it."""

    LINES = "JSONL"
    PARQUET = "Parquet"


_SUFFIXES: Mapping[str, Form] = MappingProxyType(
    {".parquet": Form.PARQUET, ".jsonl": Form.LINES, ".jsonl.gz": Form.LINES}
)
_PARTS = "*.parquet, or *.jsonl and *.jsonl.gz"

_WITHOUT_EVENTS: tuple[Callable[[str], bool], ...] = (
    frozenset({"_SUCCESS", "_metadata", "_common_metadata"}).__contains__,
    lambda name: name.endswith((".crc", HEADER_SUFFIX)),
)
"""The names of what Hadoop and Spark write beside parts, and of headers."""

_HIDDEN = ("_", ".")
_SPECIAL: Mapping[Callable[[int], bool], str] = MappingProxyType(
    {stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """The files of a history.

    Attributes:
        path: what was named.
        files: what is read, in the order in which lines count; in a folder in the order of the names.
        form: how a folder's parts are stored; ``None`` for a single file, which shows it by what it begins with.
        standard_input: whether the only file is standard input, which is open already.
        regular: whether the files can be read more than once, also by other processes; pipes cannot.
    """

    path: Path
    files: tuple[Path, ...]
    form: Form | None = None
    standard_input: bool = False
    regular: bool = True

    @property
    def is_folder(self) -> bool:
        """Whether the files are parts in a folder."""
        return self.form is not None

    def name_of(self, file: Path) -> str:
        """``file`` as messages name it."""
        return "standard input" if self.standard_input else shown(str(file))

    def part_of(self, file: Path) -> str | None:
        """The name of ``file`` where a history has several; it may have to be :func:`shown`."""
        return file.name if self.is_folder else None

    def beside(self) -> tuple[Path, ...]:
        """Return the places of headers beside this history: the whole's, then the parts'."""
        if not self.regular:
            return ()
        whole = Path(os.path.abspath(self.path))  # noqa: PTH100 - "." gets a name, links are not followed
        named = (whole, *(self.files if self.is_folder else ()))
        return tuple(file.with_name(f"{file.name}{HEADER_SUFFIX}") for file in named if file.name)


def source_of(path: str | Path) -> Source:
    """Return the source at ``path``: a file, a pipe, a folder of parts, or :data:`STANDARD_INPUT`.

    Raises :class:`InputError` where there is no history: nothing is there, it is a device, or a folder holds anything
    that could be events but is no part.
    """
    if path == STANDARD_INPUT:
        return Source(Path(path), (Path(path),), standard_input=True, regular=False)
    path = Path(path)
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        return _folder(path)
    for is_it, what in _SPECIAL.items():
        if is_it(mode):
            raise InputError(f"{shown(str(path))} is {what}; name a file, a folder, a pipe, or - (standard input)")
    return Source(path, (path,), regular=stat.S_ISREG(mode))


def parts_among(folder: Path, entries: Mapping[str, int]) -> tuple[tuple[str, ...], Form]:
    """Which of the ``entries`` of ``folder`` (names, each with the mode of its file) are the parts of a history.

    Raises :class:`InputError` unless every entry is a part or known to hold no event, and all parts are stored alike.
    """
    where, forms = shown(str(folder)), dict[Form, str]()
    parts = []
    for name in sorted(entries):
        form = _form_of(name, entries[name], where)
        if form is not None:
            forms.setdefault(form, name)
            parts.append(name)
    if not parts:
        raise InputError(f"{where} is a folder without parts; name a history, or write parts ({_PARTS}) to it")
    if len(forms) > 1:
        kinds = " and ".join(f"{form} ({shown(name)})" for form, name in sorted(forms.items()))
        raise InputError(f"{where} holds parts in {kinds}; keep those of one kind in a folder")
    return tuple(parts), next(iter(forms))


def _form_of(name: str, mode: int, where: str) -> Form | None:
    """The form of one part, ``None`` for what holds no event."""
    named = f"{where} holds {shown(name)}"
    if stat.S_ISDIR(mode):
        raise InputError(
            f"{named}, a folder; parts stand in one folder: write them without partitions, or move it away"
        )
    if not stat.S_ISREG(mode):
        raise InputError(f"{named}, which is not a file; move it away")
    if any(known(name) for known in _WITHOUT_EVENTS):
        return None
    if name.startswith(_HIDDEN):
        raise InputError(
            f"{named}, which Spark passes over for its first character; rename it if it is a part, or move it away"
        )
    form = next((form for suffix, form in _SUFFIXES.items() if name.endswith(suffix)), None)
    if form is None:
        raise InputError(f"{named}, which is no part ({_PARTS}); rename it if it is one, or move it away")
    return form


def _folder(folder: Path) -> Source:
    parts, form = parts_among(folder, {name: _mode(folder / name, broken_links=True) for name in _names(folder)})
    return Source(folder, tuple(folder / name for name in parts), form)


def _names(folder: Path) -> Iterable[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise cannot_read(shown(str(folder)), error, "a history") from None


def _mode(path: Path, *, broken_links: bool = False) -> int:
    """Return the mode of the file at ``path``; for a link to nothing the link's, if ``broken_links`` are asked for."""
    try:
        return path.lstat().st_mode if broken_links and not path.exists() else path.stat().st_mode
    except OSError as error:
        raise cannot_read(shown(str(path)), error, "a history") from None
    except ValueError:  # NUL, or half of a surrogate pair
        raise InputError(f"{shown(str(path))} cannot be the name of a file; name a history") from None
