"""The pytest plugin runs asynchronous applications under the same faults, with the same guarantees."""

from __future__ import annotations

import pytest

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import SOME, Run, example, run
from model_tests.support.whole import WHOLE, in_turn

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]

_BOOK = """
import asyncio, functools
from ackfsm.engine.aio import AsyncConnection

async def book(connection, done):
    assert isinstance(connection, AsyncConnection)
    async with connection:
        consumer = connection.session().consumer("q")
        while (message := await consumer.receive(0)) is not None:
            done(message)
            await message.acknowledge()

async def book_early(connection, done):
    consumer = connection.session().consumer("q")
    async for message in consumer:
        await message.acknowledge()
        done(message)

class Booking:
    def __init__(self, done):
        self.done = done
    async def __call__(self, connection):
        await book(connection, self.done)
    async def method(self, connection):
        await book(connection, self.done)
"""

_FORMS = [
    "lambda connection: book(connection, ackfsm.processed)",
    "functools.partial(book, done=ackfsm.processed)",
    "functools.partial(functools.partial(book), done=ackfsm.processed)",
    "functools.partial(lambda connection: book(connection, ackfsm.processed))",
    "Booking(ackfsm.processed)",
    "Booking(ackfsm.processed).method",
    "lambda connection: asyncio.wait_for(book(connection, ackfsm.processed), 30)",
]


def test_whatever_returns_something_to_await_is_run(run: Run) -> None:
    tests = [
        f"""
@SETTINGS
@pytest.mark.ackfsm_faults("consumer_crash", "broker_kill", never=["unprocessed", "loss"])
def test_{number}(ackfsm):
    ackfsm.send("q", "a", "b")
    ackfsm.run({application})
    assert ackfsm.fault_run.by_application
"""
        for number, application in enumerate(_FORMS)
    ]
    tried = 38 if WHOLE else 5
    result = run(_BOOK + "".join(tests), f"--ackfsm-points={tried}")
    result.assert_outcomes(passed=len(_FORMS))
    result.stdout.fnmatch_lines([f"ackfsm: {7 * tried} of {7 * 38} fault points tried in 7 tests; a sample by *"])


