"""Which pods and nodes wake pods that InterPodAffinity rejected.

Upstream: the queueing hints of interpodaffinity, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.engine.rules.v1_36_wakeups import holds_place
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinity
from podium.objects.selectors.selectors import Selector, from_label_selector


class _Term(msgspec.Struct, frozen=True):
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
