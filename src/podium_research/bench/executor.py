"""Executes the operations of a workload on a simulated cluster.

Objects exist as soon as an operation has created them, and a pod is scheduled when it is created.
Unschedulable pods stay pending until a barrier tries them again. The time of a workload is that of
the clock, and a sleep operation adds to it without waiting.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.devices import ResourceClaimTemplate
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
from podium_research.bench.definitions import (
    RECREATE,
    AllocResourceClaims,
    Barrier,
    BenchWorkload,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Op,
    Params,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    parameter,
    seconds,
    template_params,
)
from podium_research.bench.measurement import MeasuredSection
from podium_research.bench.templates import UNNAMED, Template
from podium_research.bench.workload_objects import (
    WorkloadDevices,
    bound_claim,
    bound_volume,
    csi_node,
    instantiate,
    prepare_node,
    with_claim,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cluster.simulation import Simulation, Step
    from podium.objects.kinds.meta import Object


class RunningChurn:
    """Creates, or creates and deletes, objects at the interval of a churn operation."""

    def __init__(self, executor: WorkloadExecutor, op: Churn, namespace: str) -> None:
        self._executor = executor
        self._op = op
        self._namespace = namespace
        self._templates = [executor.template(path) for path in op.template_paths]
        self._interval = op.interval_milliseconds / 1000
        self._due = executor.now() + self._interval
        self._pods = 0
        self._steps = 0
        self._created: list[list[Object | None]] = [
            [None] * (op.number if op.mode == RECREATE else 0) for _ in self._templates
        ]

    def tick(self) -> None:
        """Take the steps that are due; called before every pod."""
        if self._op.every_pods:
            self._pods += 1
            if self._pods % self._op.every_pods == 0:
                self._step()
            return
        now = self._executor.now()
        if now >= self._due:
            # Missed intervals are skipped.
            self._due += self._interval * (1 + (now - self._due) // self._interval)
            self._step()

    def finish(self) -> None:
        """Churn goes on until the workload ends."""

    def _step(self) -> None:
        op, step = self._op, self._steps
        if op.mode != RECREATE and op.number and step >= op.number:
            return
        self._steps += 1
        for template, created in zip(self._templates, self._created, strict=True):
            place = step % len(created) if created else 0
            present = created[place] if created else None
            if present is not None:
                self._executor.delete(present)
                created[place] = None
                continue
            made = self._executor.create(template, step, max(op.number, 1), self._namespace)
            if created:
                created[place] = made


class RunningDeletion:
    """Deletes pods at the rate of a deletion operation."""

    def __init__(self, executor: WorkloadExecutor, op: DeletePods, uids: list[str]) -> None:
        self._executor = executor
        self._uids = uids
        self._started = executor.now()
        self._per_second = op.delete_pods_per_second
        self._deleted = 0

    def tick(self) -> None:
        """Delete the pods that are due; called before every pod."""
        due = int((self._executor.now() - self._started) * self._per_second)
        for uid in self._uids[self._deleted : due]:
            self._executor.delete_pod(uid)
        self._deleted = max(self._deleted, due)

    def finish(self) -> None:
        """Delete all that is left: an operation waits for it."""
        for uid in self._uids[self._deleted :]:
            self._executor.delete_pod(uid)
        self._deleted = len(self._uids)


#: Nodes that no strategy changes.
_PLAIN_NODES = CreateNodes()
BUILT_IN = Path(__file__).parent / "workloads"
DEFAULT_NODE, DEFAULT_POD = "templates/node.yaml", "templates/pod.yaml"


class Batches(NamedTuple):
    """Pods that are created, scheduled and deleted batch by batch."""

    make: Callable[[], Sequence[Pod]]
    #: How long batches follow each other.
    seconds: float


class WorkloadExecutor:
    """The state of a workload during its run."""

    def __init__(
        self,
        workload: BenchWorkload,
        simulation: Simulation,
        *,
        clock: Callable[[], float],
        measure: Callable[[WorkloadExecutor, str, Sequence[Pod]], None],
        measure_steadily: Callable[[WorkloadExecutor, str, Batches], None] | None = None,
        sections: Callable[[WorkloadExecutor, StartCollectingMetrics], MeasuredSection]
        | None = None,
        watch: Callable[[Step], None] | None = None,
    ) -> None:
        self.workload = workload
        self.simulation = simulation
        self.pending: dict[str, Pod] = {}
        #: The pods among them that name a pod group, by group and uid.
        self._grouped: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self.victims = 0
        self._params: Params = workload.params
        self._clock = clock
        self._slept = 0.0
        self._measure = measure
        self._measure_steadily = measure_steadily
        self._sections = sections
        self._section: MeasuredSection | None = None
        self.devices = WorkloadDevices(simulation)
        self._watch = watch
        self._names = 0
        self._background: list[RunningChurn | RunningDeletion] = []
        self._templates: dict[Path, Template] = {}

    def now(self) -> float:
        """The time of the workload in seconds."""
        return self._clock() + self._slept

    # Operations

    def run(self, place: int, op: Op) -> None:
        """Execute the operation at this place of the list."""
        handlers: dict[type[Op], Callable[[Any, str], None]] = {
            CreateNodes: self._create_nodes,
            CreateNamespaces: self._create_namespaces,
            CreatePods: self._create_pods,
            CreatePodSets: self._create_pod_sets,
            CreateAny: self._create_any,
            CreatePodGroups: self._create_any,
            UpdateAny: self._update_any,
            CreateResourceDriver: self._create_driver,
            CreateResourceClaims: self._create_claims,
            AllocResourceClaims: self._allocate_claims,
            StartCollectingMetrics: self._start_collecting,
            StopCollectingMetrics: self._stop_collecting,
            DeletePods: self._delete_pods,
            Churn: self._churn,
            Barrier: self._retry_pending,
            Sleep: self._sleep,
        }
        # An operation that names no namespace gets its own.
        handlers[type(op)](op, f"namespace-{place}")

    def _create_nodes(self, op: CreateNodes, _: str) -> None:
        template = self.template(op.node_template_path, DEFAULT_NODE)
        count, made = op.number(self._params), Objects()
        for index in range(count):
            node = instantiate(template, index, count, Node)
            name = self._name(node)
            made.nodes.append(prepare_node(node, name, op, index))
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
                namespace = instantiate(template, index, count, Namespace)
            metadata = replace(namespace.metadata, name=f"{op.prefix}-{index}")
            made.of(NAMESPACE).append(replace(namespace, metadata=metadata))
        self.simulation.load(made)

    def _create_any(self, op: CreateAny, _: str) -> None:
        template = self.template(op.template_path)
        count = op.number(self._params) if op.count or op.count_param else 1
        params = template_params(op.template_params, self._params)
        for index in range(count):
            self.create(template, index, count, op.namespace, params)

    def _update_any(self, op: UpdateAny, _: str) -> None:
        """Replace objects at once; pods that wait are tried by the next barrier."""
        template = self.template(op.template_path)
        count = op.number(self._params) if op.count or op.count_param else 1
        for index in range(count):
            found = template.make(index, count)
            if isinstance(found, Pod):
                self._update_pod(found, op.namespace or found.namespace)
            elif isinstance(found, Node):
                self.simulation.cache.put_node(prepare_node(found, found.name, _PLAIN_NODES, index))
            else:
                self.create(template, index, count, op.namespace)

    def _update_pod(self, pod: Pod, namespace: str) -> None:
        pod = self._pod(pod, namespace)
        cache = self.simulation.cache
        resident = cache.columns.pods.by_uid.get(pod.uid)
        if resident is not None:
            node = cache.columns.nodes.names[resident.row]
            self.simulation.remove(pod.uid)
            made = Objects()
            made.pods.append(replace(pod, spec=replace(pod.spec, node_name=node)))
            self.simulation.load(made)
        elif pod.uid in self.pending:
            self.pending[pod.uid] = pod
        else:
            what = f"there is no pod {pod.key} to update"
            raise InputError(what, object=f"workload {self.workload.name}")

    def _create_driver(self, op: CreateResourceDriver, _: str) -> None:
        self.devices.publish(op, self._params)

    def _create_claims(self, op: CreateResourceClaims, place: str) -> None:
        template, count = self.template(op.template_path), op.number(self._params)
        for index in range(count):
            self.create(template, index, count, op.namespace or place)

    def _allocate_claims(self, op: AllocResourceClaims, _: str) -> None:
        self.devices.allocate(op.namespace)

    def _start_collecting(self, op: StartCollectingMetrics, _: str) -> None:
        if self._sections is not None:
            self._section = self._sections(self, op)

    def _stop_collecting(self, _: StopCollectingMetrics, __: str) -> None:
        if self._section is not None:
            self._section.stop()
            self._section = None

    def _create_pod_sets(self, op: CreatePodSets, _: str) -> None:
        for number in range(op.number(self._params)):
            self._create_pods(op.create_pods_op, f"{op.namespace_prefix}-{number}")

    def _create_pods(self, op: CreatePods, place: str) -> None:
        namespace, count = op.namespace or place, op.number(self._params)
        default = self.workload.default_pod_template
        template = self.template(op.pod_template_path or default, DEFAULT_POD)
        params = template_params(op.template_params, self._params)

        def make() -> list[Pod]:
            return [
                self.devices.with_claims(
                    self._pod(instantiate(template, index, count, Pod, params), namespace)
                )
                for index in range(count)
            ]

        if op.is_steady(self._params):
            if self._measure_steadily is not None:
                self._measure_steadily(self, namespace, Batches(make, op.seconds(self._params)))
            return
        pods = make()
        if op.persistent_volume_claim_template_path:
            pods = self._with_volumes(op, pods)
        if op.collect_metrics:
            self._measure(self, namespace, pods)
        else:
            for pod in pods:
                self.tick()
                self.schedule(pod)

    def _with_volumes(self, op: CreatePods, pods: list[Pod]) -> list[Pod]:
        """The pods, each with a claim of its own that is bound to a volume of its own."""
        volumes = self.template(op.persistent_volume_template_path)
        claims = self.template(op.persistent_volume_claim_template_path)
        made, count = Objects(), len(pods)
        for index, pod in enumerate(pods):
            volume = instantiate(volumes, index, count, PersistentVolume)
            made.of(PERSISTENT_VOLUME).append(bound_volume(volume, pod.namespace, index))
            claim = instantiate(claims, index, count, PersistentVolumeClaim)
            made.of(PERSISTENT_VOLUME_CLAIM).append(bound_claim(claim, pod.namespace, index))
        self.simulation.load(made)
        return [with_claim(pod, index) for index, pod in enumerate(pods)]

    def _delete_pods(self, op: DeletePods, _: str) -> None:
        wanted = op.label_selector.items()
        placed = chain.from_iterable(self.simulation.cache.columns.pods.residents)
        uids = [
            pod.uid
            for pod in placed
            if pod.labels.namespace == op.namespace and wanted <= pod.labels.labels.items()
        ]
        uids += [
            pod.uid
            for pod in self.pending.values()
            if pod.namespace == op.namespace and wanted <= pod.labels.items()
        ]
        if op.delete_pods_per_second and op.skip_wait_to_completion:
            self._background.append(RunningDeletion(self, op, uids))
            return
        for uid in uids:
            self.delete_pod(uid)

    def _churn(self, op: Churn, place: str) -> None:
        self._background.append(RunningChurn(self, op, op.namespace or place))

    def _sleep(self, op: Sleep, _: str) -> None:
        given = op.duration_param
        text = str(parameter(given, self._params)) if given else op.duration
        self._slept += seconds(text)
        self.tick()

    def _retry_pending(self, op: Barrier, _: str) -> None:
        """Try the pods that wait again, until none of them finds a place.

        All pods were tried once when they were created, which is all that some barriers ask for.
        """
        if op.stage_requirement == "Attempted":
            return
        for each in self._background:
            each.finish()
        waiting = 0
        while waiting != len(self.pending):
            waiting = len(self.pending)
            for pod in self._waiting(op):
                if pod.uid in self.pending:  # it may have been placed with others of its group
                    self.schedule(pod)

    def _waiting(self, op: Barrier) -> list[Pod]:
        return [
            pod
            for pod in self.pending.values()
            if (not op.namespaces or pod.namespace in op.namespaces)
            and op.label_selector.items() <= pod.labels.items()
        ]

    # Objects

    def template(self, path: str, default: str = "") -> Template:
        """The template at a path relative to the workload's file; *default* is a built-in one."""
        if not path and not default:
            raise InputError("a template path is missing", object=f"workload {self.workload.name}")
        whole = self.workload.folder / path if path else BUILT_IN / default
        if whole not in self._templates:
            self._templates[whole] = Template(whole)
        return self._templates[whole]

    def create(
        self,
        template: Template,
        index: int,
        count: int,
        namespace: str,
        params: Params | None = None,
    ) -> Object:
        """Create an object of any kind; a pod without a node is scheduled."""
        found = template.make(index, count, params)
        if isinstance(found, Pod):
            pod = self.devices.with_claims(self._pod(found, namespace or found.namespace))
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
        if isinstance(found, ResourceClaimTemplate):
            self.devices.add_template(found)
        made = Objects()
        made.add(found.kind, found)
        self.simulation.load(made)
        return found

    def delete(self, item: Object) -> None:
        """Delete an object; the pods of a node are deleted with it."""
        cache = self.simulation.cache
        if isinstance(item, Pod):
            self.delete_pod(item.uid)
        elif isinstance(item, Node):
            row = cache.columns.nodes.row_of[item.name]
            for resident in list(cache.columns.pods.residents[row]):
                self.simulation.remove(resident.uid)
            cache.drop_node(item)
        elif KINDS[item.kind].looked_up:
            cache.columns.catalog.shelf(item.kind).drop(item)

    def delete_pod(self, uid: str) -> None:
        """Delete a pending or placed pod; a pod that was preempted is gone already."""
        pod = self.pending.pop(uid, None)
        if pod is not None and self._grouped[pod.group].pop(uid, None) is not None:
            self.simulation.cache.columns.pods.groups.forget(pod)
        if self.simulation.cache.columns.pods.by_uid.get(uid) is not None:
            self.simulation.remove(uid)
            self.devices.pod_gone(uid)

    def _name(self, item: Object) -> str:
        """The name in the template, or its prefix with a number that is used once."""
        if item.name != UNNAMED:
            return item.name
        self._names += 1
        return f"{item.metadata.generate_name or f'{item.kind.lower()}-'}{self._names}"

    def _pod(self, pod: Pod, namespace: str) -> Pod:
        name = self._name(pod)
        metadata = replace(pod.metadata, name=name, namespace=namespace, uid=f"{namespace}/{name}")
        return replace(pod, metadata=metadata)

    # Decisions

    def schedule(self, pod: Pod) -> int:
        """Schedule a pod, with the others of its group that wait; how many have a node now."""
        section = self._section
        if section is None or not section.counts(pod):
            return self._schedule(pod)
        with section.measuring(pod) as tried:
            tried.placed = self._schedule(pod)
        return tried.placed

    def _schedule(self, pod: Pod) -> int:
        if self.simulation.profile.schedules_groups and pod.group:
            return self._schedule_group(pod)
        decision = None
        for step in self.simulation.run((pod,)):
            decision = step.decision
            preemption = decision.preemption
            if preemption is not None and preemption.node is not None:
                self.victims += len(preemption.candidates[preemption.node].uids)
            if self._watch is not None:
                self._watch(step)
        if decision is not None and decision.node is not None:
            self.pending.pop(pod.uid, None)
            self.devices.note_placed(pod)
            return 1
        self.pending[pod.uid] = pod
        return 0

    def _schedule_group(self, pod: Pod) -> int:
        """Schedule the pods of a group that wait, unless a gang has fewer than its minimum."""
        simulation, waiting = self.simulation, self._grouped[pod.group]
        waiting[pod.uid] = self.pending[pod.uid] = pod
        simulation.groups.expect((pod,))
        group = simulation.groups.named(pod.group)
        known = simulation.cache.columns.pods.groups.count(pod.group)
        if group is None or (group.is_gang and known < group.min_count):
            return 0
        placed, cycle = 0, None
        for step in simulation.run(tuple(waiting.values())):
            if step.group is not None and step.group is not cycle:
                cycle = step.group
                self.victims += len(cycle.preemption.uids) if cycle.preemption is not None else 0
            if self._watch is not None:
                self._watch(step)
            if step.decision.node is not None:
                placed += 1
                self.devices.note_placed(self.pending.pop(step.pod.uid))
                del waiting[step.pod.uid]
        return placed

    def tick(self) -> None:
        """Take the background steps that are due now."""
        for each in self._background:
            each.tick()

    @property
    def has_background(self) -> bool:
        """Whether a background operation is running."""
        return bool(self._background)
