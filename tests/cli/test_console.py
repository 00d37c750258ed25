"""Progress bars and colours: on terminals only."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from cli.manifests import FIVE, pod
from podium.cli import console

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "src"


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints, stdout and stderr being a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "podium", *arguments]
    plain = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS"}}
    variables = plain | {"PYTHONPATH": str(SOURCE), "TERM": "xterm-256color"} | environment
    with subprocess.Popen(command, env=variables, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        run.wait()
    os.close(ours)
    return said.decode()


@pytest.fixture
def cluster(write: Files) -> str:
    return write([*FIVE, pod("a"), pod("big", "64")])


@pytest.mark.parametrize("command", [("schedule",), ("explain", "a")])
def test_colours_are_for_terminals(cluster: str, command: tuple[str, ...]) -> None:
    assert "\x1b[" in on_a_terminal(*command, cluster)
    assert "\x1b[3" not in on_a_terminal(*command, cluster, NO_COLOR="1")


@pytest.mark.parametrize("command", [("schedule",), ("explain", "big")])
def test_a_terminal_is_told_where_a_reason_is_explained(
    cluster: str, command: tuple[str, ...], podium: Podium
) -> None:
    hint = 'podium help reason "Insufficient cpu"'

    assert on_a_terminal(*command, cluster).rstrip().endswith(hint)
    assert "podium help reason" not in podium(*command, cluster).out


def test_without_a_reason_no_help_is_named(write: Files) -> None:
    assert "help reason" not in on_a_terminal("schedule", write([*FIVE, pod("a")]))


@pytest.mark.parametrize(
    ("pod", "named"),
    [
        ("no-claim", """'persistentvolumeclaim "nowhere" not found'"""),
        ("gated", '"waiting for scheduling gates: [example.com/wait]"'),
        ("selector", """"node(s) didn't match Pod's node affinity/selector\""""),
    ],
)
def test_the_reason_can_be_pasted_into_a_shell(pod: str, named: str) -> None:
    found = on_a_terminal("explain", pod, str(SOURCE.parent / "examples/reasons/cluster.yaml"))

    assert f"podium help reason {named}" in found


def test_progress_is_shown_when_somebody_watches_and_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[int, str]] = []

    class Bar:
        task_ids = (0,)
        seen = 0

        def update(self, task: int, completed: int) -> None:
            assert task == 0
            self.seen = completed

        def start(self) -> None:
            started.append((self.seen, "started"))

        def stop(self) -> None:
            started.append((self.seen, "stopped"))

    def made(total: int, what: str) -> Bar:
        started.append((total, what))
        return Bar()

    monkeypatch.setattr(console, "_progress_bar", made)
    assert list(console.tracked([1, 2, 3], 3, "working")) == [1, 2, 3]
    assert started == []

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tracked = console.tracked([1, 2, 3], 3, "working", after_seconds=-1.0)
    assert list(tracked) == [1, 2, 3]
    assert started == [(3, "working"), (0, "started"), (3, "stopped")]


def test_a_bar_that_is_interrupted_while_it_starts_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bar = console._progress_bar(2, "working")
    begun = bar.start

    def start() -> None:
        begun()
        raise KeyboardInterrupt

    monkeypatch.setattr(bar, "start", start)
    monkeypatch.setattr(console, "_progress_bar", lambda *_: bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    with pytest.raises(KeyboardInterrupt):
        list(console.tracked([1, 2], 2, "working", after_seconds=-1.0))

    assert not bar.live.is_started


def test_a_real_bar_can_be_drawn() -> None:
    bar = console._progress_bar(2, "working")
    bar.update(bar.task_ids[0], completed=2)
    bar.stop()

    assert bar.finished


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_steps_are_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    piped, terminal = io.StringIO(), Terminal()
    monkeypatch.setenv("TERM", "xterm")
    for stream in (piped, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        with console.following("planning", after_seconds=-1.0) as step:
            step("node n1 is cordoned")
            step("node n1 [/] is drained")

    assert piped.getvalue() == ""
    assert "planning: node n1 [/] is drained" in terminal.getvalue()
