"""``ackfsm live``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ackfsm.cli._conform import faults_of, limits_of, modes_of, program_options, seconds, words
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Command, Group, Option, at_least
from ackfsm.cli._output import emit, progress_bars
from ackfsm.terms import Consumption, DeliveryMode, InputError, Verdict
from ackfsm.text import quoted

if TYPE_CHECKING:
    from ackfsm.driving.live.load import Load


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


COMMAND: Final = Command(
    "live",
    _live,
    "start a real broker, lead it through every mode of every client under every fault, and judge it",
    "ackfsm live artemis --client qpid-jms --fault consumer_crash",
    "all",
    (
        Option("BROKER", "activemq, artemis, broker-j or rabbitmq (docs/live.md says how each is had)", dest="broker"),
        Option(
            "--url",
            "where artemis or rabbitmq runs already, as amqp://USER:PASSWORD@HOST:PORT; it is not stopped, and --set "
            "says what it is configured with",
            action="store",
        ),
        Option("--client C", "only this client; may be repeated", action="append"),
        Option("--consumption C", "only receive, or only listener", action="append"),
        Option("--delivery-mode M", "of the messages (default: PERSISTENT); may be repeated", action="append"),
        Option(
            "--set KEY=VALUE",
            "a setting by its vendor's name: of the broker if it is started with that, else of the clients that have "
            "it; may be repeated",
            dest="settings",
            repeated=True,
        ),
        Option("--profile P", "judge by this profile, or the file of one (default: that of the client)"),
        Option(
            "--queue KIND", "kind of the queues, as quorum of rabbitmq, or durable_subscription of topics", default=""
        ),
        Option(
            "--seconds SECONDS",
            "begin no further program of a combination after so long (default: no limit), but up to four until "
            "something is seen; of a load its length (default: 10)",
            seconds,
        ),
        Group(
            "load",
            (
                Option("--rate N", "messages a second, of all producers: drive a load", at_least(1)),
                Option("--clients N", "producers, and as many consumers, of a load (default: 2)", at_least(1)),
                Option(
                    "--window N",
                    "sends of a session that wait for their outcome at once; more than one are asynchronous "
                    "(default: 1)",
                    at_least(1),
                ),
            ),
            "clients at once instead of programs, one load for each mode and fault",
        ),
        *program_options(runs=3, also=", pause, delay, restart or blackhole (docs/live.md)"),
        Option(
            "--output DIR",
            "a new folder for what broker and clients write, and for the histories of violations (default: live)",
            Path,
            Path("live"),
        ),
    ),
)
