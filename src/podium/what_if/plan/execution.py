"""Carries out the changes of a plan on a simulated cluster, one after the other.

A change is made as a client of the API server would make it: `drain` evicts through disruption
budgets and tries again, `apply` and `rollout` patch, `lose` deletes nodes. What follows is up to
the controllers and the scheduler of the cluster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.lab.api.encoding import APPLY_PATCH, MERGE_PATCH
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import BY_NAME, STORED, Resource
from podium.lab.api.status import StatusError
from podium.lab.contents.documents import Document, documents
from podium.lab.controllers.framework.object_fields import annotation, controller_of
from podium.lab.controllers.node_lifecycle import registered_status
from podium.lab.controllers.workloads.deployments import HASH_LABEL
from podium.library.reading import contents
from podium.library.workloads import MIRROR
from podium.objects.quantity import milli
from podium.profiles.similar_names import did_you_mean
from podium.render.plain import listed
from podium.what_if.plan.changes import (
    AddNodes,
    Apply,
    Change,
    Cordon,
    Delete,
    Drain,
    Lose,
    NodeSelection,
    ObjectName,
    ReplaceNodes,
    Rollout,
    Scale,
    SetRequests,
    SetTaint,
)
from podium.what_if.plan.results import AppliedChange, BlockedEviction

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject
    from podium.virtual_cluster.cluster import SimulatedCluster

#: Seconds after which `kubectl drain` tries a refused eviction again.
EVICTION_RETRY_SECONDS: Final = 5.0
#: Virtual seconds after which a change that has not come to rest is given up.
LIMIT_SECONDS: Final = 3600.0
#: The pods of a drained node are evicted at one instant in the order of their names, in the
#: reverse order, or each after the one before has come to rest.
EVICTING: Final = ("together", "reversed", "singly")
TOGETHER, REVERSED, SINGLY = EVICTING
_TOO_MANY_REQUESTS: Final = 429
_NOT_FOUND: Final = 404
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_HOSTNAME: Final = "kubernetes.io/hostname"
_MANAGER: Final = WriteOptions(manager="podium-plan", force=True)
_SCALABLE: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
_RESTARTABLE: Final = ("Deployment", "StatefulSet", "DaemonSet")
#: Taints that controllers set, and that a new node does not have.
_CONDITION_TAINTS: Final = "node.kubernetes.io/"
#: How many names an error lists.
_NAMED: Final = 8


def check_files(changes: Iterable[Change]) -> None:
    """Refuse changes whose files cannot be read, before anything is simulated."""
    for change in changes:
        if isinstance(change, Apply):
            try:
                found = _read(change.path)
            except InputError as error:
                raise error.located(where=f"--{change}") from None
            if not found:
                raise InputError("holds no object", where=change.path)


class Applier:
    """Makes changes to one simulated cluster and lets it come to rest after each."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        limit_seconds: float = LIMIT_SECONDS,
        evicting: str = TOGETHER,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        """*announce* is called with each step that a person would take, in words.

        *evicting* is one of `EVICTING`: `kubectl drain` evicts in no fixed order.
        """
        self._cluster = cluster
        self._registry = cluster.registry
        self._limit = limit_seconds
        self._evicting = evicting
        self._announce = announce
        #: The pods that a change names, by namespace and name: they are meant to go.
        self.deleted: set[str] = set()

    def apply(self, change: Change) -> AppliedChange:
        """Make one change and let the cluster come to rest."""
        made = AppliedChange(change=str(change), began=self._cluster.time)
        try:
            self._make(change, made)
        except StatusError as error:
            raise InputError(error.message, where=f"--{change}") from None
        except InputError as error:
            raise error.located(where=f"--{change}") from None
        made.unfinished |= not self._cluster.run_until_quiet(self._limit)
        made.ended = max(self._cluster.last_change, made.began)
        return made

    @singledispatchmethod
    def _make(self, change: Change, made: AppliedChange) -> None:  # noqa: ARG002
        """Make one change; each kind of change has a method of its own."""
        raise TypeError(f"{type(change).__name__} is no change")

    # --- nodes ------------------------------------------------------------------------------

    def _nodes(self, wanted: NodeSelection) -> list[str]:
        """The names of the selected nodes, at least one."""
        nodes = self._registry.list("Node")
        names = [each["metadata"]["name"] for each in nodes]
        if wanted.name:
            if wanted.name not in names:
                hint = did_you_mean(wanted.name, names) or _some(names)
                raise InputError(f"there is no node {wanted.name!r}", hint=hint)
            return [wanted.name]
        labels = [each["metadata"].get("labels") or {} for each in nodes]
        found = [
            name
            for name, has in zip(names, labels, strict=True)
            if has.get(wanted.label) == wanted.value
        ]
        if not found:
            values = sorted({has[wanted.label] for has in labels if wanted.label in has})
            hint = f"its values are {listed(values, _NAMED)}"
            if not values:
                keys = sorted({key for has in labels for key in has})
                known = f"labels of nodes are {listed(keys, _NAMED) or 'none'}"
                hint = did_you_mean(wanted.label, keys) or known
            raise InputError(f"no node has the label {wanted}", hint=hint)
        return found

    @_make.register
    def _(self, change: Drain, made: AppliedChange) -> None:
        self._drain(self._nodes(change.nodes), made)

    @_make.register
    def _(self, change: Lose, _made: AppliedChange) -> None:
        for name in self._nodes(change.nodes):
            self._announce(f"node {name} is lost")
            self._registry.delete("Node", name)

    @_make.register
    def _(self, change: Cordon, _made: AppliedChange) -> None:
        for name in self._nodes(change.nodes):
            self._cordon(name, unschedulable=change.unschedulable)

    @_make.register
    def _(self, change: SetTaint, _made: AppliedChange) -> None:
        for name in self._nodes(change.nodes):
            self._taint(name, change)

    def _cordon(self, name: str, *, unschedulable: bool) -> None:
        def edit(node: JsonObject) -> JsonObject:
            node["spec"]["unschedulable"] = unschedulable
            return node

        self._announce(f"node {name} is {'cordoned' if unschedulable else 'uncordoned'}")
        self._registry.modify("Node", name, change=edit)

    def _taint(self, name: str, wanted: SetTaint) -> None:
        def edit(node: JsonObject) -> JsonObject:
            taints = node["spec"].get("taints") or []
            kept = [
                taint
                for taint in taints
                if taint["key"] != wanted.key or (wanted.effect not in {"", taint["effect"]})
            ]
            if wanted.remove and len(kept) == len(taints):
                keys = list(dict.fromkeys(taint["key"] for taint in taints))
                raise InputError(f"node {name} has no such taint", hint=_some(keys))
            if not wanted.remove:
                taint = {"key": wanted.key, "value": wanted.value, "effect": wanted.effect}
                kept.append({part: text for part, text in taint.items() if text})
            node["spec"]["taints"] = kept
            return node

        self._registry.modify("Node", name, change=edit)
        self._announce(f"node {name}: taint {wanted.key} {'removed' if wanted.remove else 'added'}")

    def _drain(self, nodes: list[str], made: AppliedChange) -> None:
        """Cordon the nodes, then evict their pods; a refused eviction is tried again."""
        for name in nodes:
            self._cordon(name, unschedulable=True)
        # The disruption budgets of a cluster that was just loaded are counted first.
        self._cluster.run_until_quiet(self._limit)
        for name in nodes:
            self._evict_pods(name, made)

    def _evict_pods(self, node: str, made: AppliedChange) -> None:
        waiting = list(self._pods_to_evict(node, made))
        if self._evicting == REVERSED:
            waiting.reverse()
        end = self._cluster.time + self._limit
        while waiting:
            refused: dict[str, str] = {}
            for key in waiting:
                problem = self._evict(key)
                if problem:
                    refused["/".join(key)] = problem
                elif self._evicting == SINGLY:
                    self._cluster.run_until_quiet(self._limit)
            waiting = [key for key in waiting if "/".join(key) in refused]
            if not waiting:
                break
            # While the cluster is at rest, a refused eviction stays refused.
            quiet = self._cluster.run_until_quiet(EVICTION_RETRY_SECONDS)
            if (quiet and self._still_refused(waiting, refused)) or self._cluster.time > end:
                made.blocked += [
                    BlockedEviction(pod="/".join(key), node=node, reason=refused["/".join(key)])
                    for key in waiting
                ]
                break

    def _still_refused(self, waiting: list[tuple[str, str]], refused: dict[str, str]) -> bool:
        """Whether all evictions are refused in the cluster at rest; one that is not is made."""
        for key in list(waiting):
            problem = self._evict(key)
            if not problem:
                waiting.remove(key)
                refused.pop("/".join(key))
                return False
            refused["/".join(key)] = problem
        return True

    def _pods_to_evict(self, node: str, made: AppliedChange) -> Iterable[tuple[str, str]]:
        """The pods that `kubectl drain` evicts, by namespace and name, with notes on the others."""
        on_node = self._cluster.start_controllers().cluster.pods.on_node(node)
        for namespace, name in sorted(on_node):
            pod = self._registry.find("Pod", name, namespace)
            assert pod is not None
            owner = controller_of(pod)
            finished = (pod.get("status") or {}).get("phase") in _FINISHED
            if annotation(pod, MIRROR):
                made.notes.append(f"{_key(pod)} stays on {node}: a static pod")
                continue
            if owner is not None and owner["kind"] == "DaemonSet" and not finished:
                made.notes.append(f"{_key(pod)} stays on {node}: a pod of a daemon set")
                continue
            if not finished and owner is None:
                made.notes.append(
                    f"{_key(pod)} on {node} has no controller that would create it anew "
                    "(kubectl drain asks for --force)"
                )
            if not finished and _has_local_storage(pod):
                made.notes.append(
                    f"{_key(pod)} on {node} has local storage, which is lost "
                    "(kubectl drain asks for --delete-emptydir-data)"
                )
            yield namespace, name

    def _evict(self, key: tuple[str, str]) -> str:
        """Evict one pod; why that was refused, or nothing."""
        namespace, name = key
        try:
            self._registry.evict(name, namespace)
        except StatusError as error:
            if error.code == _NOT_FOUND:
                return ""
            causes = [each.get("message", "") for each in error.details.get("causes") or ()]
            return "; ".join(filter(None, causes)) or error.message
        return ""

    @_make.register
    def _(self, wanted: AddNodes, _made: AppliedChange) -> None:
        like = self._registry.find("Node", wanted.like)
        if like is None:
            like = _node_of_file(wanted.like, [_name(each) for each in self._registry.list("Node")])
        for _ in range(wanted.count):
            self._add_node_like(like)

    def _add_node_like(self, like: JsonObject) -> str:
        """Add a node of the same shape; its name."""
        name = self._free_name(_name(like))
        labels = {**(like["metadata"].get("labels") or {}), _HOSTNAME: name}
        spec = {
            "taints": [
                taint
                for taint in (like.get("spec") or {}).get("taints") or ()
                if not taint.get("key", "").startswith(_CONDITION_TAINTS)
            ]
        }
        status = like.get("status") or {}
        node: JsonObject = {
            "metadata": {"name": name, "labels": labels},
            "spec": spec if spec["taints"] else {},
            "status": {
                part: copy.deepcopy(status[part])
                for part in ("capacity", "allocatable", "images", "features", "declaredFeatures")
                if part in status
            },
        }
        node["status"] = registered_status(node, self._registry.timestamp())
        status = node["status"]
        self._announce(f"node {name} is added")
        self._registry.create("Node", node)
        self._registry.modify(
            "Node", name, change=lambda it: {**it, "status": status}, subresource="status"
        )
        attached = self._registry.find("CSINode", _name(like))
        if attached is not None:
            drivers = [{**each, "nodeID": name} for each in (attached["spec"].get("drivers") or ())]
            copied = {"metadata": {"name": name}, "spec": {"drivers": drivers}}
            self._registry.create("CSINode", copied)
        return name

    def _free_name(self, like: str) -> str:
        """A name of a node that is not taken: `worker-1-new-1`."""
        number = 1
        while self._registry.find("Node", f"{like}-new-{number}") is not None:
            number += 1
        return f"{like}-new-{number}"

    @_make.register
    def _(self, wanted: ReplaceNodes, made: AppliedChange) -> None:
        """Replace nodes in batches: add new ones, drain the old ones, delete them."""
        nodes = self._nodes(wanted.nodes)
        for first in range(0, len(nodes), wanted.surge):
            batch = nodes[first : first + wanted.surge]
            for name in batch:
                self._add_node_like(self._registry.get("Node", name))
            before = len(made.blocked)
            self._drain(batch, made)
            made.unfinished |= not self._cluster.run_until_quiet(self._limit)
            blocked = {each.node for each in made.blocked[before:]}
            for name in batch:
                if name in blocked:
                    made.notes.append(f"node {name} is not deleted: it cannot be drained")
                    continue
                self._announce(f"node {name} is deleted")
                self._registry.delete("Node", name)
            if blocked:
                left = nodes[first + wanted.surge :]
                if left:
                    made.notes.append(f"nodes that were not reached: {', '.join(left)}")
                return

    # --- other objects ----------------------------------------------------------------------

    def _find(self, wanted: ObjectName) -> tuple[Resource, JsonObject]:
        """The one object of this kind and name."""
        resource = _resource(wanted.kind)
        namespace = wanted.namespace if resource.namespaced else ""
        found = [
            each
            for each in self._registry.list(resource.qualified, namespace)
            if _name(each) == wanted.name
        ]
        if not found and resource.kind == "Deployment":
            found = self._replica_sets_of(wanted)
            resource = _resource("ReplicaSet") if found else resource
        if len(found) == 1:
            return resource, found[0]
        if found:
            spaces = ", ".join(each["metadata"]["namespace"] for each in found)
            hint = f"say which with --namespace; it is in {spaces}"
            raise InputError(f"there are several {resource.plural} {wanted.name!r}", hint=hint)
        problem = f"there is no {resource.singular} {wanted.name!r}"
        if namespace:
            problem += f" in the namespace {namespace}"
            others = [e for e in self._registry.list(resource.qualified) if _name(e) == wanted.name]
            if others:
                spaces = listed([each["metadata"]["namespace"] for each in others], _NAMED)
                raise InputError(problem, hint=f"it is in {spaces}")
        names = [_name(each) for each in self._registry.list(resource.qualified, namespace)]
        known = _some(names) if names else "the input has none"
        raise InputError(problem, hint=did_you_mean(wanted.name, names) or known)

    def _replica_sets_of(self, wanted: ObjectName) -> list[JsonObject]:
        """Replica sets with pods that stand for a deployment which is not in the input."""
        found = []
        for each in self._registry.list("ReplicaSet", wanted.namespace):
            tag = (each["metadata"].get("labels") or {}).get(HASH_LABEL)
            is_named = tag and _name(each) == f"{wanted.name}-{tag}"
            if is_named and not controller_of(each) and each["spec"].get("replicas"):
                found.append(each)
        return found

    @_make.register
    def _(self, change: Scale, _made: AppliedChange) -> None:
        resource, found = self._find(change.target)
        _check_kind(resource, _SCALABLE, "has no replicas to set")

        def edit(item: JsonObject) -> JsonObject:
            item["spec"]["replicas"] = change.replicas
            return item

        self._announce(f"{resource.singular} {_key(found)} is scaled to {change.replicas}")
        about = found["metadata"]
        self._registry.modify(resource.qualified, about["name"], about["namespace"], change=edit)

    @_make.register
    def _(self, change: Delete, _made: AppliedChange) -> None:
        resource, found = self._find(change.target)
        about = found["metadata"]
        if resource.kind == "Pod":
            self.deleted.add(_key(found))
        elif resource.kind == "Namespace":
            self.deleted |= {_key(pod) for pod in self._registry.list("Pod", about["name"])}
        self._announce(f"{resource.singular} {_key(found)} is deleted")
        self._registry.delete(resource.qualified, about["name"], about.get("namespace", ""))

    @_make.register
    def _(self, change: Rollout, _made: AppliedChange) -> None:
        resource, found = self._find(change.target)
        _check_kind(resource, _RESTARTABLE, "cannot be rolled out")
        annotations = {_RESTARTED: self._registry.timestamp()}
        about = found["metadata"]
        self._announce(f"{resource.singular} {_key(found)} is restarted")
        self._registry.patch(
            resource.qualified,
            about["name"],
            {"spec": {"template": {"metadata": {"annotations": annotations}}}},
            content_type=MERGE_PATCH,
            namespace=about["namespace"],
        )

    @_make.register
    def _(self, change: SetRequests, _made: AppliedChange) -> None:
        resource, found = self._find(change.target)
        about = found["metadata"]
        wanted = {name: dict(amounts) for name, amounts in change.requests}

        def edit(item: JsonObject) -> JsonObject:
            for container in item["spec"]["template"]["spec"]["containers"]:
                amounts = wanted.get(container["name"])
                if amounts:
                    _set_requests(container.setdefault("resources", {}), amounts)
            return item

        self._announce(f"{resource.singular} {_key(found)} gets other requests")
        self._registry.modify(resource.qualified, about["name"], about["namespace"], change=edit)
        if resource.kind == "ReplicaSet":
            # No controller replaces the pods of a ReplicaSet when its template changes.
            for pod in self._registry.list("Pod", about["namespace"]):
                if any(each.get("uid") == about["uid"] for each in _owners(pod)):
                    self._registry.delete("pods", pod["metadata"]["name"], about["namespace"])

    @_make.register
    def _(self, change: Apply, _made: AppliedChange) -> None:
        for document in _read(change.path):
            self._apply_document(document)

    def _apply_document(self, document: Document) -> None:
        item = document.item
        resource = BY_NAME.get(str(item["kind"]))
        if resource is None or resource.qualified not in STORED:
            hint = "a plan needs only what scheduling and the workload controllers read"
            raise InputError(
                f"the kind {item['kind']} is not known", where=document.where, hint=hint
            )
        about = item.get("metadata") or {}
        if not about.get("name"):
            raise InputError("is missing", where=document.where, path="metadata.name")
        namespace = about.get("namespace", "default") if resource.namespaced else ""
        if resource.namespaced:
            about["namespace"] = namespace
        for part in ("managedFields", "resourceVersion", "uid", "creationTimestamp"):
            about.pop(part, None)
        self._announce(f"{resource.singular} {_key(item)} is applied")
        try:
            self._registry.patch_or_create(
                resource,
                about["name"],
                item,
                content_type=APPLY_PATCH,
                namespace=namespace,
                subresource="",
                options=_MANAGER,
            )
        except StatusError as error:
            name = f"{resource.kind} {_key(item)}"
            raise InputError(error.message, where=document.where, object=name) from None


