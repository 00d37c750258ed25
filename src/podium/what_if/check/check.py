"""What would become of a change to manifests, before it is merged.

The cluster with the state before comes to rest on a copy; then the objects that differ are applied
and those that are gone are deleted, as a plan does it. What follows becomes findings, each at the
line of the manifest that leads to it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME
from podium.lab.contents.documents import Document
from podium.library.cluster_notes import affinity_terms_without_pods
from podium.library.workloads import Workloads, budgets_of, desired_healthy
from podium.objects.selectors.selectors import from_label_selector
from podium.render.plain import counted
from podium.what_if.capacity.capacity import CapacitySearch, kinds_named
from podium.what_if.check.manifest_problems import problems, too_large
from podium.what_if.check.manifest_state import POD_SPECS, ManifestObject
from podium.what_if.fix.fix import fix
from podium.what_if.plan.changes import Apply, Delete, ObjectName
from podium.what_if.plan.cluster_copy import CopyOptions, open_copy
from podium.what_if.plan.plan import answer_of

if TYPE_CHECKING:
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.what_if.check.manifest_state import (
        Key,
        ManifestMistake,
        ManifestState,
    )
    from podium.what_if.plan.inputs import ClusterDocuments
    from podium.what_if.plan.results import PendingPod, Plan

INVALID, PENDING, IMPOSSIBLE = "invalid", "pending", "impossible"
EVICTED, MOVED, BUDGET, SPREAD, SELECTS_NOTHING = (
    "evicted",
    "moved",
    "budget",
    "spread",
    "selects-nothing",
)
#: Every rule, its level, and what it finds.
RULES: Final[Mapping[str, tuple[str, str]]] = {
    INVALID: ("error", "A manifest that the API server would refuse."),
    IMPOSSIBLE: ("error", "A pod that no node of the cluster can ever take, however empty it is."),
    PENDING: ("error", "A pod that would find no node."),
    EVICTED: ("error", "A pod that the scheduler would evict to make room."),
    BUDGET: ("warning", "A disruption budget with fewer healthy pods than it wants."),
    SPREAD: ("warning", "Pods that are spread less evenly than their constraint says."),
    SELECTS_NOTHING: ("warning", "An affinity term that selects no pod."),
    MOVED: ("note", "A running pod that is replaced by one on another node."),
}
DEFAULT_FAIL_ON: Final = (INVALID, IMPOSSIBLE, PENDING, EVICTED)
#: For so many workloads without a node a fix is looked for; each takes a search.
_MOST_FIXED: Final = 3
_MOST_ROOM: Final = 10_000
#: The field of a pod that a plugin reads.
_FIELDS: Final = {
    "NodeResourcesFit": "containers[0].resources.requests",
    "PodFitsResources": "containers[0].resources.requests",
    "GeneralPredicates": "containers[0].resources.requests",
    "NodeAffinity": "affinity.nodeAffinity",
    "MatchNodeSelector": "nodeSelector",
    "TaintToleration": "tolerations",
    "PodToleratesNodeTaints": "tolerations",
    "PodTopologySpread": "topologySpreadConstraints",
    "EvenPodsSpread": "topologySpreadConstraints",
    "InterPodAffinity": "affinity",
    "MatchInterPodAffinity": "affinity",
    "NodePorts": "containers[0].ports",
    "PodFitsHostPorts": "containers[0].ports",
    "NodeName": "nodeName",
    "VolumeBinding": "volumes",
    "VolumeZone": "volumes",
    "NodeVolumeLimits": "volumes",
    "DynamicResources": "resourceClaims",
    "SchedulingGates": "schedulingGates",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the change leads to."""

    rule: str
    #: The object that leads to it, as KIND/NAMESPACE/NAME.
    object: str
    message: str
    file: str
    line: int
    #: What would help, the cheapest first.
    fixes: tuple[str, ...] = ()

    @property
    def level(self) -> str:
        """`error`, `warning` or `note`."""
        return RULES[self.rule][0]

    @property
    def id(self) -> str:
        """The name by which the finding is allowed."""
        return f"{self.rule}:{self.object}"

    def as_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "id": self.id,
            "rule": self.rule,
            "level": self.level,
            "object": self.object,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "fixes": list(self.fixes),
        }


