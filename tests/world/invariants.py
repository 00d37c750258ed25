"""What must hold, checked on the API server's own history and on the state of the schedulers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from podium.engine.framework.group_decision import ERROR
from podium.lab.api.resources import stored
from podium.objects.quantity import milli
from world.objects import SELECTOR
from world.rules import ANNOTATION

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.virtual_cluster.cluster import Replica
    from world.network import Sent
    from world.run import Entry, Placement, World

#: Seconds in which requests about one object are counted, and how many there may be: beyond them,
#: one for each change of the cluster in that time.
WINDOW_SECONDS, MOST_IN_WINDOW = 10.0, 24
FINISHED = frozenset({"Succeeded", "Failed"})
#: Requests that only the leader may send.
LEADERS_ONLY = frozenset({"bind", "status", "patch", "delete", "event"})


def is_binding(entry: Entry) -> bool:
    """Whether a write has given a pod its node."""
    return (
        entry.kind == "Pod"
        and entry.before is not None
        and entry.after is not None
        and not entry.before["spec"].get("nodeName")
        and bool(entry.after["spec"].get("nodeName"))
    )


def history_findings(world: World) -> Iterator[str]:
    """Everything that the history of writes and requests shows to be wrong."""
    yield from _moved_pods(world)
    yield from _repeated_bindings(world)
    yield from _decided_again(world)
    yield from _leaders(world)
    yield from _storms(world)
    yield from _placements_that_do_not_fit(world)
    yield from _devices(world)
    yield from _torn_groups(world)


# --- bindings -----------------------------------------------------------------------------------


def _moved_pods(world: World) -> Iterator[str]:
    """A pod that has a node keeps it."""
    for entry in world.history:
        if entry.kind == "Pod" and entry.before is not None and entry.after is not None:
            old, new = (each["spec"].get("nodeName", "") for each in (entry.before, entry.after))
            if old and old != new:
                yield f"pod {_name(entry.after)} moved from {old} to {new or 'no node'}"


def _repeated_bindings(world: World) -> Iterator[str]:
    """A replica that was told of a binding sends none for that pod again.

    One that was not told may send the same again, but not one to another node, unless it has asked
    where the pod is or has seen the pod without a node after its own request had ended.
    """
    told: dict[tuple[str, str], float] = {}
    for sent in world.network.sent:
        if sent.verb != "bind":
            continue
        uid = sent.body["metadata"].get("uid", "")
        if (sent.replica, uid) in told:
            yield f"{sent.replica} binds {sent.path} at {sent.time:.3f} s, after it was bound"
        if sent.answered and sent.answered < 300:
            told[sent.replica, uid] = sent.time
    bound: dict[str, tuple[str, str]] = {}
    asked: dict[str, Sent] = {}
    deleted = _deletions(world)
    for sent in world.network.sent:
        if sent.verb == "get":
            asked[sent.path] = sent
        if sent.verb != "bind":
            continue
        uid, node = sent.body["metadata"].get("uid", ""), sent.body["target"]["name"]
        first = bound.get(uid)
        question = asked.get(sent.path.removesuffix("/binding"))
        unknown = (
            question is not None
            and question.replica == sent.replica
            and _does_not_show(question, uid, deleted)
        )
        if first is not None and first[0] == sent.replica and first[1] != node and not unknown:
            yield f"{sent.replica} binds {sent.path} to {node}, having bound it to {first[1]}"
        if sent.done:
            bound[uid] = (sent.replica, node)
            asked.pop(sent.path.removesuffix("/binding"), None)


def _deletions(world: World) -> dict[str, float]:
    """When pods were deleted, by uid."""
    return {
        entry.before["metadata"]["uid"]: entry.time
        for entry in world.history
        if entry.kind == "Pod" and entry.type == "DELETED" and entry.before is not None
    }


def _does_not_show(question: Sent, uid: str, deleted: dict[str, float]) -> bool:
    """Whether the answer to a question was that there is no such pod, or another of that name.

    Any other refusal says nothing of the pod: neither a right that is missing nor a server that is
    busy.
    """
    if question.answered == 404:
        return True
    is_read = question.answered == 200 and question.fault != "garbage"
    return is_read and deleted.get(uid, math.inf) <= question.time + question.took


def _decided_again(world: World) -> Iterator[str]:
    """A replica decides no more about a pod that it has bound, whether it was answered or not.

    Where it had no answer it must ask, and only if that does not show the pod it may try again. So
    it is where an extender has bound the pod for it.
    """
    done: dict[tuple[str, str], Sent] = {}
    questions: dict[str, list[Sent]] = defaultdict(list)
    deleted = _deletions(world)
    for sent in world.network.sent:
        if sent.verb == "bind" and sent.done:
            done[sent.replica, sent.body["metadata"].get("uid", "")] = sent
        elif sent.verb == "get":
            questions[sent.path].append(sent)
    for sent in world.network.extenders_bound:
        done[sent.replica, sent.body] = sent
    for placement in world.placements:
        first = done.get((placement.replica, placement.uid))
        if first is None or placement.time <= first.time + first.took:
            continue
        if not any(
            first.time <= question.time <= placement.time
            and _does_not_show(question, placement.uid, deleted)
            for question in questions[first.path.removesuffix("/binding")]
        ):
            yield (
                f"{placement.replica} decides at {placement.time:.3f} s about a pod that it has "
                f"bound at {first.time:.3f} s by POST {first.path}"
            )


# --- leaders ------------------------------------------------------------------------------------


def _leaders(world: World) -> Iterator[str]:
    """Whoever decides or writes holds the lease, as the API server has it."""
    if len(world.plan.rates) == 1:
        return
    holders = [
        (each.time, str(each.after["spec"].get("holderIdentity") or ""))
        for each in world.history
        if each.kind == "Lease" and each.after is not None
    ]
    times = [time for time, _ in holders]
    acts = [
        (sent.time, sent.replica, f"sends {sent.method} {sent.path}")
        for sent in world.network.sent
        if sent.verb in LEADERS_ONLY
    ]
    acts += [(time, replica, f"attempts pod {key}") for time, replica, key in world.tries]
    for time, replica, what in acts:
        index = bisect_left(times, time) - 1
        holder = holders[index][1] if index >= 0 else ""
        if holder != replica != "fresh":
            yield f"{replica} {what} at {time:.3f} s, while {holder or 'nobody'} holds the lease"
            return


# --- storms -------------------------------------------------------------------------------------


def _storms(world: World) -> Iterator[str]:
    """Requests about one object stay within what changes and backoff explain."""
    changes = [
        each.time
        for each in world.history
        if not each.writer and each.kind not in {"Event", "Lease"}
    ]
    # A pod that could not be bound frees its node, which wakes the others.
    freed = [
        (sent.time, sent.replica, sent.path.removesuffix("binding"))
        for sent in world.network.sent
        if sent.verb == "bind" and not 200 <= sent.answered < 300
    ]
    by_operation: dict[tuple[str, str, str], list[Sent]] = defaultdict(list)
    for sent in world.network.sent:
        if sent.replica != "fresh" and not sent.is_part:  # all pages of a list are one
            # Events are created at one path; each is an operation of its own.
            about = f"{sent.path} {sent.body}" if sent.verb == "event" else sent.path
            by_operation[sent.replica, sent.method, about].append(sent)
    for (replica, method, path), requests in by_operation.items():
        times = [each.time for each in requests]
        for index, start in enumerate(times):
            end = bisect_left(times, start + WINDOW_SECONDS)
            meanwhile = bisect_left(changes, start + WINDOW_SECONDS) - bisect_left(
                changes, start - WINDOW_SECONDS
            )
            if method == "PATCH" and path.endswith("/status"):
                meanwhile += sum(
                    replica == each and abs(time - start) < WINDOW_SECONDS
                    for time, each, pod in freed
                    if not path.startswith(pod)
                )
            most = MOST_IN_WINDOW + 2 * meanwhile
            if end - index > most:
                yield (
                    f"{replica} sends {method} {path} {end - index} times within "
                    f"{WINDOW_SECONDS:g} s from {start:.1f} s, at {meanwhile} changes"
                )
                break


# --- fit ----------------------------------------------------------------------------------------


def _placements_that_do_not_fit(world: World) -> Iterator[str]:
    """Every pod fits its node, by what the replica had seen and what it had done itself."""
    decided: dict[tuple[str, str], Placement] = {}
    placements = iter(world.placements)
    following = next(placements, None)
    nodes: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    bound: dict[str, tuple[str, int, Any]] = {}
    versions: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    bound_at: dict[str, float] = {}
    denied = _denials(world)
    claims: dict[str, Any] = {}
    forgotten: set[tuple[str, int]] = set()
    ports: dict[str, set[int]] = {}
    for entry in world.history:
        while following is not None and following.time <= entry.time:
            decided[following.replica, following.uid] = following
            following = next(placements, None)
        if entry.kind == "Node":
            name = _name(entry.after or entry.before)
            nodes[name].append((entry.version, entry.after))
        elif entry.kind == "PersistentVolumeClaim":
            claims[_name(entry.after or entry.before)] = entry.after
        elif entry.kind == "Pod":
            last = entry.after or entry.before
            assert last is not None
            uid = last["metadata"]["uid"]
            ports[uid] = _ports(last)
            if entry.after is None or entry.after["status"].get("phase") in FINISHED:
                forgotten |= _forgotten_ports(bound.pop(uid, None), bound.values())
                continue
            if is_binding(entry) and entry.writer not in {"", "fresh"}:
                placement = decided.get((entry.writer, uid))
                if placement is None:
                    yield f"{entry.writer} binds pod {_name(entry.after)} without a decision"
                else:
                    others = [
                        _as_seen(versions[each], placement.pods_seen)
                        for each, (by, version, pod) in bound.items()
                        if version <= placement.pods_seen
                        or (
                            by == entry.writer
                            and not _is_denied(denied, placement, pod, bound_at[each])
                        )
                    ]
                    seen = _versions(nodes[placement.node], placement.nodes_seen)
                    freed = _freed_ports(placement, decided, bound, ports)
                    yield from _misfit(
                        entry, placement, seen, others, claims, forgotten=forgotten | freed
                    )
            node = entry.after["spec"].get("nodeName")
            if node:
                by, version, _ = bound.get(uid, (entry.writer, entry.version, None))
                bound[uid] = (by, version, entry.after)
                bound_at.setdefault(uid, entry.time)
                versions[uid].append((entry.version, entry.after))


def _denials(world: World) -> dict[tuple[str, str], list[float]]:
    """When each replica was told of a pod, by its path, that there is none."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sent in world.network.sent:
        if sent.verb == "get" and sent.answered == 404:
            found[sent.replica, sent.path].append(sent.ended)
    return found


