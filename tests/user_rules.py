"""Rules as users write them, of every scope and form, to be added to profiles under test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.engine.framework.profile import Profile, Weighted
from podium.profiles.user_rules.adapter import PREDICATE, PRIORITY, UserPredicate, UserPriority
from podium.profiles.user_rules.loading import rules_in
from podium.rules import predicate, priority


@predicate("HasAnEvenName", depends="node")
def has_an_even_name(pod: Any, node: Any) -> bool:
    return int(node.name[1:]) % 2 == 0 or "app" not in pod.labels


@predicate("HoldsFewPods", depends="pods")
def holds_few_pods(pod: Any, node: Any) -> bool | str:
    return node.pod_count < 4 or "too many pods for my taste"


@predicate("HasFreeMemory", depends="cluster", columns=True)
def has_free_memory(pod: Any, nodes: Any) -> Any:
    return nodes.free("memory") >= 0


@priority("ByNumber", depends="node")
def by_number(pod: Any, node: Any) -> int:
    return int(node.name[1:]) % 3


@priority("ByPods", depends="pods", columns=True)
def by_pods(pod: Any, nodes: Any) -> Any:
    return nodes.pod_count % 5


@priority("ByFreeCpu", depends="cluster", normalize="min-max")
def by_free_cpu(pod: Any, node: Any) -> int:
    return int(node.free("cpu"))


def labels_of_pods(node: Any) -> tuple[int, int]:
    """Numbers that change with every pod on the node, and with its labels."""
    return sum(len(pod.name) + len(pod.labels) for pod in node.pods), len(node.labels)


@predicate("HoldsFewLabels", depends="pods", columns=True)
def holds_few_labels(pod: Any, nodes: Any) -> Any:
    return nodes.each(labels_of_pods)[:, 0] < 60


@priority("ByLabels", depends="pods", columns=True)
def by_labels(pod: Any, nodes: Any) -> Any:
    return nodes.each(labels_of_pods).sum(axis=1) % 7


@priority("GrowsOutOfRange", depends="pods")
def grows_out_of_range(pod: Any, node: Any) -> int:
    """In a generation that checks scores, pods of a class fail once a node has three pods."""
    return 500 if node.pod_count > 2 else 3


@priority("AlwaysOutOfRange", depends="node")
def always_out_of_range(pod: Any, node: Any) -> int:
    return 500


MILD = (
    has_an_even_name,
    holds_few_pods,
    has_free_memory,
    holds_few_labels,
    by_number,
    by_pods,
    by_free_cpu,
    by_labels,
)


def extended(profile: Profile, *functions: Any) -> Profile:
    """The profile with these rules of a user behind its own."""
    specs = [spec for function in functions for spec in rules_in(function)]
    filters = [UserPredicate(spec) for spec in specs if spec.kind == PREDICATE]
    scores = [
        Weighted(UserPriority(spec, max_score=profile.max_score), 2)
        for spec in specs
        if spec.kind == PRIORITY
    ]
    return replace(
        profile,
        predicates=(*profile.predicates, *filters),
        priorities=tuple(sorted((*profile.priorities, *scores), key=lambda each: each.name)),
    )
