"""The files of a matrix: Parquet, and one HTML page that needs no script and no other file."""

from __future__ import annotations

import importlib
import importlib.resources
import string
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from ackfsm.showing.views.matrix import check_command, repetition
from ackfsm.support import files
from ackfsm.surveys.matrix import Entry, Line, Matrix, Reachability, Summary
from ackfsm.terms import Anomaly

_NEVER = {False: "how many states were searched", True: "that it is proved for any number of messages and of faults"}
"""What stands below what never happens."""

_CLASS = {Reachability.NEVER: "n", Reachability.DEPENDS: "d", Reachability.ALWAYS: "a", Reachability.UNKNOWN: "u"}


def make_folder(folder: Path) -> None:
    """Make ``folder`` unless it is there, so that a long search does not end in a file that cannot be written.

    Raises :class:`ackfsm.terms.InputError` if it cannot be written to, :class:`ackfsm.terms.HostError` where the
    machine fails, and :class:`ModuleNotFoundError` without pyarrow.
    """
    importlib.import_module("pyarrow.parquet")
    files.make_folder(folder)


def write(matrix: Matrix, summary: Summary, folder: Path) -> tuple[Path, Path]:
    """Write ``matrix.parquet`` (everything) and ``matrix.html`` (a page to read) into ``folder``, both or neither.

    Raises as :func:`make_folder`.
    """
    from ackfsm.surveys.matrix.parquet import parquet

    table, page = folder / "matrix.parquet", folder / "matrix.html"
    files.write_files({table: parquet(matrix), page: _html(matrix, summary).encode()})
    return table, page


def _html(matrix: Matrix, summary: Summary) -> str:
    """The page: every line, overall and in every scenario, and every witness."""
    template = importlib.resources.files("ackfsm.showing.views").joinpath("matrix.html").read_text(encoding="utf-8")
    page = _Page(matrix, summary)
    return string.Template(template).substitute(
        title=escape(f"Guarantee matrix of the profile {matrix.plan.configurations[0].profile}"),
        extent="\n".join(f"<p>{escape(line)}</p>" for line in _extent(matrix)),
        conclusion="\n".join(f"<p>{escape(line)}</p>" for line in _conclusion(matrix)),
        never=_NEVER[matrix.plan.messages is None],
        overview=page.overview(),
        details="\n".join(page.details()),
        words="\n".join(_words(matrix)),
        witnesses="\n".join(page.witnesses()),
    )


def _extent(matrix: Matrix) -> Iterator[str]:
    plan = matrix.plan
    extent = f"{len(plan.configurations):,} configurations of {', '.join(plan.varied) or 'nothing that varies'}"
    if plan.messages is None:
        yield f"{extent}, any number of messages and of faults: {len(matrix.outcomes):,} different systems."
        yield (
            f"Of {sum(matrix.pairs.values()):,} pairs of configuration and anomaly {matrix.pairs[False]:,} are proved"
            f" impossible for any number, {matrix.pairs[True]:,} possible, {matrix.pairs[None]:,} undecided."
        )
    else:
        yield (
            f"{extent}, "
            f"{plan.messages} message{'s' * (plan.messages > 1)}, {len(plan.scenarios)} scenarios of faults: "
            f"{matrix.cells:,} cells, {len(matrix.outcomes):,} of them different."
        )
    yield f"{matrix.states:,} states and {matrix.transitions:,} transitions were searched in {matrix.seconds:,.1f} s."
    for left in plan.left_out:
        yield f"Left out: {left.count:,} configurations, {left.because}."


