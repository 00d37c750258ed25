"""The pod in a manifest that was dropped on a page, as the API server would create it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand
from podium.objects.kinds.registry import DAEMON_SET, PRIORITY_CLASS
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.workloads import PriorityClass

_WHERE: Final = "manifest"


@dataclass(frozen=True, slots=True)
class ManifestPod:
    """The pod of a manifest, and notes about what was left out or assumed."""

    pod: Pod
    notes: tuple[str, ...]


def pod_in(data: bytes, nodes: Iterable[Node], priorities: Iterable[PriorityClass]) -> ManifestPod:
    """The first pod that the manifest describes, with defaults filled in."""
    written = decode(data, _WHERE)
    validate(written)
    others = [kind for kind, _, _ in written.everything() if kind not in _MAKES_PODS]
    notes = [f"{kind} is not a pod and was left aside" for kind in dict.fromkeys(others)]
    notes += [f"{kind} is not known here and was left aside" for kind in written.unknown_kinds]
    classes = written.of(PRIORITY_CLASS)
    known = {each.name for each in classes}
    classes += [each for each in priorities if each.name not in known]
    if written.of(DAEMON_SET):
        written.nodes = list(nodes)
    pods = expand(with_defaults(written)).pods
    if not pods:
        raise InputError(
            "asks for no pod",
            where=_WHERE,
            hint="give a Pod, or something that makes pods, like a Deployment",
        )
    pod = pods[0]
    if len(pods) > 1:
        notes.insert(0, f"the manifest asks for {len(pods)} pods; this is the first, {pod.key}")
    if pod.spec.node_name:
        notes.append(f"the pod names its node, {pod.spec.node_name}; decided as if it did not")
    return ManifestPod(_fresh(pod), tuple(notes))


_MAKES_PODS: Final = frozenset(
    {
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
        "Deployment",
        "Job",
        "DaemonSet",
        "PriorityClass",
    }
)


def _fresh(pod: Pod) -> Pod:
    """The pod without node, nomination and phase."""
    status = replace(pod.status, nominated_node_name="", phase="")
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)
