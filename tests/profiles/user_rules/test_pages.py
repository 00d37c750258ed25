"""The pages about extending Podium are true: their rules load, their tests pass.

A block whose first line is `# NAME` is that file. Commands of the pages are run with those of all
documents (`tests/test_examples.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from podium import load_rules
from podium.cli.main import run
from podium.profiles.policy.build import Options, from_policy

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "extending").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w.]+)\n")


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text("utf-8"))


def pytest_says(folder: Path, *tests: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{folder}", "PATH": "/usr/bin:/bin"}
    tried = subprocess.run(
        command, cwd=folder, env=path, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout
    return tried.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_true(page: Path, tmp_path: Path) -> None:
    named = [match for _, text in blocks(page) if (match := FILE.match(text))]
    for match in named:
        (tmp_path / match[1]).write_text(match.string, "utf-8")
    rules = [
        match[1]
        for match in named
        if re.search(r"^@(predicate|priority|reserve|permit)\(", match.string, re.MULTILINE)
    ]
    tests = [match[1] for match in named if match[1].startswith("test_")]

    assert rules
    for name in rules:
        assert load_rules([str(tmp_path / name)]), name
    if tests:
        assert "passed" in pytest_says(tmp_path, *tests)


def test_the_pages_are_there() -> None:
    assert [page.stem for page in PAGES] == [
        "reserve-a-device",
        "use-from-kube-scheduler",
        "write-a-predicate",
        "write-a-priority",
    ]


def test_the_policy_of_the_page_is_one() -> None:
    texts = blocks(ROOT / "docs" / "extending" / "use-from-kube-scheduler.md")
    [policy] = [text for kind, text in texts if kind == "json"]
    [made] = from_policy(json.loads(policy.partition("\n")[2]), Options()).extenders

    assert made.url_prefix == "http://127.0.0.1:8888"
    assert all((made.filter_verb, made.prioritize_verb, made.preempt_verb, made.bind_verb))


@pytest.mark.parametrize("kind", ["predicate", "priority"])
def test_what_podium_new_writes_works(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["new", kind, "MyOwn-rule", "--folder", str(tmp_path / "rules")]) == 0
    rule, test = map(Path, capsys.readouterr().out.splitlines())
    assert (rule.name, test.name) == ("my_own_rule.py", "test_my_own_rule.py")

    assert "1 passed" in pytest_says(rule.parent, test.name)

    assert run(["new", kind, "MyOwn-rule", "--folder", str(rule.parent)]) == 2
    assert "exists already, and nothing is overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predicate", "HostName"], "HostName is a built-in predicate"),
        (["priority", "a b"], "does not match the name validation regexp"),
        (["plugin", "Mine"], "'plugin' is not one of"),
    ],
)
def test_what_podium_new_refuses(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["new", *arguments, "--folder", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
