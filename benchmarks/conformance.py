"""Run upstream's end-to-end tests about scheduling on the lab, and write the result to `docs/`.

The environment variable PODIUM_E2E_TEST is the path of an `e2e.test` of Kubernetes 1.36. Tests of
alpha features and for special hardware are left out. The exit code is 1 if a test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
VARIABLE = "PODIUM_E2E_TEST"
PAGE = ROOT / "docs" / "conformance.md"
FOCUS = r"\[sig-scheduling\]"
#: Alpha features are off by default, and nothing in the lab has such hardware.
SKIP = r"\[Alpha\]|\[Feature:GPU|\[Feature:Recreate|GPUDevicePlugin|\[Feature:WorkloadAware|Gang"
NODES, ZONES = 4, 2
HEAD = """# Upstream's tests about scheduling, run on the lab

`make conformance` starts `podium lab --nodes {nodes} --zones {zones}` and runs the tests of
`[sig-scheduling]` in `{program}` against it, one after the other.
Written by that command on {date}.

| test | result | seconds |
|---|---|---|
"""


class Result(NamedTuple):
    """The outcome of one test."""

    name: str
    state: str
    seconds: float


def results(report: Iterable[dict[str, Any]]) -> list[Result]:
    """The tests that were run, in the order of their names; *report* is Ginkgo's."""
    found = [
        Result(
            " ".join([*(each.get("ContainerHierarchyTexts") or ()), each.get("LeafNodeText", "")]),
            each["State"],
            each.get("RunTime", 0) / 1e9,
        )
        for suite in report
        for each in suite.get("SpecReports") or ()
        if each.get("LeafNodeType") == "It" and each["State"] not in {"skipped", "pending"}
    ]
    return sorted(found)


def page(found: list[Result], program: str, date: str) -> str:
    """The results as a page of `docs/`."""
    rows = [
        f"| {each.name.replace('|', ' ')} | {each.state} | {each.seconds:.1f} |" for each in found
    ]
    passed = sum(each.state == "passed" for each in found)
    head = HEAD.format(nodes=NODES, zones=ZONES, program=program, date=date)
    return head + "\n".join(rows) + f"\n\n{passed} of {len(found)} passed.\n"


def run(program: str) -> list[Result]:
    """Start a lab, run the tests against it, stop it."""
    with tempfile.TemporaryDirectory(prefix="podium-conformance-") as folder:
        kubeconfig, report = Path(folder, "kubeconfig"), Path(folder, "report.json")
        lab = subprocess.Popen(  # noqa: S603  this project's own program
            [sys.executable, "-m", "podium", "lab", "--listen=127.0.0.1:0", "-o", "json",
             f"--nodes={NODES}", f"--zones={ZONES}", f"--kubeconfig={kubeconfig}"],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        try:
            assert lab.stdout is not None
            if not lab.stdout.readline():
                raise SystemExit("the lab did not start")
            subprocess.run(  # noqa: S603  the program that the user names
                [program, f"--kubeconfig={kubeconfig}", "--provider=skeleton", "--num-nodes=4",
                 f"--ginkgo.focus={FOCUS}", f"--ginkgo.skip={SKIP}", "--ginkgo.no-color",
                 f"--ginkgo.json-report={report}", "--allowed-not-ready-nodes=0"],
                check=False,
            )  # fmt: skip
            return results(json.loads(report.read_text("utf-8"))) if report.exists() else []
        finally:
            lab.terminate()
            lab.communicate(timeout=20)


def main() -> int:
    """Run the tests; the exit code."""
    program = os.environ.get(VARIABLE, "")
    if not program or not os.access(program, os.X_OK):
        print(f"{VARIABLE}: set it to the path of an e2e.test of Kubernetes 1.36", file=sys.stderr)
        return 2
    found = run(program)
    if not found:
        print(f"{program}: no test was run", file=sys.stderr)
        return 2
    text = page(found, Path(program).name, datetime.now(UTC).date().isoformat())
    PAGE.write_text(text, "utf-8")
    print(text)
    return 0 if all(each.state == "passed" for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
