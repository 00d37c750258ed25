"""The workloads of a cluster: whose pods are whose, how many each wants, what budgets protect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.objects.kinds.registry import (
    DEPLOYMENT,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from podium.objects.quantity import milli, value
from podium.objects.selectors.selectors import Selector, SelectorError, from_label_selector

if TYPE_CHECKING:
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.workloads import PodDisruptionBudget
    from podium.objects.reading.collection import Objects

_SCALED: Final = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET)
#: The annotation of a static pod, which the kubelet of its node keeps.
MIRROR: Final = "kubernetes.io/config.mirror"
#: Controllers whose pods belong to their nodes.
OF_NODES: Final = ("DaemonSet", "Node")


def anew(pod: Pod) -> Pod:
    """The pod that a controller creates in the place of *pod*: without node and status."""
    status = replace(pod.status, phase="Pending", nominated_node_name="", start_time=None)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)


def requested(pods: Iterable[Pod]) -> tuple[int, int]:
    """What the containers of pods request: thousandths of a CPU, and bytes of memory."""
    cpu = memory = 0
    for pod in pods:
        for container in pod.spec.containers or ():
            requests = (container.resources and container.resources.requests) or {}
            cpu += milli(requests.get("cpu", 0))
            memory += value(requests.get("memory", 0))
    return cpu, memory


def is_recreated(pod: Pod) -> bool:
    """Whether a controller creates the pod anew when it is gone."""
    return pod.metadata.controller() is not None


def is_active(pod: Pod) -> bool:
    """Whether it is neither finished nor terminating."""
    return not pod.finished and not pod.terminating


def belongs_to_node(pod: Pod) -> bool:
    """Whether it stays with its node: a static pod, or one of a daemon set."""
    return MIRROR in (pod.metadata.annotations or {}) or is_owned_by_node(pod)


def is_owned_by_node(pod: Pod) -> bool:
    """Whether its controller brings it back to the same node: a daemon set, or the node itself."""
    owner = pod.metadata.controller()
    return owner is not None and owner.kind in OF_NODES


class Workloads:
    """The workloads of a cluster: whose pod is whose, and how many each wants."""

    def __init__(self, objects: Objects) -> None:
        self.wanted: dict[str, int] = {}
        self._above: dict[str, str] = {}
        for kind in _SCALED:
            for item in objects.of(kind):
                name = f"{kind.name}/{item.namespace}/{item.name}"
                owner = item.metadata.controller()
                if owner is not None:
                    self._above[name] = f"{owner.kind}/{item.namespace}/{owner.name}"
                replicas = item.spec.replicas
                self.wanted[name] = 1 if replicas is None else replicas
        # Replica sets say how many pods a deployment wants that is not in the input.
        absent = {above for above in self._above.values() if above not in self.wanted}
        for name, above in self._above.items():
            if above in absent:
                self.wanted[above] = self.wanted.get(above, 0) + self.wanted[name]
        # A workload that is not in the input wants the pods that it has.
        absent_pods = Counter(
            name
            for pod in objects.pods
            if is_active(pod) and (name := self.of(pod)) and name not in self.wanted
            if not belongs_to_node(pod)
        )
        self.wanted.update(absent_pods)

    def of(self, pod: Pod) -> str:
        """The workload that a user knows: the deployment, not its replica set."""
        owner = pod.metadata.controller()
        if owner is None:
            return ""
        name = f"{owner.kind}/{pod.namespace}/{owner.name}"
        return self._above.get(name, name)


@dataclass(frozen=True, slots=True)
class Budget:
    """A disruption budget whose selector can be read."""

    budget: PodDisruptionBudget
    selector: Selector

    def covers(self, pod: Pod) -> bool:
        """Whether the budget protects the pod."""
        return pod.namespace == self.budget.namespace and self.selector.matches(pod.labels)


def budgets_of(objects: Objects) -> Iterator[Budget]:
    """The disruption budgets of a cluster; one whose selector is not valid protects no pod."""
    for budget in objects.of(POD_DISRUPTION_BUDGET):
        try:
            yield Budget(budget, from_label_selector(budget.spec.selector))
        except SelectorError:
            continue


def desired_healthy(budget: PodDisruptionBudget, pods: Sequence[Pod], names: Workloads) -> int:
    """How many pods a budget wants healthy, as the disruption controller counts them."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if most is None and not isinstance(least, str):
        return 1 if least is None else least
    owners = {name for pod in pods if (name := names.of(pod)) in names.wanted}
    expected = sum(names.wanted[name] for name in owners)
    expected += sum(names.of(pod) not in names.wanted for pod in pods)
    if most is not None:
        return max(expected - _share(most, expected), 0)
    assert least is not None
    return _share(least, expected)


def _share(amount: int | str, of: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    return -(-of * int(digits) // 100) if digits.isdigit() else 0
