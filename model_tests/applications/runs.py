"""Run a program on an engine, and have it judged: by the application's books, by ``verify``, by the model."""

from __future__ import annotations

import traceback

from ackfsm.engine import Timed
from model_tests.applications import programs
from model_tests.applications.books import Wrong
from model_tests.applications.clients import Client
from model_tests.applications.faults import Faults
from model_tests.applications.programs import Program, Worker
from model_tests.applications.reports import Failure, Report
from model_tests.applications.testbed import Molds, Testbed
from model_tests.support.engine.refinement import DEAD_LETTERS

__all__ = ["Run", "perform"]

_MANY = 20_000
"""An engine that does more by itself does not come to rest."""


class Run:
    """One run of a program."""

    def __init__(self, program: Program, molds: Molds, *, observed: bool = True) -> None:
        self.program = program
        self.bed = Testbed(program, molds, observed=observed)
        self._clients = [
            *(Client(self.bed, f"s{n}", role) for n, role in enumerate(program.senders)),
            *(Client(self.bed, f"w{n}", role) for n, role in enumerate(program.workers)),
        ]
        self._faults = Faults(self.bed, self._clients)
        for client in self._clients:
            client.open()

    def go(self) -> Failure | None:
        """Run it; what is wrong with it, if anything is."""
        try:
            for phase in self.program.phases:
                self._phase(phase)
                self._look()
            self._drain()
            self._look()
            self.bed.books.check()
            if self.bed.refinement is not None:
                self.bed.refinement.check()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return self._failed(error)
        return None

    def _look(self) -> None:
        if self.bed.noted is not None:
            raise self.bed.noted
        if self.bed.books.wrong:
            raise Wrong("\n".join(dict.fromkeys(self.bed.books.wrong)))
        if self.bed.refinement is not None and self.bed.refinement.refused is not None:
            self.bed.refinement.check()

    def _failed(self, error: Exception) -> Failure:
        items = self.bed.books.items
        if isinstance(error, Wrong):
            return Failure("books", str(error), items)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, AssertionError) and frame.filename.endswith("engine_refinement.py"):
            return Failure("model", str(error), items)
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        return Failure("raised", f"{type(error).__name__}: {error} ({place})", items)

    def _phase(self, phase: programs.Phase) -> None:  # noqa: C901 - one case for each kind
        match phase:
            case programs.Send():
                client = self._sender(phase.who)
                client.open()
                with self._faults.during(phase.strike, client):
                    self._send(client, phase)
            case programs.Consume():
                client = self._worker(phase.who)
                client.open()
                with self._faults.during(phase.strike, client):
                    self._consume(client, phase)
            case programs.Resend():
                self._sender(phase.who).resend()
            case programs.Wait():
                client = self._sender(phase.who)
                if client.is_open and client.producer is not None:
                    with self._faults.during(phase.strike, client), self.bed.answers(client.session):
                        client.producer.wait()
            case programs.Recover():
                self._recover(self._worker(phase.who))
            case programs.Throw():
                self._worker(phase.who).throws = phase.number
            case programs.Fault():
                self._faults.strike(phase.kind, self._clients[phase.who % len(self._clients)])
            case programs.Close():
                self._faults.close(self._clients[phase.who % len(self._clients)], returns=phase.returns)
            case programs.Restart():
                self._faults.restart(phase.how)
            case programs.Refuse():
                self.bed.broker.queue(phase.queue).refuse_next = phase.number
            case programs.Rest():
                self._rest(phase.steps)

    def _sender(self, who: int) -> Client:
        return self._clients[who % len(self.program.senders)]

    def _worker(self, who: int) -> Client:
        return self._clients[len(self.program.senders) + who % len(self.program.workers)]

    def _send(self, client: Client, phase: programs.Send) -> None:
        for number in range(phase.number):
            if client.session.closed:
                return
            client.send(mode="NON_PERSISTENT" if phase.mixed and number % 2 and self._may_be_mixed() else None)
        if client.terms.transacted and phase.end:
            client.end(phase.end)

    def _may_be_mixed(self) -> bool:
        mixed = {**self.program.settings, "delivery_mode": "NON_PERSISTENT"}
        return not self.program.is_modelled and programs.configured(self.program.profile, mixed) is not None

    def _consume(self, client: Client, phase: programs.Consume) -> None:  # noqa: C901 - one case after the other
        listens = client.mode[1] == "listener"
        last = None
        for number in range(phase.number):
            if client.session.closed:
                return
            if listens:
                self._rest(4)
                continue
            message = client.receive(client.consumers[number % len(client.consumers)], phase.timeout)
            if message is None or client.session.closed:
                continue
            last = message
            item = self.bed.books.items.get(message.id)
            if item is not None:
                client.send_output(item)
            if phase.end == "each":
                client.finish(message)
        if client.session.closed:
            return
        if listens:
            last = client.unacknowledged[-1] if client.unacknowledged else None
        if phase.end == "rollback":
            self._recover(client)
        elif phase.end != "none" and last is not None:
            client.finish(last)

    def _recover(self, client: Client) -> None:
        if not client.is_open:
            return
        if client.terms.transacted:
            client.end("rollback")
            return
        self.bed.books.recovered(client.session.name)  # before the call, in which a listener may have it all again
        client.unacknowledged.clear()
        with self.bed.answers(client.session):
            client.session.recover()

    def _rest(self, steps: int | None) -> None:
        is_over = self.bed.rest(_MANY if steps is None else steps)
        if steps is None and not is_over:
            raise Wrong(f"the engine does not come to rest in {_MANY:,} steps")

    # The end

    def _drain(self) -> None:
        pace = self.bed.broker.loop.scheduler
        if isinstance(pace, Timed):
            pace.heal()
        for client in self._clients:
            client.throws = 0
            if self.program.ending == "die" and not self.bed.is_modelled:
                client.die()
        self._rest(None)
        for client in self._clients:
            client.close()
        self._rest(None)
        if not self.bed.broker.running:
            self.bed.broker.restart()
        for queue in sorted(self.bed.broker.queues.keys() - {DEAD_LETTERS}):
            self._empty(queue)
        self._rest(None)
        self.bed.bury()
        if any(worker.ack_mode == "PRE_ACKNOWLEDGE" for worker in self.program.workers):
            self.bed.books.interrupted += self.bed.books.faults
        self.bed.broker.drained()

    def _empty(self, queue: str) -> None:
        """Fresh sessions take all that is left."""
        mode, consumption = self._draining_mode()
        drainer = Client(self.bed, f"d{queue}", Worker((queue,), None, mode, consumption))
        self._clients.append(drainer)
        for _ in range(len(self.bed.books.items) + 2):
            drainer.open()
            if consumption == "receive":
                while (message := drainer.receive(drainer.consumers[0], None)) is not None:
                    drainer.finish(message)
            else:
                self._rest(None)
            drainer.close()
            if not self.bed.broker.queue(queue).length:
                return
        raise Wrong(f"queue {queue} holds {self.bed.broker.queue(queue).length} messages, and gives them to nobody")

    def _draining_mode(self) -> tuple[str, str]:
        if self.program.is_modelled:
            return self.bed.first_mode()
        modes = programs.modes(self.program.profile, self.program.settings)
        return min(modes, key=lambda each: (each[1] != "receive", _LEAST_HARM.index(each[0])))


