"""The lines about unrecorded faults: the messages that they explain, and their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from ackfsm.showing.views.lines import hanging
from ackfsm.terms import Fault
from ackfsm.text import in_words, moment, quoted
from ackfsm.verify import Findings, Unrecorded, UnrecordedFault

if TYPE_CHECKING:
    from rich.console import RenderableType

_WORDS: Final[Mapping[Fault, tuple[str, str]]] = MappingProxyType(
    {
        Fault.BROKER_CRASH: ("power loss", "power losses"),
        Fault.BROKER_KILL: ("restart", "restarts"),
        Fault.JOURNAL_FAILURE: ("failure of the journal", "failures of the journal"),
        Fault.PRODUCER_LINK_LOSS: ("broken connection", "broken connections"),
        Fault.CONSUMER_LINK_LOSS: ("broken connection", "broken connections"),
        Fault.PRODUCER_CRASH: ("crash", "crashes"),
        Fault.CONSUMER_CRASH: ("crash", "crashes"),
        Fault.LISTENER_EXCEPTION: ("exception in the listener", "exceptions in the listener"),
        Fault.REJECTION: ("rejection", "rejections"),
    }
)
"""What a person calls one of them, and several."""

_OF_THE_BROKER: Final = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE, Fault.REJECTION})

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_ROWS: Final = 20
"""Rows of the time line that a screen shows."""

_NAMED: Final = 30
"""Characters of a process's name."""


def assumed_answer(findings: Findings) -> Iterator[RenderableType]:
    """Yield the sentence on the assumed faults that the verdict rests on, if there are any."""
    unrecorded = findings.unrecorded
    if unrecorded is None or not unrecorded.assumed:
        return
    unchecked = findings.explanation is not None and bool(findings.explanation.undecided)
    yield hanging(
        _answer(unrecorded, unchecked=unchecked),
        {True: "bold green", False: "bold red", None: "bold yellow"}[unrecorded.explained],
    )
    yield ""


def _answer(unrecorded: Unrecorded, *, unchecked: bool) -> str:
    told = [f"{_messages(unrecorded.messages)} explained by {_sentence(unrecorded)}"] if unrecorded.timeline else []
    if unrecorded.unexplained:
        told.append(f"{_messages(unrecorded.unexplained)} explained by no unrecorded fault, however many")
    if unrecorded.undecided:
        told.append(f"{unrecorded.undecided:,} could not be decided")
    what = "the messages that could be checked against the model" if unchecked else "what was recorded"
    return "; ".join(told) or f"no unrecorded fault is needed to explain {what}"


def hint(unrecorded: Unrecorded | None) -> Iterator[RenderableType]:
    """Yield the faults that would explain a history without assumptions: the next command to type."""
    if unrecorded is None or unrecorded.assumed or not unrecorded.timeline:
        return
    yield ""
    yield hanging(
        f"if faults happened that nobody recorded, {_messages(unrecorded.messages)} explained by"
        f" {_sentence(unrecorded)}: say --faults any",
        "bold",
    )


def assumed_table(unrecorded: Unrecorded | None) -> Iterator[RenderableType]:
    """The time line of the faults that the verdict rests on."""
    if unrecorded is None or not (unrecorded.assumed and unrecorded.timeline):
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("unrecorded fault", "of", "from", "to"):
        table.add_column(title, no_wrap=title != "of")
    table.add_column("explains", justify="right", no_wrap=True)
    for each in unrecorded.timeline[:_ROWS]:
        begin, end = _span(each.begin, each.end)
        times = f" x {each.times:,}" if each.times > 1 else ""
        table.add_row(f"{each.fault}{times}", _victim(each), begin, end, f"{each.messages:,}")
    yield table
    if len(unrecorded.timeline) > _ROWS:
        yield Text(f"and {len(unrecorded.timeline) - _ROWS:,} more")
    yield ""


def _messages(count: int) -> str:
    return "1 message is" if count == 1 else f"{count:,} messages are"


def _sentence(unrecorded: Unrecorded) -> str:
    """One restart of the broker between 03:12:04 and 03:12:09 and two broken connections of 'consumer-3' between ..."""
    groups: dict[tuple[Fault, str | None], list[UnrecordedFault]] = {}
    for each in unrecorded.timeline:
        groups.setdefault((each.fault, each.victim), []).append(each)
    return in_words([_group(its) for its in groups.values()])


def _group(its: Sequence[UnrecordedFault]) -> str:
    count = sum(each.times for each in its)
    begin, end = _span(min(each.begin for each in its), max(each.end for each in its))
    number = _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
    words = _WORDS.get(its[0].fault, (str(its[0].fault), f"{its[0].fault} faults"))
    return f"{number} {words[count > 1]} of {_victim(its[0])} between {begin} and {end}"


def _victim(each: UnrecordedFault) -> str:
    if each.victim is not None:
        return quoted(each.victim, _NAMED)
    return "the broker" if each.fault in _OF_THE_BROKER else "some client"


def _span(begin: int, end: int) -> tuple[str, str]:
    """Two times, no more exact than tells them apart: the first rounded down, the second up."""
    digits = next((digits for digits in (0, 1, 3, 6) if end - begin >= 2 * 10 ** (9 - digits)), 9)
    unit = 10 ** (9 - digits)
    return moment(begin, digits), moment(-(-end // unit) * unit, digits)
