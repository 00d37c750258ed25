"""Pods that no rule can tell apart.

A `PodClass` is what scheduling knows of a pod apart from its name: namespace, labels, controller,
priority and the scheduling part of its specification. It is compiled once and shared by all its
pods, waiting or placed; a placed pod is then only a small `Resident` record.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from podium.objects.kinds.storage import nameless

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from podium.engine.state.tallies import CarriedTerm, LabelSet
    from podium.objects.kinds.meta import OwnerReference
    from podium.objects.kinds.pod import Container, Pod, PodAffinity, PodSpec, PodStatus, Volume

T = TypeVar("T")
Port = tuple[str, str, int]  #: ip, protocol, port
ANY_IP = "0.0.0.0"  # noqa: S104 - the wildcard of host ports, nothing is bound to it

_encode = msgspec.json.Encoder(order="sorted").encode


def requests_key(pod: Pod) -> bytes:
    """Equal for pods with the same requests, limits and ports, container by container."""
    return _encode(_requests(pod, pod.spec))


def _requests(pod: Pod, spec: PodSpec) -> tuple[object, ...]:
    return spec.containers, spec.init_containers, spec.overhead, spec.resources, _resized(pod)


def encoded(part: object) -> bytes:
    """A part of a specification as bytes; equal parts are encoded equally."""
    return _encode(part)


def class_key(pod: Pod, host: str) -> bytes:
    """Equal for pods that no rule can tell apart; `host` is the node it insists on, if any."""
    spec, volumes, about = pod.spec, pod.spec.volumes, pod.metadata
    owner = about.controller()
    return _encode(
        (
            *_requests(pod, spec),
            about.namespace or "default",
            about.labels,
            (owner.kind, owner.uid, owner.name, owner.api_version) if owner else None,
            spec.priority or 0,
            list(map(_anonymous, _mattering(volumes))),
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            host,
            spec.preemption_policy,
            spec.host_network,
            spec.host_users,
            spec.resource_claims,
        )
    )


def shares_class(pod: Pod, other: Pod) -> bool:
    """Whether two pods made from one template are of one class, seen without encoding them.

    True only for pods with the very same specification and status: then only what differs in their
    metadata counts. Specifications are values that never change.
    """
    if pod.spec is not other.spec or pod.status is not other.status:
        return False
    mine, others = pod.metadata, other.metadata
    return (
        mine.labels is others.labels
        and mine.namespace == others.namespace
        and mine.owner_references is others.owner_references
    )


def class_parts(pod: Pod) -> tuple[object, ...]:
    """What the class of a pod depends on, besides its controller and host.

    It costs less than the key. Pods with equal parts are of one class; some of one class differ
    here, such as those with an absent priority and a priority of 0.
    """
    spec, about = pod.spec, pod.metadata
    return (
        spec.containers,
        about.labels,
        spec.tolerations,
        spec.priority,
        spec.node_selector,
        spec.affinity,
        spec.topology_spread_constraints,
        spec.init_containers,
        spec.preemption_policy,
        spec.host_network,
        spec.host_users,
        spec.overhead,
        spec.resources,
        spec.resource_claims,
        about.namespace,
        _mattering(spec.volumes),
        _resized(pod),
    )


def _mattering(volumes: list[Volume] | None) -> list[Volume]:
    """The volumes that any rule looks at."""
    return [volume for volume in volumes if volume_matters(volume)] if volumes else []


def _resized(pod: Pod) -> object:
    """What the kubelet reports of the pod's resources; it may differ from the specification."""
    status = pod.status
    containers, init_containers = status.container_statuses, status.init_container_statuses
    if status.resources is None and not containers and not init_containers:
        return None
    reported = [*(containers or ()), *(init_containers or ())]
    if status.resources is None:
        for each in reported:
            if each.resources or each.allocated_resources:
                break
        else:
            return None
    return (reported, status.resources, status.allocated_resources, _is_infeasible(status))