_LEAST_HARM = (
    "CLIENT_ACKNOWLEDGE",
    "INDIVIDUAL_ACKNOWLEDGE",
    "SESSION_TRANSACTED",
    "EXPLICIT_CLIENT_ACKNOWLEDGE",
    "AUTO_ACKNOWLEDGE",
    "DUPS_OK_ACKNOWLEDGE",
    "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE",
    "PRE_ACKNOWLEDGE",
    "NO_ACKNOWLEDGE",
)


def perform(program: Program, molds: Molds, *, twice: bool = True, verified: bool = True) -> Report:
    """Run ``program`` and judge it.

    With ``twice`` it runs again unobserved, for then an engine takes another, faster way, and must tell the same; not
    where a fault strikes between two events, which only an observer can see.
    """
    run = Run(program, molds)
    failure, bed = run.go(), run.bed
    configurations = list(dict.fromkeys((*bed.sending, *bed.consuming)))
    if failure is None and verified:
        many = any(len(set(worker.queues)) < len(worker.queues) for worker in program.workers)
        said = molds.yardstick.judge(
            bed.history,
            configurations,
            bed.first_configuration,
            many=many,
            without=bed.books.stale,
            alike=len(bed.consuming) == 1,
        )
        failure = None if said is None else Failure("verify", said, run.bed.books.items)
    if failure is None and twice and not _is_struck_between(program):
        again = Run(program, molds, observed=False)
        failure = again.go() or _different(run, again)
    return Report(failure, bed.events, bed.feats, list(bed.sending), list(bed.consuming))


def _is_struck_between(program: Program) -> bool:
    strikes = [strike for phase in program.phases if (strike := getattr(phase, "strike", None)) is not None]
    return any(strike.on or not program.pace.startswith("Timed") for strike in strikes)


def _different(run: Run, again: Run) -> Failure | None:
    for one, other in zip(run.bed.history.lines, again.bed.history.lines, strict=False):
        if one != other:
            return Failure("unobserved", f"{one} was told where nobody observed as {other}", run.bed.books.items)
    if len(run.bed.history.lines) != len(again.bed.history.lines):
        return Failure("unobserved", "more was told to whom observed, or less", run.bed.books.items)
    return None
