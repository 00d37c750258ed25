"""What would happen to a cluster: changes are made to a copy of it on virtual time.

The copy first comes to rest as it is (`cluster_copy`); then the changes are made, each after the
one before has come to rest. The answer pairs pods that went with those in their place, and decides
once more about those without a node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from podium.library.absence import AbsentObjects
from podium.library.decision_json import to_json
from podium.library.pending_pods import is_pending, seen_by
from podium.library.simulations import open_simulation
from podium.objects.kinds.registry import POD_GROUP
from podium.render.decision import pod_group
from podium.what_if.plan.changes import Change
from podium.what_if.plan.cluster_copy import ClusterCopy, CopyOptions, open_copy
from podium.what_if.plan.execution import check_files
from podium.what_if.plan.pod_follower import FollowedPod, PodFollower
from podium.what_if.plan.results import GonePod, MovedPod, NewPod, PendingPod, Plan, PlannedGroup

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium.engine.framework.decision import Decision
    from podium.lab.contents.documents import Document
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


def plan(
    items: Iterable[Document],
    changes: Sequence[Change],
    chosen: ChosenProfiles,
    options: CopyOptions | None = None,
) -> Plan:
    """Make the *changes* to a copy of the cluster of *items*, and say what follows.

    *items* are manifests, or the objects of a cluster with their uids; they belong to the copy from
    then on. A `KeyboardInterrupt` ends the plan with what is known so far.
    """
    check_files(changes)
    with open_copy(items, chosen, options or CopyOptions()) as copy:
        interrupted = False
        try:
            for change in changes:
                copy.make(change)
        except KeyboardInterrupt:
            interrupted = True
        return answer_of(copy, interrupted=interrupted)


def answer_of(copy: ClusterCopy, *, interrupted: bool = False) -> Plan:
    """What has followed from the changes to a copy so far; after an interrupt without reasons."""
    copy.interrupts.close()
    found, follower, cluster = Plan(profile=copy.chosen.profile.name), copy.follower, copy.cluster
    found.interrupted, found.changes = interrupted, copy.changes
    found.before, found.after = copy.before, copy.balance()
    found.timeline, found.anyway = follower.timeline, follower.anyway
    found.evicted = follower.evicted
    found.seconds = round(max(cluster.last_change - copy.start, 0.0), 3)
    _sort_out(found, follower, copy.deleted)
    if interrupted:
        copy.cluster.close(at_once=True)
    elif found.pending or copy.chosen.schedules_groups:
        _explain(found, copy)
    found.notes = list(copy.notes())
    return found


def _sort_out(found: Plan, follower: PodFollower, deleted: Collection[str]) -> None:
    """Pair the pods that went with those that came in their place, workload by workload."""
    before, after = follower.nodes_before(), follower.nodes_now()
    went: dict[str, list[FollowedPod]] = {}
    came: dict[str, list[FollowedPod]] = {}
    for uid in [uid for uid in before if uid not in after]:
        pod = follower.pod(uid)
        went.setdefault(pod.workload, []).append(pod)
    for uid, node in after.items():
        if uid not in before:
            pod = follower.pod(uid)
            came.setdefault(pod.workload, []).append(pod)
        elif not node:
            found.pending.append(_pending(follower.pod(uid), was_pending=not before[uid]))
        elif not before[uid]:
            pod = follower.pod(uid)
            found.created.append(NewPod(pod=pod.key, workload=pod.workload, node=node))
    for workload in sorted({*went, *came}):
        _pair(found, went.get(workload, []), came.get(workload, []), deleted)
    for gone in found.gone:
        if gone.wanted and follower.is_replica(gone.pod, gone.workload):
            gone.wanted = False
            gone.reason = f"{gone.workload} creates it anew only after the pods before it run"


def _pair(
    found: Plan, went: list[FollowedPod], came: list[FollowedPod], deleted: Collection[str]
) -> None:
    """Pods of the same name belong together, then pods in the order of their times."""
    went.sort(key=lambda pod: (bool(pod.node), pod.ended is None, pod.ended or 0.0))
    came.sort(key=lambda pod: pod.created or 0.0)
    if went and not went[0].workload:
        names = {pod.key for pod in came}
        found.gone += [_gone(old, deleted) for old in went if old.key not in names]
        went = [old for old in went if old.key in names]
    for old in list(went):
        same = next((new for new in came if new.key == old.key), None)
        if old.daemon:
            same = next((new for new in came if new.node == old.node), None)
        elif same is None:
            taken = {each.key for each in went}
            free = [new for new in came if new.key not in taken]
            # A pod that waited before is replaced by one that waits, if there is one.
            same = next((new for new in free if not old.node and not new.node), None)
            same = same or next(iter(free), None)
        if same is None:
            continue
        went.remove(old)
        came.remove(same)
        if same.node:
            found.moved.append(_moved(old, same))
        else:
            found.pending.append(_pending(same, was_pending=not old.node, from_node=old.node))
    for new in came:
        if new.node:
            found.created.append(NewPod(pod=new.key, workload=new.workload, node=new.node))
        else:
            found.pending.append(_pending(new))
    for old in went:
        found.gone.append(_gone(old, deleted))


def _moved(old: FollowedPod, new: FollowedPod) -> MovedPod:
    interrupted = None
    if new.ready is not None and old.stopped is not None:
        interrupted = round(max(new.ready - old.stopped, 0.0), 3)
    return MovedPod(
        pod=old.key,
        workload=old.workload,
        from_node=old.node,
        to_node=new.node,
        new_pod=new.key,
        interrupted=interrupted,
    )


def _gone(pod: FollowedPod, deleted: Collection[str]) -> GonePod:
    if pod.finished:
        wanted, reason = True, "it has finished"
    elif pod.daemon:
        wanted, reason = True, "its node is gone, or the daemon set does not want it there"
    elif pod.workload:
        wanted, reason = True, f"{pod.workload} does not want it any more"
    elif pod.key in deleted:
        wanted, reason = True, "it was deleted"
    else:
        wanted, reason = False, "it has no controller that would create it anew"
    return GonePod(pod=pod.key, workload=pod.workload, node=pod.node, wanted=wanted, reason=reason)


def _pending(pod: FollowedPod, *, was_pending: bool = False, from_node: str = "") -> PendingPod:
    return PendingPod(
        pod=pod.key, workload=pod.workload, message="", was_pending=was_pending, from_node=from_node
    )


def _explain(found: Plan, copy: ClusterCopy) -> None:
    """Decide once more about the pods without a node, with all reasons.

    Pods of one workload are equal; one of them is decided about. Pods of a pod group are decided
    about together.
    """
    chosen = copy.chosen
    if not found.pending and not chosen.schedules_groups:
        return
    objects = copy.objects()
    absent = AbsentObjects(objects)
    keys = {each.pod for each in found.pending}
    without_node = {pod.key: pod for pod in objects.pods if pod.key in keys}
    waiting = {key: pod for key, pod in without_node.items() if is_pending(pod, chosen.schedulers)}
    decisions: dict[str, dict[str, object]] = {}
    with open_simulation(chosen.profiles) as simulation:
        simulation.load(seen_by(objects, chosen.schedulers, without=list(waiting.values())))
        grouped: dict[str, Decision] = {}
        if chosen.schedules_groups:
            found.groups, grouped = planned_groups(found, objects, waiting.values(), simulation)
        for each in found.pending:
            pod = waiting.get(each.pod)
            if pod is None:
                scheduler = without_node[each.pod].spec.scheduler_name
                each.message = f"the scheduler {scheduler} decides about it"
                each.unknown = f"scheduler {scheduler}"
                continue
            each.unknown = absent.of(pod) if copy.absent.is_dump else ""
            name = each.pod if each.pod in grouped else each.workload or each.pod
            if name not in decisions:
                own = grouped.get(name) or simulation.attempt(pod, recording=True)
                decisions[name] = to_json(own)
            each.decision = decisions[name]
            each.message = str(each.decision.get("message") or each.decision.get("error") or "")
            if not each.message and each.decision.get("held"):
                held = each.decision["held"]
                each.message = str(held["reason"])  # type: ignore[index]
            elif not each.message and each.decision.get("node"):
                node = each.decision["node"]
                each.message = f"it would go to {node}; the plan ended before that"


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
            decisions.update(_explained_group(group, pending[key], simulation))
        found.append(group)
    return found, decisions


def _explained_group(
    group: PlannedGroup, pods: list[Pod], simulation: Simulation
) -> dict[str, Decision]:
    """Add the next cycle of a group, and what it says."""
    tried = sorted(pods, key=lambda pod: -pod.priority)
    cycle, decisions = simulation.groups.look(group.group, tried)
    if cycle is None:
        group.why = [decisions[tried[0].key].message]
    else:
        group.cycle, group.why = pod_group.as_json(cycle), pod_group.cycle_lines(cycle)
    return decisions
