"""Labs and schedulers in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from manifests import manifest
from waiting import until

ROOT = Path(__file__).parents[2]
#: Generous, since other tests may use all cores.
SECONDS = 60.0


class Program:
    """A `podium` command that runs until it is stopped."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "podium", *arguments],
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                cwd=folder,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def ended(self, seconds: float = SECONDS) -> int:
        """Wait until it ends by itself; its exit code."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()


class Lab(Program):
    """A lab that is ready."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.kubeconfig = folder / "kubeconfig"
        given = (
            "--listen",
            "127.0.0.1:0",
            "-o",
            "json",
            "--write-kubeconfig",
            str(self.kubeconfig),
        )
        super().__init__(folder, "lab", *given, *arguments)
        until("a lab", lambda: self.out.endswith("}\n") or self.process.poll() is not None)
        self.status: dict[str, Any] = json.loads(self.out)

    def request(self, path: str, body: object = None, method: str = "GET") -> bytes:
        headers = {"Authorization": f"Bearer {self.status['token']}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        url = f"{self.status['server']}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: bytes = answer.read()
            return found

    def pods(self) -> list[Any]:
        found: list[Any] = json.loads(self.request("/api/v1/pods"))["items"]
        return found

    def create_pods(self, *names: str) -> None:
        for name in names:
            made = manifest("Pod", name, spec={"containers": [{"name": "app", "image": "app:1"}]})
            self.request("/api/v1/namespaces/default/pods", made, "POST")

    def all_bound(self) -> bool:
        return all("nodeName" in pod["spec"] for pod in self.pods())


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start programs that end with the test: `programs(Lab, …)`, `programs(Program, …)`."""
    started: list[Program] = []

    def start(kind: type[Program], *arguments: str) -> Program:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(kind(folder, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()
