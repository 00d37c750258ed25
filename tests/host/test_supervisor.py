"""A task that dies is noticed by everything that waits."""

from __future__ import annotations

import asyncio

import pytest

from podium.errors import ConfigError, InputError
from podium.host.supervisor import Supervisor, TaskDiedError


async def forever() -> None:
    await asyncio.Event().wait()


async def at_once() -> None:
    pass


async def failing(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_a_condition_that_holds_ends_the_wait() -> None:
    async def run() -> bool:
        supervisor = Supervisor()
        task = supervisor.start("a task", forever())
        event = asyncio.Event()
        asyncio.get_running_loop().call_soon(event.set)
        await supervisor.until(event.wait(), asyncio.Event().wait())
        alive = not task.done()
        await supervisor.stop(task)
        return alive and task.cancelled()

    assert asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no file", where="x.yaml"), 2), (ConfigError("no such plugin"), 2)],
)
def test_an_error_of_a_task_is_one_sentence_with_its_name(error: Exception, code: int) -> None:
    async def run() -> None:
        supervisor = Supervisor()
        supervisor.start("the scheduler", failing(error), may_return=True)
        await supervisor.until(forever())

    with pytest.raises(TaskDiedError) as died:
        asyncio.run(run())

    assert str(died.value) == f"the scheduler stopped: {error}"
    assert died.value.exit_code == code


def test_a_bug_in_a_task_is_raised_as_it_is() -> None:
    async def run() -> None:
        supervisor = Supervisor()
        supervisor.start("the scheduler", failing(ZeroDivisionError("a bug")))
        await supervisor.until(forever())

    with pytest.raises(ZeroDivisionError, match="a bug"):
        asyncio.run(run())


def test_a_task_that_just_returns_has_died_unless_it_may() -> None:
    async def run(*, may_return: bool) -> None:
        supervisor = Supervisor()
        supervisor.start("the API server", at_once(), may_return=may_return)
        await supervisor.until(asyncio.sleep(0.01))

    asyncio.run(run(may_return=True))
    with pytest.raises(TaskDiedError) as died:
        asyncio.run(run(may_return=False))
    assert str(died.value) == "the API server stopped unexpectedly"
    assert died.value.exit_code == 1


def test_a_failure_counts_more_than_a_condition_that_holds_at_the_same_time() -> None:
    async def run() -> None:
        supervisor = Supervisor()
        task = supervisor.start("the scheduler", failing(InputError("broken")), may_return=True)
        await supervisor.until(task)

    with pytest.raises(TaskDiedError, match="the scheduler stopped: broken"):
        asyncio.run(run())


async def test_a_task_that_was_stopped_or_released_is_no_failure() -> None:
    supervisor = Supervisor()
    stopped = supervisor.start("one", forever())
    released = supervisor.start("two", failing(InputError("late")))
    await supervisor.stop(stopped)
    await supervisor.release(released)
    await supervisor.until(asyncio.sleep(0))
