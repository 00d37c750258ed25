"""kubectl as a test runs it: each time with a home and a kubeconfig of its own.

Two of them: the one on the PATH, if there is one, and Debian's 1.20, which `tools/kubectl` fetches.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "kubectl"
#: An older kubectl that is used instead of Debian's.
OLDER = "PODIUM_KUBECTL"


class Result(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


@cache
def debian() -> str:
    """Debian's kubectl; empty where it cannot be had."""
    given = os.environ.get(OLDER)
    if given:
        return given
    tried = subprocess.run([TOOL], stdout=subprocess.PIPE, text=True, check=False)
    return tried.stdout.splitlines()[-1] if tried.returncode == 0 else ""


@cache
def installed() -> str:
    """The kubectl on the PATH; empty if there is none."""
    return shutil.which("kubectl") or ""


#: By the names of tests.
PROGRAMS = {"path": installed, "debian": debian}


def available() -> list[str]:
    """Which of them to test: Debian's, and the one on the PATH, if any."""
    return ["debian", *(["path"] if installed() else [])]


class Kubectl:
    """One kubectl that talks to one server."""

    def __init__(self, program: str, kubeconfig: Path, home: Path) -> None:
        self.program = program
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
            "TZ": "UTC",
        }
        home.mkdir(exist_ok=True)

    def run(self, *words: str, stdin: str = "", seconds: float = 60, **more: str) -> Result:
        """Run a command to its end."""
        done = subprocess.run(
            [self.program, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**self.environment, **more},
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, stdin: str = "") -> str:
        """What a command prints that goes well."""
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, f"kubectl {' '.join(words)}: {done.out}{done.err}"
        return done.out

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            [self.program, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )


_VARIES = (
    ("\N{NO-BREAK SPACE}", " "),  # differences of Go structures have them at random
    (r"(?m)^( *)managedFields:\n(\1[- ].*\n)*", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "TIME"),
    (r"(?m)^( *selfLink:).*\n", ""),
    (r"(resourceVersion\"?: )\"\d+\"", r"\1VERSION"),
    (r":3\d{4}/TCP", ":PORT/TCP"),
    (r"(?m)(nodePort: |NodePort: .* )3\d{4}", r"\1PORT"),
    (r"(kubectl-edit-)\w+", r"\1FILE"),
    (r"(?m)^@@ .* @@", "@@"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"/(LIVE|MERGED)-\d+/", r"/\1/"),
    (r"(?m)\b(\d+[smhd]|<unknown>|<invalid>)(?= |$|\))", "AGE"),
    (r"\b(\d{1,2}m)?\d{1,3}s\b", "AGE"),
    (r"(?m)[ \t]+$", ""),
    (r"(?m)^[EWI]\d{4} .*\n", ""),
    (r" {2,}", "  "),
)


def normal(text: str) -> str:
    """What is left when times, versions and the like are the same everywhere."""
    for pattern, instead in _VARIES:
        text = re.sub(pattern, instead, text)
    return text
