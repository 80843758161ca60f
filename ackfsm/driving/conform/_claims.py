"""What an implementation claims: its configuration, modes, faults and operations; checked before it is driven."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import AckMode, AckScope, Configuration, Consumption, DeliveryMode, Fault, InputError
from ackfsm.text import shown

BROKER_FAULTS = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})
"""Those after which the broker is down until it is restarted."""

_BY_APPLICATION = frozenset(
    {
        AckMode.CLIENT_ACKNOWLEDGE,
        AckMode.INDIVIDUAL_ACKNOWLEDGE,
        AckMode.EXPLICIT_CLIENT_ACKNOWLEDGE,
        AckMode.EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE,
    }
)


class Operation(StrEnum):
    """What an implementation need not have; ``send``, ``receive`` and ``depth`` all have."""

    ACKNOWLEDGE = "acknowledge"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    RECOVER = "recover"
    CLOSE = "close"
    CANCEL = "cancel"
    DURING = "during"
    """No call of its own: a fault may strike while a call is under way."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mode:
    """One way to use the broker: how messages are acknowledged, sent and consumed."""

    ack_mode: AckMode
    delivery_mode: DeliveryMode
    consumption: Consumption

    def __str__(self) -> str:
        return f"{self.ack_mode}, {self.delivery_mode}, {self.consumption}"

    @property
    def slug(self) -> str:
        """The mode as a part of a file's name."""
        return f"{self.ack_mode}-{self.delivery_mode}-{self.consumption}".lower().replace("_", "-")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What an implementation claims.

    Attributes:
        name: how it is called in reports.
        profile: the system whose promises it makes (``jms`` …), or the path of a profile of one's own.
        settings: what is different from the defaults of the profile.
        ack_modes, delivery_modes, consumptions: every combination of these is a mode that is judged.
        faults: those that can be injected into it.
        operations: what it has beside ``send``, ``receive`` and ``depth``.
        consumers: at most so many consume at once.
    """

    name: str
    profile: str = "jms"
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)
    ack_modes: tuple[AckMode, ...]
    delivery_modes: tuple[DeliveryMode, ...] = (DeliveryMode.PERSISTENT,)
    consumptions: tuple[Consumption, ...] = (Consumption.RECEIVE,)
    faults: frozenset[Fault] = frozenset()
    operations: frozenset[Operation] = frozenset()
    consumers: int = 2

    def modes(self) -> Iterator[Mode]:
        """Every combination that is claimed, in the order of the vocabulary."""
        for ack, delivery, how in itertools.product(AckMode, DeliveryMode, Consumption):
            if ack in self.ack_modes and delivery in self.delivery_modes and how in self.consumptions:
                yield Mode(ack, delivery, how)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The claims with the configuration of each mode, or the sentence that refuses it."""

    claims: Claims
    specification: Specification
    configurations: Mapping[Mode, Configuration]
    refused: Mapping[Mode, str]


def claimed(claims: Claims, specification: Specification) -> Claimed:
    """Check ``claims`` against the tables.

    Raises :class:`InputError` if they contradict themselves, name a setting that there is not, or if the profile has
    none of the claimed modes.
    """
    _check_operations(claims)
    known, name = specification.of_profile(claims.profile)
    configurations, refused = dict[Mode, Configuration](), dict[Mode, str]()
    for mode in claims.modes():
        try:
            configurations[mode] = _configured(known, name or claims.profile, claims, mode)
        except InputError as error:
            refused[mode] = str(error)
    if not configurations:
        why = next(iter(refused.values()), "no acknowledgement mode, delivery mode or consumption is claimed")
        raise InputError(f"{shown(claims.name)} claims no mode that its profile has: {why}")
    return Claimed(
        claims=claims,
        specification=known,
        configurations=MappingProxyType(configurations),
        refused=MappingProxyType(refused),
    )


def _configured(specification: Specification, profile: str, claims: Claims, mode: Mode) -> Configuration:
    own = {"ack_mode": mode.ack_mode, "delivery_mode": mode.delivery_mode, "consumption": mode.consumption}
    if twice := sorted(own.keys() & claims.settings.keys()):
        raise InputError(f"the settings name {twice[0]}, which the claimed modes decide; leave it out of the settings")
    vocabulary = specification.resolve_aliases(profile, {**claims.settings, **own})
    return specification.configure(None, {"profile": profile, **vocabulary})


def _check_operations(claims: Claims) -> None:
    needed = {mode: Operation.ACKNOWLEDGE for mode in claims.ack_modes if acknowledged_by_application(mode)}
    if AckMode.SESSION_TRANSACTED in claims.ack_modes:
        needed[AckMode.SESSION_TRANSACTED] = Operation.COMMIT
    for mode, operation in needed.items():
        if operation not in claims.operations:
            raise InputError(
                f"{shown(claims.name)} claims {mode} and not the operation {operation}, without which that cannot be "
                "driven; add the operation, or leave the mode out"
            )
    if Fault.LISTENER_EXCEPTION in claims.faults and Consumption.LISTENER not in claims.consumptions:
        raise InputError(
            f"{shown(claims.name)} claims the fault listener_exception and no consumption by listener; add the "
            "consumption, or leave the fault out"
        )


def acknowledged_by_application(mode: AckMode) -> bool:
    """Return whether the application has to acknowledge its deliveries."""
    return mode in _BY_APPLICATION


def scope_of(specification: Specification, configuration: Configuration) -> AckScope:
    """Which deliveries one ``acknowledge`` of the application covers, by the tables."""
    environment = specification.environment(configuration)
    conditions = specification.conditions
    if conditions[Condition.ACK_COVERS_LATER].holds(environment):
        return AckScope.SESSION
    return AckScope.UP_TO if conditions[Condition.ACK_COVERS_EARLIER].holds(environment) else AckScope.MESSAGE


def closing_gives_back(specification: Specification, configuration: Configuration) -> bool:
    """Whether a consumer that is closed gives back what its application has not acknowledged, by the tables."""
    return specification.conditions[Condition.CLOSE_GIVES_BACK].holds(specification.environment(configuration))