def _is_denied(
    denied: dict[tuple[str, str], list[float]], placement: Placement, pod: Any, since: float
) -> bool:
    """Whether the replica was told between the binding and its decision that there is no pod."""
    path = f"/api/v1/namespaces/default/pods/{_name(pod)}"
    told = denied.get((placement.replica, path), ())
    return any(since <= time <= placement.time for time in told)


def _as_seen(versions: list[tuple[int, Any]], seen: int) -> Any:
    """A placed pod as the replica knew it, or as it was since: the one that requests least.

    Others may have been placed beside it after it was made smaller.
    """
    known = _versions(versions, seen)
    return min(known, key=lambda pod: _request(pod, "cpu"))


def _devices(world: World) -> Iterator[str]:
    """A device belongs to one claim; a pod that is bound has its claims, with their devices."""
    if world.plan.generation == "v1.13":
        return  # which knows of no claims
    claims: dict[str, Any] = {}
    for entry in world.history:
        if entry.kind == "ResourceClaim":
            name = _name(entry.after or entry.before)
            if entry.after is None:
                claims.pop(name, None)
                continue
            claims[name] = entry.after
            own = _allocated(entry.after)
            for other, claim in claims.items():
                if other != name and own & _allocated(claim):
                    shared = sorted(own & _allocated(claim))
                    yield f"claims {name} and {other} have {shared} at {entry.time:.3f} s"
        elif is_binding(entry) and entry.writer:
            yield from _misses_devices(entry, claims)