@dataclass(slots=True)
class Check:
    """What a change to manifests leads to."""

    profile: str
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    #: Findings that were allowed.
    allowed: list[Finding] = field(default_factory=list)
    #: Workload -> how many more of its pods fit afterwards.
    room: dict[str, int] = field(default_factory=dict)
    created: int = 0
    notes: list[str] = field(default_factory=list)

    def failing(self, fail_on: Collection[str]) -> list[Finding]:
        """The findings of these rules."""
        return [each for each in self.findings if each.rule in fail_on]

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "apiVersion": "podium/v1",
            "kind": "Check",
            "profile": self.profile,
            "changed": self.changed,
            "removed": self.removed,
            "findings": [each.as_json() for each in self.findings],
            "allowed": [each.id for each in self.allowed],
            "room": self.room,
            "created": self.created,
            "notes": self.notes,
        }


def check(
    cluster: ClusterDocuments,
    before: ManifestState,
    after: ManifestState,
    chosen: ChosenProfiles,
    *,
    allow: Collection[str] = (),
    on_step: Callable[[str], None] = lambda _: None,
) -> Check:
    """What becomes of the cluster when the manifests change from *before* to *after*.

    Objects of *before* that the cluster does not have are created first. Findings whose id is in
    *allow* do not count.
    """
    found = Check(chosen.profile.name, notes=[*before.notes, *after.notes])
    changed, removed = after.changed_since(before), after.removed_since(before)
    found.changed = [each.label for each in changed]
    found.removed = [each.label for each in removed]
    findings = list(_invalid(after.new_mistakes(before), changed))
    wrong = {each.object for each in findings}
    usable = [each for each in changed if each.label not in wrong and each.kind in BY_NAME]
    unknown = Counter(each.kind for each in changed if each.kind not in BY_NAME)
    found.notes += [
        f"{count} of kind {kind} left out: scheduling does not depend on them"
        for kind, count in sorted(unknown.items())
    ]
    gone = [each for each in removed if each.kind in BY_NAME]
    if usable or gone:
        findings += _planned(
            found,
            [*cluster.documents, *_missing(cluster, before)],
            _Manifests(after, usable),
            gone,
            chosen,
            options=CopyOptions(now=cluster.read_at, is_whole=cluster.is_whole, on_step=on_step),
        )
    found.findings = [each for each in findings if each.id not in allow]
    found.allowed = [each for each in findings if each.id in allow]
    return found


# Manifests that the API server would refuse ---------------------------------------------------


def _invalid(
    mistakes: Sequence[ManifestMistake], changed: Sequence[ManifestObject]
) -> Iterator[Finding]:
    for each in mistakes:
        text = f"{each.text}, {each.hint}" if each.hint else each.text
        yield Finding(INVALID, each.file, text, each.file, each.line)
    for manifest in changed:
        if manifest.kind in BY_NAME:
            for path, text, *_ in (*problems(manifest), *too_large(manifest)):
                line = manifest.line(path)
                yield Finding(INVALID, manifest.label, text, manifest.file, line)


# What follows in the cluster ------------------------------------------------------------------


def _planned(
    result: Check,
    documents: list[Document],
    manifests: _Manifests,
    gone: Sequence[ManifestObject],
    chosen: ChosenProfiles,
    *,
    options: CopyOptions,
) -> Iterator[Finding]:
    """Carry the change out on a copy of the cluster; what follows as findings."""
    changed = manifests.changed_objects
    with TemporaryDirectory() as folder, open_copy(documents, chosen, options) as copy:
        if changed:
            file = Path(folder, "changed.json")
            items = [each.item for each in _in_order(changed)]
            file.write_text(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, default=str)
            )
            copy.make(Apply(str(file)))
        for each in gone:
            copy.make(Delete(ObjectName(each.kind, each.name, each.namespace)))
        answer, objects = answer_of(copy), copy.objects()
    result.created = len(answer.created)
    result.notes += answer.notes
    yield from _pending_findings(answer, objects, manifests, chosen)
    yield from _eviction_findings(answer, manifests)
    yield from _moved_findings(answer, manifests)
    yield from _budget_findings(objects, manifests)
    yield from _spread_findings(objects, manifests)
    for key, path, text in affinity_terms_without_pods(objects):
        source = manifests.by_key.get(key)
        if source is not None and key in manifests.changed:
            line = source.line(f"{_pod_spec_path(source)}.{path}")
            yield Finding(SELECTS_NOTHING, source.label, text, source.file, line)
    result.room = dict(_room(objects, changed, chosen))


