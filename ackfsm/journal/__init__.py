"""Journals: durable logs of stores, removals and commits, in files, databases or memory, with crash tests.

All journals have the protocol :class:`Journal` and share one replay.  ``spec/machines/journal.yaml`` decides what
survives which failure.
"""

from ackfsm.journal._crashes import Enumeration, Violation, enumerate_crashes, random_crashes
from ackfsm.journal._damage import Damages, enumerate_corruptions
from ackfsm.journal._disk import Disk, OsDisk
from ackfsm.journal._entry import ATTEMPTS, JournalDamaged, JournalFailure, Kind
from ackfsm.journal._file import FileJournal
from ackfsm.journal._inspect import (
    Inspection,
    Integrity,
    compact_journal,
    inspect_file,
    inspect_journal,
    inspect_sqlite,
    kind_of,
    verify_journal,
)
from ackfsm.journal._memory import MemoryJournal
from ackfsm.journal._postgres import PostgresJournal
from ackfsm.journal._protocol import REMEMBERED, Compaction, Crashable, Journal
from ackfsm.journal._recovery import Live, Recovery, Torn
from ackfsm.journal._runs import Operation, every_run, parse_workload, random_run
from ackfsm.journal._simulated import DiskFaults, DiskState, Image, SimulatedDisk
from ackfsm.journal._sqlite import SqliteJournal

__all__ = [
    "ATTEMPTS",
    "REMEMBERED",
    "Compaction",
    "Crashable",
    "Damages",
    "Disk",
    "DiskFaults",
    "DiskState",
    "Enumeration",
    "FileJournal",
    "Image",
    "Inspection",
    "Integrity",
    "Journal",
    "JournalDamaged",
    "JournalFailure",
    "Kind",
    "Live",
    "MemoryJournal",
    "Operation",
    "OsDisk",
    "PostgresJournal",
    "Recovery",
    "SimulatedDisk",
    "SqliteJournal",
    "Torn",
    "Violation",
    "compact_journal",
    "enumerate_corruptions",
    "enumerate_crashes",
    "every_run",
    "inspect_file",
    "inspect_journal",
    "inspect_sqlite",
    "kind_of",
    "parse_workload",
    "random_crashes",
    "random_run",
    "verify_journal",
]
