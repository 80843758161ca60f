"""TLA+, for TLC: a variable for each machine, an action for each event, an invariant for each anomaly.

A record with a field for each machine would need no ``UNCHANGED``, but then every state of a trace would be shown
whole: TLC's ``-difftrace`` shows the variables that changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ackfsm.checking.export._about import about
from ackfsm.checking.export._model import Action, Marks, Model, Part, Property, Variable, model
from ackfsm.checking.network import Network

_OR, _AND = " \\/ ", " /\\ "

RESERVED = frozenset({"Init", "Next", "Spec", "AtRest", "machines", "nothing"})
"""What a module calls its own, so that no variable can have the name."""

_NOTHING, _NEVER = "nothing", "FALSE /\\ UNCHANGED machines"
"""What TLC needs where nothing can move: a variable, and a next state that is no constant."""

_HOW_TO = """\
How to run it, with the .cfg file that goes with it:
  java -cp tla2tools.jar tlc2.TLC -deadlock -difftrace -config NAME.cfg NAME.tla
-deadlock: a system may come to its end.  One of the states generated is the initial one, the others are the steps.
TLC stops at the first invariant that does not hold; to count all states, take the INVARIANT lines out of NAME.cfg."""


def tla(network: Network, name: str) -> str:
    """``network`` as the TLA+ module ``name``, which must be the name of its file without ``.tla``."""
    return "\n".join(_Writing(model(network, RESERVED), name).lines()) + "\n"


def tla_configuration(network: Network) -> str:
    """What TLC's ``.cfg`` file for the module of :func:`tla` says: every anomaly is asked for."""
    invariants = [f"INVARIANT {_invariant(asked)}" for asked in model(network, RESERVED).properties]
    return "\n".join(["INIT Init", "NEXT Next", *invariants]) + "\n"


class _Writing:
    def __init__(self, written: Model, name: str) -> None:
        self.model = written
        self.name = name
        self.names = [variable.name for variable in written.variables] or [_NOTHING]

    def lines(self) -> Iterator[str]:
        yield f" MODULE {self.name} ".center(120, "-")
        yield from _comment([*about(self.model.network), "", *_HOW_TO.splitlines()])
        yield from ("", *self.machines())
        for action in self.model.actions:
            yield from ("", *self.action(action))
        yield from ("", *_joined("Next ==", " \\/", [action.name for action in self.model.actions] or [_NEVER]))
        yield from ("", "Spec == Init /\\ [][Next]_machines", "")
        yield from _comment(["At rest nothing can happen but faults and what an application may choose to do."])
        waited_for = [f"may_{action.name}" for action in self.model.actions if not action.event.may_never_happen]
        yield from _joined("AtRest == ~(", " \\/", waited_for or ["FALSE"], ")")
        for asked in self.model.properties:
            yield f"{_invariant(asked)} == ~({_anomaly(asked)})"
        yield "=" * 120

    def machines(self) -> Iterator[str]:
        first = [f"{one.name} = {_text(one.initial)}" for one in self.model.variables] or [f"{_NOTHING} = 0"]
        yield from _joined("VARIABLES", ",", self.names)
        yield from ("", *_joined("machines == <<", ",", self.names, ">>"))
        yield from ("", "Init ==", *(f"    /\\ {term}" for term in first))

    def action(self, action: Action) -> Iterator[str]:
        reasons = [reason for part in action.parts for reason in part.reasons()]
        yield from _comment([action.event.label, *(f"  {reason}" for reason in reasons)])
        guard = _AND.join(_allowing(part) for part in action.parts if part.refusing) or "TRUE"
        yield f"may_{action.name} == {guard}"
        yield f"{action.name} =="
        yield f"    /\\ may_{action.name}"
        moved = [part for part in action.parts if part.moving]
        yield from (f"    /\\ {part.variable.name}' = {_next(part)}" for part in moved)
        still = [name for name in self.names if name not in {part.variable.name for part in moved}]
        yield from _joined("    /\\ UNCHANGED <<", ",", still, ">>") if still else ()


def _invariant(asked: Property) -> str:
    return f"no_{asked.name}"


def _anomaly(asked: Property) -> str:
    terms = [*_marks(asked.always)]
    if asked.at_rest:
        terms.append(f"(AtRest /\\ ({_OR.join(_marks(asked.at_rest))}))")
    return _OR.join(terms) or "FALSE"


def _marks(marks: Marks) -> Iterator[str]:
    return (_is_one_of(variable, states) for variable, states in marks)


def _allowing(part: Part) -> str:
    if len(part.refusing) < len(part.after):
        return _AND.join(f"{part.variable.name} # {_text(state)}" for state in part.refusing)
    return _is_one_of(part.variable, part.after)


def _is_one_of(variable: Variable, states: Iterable[str]) -> str:
    chosen = [_text(state) for state in states]
    return f"{variable.name} = {chosen[0]}" if len(chosen) == 1 else f"{variable.name} \\in {{{', '.join(chosen)}}}"


def _next(part: Part) -> str:
    targets = dict.fromkeys(part.after.values())
    if len(targets) == 1:
        return _text(next(iter(targets)))
    value = part.variable.name
    for target in dict.fromkeys(part.moving.values()):
        sources = [state for state, after in part.moving.items() if after == target]
        value = f"IF {_is_one_of(part.variable, sources)} THEN {_text(target)} ELSE {value}"
    return value


def _text(state: str) -> str:
    return f'"{state}"'


def _joined(head: str, mark: str, terms: Iterable[str], tail: str = "") -> Iterator[str]:
    text = f"{head} {f'{mark} '.join(terms)}{tail}"
    yield from textwrap.wrap(text, 120, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)


def _comment(lines: Iterable[str]) -> Iterator[str]:
    yield from (f"\\* {line}".rstrip() for line in lines)
