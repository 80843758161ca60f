"""Lead a broker that is started here through every mode of every client, under every fault, and judge the runs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ackfsm.driving.conform import (
    BROKER_FAULTS,
    Claims,
    Limits,
    Operation,
    Report,
    Status,
)
from ackfsm.driving.live.adapter import LiveAdapter
from ackfsm.driving.live.brokers import BROKERS, RUNNING, Address, Broker
from ackfsm.driving.live.clients.drivers import Driver, drivers
from ackfsm.driving.live.coverage import Covered
from ackfsm.driving.live.driven import Driven
from ackfsm.driving.live.faults import disk, power
from ackfsm.driving.live.led import undone
from ackfsm.driving.live.load import Load, Loaded
from ackfsm.driving.live.nemeses import FAULTS, NEMESES
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault, InputError, Verdict
from ackfsm.text import in_words, meant, quoted
from ackfsm.verify.findings.performed import TableRow

__all__ = ["LiveReport", "claims_of", "live"]

_FAULTS: Final = frozenset(
    {
        Fault.BROKER_KILL,
        Fault.PRODUCER_LINK_LOSS,
        Fault.CONSUMER_LINK_LOSS,
        Fault.PRODUCER_CRASH,
        Fault.CONSUMER_CRASH,
    }
)
_OF_THE_MACHINE: Final[Mapping[Fault, Callable[[], str]]] = MappingProxyType(
    {Fault.BROKER_CRASH: power.lacks, Fault.JOURNAL_FAILURE: disk.lacks}
)
"""Faults that need something of this machine, and are struck if they are named; what is missing there."""
_DISK: Final = 256 * 2**20
"""Bytes of a disk that is filled at times; RabbitMQ wants 50 MB of it to be free else."""
_OPERATIONS: Final = frozenset({Operation.ACKNOWLEDGE, Operation.CLOSE, Operation.DURING})

Progress = Callable[[str, int, int], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveReport:
    """What a broker did.

    Attributes:
        broker: its name.
        version: the vendor's.
        reports: one for each client and mode; the name of its claims is that of the client.
        covered: for each of these the rows that were performed; ``None`` where they are not counted, as of a load.
        lacking: the clients that could not be had, with what is missing.
        folder: what the broker and its clients wrote, and the histories of violations.
        load: what clients did at once, ``None`` where they were led through programs.
    """

    broker: str
    version: str
    reports: tuple[Report, ...]
    covered: tuple[Covered | None, ...]
    lacking: Mapping[str, str]
    folder: Path
    load: Load | None = None

    @property
    def verdict(self) -> Verdict:
        """``invalid`` if one report is, ``unknown`` if one is or there is none, else ``valid``."""
        had = {report.verdict for report in self.reports}
        if Verdict.INVALID in had:
            return Verdict.INVALID
        return Verdict.VALID if had == {Verdict.VALID} else Verdict.UNKNOWN

    def counts(self) -> Mapping[Status, int]:
        """How many combinations of client, mode and fault there are of each status."""
        return {status: sum(report.counts()[status] for report in self.reports) for status in Status}

    def as_json(self) -> dict[str, Any]:
        """The answer of ``ackfsm live --json``."""
        return {
            "broker": self.broker,
            "version": self.version,
            "verdict": self.verdict.value,
            "counts": {status.value: count for status, count in self.counts().items()},
            "lacking": dict(self.lacking),
            "folder": str(self.folder),
            "clients": [
                {**report.as_json(), "rows": None if covered is None else covered.as_json()}
                for report, covered in zip(self.reports, self.covered, strict=True)
            ],
        }


def live(  # noqa: PLR0913 - by name
    broker: str,
    *,
    folder: Path,
    settings: Mapping[str, str],
    address: Address | None = None,
    kind: str = "",
    profile: str | None = None,
    clients: Collection[str] | None = None,
    ack_modes: Collection[AckMode] | None = None,
    consumptions: Collection[Consumption] | None = None,
    delivery_modes: Collection[DeliveryMode] = (DeliveryMode.PERSISTENT,),
    faults: Collection[Fault | None] | None = None,
    nemeses: Collection[str] = (),
    limits: Limits,
    load: Load | None = None,
    progress: Progress = lambda _what, _done, _of: None,
) -> LiveReport:
    """Start ``broker``, or find it at ``address``, and drive it by every client in every mode under every fault.

    Args:
        broker: one of :data:`ackfsm.driving.live.brokers.BROKERS`.
        folder: what broker and clients write, made if there is none.
        settings: by the vendor's names: of the broker those that it has, the others of each client that has them.
        address: where somebody else has started it, with these settings; it is not stopped.
        kind: of the queues.
        profile: by which the runs are judged, or the path of one; by default that of the client.
        clients: only these, by name; by default all that the broker serves.
        ack_modes: only these; by default all that the client has.
        consumptions: only these; by default all that the client has.
        delivery_modes: of the messages.
        faults: only these, ``None`` among them for none; by default all that need nothing of this machine.
        nemeses: of :data:`ackfsm.driving.live.nemeses.NEMESES`, beside the faults: as if each were a client more.
        limits: of each combination; ``runs`` are the programs that are drawn, after those of the tour.
        load: clients work at once, instead of programs.
        progress: called with what goes on, and with how many combinations of client and mode are done of how many.

    Raises :class:`InputError` for a name that there is not, and where broker or the named client cannot be had.
    """
    if broker not in BROKERS:
        raise InputError(
            f"there is no broker {quoted(broker)}{meant(broker, BROKERS)}; it is {in_words([*BROKERS], 'or')}"
        )
    kept = {name: value for name, value in settings.items() if name in BROKERS[broker].SETTINGS}
    others = {name: value for name, value in settings.items() if name not in kept}
    asked = _asked(broker, clients, others, asynchronous=load is not None and load.window > 1)
    found = [each.on(kind, load=load is not None) for each in asked]
    if strange := sorted(set(nemeses) - NEMESES.keys()):
        raise InputError(f"there is no nemesis {quoted(strange[0])}; there are {in_words([*NEMESES])}")
    if address is not None:
        found = _at(address, broker, found, [*(faults or ()), *nemeses])
    lacking = {each.client: why for each in found if (why := each.lacks())}
    if clients is not None and lacking:
        raise InputError(next(iter(lacking.values())))
    had = [each for each in found if each.client not in lacking]
    led_by = [*(had if faults is None or faults else ()), *(each.under(name) for name in nemeses for each in had)]
    struck = _FAULTS | {each for each in _OF_THE_MACHINE if each in (faults or ())}
    struck -= BROKER_FAULTS if address is not None else frozenset()
    if why_not := [why for each, lacks in _OF_THE_MACHINE.items() if each in struck and (why := lacks())]:
        raise InputError(why_not[0])
    cells = [
        (driver, mode, consumption)
        for driver in led_by
        for mode in driver.modes
        if ack_modes is None or mode in ack_modes
        for consumption in driver.consumptions
        if consumptions is None or consumption in consumptions
    ]
    if not cells:
        raise InputError("no client has what is asked for; leave out --client, --ack-mode or --consumption")
    reports, covered, performed = [], [], defaultdict[str, set[TableRow]](set)
    with _running(broker, folder, kept, struck, address) as running:
        for number, (driver, mode, consumption) in enumerate(cells):
            what = f"{driver.client} {mode} {consumption}"
            tell = functools.partial(_told, progress, what, number, len(cells))
            progress(what, number, len(cells))
            claims = claims_of(
                running, driver, mode, consumption, delivery_modes=delivery_modes, kind=kind, faults=struck
            )
            if profile is not None:
                claims = dataclasses.replace(claims, profile=profile)
            place = folder / what.lower().replace("_", "-").replace(" ", "-")
            driven = (
                _Driven(running, driver, claims, place, kind, performed[driver.profile])
                if load is None
                else Loaded(running, driver, claims, place, kind, load)
            )
            reports.append(driven.report(faults, limits, tell))
            covered.append(driven.covered())
        version = running.version
    return LiveReport(
        broker=broker,
        version=version,
        reports=tuple(reports),
        covered=tuple(covered),
        lacking=lacking,
        folder=folder,
        load=load,
    )


def _at(
    address: Address, broker: str, found: Collection[Driver], struck: Collection[Fault | str | None]
) -> list[Driver]:
    """The clients ``found``, connecting to where somebody else has started the broker, which nothing may stop."""
    if broker not in RUNNING:
        raise InputError(f"{broker} is driven only where it is started for that; leave out --url")
    stops = {name for name, each in NEMESES.items() if each.pauses or BROKER_FAULTS & set(each.faults)} | BROKER_FAULTS
    if stopped := [each for each in struck if each in stops]:
        raise InputError(
            f"{broker} at {address} was started by somebody else, and is not stopped; leave out --fault {stopped[0]}"
        )
    return [each.at(address, RUNNING[broker].PORTS[0].split()) for each in found]


@contextlib.contextmanager
def _running(
    broker: str, folder: Path, settings: Mapping[str, str], faults: Collection[Fault], address: Address | None
) -> Iterator[Broker]:
    """A broker that runs and can be struck so; what one that is started here wrote is in ``folder`` afterwards."""
    if address is not None:
        yield RUNNING[broker](address, settings)
        return
    place, notes = folder / "broker", folder / "power" if Fault.BROKER_CRASH in faults else None
    with contextlib.ExitStack() as stack:
        if Fault.JOURNAL_FAILURE not in faults:
            yield stack.enter_context(BROKERS[broker](place, settings, notes=notes))
            return
        full = stack.enter_context(disk.small_disk(folder / "disk", _DISK))
        stack.callback(shutil.copytree, full.folder, place, symlinks=True)
        yield stack.enter_context(BROKERS[broker](full.folder, settings, notes=notes, disk=full))


def _cancels(driver: Driver, consumption: Consumption) -> bool:
    """Whether programs close a consumer alone; a listener would hold the call up."""
    return driver.cancels and consumption is Consumption.RECEIVE


def _told(progress: Progress, what: str, done: int, of: int, cell: str) -> None:
    progress(f"{what} {cell}", done, of)


class _Driven(Driven):
    """A client in one mode with a broker that runs."""

    def __init__(  # noqa: PLR0913, PLR0917 - what is driven
        self, broker: Broker, driver: Driver, claims: Claims, place: Path, kind: str, performed: set[TableRow]
    ) -> None:
        self._nemesis, self._live = driver.nemesis, LiveAdapter(broker, driver, claims, place, kind=kind)
        cancels = _cancels(driver, next(claims.modes()).consumption)
        without = undone(self._live.specification, driver.outcomes, recovers=driver.recovers, cancels=cancels)
        super().__init__(self._live, place, performed, without=without, resends=broker.resends(driver.protocol))

    def report(
        self, faults: Collection[Fault | None] | None, limits: Limits, progress: Callable[[str], None]
    ) -> Report:
        """Drive it; a nemesis that was to stop the broker and met no call has shown nothing."""
        try:
            report = super().report(faults if self._nemesis is FAULTS else self._nemesis.faults, limits, progress)
        finally:
            self._live.end()
        if not self._nemesis.pauses or self._live.paused:
            return report
        why = "the broker was never stopped while a call was under way"
        cells = [
            dataclasses.replace(each, status=Status.UNKNOWN, why=why) if each.status is Status.OK else each
            for each in report.cells
        ]
        return dataclasses.replace(report, cells=tuple(cells))


def _asked(
    broker: str, clients: Collection[str] | None, settings: Mapping[str, str], *, asynchronous: bool
) -> Iterator[Driver]:
    known = {each.client: each for each in drivers(broker, settings, asynchronous=asynchronous)}
    asked = [driver for name, driver in known.items() if clients is None or name in clients]
    settable = {name: driver.client for driver in asked for name in driver.settable}
    if strange := [name for name in settings if name not in settable]:
        raise InputError(
            f"{broker} and its clients have no setting {quoted(strange[0])}{meant(strange[0], settable)}; "
            f"set one of {', '.join((*BROKERS[broker].SETTINGS, *settable))}"
        )
    for name in known if clients is None else clients:
        if name not in known:
            raise InputError(f"{broker} has no client {quoted(name)}{meant(name, known)}; it has {in_words([*known])}")
        yield known[name]


def claims_of(  # noqa: PLR0913 - what is driven
    broker: Broker,
    driver: Driver,
    mode: AckMode,
    consumption: Consumption,
    *,
    delivery_modes: Collection[DeliveryMode] = (DeliveryMode.PERSISTENT,),
    kind: str = "",
    faults: Collection[Fault] = _FAULTS,
) -> Claims:
    """Return what the tables have to hold of a client in one mode."""
    transacted = mode is AckMode.SESSION_TRANSACTED
    of_broker = dict(broker.settings(kind, driver.protocol))
    of_broker.pop("profile", None)
    return Claims(
        name=driver.client,
        profile=driver.profile,
        settings={**of_broker, **driver.configured(mode, consumption)},
        ack_modes=(mode,),
        delivery_modes=tuple(delivery_modes),
        consumptions=(consumption,),
        consumers=1 if driver.alone else 2,
        faults=frozenset(each for each in faults if each in driver.nemesis.faults)
        | ({Fault.LISTENER_EXCEPTION} if consumption is Consumption.LISTENER else set()),
        operations=_OPERATIONS
        | ({Operation.COMMIT, Operation.ROLLBACK} if transacted else set())
        | ({Operation.RECOVER} if driver.recovers and not transacted else set())
        | ({Operation.CANCEL} if _cancels(driver, consumption) else set()),
    )
