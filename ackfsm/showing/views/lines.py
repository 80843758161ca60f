"""Lines that several screens share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.checking.explore import LivenessFinding
from ackfsm.checking.network import Bounds, Network, NetworkEvent
from ackfsm.tables import Guarantees
from ackfsm.terms import Configuration, Fault


def query_lines(network: Network) -> Text:
    """The configuration of ``network``, and within which bounds it was composed."""
    bounds = network.bounds
    messages = f"{bounds.messages} message" + "s" * (bounds.messages > 1)
    if bounds.consumers > 1:
        messages += f", {bounds.consumers} consumers" + " of one session" * bounds.one_session
    if bounds.subscriptions > 1:
        messages += f", each to {bounds.subscriptions} subscriptions"
        messages += f", {bounds.non_durable} of them not durable" if bounds.non_durable else ""
    return configuration_lines(network.configuration, f"{messages}; {faults_in_words(bounds)}")


def configuration_lines(configuration: Configuration, what: str) -> Text:
    """The modes of ``configuration``, and below ``what`` was asked about it."""
    modes = (
        configuration.delivery_mode,
        f"{configuration.send_mode} send",
        configuration.ack_mode,
        configuration.consumption,
    )
    return Text.assemble((f"{configuration.profile}", "bold"), f": {', '.join(modes)}\n{what}")


def faults_in_words(bounds: Bounds) -> str:
    """Which faults may happen, and how often; and which actions may, and what never does."""
    names = "any fault" if bounds.faults == set(Fault) else ", ".join(sorted(bounds.faults)) or "no fault"
    if bounds.strikes_while:
        names += f" while {bounds.strikes_while}(m1)"
    times = "any number of times" if bounds.max_faults is None else f"at most {bounds.max_faults} in all"
    beside = (("with", bounds.actions), ("without", bounds.without))
    also = "".join(f"; {word} {', '.join(sorted(events))}" for word, events in beside if events)
    return f"{names}, {times}{also}"


def guarantee_lines(
    guarantees: Guarantees,
    verdicts: Mapping[str, bool | None],
    confirmed: Mapping[str, bool | None] = MappingProxyType({}),
) -> RenderableType:
    """Return the lines of the strongest guarantees by level, the excluded and the undecided ones.

    ``confirmed`` are those that do not hold, but of messages that were reported as sent.
    """
    excluded = [name for name, holds in verdicts.items() if holds is False]
    undecided = [name for name, holds in verdicts.items() if holds is None]
    lines = [Text("strongest guarantees", style="bold")]
    for level, strongest in guarantees.strongest_by_level(verdicts).items():
        otherwise = "left open" if any(guarantees[name].level is level for name in undecided) else "none"
        narrowed = (n for n, holds in confirmed.items() if holds and guarantees[n].level is level)
        names = [*strongest, *(f"{name} for what was confirmed" for name in narrowed)]
        lines.append(Text.assemble(f"  {level}: ", (", ".join(names) or otherwise, "bold")))
    if excluded:
        lines.append(Text(f"excluded: {', '.join(excluded)}"))
    if undecided:
        lines.append(Text(f"left open: {', '.join(undecided)}", style="dim"))
    return Group(*lines)


def liveness_lines(liveness: Mapping[str, LivenessFinding]) -> Iterator[Text]:
    """A line for each liveness property, with a path to where it fails and the cycle; nothing if none was checked."""
    if liveness:
        yield Text("in the end", style="bold")
    for name, finding in liveness.items():
        yield Text.assemble((f"{name}: ", "bold"), *_liveness(finding))
    if liveness:
        yield Text("")


def _liveness(finding: LivenessFinding) -> Iterator[tuple[str, str]]:
    if finding.holds is None:
        yield "unknown", "yellow"
    elif finding.holds:
        yield "yes", "green"
    else:
        yield "no", "red" if finding.promised else "yellow"
        end = ", for ever: " + _steps(finding.cycle) if finding.cycle else ", then nothing"
        yield f", {finding.waiting.label if finding.waiting else ''} waits: {_steps(finding.steps)}{end}", ""


def _steps(events: Iterable[NetworkEvent]) -> str:
    return " → ".join(event.label for event in events)


# lines whose continuations are indented: a text from outside never begins a line of a screen


def titled(rows: Iterable[tuple[str, str]]) -> Table:
    """A line for each pair of a title and what belongs to it."""
    return _indented((Text(f"{title}  ", style="bold"), Text(text)) for title, text in rows)


def listed(sentences: Iterable[str]) -> Table:
    """A line for each sentence, after a dash."""
    return _indented((Text("  - "), Text(sentence)) for sentence in sentences)


def hanging(sentence: str, style: str) -> Table:
    """One sentence that begins its line."""
    head, _, rest = sentence.partition(" ")
    return _indented([(Text(f"{head} ", style=style), Text(rest, style=style))])


def _indented(rows: Iterable[tuple[Text, Text]]) -> Table:
    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