def _misses_devices(binding: Entry, claims: dict[str, Any]) -> Iterator[str]:
    """The claims that a bound pod does not have, or whose devices are on another node."""
    pod = binding.after
    assert pod is not None
    for wanted in pod["spec"].get("resourceClaims") or ():
        claim = claims.get(wanted["resourceClaimName"]) or {}
        reserved = {each["uid"] for each in (claim.get("status") or {}).get("reservedFor") or ()}
        if pod["metadata"]["uid"] not in reserved:
            yield f"pod {_name(pod)} is bound without its claim"
        elif {pool for _, pool, _ in _allocated(claim)} != {pod["spec"]["nodeName"]}:
            yield f"pod {_name(pod)} is bound where its devices are not"


def _torn_groups(world: World) -> Iterator[str]:
    """Pods of a group are decided together: as many as it needs have nodes, or get them at once."""
    groups: dict[str, list[int]] = defaultdict(list)
    member_of: dict[str, str] = {}
    for entry in world.history:
        item = entry.after or entry.before
        assert item is not None
        if entry.kind == "PodGroup":
            groups[_name(item)].append(_least(item))
        elif entry.kind == "Pod" and item["spec"].get("schedulingGroup"):
            member_of[item["metadata"]["uid"]] = item["spec"]["schedulingGroup"]["podGroupName"]
    placed: dict[str, set[str]] = defaultdict(set)
    at_once: dict[tuple[str, float, str], set[str]] = defaultdict(set)
    gone = {
        entry.before["metadata"]["uid"]: entry.version
        for entry in world.history
        if entry.kind == "Pod" and entry.type == "DELETED" and entry.before is not None
    }
    for placement in world.placements:
        group = member_of.get(placement.uid)
        if group is not None:
            placed[group].add(placement.uid)
            at_once[group, placement.cycle, placement.replica] |= {
                uid for uid in placed[group] if gone.get(uid, math.inf) > placement.pods_seen
            }
    for (group, _, replica), uids in at_once.items():
        if len(uids) < min(groups[group]):
            yield f"{replica} places {len(uids)} pods of group {group}"


