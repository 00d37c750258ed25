"""Workloads, services, namespaces, disruption budgets, quotas, autoscalers and classes of pods."""

from __future__ import annotations

from podium.objects.kinds.meta import Int32, LabelSelector, Object, ObjectMeta, Value
from podium.objects.kinds.pod import PodSpec, Toleration
from podium.objects.kinds.storage import PersistentVolumeClaim


class Namespace(Object, frozen=True):
    """A namespace; its labels serve namespace selectors."""


class ServiceSpec(Value, frozen=True):
    """The pods of a service."""

    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class PodTemplate(Value, frozen=True):
    """The template of the pods that a workload makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicationControllerSpec(Value, frozen=True):
    """Number, selector and template."""

    replicas: Int32 | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class ReplicationController(Object, frozen=True):
    """Keeps a number of pods; its selector is a plain map."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(Value, frozen=True):
    """Number, selector and template of the newer controllers."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class ReplicaSet(Object, frozen=True):
    """Keeps a number of pods."""

    spec: WorkloadSpec = WorkloadSpec()


class Ordinals(Value, frozen=True):
    """Where the numbering of a stateful set begins."""

    start: Int32 = 0


class StatefulSetSpec(WorkloadSpec, frozen=True):
    """Also the claims that each pod gets."""

    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    ordinals: Ordinals | None = None


class StatefulSet(Object, frozen=True):
    """Keeps a number of pods with stable names."""

    spec: StatefulSetSpec = StatefulSetSpec()


class Deployment(Object, frozen=True):
    """Keeps replica sets."""

    spec: WorkloadSpec = WorkloadSpec()


class DaemonSet(Object, frozen=True):
    """Keeps one pod per node."""

    spec: WorkloadSpec = WorkloadSpec()


class JobSpec(Value, frozen=True):
    """Parallelism, completions and the pod template."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class Job(Object, frozen=True):
    """Runs pods to completion."""

    spec: JobSpec = JobSpec()


class JobTemplate(Value, frozen=True):
    """The template of the jobs that a cron job makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Value, frozen=True):
    """What a cron job makes."""

    job_template: JobTemplate = JobTemplate()


class CronJob(Object, frozen=True):
    """Makes jobs at times."""

    spec: CronJobSpec = CronJobSpec()


class ScaleTarget(Value, frozen=True):
    """The workload that an autoscaler scales."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(Value, frozen=True):
    """What is scaled."""

    scale_target_ref: ScaleTarget = ScaleTarget()


class HorizontalPodAutoscaler(Object, frozen=True):
    """Sets the replicas of a workload."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()


class LimitRange(Object, frozen=True):
    """Requests and limits that pods of a namespace get and may have."""


class ScopeRequirement(Value, frozen=True):
    """The pods that a quota counts, such as those of priority classes."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(Value, frozen=True):
    """Requirements of a quota, ANDed."""

    match_expressions: list[ScopeRequirement] | None = None


class ResourceQuotaSpec(Value, frozen=True):
    """Which pods a quota counts."""

    scope_selector: ScopeSelector | None = None


class ResourceQuota(Object, frozen=True):
    """Limits what the pods of a namespace may request together."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()


class RuntimeScheduling(Value, frozen=True):
    """The nodes that support a runtime class."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Object, frozen=True):
    """How containers of a pod are run."""

    handler: str = ""
    scheduling: RuntimeScheduling | None = None


class PodDisruptionBudgetSpec(Value, frozen=True):
    """The pods that a budget protects, and how many of them: a number or a percentage."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Value, frozen=True):
    """How many of them may be evicted now."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Object, frozen=True):
    """Limits how many pods may be evicted at a time."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Object, frozen=True):
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
