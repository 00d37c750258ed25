"""`podium lab` in a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waiting import until

ROOT = Path(__file__).parents[3]


class LabProcess:
    """`podium lab` in a process of its own; *told* is the JSON that it prints when it is ready."""

    def __init__(self, folder: Path, *arguments: str, chapter: str = "") -> None:
        """With a *chapter*, the lab of `podium learn`."""
        self.kubeconfig = folder / "kubeconfig"
        which = ["lab", "--chapter", chapter] if chapter else ["lab"]
        command = [sys.executable, "-m", "podium", *which, "--listen", "127.0.0.1:0", "-o", "json"]
        self.process = subprocess.Popen(
            [*command, "--write-kubeconfig", str(self.kubeconfig), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            cwd=folder,
        )
        self.told: dict[str, Any] = json.loads(self._first_document())

    def _first_document(self) -> bytes:
        """The JSON that the process prints when it is ready."""
        assert self.process.stdout is not None
        text, ends = b"", time.monotonic() + 60
        while not text.rstrip().endswith(b"}"):
            ready, _, _ = select.select([self.process.stdout], [], [], 1.0)
            part = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            text += part
            if (ready and not part) or time.monotonic() > ends:
                raise AssertionError(f"no lab: {text!r} {self.end()}")
        return text

    def ask(self, path: str, **headers: str) -> tuple[int, Any]:
        """A request with the token."""
        given = {"Authorization": f"Bearer {self.told['token']}", **headers}
        request = urllib.request.Request(f"{self.told['server']}{path}", headers=given)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def call(self, method: str, path: str, body: Any = None, form: str = "json") -> tuple[int, Any]:
        """The code and the body of the response to a request with the token."""
        headers = {
            "Authorization": f"Bearer {self.told['token']}",
            "Content-Type": f"application/{form}",
        }
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.told['server']}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def fine(self, method: str, path: str, body: Any = None, form: str = "json") -> Any:
        """The body of the response to a request that must succeed."""
        code, answer = self.call(method, path, body, form)
        assert code < 300, answer
        return answer

    def items(self, path: str) -> list[Any]:
        found: list[Any] = self.fine("GET", path)["items"]
        return found

    def until(self, true: Callable[[], bool], seconds: float = 60.0) -> None:
        until("the lab comes to that", true, seconds)

    def running(self) -> set[str]:
        return {
            pod["metadata"]["name"]
            for pod in self.items("/api/v1/pods")
            if pod["status"].get("phase") == "Running"
        }

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Stop the process; its exit code and its error output."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()
