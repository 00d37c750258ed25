"""Processor time until something happens: importing the package, and asking for help."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import Any

from measuring import SOURCES, script

COMMANDS = {
    "python itself": ["-c", "pass"],
    "import podium": ["-c", "import podium"],
    "podium --help": ["-m", "podium", "--help"],
    "podium version": ["-m", "podium", "version"],
}


def cpu_ms(arguments: list[str]) -> float:
    """Processor time of one run, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603  our own commands
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Command -> milliseconds, the least of several runs."""
    tries = range(1 if quick else 10)
    return {
        name: round(min(cpu_ms(arguments) for _ in tries), 1)
        for name, arguments in COMMANDS.items()
    }


if __name__ == "__main__":
    script(measure)
