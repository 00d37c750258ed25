"""Controllers read the time and wait for it through their clock only, so a virtual one drives them.

`virtual_cluster/test_cluster.py` runs them on one.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.lab import controllers
from podium.lab.controllers.framework.clock import WallClock

PACKAGE = Path(controllers.__file__).parent
#: The module that is the clock.
CLOCK = PACKAGE / "framework" / "clock.py"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != CLOCK)
#: Modules that read a clock, and what is forbidden of modules that do other things as well.
CLOCKS = frozenset({"time", "sched", "threading"})
FORBIDDEN = frozenset(
    {
        "asyncio.sleep",
        "asyncio.timeout",
        "asyncio.timeout_at",
        "asyncio.wait_for",
        "datetime.now",
        "datetime.today",
        "datetime.utcnow",
        "date.today",
    }
)
TIMERS = frozenset({"call_at", "call_later"})


def uses_of_time(text: str) -> Iterator[str]:
    """Every import and call in a source text that reads a clock or starts a timer."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] in CLOCKS)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
            clock = (node.module or "").split(".")[0] in CLOCKS
            yield from (name for name in names if clock or name in FORBIDDEN)
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            short = ".".join(name.split(".")[-2:])
            if short in FORBIDDEN or node.attr in TIMERS:
                yield name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_controller_reads_a_clock_of_its_own(path: Path) -> None:
    assert list(uses_of_time(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import time",
        "import time as clock",
        "from asyncio import sleep",
        "import asyncio\nasync def f(): await asyncio.sleep(1)",
        "import asyncio\nasync def f(): await asyncio.wait_for(x, 1)",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\nnow = datetime.datetime.utcnow()",
        "loop.call_later(1, print)",
    ],
)
def test_a_clock_of_its_own_is_seen(text: str) -> None:
    assert list(uses_of_time(text))


def test_times_may_be_parsed() -> None:
    text = "from datetime import UTC, datetime\ndatetime.fromisoformat(x).replace(tzinfo=UTC)"

    assert list(uses_of_time(text)) == []


def test_the_wall_clock_waits_for_an_event_or_a_time() -> None:
    clock = WallClock()

    async def waits() -> list[bool]:
        woken = asyncio.Event()
        await clock.wait(woken, clock.now() - 1)
        await clock.wait(woken, clock.now() + 0.001)
        asyncio.get_running_loop().call_soon(woken.set)
        await clock.wait(woken, None)
        await clock.wait(woken, clock.now() + 3600)
        return [woken.is_set()]

    assert asyncio.run(waits()) == [True]
