"""A cluster in memory, and the operations of a workload carried out in it.

Whatever an operation creates is there at once, and a pod is decided about the moment it is
created. Pods that fit nowhere wait; a barrier tries them again. Time is the workload's own: it
passes as the clock does, and `sleep` only moves it on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from podium.bench.definitions import (
    RECREATE,
    AllocatableStrategy,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    Op,
    Params,
    Sleep,
    Workload,
    parameter,
    seconds,
)
from podium.bench.templates import UNNAMED, Template
from podium.errors import InputError
from podium.objects.collection import KINDS, Objects
from podium.objects.meta import Object
from podium.objects.node import Node
from podium.objects.pod import ClaimVolume, Pod, Volume
from podium.objects.storage import (
    CsiNode,
    CsiNodeDriver,
    CsiNodeSpec,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeLimits,
    VolumeStatus,
)
from podium.objects.workloads import Namespace

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation, Step

SHIPPED = Path(__file__).parent / "workloads"
DEFAULT_NODE, DEFAULT_POD = "templates/node.yaml", "templates/pod.yaml"
HOST_LABEL = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
#: Where the catalog keeps what a churn may take away again.
_SHELVES = {
    "Service": "services",
    "ReplicationController": "replication_controllers",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "Namespace": "namespaces",
    "PersistentVolume": "volumes",
    "PersistentVolumeClaim": "claims",
    "StorageClass": "storage_classes",
    "PodDisruptionBudget": "budgets",
}
_Kind = TypeVar("_Kind", bound=Object)


class World:
    """What a workload has made so far."""

    def __init__(
        self,
        workload: Workload,
        simulation: Simulation,
        *,
        clock: Callable[[], float],
        measure: Callable[[World, CreatePods, str, Sequence[Pod]], None],
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
        self._churns: list[_Churning] = []
        self._templates: dict[Path, Template] = {}

    def now(self) -> float:
        """The workload's own time in seconds."""
        return self._clock() + self._skipped

    # Operations

    def run(self, place: int, op: Op) -> None:
        """Carry out the operation at this place of the list."""
        match op:
            case CreateNodes():
                self._create_nodes(op)
            case CreateNamespaces():
                self._create_namespaces(op)
            case CreatePods():
                namespace = op.namespace or f"namespace-{place}"
                self._create_pods(op, namespace, op.number(self._params))
            case CreatePodSets():
                for number in range(op.number(self._params)):
                    inner = op.create_pods_op
                    namespace = f"{op.namespace_prefix}-{number}"
                    self._create_pods(inner, namespace, inner.number(self._params))
            case CreateAny():
                self._create_any(op)
            case Churn():
                namespace = op.namespace or f"namespace-{place}"
                self._churns.append(_Churning(self, op, namespace))
            case Barrier():
                self._try_again(op)
            case Sleep():
                given = op.duration_param
                text = str(parameter(given, self._params)) if given else op.duration
                self._skipped += seconds(text)
                self.churn()

    def _create_nodes(self, op: CreateNodes) -> None:
        template = self.template(op.node_template_path, DEFAULT_NODE)
        count = op.number(self._params)
        made = Objects()
        for index in range(count):
            node = _expect(template.make(index, count), Node, template.path)
            name = self._name(node)
            labels = {**node.labels, HOST_LABEL: name}
            if op.label_node_prepare_strategy is not None:
                values = op.label_node_prepare_strategy.label_values
                key = op.label_node_prepare_strategy.label_key
                labels[key] = values[index % len(values)]
            if op.unique_node_label_strategy is not None:
                labels[op.unique_node_label_strategy.label_key] = f"value-{self._made}"
            node = replace(node, metadata=replace(node.metadata, name=name, labels=labels))
            if op.node_allocatable_strategy is not None:
                node = _with_allocatable(node, op.node_allocatable_strategy)
                made.csi_nodes.append(_csi_node(name, op.node_allocatable_strategy))
            made.nodes.append(node)
        self.simulation.load(made)

    def _create_namespaces(self, op: CreateNamespaces) -> None:
        made = Objects()
        count = op.number(self._params)
        for index in range(count):
            namespace = Namespace(kind="Namespace")
            if op.namespace_template_path:
                template = self.template(op.namespace_template_path)
                namespace = _expect(template.make(index, count), Namespace, template.path)
            metadata = replace(namespace.metadata, name=f"{op.prefix}-{index}")
            made.namespaces.append(replace(namespace, metadata=metadata))
        self.simulation.load(made)

    def _create_any(self, op: CreateAny) -> None:
        template = self.template(op.template_path)
        count = op.number(self._params) if op.count or op.count_param else 1
        for index in range(count):
            self.create(template, index, count, op.namespace)

    def _create_pods(self, op: CreatePods, namespace: str, count: int) -> None:
        default = self.workload.default_pod_template
        template = self.template(op.pod_template_path or default, DEFAULT_POD)
        pods = [
            self._pod(_expect(template.make(index, count), Pod, template.path), namespace)
            for index in range(count)
        ]
        if op.persistent_volume_claim_template_path:
            pods = self._with_volumes(op, namespace, pods)
        if op.collect_metrics:
            self._measure(self, op, namespace, pods)
        else:
            for pod in pods:
                self.churn()
                self.schedule(pod)

    def _with_volumes(self, op: CreatePods, namespace: str, pods: list[Pod]) -> list[Pod]:
        """Each pod with a claim of its own, bound to a volume of its own."""
        volumes = self.template(op.persistent_volume_template_path)
        claims = self.template(op.persistent_volume_claim_template_path)
        made, count = Objects(), len(pods)
        for index, pod in enumerate(pods):
            name = f"{namespace}-{pod.name}"
            volume = _expect(volumes.make(index, count), PersistentVolume, volumes.path)
            claim = _expect(claims.make(index, count), PersistentVolumeClaim, claims.path)
            made.persistent_volumes.append(_bound(volume, name, namespace, pod.name))
            metadata = replace(claim.metadata, name=pod.name, namespace=namespace, uid=name)
            spec = replace(claim.spec, volume_name=name)
            status = VolumeStatus("Bound")
            claim = replace(claim, metadata=metadata, spec=spec, status=status)
            made.persistent_volume_claims.append(claim)
        self.simulation.load(made)
        return [
            replace(pod, spec=replace(pod.spec, volumes=[_claimed(pod.name)])) for pod in pods
        ]

    def _try_again(self, op: Barrier) -> None:
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
            self.waiting.pop(item.uid, None)
            if cache.columns.pod(item.uid) is not None:
                self.simulation.remove(item.uid)
        elif isinstance(item, Node):
            row = cache.columns.row_of[item.name]
            for resident in list(cache.columns.residents[row]):
                self.simulation.remove(resident.uid)
            cache.drop_node(item)
        elif item.kind in _SHELVES:
            getattr(cache.columns.catalog, _SHELVES[item.kind]).drop(item)

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

    def churn(self) -> None:
        """Let come and go what is due now."""
        for churning in self._churns:
            churning.tick()

    @property
    def churning(self) -> bool:
        """Whether anything comes and goes."""
        return bool(self._churns)


