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


async def test_a_condition_that_holds_ends_the_wait() -> None:
    supervisor = Supervisor()
    task = supervisor.start("a task", forever())
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    await supervisor.until(event.wait(), asyncio.Event().wait())
    assert not task.done()
    await supervisor.stop(task)
    assert task.cancelled()


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no file", where="x.yaml"), 2), (ConfigError("no such plugin"), 2)],
)
async def test_an_error_of_a_task_is_one_sentence_with_its_name(
    error: Exception, code: int
) -> None:
    supervisor = Supervisor()
    supervisor.start("the scheduler", failing(error), may_return=True)
    with pytest.raises(TaskDiedError) as died:
        await supervisor.until(forever())

    assert str(died.value) == f"the scheduler stopped: {error}"
    assert died.value.exit_code == code


async def test_a_bug_in_a_task_is_raised_as_it_is() -> None:
    supervisor = Supervisor()
    supervisor.start("the scheduler", failing(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        await supervisor.until(forever())


async def test_a_task_that_just_returns_has_died_unless_it_may() -> None:
    supervisor = Supervisor()
    supervisor.start("the API server", at_once(), may_return=True)
    await supervisor.until(asyncio.sleep(0.01))
    supervisor.start("the API server", at_once())
    with pytest.raises(TaskDiedError) as died:
        await supervisor.until(forever())
    assert str(died.value) == "the API server stopped unexpectedly"
    assert died.value.exit_code == 1


async def test_a_failure_counts_more_than_a_condition_that_holds_at_the_same_time() -> None:
    supervisor = Supervisor()
    task = supervisor.start("the scheduler", failing(InputError("broken")), may_return=True)
    with pytest.raises(TaskDiedError, match="the scheduler stopped: broken"):
        await supervisor.until(task)


async def test_a_task_that_was_stopped_or_released_is_no_failure() -> None:
    supervisor = Supervisor()
    stopped = supervisor.start("one", forever())
    released = supervisor.start("two", failing(InputError("late")))
    await supervisor.stop(stopped)
    await supervisor.release(released)
    await supervisor.until(asyncio.sleep(0))