def _is_infeasible(status: PodStatus) -> bool:
    """Whether the pod waits for a resize that its node cannot grant."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending" and condition.reason == "Infeasible":
            return True
    return False


def _anonymous(volume: Volume) -> Volume | tuple[str, Volume]:
    """The volume without its name, except where a claim or an error is called by it."""
    named = volume.ephemeral is not None or nameless(volume)
    return (volume.name, volume) if named else volume


def volume_matters(volume: Volume) -> bool:
    """Whether any rule looks at a volume of this source."""
    return bool(
        volume.persistent_volume_claim
        or volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.azure_disk
        or volume.cinder
        or volume.portworx_volume
        or volume.iscsi
        or volume.rbd
        or volume.csi
        or volume.ephemeral
        or volume.image
    )


class RequestFacts:
    """What follows from the containers of a pod: shared by classes that differ elsewhere only."""

    __slots__ = (
        "line",
        "memo",
        "nonzero_requests",
        "others",
        "ports",
        "scalars",
        "taken",
        "wanted",
    )

    #: As in `PodClass`.
    taken: tuple[tuple[int, int], ...]
    nonzero_requests: tuple[int, int]
    wanted: tuple[int, ...]
    scalars: dict[int, int]
    ports: tuple[Port, ...]
    #: What a placed pod adds to each line of `PodIndex.numbers`.
    line: np.ndarray
    #: Pairs (resource column, amount) that it uses up of other than native resources.
    others: tuple[tuple[int, int], ...]
    memo: dict[object, Any]


class PodForm:
    """What rules look at to say what concerns them: shared by classes that differ elsewhere only.

    Classes of one form differ in namespace, labels, controller, priority, the node that they name,
    the names of claims, or the terms of pod affinity. `Rule.scope`, `Rule.watched`,
    `FilterRule.may_refuse` and `ScoreRule.pre_score` are asked once for all of them.
    """

    __slots__ = ("memo",)

    def __init__(self) -> None:
        self.memo: dict[object, Any] = {}


class PodClass:
    """The compiled facts of a kind of pod. Made by the view, which interns it."""

    __slots__ = (
        "__weakref__",
        "carried",
        "claims",
        "form",
        "host",
        "id",
        "labels",
        "memo",
        "namespace",
        "nonzero_requests",
        "owner",
        "ports",
        "priority",
        "requests",
        "sample",
        "scalars",
        "spec",
        "taken",
        "terminating_labels",
        "volumes",
        "wanted",
    )

    id: int
    #: The node that a pod yet to be placed names; empty for all others.
    host: str
    namespace: str
    priority: int
    owner: OwnerReference | None
    #: One pod of the class; only what all of them share may be read from it.
    sample: Pod
    spec: PodSpec
    #: Pairs (resource column, amount) that a placed pod of this class uses up.
    taken: tuple[tuple[int, int], ...]
    #: cpu and memory for the scores.
    nonzero_requests: tuple[int, int]
    #: What an incoming pod must find free of each native resource.
    wanted: tuple[int, ...]
    #: The scalar resources it names, by column.
    scalars: dict[int, int]
    ports: tuple[Port, ...]
    volumes: tuple[Volume, ...]
    #: Names of the claims it uses, in order.
    claims: tuple[str, ...]
    requests: RequestFacts
    form: PodForm
    labels: LabelSet
    terminating_labels: LabelSet | None
    carried: tuple[CarriedTerm, ...]
    memo: dict[object, Any]

    @property
    def has_pod_affinity(self) -> bool:
        """Whether it declares pod affinity or anti-affinity, even an empty one."""
        affinity = self.spec.affinity
        return affinity is not None and not (
            affinity.pod_affinity is None and affinity.pod_anti_affinity is None
        )

    def affinity(self) -> tuple[PodAffinity | None, PodAffinity | None]:
        """Its pod affinity and anti-affinity."""
        affinity = self.spec.affinity
        return (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)


Find = Callable[[PodClass], T]


def _once(memo_of: Callable[[PodClass], dict[object, Any]]) -> Callable[[Find[T]], Find[T]]:
    """What a function finds is kept in a memo: it is called once about all that share the memo."""

    def keeping(find: Find[T]) -> Find[T]:
        @wraps(find)
        def kept(cls: PodClass) -> T:
            memo = memo_of(cls)
            try:
                return memo[find]  # type: ignore[no-any-return]
            except KeyError:
                found = memo[find] = find(cls)
                return found

        return kept

    return keeping


def once_per_class(find: Find[T]) -> Find[T]:
    """Keep what depends on nothing but the class."""
    return _once(attrgetter("memo"))(find)


def once_per_form(find: Find[T]) -> Find[T]:
    """Keep what is the same for all classes of one form."""
    return _once(attrgetter("form.memo"))(find)


def once_per_requests(find: Find[T]) -> Find[T]:
    """Keep what depends on nothing but the containers."""
    return _once(attrgetter("requests.memo"))(find)


class KeptPerClass(Generic[T]):
    """A value that a rule keeps for each class of pods, while some state stays the same."""

    __slots__ = ()

    def of(self, cls: PodClass, state: object, find: Callable[[], T]) -> T:
        """The value of the class in this state."""
        known = cls.memo.get(self)
        if known is None or known[0] != state:
            known = cls.memo[self] = (state, find())
        found: T = known[1]
        return found


def host_ports(containers: Iterable[Container]) -> tuple[Port, ...]:
    """Host ports of containers, with ip and protocol filled in."""
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0
    )


#: Where a start time is missing, it counts as now: later than all others.
NOT_STARTED = float("inf")


@lru_cache(maxsize=1 << 12)
def started_at(text: str | None) -> float:
    """A start time in seconds; one that cannot be read is missing."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else NOT_STARTED
    except ValueError:
        return NOT_STARTED


class Resident:
    """A pod on a node (or promised to one): the little that is kept of each."""

    __slots__ = (
        "cls",
        "evicted",
        "group",
        "key",
        "labels",
        "row",
        "started",
        "terminating",
        "uid",
    )

    def __init__(self, pod: Pod, cls: PodClass, labels: LabelSet, row: int) -> None:
        self.key = pod.key
        self.uid = pod.uid
        #: The key of its pod group; empty if it names none.
        self.group = pod.group if pod.spec.scheduling_group is not None else ""
        self.cls = cls
        self.labels = labels
        self.row = row
        terminating = self.terminating = pod.terminating
        started = pod.status.start_time
        self.started = NOT_STARTED if started is None else started_at(started)
        #: Whether it is leaving because a scheduler evicted it.
        self.evicted = terminating and _evicted(pod)

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.cls.priority

    def is_current(self, pod: Pod) -> bool:
        """Whether a newer version of the pod has the same labels, start and deletion."""
        return (
            self.terminating == pod.terminating
            and self.started == started_at(pod.status.start_time)
            and self.labels.labels == pod.labels
        )


def _evicted(pod: Pod) -> bool:
    targets = (c for c in pod.status.conditions or () if c.type == "DisruptionTarget")
    first = next(targets, None)
    return first is not None and (first.status, first.reason) == ("True", "PreemptionByScheduler")


class Incoming:
    """The pod a decision is about."""

    __slots__ = ("cls", "key", "pod", "uid")

    def __init__(self, pod: Pod, cls: PodClass) -> None:
        self.pod = pod
        self.cls = cls
        self.key = pod.key
        self.uid = pod.uid

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.cls.priority