def _conclusion(matrix: Matrix) -> Iterator[str]:
    for broken in matrix.broken:
        settings = ", ".join(f"{key} = {value}" for key, value in broken.settings.items())
        where = f", all with {settings}" if settings else ""
        command = check_command(matrix, broken.cell.configuration, broken.cell.scenario)
        witness = " → ".join(broken.cell.outcome.witnesses[broken.promise.absent])
        yield (
            f"Promise broken: {broken.promise.absent} ({broken.promise.source}) in {broken.configurations:,} "
            f"configurations{where}: {witness} ({command})"
        )
    for one in matrix.open:
        names = ", ".join(f"{name} in {count:,}" for name, count in one.names.items())
        yield f"Undecided: {names} configurations: {one.because}"
    if not matrix.complete and matrix.plan.messages is not None:
        yield "Undetermined: some searches stopped at their limit."
    if matrix.complete and not matrix.broken:
        yield "As promised: nothing that is promised never to happen can happen."


def _words(matrix: Matrix) -> Iterator[str]:
    for anomaly in matrix.anomalies:
        yield f"<dt>{anomaly}</dt><dd>{escape(matrix.specification.meaning(anomaly))}</dd>"
    for name, guarantee in matrix.specification.guarantees.items():
        yield f"<dt>{name} <small>({guarantee.level})</small></dt><dd>{escape(guarantee.means)}</dd>"


class _Page:
    """Writes the tables, and numbers the witnesses in the order in which they occur."""

    def __init__(self, matrix: Matrix, summary: Summary) -> None:
        self.matrix = matrix
        self.summary = summary
        self.numbers: dict[tuple[tuple[str, ...], str], tuple[int, str]] = {}

    def overview(self) -> str:
        head = _head(["acknowledgement", "delivery", "consumption", "configurations", *self.summary.anomalies])
        rows = (self._overview_row(line) for line in self.summary.lines)
        return head + "<tbody>" + "\n".join(rows) + "</tbody>"

    def _overview_row(self, line: Line) -> str:
        names = (line.ack_mode, line.delivery_mode, line.consumption)
        heads = "".join(f'<th scope="row">{name}</th>' for name in names)
        entries = "".join(self._entry(entry) for entry in line.overall.values())
        return f'<tr data-row="{" ".join(names)}">{heads}<td>{line.configurations}</td>{entries}</tr>'

    def details(self) -> Iterator[str]:
        head = _head(["faults", *self.summary.anomalies, "stands in all of them"])
        for line in self.summary.lines:
            name = f"{line.ack_mode} {line.delivery_mode} {line.consumption}"
            rows = "\n".join(self._details_rows(line, name))
            yield f"<details><summary>{name}</summary><table>{head}<tbody>{rows}</tbody></table></details>"

    def _details_rows(self, line: Line, name: str) -> Iterator[str]:
        scenarios = zip(self.matrix.plan.scenarios, line.scenarios, line.guarantees, strict=True)
        for scenario, entries, guarantees in scenarios:
            yield (
                f'<tr data-row="{name} {scenario}"><th scope="row">{scenario}</th>{self._entries(entries)}'
                f"<td>{', '.join(guarantees) or 'none'}</td></tr>"
            )

    def _entries(self, entries: Mapping[Anomaly, Entry]) -> str:
        return "".join(self._entry(entry) for entry in entries.values())

    def _entry(self, entry: Entry) -> str:
        kind = _CLASS[entry.happens] + (" b" if entry.broken else "")
        link = ""
        if entry.configuration is not None and entry.scenario is not None:
            way = entry.steps, repetition(entry.repeated)
            if way not in self.numbers:
                command = check_command(self.matrix, entry.configuration, entry.scenario)
                self.numbers[way] = (len(self.numbers) + 1, command)
            number, _ = self.numbers[way]
            link = f' <a href="#w{number}">{number}</a>'
        below = ", ".join(entry.decided_by)
        if entry.happens is Reachability.NEVER:
            below = "any number" if self.matrix.plan.messages is None else f"{entry.searched:,}"
        return f'<td class="{kind}">{entry.happens}{link}{f"<small>{below}</small>" if below else ""}</td>'

    def witnesses(self) -> Iterator[str]:
        for (steps, how), (number, command) in self.numbers.items():
            yield f'<li id="w{number}">{" → ".join(steps)}{how and f"<br>{how}"}<br><code>{command}</code></li>'


def _head(names: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f"<thead><tr>{cells}</tr></thead>"