def _least(group: Any) -> int:
    """How many pods of a group are placed at least."""
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])


def _allocated(claim: Any) -> set[tuple[str, str, str]]:
    """The devices that a claim has."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(each["driver"], each["pool"], each["device"]) for each in results}


def _versions(versions: list[tuple[int, Any]], seen: int) -> list[Any]:
    """What a node was like from the version that was seen on; None where it was deleted."""
    before = [node for version, node in versions if version <= seen]
    return before[-1:] + [node for version, node in versions if version > seen]


def _forgotten_ports(
    left: tuple[str, int, Any] | None, others: Iterable[tuple[str, int, Any]]
) -> set[tuple[str, int]]:
    """The ports of other pods that count as free once a pod has left that used them as well.

    Only another scheduler puts two such pods onto a node; kube-scheduler keeps a set of the ports.
    """
    if left is None:
        return set()
    node = left[2]["spec"].get("nodeName")
    return {
        (each["metadata"]["uid"], port)
        for _, _, each in others
        if each["spec"].get("nodeName") == node
        for port in _ports(each) & _ports(left[2])
    }


def _freed_ports(
    placement: Placement,
    decided: dict[tuple[str, str], Placement],
    bound: dict[str, tuple[str, int, Any]],
    ports: dict[str, set[int]],
) -> set[tuple[str, int]]:
    """The ports of other pods that a pod freed when it was assumed there and then forgotten.

    The replica had not seen the other pod when it assumed this one, whose binding was refused.
    """
    left = {
        port
        for (replica, uid), other in decided.items()
        if replica == placement.replica and other.node == placement.node
        if uid != placement.uid and not _is_on(bound.get(uid), placement.node)
        for port in ports.get(uid, ())
    }
    return {
        (uid, port)
        for uid, found in bound.items()
        if _is_on(found, placement.node)
        for port in ports.get(uid, set()) & left
    }


def _is_on(found: tuple[str, int, Any] | None, node: str) -> bool:
    return found is not None and found[2]["spec"].get("nodeName") == node


def _misfit(
    entry: Entry,
    placement: Placement,
    seen: list[Any],
    others: list[Any],
    claims: dict[str, Any],
    *,
    forgotten: set[tuple[str, int]],
) -> Iterator[str]:
    pod = entry.after
    assert pod is not None
    what = f"pod {_name(pod)} on node {placement.node} at {entry.time:.3f} s"
    present = [node for node in seen if node is not None]
    if not present:
        yield f"{what}: there is no such node"
        return
    if not any(_accepts(node, pod) for node in present):
        yield f"{what}: the node is cordoned, has taints or other labels"
    here = [
        each
        for each in others
        if each["spec"]["nodeName"] == placement.node
        and each["metadata"]["uid"] != pod["metadata"]["uid"]
    ]
    for resource in ("cpu", "memory"):
        room = max(_amount(node["status"]["allocatable"].get(resource, "0")) for node in present)
        used = sum(_request(each, resource) for each in [*here, pod])
        if used > room and _request(pod, resource):  # a node may be overfull since it shrank
            yield f"{what}: {resource} {used} of {room}"
    if len(here) + 1 > max(int(node["status"]["allocatable"]["pods"]) for node in present):
        yield f"{what}: {len(here) + 1} pods"
    taken = {(each["metadata"]["uid"], port) for each in here for port in _ports(each)}
    if _ports(pod) & {port for _, port in taken - forgotten}:
        yield f"{what}: its host port is taken"
    if _slot(pod) is not None and _slot(pod) in map(_slot, here):
        yield f"{what}: its slot {_slot(pod)} is taken"
    if any(_keeps_off(pod, each) or _keeps_off(each, pod) for each in here):
        yield f"{what}: it must not be beside a pod like itself"
    yield from (f"{what}: its claim {name} is not bound" for name in _unbound(pod, claims))


def _unbound(pod: Any, claims: dict[str, Any]) -> Iterator[str]:
    """The claims of a pod that have no volume."""
    for volume in pod["spec"].get("volumes") or ():
        wanted = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = claims.get(wanted) if wanted else None
        if wanted and claim is not None and not claim["spec"].get("volumeName"):
            yield wanted


def pods_with_slots(world: World) -> set[str]:
    """The pods for which a reserve rule takes a slot, and a permit rule reads the time."""
    return {
        f"default/{_name(entry.after)}"
        for entry in world.history
        if entry.kind == "Pod" and entry.after is not None
        if (entry.after["metadata"].get("labels") or {}).get("slot") == "yes"
    }


def _slot(pod: Any) -> str | None:
    """The slot that a reserve rule has taken for a pod."""
    found: str | None = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    return found


def _accepts(node: Any, pod: Any) -> bool:
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    tolerated = {each.get("key", "") for each in spec.get("tolerations") or ()}
    taints = node["spec"].get("taints") or ()
    return not node["spec"].get("unschedulable") and all(
        each["effect"] == "PreferNoSchedule" or each["key"] in tolerated for each in taints
    )


def _request(pod: Any, resource: str) -> int:
    return sum(
        _amount(each.get("resources", {}).get("requests", {}).get(resource, "0"))
        for each in pod["spec"]["containers"]
    )


def _amount(text: str) -> int:
    return milli(text)


def _ports(pod: Any) -> set[int]:
    ports = (port for each in pod["spec"]["containers"] for port in each.get("ports") or ())
    return {port["hostPort"] for port in ports if port.get("hostPort")}


def _keeps_off(pod: Any, other: Any) -> bool:
    """Whether a pod refuses to be beside the other; all such terms are the same."""
    terms = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    refuses = bool(terms.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return refuses and (other["metadata"].get("labels") or {}).get("app") == SELECTOR["app"]


def _name(item: Any) -> str:
    return str(item["metadata"]["name"])


# --- rest ---------------------------------------------------------------------------------------


def unknown_objects(world: World, replica: Replica) -> list[str]:
    """The kinds of which a replica knows other objects than there are."""
    scheduler = replica.scheduler
    assert scheduler is not None
    kinds = []
    for kind in scheduler._informers.kinds:
        known = {
            key: item.metadata.resource_version
            for key, item in scheduler.state.index(kind).known.items()
        }
        there = {}
        for record in world.cluster.registry.store.table(stored(kind).storage).records.values():
            if kind == "Pod" and record.fields.get("status.phase") in FINISHED:
                continue
            there[f"{record.key.namespace or 'default'}/{record.key.name}"] = str(record.version)
        if known != there:
            kinds.append(kind)
    return kinds


def state_findings(world: World, replica: Replica) -> Iterator[str]:
    """What a replica at rest holds that it should not, or does not hold that it should."""
    scheduler = replica.scheduler
    if scheduler is None:
        yield f"{replica.name} has not started"
        return
    if not scheduler.leading.is_set():
        return
    cache, queue = scheduler.cache, scheduler.queue
    leftovers = {
        "assumed pods": cache.assumed_total,
        "pods being bound": scheduler.binding,
        "pods in flight": queue.in_flight,
        "events kept for pods in flight": len(queue._in_flight._requests),
        "other writes": len(scheduler._writes),
        "retries": sum(each.failure_handler.retrying for each in scheduler._all_actions()),
        "promised volumes": len(cache.columns.catalog.promised_volumes)
        + len(cache.columns.catalog.provisioning),
        "devices in flight": len(cache.columns.catalog.resource_claims.in_flight),
        "queued changes": len(scheduler.state._waiting or ()),
        "earlier actions": len(scheduler._former_actions),
    }
    for what, count in leftovers.items():
        if count:
            yield f"{replica.name} is left with {count} {what}"
    yield from _cached(world, replica)
    yield from _nominated(world, replica)
    pending = {
        each["metadata"]["uid"]
        for each in world.cluster.registry.list("Pod")
        if not each["spec"].get("nodeName")
    }
    told = scheduler.state._listener._last  # type: ignore[attr-defined]
    if not set(told) <= pending:
        yield f"{replica.name} remembers {len(set(told) - pending)} pods that wait no more"


def _cached(world: World, replica: Replica) -> Iterator[str]:
    """The cache counts every pod on its node, and knows which are being deleted."""
    assert replica.scheduler is not None
    columns = replica.scheduler.cache.columns
    there = {
        each["metadata"]["uid"]: each
        for each in world.cluster.registry.list("Pod")
        if each["spec"].get("nodeName") and each["status"].get("phase") not in FINISHED
    }
    residents = columns.pods.by_uid
    for uid, pod in there.items():
        resident = residents.get(uid)
        if resident is None:
            yield f"{replica.name} does not count pod {_name(pod)} on its node"
            continue
        node = columns.nodes.names[resident.row]
        if node != pod["spec"]["nodeName"]:
            yield f"{replica.name} counts pod {_name(pod)} on {node}"
        if resident.terminating != bool(pod["metadata"].get("deletionTimestamp")):
            yield f"{replica.name} is wrong about the deletion of pod {_name(pod)}"
    for uid in residents.keys() - there.keys():
        yield f"{replica.name} counts pod {residents[uid].key}, which is not on any node"


def _nominated(world: World, replica: Replica) -> Iterator[str]:
    """The nominations of the queue are those of the API server, each to a node that exists.

    A pod that is being deleted is not attempted again: a nomination of it that could not be written
    is held until it is gone, as kube-scheduler does it.
    """
    assert replica.scheduler is not None
    queue = replica.scheduler.queue
    held = {
        pod.key: node
        for node in queue.nominated_nodes()
        for pod in queue.nominated_on(node)
        if pod.metadata.deletion_timestamp is None
    }
    written = {}
    for each in world.cluster.registry.list("Pod"):
        node = (each.get("status") or {}).get("nominatedNodeName")
        is_going = bool(each["metadata"].get("deletionTimestamp"))
        if node and not each["spec"].get("nodeName") and not is_going:
            written[f"default/{_name(each)}"] = node
    if held != written:
        yield f"{replica.name} has nominations {held}, the API server {written}"


def waiting_pods(world: World) -> set[str]:
    """Pods that wait for a node."""
    return {_name(pod) for pod in world.cluster.registry.list("Pod") if _waits(pod)}


def lost_nominations(world: World) -> set[str]:
    """Pods that wait, and are nominated to nodes that do not exist."""
    nodes = {_name(each) for each in world.cluster.registry.list("Node")}
    return {
        _name(pod)
        for pod in world.cluster.registry.list("Pod")
        if _waits(pod)
        and ((pod.get("status") or {}).get("nominatedNodeName") or "") not in {"", *nodes}
    }


def waiting_claimants(world: World) -> set[str]:
    """Pods that wait, have claims of devices, and were tried with a preemption at last.

    And those of which the last attempt has deleted a claim for extended resources: before v1.37,
    the deletion of a claim wakes no pod.
    """
    last = {decision.uid: decision for _, _, decision in world.decisions}
    return {
        _name(pod)
        for pod in world.cluster.registry.list("Pod")
        if _waits(pod)
        and (found := last.get(pod["metadata"]["uid"])) is not None
        and (found.preemption if pod["spec"].get("resourceClaims") else found.released) is not None
    }


def late_findings(world: World, start: int, late: set[str]) -> Iterator[str]:
    """The first pod for which time alone changes something is one that no event wakes."""
    for entry in world.history[start:]:
        if not entry.writer or is_repetition(entry):
            continue
        name = _name(entry.after or entry.before)
        if entry.kind == "Pod" and name not in late:
            what = "fits" if is_binding(entry) else "is changed"
            yield f"pod {name} {what}, and only time has woken it"
        return


def gave_up_nominations(world: World, since: float) -> bool:
    """Whether a replica has taken a nomination back since that time, or a nominated pod is gone."""
    return any(
        entry.kind == "Pod"
        and bool(((entry.before or {}).get("status") or {}).get("nominatedNodeName"))
        and (
            entry.after is None
            or (
                bool(entry.writer)
                and _waits(entry.after)
                and not (entry.after.get("status") or {}).get("nominatedNodeName")
            )
        )
        for entry in takewhile(lambda each: each.time >= since, reversed(world.history))
    )


def stored_findings(world: World) -> Iterator[str]:
    """What the API server shows once the cluster is at rest: nothing is waited for in vain."""
    nodes = {_name(each) for each in world.cluster.registry.list("Node")}
    for pod in world.cluster.registry.list("Pod"):
        nominated = (pod.get("status") or {}).get("nominatedNodeName")
        # Some attempts leave a nomination as it is (`keeps_nomination`).
        kept_at = world.kept_nominations.get(pod["metadata"]["uid"])
        kept = kept_at is not None and kept_at > _deleted_at(world, nominated)
        kept |= world.plan.generation == "v1.13" and _waits_for_victims(world, pod, nominated)
        # A pod that is being deleted is not attempted any more.
        if nominated and _waits(pod) and nominated not in nodes and not kept:
            yield f"pod {_name(pod)} is nominated to {nominated}, which is gone"
        if _waits(pod) and not _is_told(pod) and not _is_incomplete(world, pod):
            yield f"pod {_name(pod)} waits, and nothing says why"


def _is_incomplete(world: World, pod: Any) -> bool:
    """Whether a pod waits for its group, or for other pods of it: it is not attempted."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if name is None:
        return False
    group = world.cluster.registry.find("PodGroup", name, "default")
    members = [
        each
        for each in world.cluster.registry.list("Pod")
        if (each["spec"].get("schedulingGroup") or {}).get("podGroupName") == name
        and not each["metadata"].get("deletionTimestamp")
        and each["status"].get("phase") not in FINISHED
    ]
    return group is None or len(members) < _least(group)


