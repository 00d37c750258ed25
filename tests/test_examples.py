"""Examples are executed: manifests, the dump, the script, and the console blocks of all documents.

In a console block, `$ ` begins a command and what follows is its output, compared as it stands. `…`
stands for anything: within a line, where columns need not line up then, or for any number of lines
when it is alone on one. A block of another kind whose first line is `# NAME` is that file, which is
there for the console blocks that follow.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import podium

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
CLUSTER = EXAMPLES / "cluster"
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *EXAMPLES.rglob("*.md")]
ANYTHING = "…"
GAP = re.compile(r" {2,}")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# ([\w.]+)\n")


class Block(NamedTuple):
    """A console block, where it begins, and the files that the document has before it."""

    document: str
    line: int
    text: str
    files: dict[str, str]

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command and the lines that are to come."""
        command, output = "", list[str]()
        for line in self.text.splitlines():
            if command.endswith("\\"):
                command += f"\n{line.removeprefix('> ')}"
            elif line.startswith("$ "):
                if command:
                    yield command, output
                command, output = line.removeprefix("$ "), []
            else:
                output.append(line.rstrip())
        if command:
            yield command, output


def blocks() -> list[Block]:
    found = []
    for document in sorted(DOCUMENTS):
        text = document.read_text("utf-8")
        name, files = document.relative_to(ROOT).as_posix(), dict[str, str]()
        for match in FENCED.finditer(text):
            kind, body = match.groups()
            if kind == "console":
                line = text.count("\n", 0, match.start()) + 2
                found.append(Block(name, line, body, dict(files)))
            elif named := NAMED.match(body):
                files[named[1]] = body
    return found