def _missing(cluster: ClusterDocuments, before: ManifestState) -> Iterator[Document]:
    """The objects of the state before that the cluster does not have."""
    known = {ManifestObject(each.item, each.where).key for each in cluster.documents}
    for key, each in before.objects.items():
        if each.kind in BY_NAME and key not in known:
            item = json.loads(json.dumps(each.item, default=str))
            if each.namespace:
                item["metadata"]["namespace"] = each.namespace
            yield Document(each.file, item)


def _in_order(changed: Sequence[ManifestObject]) -> list[ManifestObject]:
    """What pods refer to comes before workloads."""
    return sorted(changed, key=lambda each: (bool(_pod_spec_path(each)), each.kind == "Pod"))


class _Manifests:
    """The manifests of the state afterwards, by key and by the pods that they lead to."""

    def __init__(self, after: ManifestState, changed: Sequence[ManifestObject]) -> None:
        self.by_key = after.objects
        self.changed_objects = changed
        self.changed = {each.key for each in changed}
        self._any = changed[0] if changed else next(iter(after.objects.values()), None)

    def of_pod(self, pod: str, workload: str) -> ManifestObject | None:
        """The manifest that a pod comes from; None if it stands in no manifest."""
        namespace, _, name = pod.partition("/")
        if not workload:
            return self.by_key.get(("Pod", namespace, name))
        kind, _, rest = workload.partition("/")
        return self.by_key.get((kind, namespace, rest.rpartition("/")[2]))

    def or_any(self, found: ManifestObject | None) -> ManifestObject:
        """The manifest, or the first that changed: something in the change leads to it."""
        given = found or self._any
        if given is None:
            raise InputError("the state after holds no object")
        return given


def _pod_spec_path(found: ManifestObject) -> str:
    """The path of the spec of its pods; empty for an object without pods."""
    spec = found.item.get("spec") or {}
    of_pod, of_template, of_job = POD_SPECS
    if found.kind == "CronJob":
        return of_job
    if isinstance(spec, dict) and "template" in spec:
        return of_template
    return of_pod if found.kind == "Pod" else ""


def _pending_findings(
    answer: Plan, objects: Objects, manifests: _Manifests, chosen: ChosenProfiles
) -> Iterator[Finding]:
    by_workload: dict[str, list[PendingPod]] = {}
    for each in answer.pending:
        if not each.was_pending and not each.unknown:
            by_workload.setdefault(each.workload or each.pod, []).append(each)
    pods = {pod.key: pod for pod in objects.pods}
    for number, waiting in enumerate(by_workload.values()):
        first = waiting[0]
        source = manifests.of_pod(first.pod, first.workload)
        decision = first.decision or {}
        rule = IMPOSSIBLE if _is_hopeless(decision) else PENDING
        shown = manifests.or_any(source)
        path = f"{_pod_spec_path(shown)}.{_field_of(decision)}" if source is not None else ""
        count = len(waiting)
        who = f"{count} pods of {first.workload}" if count > 1 else first.pod
        verb = "fit" if count > 1 else "fits"
        yield Finding(
            rule,
            shown.label if source is not None else first.workload or first.pod,
            f"{who} {verb} nowhere: {first.message}",
            shown.file,
            shown.line(path),
            _fixes(objects, pods.get(first.pod), chosen) if number < _MOST_FIXED else (),
        )


def _is_hopeless(decision: Mapping[str, Any]) -> bool:
    """Whether no node could take the pod even without other pods."""
    rejections = decision.get("rejections") or ()
    return bool(rejections) and all(not each.get("curable", True) for each in rejections)


def _field_of(decision: Mapping[str, Any]) -> str:
    """The field of the pod that the plugin reads which rejects most nodes."""
    rejections = sorted(
        decision.get("rejections") or (), key=lambda each: -len(each.get("nodes") or ())
    )
    for each in rejections:
        name = each.get("predicate") or each.get("plugin") or ""
        if name in _FIELDS:
            return _FIELDS[name]
    return ""


def _fixes(objects: Objects, pod: Pod | None, chosen: ChosenProfiles) -> tuple[str, ...]:
    if pod is None:
        return ()
    found = fix(objects, pod, chosen.profile_of(pod), notify=lambda _: None)
    return tuple(each.sentence for each in found.fixes[:_MOST_FIXED])


