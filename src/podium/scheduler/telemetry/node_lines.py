"""What each node got, line by line, in the words of kube-scheduler's log at `--v=10`.

    Match for RequiredDuringSchedulingIgnoredDuringExecution node selector terms [{…}]
    ParseInt failed for value x in label size=x, strconv.ParseInt: parsing "x": invalid syntax
    Cannot schedule pod default/web-0 onto node n3, because of PodAntiAffinity
    Schedule Pod default/web-0 on Node n1 is allowed, pod (anti)affinity constraints satisfied
    web-0_default -> n1: LeastRequestedPriority, Score: (7)
    Host n1 => Score 17

kube-scheduler repeats the first line for every node, and names no reason but those of affinity. It
refuses a `Gt` with two values before it compares, and logs nothing; here its line
`Invalid values count …` says why the term matches no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.rules.pod_affinity import (
    EXISTING_ANTI_AFFINITY,
    OWN_AFFINITY,
    OWN_ANTI_AFFINITY,
    POD_AFFINITY,
)
from podium.objects.names import quoted
from podium.objects.selectors.requirements import int64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.meta import LabelSelectorRequirement
    from podium.objects.kinds.pod import Affinity, NodeSelectorTerm, Pod

#: Reasons of affinity between pods, and what the log says of them; the first one adds nothing.
_OF_AFFINITY: Final = {
    POD_AFFINITY.text: None,
    EXISTING_ANTI_AFFINITY.text: "",
    OWN_AFFINITY.text: ", because of PodAffinity",
    OWN_ANTI_AFFINITY.text: ", because of PodAntiAffinity",
}
#: The one priority whose lines have the name of the pod without its namespace.
_BY_NAME: Final = "InterPodAffinityPriority"


def node_lines(
    pod: Pod, decision: Decision, labels_of: Callable[[str], Mapping[str, str]]
) -> Iterator[str]:
    """The lines about a decision that was made with recording; *labels_of* a node."""
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity and affinity.node_affinity.required:
        terms = affinity.node_affinity.required.node_selector_terms or ()
        yield (
            "Match for RequiredDuringSchedulingIgnoredDuringExecution node selector terms "
            f"[{' '.join(map(_term, terms))}]"
        )
        wanted = [one for term in terms for one in term.match_expressions or ()]
        yield from _unread_numbers(wanted, decision.examined, labels_of)
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


def _unread_numbers(
    wanted: Sequence[LabelSelectorRequirement],
    nodes: Sequence[str],
    labels_of: Callable[[str], Mapping[str, str]],
) -> Iterator[str]:
    """Labels that are compared as numbers and are none."""
    keys = dict.fromkeys(one.key for one in wanted if one.operator in {"Gt", "Lt"})
    for one in wanted:
        count = len(one.values or ())
        if one.operator in {"Gt", "Lt"} and count != 1:
            values = ", ".join(map(quoted, one.values or ()))
            yield (
                f"Invalid values count {count} of requirement labels.Requirement"
                f"{{key:{quoted(one.key)}, operator:{quoted(one.operator.lower())}, "
                f"strValues:[]string{{{values}}}}}, "
                "for 'Gt', 'Lt' operators, exactly one value is required"
            )
    for node in nodes if keys else ():
        labels = labels_of(node)
        for key in keys:
            value = labels.get(key)
            if value is not None and int64(value) is None:
                listed = ",".join(sorted(f"{name}={text}" for name, text in labels.items()))
                yield (
                    f"ParseInt failed for value {value} in label {listed}, "
                    f"strconv.ParseInt: parsing {quoted(value)}: {_number_fault(value)}"
                )


def _number_fault(text: str) -> str:
    """What Go says of a text that is no number of 64 bits."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    return "value out of range" if digits.isascii() and digits.isdigit() else "invalid syntax"


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
