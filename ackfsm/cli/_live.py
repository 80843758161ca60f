"""``ackfsm live``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ackfsm.cli._conform import add_programs, faults_of, limits_of, modes_of, seconds, words
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Commands, at_least, command
from ackfsm.cli._output import emit, progress_bars
from ackfsm.terms import Consumption, DeliveryMode, InputError, Verdict
from ackfsm.text import quoted

if TYPE_CHECKING:
    from ackfsm.driving.live.load import Load


def add_live(commands: Commands) -> None:
    parser = command(
        commands,
        "live",
        _live,
        words=(
            "start a real broker, lead it through every mode of every client under every fault, and judge it",
            "ackfsm live artemis --client qpid-jms --fault consumer_crash",
        ),
        extra="all",
    )
    parser.add_argument(
        "broker", metavar="BROKER", help="activemq, artemis, broker-j or rabbitmq (docs/live.md says how each is had)"
    )
    parser.add_argument(
        "--url",
        help="where artemis or rabbitmq runs already, as amqp://USER:PASSWORD@HOST:PORT; it is not stopped, and --set "
        "says what it is configured with",
    )
    parser.add_argument("--client", metavar="C", action="append", help="only this client; may be repeated")
    parser.add_argument("--consumption", metavar="C", action="append", help="only receive, or only listener")
    parser.add_argument(
        "--delivery-mode", metavar="M", action="append", help="of the messages (default: PERSISTENT); may be repeated"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="a setting by its vendor's name: of the broker if it is started with that, else of the clients that have "
        "it; may be repeated",
    )
    parser.add_argument(
        "--profile", metavar="P", help="judge by this profile, or the file of one (default: that of the client)"
    )
    parser.add_argument("--queue", metavar="KIND", default="", help="kind of the queues, as quorum of rabbitmq")
    parser.add_argument(
        "--seconds",
        metavar="SECONDS",
        type=seconds,
        default=None,
        help="begin no further program of a combination after so long (default: no limit), but up to four until "
        "something is seen; of a load its length "
        "(default: 10)",
    )
    load = parser.add_argument_group("load", "clients at once instead of programs, one load for each mode and fault")
    load.add_argument("--rate", metavar="N", type=at_least(1), help="messages a second, of all producers: drive a load")
    load.add_argument(
        "--clients", metavar="N", type=at_least(1), help="producers, and as many consumers, of a load (default: 2)"
    )
    load.add_argument(
        "--window",
        metavar="N",
        type=at_least(1),
        help="sends of a session that wait for their outcome at once; more than one are asynchronous (default: 1)",
    )
    add_programs(parser, runs=3, also=", pause, delay, restart or blackhole (docs/live.md)")
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path("live"),
        help="a new folder for what broker and clients write, and for the histories of violations (default: live)",
    )


def _live(arguments: argparse.Namespace) -> int:
    from ackfsm.driving.conform import Limits
    from ackfsm.driving.live.brokers import Address
    from ackfsm.driving.live.campaign import live
    from ackfsm.driving.live.nemeses import NEMESES
    from ackfsm.driving.live.screen import live_screen

    if arguments.output.exists():
        raise InputError(f"{quoted(str(arguments.output))} is there already; name another folder with --output")
    load = _load(arguments)
    with progress_bars() as progress:
        report = live(
            arguments.broker,
            folder=arguments.output,
            settings=dict(map(_setting, arguments.settings)),
            address=None if arguments.url is None else Address.of(arguments.url),
            kind=arguments.queue,
            profile=arguments.profile,
            clients=arguments.client,
            ack_modes=modes_of(arguments),
            consumptions=None
            if arguments.consumption is None
            else words("--consumption", Consumption, arguments.consumption),
            delivery_modes=words("--delivery-mode", DeliveryMode, arguments.delivery_mode or ["PERSISTENT"]),
            faults=faults_of(arguments, NEMESES),
            nemeses=[name for name in arguments.fault or () if name in NEMESES],
            limits=Limits(**limits_of(arguments), seconds=arguments.seconds),
            load=load,
            progress=lambda _, done, of: progress("clients and modes", done, of),
        )
    emit(arguments, report.as_json(), lambda: live_screen(report))
    return result_code(violated=report.verdict is Verdict.INVALID, undetermined=report.verdict is Verdict.UNKNOWN)


def _load(arguments: argparse.Namespace) -> Load | None:
    from ackfsm.driving.live.load import Load

    told = {name: getattr(arguments, name) for name in ("seconds", "clients", "window")}
    if arguments.rate is not None:
        return Load(rate=arguments.rate, **{name: value for name, value in told.items() if value is not None})
    for name in ("clients", "window"):
        if told[name] is not None:
            raise InputError(f"--{name} is of a load; say its --rate as well")
    return None


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {quoted(text)}: say KEY=VALUE")
    return name, value