def keeps_nomination(decision: Decision, generation: str, group: GroupDecision | None) -> bool:
    """Whether kube-scheduler leaves the nomination to a node that is gone after this attempt.

    In v1.13 it does so where the attempt ended with an error, as it does while there is no node at
    all, and where preemption might help somewhere and finds no victims. In v1.36 it does so for a
    pod that is held or that a pre-filter refuses: the post-filter for devices ends with an error.
    So it does for a pod of a *group* that does not fit, unless the cycle of the group is an error.
    """
    if decision.node is not None:
        return False
    if generation == "v1.13":
        tried = decision.preemption
        return tried is None or (bool(tried.potential) and tried.node is None)
    if group is not None:
        return group.code != ERROR
    return decision.held is not None or decision.refused is not None


def _waits_for_victims(world: World, pod: Any, node: str | None) -> bool:
    """Whether pods of lower priority are leaving a node: v1.13 attempts no other preemption.

    It does not look whether the node still exists (podEligibleToPreemptOthers).
    """
    priority = pod["spec"].get("priority") or 0
    return any(
        each["spec"].get("nodeName") == node
        and bool(each["metadata"].get("deletionTimestamp"))
        and (each["spec"].get("priority") or 0) < priority
        for each in world.cluster.registry.list("Pod")
    )


