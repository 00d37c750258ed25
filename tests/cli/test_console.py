"""Progress bars and colours: on terminals only."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from manifests import FIVE, pod
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[io.StringIO, Terminal], ids=["piped", "terminal"])
def stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What stands for stderr: a pipe or a terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    made: io.StringIO = request.param()
    return made


def drawn(stream: io.StringIO) -> list[str]:
    """What stood in the line, one after the other; all of it is erased in the end."""
    found = stream.getvalue().split("\r")[1:]
    assert all(each.endswith("\x1b[K") for each in found)
    return [each.removesuffix("\x1b[K") for each in found]


def test_progress_is_shown_when_somebody_watches(stream: io.StringIO) -> None:
    with redirect_stderr(stream):
        assert list(console.tracked([1, 2, 3], 3, "working", after_seconds=0)) == [1, 2, 3]

    watched = stream.isatty()
    assert drawn(stream) == ([f"working [{' ' * 30}] 0/3", ""] if watched else [])


def test_short_work_shows_no_progress(stream: io.StringIO) -> None:
    with redirect_stderr(stream):
        assert list(console.tracked([1, 2, 3], 3, "working")) == [1, 2, 3]

    assert stream.getvalue() == ""


def test_a_bar_is_erased_by_an_interrupt(stream: io.StringIO) -> None:
    def interrupted() -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    with redirect_stderr(stream), pytest.raises(KeyboardInterrupt):
        list(console.tracked(interrupted(), 2, "working", after_seconds=0))

    assert drawn(stream)[-1:] == ([""] if stream.isatty() else [])


def test_a_bar_says_how_long_the_rest_may_take(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 0.0, 30.0, 30.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    with redirect_stderr(stream):
        status = console.StatusLine("working")
        status.count(0, 4)
        status.count(1, 4)

    bar = "#" * 7 + " " * 23
    assert drawn(stream) == ([f"working [{bar}] 1/4, 90 s left"] if stream.isatty() else [])


def test_steps_are_shown_within_the_line(stream: io.StringIO) -> None:
    with redirect_stderr(stream), console.StatusLine("planning", after_seconds=0) as status:
        status.step(f"node n1 [/] is drained\x1b[31m {'x' * 80}")

    shown = f"planning: node n1 [/] is drained\\x1b[31m {'x' * 80}"[:79]
    assert drawn(stream) == ([shown, ""] if stream.isatty() else [])