def pattern(expected: list[str]) -> re.Pattern[str]:
    """What the output has to look like, `…` being anything."""
    parts = []
    for line in expected:
        if line.strip() == ANYTHING:
            parts.append(r"(?:.*\n)*?")
        elif ANYTHING in line:
            columns = [r".*?".join(map(re.escape, c.split(ANYTHING))) for c in GAP.split(line)]
            parts.append(r" +".join(columns) + r"\n")
        else:
            parts.append(re.escape(line) + r"\n")
    return re.compile("".join(parts))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder that looks like the project but may be written to, and where `podium` is found.

    What is installed is used; otherwise a command of that name is made, for tests that run from the
    source tree.
    """
    folder, programs = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("bin")
    for name in ("examples", "tests", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    commands = {"python": [sys.executable]}
    for program, entry in (("podium", "main"), ("kubectl-podium", "kubectl_main")):
        installed = Path(sysconfig.get_path("scripts"), program)
        code = f"from podium.cli.main import {entry}; {entry}()"
        commands[program] = [str(installed)] if installed.exists() else [sys.executable, "-c", code]
    for program, command in commands.items():
        (programs / program).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (programs / program).chmod(0o755)
    changes = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    return folder, os.environ | changes


def run(command: str, shell: tuple[Path, dict[str, str]], last: int = 0) -> tuple[int, str]:
    """Exit code and output of a command; `$?` in it is the exit code of the last one."""
    folder, environment = shell
    done = subprocess.run(
        ["/bin/bash", "-c", f"(exit {last}); {command}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_a_console_block_is_what_happens(block: Block, shell: tuple[Path, dict[str, str]]) -> None:
    last = 0
    for name, text in block.files.items():
        (shell[0] / name).write_text(text, "utf-8")
    for command, expected in block.commands():
        last, output = run(command, shell, last)

        assert last in {0, 1, 2}, output
        assert pattern(expected).fullmatch(output), f"{block}: $ {command}\n{output}"


def test_the_readme_uses_the_library(shell: tuple[Path, dict[str, str]]) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    status, output = run(f"python -c {shlex.quote(code)}", shell)

    assert status == 0, output
    assert "shop/db-0 b-1" in output


def test_the_readme_shows_something() -> None:
    assert {"README.md"} <= {block.document for block in blocks()}


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        pytest.param("a\nb", "a\nb\n", True, id="as it stands"),
        pytest.param("a\nb", "a\nc\n", False, id="another line"),
        pytest.param("a", "a\nb\n", False, id="a line too many"),
        pytest.param("", "", True, id="nothing"),
        pytest.param("…", "a\nb\n", True, id="any lines"),
        pytest.param("a\n…\nd", "a\nd\n", True, id="no lines at all"),
        pytest.param("a\n…\nd", "a\nb\nc\n", False, id="but the last one"),
        pytest.param("web-…-0 ok", "web-5x-0 ok\n", True, id="anything in a line"),
        pytest.param("web-…-0 ok", "web-5x-0\n ok\n", False, id="but not two lines"),
        pytest.param("web-…-0     ok", "web-5x7-0  ok\n", True, id="columns apart"),
        pytest.param("web-1-0     ok", "web-1-0  ok\n", False, id="columns as they stand"),
        pytest.param("a (b)*", "a (b)*\n", True, id="no other sign means anything"),
    ],
)
def test_output_is_compared(shown: str, output: str, same: bool) -> None:
    assert bool(pattern(shown.splitlines()).fullmatch(output)) is same


def placements(path: Path) -> dict[str, podium.Decision]:
    """The last decision about each pending pod."""
    objects = podium.read([str(path)])
    profile = podium.from_provider("DefaultProvider", podium.Options())
    return {step.pod.key: step.decision for step in podium.simulate(objects, profile)}


def app(decisions: dict[str, podium.Decision], prefix: str) -> list[str | None]:
    return [decision.node for key, decision in decisions.items() if key.startswith(prefix)]


def test_every_file_of_the_cluster_holds_objects() -> None:
    objects = podium.read([str(CLUSTER)])
    origins = {objects.where(kind, index) for kind, index, _ in objects.everything()}

    assert origins == {str(file) for file in CLUSTER.iterdir()}
    assert not objects.unknown_kinds


def test_the_cluster_shows_what_it_is_there_for() -> None:
    decisions = placements(CLUSTER)

    assert decisions["shop/checkout"].node == "a-2"
    assert decisions["shop/search"].node is None
    assert set(app(decisions, "shop/web-")) == {"a-1", "a-2", "b-1", "c-1"}
    assert len(set(app(decisions, "shop/cache-"))) == 2
    assert set(app(decisions, "shop/db-")) < {"a-1", "b-1", "c-1"}
    assert len(set(app(decisions, "shop/db-"))) == 2
    assert sorted(map(str, app(decisions, "platform/agent-"))) == [
        "a-1", "a-2", "b-1", "b-2", "c-1", "c-2",
    ]  # fmt: skip
    assert decisions["batch/training"].node == "b-2"


def test_the_critical_pod_takes_the_place_of_the_cheapest_one() -> None:
    objects = podium.read([str(CLUSTER)])
    profile = podium.from_provider("DefaultProvider", podium.Options())
    first = next(podium.simulate(objects, profile)).decision

    assert first.pod == "shop/checkout"
    assert first.preemption is not None
    assert first.preemption.node == "a-2"
    assert first.preemption.candidates["a-2"].pods == ("batch/report-2",)
    assert first.preemption.candidates["a-1"].violations == 1


def test_the_dump_is_that_of_a_cluster() -> None:
    decisions = placements(EXAMPLES / "dump.json")

    assert {key: decision.node for key, decision in decisions.items()} == {
        "default/api-5d4f8c7b6-w4m9t": "worker-2",
        "default/warehouse-0": None,
    }


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda script: script.name)
def test_every_script_runs(script: Path, shell: tuple[Path, dict[str, str]]) -> None:
    code, output = run(f"python examples/{script.name}", shell)

    assert code == 0, output
    assert output


@pytest.mark.parametrize(
    "file",
    sorted([*EXAMPLES.glob("policies/*.[jy]*"), *EXAMPLES.glob("configs/*.[jy]*")]),
    ids=lambda file: file.name,
)
def test_every_configuration_is_accepted(file: Path, shell: tuple[Path, dict[str, str]]) -> None:
    code, output = run(f"podium config check {file.relative_to(ROOT)}", shell)

    assert code == 0, output
