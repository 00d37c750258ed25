"""Pods of another cluster, kept as the text that was read until one of them is needed whole.

A plan starts from tens of thousands of pods and changes a few. Of each, `PodHead` is decoded: the
fields that controllers and selectors read. Defaults and missing status are added when the pod is
first read whole, and the result is the same as if they had been added at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from podium.lab.api.encoding import encode
from podium.lab.store.store import Key, ObjectVersion
from podium.objects.kinds.meta import JsonObject, OwnerReference
from podium.objects.kinds.pod import Container, Pod
from podium.objects.kinds.registry import KINDS


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a pod; fields that are not listed are skipped."""


class MetadataHead(_Part, frozen=True):
    """The metadata of a pod."""

    name: str = ""
    generate_name: str | None = None
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Sleep(_Part, frozen=True):
    seconds: int | None = None


class _PreStop(_Part, frozen=True):
    sleep: _Sleep | None = None


class _Lifecycle(_Part, frozen=True):
    pre_stop: _PreStop | None = None


class _ContainerHead(_Part, frozen=True):
    lifecycle: _Lifecycle | None = None


class _Present(_Part, frozen=True):
    """An object of which only the presence is read."""


class SpecHead(_Part, frozen=True):
    """The specification of a pod."""

    node_name: str | None = None
    active_deadline_seconds: int | None = None
    containers: list[_ContainerHead] | None = None
    resource_claims: list[_Present] | None = None
    restart_policy: str | None = None
    scheduler_name: str | None = None
    service_account: str | None = None
    service_account_name: str | None = None


class ConditionHead(_Part, frozen=True):
    """A condition of the status of a pod."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _ContainerStatusHead(_Part, frozen=True):
    restart_count: int = 0


class StatusHead(_Part, frozen=True):
    """The status of a pod."""

    phase: str | None = None
    conditions: list[ConditionHead] | None = None
    container_statuses: list[_ContainerStatusHead] | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    nominated_node_name: str | None = None
    extended_resource_claim_status: _Present | None = None


class PodHead(_Part, frozen=True):
    """The fields of a pod that controllers and selectors read."""

    metadata: MetadataHead
    spec: SpecHead = SpecHead()
    status: StatusHead | None = None


_PodT = TypeVar("_PodT", Pod, PodHead)
NO_STATUS: Final = StatusHead()
_replace: Final = msgspec.structs.replace
_NO_FIELDS: Final[Mapping[str, str]] = {}
_head_decoder: Final = msgspec.json.Decoder(PodHead)
_pod_decoder: Final[msgspec.json.Decoder[Pod]] = KINDS["Pod"].decoder


def head_of(pod: JsonObject) -> PodHead:
    """The head of a pod that is a dictionary."""
    return msgspec.convert(pod, PodHead)


def read_head(data: bytes | msgspec.Raw) -> PodHead:
    """The head of an encoded pod; a `msgspec.ValidationError` if a field has the wrong type."""
    return _head_decoder.decode(data)


class SharedParts:
    """Lets pods of one controller share the parts of them that are equal.

    Tens of thousands of pods then take less memory, and are compared faster.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._heads: dict[str, PodHead] = {}

    def pod(self, pod: Pod) -> Pod:
        """An equal pod."""
        return _shared(pod, self._pods, volumes=pod.spec.volumes)

    def head(self, head: PodHead) -> PodHead:
        """An equal head."""
        return _shared(head, self._heads)


def _shared(pod: _PodT, known: dict[str, _PodT], **own: Any) -> _PodT:
    """An equal pod with the parts of the first one of its owner; *own* are fields of its spec."""
    about, spec, status = pod.metadata, pod.spec, pod.status
    owners = about.owner_references
    if not owners:
        return pod
    other = known.setdefault(owners[0].uid, pod)
    if other is pod:
        return pod
    labels, references = other.metadata.labels, other.metadata.owner_references
    if about.labels == labels and owners == references:
        about = _replace(about, labels=labels, owner_references=references)
    alike = _replace(other.spec, node_name=spec.node_name, **own)
    return _replace(
        pod,
        metadata=about,
        spec=alike if spec == alike else spec,
        status=other.status if status == other.status else status,
    )


class ImportedPod(ObjectVersion):
    """A pod that was read as text and has not been completed."""

    __slots__ = ("_complete", "_raw", "_seen", "head")

    def __init__(
        self,
        key: Key,
        version: int,
        raw: bytes | msgspec.Raw,
        head: PodHead,
        complete: Callable[[], JsonObject],
        *,
        shared: SharedParts,
    ) -> None:
        """Keep *raw*; *complete* makes the whole pod, without a resource version.

        Raises a `msgspec.ValidationError` if a field that scheduling reads has the wrong type.
        """
        super().__init__(key, version, b"", head.metadata.labels or {}, _NO_FIELDS)
        self.head = head
        self._raw: bytes | msgspec.Raw | None = raw
        self._complete = complete
        self._seen: Pod | None = shared.pod(_pod_decoder.decode(raw))

    @property
    def data(self) -> bytes:
        """The encoded pod, completed the first time."""
        if self._raw is not None:
            item = self._complete()
            item["metadata"]["resourceVersion"] = str(self.version)
            self._data, self._raw = encode(item), None
        return self._data

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields that selectors can ask for, read from the head the first time."""
        if self._fields is _NO_FIELDS:
            self._fields = _fields_of(self.head)
        return self._fields

    def pod(self) -> Pod:
        """The pod as a scheduler that lists it sees it."""
        found, self._seen = self._seen, None
        if found is None or any(map(_gets_defaults, _containers(found))):
            return _pod_decoder.decode(self.data)
        about = found.metadata
        if about.resource_version:
            about = msgspec.structs.replace(about, resource_version="")
            found = msgspec.structs.replace(found, metadata=about)
        return found


def _containers(pod: Pod) -> list[Container]:
    spec = pod.spec
    containers = spec.containers or []
    return [*containers, *spec.init_containers] if spec.init_containers else containers


def _gets_defaults(container: Container) -> bool:
    """Whether defaults change something that a scheduler reads: requests or ports."""
    if container.ports:
        return True
    resources = container.resources
    limits = None if resources is None else resources.limits
    if resources is None or not limits:
        return False
    return not limits.keys() <= (resources.requests or {}).keys()


def _fields_of(head: PodHead) -> Mapping[str, str]:
    """The fields that field selectors can ask for, as in `selection.fields_of`."""
    spec, status = head.spec, head.status or NO_STATUS
    found = {
        "spec.restartPolicy": spec.restart_policy or "Always",
        "spec.schedulerName": spec.scheduler_name or "default-scheduler",
    }
    if spec.node_name:
        found["spec.nodeName"] = spec.node_name
    account = spec.service_account_name or spec.service_account
    if account:
        found["spec.serviceAccountName"] = account
    if status.phase:
        found["status.phase"] = status.phase
    if status.pod_ip:
        found["status.podIP"] = status.pod_ip
    if status.nominated_node_name:
        found["status.nominatedNodeName"] = status.nominated_node_name
    return found
