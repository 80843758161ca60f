"""Calls of public functions, with arguments that nobody would give."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from ackfsm import engine, tables, verify
from ackfsm.checking import explore, export, network
from ackfsm.engine import journal
from ackfsm.showing import draw
from ackfsm.support import throughput
from ackfsm.surveys import matrix
from ackfsm.terms import AckfsmError, Anomaly, Fault, Profile, parse_value
from model_tests.fuzz.files import Laboratory
from model_tests.fuzz.words import FLAGS, JUNK, KEYS, NUMBERS, mostly
from model_tests.support.tables import shipped

__all__ = ["PUBLIC", "Called", "calls", "perform"]


@dataclasses.dataclass(frozen=True)
class Called:
    """A call, and what it raised that is no error of ackfsm's own."""

    name: str
    arguments: tuple[object, ...]
    named: Mapping[str, object]
    escaped: str | None


def perform(call: tuple[str, tuple[object, ...], Mapping[str, object]]) -> Called:
    """Make a call that :func:`calls` has drawn."""
    name, arguments, named = call
    escaped = None
    try:
        PUBLIC[name](*arguments, **named)
    except AckfsmError as error:
        if not str(error).strip():
            escaped = f"{type(error).__name__} says nothing"
    except Exception:  # noqa: BLE001 - whatever is not ackfsm's own is what is looked for
        escaped = traceback.format_exc()
    return Called(name, arguments, named, escaped)


def _composed(bounds: network.Bounds) -> network.Network:
    return network.compose(shipped(), shipped().configure("jms"), bounds)


def _exported(form: object, name: str) -> dict[str, str]:
    return export.files(_composed(network.Bounds()), form, name)  # type: ignore[arg-type]


PUBLIC: Mapping[str, Callable[..., object]] = {
    "tables.load": tables.load,
    "configure": lambda profile, given_: shipped().configure(profile, given_),
    "resolve_aliases": lambda profile, given_: shipped().resolve_aliases(profile, given_),
    "parse_value": parse_value,
    "compose": lambda **bounds: _composed(network.Bounds(**bounds)),
    "check": lambda bounds, **named: explore.check(
        shipped(), shipped().configure("jms"), network.Bounds(**bounds), **named
    ),
    "replay": lambda anomaly, labels: explore.replay(_composed(network.Bounds()), anomaly, labels),
    "draw": lambda name, form: draw.draw(shipped(), name, form),
    "overview": lambda form: draw.overview(shipped(), form),
    "export.files": _exported,
    "history.read": verify.read,
    "history.read_header": verify.read_header,
    "make_plan": lambda profile, given_, **named: matrix.make_plan(shipped(), profile, given_, **named),
    "parse_workload": journal.parse_workload,
    "inspect_file": journal.inspect_file,
    "inspect_sqlite": journal.inspect_sqlite,
    "parse_bandwidth": throughput.parse_bandwidth,
    "parse_duration": throughput.parse_duration,
    "Broker": lambda profile, **named: engine.Broker(profile, **named).close(),
}

_ODD = st.one_of(st.sampled_from(JUNK), st.text(max_size=8))
_ANY = st.one_of(
    _ODD, st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.just(()), st.just({}), st.binary(max_size=3)
)


def _settings() -> st.SearchStrategy[dict[str, object]]:
    keys = st.one_of(st.sampled_from(KEYS), _ODD)
    return st.dictionaries(keys, st.one_of(st.sampled_from([*FLAGS, *NUMBERS]), _ANY), max_size=3)


def _bounds() -> st.SearchStrategy[dict[str, object]]:
    """Right bounds, with a wrong one now and then, of a wrong type too."""
    names = st.lists(mostly(tuple(Fault)), max_size=2)
    right = {
        "messages": st.integers(-1, 2),
        "faults": st.one_of(names.map(lambda some: frozenset(map(_fault, some))), names.map(frozenset), names),
        "max_faults": st.one_of(st.none(), st.integers(-1, 2), st.just(10**6)),
        "actions": st.lists(mostly(("recover", "rollback")), max_size=2).map(frozenset),
        "without": st.lists(mostly(("acknowledge", "accept")), max_size=2).map(frozenset),
    }
    wrong = st.dictionaries(st.sampled_from(sorted(right)), _ANY, max_size=1)
    return st.tuples(st.fixed_dictionaries({}, optional=right), st.one_of(st.just({}), st.just({}), wrong)).map(
        lambda both: {**both[0], **both[1]}
    )


def _fault(name: str) -> object:
    return Fault(name) if name in set(Fault) else name


def _limits() -> st.SearchStrategy[dict[str, object]]:
    limit = st.one_of(st.none(), st.integers(-1, 300))
    optional = {
        "max_memory": st.one_of(st.none(), st.integers(-1, 10**9)),
        "workers": st.one_of(st.none(), st.integers(-1, 3)),
        "forever": st.one_of(st.none(), st.lists(mostly(("recover", *Fault)), max_size=2)),
        "reductions": st.lists(mostly(("partial-order",)), max_size=2),
        "every_step": st.booleans(),
    }
    return st.fixed_dictionaries({"max_states": limit.filter(lambda most: most is not None)}, optional=optional)


@st.composite
def calls(draw_: st.DrawFn, laboratory: Laboratory) -> tuple[str, tuple[object, ...], dict[str, object]]:
    """The name of a public function with arguments for it."""
    path = st.one_of(
        _ODD.map(lambda name: laboratory.folder / name.replace("\0", "")), st.just(laboratory.folder / "kept")
    )
    profile = st.one_of(st.none(), mostly(tuple(Profile)))
    labels = st.lists(mostly(("send(m1)", "accept(m1)", "broker_crash", "confirm(m1)")), max_size=4)
    arguments: Mapping[str, Sequence[st.SearchStrategy[object]]] = {
        "tables.load": [path],
        "configure": [profile, _settings()],
        "resolve_aliases": [profile, _settings()],
        "parse_value": [st.one_of(st.sampled_from(KEYS), _ODD), _ANY],
        "check": [_bounds()],
        "replay": [mostly(tuple(Anomaly)), labels],
        "draw": [
            mostly(("entry", "loss")),
            st.sampled_from([draw.Format.DOT, draw.Format.MERMAID, draw.Format.TABLE]),
        ],
        "overview": [st.sampled_from([draw.Format.DOT, draw.Format.TABLE])],
        "export.files": [st.sampled_from(export.Format), _ODD],
        "history.read": [path],
        "history.read_header": [path],
        "make_plan": [profile, _settings()],
        "parse_workload": [_ODD],
        "inspect_file": [path],
        "inspect_sqlite": [path],
        "parse_bandwidth": [_ODD],
        "parse_duration": [_ODD],
        "Broker": [profile.filter(lambda name: name is not None)],
    }
    named: Mapping[str, st.SearchStrategy[dict[str, object]]] = {
        "compose": _bounds(),
        "check": _limits(),
        "make_plan": st.fixed_dictionaries(
            {}, optional={"messages": st.integers(-1, 2), "max_states": st.integers(-1, 5)}
        ),
        "Broker": _settings().map(lambda found: {key: value for key, value in found.items() if key in KEYS[1:]}),
    }
    name = draw_(st.sampled_from(sorted(PUBLIC)))
    given_ = tuple(draw_(one) for one in arguments.get(name, ()))
    return name, given_, draw_(named.get(name, st.just({})))
