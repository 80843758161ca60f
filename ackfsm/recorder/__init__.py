"""Record histories of format 1 beside the calls of one's own code.

``Recorder`` has a method or a context manager for each event; ``HistoryHandler`` takes them from ``logging``.  Clients
of pika, aio-pika, Qpid Proton and stomp.py are wrapped by :mod:`ackfsm.recorder.pika`, :mod:`ackfsm.recorder.aio_pika`,
:mod:`ackfsm.recorder.proton` and :mod:`ackfsm.recorder.stomp`.
"""

from ackfsm.recorder.handler import HistoryHandler
from ackfsm.recorder.lines import RecordingError
from ackfsm.recorder.recorder import Recorder, Sending

__all__ = ["HistoryHandler", "Recorder", "RecordingError", "Sending"]
