"""Which pods and nodes wake pods that PodTopologySpread rejected.

Upstream: the queueing hints of podtopologyspread, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podium.engine.rules.v1_36_wakeups import holds_place
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, TopologySpreadConstraint
from podium.objects.selectors.selectors import Requirement, Selector, from_label_selector


class _Spread(msgspec.Struct, frozen=True):
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
