"""What changes of pods and nodes mean to the plugins that look at other pods.

Upstream: the queueing hints of interpodaffinity and podtopologyspread, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.cluster.wakeups.node_hints import holds_place
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinity, TopologySpreadConstraint
from podium.objects.selectors.selectors import Requirement, Selector, from_label_selector


def is_self(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself changed."""
    return new.uid == waiting.uid


@dataclass(frozen=True, slots=True)
class _Term:
    """A required term, ready to match. Namespaces are not looked up: a selector sees no labels."""

    key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, pod: Pod) -> bool:
        if pod.namespace not in self.namespaces and not self.namespace_selector.matches({}):
            return False
        return self.selector.matches(pod.labels)


def _terms(owner: Pod, affinity: PodAffinity | None) -> list[_Term]:
    """Compile the required terms of *owner*; raises `SelectorError` if one is invalid."""
    compiled = []
    for term in (affinity and affinity.required) or ():
        names = frozenset(term.namespaces or ())
        if not names and term.namespace_selector is None:
            names = frozenset({owner.namespace})
        namespace_selector = from_label_selector(term.namespace_selector)
        selector = from_label_selector(term.label_selector)
        compiled.append(_Term(term.topology_key, names, namespace_selector, selector))
    return compiled


def _affinity(pod: Pod) -> list[_Term]:
    return _terms(pod, pod.spec.affinity.pod_affinity if pod.spec.affinity else None)


def _anti_affinity(pod: Pod) -> list[_Term]:
    return _terms(pod, pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None)


def _matches_all(terms: Sequence[_Term], pod: Pod) -> bool:
    """Whether one pod satisfies every term; without terms no pod does."""
    return bool(terms) and all(term.matches(pod) for term in terms)


def affine_pod_changed(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod that affinity wants came or began to match; one that anti-affinity forbids left."""
    if old and new and new.uid == waiting.uid:
        return True
    if any(pod and not holds_place(pod) for pod in (old, new)):
        return False
    wanted, shunned = _affinity(waiting), _anti_affinity(waiting)
    if old and new:
        begins = not _matches_all(wanted, old) and _matches_all(wanted, new)
        return begins or (_matches_all(shunned, old) and not _matches_all(shunned, new))
    if new:
        return _matches_all(wanted, new)
    if old:
        return _matches_all(shunned, old) or _matches_all(_anti_affinity(old), waiting)
    return False


def affine_node_changed(waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came or moved to another topology domain that the pod's terms speak of."""
    wanted, shunned = _affinity(waiting), _anti_affinity(waiting)
    if old is None:
        return bool(shunned) or any(term.key in new.labels for term in wanted)
    moved = {term.key for term in (*wanted, *shunned)}
    moved = {key for key in moved if old.labels.get(key) != new.labels.get(key)}
    joined = any(term.key in moved and term.key in new.labels for term in wanted)
    return joined or any(term.key in moved and term.key in old.labels for term in shunned)


@dataclass(frozen=True, slots=True)
class _Spread:
    key: str
    selector: Selector
    honors_taints: bool


def _spreads(pod: Pod) -> list[_Spread]:
    """The hard constraints of a pod; defaults of the profile are soft and do not reject."""
    return [
        _Spread(each.topology_key, _selector(each, pod), each.node_taints_policy == "Honor")
        for each in pod.spec.topology_spread_constraints or ()
        if each.when_unsatisfiable == "DoNotSchedule"
    ]


def _selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    selector = from_label_selector(constraint.label_selector)
    keys = [key for key in constraint.match_label_keys or () if key in pod.labels]
    if selector.nothing or not keys:
        return selector
    same = tuple(Requirement(key, "In", (pod.labels[key],)) for key in keys)
    return Selector(selector.requirements + same)


def spread_pod_changed(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod that is counted came or went, or is counted otherwise than before."""
    if any(pod and not _is_involved(pod, waiting) for pod in (old, new)):
        return False
    spreads = _spreads(waiting)
    if old and new:
        tolerates_more = new.uid == waiting.uid and old.spec.tolerations != new.spec.tolerations
        return any(
            (tolerates_more and spread.honors_taints)
            or spread.selector.matches(old.labels) != spread.selector.matches(new.labels)
            for spread in spreads
        )
    pod = new or old
    return pod is not None and any(spread.selector.matches(pod.labels) for spread in spreads)


def _is_involved(pod: Pod, waiting: Pod) -> bool:
    if pod.uid == waiting.uid:
        return True
    return holds_place(pod) and pod.namespace == waiting.namespace


def spread_node_changed(waiting: Pod, old: Node | None, new: Node | None) -> bool:
    """A node that has all the keys came, went, moved or got other taints."""
    spreads = _spreads(waiting)
    had, has = (node is not None and _has_keys(spreads, node.labels) for node in (old, new))
    if old is None or new is None or had != has:
        return had or has
    moved = any(old.labels.get(each.key) != new.labels.get(each.key) for each in spreads)
    return has and (moved or (old.spec.taints or []) != (new.spec.taints or []))


def _has_keys(spreads: Sequence[_Spread], labels: Mapping[str, str]) -> bool:
    return all(spread.key in labels for spread in spreads)
