"""Run upstream's end-to-end tests on the lab, and write the results to `docs/conformance.md`.

    conformance.py [scheduling] [apps]

`scheduling` are the tests of `[sig-scheduling]` without those of alpha features and for special
hardware, `apps` the conformance tests of `[sig-apps]` without those that look into containers;
without arguments both are run. The environment variable PODIUM_E2E_TEST is the path of an
`e2e.test` of Kubernetes 1.36. The exit code is 1 if a test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import report

ROOT = Path(__file__).parents[1]
VARIABLE = "PODIUM_E2E_TEST"
NODES, ZONES = 4, 2
PAGE = ROOT / "docs" / "conformance.md"
HEAD = f"""# Upstream's tests, run on the lab

`make conformance` starts `podium lab --nodes {NODES} --zones {ZONES}` and runs these tests of
`e2e.test` against it, one after the other. It wrote this page.

"""
SECTION = """## {title}

The tests of `{group}`{left_out}. {passed} of {tests} passed on {date}.

| test | result | seconds |
|---|---|---|
"""


class Suite(NamedTuple):
    """Some tests: which they are, and which of them are left out and why."""

    title: str
    group: str
    focus: str
    skip: str
    left_out: str


SUITES = {
    "scheduling": Suite(
        "Scheduling",
        "[sig-scheduling]",
        r"\[sig-scheduling\]",
        # Alpha features are off by default, and nothing in the lab has such hardware.
        r"\[Alpha\]|\[Feature:GPU|\[Feature:Recreate|GPUDevicePlugin|\[Feature:WorkloadAware|Gang",
        " without those of alpha features and for special hardware",
    ),
    "apps": Suite(
        "Workloads",
        "[sig-apps]",
        r"\[sig-apps\].*\[Conformance\]",
        # What runs a command in a container, waits for what it does or answers, or for an image
        # that does not exist; and cron jobs, which take minutes each.
        "rolling updates and roll backs|canary updates|Scaling should happen|Burst scaling|"
        "recreate evicted|serve a basic image|pod failure policy|successPolicy|"
        "backoffLimitPerIndex|failed indexes exceeds|FailIndex|sometimes fail|"
        "rollback without unnecessary restarts|proportional scaling|should schedule multiple|"
        "not schedule|replace jobs when|adopt matching orphans",
        " in conformance, without three kinds: tests that look into containers, which the lab does"
        " not run,\ntests that wait for an image that cannot be pulled, and tests that take minutes"
        " for a cron job",
    ),
}


class Result(NamedTuple):
    """The outcome of one test."""

    name: str
    state: str
    seconds: float


def results(told: Iterable[dict[str, Any]]) -> list[Result]:
    """The tests that were run, in the order of their names; *told* is Ginkgo's report."""
    found = [
        Result(
            " ".join([*(each.get("ContainerHierarchyTexts") or ()), each.get("LeafNodeText", "")]),
            each["State"],
            each.get("RunTime", 0) / 1e9,
        )
        for suite in told
        for each in suite.get("SpecReports") or ()
        if each.get("LeafNodeType") == "It" and each["State"] not in {"skipped", "pending"}
    ]
    return sorted(found)


def section(suite: Suite, found: list[Result], date: str) -> str:
    """The results of a suite as a section of the page."""
    rows = [
        f"| {each.name.replace('|', ' ')} | {each.state} | {each.seconds:.1f} |\n" for each in found
    ]
    passed = sum(each.state == "passed" for each in found)
    about = {"title": suite.title, "group": suite.group, "left_out": suite.left_out}
    head = SECTION.format(passed=passed, tests=len(found), date=date, **about)
    return head + "".join(rows)


def run(program: str, suite: Suite) -> list[Result]:
    """Start a lab, run the tests of a suite against it, stop it."""
    with tempfile.TemporaryDirectory(prefix="podium-conformance-") as folder:
        kubeconfig, written = Path(folder, "kubeconfig"), Path(folder, "report.json")
        lab = subprocess.Popen(  # noqa: S603  this project's own program
            [sys.executable, "-m", "podium", "lab", "--listen=127.0.0.1:0", "-o", "json",
             f"--nodes={NODES}", f"--zones={ZONES}", f"--write-kubeconfig={kubeconfig}"],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        try:
            assert lab.stdout is not None
            if not lab.stdout.readline():
                raise SystemExit("the lab did not start")
            subprocess.run(  # noqa: S603  the program that the user names
                [program, f"--kubeconfig={kubeconfig}", "--provider=skeleton", "--num-nodes=4",
                 f"--ginkgo.focus={suite.focus}", f"--ginkgo.skip={suite.skip}",
                 "--ginkgo.no-color", f"--ginkgo.json-report={written}",
                 "--allowed-not-ready-nodes=0"],
                check=False,
            )  # fmt: skip
            return results(json.loads(written.read_text("utf-8"))) if written.exists() else []
        finally:
            lab.terminate()
            lab.communicate(timeout=20)


def main(names: Sequence[str] = ()) -> int:
    """Run the suites of these names, or all; the exit code."""
    program = os.environ.get(VARIABLE, "")
    if not program or not os.access(program, os.X_OK):
        print(f"{VARIABLE}: set it to the path of an e2e.test of Kubernetes 1.36", file=sys.stderr)
        return 2
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        known = " and ".join(SUITES)
        print(f"{unknown[0]}: there is no such suite; {known} are there", file=sys.stderr)
        return 2
    return max(_run_suite(program, SUITES[name]) for name in names or SUITES)


def _run_suite(program: str, suite: Suite) -> int:
    found = run(program, suite)
    if not found:
        print(f"{program}: no test of {suite.group} was run", file=sys.stderr)
        return 2
    text = section(suite, found, datetime.now(UTC).date().isoformat())
    before = PAGE.read_text("utf-8") if PAGE.exists() else HEAD
    PAGE.write_text(report.with_section(f"{before.rstrip()}\n\n", text), "utf-8")
    print(text)
    return 0 if all(each.state == "passed" for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
