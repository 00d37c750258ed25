"""Run upstream's end-to-end tests on the lab, and write the results to `docs/`.

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

ROOT = Path(__file__).parents[1]
VARIABLE = "PODIUM_E2E_TEST"
DOCS = ROOT / "docs"
NODES, ZONES = 4, 2
HEAD = """# {title}, run on the lab

`make conformance` starts `podium lab --nodes {nodes} --zones {zones}` and runs the tests of
`{group}` in `{program}` against it, one after the other.{left_out}
Written by that command on {date}.

| test | result | seconds |
|---|---|---|
"""


class Suite(NamedTuple):
    """Some tests: which they are, which of them are left out and why, and their page."""

    title: str
    group: str
    focus: str
    skip: str
    page: str
    left_out: str = ""


SUITES = {
    "scheduling": Suite(
        "Upstream's tests about scheduling",
        "[sig-scheduling]",
        r"\[sig-scheduling\]",
        # Alpha features are off by default, and nothing in the lab has such hardware.
        r"\[Alpha\]|\[Feature:GPU|\[Feature:Recreate|GPUDevicePlugin|\[Feature:WorkloadAware|Gang",
        "conformance.md",
    ),
    "apps": Suite(
        "Upstream's conformance tests about workloads",
        "[sig-apps]",
        r"\[sig-apps\].*\[Conformance\]",
        # What runs a command in a container, waits for what it does or answers, or for an image
        # that does not exist; and cron jobs, which take minutes each.
        "rolling updates and roll backs|canary updates|Scaling should happen|Burst scaling|"
        "recreate evicted|serve a basic image|pod failure policy|successPolicy|"
        "backoffLimitPerIndex|failed indexes exceeds|FailIndex|sometimes fail|"
        "rollback without unnecessary restarts|proportional scaling|should schedule multiple|"
        "not schedule|replace jobs when|adopt matching orphans",
        "conformance-apps.md",
        "\nLeft out are tests that look into containers, which the lab does not run, that wait for"
        "\nan image that cannot be pulled, and the slow ones of cron jobs.",
    ),
}


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


def page(suite: Suite, found: list[Result], program: str, date: str) -> str:
    """The results as a page of `docs/`."""
    rows = [
        f"| {each.name.replace('|', ' ')} | {each.state} | {each.seconds:.1f} |" for each in found
    ]
    passed = sum(each.state == "passed" for each in found)
    about = {"title": suite.title, "group": suite.group, "left_out": suite.left_out}
    head = HEAD.format(nodes=NODES, zones=ZONES, program=program, date=date, **about)
    return head + "\n".join(rows) + f"\n\n{passed} of {len(found)} passed.\n"


def run(program: str, suite: Suite) -> list[Result]:
    """Start a lab, run the tests of a suite against it, stop it."""
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
                 f"--ginkgo.focus={suite.focus}", f"--ginkgo.skip={suite.skip}",
                 "--ginkgo.no-color", f"--ginkgo.json-report={report}",
                 "--allowed-not-ready-nodes=0"],
                check=False,
            )  # fmt: skip
            return results(json.loads(report.read_text("utf-8"))) if report.exists() else []
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
    text = page(suite, found, Path(program).name, datetime.now(UTC).date().isoformat())
    (DOCS / suite.page).write_text(text, "utf-8")
    print(text)
    return 0 if all(each.state == "passed" for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
