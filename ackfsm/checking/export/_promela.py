"""Promela, for Spin: a variable for each machine, a deterministic step for each event, a claim for each anomaly.

Measured with Spin 6.5.2 and gcc 12 -O2 on 256,190 states and 786,423 transitions (63 machines, 68 events), medians:
bit fields (``unsigned x : 3``) 0.53 s and 28 bytes a state, ``bit`` and ``byte`` 0.57 s and 60, ``byte`` alone 0.82 s
and 76; ``atomic`` in the place of ``d_step`` 0.64 s; guards that look a state up in a mask
(``(28 >> x) & 1``) 0.65 s. So: bit fields, ``d_step``, plain comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ackfsm.checking.export._about import about
from ackfsm.checking.export._model import Action, Marks, Model, Names, Part, Property, Variable, model
from ackfsm.checking.network import Network

_PROMELA = """
active assert atomic bit bool break byte chan do else empty enabled end eval false fi full get_priority hidden if init
inline int len ltl mtype nempty never nfull notrace np_ od of pc_value pid printf printm priority proctype provided
return run select set_priority short show skip sv timeout trace true typedef unless unsigned xr xs AT_REST
"""
_C = """
auto case char const continue default double enum extern float for goto long register restrict signed sizeof static
struct switch union void volatile while linux unix i386
"""
_RESERVED = frozenset(f"{_PROMELA} {_C}".split())
"""Words of Promela, words of C (variables become fields of a struct), names that the C preprocessor replaces."""

_HOW_TO = """\
How to run it:
  spin -o2 -a FILE                      -o2: do not hide machines that are only written; they count as state
  gcc -O2 -DSAFETY -DNOREDUCE -DNOCLAIM -o count pan.c
  ./count -m1000000                     all states; of its transitions one is the initial state
  gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c
  ./pan -m1000000 -N p_loss             errors: 0 where the anomaly cannot happen; any other p_... below
  spin -t -p FILE                       the steps of what was found; of a shortest one if gcc was given -DBFS
