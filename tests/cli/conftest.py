"""How the command line is tested: as a user runs it, within this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.cli.main import run


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Podium = Callable[..., Result]
Files = Callable[..., str]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBE_MAX_PD_VOLS", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PODIUM_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def podium(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    """Run a command line."""

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = run([str(each) for each in arguments])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def classic(podium: Podium) -> Podium:
    """Run a command that decides, as v1.13 does."""

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        return podium(*arguments, "--profile", "v1.13", stdin=stdin)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Files:
    """Write manifests (as a List) or text to a file; its path."""

    def made(content: Sequence[Any] | str | bytes, name: str = "cluster.json") -> str:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content)
        else:
            path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": content}))
        return str(path)

    return made
