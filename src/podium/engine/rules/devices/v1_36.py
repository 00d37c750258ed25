"""DynamicResources, as far as pods without resource claims see of it.

Pods with claims are not served yet: they are refused with a sentence instead of a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.post_filter import FailedSearch, Outcome
from podium.engine.framework.rule import AttemptError, Scope
from podium.engine.rules.plugins import FilterPlugin, ScorePlugin

if TYPE_CHECKING:
    from collections.abc import Generator

    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

NOT_SERVED = "pods with resource claims (dynamic resource allocation) are not supported yet"


class DynamicResources(FilterPlugin):
    """Nothing to filter for a pod without claims."""

    name = "DynamicResources"

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Never looks at a node."""
        return Scope.NONE

    def quiet(self, cls: PodClass) -> bool:
        """Only resource claims are in the way."""
        return not cls.spec.resource_claims

    def prepare(self, pod: Incoming, view: View) -> None:  # noqa: ARG002
        """Say so when a pod has claims."""
        if pod.pod.spec.resource_claims:
            raise AttemptError(f"{pod.key}: {NOT_SERVED}; remove spec.resourceClaims to try it")


class DynamicResourcesScore(ScorePlugin):
    """0 for every node."""

    name = "DynamicResources"

    def skips(self, pod: Incoming, at: Rows) -> bool:  # noqa: ARG002
        """Nothing worth showing."""
        return True

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """Always 0."""
        return 0


class DynamicResourcesPostFilter:
    """Has no claims to give back; its words stand before those of preemption."""

    name = "DynamicResources"
    evicts_pods = False

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """An error when the pod was refused before this plugin saw it."""
        if self.name not in failed.prepared:
            return Outcome("Error", "not found")
        return Outcome("Unschedulable", "no new claims to deallocate")
        yield  # a generator that asks nobody
