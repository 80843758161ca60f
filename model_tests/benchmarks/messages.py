"""How many messages the searches of ackfsm, Spin, TLC and Stateright manage: so many seconds, so many bytes, one core.

Run ``python -m model_tests.benchmarks.messages`` (``--help`` tells more).  The system is ``jms`` with everything that
may fail once.  Each search gets one message more until it does not end within the limits, and has to find as many
states as the symbolic search counts, else the benchmark fails.  Seconds are of processor time and memory is what was
resident at most, of a process of its own; building a verifier is not part of it, reading the system is.
Where Spin, gcc, TLC, or cargo (which builds Stateright from crates.io) is missing, its line is.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ackfsm import tables
from ackfsm.checking.explore import Slicer, SymbolicOptions, explore_symbolically
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Fault
from model_tests.benchmarks.rivals import SPIN_DEPTH, has_spin, has_tlc, spin_verifier, tlc_command

__all__ = ["SEARCHES", "Limits", "main"]

_STATERIGHT = Path(__file__).parent / "stateright"
_TARGET = Path(tempfile.gettempdir()) / "ackfsm-stateright"
_SPIN_SLOTS = 26


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one search may take: seconds of processor time, and mebibytes."""

    seconds: int
    mebibytes: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """What a search that ended in time has found and taken; ``states`` is ``None`` where it did not end."""

    states: int | None
    seconds: float
    mebibytes: float


_Command: TypeAlias = tuple[Sequence[str], str]
"""What is run, and the pattern of the number of states in what it prints."""

_Prepared: TypeAlias = Callable[[Network, int, Path, Limits], _Command]
"""Writes what a search needs into a folder, and returns the command; the number is that of messages."""


def system(messages: int) -> Network:
    """The network of ``jms`` with so many messages."""
    specification = tables.load()
    return compose(specification, specification.configure("jms"), Bounds(messages=messages, faults=frozenset(Fault)))


_OURS = """
import sys
from ackfsm.checking.explore import SearchOptions, SymbolicOptions, explore, explore_symbolically
from model_tests.benchmarks.messages import system
network = system(int(sys.argv[2]))
if sys.argv[1] == "symbolic":
    found = explore_symbolically(network)
else:
    found = explore(network, SearchOptions(workers=1))
if found.complete:
    print("states", found.states)
"""


def _ours(kind: str) -> _Prepared:
    def prepared(network: Network, messages: int, folder: Path, limits: Limits) -> _Command:
        del network, folder, limits
        return (sys.executable, "-c", _OURS, kind, str(messages)), r"states (\d+)"

    return prepared


def _spin(network: Network, messages: int, folder: Path, limits: Limits) -> _Command:
    """The verifier as in ``explore``; with compressed states (``-DCOLLAPSE``) it took longer, and managed no more."""
    del messages
    verifier = spin_verifier(network, folder, f"-DMEMLIM={limits.mebibytes}")
    return (verifier, "-E", f"-m{SPIN_DEPTH}", f"-w{_SPIN_SLOTS}"), r"(\d+) states, stored"


def _tlc(network: Network, messages: int, folder: Path, limits: Limits) -> _Command:
    del messages
    command = tlc_command(network, folder, f"{limits.mebibytes * 9 // 10}m", f"-Djava.io.tmpdir={folder}")
    return command, r"(?s)Model checking completed.*?([\d,]+) distinct states found"


def _stateright(network: Network, messages: int, folder: Path, limits: Limits) -> _Command:
    """The composed system as columns of numbers, for the program beside this file."""
    del messages, limits
    packed = Slicer(network).slice().packed
    numbers = [len(packed.size), *packed.initial, len(packed.free)]
    for event in range(len(packed.free)):
        parts = range(packed.first[event], packed.first[event + 1])
        numbers.append(len(parts))
        for part in parts:
            machine = packed.instance[part]
            size, offset = packed.size[machine], packed.offset[part]
            numbers += [machine, size, *packed.table[offset : offset + size]]
    (folder / "network.txt").write_text(" ".join(map(str, numbers)), encoding="ascii")
    return (str(_TARGET / "release" / "tables"), "network.txt"), r"(\d+) \d+"


