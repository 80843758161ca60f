"""What a check is asked, in two lines."""

from __future__ import annotations

from rich.text import Text

from ackfsm.network import Network
from ackfsm.terms import Fault

__all__ = ["asked_lines"]


def asked_lines(network: Network) -> Text:
    """The configuration of ``network``, and within which bounds it was composed."""
    config, bounds = network.configuration, network.bounds
    names = "any fault" if bounds.faults == set(Fault) else ", ".join(sorted(bounds.faults)) or "no fault"
    times = "any number of times" if bounds.max_faults is None else f"at most {bounds.max_faults} in all"
    messages = f"{bounds.messages} message" + "s" * (bounds.messages > 1)
    return Text.assemble(
        (f"{config.profile}", "bold"),
        f": {config.delivery_mode}, {config.send_mode} send, {config.ack_mode}, {config.consumption}\n",
        f"{messages}; {names}, {times}",
    )
