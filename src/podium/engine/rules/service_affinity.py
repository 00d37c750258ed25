"""v1.13 rules that keep the pods of a service together or apart, by node labels.

The labels are named in the Policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from podium.engine.framework.causes import Cause, ScoreNumber, ServiceLabel
from podium.engine.framework.declaration import PolicyArgument, PredicateDeclaration
from podium.engine.framework.rule import BitFilter, FilterRule, Scope, ScoreRule
from podium.engine.framework.trace import Prepared
from podium.engine.rows.node_match import selects
from podium.engine.rows.rows import Ints, K, ManyRows, Rows, Scalar, as_array, as_int
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rows.written import written
from podium.engine.rules.spreading import fewer_is_better, tally_live_pods
from podium.engine.state.catalog import services_of
from podium.engine.state.selector_index import anchor
from podium.engine.state.verdicts import Reason
from podium.objects.selectors.selectors import Selector, from_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.view import View

SERVICE_AFFINITY_MISMATCH = Reason("node(s) didn't match service affinity")


class CheckServiceAffinity(BitFilter):
    """The node must have the same values of the labels as the service's other pods.

    Where the pod's nodeSelector does not fix a label, the node of the first pod of the namespace
    with all labels of this one does.
    """

    kinds = ("Service",)
    always = Scope.CLUSTER
    reasons = (SERVICE_AFFINITY_MISMATCH,)

    def __init__(self, labels: list[str], name: str = "CheckServiceAffinity") -> None:
        self.name = name
        self.labels = labels

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a label has another value."""
        selector = pod.cls.spec.node_selector or {}
        wanted = {label: selector[label] for label in self.labels if label in selector}
        if len(self.labels) > len(wanted) and services_of(pod.cls, at.view.catalog):
            first = next(_pods_with_labels_of(pod, at), None)
            if first is not None:
                node = at.view.nodes.objects[first.row] if first.row >= 0 else None
                if node is None:
                    name = at.view.nodes.names[first.row] if first.row >= 0 else ""
                    at.fail(f'node "{name}" not found')
                    return at.full(0)
                for label in self.labels:
                    if label not in wanted and label in node.labels:
                        wanted[label] = node.labels[label]
        return (selects(at, from_map(wanted)) ^ True) * 1

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The labels that nodes must have, and what set them."""
        selector = pod.cls.spec.node_selector or {}
        for label in self.labels:
            if label in selector:
                yield Prepared(
                    self.name, "label", f"{label}={selector[label]}, of the nodeSelector"
                )
        if not services_of(pod.cls, view.catalog):
            yield Prepared(self.name, "services of the pod", "none")
            return
        first = next(_pods_with_labels_of(pod, ManyRows(view, view.nodes.order)), None)
        if first is None:
            yield Prepared(self.name, "first pod of the service", "none yet")
            return
        node = view.nodes.objects[first.row] if first.row >= 0 else None
        yield Prepared(self.name, "first pod of the service", first.key)
        for label in self.labels:
            if node is not None and label not in selector and label in node.labels:
                text = f"{label}={node.labels[label]}, of node {node.name}"
                yield Prepared(self.name, "label", text)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The labels with another value, each with the pod whose node set it."""
        selector = pod.cls.spec.node_selector or {}
        labels, text = at.node_labels, SERVICE_AFFINITY_MISMATCH.text
        for label in self.labels:
            if label in selector and labels.get(label) != selector[label]:
                yield ServiceLabel(text, label, selector[label], labels.get(label))
        if not services_of(pod.cls, at.view.catalog):
            return
        first = next(_pods_with_labels_of(pod, at), None)
        node = at.view.nodes.objects[first.row] if first is not None and first.row >= 0 else None
        if first is None or node is None:
            return
        for label in self.labels:
            value = node.labels.get(label)
            if label not in selector and value is not None and labels.get(label) != value:
                yield ServiceLabel(text, label, value, labels.get(label), first.key, node.name)


