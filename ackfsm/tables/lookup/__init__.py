"""Which rows of the tables decide: by setting, event, mode, machine; each with its file and line."""

from ackfsm.tables.lookup._cells import CALLS, Cell, Place, TableRow
from ackfsm.tables.lookup._find import BASELINES, Answer, Lookup, Reference
from ackfsm.tables.lookup._seen import SEEN, RowKey, read_seen, row_keys, seen_text
from ackfsm.tables.lookup._space import Difference, Space

__all__ = [
    "BASELINES",
    "CALLS",
    "SEEN",
    "Answer",
    "Cell",
    "Difference",
    "Lookup",
    "Place",
    "Reference",
    "RowKey",
    "Space",
    "TableRow",
    "read_seen",
    "row_keys",
    "seen_text",
]