def _eviction_findings(answer: Plan, manifests: _Manifests) -> Iterator[Finding]:
    created = {each.pod: each.workload for each in answer.created}
    created |= {each.new_pod: each.workload for each in answer.moved}
    victims: dict[str, list[str]] = {}
    for each in answer.evicted:
        victims.setdefault(each.preemptor, []).append(f"{each.pod} on {each.node}")
    for preemptor, evicted in victims.items():
        shown = manifests.or_any(manifests.of_pod(preemptor, created.get(preemptor, "")))
        listed = ", ".join(dict.fromkeys(evicted))
        path = f"{_pod_spec_path(shown)}.priorityClassName"
        text = f"{preemptor} evicts {listed}"
        yield Finding(EVICTED, shown.label, text, shown.file, shown.line(path))


def _moved_findings(answer: Plan, manifests: _Manifests) -> Iterator[Finding]:
    elsewhere: dict[str, list[str]] = {}
    for each in answer.moved:
        if each.from_node != each.to_node:
            elsewhere.setdefault(each.workload, []).append(each.pod)
    for workload, pods in sorted(elsewhere.items()):
        shown = manifests.or_any(manifests.of_pod(pods[0], workload))
        verb = "runs" if len(pods) == 1 else "run"
        text = f"{counted(len(pods), 'pod')} of {workload} {verb} on another node afterwards"
        yield Finding(MOVED, shown.label, text, shown.file, shown.line())


def _budget_findings(objects: Objects, manifests: _Manifests) -> Iterator[Finding]:
    workloads = Workloads(objects)
    for each in budgets_of(objects):
        budget, selected = each.budget, [pod for pod in objects.pods if each.covers(pod)]
        wanted = desired_healthy(budget, selected, workloads)
        healthy = sum(1 for pod in selected if pod.spec.node_name)
        if healthy < wanted:
            shown = manifests.or_any(
                manifests.by_key.get(("PodDisruptionBudget", budget.namespace, budget.name))
            )
            text = f"budget {budget.key} wants {wanted} healthy pods, {healthy} have a node"
            label = f"PodDisruptionBudget/{budget.key}"
            yield Finding(BUDGET, label, text, shown.file, shown.line("spec"))


def _spread_findings(objects: Objects, manifests: _Manifests) -> Iterator[Finding]:
    """Constraints of changed workloads whose domains differ by more than they allow."""
    labels = {node.name: node.labels for node in objects.nodes}
    workloads = Workloads(objects)
    seen: set[tuple[Key, int]] = set()
    for pod in objects.pods:
        source = manifests.of_pod(pod.key, workloads.of(pod))
        if source is None or source.key not in manifests.changed:
            continue
        for number, constraint in enumerate(pod.spec.topology_spread_constraints or ()):
            if (source.key, number) in seen:
                continue
            seen.add((source.key, number))
            key = constraint.topology_key
            counts = Counter({each[key]: 0 for each in labels.values() if key in each})
            selector = from_label_selector(constraint.label_selector)
            for other in objects.pods:
                domain = labels.get(other.spec.node_name or "", {}).get(key)
                if domain is None or other.namespace != pod.namespace:
                    continue
                counts[domain] += selector.matches(other.labels)
            if counts and max(counts.values()) - min(counts.values()) > constraint.max_skew:
                listed = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
                text = f"pods by {key}: {listed}; maxSkew is {constraint.max_skew}"
                path = f"{_pod_spec_path(source)}.topologySpreadConstraints[{number}]"
                yield Finding(SPREAD, source.label, text, source.file, source.line(path))


def _room(
    objects: Objects, changed: Sequence[ManifestObject], chosen: ChosenProfiles
) -> Iterator[tuple[str, int]]:
    """How many more pods of each changed workload fit."""
    for each in changed:
        if not _pod_spec_path(each) or each.kind == "DaemonSet":
            continue
        try:
            kinds = kinds_named(f"{each.namespace}/{each.name}", objects)
        except InputError:
            continue
        search = CapacitySearch(objects, kinds, chosen.profiles, shapes=(), most=_MOST_ROOM)
        for _ in search.steps():
            pass
        yield each.label, search.result.pods
