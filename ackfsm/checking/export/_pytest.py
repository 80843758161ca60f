"""Export witnesses as pytest tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ackfsm.checking.explore import Step, Witness
from ackfsm.checking.network import Bounds, Network
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError

_WIDTH = 110

_HEAD = '"""What ackfsm found: each test passes as long as the tables of ackfsm allow what it performs."""'


def pytest_file(specification: Specification, witnesses: Sequence[Witness]) -> str:
    """One test for each of ``witnesses``, all of one system: it lets the events happen and asserts the anomaly.

    Raises :class:`ackfsm.terms.InputError` for a configuration that its own profile refuses.
    """
    (network,) = {id(witness.network): witness.network for witness in witnesses}.values()
    lines = [_HEAD, *_imports(specification, network), "", "", *_composed(specification, network)]
    for witness in witnesses:
        lines += ["", "", *_test(specification, witness)]
    return "".join(f"{line}\n" for line in lines)


def _imports(specification: Specification, network: Network) -> Iterator[str]:
    yield from ("", "import functools")
    if network.configuration.profile in specification.profile_files:
        yield "import pathlib"
    yield from ("", "from ackfsm import tables", "from ackfsm.checking import explore, network")
    if network.bounds.faults:
        yield "from ackfsm.terms import Fault"


def _composed(specification: Specification, network: Network) -> Iterator[str]:
    yield from ("@functools.cache", "def composed() -> network.Network:")
    own = specification.profile_files.get(network.configuration.profile)
    yield f"    specification = tables.load({'' if own is None else f'own=[pathlib.Path({_literal(str(own))})]'})"
    yield from _configuration(specification, network.configuration)
    yield from ("    bounds = network.Bounds(", *_bounds(network.bounds), "    )")
    yield "    return network.compose(specification, configuration, bounds)"


def _test(specification: Specification, witness: Witness) -> Iterator[str]:
    yield f"def test_{witness.anomaly}() -> None:"
    yield from _comment(4, specification.meaning(witness.anomaly))
    for sentence in witness.ending:
        yield from _comment(4, sentence)
    yield from ("    system = explore.Interpreter(composed())", "    for event in (")
    for step in witness.steps:
        yield from _step(specification, step)
    yield from ("    ):", "        system.fire(event)")
    yield f'    assert "{witness.anomaly}" in system.anomalies()'
    if witness.at_rest:
        yield "    assert system.at_rest"


def _configuration(specification: Specification, configuration: Configuration) -> Iterator[str]:
    own = _own(specification, configuration)
    profile = f'"{configuration.profile}"'
    if not own:
        yield f"    configuration = specification.configure({profile})"
        return
    yield from ("    configuration = specification.configure(", f"        {profile},", "        {")
    yield from (f'            "{key}": {_literal(value)},' for key, value in own.items())
    yield from ("        },", "    )")


def _own(specification: Specification, configuration: Configuration) -> dict[str, object]:
    """The settings that make ``configuration`` of its profile, few if they can be."""
    wanted: dict[str, object] = {key: value for key, value in configuration.as_dict().items() if key != "profile"}
    chosen: dict[str, object] = {}
    try:
        for key, value in wanted.items():
            if specification.configure(configuration.profile, chosen).as_dict()[key] != value:
                chosen[key] = value
        if specification.configure(configuration.profile, chosen) == configuration:
            return chosen
    except InputError:
        # Some of the settings may be refused without the others; all of them are then written.
        chosen = wanted
    specification.configure(configuration.profile, wanted)
    return wanted


def _bounds(bounds: Bounds) -> Iterator[str]:
    yield f"        messages={bounds.messages},"
    if bounds.consumers > 1:
        yield f"        consumers={bounds.consumers},"
    if bounds.one_session:
        yield "        one_session=True,"
    if bounds.subscriptions > 1:
        yield f"        subscriptions={bounds.subscriptions},"
    if bounds.non_durable:
        yield f"        non_durable={bounds.non_durable},"
    yield f"        faults={_faults(bounds.faults)},"
    yield f"        max_faults={bounds.max_faults},"
    for name in ("actions", "without"):
        if events := sorted(getattr(bounds, name)):
            yield f"        {name}=frozenset({{{', '.join(map(_literal, events))}}}),"


def _faults(faults: Iterable[Fault]) -> str:
    named = set(faults)
    if named == set(Fault):
        return "frozenset(Fault)"
    return f"frozenset({_set(f'Fault.{fault.name}' for fault in Fault if fault in named)})"


def _set(members: Iterable[str]) -> str:
    text = ", ".join(members)
    return f"{{{text}}}" if text else ""


def _step(specification: Specification, step: Step) -> Iterator[str]:
    event = specification.events[step.event.name]
    lanes = " → ".join(dict.fromkeys((event.start, event.end)))
    yield from _comment(8, f"{step.number} {lanes}: {step.because}")
    yield f"        {_literal(step.event.label)},"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _comment(indent: int, text: str) -> Iterator[str]:
    margin = f"{' ' * indent}# "
    return iter(textwrap.wrap(text, _WIDTH, initial_indent=margin, subsequent_indent=margin))