def _read(path: str) -> list[Document]:
    return [each for where, data in contents([path]) for each in documents(data, where)]


def _node_of_file(path: str, names: list[str]) -> JsonObject:
    """The one node in a file, which new nodes are made like."""
    if not Path(path).exists():
        hint = did_you_mean(path, names) or _some(names)
        raise InputError(f"there is neither a node nor a file {path!r}", hint=hint)
    found = [each.item for each in _read(path) if each.item["kind"] == "Node"]
    if len(found) != 1:
        raise InputError(f"has {len(found)} nodes", where=path, hint="one is needed to copy")
    if not (found[0].get("metadata") or {}).get("name"):
        raise InputError("is missing", where=path, object="Node", path="metadata.name")
    return found[0]


def _resource(kind: str) -> Resource:
    """The resource that a user means: by kind, plural, singular or short name."""
    wanted = kind.lower()
    for resource in STORED.values():
        if wanted in {resource.singular, resource.plural, resource.qualified, *resource.short}:
            return resource
    kinds = [each.singular for each in STORED.values()]
    hint = did_you_mean(wanted, kinds) or "deployment, statefulset, pod and node are some"
    raise InputError(f"there is no kind {kind!r}", hint=hint)


def _check_kind(resource: Resource, kinds: tuple[str, ...], problem: str) -> None:
    if resource.kind not in kinds:
        hint = f"{', '.join(kinds)} would work"
        raise InputError(f"a {resource.kind} {problem}", hint=hint)


def _has_local_storage(pod: JsonObject) -> bool:
    return any("emptyDir" in each for each in pod["spec"].get("volumes") or ())


def _set_requests(resources: JsonObject, amounts: Mapping[str, str]) -> None:
    """Set requests; a limit below its request would be refused, so it follows."""
    resources.setdefault("requests", {}).update(amounts)
    limits = resources.get("limits") or {}
    for name, text in amounts.items():
        if name in limits and milli(str(limits[name])) < milli(text):
            limits[name] = text


def _owners(item: JsonObject) -> list[JsonObject]:
    return item["metadata"].get("ownerReferences") or []


def _name(item: JsonObject) -> str:
    return str(item["metadata"]["name"])


def _key(item: JsonObject) -> str:
    namespace = item["metadata"].get("namespace")
    return f"{namespace}/{_name(item)}" if namespace else _name(item)


def _some(names: list[str]) -> str:
    """A few of the names that exist."""
    return f"known: {listed(names, _NAMED)}" if names else "there are none"