def _pods_with_labels_of(pod: Incoming, at: Rows[K]) -> Iterator[Resident]:
    """Pods of the namespace with all labels of this one: by node order, then position there."""
    view: View = at.view
    alike = from_map(pod.cls.labels.labels)
    tally = view.pods.tally(
        ("like", pod.cls.namespace, alike),
        lambda one: one.namespace == pod.cls.namespace and alike.matches(one.labels),
        lambda: anchor(alike),
    )
    order = np.concatenate(
        [view.nodes.order, np.array(view.pods.unknown_nodes_by_name(), np.int64)]
    )
    trial = at if isinstance(at, TrialRow) else None
    for row in order[tally.rows[order] > 0].tolist():
        pods = view.pods.residents[row]
        if trial is not None and row == trial.row:
            back = {resident.uid for resident in (*trial.added, *trial.nominees)}
            pods = [resident for resident in trial.residents() if resident.uid not in back]
        yield from (resident for resident in pods if tally in resident.labels.tallies)
    if trial is not None:
        # Pods put on the row by the trial come last, whatever their place was.
        yield from (r for r in trial.added if tally in r.labels.tallies)
        yield from (r for r in trial.nominees if tally in r.labels.tallies)


class ServiceAntiAffinity(ScoreRule):
    """Prefers label values that hold few of the service's pods; nodes without the label get 0."""

    kinds = ("Service",)
    always = Scope.CLUSTER
    normalizes = True
    formula = "fewer pods of the first service among the nodes with the same label value are better"

    def __init__(self, label: str, name: str = "ServiceAntiAffinity") -> None:
        self.label = label
        self.name = name

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """How many pods of the pod's first service the node holds."""
        selector = _first_service(pod.cls, at.view)
        if selector is None:
            return at.full(0)
        return at.on_row(tally_live_pods(at.view, pod.cls.namespace, (selector,)))

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The pods of the service: on the node, on all that fit with its label value, on all."""
        yield ScoreNumber("pods of the service on the node", as_int(self.score(pod, at)))
        counts = as_array(self.score(pod, among))
        value = at.node_labels.get(self.label)
        if value is not None:
            there = int(counts[among.label_ids(self.label) == at.label_ids(self.label)].sum())
            text = f"on the nodes with {self.label}={value} that fit"
            yield ScoreNumber(text, there, int(counts.sum()))

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """Fewer pods score higher; the total includes nodes without the label."""
        values = at.label_ids(self.label)
        by_value = np.bincount(values, weights=raw, minlength=1)
        scores = fewer_is_better(by_value, int(raw.sum()))[values]
        return np.where(values > 0, scores, 0.0).astype(np.int64)

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The same for one row."""
        value = as_int(at.label_ids(self.label))
        if not value:
            return at.full(0)
        there = written(int(raw[among.label_ids(self.label) == value].sum()))
        return at.truncate(fewer_is_better(there, written(int(raw.sum()))))


def _first_service(cls: PodClass, view: View) -> Selector | None:
    services = services_of(cls, view.catalog)
    return from_map(services[0].spec.selector) if services else None


class ServiceAffinityArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Keep the pods of a service on nodes with the same values of these labels."""

    labels: list[str] = []


class ServiceAntiAffinityArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Spread the pods of a service over the values of this label."""

    label: str = ""


SERVICE_AFFINITY: Final[PolicyArgument[FilterRule]] = PolicyArgument(
    "service_affinity",
    ServiceAffinityArgument,
    lambda value, name: CheckServiceAffinity(value.labels, name),
    CheckServiceAffinity,
    "pods of a service stay on nodes with the same labels",
    lambda rule: {"labels": list(rule.labels)},
)

SERVICE_ANTI_AFFINITY: Final[PolicyArgument[ScoreRule]] = PolicyArgument(
    "service_anti_affinity",
    ServiceAntiAffinityArgument,
    lambda value, name: ServiceAntiAffinity(value.label, name),
    ServiceAntiAffinity,
    "pods of the service spread over the values of a label",
    lambda rule: {"label": rule.label},
)

CHECK_SERVICE_AFFINITY: Final = PredicateDeclaration(
    "CheckServiceAffinity",
    SERVICE_AFFINITY.description,
    None,
    argument=SERVICE_AFFINITY,
    aliases=("checkServiceAffinity",),
)
