"""What would happen to a cluster: changes are made to a copy of it on virtual time.

The copy has the API server and the controllers of the lab and the scheduler of `podium run`. First
it comes to rest as it is; then the changes are made, each after the one before has come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from podium.lab.api.resources import BY_NAME
from podium.lab.contents.loader import Progress
from podium.lab.controllers.nodes.fake_kubelet import KubeletTimings
from podium.library.pending import is_pending, seen_by
from podium.library.simulating import open_simulation
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.decode import decode
from podium.planning.applying import LIMIT_SECONDS, Applier, check_files
from podium.planning.balance import balance
from podium.planning.changes import Change
from podium.planning.interrupts import between_turns
from podium.planning.results import GonePod, MovedPod, NewPod, PendingPod, Plan
from podium.planning.watching import FollowedPod, PodFollower
from podium.render.decision.as_json import to_json
from podium.simulation.cluster import SimulatedCluster, without_garbage_collection
from podium.simulation.in_process_api import InProcessApi

if TYPE_CHECKING:
    from podium.lab.contents.documents import Document
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects

#: How long pods take to start in a plan; they stop after their grace period.
TIMINGS: Final = KubeletTimings(start=2.0, stop=None, job=60.0)
_LIST: Final = b'{"apiVersion":"v1","kind":"List","items":[%b]}'


def plan(
    items: Iterable[Document],
    changes: Sequence[Change],
    chosen: ChosenProfiles,
    *,
    seed: int = 0,
    limit_seconds: float = LIMIT_SECONDS,
    timings: KubeletTimings = TIMINGS,
    progress: Progress = iter,
    on_step: Callable[[str], None] = lambda _: None,
) -> Plan:
    """Make the *changes* to a copy of the cluster of *items*, and say what follows.

    *items* are manifests, or the objects of a cluster with their uids; they belong to the copy from
    then on. *seed* decides generated names. A change that has not come to rest after
    *limit_seconds* of virtual time is given up. *progress* iterates over the objects that are
    loaded, *on_step* is called with each step of the plan. A `KeyboardInterrupt` ends the plan with
    what is known so far.
    """
    check_files(changes)
    chosen = without_extenders(chosen)
    with (
        without_garbage_collection(),
        SimulatedCluster(seed=seed, kubelet=timings) as cluster,
        ExitStack() as interrupts,
    ):
        cluster.load(items, progress)
        interrupts.enter_context(between_turns(cluster.loop))
        controllers = cluster.start_controllers()
        follower = PodFollower(cluster.registry, controllers.cluster.pods, lambda: cluster.time)
        client = InProcessApi(cluster.server, decodes_lists=True)
        replica = cluster.add_scheduler(chosen, observers=[follower], client=client)
        on_step("the cluster comes to rest")
        cluster.run_until_quiet(limit_seconds)
        found = Plan(profile=chosen.profile.name)
        scheduler = replica.scheduler
        assert scheduler is not None
        found.before = balance(scheduler.state.cache.columns)
        follower.begin()
        start = cluster.time

        def announce(text: str) -> None:
            follower.announce(text)
            on_step(text)

        applier = Applier(cluster, limit_seconds=limit_seconds, announce=announce)
        try:
            for change in changes:
                made = applier.apply(change)
                made.began, made.ended = (round(at - start, 3) for at in (made.began, made.ended))
                found.changes.append(made)
        except KeyboardInterrupt:
            found.interrupted = True
        interrupts.close()
        found.after = balance(scheduler.state.cache.columns)
        found.timeline = follower.timeline
        found.evicted = follower.evicted
        found.seconds = round(max(cluster.last_change - start, 0.0), 3)
        _sort_out(found, follower, applier.deleted)
        _explain(found, cluster, chosen)
    return found


def without_extenders(chosen: ChosenProfiles) -> ChosenProfiles:
    """The same profiles without extenders: a program on virtual time has no connections."""
    profile, *others = (replace(each, extenders=()) for each in chosen.profiles)
    return replace(chosen, profile=profile, others=tuple(others))


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
    went.sort(key=lambda pod: (pod.ended is None, pod.ended or 0.0))
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
            same = next((new for new in came if new.key not in taken), None)
        if same is None:
            continue
        went.remove(old)
        came.remove(same)
        if same.node:
            found.moved.append(_moved(old, same))
        else:
            found.pending.append(_pending(same, from_node=old.node))
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


def _explain(found: Plan, cluster: SimulatedCluster, chosen: ChosenProfiles) -> None:
    """Decide once more about the pods without a node, with all reasons.

    Pods of one workload are equal; one of them is decided about.
    """
    if not found.pending:
        return
    objects = objects_of(cluster)
    keys = {each.pod for each in found.pending}
    waiting = {
        pod.key: pod
        for pod in objects.pods
        if pod.key in keys and is_pending(pod, chosen.schedulers)
    }
    decisions: dict[str, dict[str, object]] = {}
    first, *others = chosen.profiles
    with open_simulation(first, others) as simulation:
        simulation.load(seen_by(objects, chosen.schedulers, without=list(waiting.values())))
        for each in found.pending:
            pod = waiting.get(each.pod)
            if pod is None:
                each.message = "no scheduler of this profile is responsible for it"
                continue
            name = each.workload or each.pod
            if name not in decisions:
                decisions[name] = to_json(simulation.attempt(pod, recording=True))
            each.decision = decisions[name]
            each.message = str(each.decision.get("message") or each.decision.get("error") or "")
            if not each.message and each.decision.get("held"):
                held = each.decision["held"]
                each.message = str(held["reason"])  # type: ignore[index]
            elif not each.message and each.decision.get("node"):
                node = each.decision["node"]
                each.message = f"it would go to {node}; the plan ended before that"


def objects_of(cluster: SimulatedCluster) -> Objects:
    """All objects of a simulated cluster that scheduling reads."""
    store = cluster.registry.store
    records = [
        record.data
        for kind in KINDS.values()
        if kind.name in BY_NAME
        for record in store.table(BY_NAME[kind.name].storage).records.values()
    ]
    return decode(_LIST % b",".join(records))
