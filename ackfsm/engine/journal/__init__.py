"""Journals: durable logs of stores, removals and commits, in files, databases or memory, with crash tests.

All journals have the protocol :class:`Journal` and share one replay.  ``spec/machines/journal.yaml`` decides what
survives which failure.
"""

from ackfsm.engine.journal._crashes import Enumeration, Violation, enumerate_crashes, random_crashes
from ackfsm.engine.journal._damage import Damages, enumerate_corruptions
from ackfsm.engine.journal._disk import Disk, OsDisk
from ackfsm.engine.journal._entry import ATTEMPTS, JournalDamaged, JournalFailure, Kind
from ackfsm.engine.journal._file import FileJournal
from ackfsm.engine.journal._inspect import (
    Inspection,
    Integrity,
    compact_journal,
    inspect_file,
    inspect_journal,
    inspect_sqlite,
    kind_of,
    verify_journal,
)
from ackfsm.engine.journal._memory import MemoryJournal
from ackfsm.engine.journal._postgres import PostgresJournal
from ackfsm.engine.journal._protocol import REMEMBERED, Compaction, Crashable, Journal
from ackfsm.engine.journal._recovery import Live, Recovery, Torn
from ackfsm.engine.journal._runs import Operation, parse_workload, random_run
from ackfsm.engine.journal._simulated import DiskFaults, DiskState, Image, SimulatedDisk
from ackfsm.engine.journal._sqlite import SqliteJournal

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
    "inspect_file",
    "inspect_journal",
    "inspect_sqlite",
    "kind_of",
    "parse_workload",
    "random_crashes",
    "random_run",
    "verify_journal",
]
