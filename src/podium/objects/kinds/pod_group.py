"""Pod groups: pods that are scheduled together (`scheduling.k8s.io/v1beta1`).

The scheduler reads nothing else about a group: Workload objects are the business of controllers.
Upstream: staging/src/k8s.io/api/scheduling/v1beta1 and pkg/apis/scheduling/validation, v1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.objects.field_errors import Fault
from podium.objects.kinds.meta import Int32, Int64, Object, Time, Value
from podium.objects.kinds.pod import PodResourceClaim

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The version that is read. v1alpha2 is that of v1.36.
API_VERSION: Final = "scheduling.k8s.io/v1beta1"
#: The condition that says whether the group was scheduled once.
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"


class BasicPolicy(Value, frozen=True):
    """The pods of the group are scheduled as far as they fit."""


class GangPolicy(Value, frozen=True):
    """So many pods of the group are scheduled together, or none."""

    min_count: Int32 = 0


class SchedulingPolicy(Value, frozen=True):
    """Exactly one of the policies."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class DisruptSingle(Value, frozen=True):
    """Pods of the group are evicted one by one."""


class DisruptAll(Value, frozen=True):
    """The pods of the group are evicted together."""


class DisruptionMode(Value, frozen=True):
    """Exactly one of the modes."""

    single: DisruptSingle | None = None
    all: DisruptAll | None = None


#: The mode that an API server fills in.
SINGLE: Final = DisruptionMode(single=DisruptSingle())


class TopologyConstraint(Value, frozen=True):
    """A node label: all pods of the group go to nodes with one value of it."""

    key: str = ""


class SchedulingConstraints(Value, frozen=True):
    """Where the pods of a group may be, taken together."""

    topology: list[TopologyConstraint] | None = None


class PodGroupSpec(Value, frozen=True):
    """How the pods of a group are scheduled and evicted."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    priority_class_name: str = ""
    priority: Int32 | None = None
    disruption_mode: DisruptionMode | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    preemption_policy: str | None = None
    #: Claims for devices that all pods of the group share.
    resource_claims: list[PodResourceClaim] | None = None
    parent_composite_pod_group_name: str | None = None


class GroupCondition(Value, frozen=True):
    """A condition of the status of a group."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: Time | None = None


class PodGroupStatus(Value, frozen=True):
    """What became of a group."""

    conditions: list[GroupCondition] | None = None


class PodGroup(Object, frozen=True):
    """Pods that are scheduled together. Pods name it in `spec.schedulingGroup.podGroupName`."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def uid(self) -> str:
        """The uid; the key of a group that was never in an API server."""
        return self.metadata.uid or self.key

    @property
    def priority(self) -> int:
        """The resolved priority; none means 0."""
        return self.spec.priority or 0

    @property
    def is_gang(self) -> bool:
        """Whether a number of pods must be scheduled together."""
        return self.spec.scheduling_policy.gang is not None

    @property
    def min_count(self) -> int:
        """How many pods must have a node; 1 for a group with the basic policy."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count

    @property
    def evicted_together(self) -> bool:
        """Whether all pods of the group are evicted if one is."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None

    def condition(self) -> GroupCondition | None:
        """The condition that says whether the group was scheduled once."""
        found = (each for each in self.status.conditions or () if each.type == INITIALLY_SCHEDULED)
        return next(found, None)


def check_pod_group(group: PodGroup) -> Iterator[Fault]:
    """What an API server would refuse in a group, and what is not supported."""
    if group.api_version not in ("", API_VERSION):
        what = f"{group.api_version} is not the version of pod groups that is read"
        yield Fault("apiVersion", what, f"pod groups of v1.37 are {API_VERSION}")
        return
    spec = group.spec
    policy, mode = spec.scheduling_policy, spec.disruption_mode
    if (policy.basic is None) == (policy.gang is None):
        what = "has both basic and gang" if policy.gang else "has neither basic nor gang"
        hint = "write basic: {} or gang: {minCount: 3}"
        yield Fault("spec.schedulingPolicy", what, hint)
    elif policy.gang is not None and policy.gang.min_count < 1:
        what = f"{policy.gang.min_count} is less than one"
        hint = "say how many pods must be scheduled together"
        yield Fault("spec.schedulingPolicy.gang.minCount", what, hint)
    if mode is not None and (mode.single is None) == (mode.all is None):
        what = "has both single and all" if mode.all else "has neither single nor all"
        yield Fault("spec.disruptionMode", what, "write single: {} or all: {}")
    constraints = spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        what = "needs the feature gate TopologyAwareWorkloadScheduling, which is not supported"
        yield Fault("spec.schedulingConstraints", what, "leave it out")
    unsupported = (
        ("parentCompositePodGroupName", spec.parent_composite_pod_group_name, "CompositePodGroup"),
        ("preemptionPolicy", spec.preemption_policy, "PodGroupPreemptionPolicy"),
        ("resourceClaims", spec.resource_claims, "DRAWorkloadResourceClaims"),
    )
    for field, value, gate in unsupported:
        if value:
            what = f"needs the feature gate {gate}, which is not supported"
            yield Fault(f"spec.{field}", what, "leave it out")
