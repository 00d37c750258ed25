"""kubectl commands that carry edits out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.library.lookup import workload_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.objects.kinds.pod import Pod, Toleration
    from podium.objects.reading.collection import Objects
    from podium.what_if.fix.json_patch import Operation

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
    """A pod with what the template of its workload says, as far as the pod tells.

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
