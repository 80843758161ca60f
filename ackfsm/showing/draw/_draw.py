"""The public functions: draw a machine, a property or the whole system, in any format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from ackfsm.checking.network import Bounds
from ackfsm.showing.draw._diagram import Diagram, make_diagram
from ackfsm.showing.draw._dot import dot
from ackfsm.showing.draw._mermaid import mermaid, system_mermaid
from ackfsm.showing.draw._plantuml import plantuml, system_plantuml
from ackfsm.showing.draw._render import png, svg
from ackfsm.showing.draw._system import System, make_system
from ackfsm.showing.draw._system_dot import system_dot
from ackfsm.showing.draw._system_svg import system_svg
from ackfsm.showing.draw._table import body, head, system_body, system_head
from ackfsm.tables import Specification
from ackfsm.terms import Configuration


class Format(StrEnum):
    """The form of a drawing."""

    DOT = "dot"
    SVG = "svg"
    PNG = "png"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"
    TABLE = "table"


_DIAGRAM: Final[Mapping[Format, Callable[[Diagram], str | bytes]]] = MappingProxyType(
    {
        Format.DOT: dot,
        Format.SVG: lambda diagram: svg(dot(diagram)),
        Format.PNG: lambda diagram: png(dot(diagram)),
        Format.MERMAID: mermaid,
        Format.PLANTUML: plantuml,
        Format.TABLE: lambda diagram: head(diagram) + body(diagram),
    }
)

_SYSTEM: Final[Mapping[Format, Callable[[System], str | bytes]]] = MappingProxyType(
    {
        Format.DOT: system_dot,
        Format.SVG: system_svg,
        Format.PNG: lambda system: png(system_dot(system)),
        Format.MERMAID: system_mermaid,
        Format.PLANTUML: system_plantuml,
        Format.TABLE: lambda system: system_head(system) + system_body(system),
    }
)


def draw(
    specification: Specification,
    name: str,
    form: Format,
    configuration: Configuration | None = None,
    bounds: Bounds | None = None,
) -> str | bytes:
    """The machine or the property ``name``: bytes for PNG, text for every other format.

    Args:
        specification: the tables.
        name: a key of ``specification.machines`` or ``specification.properties``.
        form: what to write it as.
        configuration: draw only the rows that hold under it, and dim what cannot happen under it (DOT, SVG and PNG
            leave out the states that are never reached, and name them); ``None`` draws every row, with its condition.
        bounds: which faults and optional actions there are, and how many faults; ``None`` means every action
            and any one fault.  They count only with a configuration.

    Diagrams show moves; :attr:`Format.TABLE` also has every event that is ignored or refused.
    Raises :class:`ackfsm.terms.InputError` if there is no such name, if the tables have no rows for a
    setting, or if SVG or PNG is asked for and there is no Graphviz.
    """
    return _DIAGRAM[form](make_diagram(specification, name, configuration, bounds))


def overview(
    specification: Specification,
    form: Format,
    configuration: Configuration | None = None,
) -> str | bytes:
    """The whole system: every machine in its lane, and the events by which one moves another.

    Arguments, result and errors are those of :func:`draw`, but SVG needs no Graphviz here.
    """
    return _SYSTEM[form](make_system(specification, configuration))
