"""Plans for the pages of a live cluster: rules that another process makes anew, and refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.errors import PodiumError
from podium.library.profile_source import ProfileSource
from podium.what_if.plan import page_plans
from podium.what_if.plan.changes import parse_change
from podium.what_if.plan.live_plans import PlanRequest, process_planner
from podium.what_if.plan.page_plans import check_added_nodes, page_changes

POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}]}'
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
- schedulerName: plain
"""
RULES = """
from podium.rules import predicate


@predicate("NotOnN1", reason="node(s) were n1", depends="node")
def not_on_n1(pod, node):
    # No pod may run on n1.
    return node.name != "n1"
"""


def requested(
    source: ProfileSource, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> ProfileSource:
    """The source that the process gets, after the way through JSON."""
    asked: list[PlanRequest] = []

    async def note(request: PlanRequest) -> dict[str, Any]:
        asked.append(msgspec.json.decode(msgspec.json.encode(request), type=PlanRequest))
        return {}

    monkeypatch.setattr("podium.what_if.plan.live_plans._asked", note)
    reach = {"kubeconfig": "file", "context": None, "server": None}
    planner = process_planner(reach, source, source.choose())
    asyncio.run(planner((), text, [("drain", "n1")]))
    assert asked[0].kubeconfig == "file"
    assert asked[0].changes == [("drain", "n1")]
    return page_plans.source_of(asked[0])


@pytest.mark.parametrize(
    "source",
    [
        ProfileSource(),
        ProfileSource(profile="v1.13", no_preemption=True, ties="first"),
        ProfileSource(provider="ClusterAutoscalerProvider", scheduler_name="mine"),
        ProfileSource(policy="policy.json", feature_gates=({"PodPriority": False},)),
        ProfileSource(config="config.yaml", percentage_of_nodes_to_score=30),
        ProfileSource(rules=("rules.py",), rule_seconds=2.0),
    ],
    ids=lambda each: " ".join(each.named()) or "default",
)
def test_the_process_decides_by_the_rules_of_the_scheduler(
    source: ProfileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"policy.json": POLICY, "config.yaml": CONFIG, "rules.py": RULES}
    for name, text in files.items():
        Path(name).write_text(text)
    wanted = source.choose()

    found = requested(source, None, monkeypatch).choose()

    assert found.schedulers == wanted.schedulers
    assert replace(found.options, rules=wanted.options.rules) == wanted.options
    for one, other in zip(found.profiles, wanted.profiles, strict=True):
        assert [rule.name for rule in one.predicates] == [rule.name for rule in other.predicates]
        assert [(p.name, p.weight) for p in one.priorities] == [
            (p.name, p.weight) for p in other.priorities
        ]
        assert (one.ties, one.preemption) == (other.ties, other.preemption)


def test_a_file_that_changes_after_the_start_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    source = ProfileSource(config=str(file))
    chosen = source.choose()
    monkeypatch.setattr(ProfileSource, "choose", lambda self, *_: chosen)
    file.write_text("nonsense")

    found = requested(source, None, monkeypatch)
    monkeypatch.undo()

    assert found.choose().schedulers == {"packing", "plain"}


def test_rules_that_a_page_applied_are_those_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ProfileSource(provider="DefaultProvider", ties="first")

    found = requested(source, CONFIG, monkeypatch)

    assert (found.provider, found.ties) == (None, "first")
    assert found.choose().schedulers == {"packing", "plain"}


def test_the_process_answers_with_one_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "kubeconfig")
    request = PlanRequest(missing, None, None, {"feature_gates": [], "rules": []}, [("drain", "n")])

    assert missing in page_plans.answer(request).error


def test_a_program_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.what_if.plan.live_plans._PROGRAM", "podium.no_such_program")
    reach = {"kubeconfig": None, "context": None, "server": None}
    planner = process_planner(reach, ProfileSource(), ProfileSource().choose())

    with pytest.raises(PodiumError, match="the plan failed; the log of the scheduler says why"):
        asyncio.run(planner((), None, [("drain", "n1")]))


def test_the_changes_of_a_page_read_no_files(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("kind: Node")

    with pytest.raises(PodiumError, match=f"--apply {file}: the pages read no files"):
        page_changes([("drain", "n1"), ("apply", str(file))])
    with pytest.raises(PodiumError, match=r"there is no node .*node\.yaml"):
        check_added_nodes([parse_change("add", f"2:{file}")], {"n1"})
    check_added_nodes([parse_change("add", "2:n1")], {"n1"})
