"""Certificates: what ``check --messages any`` has proved, in a file that can be checked again without what made it.

A certificate has inductive invariants: sets of views (``spec/any.md``) that hold the first view, and with each view all
that it leads to.  :func:`verify_certificate` shares the tables with the search that found them, and no code.
"""

from ackfsm.checking.certificates._format import Certificate, Invariant, Level, Way, read_certificate, write_certificate
from ackfsm.checking.certificates._verify import Verification, network_of, verify_certificate

__all__ = [
    "Certificate",
    "Invariant",
    "Level",
    "Verification",
    "Way",
    "network_of",
    "read_certificate",
    "verify_certificate",
    "write_certificate",
]