def test_who_acknowledges_too_early_is_found_also_among_tasks(run: Run) -> None:
    result = run(
        f"""{_BOOK}
@SETTINGS
@pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
def test(ackfsm):
    ackfsm.send("q", "a", "b")
    ackfsm.run(lambda connection: book_early(connection, ackfsm.processed))
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["fault point 8:consumer_crash: *", "unprocessed of outside.1-1: *"])


def test_the_example_passes_at_every_point(run: Run) -> None:
    result = run(example("booked_by_tasks"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ackfsm: * of * fault points tried in 1 test"])


def test_no_task_of_a_dead_process_goes_on(run: Run) -> None:
    run(
        """
        import asyncio
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            after = []
            lives = []
            async def application(connection):
                lives.append(connection)
                consumer = connection.session().consumer("q")
                mine = len(lives)
                async def watch():
                    while True:
                        await asyncio.sleep(0)
                        if ackfsm._process is None or len(lives) > mine or ackfsm._process.dead:
                            after.append("watch")
                async def work():
                    while (message := await consumer.receive(0)) is not None:
                        await asyncio.sleep(0)
                        await message.acknowledge()
                watcher = asyncio.create_task(watch())
                try:
                    await work()
                finally:
                    watcher.cancel()
            ackfsm.send("q", "a", "b")
            ackfsm.run(application)
            assert not after
        """
    ).assert_outcomes(passed=1)


def test_a_listener_that_is_a_coroutine_throws_before_its_work_and_after(run: Run) -> None:
    run(
        """
        import asyncio
        def listening(ackfsm):
            async def listen(message):
                await asyncio.sleep(0)
                ackfsm.processed(message)
            async def application(connection):
                connection.session().consumer("q", listener=listen)
            ackfsm.send("q", "m", "n")
            ackfsm.run(application)
        pytestmark = pytest.mark.ackfsm("jms", ack_mode="AUTO_ACKNOWLEDGE")
        @pytest.mark.ackfsm_faults("listener_exception", never=["unprocessed"])
        def test_passes(ackfsm):
            listening(ackfsm)
        @pytest.mark.xfail(strict=True, raises=pytest.fail.Exception)
        @pytest.mark.ackfsm_faults("listener_exception", never=["reprocessed"])
        def test_fails(ackfsm):
            listening(ackfsm)
        """
    ).assert_outcomes(passed=1, xfailed=1)


def test_an_application_that_waits_for_more_is_stopped_when_nothing_more_can_come(run: Run) -> None:
    run(
        """
        import asyncio
        async def for_more(consumer):
            [message async for message in consumer]
        WAITS = [
            lambda consumer: consumer.receive(None),
            lambda consumer: asyncio.Event().wait(),
            lambda consumer: asyncio.gather(consumer.receive(None), asyncio.Event().wait()),
            for_more,
        ]
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
        @pytest.mark.parametrize("waits", WAITS)
        def test(ackfsm, waits):
            async def application(connection):
                consumer = connection.session().consumer("q")
                while (message := await consumer.receive(0)) is not None:
                    ackfsm.processed(message)
                    await message.acknowledge()
                await waits(consumer)
            ackfsm.send("q", "m")
            ackfsm.run(application)
        """
    ).assert_outcomes(passed=4)


def test_who_does_not_let_itself_be_stopped_is_ended(run: Run) -> None:
    result = run(
        """
        import asyncio
        @SETTINGS
        def test(ackfsm):
            async def application(connection):
                connection.session().consumer("q")
                while True:
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        pass
            ackfsm.run(application)
        def test_polls(ackfsm):
            async def application(connection):
                consumer = connection.session().consumer("q")
                while True:
                    await consumer.receive(timeout=1)
            ackfsm.run(application)
        """
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*the application waits for ever: nothing is left that could wake its tasks, *CancelledError*",
            "*10,000 calls in a row, the last of them AsyncConsumer.receive(timeout=1), *",
        ]
    )


def test_tasks_that_wait_for_nothing_are_ended_by_the_clock(run: Run) -> None:
    result = run(
        """
        import asyncio
        def test(ackfsm):
            async def application(connection):
                while True:
                    await asyncio.sleep(0)
            ackfsm.run(application)
        """,
        "--ackfsm-timeout=1",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*has not come to an end after 1 seconds of the clock*"])


def test_work_in_another_thread_is_waited_for(run: Run) -> None:
    run(
        """
        import asyncio, time
        @SETTINGS
        def test(ackfsm):
            async def application(connection):
                consumer = connection.session().consumer("q")
                async for message in consumer:
                    await asyncio.to_thread(time.sleep, 0.05)
                    ackfsm.processed(message)
                    await message.acknowledge()
            ackfsm.send("q", "m")
            ackfsm.run(application)
        """
    ).assert_outcomes(passed=1)


def test_warnings_of_the_application_are_shown(run: Run) -> None:
    result = run(
        """
        import warnings
        @pytest.mark.filterwarnings("default")
        @SETTINGS
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, lambda message: warnings.warn("old API")))
        """
    )
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*UserWarning: old API"])


@pytest.mark.parametrize("options", [(), ("-Werror",)])
def test_a_coroutine_that_is_not_awaited_fails_the_test(run: Run, options: tuple[str, ...]) -> None:
    result = run(
        """
        import asyncio
        @pytest.mark.ackfsm("jms", ack_mode="CLIENT_ACKNOWLEDGE")
        @pytest.mark.ackfsm_faults("broker_kill")
        @pytest.mark.parametrize("forgets", ["its own", "the acknowledgement"])
        def test(ackfsm, forgets):
            async def forgotten(message):
                ackfsm.processed(message)
            async def application(connection):
                consumer = connection.session().consumer("q")
                while (message := await consumer.receive(0)) is not None:
                    if forgets == "its own":
                        await message.acknowledge()
                        forgotten(message)
                    else:
                        message.acknowledge()
                        await asyncio.sleep(0)
            ackfsm.send("q", "m")
            ackfsm.run(application)
        """,
        *options,
    )
    result.assert_outcomes(failed=2)
    said = [
        "*coroutine '*forgotten' was never awaited: *",
        "*coroutine 'AsyncMessage.acknowledge' was never awaited: *",
    ]
    result.stdout.fnmatch_lines(said)


@pytest.mark.parametrize(
    ("application", "said"),
    [
        ("lambda connection: work(connection.session())", "*make it `async def`, *"),
        ("yields", "*the application is a generator (async_generator), *"),
        ("lambda connection: [work(connection)]", "*was never awaited*"),
    ],
)
def test_what_cannot_be_awaited_is_refused(run: Run, application: str, said: str) -> None:
    result = run(
        f"""
        async def work(anything):
            pass
        async def yields(connection):
            yield connection
        def test(ackfsm):
            ackfsm.run({application})
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


