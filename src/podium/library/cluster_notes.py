"""Notes about input on which a scheduler decides otherwise than a reader may think.

Conditions: kube-scheduler looks at taints, and the node controller turns conditions into taints.
The nodes of a file have no controller, so pods land on a node that is not ready. Zones: v1.13
reads the older labels. Claims: the volume controller annotates a claim once it is bound; a claim
without the annotation is not bound, whatever its phase says. Affinity: a term whose selector is
misspelt selects no pod, and then keeps nothing apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.rules.pod_groups import FEATURE_GATE
from podium.engine.rules.volumes.binding import BIND_COMPLETED
from podium.generations.known import GENERATIONS
from podium.objects.kinds.registry import KINDS, PERSISTENT_VOLUME_CLAIM
from podium.objects.reading.collection import label
from podium.objects.selectors.selectors import SelectorError, from_label_selector
from podium.render.plain import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Affinity, Pod, PodAffinityTerm
    from podium.objects.kinds.storage import PersistentVolumeClaim
    from podium.objects.reading.collection import Objects

_NEWER_ZONE: Final = "topology.kubernetes.io/zone"
_OLDER_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_PREFIX: Final = "node.kubernetes.io/"
#: The taint that the node controller adds for a condition with a status.
_TAINTS: Final = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
#: Predicates of v1.13 that look at conditions themselves.
_BY_CONDITION: Final = {
    "Ready": "CheckNodeCondition",
    "NetworkUnavailable": "CheckNodeCondition",
    "MemoryPressure": "CheckNodeMemoryPressure",
    "DiskPressure": "CheckNodeDiskPressure",
    "PIDPressure": "CheckNodePIDPressure",
}


#: The field of the required terms of an affinity between pods.
REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"

#: Namespaces and labels of pods, equal ones once.
_LabelSets = set[tuple[str, frozenset[tuple[str, str]]]]


def cluster_notes(objects: Objects, chosen: ChosenProfiles) -> Iterator[str]:
    """Sentences about conditions, zones, claims and affinity terms."""
    if objects.of("ResourceSlice") and not chosen.generation.choices.devices.orders_slices:
        yield (
            f"{chosen.generation.name} tries pools and slices of devices in no order; here pools "
            "are tried by name, and their slices as they are listed"
        )
    yield from _group_notes(objects, chosen)
    of_policy = chosen.generation.uses_policies
    yield from _condition_notes(objects.nodes, chosen.profile, of_policy=of_policy)
    if of_policy:
        yield from _zone_notes(objects.nodes)
    yield from _claim_notes(objects.of(PERSISTENT_VOLUME_CLAIM))
    yield from _affinity_notes(objects)


def _group_notes(objects: Objects, chosen: ChosenProfiles) -> Iterator[str]:
    members = sum(bool(pod.group) and not pod.spec.node_name for pod in objects.pods)
    if not members or chosen.profile.schedules_groups:
        return
    pods = (
        "1 pod names a pod group and is"
        if members == 1
        else f"{members} pods name pod groups and are"
    )
    add = f"add --feature-gates {FEATURE_GATE}=true"
    if not chosen.generation.choices.pod_groups:
        first = next(name for name, each in GENERATIONS.items() if each.choices.pod_groups)
        add += f" and --profile {first}"
    yield f"{pods} tried alone: groups count if the feature gate is on; {add}"


def _condition_notes(nodes: Sequence[Node], profile: Profile, *, of_policy: bool) -> Iterator[str]:
    running = {rule.name for rule in profile.predicates}
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        taints = {taint.key for taint in node.spec.taints or ()}
        for condition in node.status.conditions or ():
            wanted = _TAINTS.get((condition.type, condition.status))
            looked_at = _BY_CONDITION.get(condition.type) in running
            if wanted and f"{_PREFIX}{wanted}" not in taints and not looked_at:
                found.setdefault((condition.type, condition.status), []).append(node.name)
    for (kind, status), names in found.items():
        taint = f"{_PREFIX}{_TAINTS[kind, status]}"
        gate = ", or give --feature-gates TaintNodesByCondition=false" if of_policy else ""
        yield (
            f"{_listed(names)}: condition {kind} is {status}, which keeps no pod away without the "
            f"taint {taint}; the node controller would add it: write it into the file{gate}"
        )


def _zone_notes(nodes: Sequence[Node]) -> Iterator[str]:
    newer = [n.name for n in nodes if _NEWER_ZONE in n.labels and _OLDER_ZONE not in n.labels]
    if newer:
        yield (
            f"{_listed(newer)}: v1.13 reads zones from the label {_OLDER_ZONE} only; those in "
            f"{_NEWER_ZONE} do not count for spreading, the order of nodes and volumes"
        )


def _claim_notes(claims: Sequence[PersistentVolumeClaim]) -> Iterator[str]:
    unmarked = [
        each.key
        for each in claims
        if each.spec.volume_name and BIND_COMPLETED not in (each.metadata.annotations or {})
    ]
    if unmarked:
        yield (
            f"{_listed(unmarked, 'claim')}: spec.volumeName is set without the annotation "
            f"{BIND_COMPLETED}, so the scheduler takes the claim for unbound; the volume "
            f'controller would add it: write {BIND_COMPLETED}: "yes" into the file'
        )


def _affinity_notes(objects: Objects) -> Iterator[str]:
    """Required terms of workloads that select no pod at all, their own included."""
    for (kind, namespace, name), _, text in affinity_terms_without_pods(objects):
        yield f"{label(kind, namespace, name)}: {text}"


def affinity_terms_without_pods(
    objects: Objects,
) -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """Required terms of workloads that select no pod at all, their own included.

    Each has the kind, namespace and name of the workload, the field of its pods, and the words.
    """
    label_sets: _LabelSets = set()
    for kind, item, affinity in _affinities(objects):
        for name, part in (
            ("podAffinity", affinity.pod_affinity),
            ("podAntiAffinity", affinity.pod_anti_affinity),
        ):
            for number, term in enumerate((part and part.required) or ()):
                label_sets = label_sets or {_label_set(pod) for pod in objects.pods}
                if not _selects_any(term, item.metadata.namespace or "", label_sets):
                    yield (
                        (kind, item.metadata.namespace or "default", item.name),
                        f"affinity.{name}.{REQUIRED_TERMS}[{number}]",
                        (
                            f"a required term of {name} selects no pod of the input, not even "
                            f"its own: {_term(term)} by {term.topology_key or 'no topologyKey'}"
                        ),
                    )


def _affinities(objects: Objects) -> Iterator[tuple[str, Object, Affinity]]:
    """Workloads whose pods have affinity: the kind, the object, and the affinity."""
    for kind in KINDS.values():
        if kind.template is None:
            continue
        for item in objects.of(kind):
            template = kind.template(item)
            if template and template.spec.affinity and not item.metadata.owner_references:
                yield kind.name, item, template.spec.affinity


def _label_set(pod: Pod) -> tuple[str, frozenset[tuple[str, str]]]:
    return pod.metadata.namespace or "default", frozenset(pod.labels.items())


def _selects_any(term: PodAffinityTerm, namespace: str, label_sets: _LabelSets) -> bool:
    """Whether the term selects a pod; a term that cannot be read is reported elsewhere."""
    try:
        selector = from_label_selector(term.label_selector)
    except SelectorError:
        return True
    names = term.namespaces or [namespace or "default"]
    anywhere = term.namespace_selector is not None
    return any(
        (anywhere or where in names) and selector.matches(dict(labels))
        for where, labels in label_sets
    )


def _term(term: PodAffinityTerm) -> str:
    return str(from_label_selector(term.label_selector)) or "no labelSelector"


def _listed(names: Sequence[str], noun: str = "node") -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"
