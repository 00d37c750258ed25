"""`make conformance`: the lab is started, the given program runs against it, a page is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
#: Stands in for e2e.test, which is not shipped: asks the lab for a namespace, and reports.
PROGRAM = """#!{python}
import json, re, sys, urllib.request
options = dict(each.lstrip("-").split("=", 1) for each in sys.argv[1:] if "=" in each)
server = re.search("server: (.*)", open(options["kubeconfig"]).read())[1]
with urllib.request.urlopen(server + "/api/v1/nodes") as answer:
    nodes = len(json.load(answer)["items"])
spec = {{"LeafNodeType": "It", "RunTime": 1500000000}}
spec["ContainerHierarchyTexts"] = ["[sig-scheduling]"]
reports = [
    spec | {{"LeafNodeText": "has %d nodes" % nodes, "State": "passed"}},
    spec | {{"LeafNodeText": "is for hardware", "State": "skipped"}},
    spec | {{"LeafNodeText": "a | b", "State": {last!r}}},
]
json.dump([{{"SpecReports": reports}}], open(options["ginkgo.json-report"], "w"))
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return __import__("conformance")


@pytest.mark.slow
@pytest.mark.parametrize(("last", "code"), [("passed", 0), ("failed", 1)])
def test_the_outcome_of_each_test_is_written_down(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, code: int
) -> None:
    program, written = tmp_path / "e2e.test", tmp_path / "conformance.md"
    program.write_text(PROGRAM.format(python=sys.executable, last=last), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PODIUM_E2E_TEST", str(program))
    monkeypatch.setattr(tool, "PAGE", written)
    for suite in ("scheduling", "apps", "scheduling"):
        assert tool.main([suite]) == code
    text = written.read_text("utf-8")
    assert [each for each in text.splitlines() if "# " in each][1:] == [
        "## Scheduling",
        "## Workloads",
    ]
    assert "| [sig-scheduling] has 4 nodes | passed | 1.5 |" in text
    assert f"| [sig-scheduling] a   b | {last} | 1.5 |" in text
    assert "is for hardware" not in text
    assert f" {2 - code} of 2 passed on " in text


def test_an_unknown_suite_is_named(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODIUM_E2E_TEST", sys.executable)
    assert tool.main(["network"]) == 2
    assert "network: there is no such suite; scheduling and apps" in capsys.readouterr().err


def test_without_a_program_the_command_says_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "conformance.py"],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "PODIUM_E2E_TEST" in done.stderr
    assert "Traceback" not in done.stderr
