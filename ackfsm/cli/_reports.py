"""``--report`` of ``ackfsm verify``: which reports are asked for, and where they go."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ackfsm.cli._output import is_standard_output
from ackfsm.support.files import write_files
from ackfsm.tables import Specification
from ackfsm.terms import AckfsmError, InputError
from ackfsm.text import meant, quoted

if TYPE_CHECKING:
    from ackfsm.showing.views.reports import Report, ReportFormat
    from ackfsm.verify import Examination, Result

_PRINTED: Final = Path("-")
_NOTHING: Final[Mapping[Path, bytes]] = MappingProxyType({})


@dataclasses.dataclass(slots=True)
class Reports:
    """The reports on the histories of one command, which are made when all of them were judged.

    Attributes:
        wanted: the file of each format; ``-`` for standard output.
        specification: the tables.
    """

    wanted: Mapping[ReportFormat, Path]
    specification: Specification
    _found: dict[int, Report] = dataclasses.field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """The files that are written."""
        return [path for path in self.wanted.values() if not is_standard_output(path)]

    def take(self, number: int, path: str, examination: Examination, result: Result) -> None:
        """Keep what reports tell of the history of this ``number``."""
        if self.wanted:
            from ackfsm.showing.views.reports import report_of

            self._found[number] = report_of(path, result, examination.anomalies(result), self.specification)

    def finish(
        self, paths: Sequence[str], answers: Sequence[Result | AckfsmError], beside: Mapping[Path, bytes] = _NOTHING
    ) -> str | None:
        """Write the files, with the ones ``beside`` them, all or none, and return the text to be printed.

        Raises as :func:`ackfsm.support.files.write_file`.

        Of histories without an answer of their own the last one says why.
        """
        if not self.wanted:
            write_files(beside)
            return None
        from ackfsm.showing.views.reports import WRITERS, unread_report

        reports = [
            self._found.get(number) or unread_report(path, str(answers[min(number, len(answers) - 1)]))
            for number, path in enumerate(paths)
        ]
        made = {path: WRITERS[form](reports) for form, path in self.wanted.items()}
        write_files({**{path: made[path].encode() for path in self.files}, **beside})
        return next((text for path, text in made.items() if is_standard_output(path)), None)


def reports_of(options: Sequence[str], specification: Specification, *, json: bool) -> Reports:
    """The reports that ``--report`` asks for, each ``FORMAT`` or ``FORMAT=FILE``.

    Raises :class:`InputError` for a format that there is not, and for two that would go to one place.
    """
    if not options:
        return Reports({}, specification)
    from ackfsm.showing.views.reports import ReportFormat

    wanted: dict[ReportFormat, Path] = {}
    for option in options:
        name, _, file = option.partition("=")
        if name not in set(ReportFormat):
            raise InputError(
                f"--report: there is no format {quoted(name)}{meant(name, ReportFormat)}; "
                f"it is one of {', '.join(ReportFormat)}"
            )
        if name in wanted:
            raise InputError(f"--report: {name} is given more than once; give it once")
        wanted[ReportFormat(name)] = Path(file) if file else _PRINTED
    places = [_PRINTED if is_standard_output(path) else path.absolute() for path in wanted.values()]
    if len({*places}) < len(places):
        raise InputError("--report: two reports would go to one place; name another FILE: --report junit=ackfsm.xml")
    if json and _PRINTED in places:
        raise InputError("--json and a report without a FILE are both printed; name a FILE: --report junit=ackfsm.xml")
    return Reports(wanted, specification)
