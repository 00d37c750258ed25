"""Labs that end with the test that started them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.command.lab_process import LabProcess


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LabProcess]]:
    """Start labs that end with the test."""
    started: list[LabProcess] = []

    def made(*arguments: str, chapter: str = "") -> LabProcess:
        started.append(LabProcess(tmp_path, *arguments, chapter=chapter))
        return started[-1]

    yield made
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()
