"""Make a program that fails smaller, as long as it fails alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from model_tests.applications.programs import Consume, Phase, Program, Send, Wait

__all__ = ["shrunk"]


def shrunk(program: Program, fails: Callable[[Program], bool], *, tries: int = 2_000) -> Program:
    """The smallest program that ``fails`` and is reached by leaving out phases, clients and settings one by one."""
    left = tries
    while True:
        for smaller in _smaller(program):
            left -= 1
            if left < 0:
                return program
            if fails(smaller):
                program = smaller
                break
        else:
            return program


def _smaller(program: Program) -> Iterator[Program]:  # noqa: C901, PLR0912 - one case after the other
    """Programs with less in them, the boldest first."""
    phases = program.phases
    size = len(phases) // 2
    while size:
        for start in range(0, len(phases), size):
            yield dataclasses.replace(program, phases=phases[:start] + phases[start + size :])
        size //= 2
    for name in ("senders", "workers"):
        cast = getattr(program, name)
        for n in range(1, len(cast)):
            yield dataclasses.replace(program, **{name: cast[:n] + cast[n + 1 :]})
    for key in program.settings:
        yield dataclasses.replace(program, settings={k: v for k, v in program.settings.items() if k != key})
    for n, phase in enumerate(phases):
        for simpler in _simpler(phase):
            yield dataclasses.replace(program, phases=(*phases[:n], simpler, *phases[n + 1 :]))
    for n, worker in enumerate(program.workers):
        plainer = [dataclasses.replace(worker, queues=worker.queues[:1]), dataclasses.replace(worker, output=None)]
        for other in plainer:
            if other != worker:
                yield dataclasses.replace(program, workers=(*program.workers[:n], other, *program.workers[n + 1 :]))
    if program.pace != "AtOnce()":
        yield dataclasses.replace(program, pace="AtOnce()")
    if "loss" in program.pace:
        yield dataclasses.replace(program, pace=f"{program.pace.partition(',')[0]})")
    if program.seed:
        yield dataclasses.replace(program, seed=0, pace=program.pace.replace(str(program.seed), "0"))


def _simpler(phase: Phase) -> Iterator[Phase]:
    if isinstance(phase, Send | Consume | Wait) and phase.strike is not None:
        yield dataclasses.replace(phase, strike=None)
        if phase.strike.on:
            yield dataclasses.replace(phase, strike=dataclasses.replace(phase.strike, on=""))
        if phase.strike.after > 1:
            yield dataclasses.replace(phase, strike=dataclasses.replace(phase.strike, after=phase.strike.after // 2))
            yield dataclasses.replace(phase, strike=dataclasses.replace(phase.strike, after=phase.strike.after - 1))
    if isinstance(phase, Send | Consume) and phase.number > 1:
        yield dataclasses.replace(phase, number=1)
        yield dataclasses.replace(phase, number=phase.number - 1)
    if isinstance(phase, Send) and phase.mixed:
        yield dataclasses.replace(phase, mixed=False)
