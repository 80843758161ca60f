"""Importers: from somebody else's log, trace or table to a history of format 1.

How a format is added:

* a module of this package has a function ``importer(options)`` that returns an :class:`Importer`;
* its :class:`Format` is added to :data:`FORMATS`, with the name of that module, which is loaded when it is asked for;
* :meth:`Importer.batches` reads in pieces and yields record batches of :data:`ackfsm.history.lines.SCHEMA`;
  :class:`ackfsm.history.importing.rows.Rows` makes them of single events,
  :func:`ackfsm.history.importing.streams.lines` reads text;
* what cannot be read is given to :class:`Problems`, never dropped: it becomes a line that cannot be read, so that the
  verdict is ``unknown``; what is deliberately not imported is given to :meth:`Problems.left_out`;
* what the source never shows stands in :attr:`Importer.cannot_show` with the reason; what only the input tells (a trace
  that was sampled) is added with :meth:`Problems.not_shown` meanwhile.

This module loads none of them, and needs the standard library alone.
"""

from ackfsm.history.importing._formats import FORMATS, Format, format_named
from ackfsm.history.importing.interface import Importer, Options, Problems, Unread

__all__ = ["FORMATS", "Format", "Importer", "Options", "Problems", "Unread", "format_named"]
