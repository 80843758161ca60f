"""``--html`` of ``ackfsm verify``: the picture of a history."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ackfsm.cli._output import is_standard_output, progress_line
from ackfsm.support.files import check_place
from ackfsm.tables import Specification
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm.verify import Examination, Result


@dataclasses.dataclass(slots=True)
class PictureWanted:
    """The picture that is asked for, if one is, and the page when it is made.

    Attributes:
        pages: by file what is to be written.
    """

    _arguments: argparse.Namespace
    _specification: Specification
    _options: Sequence[str]
    pages: dict[Path, bytes] = dataclasses.field(default_factory=dict)

    def take(self, path: str, examination: Examination, result: Result) -> None:
        """Draw the history at ``path``."""
        file = self._arguments.html
        if file is None:
            return
        from ackfsm.showing.views.history import picture_of
        from ackfsm.showing.views.picture import Commands, picture_page

        options, again = self._options, path != "-"
        commands = Commands(
            made=["ackfsm", "verify", *options, "--html", str(file), path],
            explain=["ackfsm", "explain", *options, path] if again else (),
            tables=["ackfsm", "verify", *options, "--output", "found", path] if again else (),
        )
        with progress_line("drawing"):
            page = picture_page(result, picture_of(examination, result), self._specification, commands)
        self.pages[file] = page.encode()


def picture_wanted(
    arguments: argparse.Namespace, specification: Specification, options: Sequence[str], others: Collection[Path]
) -> PictureWanted:
    """Return the picture for ``--html``; ``options`` change how a history is judged, as they would be typed.

    Raises :class:`InputError` if there are several histories, if the file is standard output, or one of the ``others``,
    and as :func:`ackfsm.support.files.check_place` if it cannot be written.
    """
    file = arguments.html
    if file is not None:
        if len(arguments.histories) > 1:
            raise InputError("--html draws one history; call verify for each of them, with another FILE")
        if is_standard_output(file):
            raise InputError("--html writes a file for a browser; name one: --html picture.html")
        if file.absolute() in {other.absolute() for other in others}:
            raise InputError(f"--html and --report would both be {shown(str(file))}; name another FILE for one of them")
        check_place(file)
    return PictureWanted(arguments, specification, options)