def _deleted_at(world: World, node: str | None) -> float:
    """When a node was last deleted."""
    deleted = (
        each.time
        for each in world.history
        if each.kind == "Node" and each.after is None and _name(each.before) == node
    )
    return max(deleted, default=0.0)


def _waits(pod: Any) -> bool:
    return (
        not pod["spec"].get("nodeName")
        and pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
        and not pod["spec"].get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and pod["status"].get("phase") not in FINISHED
    )


def _is_told(pod: Any) -> bool:
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each.get("message")
        for each in pod["status"].get("conditions") or ()
    )


def is_repetition(entry: Entry) -> bool:
    """Whether a write of a scheduler only says again what was said before."""
    if entry.kind in {"Event", "Lease"}:
        return True
    if not entry.writer or entry.kind != "Pod" or entry.before is None or entry.after is None:
        return False
    return bool(said_by(entry.before) == said_by(entry.after))


def vain_preemptions(world: World, entry: Entry) -> Counter[str]:
    """The pods for which a victim was evicted whose successors take the node again, in v1.13.

    There a pod with anti-affinity does not see pods that are nominated to a node, only these see
    it (AddPod of its predicate metadata asks for the node name of a pod). While the preemptor
    rests, the workload of the victim takes the node, and is evicted again, for ever, with the
    pauses of the preemptor. A user ends this by deleting one of them, and so does the world.
    """
    victim, left = entry.before, entry.after
    if world.plan.generation != "v1.13" or entry.kind != "Pod" or not entry.writer:
        return Counter()
    if victim is None or victim["metadata"].get("deletionTimestamp"):
        return Counter()
    if left is not None and not left["metadata"].get("deletionTimestamp"):
        return Counter()
    node = victim["spec"].get("nodeName", "")
    return Counter(
        _name(pod)
        for pod in world.cluster.registry.list("Pod")
        if _waits(pod)
        and (pod.get("status") or {}).get("nominatedNodeName") == node
        and _keeps_off(victim, pod)
        and not _keeps_off(pod, victim)
    )


