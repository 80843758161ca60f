"""The options that say how much is sent over which network: the numbers of :class:`ackfsm.rates.timing.Workload`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from ackfsm.cli._options import Group, Option, at_least, size
from ackfsm.rates import timing
from ackfsm.support import throughput
from ackfsm.terms import InputError

_TIMES = {
    "send-time": "work of a producer for each message (default: none)",
    "broker-time": "work of the broker for each message (default: none)",
    "sync-time": "a sync of the broker's journal (default: none)",
    "processing-time": "work of a consumer for each message (default: none)",
    "timer": "how long the broker waits for its threshold (default: 1s)",
}

WORKLOAD: Final = (
    Group(
        "the network",
        (
            Option("--rtt TIME", "the round trip (default: 0.25ms)", default="0.25ms"),
            Option("--bandwidth BITS", "bits a second of each connection, or any (default: 1Gib)", default="1Gib"),
            Option("--bandwidth-back BITS", "the same from the broker to a client (default: that of --bandwidth)"),
            Option("--message-size BYTES", "a message on the wire (default: 1500)", size, 1500),
        ),
    ),
    Group(
        "what takes time",
        (
            *(Option(f"--{option} TIME", meaning) for option, meaning in _TIMES.items()),
            Option(
                "--group-commit",
                "a sync of the journal takes all that is written (default: yes)",
                default=True,
                action=argparse.BooleanOptionalAction,
            ),
        ),
    ),
    Group(
        "the load",
        (
            Option("--producers N", "how many (default: 1)", at_least(1), 1),
            Option("--consumers N", "how many (default: 1)", at_least(1), 1),
            Option("--per-commit N", "messages of a transaction (default: 1)", at_least(1), 1),
            Option(
                "--per-acknowledge N",
                "messages between two calls that acknowledge all so far (default: 1)",
                at_least(1),
                1,
            ),
            Option("--rate R", "messages a second that there are to send (default: any number)"),
        ),
    ),
)
"""The numbers of :class:`ackfsm.rates.timing.Workload`: the network, what takes time, the load."""


def workload_of(arguments: argparse.Namespace) -> timing.Workload:
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
        rate=None if arguments.rate is None else _read(throughput.parse_rate, arguments.rate, "--rate"),
        **times,
    )


def _bandwidth(text: str, option: str) -> Fraction | None:
    return None if text == "any" else _read(throughput.parse_bandwidth, text, option)


def _read(parse: Callable[[str], Fraction], text: str, option: str) -> Fraction:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
