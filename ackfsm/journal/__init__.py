"""Journals: logs of what is stored, removed and committed, that survive what they promise to survive.

All journals have the protocol :class:`Journal` and share one replay.  What may survive which failure is said by
``spec/machines/journal.yaml``.
"""

from ackfsm.journal._disk import Disk, OsDisk
from ackfsm.journal._entry import ATTEMPTS, JournalDamaged, JournalFailure, Kind
from ackfsm.journal._file import FileJournal
from ackfsm.journal._memory import MemoryJournal
from ackfsm.journal._protocol import REMEMBERED, Compaction, Journal
from ackfsm.journal._recovery import Live, Recovery, Torn
from ackfsm.journal._simulated import DiskFaults, DiskState, Image, SimulatedDisk

__all__ = [
    "ATTEMPTS",
    "REMEMBERED",
    "Compaction",
    "Disk",
    "DiskFaults",
    "DiskState",
    "FileJournal",
    "Image",
    "Journal",
    "JournalDamaged",
    "JournalFailure",
    "Kind",
    "Live",
    "MemoryJournal",
    "OsDisk",
    "Recovery",
    "SimulatedDisk",
    "Torn",
]
