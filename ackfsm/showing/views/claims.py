"""The screen of ``ackfsm claims``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ackfsm.surveys.claims import ClaimResult, Status
from ackfsm.text import in_words

_STYLE = {Status.PROVED: "green", Status.REFUTED: "bold red", Status.UNKNOWN: "bold yellow"}


def claims_screen(results: Sequence[ClaimResult]) -> RenderableType:
    """Each sentence with its status and its evidence, then how many have which status."""
    return Group(*(line for one in results for line in _claim(one)), _conclusion(results))


def _claim(one: ClaimResult) -> Iterator[RenderableType]:
    status = Text(f"{one.status:8}", style=_STYLE[one.status])
    shown_for = f" (for {_messages(one.shown_for)})" if one.status is Status.PROVED else ""
    yield Text.assemble((f"{one.claim.id} ", "bold"), status, " ", one.claim.statement, (shown_for, "italic"))
    for evidence in one.evidence:
        mark = {True: "+ ", False: "- ", None: "? "}[evidence.holds]
        few = evidence.few_messages if evidence.holds else None
        text = f"{mark}{evidence.sentence}" + (f" ({_messages([few])})" if few else "")
        yield Padding(Text(text, style="dim" if evidence.holds else ""), (0, 0, 0, 4))
    for contradiction in one.contradictions:
        text = f"but {contradiction.says} ({contradiction.source}): {contradiction.status}"
        yield Padding(Text(text, style="magenta"), (0, 0, 0, 4))
        for evidence in contradiction.evidence:
            yield Padding(Text(evidence.sentence, style="dim"), (0, 0, 0, 6))
    yield Text("")


def _messages(numbers: Sequence[int | str]) -> str:
    """``1 message``, ``1 and 2 messages``, ``any number of messages``."""
    if numbers == ["any"]:
        return "any number of messages"
    return f"{in_words([str(one) for one in numbers])} message{'' if numbers == [1] else 's'}"


def _conclusion(results: Sequence[ClaimResult]) -> Text:
    counted = Counter(one.status for one in results)
    parts = [(f"{counted[status]} {status}", _STYLE[status]) for status in Status if counted[status]]
    return Text(", ").join(Text(text, style=style) for text, style in parts)