class _Churning:
    """A churn under way."""

    def __init__(self, world: World, op: Churn, namespace: str) -> None:
        self._world = world
        self._op = op
        self._namespace = namespace
        self._templates = [world.template(path) for path in op.template_paths]
        self._interval = op.interval_milliseconds / 1000
        self._due = world.now() + self._interval
        self._pods = 0
        self._steps = 0
        self._slots: list[list[Object | None]] = [
            [None] * (op.number if op.mode == RECREATE else 0) for _ in self._templates
        ]

    def tick(self) -> None:
        """Called before every pod."""
        if self._op.every_pods:
            self._pods += 1
            if self._pods % self._op.every_pods == 0:
                self._step()
            return
        now = self._world.now()
        if now >= self._due:
            # Ticks that were missed are dropped.
            self._due += self._interval * (1 + (now - self._due) // self._interval)
            self._step()

    def _step(self) -> None:
        op, step = self._op, self._steps
        if op.mode != RECREATE and op.number and step >= op.number:
            return
        self._steps += 1
        for template, slots in zip(self._templates, self._slots, strict=True):
            place = step % len(slots) if slots else 0
            there = slots[place] if slots else None
            if there is not None:
                self._world.delete(there)
                slots[place] = None
                continue
            made = self._world.create(template, step, max(op.number, 1), self._namespace)
            if slots:
                slots[place] = made


def _expect(found: Object, kind: type[_Kind], path: Path) -> _Kind:
    if not isinstance(found, kind):
        what = f"holds a {found.kind}, where a {kind.__name__} is needed"
        raise InputError(what, where=str(path))
    return found


def _with_allocatable(node: Node, strategy: AllocatableStrategy) -> Node:
    allocatable = {**(node.status.allocatable or {}), **strategy.node_allocatable}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def _csi_node(name: str, strategy: AllocatableStrategy) -> CsiNode:
    drivers = [
        CsiNodeDriver(name=driver, allocatable=VolumeLimits(count=limit.count))
        for driver, limit in strategy.csi_node_allocatable.items()
    ]
    made = CsiNode(kind="CSINode", spec=CsiNodeSpec(drivers=drivers))
    annotations = {MIGRATED: ",".join(strategy.migrated_plugins)}
    return replace(made, metadata=replace(made.metadata, name=name, annotations=annotations))


def _bound(volume: PersistentVolume, name: str, namespace: str, claim: str) -> PersistentVolume:
    """The volume, bound to a claim, with a disk of its own."""
    spec = replace(volume.spec, claim_ref=ObjectReference(claim, namespace, name))
    if spec.csi is not None:
        spec = replace(spec, csi=replace(spec.csi, volume_handle=name))
    if spec.aws_elastic_block_store is not None:
        spec = replace(
            spec, aws_elastic_block_store=replace(spec.aws_elastic_block_store, volume_id=name)
        )
    metadata = replace(volume.metadata, name=name)
    return replace(volume, metadata=metadata, spec=spec, status=VolumeStatus("Bound"))


def _claimed(name: str) -> Volume:
    return Volume(name="vol", persistent_volume_claim=ClaimVolume(name))


def unused(_: Any) -> None:
    """Nothing."""
