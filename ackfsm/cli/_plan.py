"""``ackfsm plan``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ackfsm import throughput, timing
from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import Commands, add_configuration, at_least, command, settings_of, size, tables_of
from ackfsm.cli._output import emit
from ackfsm.cli._sweep import add_sweep, is_swept, sweep
from ackfsm.terms import InputError

__all__ = ["add_plan"]


def add_plan(commands: Commands) -> None:
    parser = command(
        commands,
        "plan",
        _plan,
        words=(
            "tell how many messages a second a configuration allows, what binds it and what would bind next",
            "ackfsm plan --profile solace --set send_mode=asynchronous --rtt 2ms --bandwidth 1Gib --message-size 1500",
        ),
        extra="explore",
    )
    add_configuration(parser)
    network = parser.add_argument_group("the network")
    network.add_argument("--rtt", metavar="TIME", default="0.25ms", help="the round trip (default: 0.25ms)")
    network.add_argument(
        "--bandwidth", metavar="BITS", default="1Gib", help="bits a second of each connection, or any (default: 1Gib)"
    )
    network.add_argument(
        "--bandwidth-back", metavar="BITS", help="the same from the broker to a client (default: that of --bandwidth)"
    )
    network.add_argument(
        "--message-size", metavar="BYTES", type=size, default=1500, help="a message on the wire (default: 1500)"
    )
    times = parser.add_argument_group("what takes time")
    for option, meaning in _TIMES.items():
        times.add_argument(f"--{option}", metavar="TIME", help=meaning)
    times.add_argument(
        "--group-commit",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a sync of the journal takes all that is written (default: yes)",
    )
    load = parser.add_argument_group("the load")
    load.add_argument("--producers", metavar="N", type=at_least(1), default=1, help="how many (default: 1)")
    load.add_argument("--consumers", metavar="N", type=at_least(1), default=1, help="how many (default: 1)")
    load.add_argument(
        "--per-commit", metavar="N", type=at_least(1), default=1, help="messages of a transaction (default: 1)"
    )
    load.add_argument(
        "--per-acknowledge",
        metavar="N",
        type=at_least(1),
        default=1,
        help="messages between two calls that acknowledge all so far (default: 1)",
    )
    load.add_argument("--rate", metavar="R", help="messages a second that there are to send (default: any number)")
    add_sweep(parser)


_TIMES = {
    "send-time": "work of a producer for each message (default: none)",
    "broker-time": "work of the broker for each message (default: none)",
    "sync-time": "a sync of the broker's journal (default: none)",
    "processing-time": "work of a consumer for each message (default: none)",
    "timer": "how long the broker waits for its threshold (default: 1s)",
}


def _plan(arguments: argparse.Namespace) -> int:
    from ackfsm.views.plan import plan_json, plan_screen

    specification = tables_of(arguments)
    work = _workload(arguments)
    if is_swept(arguments):
        return sweep(arguments, specification, settings_of(arguments, specification), work)
    settings = specification.resolve_aliases(arguments.profile, settings_of(arguments, specification))
    configuration = specification.configure(None, settings, api=arguments.api)
    found = timing.plan(work, timing.waits_of(specification, configuration))
    ways = [*timing.ways_of_sending(specification, configuration, settings, work)]
    emit(
        arguments,
        plan_json(configuration, work, found, ways),
        lambda: plan_screen(configuration, work, found, ways),
    )
    return AS_PROMISED


def _workload(arguments: argparse.Namespace) -> timing.Workload:
    """The numbers of the command line.  Raises :class:`InputError` naming the option."""
    bandwidth = _bandwidth(arguments.bandwidth, "--bandwidth")
    back = arguments.bandwidth_back
    times: dict[str, Any] = {
        option.replace("-", "_"): _read(throughput.parse_duration, text, f"--{option}")
        for option in _TIMES
        if (text := getattr(arguments, option.replace("-", "_"))) is not None
    }
    return timing.Workload(
        rtt=_read(throughput.parse_duration, arguments.rtt, "--rtt"),
        bandwidth=bandwidth,
        bandwidth_back=bandwidth if back is None else _bandwidth(back, "--bandwidth-back"),
        message_size=arguments.message_size,
        group_commit=arguments.group_commit,
        producers=arguments.producers,
        consumers=arguments.consumers,
        messages_per_commit=arguments.per_commit,
        messages_per_acknowledge=arguments.per_acknowledge,
        rate=None if arguments.rate is None else _read(_rate, arguments.rate, "--rate"),
        **times,
    )


def _bandwidth(text: str, option: str) -> Fraction | None:
    return None if text == "any" else _read(throughput.parse_bandwidth, text, option)


def _rate(text: str) -> Fraction:
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if rate <= 0:
        raise InputError(f"{text!r} is no rate; write messages a second, a number above 0")
    return rate


def _read(parse: Callable[[str], Fraction], text: str, option: str) -> Fraction:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
