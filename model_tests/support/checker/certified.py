"""Certificates of small proofs, for tests."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from ackfsm.checking.certificates import Certificate, Invariant, Verification, network_of, verify_certificate
from ackfsm.checking.network import observers_of
from ackfsm.checking.unbounded import Level, prove
from ackfsm.tables import Specification
from ackfsm.terms import Fault
from model_tests.support.tables import shipped

FEW = frozenset({Fault.CONSUMER_LINK_LOSS})
WAITS_FOR_NOTHING = {"block_on_acknowledge": False}
"""Whose proofs are small."""


def certified(  # noqa: PLR0913 - what is proved, of what, and how
    profile: str = "jms",
    settings: Mapping[str, object] | None = None,
    only: Collection[str] | None = None,
    *,
    faults: Iterable[Fault] = FEW,
    actions: Collection[str] = (),
    levels: Sequence[Level] = (Level.CHAOS,),
    tables: Specification | None = None,
    localize: bool = False,
) -> Certificate:
    """The certificate of all that is proved of a configuration at these levels, by default with all machines."""
    specification = tables or shipped()
    configuration = specification.configure(profile, WAITS_FOR_NOTHING if settings is None else settings)
    proof = prove(
        specification,
        configuration,
        only,
        faults=frozenset(faults),
        actions=actions,
        levels=levels,
        keep_invariants=True,
        localize=localize,
    )
    return proof.certificate(specification)


def verified(certificate: Certificate, tables: Specification | None = None) -> Verification:
    """What comes of looking through it, with the network that it is about."""
    specification = tables or shipped()
    return verify_certificate(sealed(certificate, specification), specification)


def sealed(certificate: Certificate, tables: Specification | None = None) -> Certificate:
    """The same with the SHA-256 of its network, whatever was changed in it."""
    return dataclasses.replace(certificate, network=hashlib.sha256(network_bytes(certificate, tables)).hexdigest())


def network_bytes(certificate: Certificate, tables: Specification | None = None) -> bytes:
    """Its network, written once for all certificates of the same question."""
    specification = tables or shipped()
    asked = dataclasses.replace(certificate, network="", invariants=(), not_covered={})
    key = id(specification), repr(asked)
    if key not in _NETWORKS:
        _NETWORKS[key] = specification, network_of(certificate, specification)
    return _NETWORKS[key][1]


_NETWORKS: dict[tuple[int, str], tuple[Specification, bytes]] = {}


def claiming(invariant: Invariant, anomalies: Collection[str]) -> Invariant:
    """The same views, which are said to show that none of ``anomalies`` can happen; of a message of one copy."""
    watchers = tuple((str(name), monitor.machine.name) for name, monitor in observers_of(shipped(), anomalies))
    return dataclasses.replace(invariant, watchers=watchers)
