"""Certificates of the matrix for any number of messages: ``python -m model_tests.certified_matrix --draw 20``.

Systems of the matrix are drawn and decided, and what is proved of each goes into a certificate, which the verifier
looks through.  Prints of each how much of what is proved its certificate has, what that leaves out, the views, and the
seconds of both; exit code 1 if a certificate is not verified, or lacks something that is proved.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from ackfsm import tables
from ackfsm.checking.certificates import verify_certificate
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded import decide
from ackfsm.tables import Specification
from ackfsm.tables.batch import batch
from ackfsm.terms import Configuration, Fault
from model_tests.any_number import configurations_of_matrix, first_of, names_of

__all__ = ["Certified", "certify", "main"]

_RESENT = {"once": False, "twice": True}
"""What ``resend_in_doubt`` is where a message may be sent so often."""

_BOUNDS = Bounds(messages=1, faults=frozenset(Fault), max_faults=None)


class Certified(NamedTuple):
    """What came of the certificate of one system.

    ``lacking`` has what is proved without one; ``wrong`` is empty if the certificate is verified.
    """

    proved: int
    lacking: tuple[str, ...]
    views: int
    decided_in: float
    verified_in: float
    wrong: str

    @property
    def is_whole(self) -> bool:
        """Whether the certificate is verified, with all that is proved."""
        return not self.wrong and not self.lacking

    def __str__(self) -> str:
        found = self.wrong or "verified"
        left_out = f", without {', '.join(self.lacking)}" if self.lacking else ""
        return (
            f"{found}: {self.proved - len(self.lacking)} of {self.proved} impossible{left_out}; {self.views:,} views, "
            f"decided in {self.decided_in:.1f} s, looked through in {self.verified_in:.1f} s"
        )


def certify(specification: Specification, configurations: Sequence[Configuration]) -> list[Certified]:
    """Decide each, and look through its certificate."""
    return [_certified(specification, each) for each in configurations]


def _certified(specification: Specification, configuration: Configuration) -> Certified:
    begun = time.perf_counter()
    decision = decide(specification, configuration, _BOUNDS, workers=1, keep_invariants=True)
    certificate = decision.certificate(specification)
    decided_in = time.perf_counter() - begun
    found = verify_certificate(certificate, specification)
    every = {**{str(name): one for name, one in decision.findings.items()}, **decision.ends}
    impossible = [name for name, finding in every.items() if finding.reachable is False]
    lacking = tuple(name for name in impossible if name not in certificate.proved)
    wrong = "; ".join(f"{name}: {why}" for name, why in (*found.refuted.items(), *found.undetermined.items()))
    return Certified(len(impossible), lacking, certificate.views, decided_in, found.seconds, wrong)


def main() -> int:
    """Draw systems, and print what comes of their certificates."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.certified_matrix", description=__doc__)
    parser.add_argument("--draw", type=int, default=None, metavar="N", help="so many systems (default: all)")
    parser.add_argument("--sent", choices=tuple(_RESENT), help="those alone where a message may be sent so")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes (default: 1)")
    arguments = parser.parse_args()
    specification = tables.load()
    asked = set(_RESENT.values()) if arguments.sent is None else {_RESENT[arguments.sent]}
    every = [each for each in configurations_of_matrix(specification) if each.resend_in_doubt in asked]
    first = first_of(specification, every, arguments.jobs)
    names = names_of(specification, first)
    keys = sorted(first, key=names.__getitem__)
    random.Random(arguments.seed).shuffle(keys)
    drawn = keys[: arguments.draw]
    certified: list[Certified] = []
    with batch(specification, arguments.jobs) as work:
        for index, found in work.as_they_come(certify, [[first[key]] for key in drawn]):
            certified += found
            sys.stdout.write(f"{names[drawn[index]]}: {found[0]}\n")
            sys.stdout.flush()
    proved, lacking = sum(one.proved for one in certified), sum(len(one.lacking) for one in certified)
    verified = sum(not one.wrong for one in certified)
    sys.stdout.write(
        f"{verified} of {len(certified)} verified; {proved - lacking:,} of {proved:,} impossible have one\n"
    )
    medians = [
        statistics.median(each) for each in zip(*((one.decided_in, one.verified_in) for one in certified), strict=True)
    ]
    sys.stdout.write("in the median decided in {:.1f} s, looked through in {:.1f} s\n".format(*medians))
    return int(not all(one.is_whole for one in certified))


if __name__ == "__main__":
    sys.exit(main())