def fresh_findings(world: World, start: int) -> Iterator[str]:
    """A scheduler that is started on the cluster at rest changes nothing."""
    for entry in world.history[start:]:
        if entry.writer != "fresh" or entry.kind in {"Event", "Lease"}:
            continue
        if entry.kind == "PodGroup" and _group_says(entry.before) == _group_says(entry.after):
            continue
        what = f"{entry.type} {entry.kind} {_name(entry.after or entry.before)}"
        if entry.kind == "Pod" and entry.after is not None and entry.before is not None:
            if is_repetition(entry):
                continue
            if entry.before["spec"].get("schedulingGates") and not is_binding(entry):
                # v1.13 knows no gates. It attempts such pods again and again, and the API server
                # refuses them; what is said of one depends on whether another is on its way.
                continue
            before, after = (said_by(each) for each in (entry.before, entry.after))
            node = entry.after["spec"].get("nodeName", "")
            if is_binding(entry):
                what = f"pod {_name(entry.after)} fits {node}, and was not bound"
            else:
                what = f"pod {_name(entry.after)}: {_difference(before, after)}"
        yield f"a fresh scheduler finds something to do: {what}"


def _group_says(group: Any) -> Any:
    """What a group says, without times and texts, which depend on the node that is tried first."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    return [(each["type"], each["status"], each.get("reason")) for each in conditions]


def said_by(pod: Any) -> Any:
    """What a pod says, without times and texts.

    A text may name nodes that are gone by now: changes that cannot help a pod do not wake it.
    """
    conditions = {
        each["type"]: (each["status"], each.get("reason"), bool(each.get("message")))
        for each in pod["status"].get("conditions") or ()
    }
    return (
        conditions,
        pod["status"].get("nominatedNodeName"),
        pod["spec"].get("nodeName"),
        pod["metadata"].get("deletionTimestamp"),
        pod["metadata"].get("annotations"),
    )


def _difference(before: Iterable[Any], after: Iterable[Any]) -> str:
    return "; ".join(
        f"{old} becomes {new}" for old, new in zip(before, after, strict=True) if old != new
    )