-m is the depth of the search: more, if it says that the depth is too small."""


def promela(network: Network) -> str:
    """``network`` as a Promela model, ready for ``spin -a``; its head says which commands count and judge it."""
    return "\n".join(_Writing(model(network, _RESERVED)).lines()) + "\n"


class _Writing:
    def __init__(self, written: Model) -> None:
        self.model = written
        self.numbers = _numbers(written.variables)
        names = Names(_RESERVED)
        self.constants = {place: names.new(" ".join(place)).upper() for place in self.numbers if not _counts(place)}

    def lines(self) -> Iterator[str]:
        yield from _comment([*about(self.model.network), "", *_HOW_TO.splitlines()])
        yield from ("", *_comment(["States, by machine."]))
        yield from (f"#define {name} {self.numbers[place]}" for place, name in self.constants.items())
        yield from ("", *_comment(["Machines, each in its first state."]))
        yield from map(self.declaration, self.model.variables)
        yield from ("", *_comment(["When each event can happen."]))
        yield from (f"#define may_{action.name} ({self.guard(action)})" for action in self.model.actions)
        yield from ("", *self.rest(), "", *self.behaviour())
        for claimed in self.model.properties:
            yield from ("", *self.claim(claimed))

    def declaration(self, variable: Variable) -> str:
        bits = max(1, max(self.numbers[variable.kind, state] for state in variable.states).bit_length())
        initial = self.state(variable, variable.initial)
        return f"bit {variable.name} = {initial};" if bits == 1 else f"unsigned {variable.name} : {bits} = {initial};"

    def state(self, variable: Variable, state: str) -> str:
        place = (variable.kind, state)
        return self.constants.get(place, str(self.numbers[place]))

    def guard(self, action: Action) -> str:
        return " && ".join(self.allowing(part) for part in action.parts if part.refusing) or "true"

    def allowing(self, part: Part) -> str:
        if len(part.refusing) < len(part.after):
            return " && ".join(f"{part.variable.name} != {self.state(part.variable, s)}" for s in part.refusing)
        return self.is_one_of(part.variable, part.after)

    def is_one_of(self, variable: Variable, states: Iterable[str]) -> str:
        terms = [f"{variable.name} == {self.state(variable, state)}" for state in states]
        return terms[0] if len(terms) == 1 else f"({' || '.join(terms)})"

    def rest(self) -> Iterator[str]:
        yield from _comment(["At rest nothing can happen but faults and what an application may choose to do."])
        waited_for = [f"may_{action.name}" for action in self.model.actions if not action.event.may_never_happen]
        yield f"#define AT_REST (!({' || '.join(waited_for) or 'false'}))"

    def behaviour(self) -> Iterator[str]:
        yield from ("init {", "end:", "    do")
        for action in self.model.actions:
            reasons = [reason for part in action.parts for reason in part.reasons()]
            yield from (f"    {line}" for line in _comment([action.event.label, *(f"  {why}" for why in reasons)]))
            yield f"    :: d_step {{ may_{action.name} -> {self.effect(action)} }}"
        if not self.model.actions:
            yield "    :: false"
        yield from ("    od", "}")

    def effect(self, action: Action) -> str:
        return "; ".join(f"{part.variable.name} = {self.next(part)}" for part in action.parts if part.moving) or "skip"

    def next(self, part: Part) -> str:
        variable, targets = part.variable, dict.fromkeys(part.after.values())
        if len(targets) == 1:
            return self.state(variable, next(iter(targets)))
        numbers = {self.numbers[variable.kind, s]: self.numbers[variable.kind, t] for s, t in part.after.items()}
        steps = {after - before for before, after in numbers.items()}
        if len(steps) == 1 and self.state(variable, variable.initial).isdecimal():
            return f"{variable.name} {'+' if max(steps) > 0 else '-'} {abs(max(steps))}"
        value = variable.name
        for target in dict.fromkeys(part.moving.values()):
            sources = [state for state, after in part.moving.items() if after == target]
            value = f"({self.is_one_of(variable, sources)} -> {self.state(variable, target)} : {value})"
        return value

    def claim(self, claimed: Property) -> Iterator[str]:
        """The automaton that Spin would make of ``ltl { [] !is_... }``, whose parser takes no formula so long."""
        terms = [*self.marks(claimed.always)]
        if claimed.at_rest:
            terms.append(f"AT_REST && ({' || '.join(self.marks(claimed.at_rest))})")
        yield f"#define is_{claimed.name} ({' || '.join(terms) or 'false'})"
        yield f"never p_{claimed.name} {{ do :: is_{claimed.name} -> break :: else od }}"

    def marks(self, marks: Marks) -> Iterator[str]:
        return (self.is_one_of(variable, states) for variable, states in marks)


def _counts(place: tuple[str, str]) -> bool:
    """Return whether a state is a number, as the states of counters are."""
    return place[1].isdecimal()


def _numbers(variables: Iterable[Variable]) -> dict[tuple[str, str], int]:
    """The number of every state of every kind of machine: a count is itself."""
    places = dict.fromkeys((variable.kind, state) for variable in variables for state in variable.states)
    numbers: dict[tuple[str, str], int] = {place: int(place[1]) for place in places if _counts(place)}
    taken: dict[str, int] = {}
    for (kind, _), number in numbers.items():
        taken[kind] = max(taken.get(kind, 0), number + 1)
    for kind, state in places:
        if (kind, state) not in numbers:
            numbers[kind, state] = taken.get(kind, 0)
            taken[kind] = taken.get(kind, 0) + 1
    return {place: numbers[place] for place in places}


def _comment(lines: Iterable[str]) -> Iterator[str]:
    first, *rest = (line.replace("*/", "* /").replace("/*", "/ *") for line in lines)
    if not rest:
        yield f"/* {first} */"
        return
    yield f"/* {first}"
    yield from (f" * {line}".rstrip() for line in rest)
    yield " */"
