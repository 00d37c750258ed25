"""Pod groups after the changes of a plan: which pods have a node, and why the others do not."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from podium.objects.kinds.registry import POD_GROUP
from podium.render.decision import pod_group
from podium.what_if.plan.results import PlannedGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.cluster.simulation import Simulation
    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.what_if.plan.results import Plan


def planned_groups(
    plan: Plan, objects: Objects, waiting: Iterable[Pod], simulation: Simulation
) -> tuple[list[PlannedGroup], dict[str, Decision]]:
    """The groups that a plan concerns, and the decision about each of their pods that waits.

    *simulation* has the cluster without the *waiting* pods. Every group is decided about on its
    own, and nothing is carried out.
    """
    concerned = {each.new_pod for each in plan.moved}
    concerned |= {each.pod for each in plan.created} | {each.pod for each in plan.pending}
    members: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in objects.pods:
        if pod.group and not pod.finished:
            members[pod.group].append(pod)
    pending: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in waiting:
        if pod.group:
            pending[pod.group].append(pod)
    decisions: dict[str, Decision] = {}
    found: list[PlannedGroup] = []
    minimum = {group.key: group.min_count for group in objects.of(POD_GROUP)}
    for key in sorted(members):
        pods = members[key]
        placed = {each.key: each.spec.node_name for each in pods if each.spec.node_name}
        needed = minimum.get(key, 1)
        if len(placed) >= needed and not any(each.key in concerned for each in pods):
            continue
        group = PlannedGroup(
            group=key,
            min_count=needed,
            placed=placed,
            without_node=[each.key for each in pods if not each.spec.node_name],
            missing=max(needed - len(placed), 0),
        )
        if pending[key]:
            decisions.update(_explained(group, pending[key], simulation))
        found.append(group)
    return found, decisions


def _explained(group: PlannedGroup, pods: list[Pod], simulation: Simulation) -> dict[str, Decision]:
    """Add the next cycle of a group, and what it says."""
    tried = sorted(pods, key=lambda pod: -pod.priority)
    cycle, decisions = simulation.groups.look(group.group, tried)
    if cycle is None:
        group.why = [decisions[tried[0].key].message]
    else:
        group.cycle, group.why = pod_group.as_json(cycle), pod_group.told(cycle)
    return decisions
