"""GangScheduling: pods of a gang wait until enough are known, and until enough have nodes.

The group cycle (`cluster.pod_groups.cycle`) asks for nothing here: it counts by itself.

Upstream: plugins/gangscheduling/gangscheduling.go, Kubernetes v1.37, without composite groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import ALLOWED, Permission, PermitRule, Refused, Scope
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup

NAME: Final = "GangScheduling"
FEATURE_GATE: Final = "GenericWorkload"
TOO_FEW: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_YET: Final = "waiting for minCount pods from a gang to be scheduled"
#: How long a pod keeps its node while too few others have one.
PERMIT_SECONDS: Final = 300.0


def named_group(pod: Pod, view: View) -> PodGroup | None:
    """The group that a pod names; None if there is no such group."""
    namespace, _, name = pod.group.partition("/")
    return view.catalog.pod_groups.get(name, namespace)


class GangGate:
    """Holds the pods of a gang until as many are known as must be scheduled together."""

    name = NAME

    def hold(self, pod: Incoming, view: View) -> Refused | None:
        """A pod whose group does not exist waits for the group."""
        if not pod.pod.group:
            return None
        group = named_group(pod.pod, view)
        if group is None:
            name = quoted(pod.pod.group.partition("/")[2])
            what = f"waiting for pods's pod group {name} to appear in scheduling queue"
            return Refused(self.name, what, curable=False)
        if group.is_gang and view.pods.groups.count(group.key) < group.min_count:
            return Refused(self.name, TOO_FEW, curable=False)
        return None


class GangPermit(PermitRule):
    """Lets a pod of a gang wait, with its node, until enough pods of the gang have one."""

    name = NAME
    kinds = ("PodGroup",)
    always = Scope.CLUSTER

    def permit(self, pod: Incoming, at: OneRow) -> Permission:
        """The pod itself counts as one that has a node."""
        group = named_group(pod.pod, at.view) if pod.pod.group else None
        if group is None or not group.is_gang:
            return ALLOWED
        members = at.view.pods.groups
        has_node = pod.uid in at.view.pods.by_uid
        if members.placed_count(group.key) + (not has_node) >= group.min_count:
            return ALLOWED
        return Permission(allowed=False, reason=NOT_YET, wait_seconds=PERMIT_SECONDS)


def same_group(waiting: Pod, _old: Pod | None, new: Pod) -> bool:
    """Another pod of the group is there, or got a node."""
    return bool(waiting.group) and waiting.group == new.group


def group_added(waiting: Pod, _old: None, new: PodGroup) -> bool:
    """The group of the pod exists now."""
    return waiting.group == new.key


def minimum_lowered(waiting: Pod, old: PodGroup, new: PodGroup) -> bool:
    """The group of the pod needs fewer pods now."""
    if waiting.group != new.key or not (old.is_gang and new.is_gang):
        return False
    return new.min_count < old.min_count


GANG_SCHEDULING: Final = PluginDeclaration(
    NAME,
    "preEnqueue permit",
    "pods of a group start together",
    gate=plain(GangGate),
    permit=plain(GangPermit),
    feature_gate=FEATURE_GATE,
    events={
        "Pod Add": same_group,
        "PodGroup Add": group_added,
        "PodGroup Update": minimum_lowered,
    },
)
