"""``ackfsm plan``."""

from __future__ import annotations

import argparse
from typing import Final

from rich.console import Group
from rich.text import Text

from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import CONFIGURATION, Command, settings_of, tables_of
from ackfsm.cli._output import emit
from ackfsm.cli._simulate import SIMULATION, check_simulation, simulated, simulated_fault
from ackfsm.cli._sweep import SWEEP, is_swept, sweep
from ackfsm.cli._workload import WORKLOAD, workload_of
from ackfsm.rates import timing
from ackfsm.terms import InputError


def _plan(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views.plan import plan_json, plan_screen

    spreads = check_simulation(arguments)
    specification = tables_of(arguments)
    work = workload_of(arguments)
    if is_swept(arguments):
        if arguments.simulate is not None:
            raise InputError("--simulate is of one configuration; leave it out, or --sweep")
        return sweep(arguments, specification, settings_of(arguments, specification), work)
    given = settings_of(arguments, specification)
    counted = timing.in_messages(specification, arguments.profile, given, work.message_size)
    work = counted.of(work)
    if arguments.simulate is not None and work.credit is not None:
        raise InputError("--simulate knows no credit of a producer; leave it out, or the setting that is one")
    settings = specification.resolve_aliases(arguments.profile, counted.settings)
    configuration = specification.configure(None, settings, api=arguments.api)
    found = timing.plan(work, timing.waits_of(specification, configuration))
    ways = [*timing.ways_of_sending(specification, configuration, settings, work)]
    told, screens = plan_json(configuration, work, found, ways), [plan_screen(configuration, work, found, ways)]
    screens += [
        Text(f"{size} is {messages} with messages of {work.message_size:,} bytes.") for size, messages in counted.told
    ]
    if arguments.simulate is not None:
        from ackfsm.showing.views.plan_fault import fault_json, fault_screen
        from ackfsm.showing.views.plan_simulated import simulation_json, simulation_screen

        runs = simulated(specification, configuration, work, arguments, spreads)
        told["simulated"] = simulation_json(found, *runs, arguments.seed or 1, spreads)
        screens.append(simulation_screen(found, *runs))
        if arguments.fault_at is not None:
            broken = simulated_fault(specification, configuration, work, arguments, spreads)
            told["simulated"]["fault"] = fault_json(broken)
            screens.append(fault_screen(broken))
    emit(arguments, told, lambda: Group(*screens))
    return AS_PROMISED


COMMAND: Final = Command(
    "plan",
    _plan,
    "tell how many messages a second a configuration allows, what binds it and what would bind next",
    "ackfsm plan --profile solace --set send_mode=asynchronous --rtt 2ms --bandwidth 1Gib --message-size 1500",
    "explore",
    (*CONFIGURATION, *WORKLOAD, SIMULATION, SWEEP),
)
