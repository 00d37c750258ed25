"""Plans against the lab: the same cluster, the same change by kubectl, the same placements."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from host.conftest import Lab
from lab.clients.kubectl import Kubectl, debian
from podium.what_if.plan.changes import parse_change
from podium.what_if.plan.inputs import cluster_documents
from podium.what_if.plan.plan import plan
from what_if.clusters import chosen
from what_if.random_clusters import Case, random_case

pytestmark = pytest.mark.slow

CASES = 50
#: Labs that run at the same time; they mostly wait.
_AT_ONCE = 4
#: The lab is at rest when nothing has changed for so long.
_REST_SECONDS = 3.0
_LIMIT_SECONDS = 90.0

#: Pods and their nodes, empty for pods without one; see `identity`.
Placements = Counter[tuple[str, str]]
Item = dict[str, Any]


def identity(workload: str, pod: str) -> str:
    """The pod of a stateful set, which keeps its name; the workload of pods with random names."""
    return pod if workload.startswith("StatefulSet/") else workload


def placements(items: list[Item]) -> Placements:
    """Identity and node of every pod that is neither finished nor terminating."""
    above = {
        each["metadata"]["uid"]: each["metadata"]["ownerReferences"][0]
        for each in items
        if each["kind"] == "ReplicaSet" and each["metadata"].get("ownerReferences")
    }
    found: Placements = Counter()
    for pod in items:
        if pod["kind"] == "Pod" and "deletionTimestamp" not in pod["metadata"]:
            owner = pod["metadata"]["ownerReferences"][0]
            owner = above.get(owner["uid"], owner)
            name = f"{owner['kind']}/default/{owner['name']}"
            name = identity(name, f"default/{pod['metadata']['name']}")
            found[name, pod["spec"].get("nodeName", "")] += 1
    return found


def planned_placements(case: Case) -> Placements:
    """Identity and node of every pod after the change, by the answer of the plan."""
    before = json.loads(case.file.read_text())["items"]
    names = {f"default/{each['metadata']['name']}" for each in before if each["kind"] == "Pod"}
    found = placements(before)
    answer = plan(
        cluster_documents([str(case.file)]).documents,
        [parse_change(case.flag[0].removeprefix("--"), case.flag[1])],
        chosen(),
    )
    for moved in answer.moved:
        found[identity(moved.workload, moved.pod), moved.from_node] -= 1
        found[identity(moved.workload, moved.new_pod), moved.to_node] += 1
    for new in answer.created:
        name = identity(new.workload, new.pod)
        found[name, new.node] += 1
        found[name, ""] -= new.pod in names
    for gone in answer.gone:
        found[identity(gone.workload, gone.pod), gone.node] -= 1
    for left in answer.pending:
        name = identity(left.workload, left.pod)
        if left.from_node:
            found[name, left.from_node] -= 1
        if not left.was_pending:
            found[name, ""] += 1
    return +found


def lab_items(lab: Lab) -> list[Item]:
    items = []
    for path, kind in (("/api/v1/pods", "Pod"), ("/apis/apps/v1/replicasets", "ReplicaSet")):
        found = json.loads(lab.request(path))["items"]
        items += [{**each, "kind": kind} for each in found]
    return items


def lab_placements(case: Case, folder: Path) -> Placements:
    """Identity and node of every pod after kubectl has made the change in a lab."""
    folder.mkdir()
    lab = Lab(folder, "--snapshot", str(case.file), "--ties", "first")
    try:
        kubectl = Kubectl(debian(), lab.kubeconfig, folder / "home")
        done = kubectl.run(*case.kubectl, seconds=60)
        assert done.code == 0 or "disruption budget" in done.err, f"{case}: {done.err}"
        return placements(_at_rest(lab))
    finally:
        lab.stop()


def _at_rest(lab: Lab) -> list[Item]:
    """The objects of the lab, once nothing has changed for a while and no pod is in between."""
    ends = time.monotonic() + _LIMIT_SECONDS
    last: list[Item] = []
    since = time.monotonic()
    while time.monotonic() < ends:
        items = lab_items(lab)
        if items != last:
            last, since = items, time.monotonic()
        settled = time.monotonic() - since > _REST_SECONDS
        if settled and not any(_is_moving(each) for each in items):
            return items
        time.sleep(0.2)
    raise TimeoutError(f"the lab does not come to rest within {_LIMIT_SECONDS:g} s")


def _is_moving(item: Item) -> bool:
    """Whether a pod is terminating, is starting, or has not been tried yet."""
    if item["kind"] != "Pod":
        return False
    if "deletionTimestamp" in item["metadata"]:
        return True
    if item["spec"].get("nodeName"):
        return bool(item["status"].get("phase") == "Pending")
    conditions = item["status"].get("conditions") or ()
    return not any(each["type"] == "PodScheduled" for each in conditions)


def differences(seeds: range, folder: Path) -> list[str]:
    """A sentence for each case in which plan and lab differ.

    The lab runs in real time: on a busy machine a pod may be decided about before another has
    stopped. A case that differs is therefore tried again with no other lab beside it.
    """

    def differs(seed: int, attempt: int = 0) -> str:
        case = random_case(seed, folder)
        theirs = lab_placements(case, folder / f"lab-{seed}-{attempt}")
        ours = planned_placements(case)
        if ours == theirs:
            return ""
        return f"seed {seed}, {case.flag}: plan {ours - theirs}, lab {theirs - ours}"

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        suspects = [
            seed for seed, text in zip(seeds, pool.map(differs, seeds), strict=True) if text
        ]
    return [text for seed in suspects if (text := differs(seed, 1)) and (text := differs(seed, 2))]


def test_all_kinds_of_change_are_among_the_cases(tmp_path: Path) -> None:
    kinds = Counter(random_case(seed, tmp_path).flag[0] for seed in range(CASES))

    assert set(kinds) == {"--drain", "--lose", "--scale", "--apply", "--rollout"}
    assert min(kinds.values()) >= 5


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(5))
def test_a_plan_places_pods_as_the_lab_does(tmp_path: Path, part: int) -> None:
    each = CASES // 5

    assert differences(range(part * each, (part + 1) * each), tmp_path) == []
