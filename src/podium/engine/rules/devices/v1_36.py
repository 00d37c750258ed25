"""DynamicResources, as far as pods without resource claims see of it.

Pods with claims are not served yet: they are refused with a sentence instead of a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.post_filter import FailedSearch, Outcome
from podium.engine.framework.rule import (
    SKIPPED,
    AttemptError,
    BitFilter,
    Everywhere,
    Scope,
    ScoreRule,
)
from podium.engine.rules.devices.v1_36_arguments import DYNAMIC_RESOURCES_ARGUMENTS
from podium.engine.rules.v1_36_wakeups import always

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

NOT_SERVED = "pods with resource claims (dynamic resource allocation) are not supported yet"


class DynamicResources(BitFilter):
    """Nothing to filter for a pod without claims."""

    name = "DynamicResources"

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Never looks at a node."""
        return Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """Pods with resource claims are refused."""
        return bool(cls.spec.resource_claims)

    def pre_filter(self, pod: Incoming, view: View) -> None:  # noqa: ARG002
        """Say so when a pod has claims."""
        if pod.pod.spec.resource_claims:
            raise AttemptError(f"{pod.key}: {NOT_SERVED}; remove spec.resourceClaims to try it")


class DynamicResourcesScore(ScoreRule):
    """0 for every node."""

    name = "DynamicResources"

    def row_key(self, cls: PodClass) -> Hashable:
        """Nothing of a pod without claims."""
        return cls.id if cls.spec.resource_claims else ()

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Skipped: a pod without claims gets no score."""
        return SKIPPED


class DynamicResourcesPostFilter:
    """Has no claims to give back; its words stand before those of preemption."""

    kinds: tuple[str, ...] = ()
    name = "DynamicResources"
    evicts_pods = False

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """An error when the pod was refused before this plugin saw it."""
        if self.name not in failed.prepared:
            return Outcome("Error", "not found")
        return Outcome("Unschedulable", "no new claims to deallocate")
        yield  # a generator that asks no extender


#: Device objects are not read: whatever happens to them may help.
DYNAMIC_RESOURCES: Final = PluginDeclaration(
    "DynamicResources",
    "preEnqueue preFilter filter postFilter score reserve preBind",
    "devices that the pod claims",
    filter=plain(DynamicResources),
    score=plain(DynamicResourcesScore),
    post_filter=plain(DynamicResourcesPostFilter),
    arguments=DYNAMIC_RESOURCES_ARGUMENTS,
    weight=2,
    feature_gate="DynamicResourceAllocation",
    pre_filter_error="not found",
    score_needs_pre_filter=True,
    events={
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "Node UpdateNodeAllocatable": always,
        "ResourceClaim Add": always,
        "ResourceClaim Update": always,
        "DeviceClass Add": always,
        "DeviceClass Update": always,
        "ResourceSlice Add": always,
        "ResourceSlice Update": always,
    },
)
