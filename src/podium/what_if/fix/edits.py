"""An edit that would make a pod fit: its JSON patch, its kubectl command and its side effects.

Of RFC 6902 only what edits of one object need: `add`, `replace` and `remove`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.engine.state.accounting import amount
from podium.errors import InputError
from podium.library.lookup import Owners, workload_identity
from podium.objects.field_errors import pointer, pointer_keys
from podium.render.plain import counted, format_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod, Toleration
    from podium.objects.reading.collection import Objects

Operation = dict[str, Any]


def difference(before: Any, after: Any, path: str = "") -> list[Operation]:
    """The operations that make *before* equal to *after*; items of a list keep their places."""
    return list(_operations(before, after, path))


def _operations(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (key for key in before if key not in after):
            yield {"op": "remove", "path": pointer(path, key)}
        for key, value in after.items():
            where = pointer(path, key)
            if key not in before:
                yield {"op": "add", "path": where, "value": value}
            else:
                yield from _operations(before[key], value, where)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_operations(before, after, path)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _list_operations(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    if len(after) > len(before) and after[: len(before)] == before:
        for value in after[len(before) :]:
            yield {"op": "add", "path": f"{path}/-", "value": value}
    elif len(after) == len(before):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _operations(old, new, f"{path}/{index}")
    elif len(after) == len(before) - 1:
        gone = next((i for i, new in enumerate(after) if before[i] != new), len(after))
        yield {"op": "remove", "path": f"{path}/{gone}"}
        yield from _list_operations(before[:gone] + before[gone + 1 :], after, path)
    else:
        yield {"op": "replace", "path": path, "value": after}


def patched(document: Any, operations: Sequence[Operation]) -> Any:
    """A copy of the document after the operations, in order."""
    for operation in operations:
        document = _applied(document, pointer_keys(operation["path"]), operation)
    return document


def _applied(document: Any, keys: list[str], operation: Operation) -> Any:
    if not keys:
        return operation.get("value")
    first, *rest = keys
    if isinstance(document, list):
        items = list(document)
        if first == "-":
            return [*items, operation["value"]]
        place = int(first)
        if rest:
            items[place] = _applied(items[place], rest, operation)
        elif operation["op"] == "add":
            items.insert(place, operation["value"])
        elif operation["op"] == "remove":
            del items[place]
        else:
            items[place] = operation["value"]
        return items
    if not isinstance(document, dict) or (rest and first not in document):
        raise InputError(f"a patch names {operation['path']}, which is not there")
    fields = dict(document)
    if rest:
        fields[first] = _applied(fields[first], rest, operation)
    elif operation["op"] == "remove":
        del fields[first]
    else:
        fields[first] = operation["value"]
    return fields


#: Workloads whose pods follow a change of the template, and those whose pods must be deleted.
FOLLOWED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
NOT_FOLLOWED: Final = frozenset({"ReplicaSet", "ReplicationController"})
#: Taints that admission lets pods tolerate for a while.
_ADDED: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def patch_pod(
    pod: Pod,
    operations: Sequence[Operation],
    objects: Objects,
    of_template: Callable[[Pod], Sequence[Operation]],
) -> str:
    """Patch the workload of a pod, or the pod itself where it has none.

    *of_template* is called with a pod that has only what the template of the workload says: a pod
    in a cluster has more. Tolerations can be added to a pod, and gates removed; all else of a pod
    that exists cannot be changed, so it is replaced by a changed copy.
    """
    namespace = f"-n {shlex.quote(pod.namespace)} "
    kind, name = workload_of(pod, objects)
    if kind in FOLLOWED or kind in NOT_FOLLOWED:
        template = _template(kind, name, pod, objects)
        found = of_template(pod_of_template(pod) if template is None else template)
        placed = [each | {"path": f"/spec/template{each['path']}"} for each in found]
        patch = f"--type=json -p {_quoted(placed)}"
        command = f"kubectl {namespace}patch {kind.lower()} {shlex.quote(name)} {patch}"
        if kind in NOT_FOLLOWED or kind == "StatefulSet":
            # A stateful set does not replace a pod that never ran.
            command += f"\nkubectl {namespace}delete pod {shlex.quote(pod.name)}"
        return command
    patch = f"--type=json -p {_quoted(operations)}"
    if all(is_allowed(each) for each in operations):
        return f"kubectl {namespace}patch pod {shlex.quote(pod.name)} {patch}"
    return (
        f"kubectl {namespace}get pod {shlex.quote(pod.name)} -o json"
        f" | kubectl patch --local -f - {patch} -o json"
        " | kubectl replace --force -f -"
    )


def label_node(node: str, key: str, value: str | None) -> str:
    """Set or remove a label of a node."""
    label = f"{key}-" if value is None else f"{key}={value}"
    overwrite = "" if value is None else " --overwrite"
    return f"kubectl label node {shlex.quote(node)} {shlex.quote(label)}{overwrite}"


def uncordon(node: str) -> str:
    """Uncordon a node."""
    return f"kubectl uncordon {shlex.quote(node)}"


def delete_pods(pods: Sequence[Pod]) -> str:
    """Delete pods, one line for each namespace."""
    names: dict[str, list[str]] = {}
    for pod in pods:
        names.setdefault(pod.namespace, []).append(shlex.quote(pod.name))
    return "\n".join(
        f"kubectl -n {shlex.quote(namespace)} delete pod {' '.join(each)}"
        for namespace, each in names.items()
    )


def pod_of_template(pod: Pod) -> Pod:
    """A pod with what the template of its workload says, as far as the pod shows it.

    Admission adds tolerations of node conditions to pods; a list is set as a whole where the
    template may have none.
    """
    kept = [each for each in pod.spec.tolerations or () if not _is_added(each)]
    return replace(pod, spec=replace(pod.spec, tolerations=kept or None))


def _is_added(toleration: Toleration) -> bool:
    return toleration.key in _ADDED and toleration.effect == "NoExecute"


def is_allowed(operation: Operation) -> bool:
    """Whether the API server lets a pod be changed so."""
    path: str = operation["path"]
    if path.startswith("/spec/tolerations"):
        return str(operation["op"]) == "add"
    return path.startswith("/spec/schedulingGates") and str(operation["op"]) == "remove"


def workload_of(pod: Pod, objects: Objects) -> tuple[str, str]:
    """Kind and name of the workload whose template the pod comes from; empty for a pod alone."""
    kind, _, name = workload_identity(pod, objects)
    return ("", "") if kind == "Pod" else (kind, name)


def _template(kind: str, name: str, pod: Pod, objects: Objects) -> Pod | None:
    """A pod with what the template of a workload says, if the workload is known."""
    for each in objects.of(kind):
        if each.name == name and each.namespace == pod.namespace and each.spec.template:
            return replace(pod, spec=each.spec.template.spec)
    return None


def _quoted(value: Any) -> str:
    return shlex.quote(msgspec.json.encode(value).decode())


#: What a node has besides what the pod asks for, in this order.
_SHOWN: Final = ("cpu", "memory", "pods")


def effects_of_edit(
    action: str, pod: Pod, patch: Sequence[Operation], objects: Objects
) -> tuple[str, ...]:
    """What follows from an edit of a pod or of the template of its workload."""
    kind, name = workload_of(pod, objects)
    found = []
    if action == "gate":
        found.append(
            "the controller that set a gate removes it; by hand, what it waits for is skipped"
        )
    if kind in FOLLOWED:
        count = _running(pod, kind, name, objects)
        if count:
            found.append(f"this restarts {counted(count, 'pod')} of {kind.lower()}/{name}")
    elif kind in NOT_FOLLOWED:
        found.append(f"the other pods of {kind.lower()}/{name} stay as they are")
    elif not all(is_allowed(each) for each in patch):
        found.append("the pod is deleted and created anew")
        if kind:
            found.append(f"{kind} {name} creates pods from its own template, which stays as it is")
    return tuple(found)


def _running(pod: Pod, kind: str, name: str, objects: Objects) -> int:
    wanted, owners = (kind, pod.namespace, name), Owners(objects)
    return sum(
        bool(each.spec.node_name) and not each.finished and not each.terminating
        for each in objects.pods
        if owners.workload(each) == wanted
    )


def effects_of_eviction(pods: Sequence[Pod]) -> tuple[str, ...]:
    """What follows from the eviction of pods."""
    bare = sorted(pod.key for pod in pods if pod.metadata.controller() is None)
    return (f"no controller creates {', '.join(bare)} anew",) if bare else ()


def node_needs(pod: Pod, node: Node) -> str:
    """What a new node must have for a pod, in a few words."""
    allocatable = node.status.allocatable or {}
    asked = {
        name
        for container in pod.spec.containers or ()
        for name in ((container.resources and container.resources.requests) or {})
    }
    names = [*_SHOWN, *sorted(asked - {*_SHOWN})]
    parts = [
        f"{name} {format_amount(name, amount(name, text))}"
        for name in names
        if (text := allocatable.get(name)) is not None
    ]
    labels = sorted((pod.spec.node_selector or {}).items())
    parts += [f"the label {key}={text}" for key, text in labels if node.labels.get(key) == text]
    parts += [
        f"the taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
        for taint in node.spec.taints or ()
    ]
    return ", ".join(parts)
