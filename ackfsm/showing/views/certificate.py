"""The screen of ``ackfsm certificate verify``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.checking.certificates import Certificate, Verification
from ackfsm.showing.views.lines import listed, titled
from ackfsm.tables import Specification, format_value
from ackfsm.text import printable, shown


def certificate_screen(found: Verification, specification: Specification, path: str) -> RenderableType:
    """Return the screen: the views checked, every setting, the statements, the refutations, the conclusion."""
    certificate = found.certificate
    config = certificate.configuration
    modes = ", ".join(str(config.get(key)) for key in ("delivery_mode", "send_mode", "ack_mode", "consumption"))
    rows = [
        ("certificate", shown(path)),
        ("of", f"{config.get('profile')}: {modes}"),
        *_settings(certificate, specification),
        ("faults", ", ".join(certificate.faults) or "none"),
        *([("actions", ", ".join(certificate.actions))] if certificate.actions else []),
        *([("without", ", ".join(certificate.without))] if certificate.without else []),
        ("impossible", ", ".join(certificate.proved) or "nothing"),
        ("possible", ", ".join(way.anomaly for way in certificate.ways) or "nothing"),
        ("not covered", ", ".join(certificate.not_covered) or "nothing"),
    ]
    return Group(titled((title, printable(said)) for title, said in rows), "", _invariants(found), *_conclusion(found))


def _settings(certificate: Certificate, specification: Specification) -> Iterator[tuple[str, str]]:
    """Yield the settings that differ from the profile's; all of them where the profile is another one."""
    values = specification.configure(None, certificate.configuration).as_dict()
    profile = str(values.pop("profile"))
    chosen = {name: table.chosen(values) for name, table in specification.profiles.items()}
    whose = [name for name, own in chosen.items() if not own]
    if not chosen[profile]:
        yield "settings", f"every setting as {profile} has it"
    elif whose:
        yield "profile", f"these are the settings of {' and '.join(whose)}, not of {profile}"
        yield "settings", ", ".join(f"{key}={format_value(value)}" for key, value in values.items())
    else:
        default = specification.profiles[profile].default
        told = (
            f"{key}={format_value(value)} ({profile}: {format_value(default(key, values).of(values))})"
            for key, value in chosen[profile].items()
        )
        yield "settings", f"{', '.join(told)}; every other one as {profile} has it"


def _invariants(found: Verification) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("views", justify="right", no_wrap=True)
    table.add_column("level and messages", no_wrap=True)
    table.add_column("show to be impossible", overflow="fold")
    for invariant in found.certificate.invariants:
        table.add_row(f"{len(invariant.views):,}", invariant.name, printable(", ".join(invariant.anomalies)))
    return table


def _conclusion(found: Verification) -> Iterator[RenderableType]:
    yield ""
    yield from (listed([printable(f"{name}: {why}" if name else why)]) for name, why in found.refuted.items())
    yield from (listed([printable(f"{name}: {why}")]) for name, why in found.undetermined.items())
    took = f"({found.seconds:.1f} s)"
    if found.refuted:
        yield Text(f"Refuted: what it says is not shown by what it has {took}.", style="bold red")
    elif not found.verified:
        yield Text(
            f"Undetermined: not all of it could be looked through, or it says nothing {took}.", style="bold yellow"
        )
    else:
        yield Text(f"Verified: all that it says is so, for any number of messages {took}.", style="bold green")