def _stateright_is_built() -> bool:
    """Whether there is cargo, and it builds the program."""
    if shutil.which("cargo") is None:
        return False
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(_TARGET)]
    return subprocess.run(command, cwd=_STATERIGHT, check=False).returncode == 0


_REFERENCE = "ackfsm, symbolic"

SEARCHES: Mapping[str, tuple[_Prepared, Callable[[], bool]]] = {
    _REFERENCE: (_ours("symbolic"), lambda: True),
    "ackfsm, state by state": (_ours("local"), lambda: True),
    "Spin": (_spin, has_spin),
    "TLC": (_tlc, has_tlc),
    "Stateright": (_stateright, _stateright_is_built),
}
"""Each search, and whether it is there."""


def run(command: Sequence[str], pattern: str, folder: Path, limits: Limits) -> Ended:
    """The command within the limits, on one core."""

    def limited() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
        if command[0] != "java":  # it reserves more than it uses; -Xmx bounds it
            resource.setrlimit(resource.RLIMIT_AS, (limits.mebibytes << 20, limits.mebibytes << 20))

    output = folder / "output"
    with output.open("w", encoding="utf-8") as told:
        where = folder if command[0] != sys.executable else None
        process = subprocess.Popen(command, cwd=where, stdout=told, stderr=subprocess.STDOUT, preexec_fn=limited)  # noqa: PLW1509 - no threads here
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    found = re.search(pattern, output.read_text(encoding="utf-8", errors="replace"))
    whole = process.returncode == 0 and found is not None and "max search depth too small" not in output.read_text()
    states = int(found[1].replace(",", "")) if whole and found is not None else None
    mebibytes = used.ru_maxrss / 1024
    if mebibytes > limits.mebibytes:
        states = None
    return Ended(states, used.ru_utime + used.ru_stime, mebibytes)


def measured(name: str, limits: Limits, first: int, most: int) -> Iterator[tuple[int, Ended]]:
    """What a search finds with ``first`` messages, one more, and so on up to as many as it does not manage."""
    prepare, _ = SEARCHES[name]
    for messages in range(first, most + 1):
        network = system(messages)
        with tempfile.TemporaryDirectory(prefix="ackfsm-messages-") as folder:
            command, pattern = prepare(network, messages, Path(folder), limits)
            ended = run(command, pattern, Path(folder), limits)
        if ended.states is not None and name != _REFERENCE:
            counted = explore_symbolically(network, SymbolicOptions()).states
            if ended.states != counted:
                raise SystemExit(f"{name} found {ended.states:,} states of {messages} messages, not {counted:,}")
        yield messages, ended
        if ended.states is None:
            return


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="append", choices=list(SEARCHES), help="only this one (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="processor time of each search (default: 60)")
    parser.add_argument("--mebibytes", type=int, default=4096, help="memory of each search (default: 4096)")
    parser.add_argument("--first", type=int, default=1, help="begin with so many messages (default: 1)")
    parser.add_argument("--most", type=int, default=99, help="no more messages than that")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    limits, results = Limits(chosen.seconds, chosen.mebibytes), {}
    if not chosen.json:
        sys.stdout.write(f"{'':24}{'messages':>9}{'states':>26}{'seconds':>9}{'MB':>7}   one more ended after\n")
    for name in chosen.search or SEARCHES:
        if not SEARCHES[name][1]():
            continue
        results[name] = list(measured(name, limits, chosen.first, chosen.most))
        if not chosen.json:
            _print(name, results[name])
    if chosen.json:
        json.dump({name: {n: vars(one) for n, one in found} for name, found in results.items()}, sys.stdout)


def _print(name: str, found: Sequence[tuple[int, Ended]]) -> None:
    done = [(messages, ended) for messages, ended in found if ended.states is not None]
    more = found[-1][1]
    if not done:
        sys.stdout.write(f"{name:24} not {found[0][0]}: ended after {more.seconds:.1f} s, {more.mebibytes:.0f} MB\n")
        return
    messages, ended = done[-1]
    line = f"{name:24}{messages:>9}{ended.states:>26,}{ended.seconds:>9.1f}{ended.mebibytes:>7.0f}"
    over = f"   {more.seconds:.1f} s, {more.mebibytes:.0f} MB" if more.states is None else ""
    sys.stdout.write(f"{line}{over}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
