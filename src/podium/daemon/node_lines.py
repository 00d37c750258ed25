"""What each node got, line by line, in the words of kube-scheduler's log at `--v=10`.

    Match for RequiredDuringSchedulingIgnoredDuringExecution node selector terms [{…}]
    Cannot schedule pod default/web-0 onto node n3, because of PodAntiAffinity
    Schedule Pod default/web-0 on Node n1 is allowed, pod (anti)affinity constraints satisfied
    web-0_default -> n1: LeastRequestedPriority, Score: (7)
    Host n1 => Score 17

kube-scheduler repeats the first line for every node, and names no reason but those of affinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.rules.pod_affinity import v1_13, v1_36

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.meta import LabelSelectorRequirement
    from podium.objects.kinds.pod import Affinity, NodeSelectorTerm, Pod

#: Reasons of affinity between pods, and what the log says of them; the first one adds nothing.
_OF_AFFINITY: Final = {
    v1_13.POD_AFFINITY.text: None,
    **{module.EXISTING_ANTI_AFFINITY.text: "" for module in (v1_13, v1_36)},
    **{module.OWN_AFFINITY.text: ", because of PodAffinity" for module in (v1_13, v1_36)},
    **{module.OWN_ANTI_AFFINITY.text: ", because of PodAntiAffinity" for module in (v1_13, v1_36)},
}
#: The one priority whose lines have the name of the pod without its namespace.
_BY_NAME: Final = "InterPodAffinityPriority"


def node_lines(pod: Pod, decision: Decision) -> Iterator[str]:
    """The lines about a decision that was made with recording."""
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity and affinity.node_affinity.required:
        terms = affinity.node_affinity.required.node_selector_terms or ()
        yield (
            "Match for RequiredDuringSchedulingIgnoredDuringExecution node selector terms "
            f"[{' '.join(map(_term, terms))}]"
        )
    for node, reasons in decision.failed().items():
        for because in _because(reasons):
            yield f"Cannot schedule pod {pod.key} onto node {node}{because}"
    if _between_pods(affinity):
        for node in decision.feasible:
            yield (
                f"Schedule Pod {pod.key} on Node {node} is allowed, "
                "pod (anti)affinity constraints satisfied"
            )
    if decision.totals is None:
        return
    for column in decision.scores:
        name = pod.name if column.name == _BY_NAME else f"{pod.name}_{pod.namespace}"
        for node, score in zip(decision.feasible, column.score.tolist(), strict=True):
            yield f"{name} -> {node}: {column.name}, Score: ({score})"
    for node, total in zip(decision.feasible, decision.totals.tolist(), strict=True):
        yield f"Host {node} => Score {total}"


def _between_pods(affinity: Affinity | None) -> bool:
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def _because(reasons: Sequence[str]) -> Iterator[str]:
    """The ends of the lines about one node: one for each reason of affinity, one for the rest."""
    others = [reason for reason in reasons if reason not in _OF_AFFINITY]
    if others:
        yield f", because of {', '.join(others)}"
    for reason in reasons:
        ending = _OF_AFFINITY.get(reason)
        if ending is not None:
            yield ending


def _term(term: NodeSelectorTerm) -> str:
    """A term as Go's `%+v` shows it."""
    expressions = " ".join(map(_requirement, term.match_expressions or ()))
    fields = " ".join(map(_requirement, term.match_fields or ()))
    return f"{{MatchExpressions:[{expressions}] MatchFields:[{fields}]}}"


def _requirement(one: LabelSelectorRequirement) -> str:
    return f"{{Key:{one.key} Operator:{one.operator} Values:[{' '.join(one.values or ())}]}}"
