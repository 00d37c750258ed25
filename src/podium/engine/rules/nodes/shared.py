"""Cordoned nodes, nodes named by pods, and columns of node facts, for rules of both generations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.causes import Cause, Cordoned, OtherNode
from podium.engine.framework.rule import BitFilter, Scope, scope_with
from podium.engine.rows.rows import Ints, K, Rows
from podium.objects.kinds.node import Taint
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import ManyRows, OneRow
    from podium.engine.state.node_columns import FactColumn
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.verdicts import Reason

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def tolerates_cordon(cls: PodClass) -> bool:
    """Whether the pod tolerates the taint of unschedulable nodes."""
    tolerations = cls.spec.tolerations
    return bool(tolerations) and tolerated(tolerations, UNSCHEDULABLE_TAINT)


def cordon(reason: Reason, at: OneRow) -> Iterator[Cause]:
    """The cause where the node is cordoned."""
    if at.view.nodes.facts.unschedulable.on(at.row):
        yield Cordoned(reason.text)


class CordonFilter(BitFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes.

    Each generation names the rule and its only reason.
    """

    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: those that tolerate the taint have another scope."""
        return ()

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods that do not tolerate the taint."""
        return Scope.NONE if tolerates_cordon(cls) else Scope.NODE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node is cordoned and the pod does not tolerate it."""
        if tolerates_cordon(pod.cls):
            return at.full(0)
        return at.fact(at.view.nodes.facts.unschedulable, int)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """That the node is cordoned."""
        return cordon(self.reasons[0], at)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:  # noqa: ARG002
        """Nothing: every rejected node is cordoned."""
        return [()] * len(at)


class NamedNodeFilter(BitFilter):
    """A pod with `spec.nodeName` fits that node only.

    Each generation names the rule and its only reason.
    """

    keyed_by_form = True
    scope = scope_with("host", Scope.NODE)

    def row_key(self, cls: PodClass) -> Hashable:
        """The node that the pod names."""
        return cls.host

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 on every other node."""
        wanted = pod.cls.host
        return (at.is_node(wanted) ^ True) * 1 if wanted else at.full(0)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The node that the pod names."""
        wanted = pod.cls.host
        if wanted and wanted != at.name:
            yield OtherNode(self.reasons[0].text, wanted)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:  # noqa: ARG002
        """Nothing: every rejected node is another one."""
        return [()] * len(at)


def zero_for_all_values(
    memo: dict[object, Any], column: FactColumn, answer: Callable[[Any], int], key: object
) -> bool:
    """Whether `answer` is 0 for every distinct value of a column of node facts.

    The result is kept in the memo of a pod class, or of a form where all of its classes get the
    same, under `key`; each value is passed to `answer` once.
    """
    seen, same = memo.get(key, (0, True))
    if seen < len(column.values):
        same = same and not any(map(answer, column.values[seen:]))
        memo[key] = (len(column.values), same)
    return bool(same)
