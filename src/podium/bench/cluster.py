"""A cluster in memory, and the operations of a workload carried out in it.

Whatever an operation creates is there at once, and a pod is decided about the moment it is
created. Pods that fit nowhere wait; a barrier tries them again. Time is the workload's own: it
passes as the clock does, and `sleep` only moves it on.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podium.bench.churn import Churning, Deleting
from podium.bench.definitions import (
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    DeletePods,
    Op,
    Params,
    Sleep,
    Workload,
    parameter,
    seconds,
)
from podium.bench.manufacture import (
    bound_claim,
    bound_volume,
    claiming,
    csi_node,
    expected,
    prepared,
)
from podium.bench.templates import UNNAMED, Template
from podium.errors import InputError
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import (
    CSI_NODE,
    KINDS,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
)
from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim
from podium.objects.kinds.workloads import Namespace
from podium.objects.reading.collection import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cluster.simulation import Simulation, Step
    from podium.objects.kinds.meta import Object

SHIPPED = Path(__file__).parent / "workloads"
DEFAULT_NODE, DEFAULT_POD = "templates/node.yaml", "templates/pod.yaml"


class World:
    """What a workload has made so far."""

    def __init__(
        self,
        workload: Workload,
        simulation: Simulation,
        *,
        clock: Callable[[], float],
        measure: Callable[[World, str, Sequence[Pod]], None],
        watch: Callable[[Step], None] | None = None,
    ) -> None:
        self.workload = workload
        self.simulation = simulation
        self.waiting: dict[str, Pod] = {}
        self.victims = 0
        self._params: Params = workload.params
        self._clock = clock
        self._skipped = 0.0
        self._measure = measure
        self._watch = watch
        self._made = 0
        self._beside: list[Churning | Deleting] = []
        self._templates: dict[Path, Template] = {}

    def now(self) -> float:
        """The workload's own time in seconds."""
        return self._clock() + self._skipped

    # Operations

    def run(self, place: int, op: Op) -> None:
        """Carry out the operation at this place of the list."""
        carry_out: dict[type[Op], Callable[[Any, str], None]] = {
            CreateNodes: self._create_nodes,
            CreateNamespaces: self._create_namespaces,
            CreatePods: self._create_pods,
            CreatePodSets: self._create_pod_sets,
            CreateAny: self._create_any,
            DeletePods: self._delete_pods,
            Churn: self._churn,
            Barrier: self._try_again,
            Sleep: self._sleep,
        }
        # Where an operation names no namespace, it has one of its own.
        carry_out[type(op)](op, f"namespace-{place}")

    def _create_nodes(self, op: CreateNodes, _: str) -> None:
        template = self.template(op.node_template_path, DEFAULT_NODE)
        count, made = op.number(self._params), Objects()
        for index in range(count):
            node = expected(template, index, count, Node)
            name = self._name(node)
            made.nodes.append(prepared(node, name, op, index))
            if op.node_allocatable_strategy is not None:
                made.of(CSI_NODE).append(csi_node(name, op.node_allocatable_strategy))
        self.simulation.load(made)

    def _create_namespaces(self, op: CreateNamespaces, _: str) -> None:
        made = Objects()
        count = op.number(self._params)
        for index in range(count):
            namespace = Namespace(kind="Namespace")
            if op.namespace_template_path:
                template = self.template(op.namespace_template_path)
                namespace = expected(template, index, count, Namespace)
            metadata = replace(namespace.metadata, name=f"{op.prefix}-{index}")
            made.of(NAMESPACE).append(replace(namespace, metadata=metadata))
        self.simulation.load(made)

    def _create_any(self, op: CreateAny, _: str) -> None:
        template = self.template(op.template_path)
        count = op.number(self._params) if op.count or op.count_param else 1
        for index in range(count):
            self.create(template, index, count, op.namespace)

    def _create_pod_sets(self, op: CreatePodSets, _: str) -> None:
        for number in range(op.number(self._params)):
            self._create_pods(op.create_pods_op, f"{op.namespace_prefix}-{number}")

    def _create_pods(self, op: CreatePods, place: str) -> None:
        namespace, count = op.namespace or place, op.number(self._params)
        default = self.workload.default_pod_template
        template = self.template(op.pod_template_path or default, DEFAULT_POD)
        indices = range(count)
        pods = [self._pod(expected(template, index, count, Pod), namespace) for index in indices]
        if op.persistent_volume_claim_template_path:
            pods = self._with_volumes(op, pods)
        if op.collect_metrics:
            self._measure(self, namespace, pods)
        else:
            for pod in pods:
                self.tick()
                self.schedule(pod)

    def _with_volumes(self, op: CreatePods, pods: list[Pod]) -> list[Pod]:
        """Each pod with a claim of its own, bound to a volume of its own."""
        volumes = self.template(op.persistent_volume_template_path)
        claims = self.template(op.persistent_volume_claim_template_path)
        made, count = Objects(), len(pods)
        for index, pod in enumerate(pods):
            volume = expected(volumes, index, count, PersistentVolume)
            made.of(PERSISTENT_VOLUME).append(bound_volume(volume, pod))
            claim = expected(claims, index, count, PersistentVolumeClaim)
            made.of(PERSISTENT_VOLUME_CLAIM).append(bound_claim(claim, pod))
        self.simulation.load(made)
        return [claiming(pod) for pod in pods]

    def _delete_pods(self, op: DeletePods, _: str) -> None:
        wanted = op.label_selector.items()
        placed = chain.from_iterable(self.simulation.cache.columns.residents)
        uids = [
            pod.uid
            for pod in placed
            if pod.labels.namespace == op.namespace and wanted <= pod.labels.labels.items()
        ]
        uids += [
            pod.uid
            for pod in self.waiting.values()
            if pod.namespace == op.namespace and wanted <= pod.labels.items()
        ]
        if op.delete_pods_per_second and op.skip_wait_to_completion:
            self._beside.append(Deleting(self, op, uids))
            return
        for uid in uids:
            self.delete_pod(uid)

    def _churn(self, op: Churn, place: str) -> None:
        self._beside.append(Churning(self, op, op.namespace or place))

    def _sleep(self, op: Sleep, _: str) -> None:
        given = op.duration_param
        text = str(parameter(given, self._params)) if given else op.duration
        self._skipped += seconds(text)
        self.tick()

    def _try_again(self, op: Barrier, _: str) -> None:
        chosen = [
            pod
            for pod in self.waiting.values()
            if (not op.namespaces or pod.namespace in op.namespaces)
            and op.label_selector.items() <= pod.labels.items()
        ]
        for pod in chosen:
            self.schedule(pod)

    # Objects

    def template(self, path: str, default: str = "") -> Template:
        """The template at a path of the workload's file, or the one to use when none is given."""
        if not path and not default:
            raise InputError("a template path is missing", object=f"workload {self.workload.name}")
        whole = self.workload.folder / path if path else SHIPPED / default
        if whole not in self._templates:
            self._templates[whole] = Template(whole)
        return self._templates[whole]

    def create(self, template: Template, index: int, count: int, namespace: str) -> Object:
        """One object of any kind; a pod without a node is decided about."""
        found = template.make(index, count)
        if isinstance(found, Pod):
            pod = self._pod(found, namespace or found.namespace)
            if pod.spec.node_name:
                made = Objects()
                made.pods.append(pod)
                self.simulation.load(made)
            else:
                self.schedule(pod)
            return pod
        metadata = replace(found.metadata, name=self._name(found))
        if namespace and KINDS[found.kind].namespaced:
            metadata = replace(metadata, namespace=namespace)
        found = replace(found, metadata=metadata)
        made = Objects()
        made.add(found.kind, found)
        self.simulation.load(made)
        return found

    def delete(self, item: Object) -> None:
        """Take an object away again; from a node, its pods go with it."""
        cache = self.simulation.cache
        if isinstance(item, Pod):
            self.delete_pod(item.uid)
        elif isinstance(item, Node):
            row = cache.columns.row_of[item.name]
            for resident in list(cache.columns.residents[row]):
                self.simulation.remove(resident.uid)
            cache.drop_node(item)
        elif KINDS[item.kind].looked_up:
            cache.columns.catalog.shelf(item.kind).drop(item)

    def delete_pod(self, uid: str) -> None:
        """Take a pod away, wherever it is; one that was evicted meanwhile is gone already."""
        self.waiting.pop(uid, None)
        if self.simulation.cache.columns.pod(uid) is not None:
            self.simulation.remove(uid)

    def _name(self, item: Object) -> str:
        """The name in the template, or the prefix there with a number that nobody else has."""
        if item.name != UNNAMED:
            return item.name
        self._made += 1
        return f"{item.metadata.generate_name or f'{item.kind.lower()}-'}{self._made}"

    def _pod(self, pod: Pod, namespace: str) -> Pod:
        name = self._name(pod)
        metadata = replace(pod.metadata, name=name, namespace=namespace, uid=f"{namespace}/{name}")
        return replace(pod, metadata=metadata)

    # Decisions

    def schedule(self, pod: Pod) -> bool:
        """Decide about a pod and carry it out; whether it has a node now."""
        decision = None
        for step in self.simulation.run((pod,)):
            decision = step.decision
            preemption = decision.preemption
            if preemption is not None and preemption.node is not None:
                self.victims += len(preemption.candidates[preemption.node].uids)
            if self._watch is not None:
                self._watch(step)
        if decision is not None and decision.node is not None:
            self.waiting.pop(pod.uid, None)
            return True
        self.waiting[pod.uid] = pod
        return False

    def tick(self) -> None:
        """Let happen what is due now beside the pods."""
        for each in self._beside:
            each.tick()

    @property
    def is_busy(self) -> bool:
        """Whether anything happens beside the pods."""
        return bool(self._beside)