def test_what_is_refused_warns_of_nothing_afterwards(run: Run) -> None:
    """A coroutine that nobody awaits says so when it is collected, in the midst of another test."""
    result = run(
        """
        import gc
        async def work(session):
            pass
        def test(ackfsm):
            with pytest.raises(Exception) as refused:
                ackfsm.run(lambda connection: work(connection.session()))
            del refused
            gc.collect()
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """
    )
    result.assert_outcomes(passed=1)


def test_a_test_that_runs_in_a_loop_is_told_so(run: Run) -> None:
    result = run(
        f"""{_BOOK}
def test(ackfsm):
    async def main():
        ackfsm.send("q", "m")
        ackfsm.run(lambda connection: book(connection, ackfsm.processed))
    asyncio.run(main())
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ackfsm.run() runs an event loop of its own; *"])


def test_a_group_of_tasks_dies_and_fails_as_one(run: Run) -> None:
    run(
        """
        import asyncio
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", "consumer_link_loss", "broker_crash", never=["unprocessed"])
        def test(ackfsm):
            async def part(session, queue):
                consumer = session.consumer(queue)
                while (message := await consumer.receive(0)) is not None:
                    ackfsm.processed(message)
                    await message.acknowledge()
            async def application(connection):
                async with asyncio.TaskGroup() as group:
                    group.create_task(part(connection.session(), "q"))
                    group.create_task(part(connection.session(), "p"))
            ackfsm.send("q", "m")
            ackfsm.send("p", "n")
            ackfsm.run(application)
        """,
        *SOME,
    ).assert_outcomes(passed=1)


_WAITS = ["await asyncio.sleep(0)", "await consumer.receive(timeout=1)", "await asyncio.Event().wait()"]


@pytest.mark.parametrize(("nested", "waits"), in_turn([False, True], _WAITS, 1))
def test_tasks_that_catch_everything_are_ended_for_good(run: Run, waits: str, nested: bool) -> None:  # noqa: FBT001 - a parameter of the test
    result = run(
        f"""
        import asyncio, gc
        def test(ackfsm):
            async def loop(consumer):
                while True:
                    try:
                        {waits}
                    except:
                        pass
            async def supervised(consumer):
                while True:
                    try:
                        await loop(consumer)
                    except:
                        pass
            async def application(connection):
                consumer = connection.session("AUTO_ACKNOWLEDGE", consumption="receive").consumer("q")
                await {"supervised" if nested else "loop"}(consumer)
            ackfsm.run(application)
        def test_nothing_is_left_of_it():
            gc.collect()
        """,
        "--ackfsm-timeout=1",
    )
    result.assert_outcomes(failed=1, passed=1)
