"""Run the tests of full size, and write what came of them into RESULTS.md.

python benchmarks/soak.py             some five hours; exits with 1 if a test failed
python benchmarks/soak.py tests/world    some of them; the lines of the others stay as they are

Tests tell figures of their own by pytest's `record_property`. With PODIUM_KUBE_SCHEDULER, the path
of a newer kube-scheduler, that one is judged as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"


def run(paths: list[str]) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of pytest, and what each test told."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "soak.json")
        command = [sys.executable, "-m", "pytest", "-m", "soak", "-n", "2", "--timeout=3600"]
        code = subprocess.run(  # noqa: S603  our own tests
            [*command, f"--soak-report={told}", *paths], cwd=HERE.parent, check=False
        ).returncode
        return code, json.loads(told.read_text("utf-8")) if told.exists() else []


def main() -> None:
    """Run, write, and tell."""
    code, tests = run(sys.argv[1:])
    document = RESULTS.read_text("utf-8")
    kept = document if sys.argv[1:] else ""
    section = report.full_sizes(tests, time.strftime("%Y-%m-%d"), kept)
    print(section)
    if tests:
        RESULTS.write_text(report.with_section(document, section), "utf-8")
        print(f"wrote {RESULTS}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
