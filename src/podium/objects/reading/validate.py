"""What is wrong in objects that could be read.

`validate` refuses what no API server would have stored and what would make a decision
meaningless; selectors are never refused, since an invalid one has a documented outcome in the
scheduler. `notes` tells what was skipped or looks odd and does not matter enough to stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.errors import InputError
from podium.objects.field_paths import joined
from podium.objects.kinds.meta import Object, RawQuantity, ResourceList
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodSpec, ResourceRequirements
from podium.objects.kinds.storage import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from podium.objects.kinds.workloads import (
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    is_subdomain,
    label_key_reasons,
    label_value_reasons,
)
from podium.objects.quantity import QuantityError, nano
from podium.objects.reading.collection import KINDS, Objects, label

_NAME_HINT = (
    "use lower case letters, digits, '-' and '.', beginning and ending with a letter or digit, "
    "at most 253 characters"
)
_QUANTITY_HINT = "write a number with an optional suffix, such as 500m, 2, 1.5Gi or 1e3"
_TEMPLATED = (ReplicationController, ReplicaSet, StatefulSet, Deployment, Job, DaemonSet)
_SHOWN = 3
_Quantities = Iterator[tuple[str, RawQuantity]]


def validate(objects: Objects) -> None:
    """Raise an `InputError` for the first object that cannot be used."""
    for kind in KINDS:
        seen: dict[str, int] = {}
        for index, item in enumerate(objects.of(kind)):
            try:
                _check(kind, item)
                key = item.key if KINDS[kind].namespaced else item.name
                _check_unique(kind, objects, seen.setdefault(key, index), index)
            except InputError as error:
                name = label(kind, item.metadata.namespace, item.name)
                raise error.located(where=objects.where(kind, index), object=name) from None


def _check(kind: str, item: Object) -> None:
    _check_name(item.name, "metadata.name")
    if KINDS[kind].namespaced and item.metadata.namespace:
        _check_name(item.metadata.namespace, "metadata.namespace")
    if item.metadata.labels:
        _check_labels(item.metadata.labels, "metadata.labels")
    for path, quantity in _quantities(item):
        _check_quantity(path, quantity)
    if isinstance(item, _TEMPLATED) and item.spec.template:
        template = item.spec.template
        _check_labels(template.metadata.labels or {}, "spec.template.metadata.labels")
        for path, quantity in _of_pod(template.spec, "spec.template.spec"):
            _check_quantity(path, quantity)


def _check_name(name: str, path: str) -> None:
    if not is_subdomain(name):
        raise InputError(f"{name!r} is not a legal name", path=path, hint=_NAME_HINT)


def _check_labels(labels: Mapping[str, str], path: str) -> None:
    for key, value in labels.items():
        if not is_qualified_name(key):
            what = f"the key {key!r} is not legal: {'; '.join(label_key_reasons(key))}"
            raise InputError(what, path=path)
        if not is_label_value(value):
            what = f"{value!r} is not legal: {'; '.join(label_value_reasons(value))}"
            raise InputError(what, path=joined(path, key))


def _check_unique(kind: str, objects: Objects, first: int, index: int) -> None:
    if first == index:
        return
    where = objects.where(kind, first)
    elsewhere = where and where != objects.where(kind, index)
    hint = f"it is also in {where}" if elsewhere else "give one of the two another name"
    raise InputError("appears twice", hint=hint)


def _check_quantity(path: str, quantity: RawQuantity) -> None:
    try:
        amount = nano(quantity)
    except QuantityError as error:
        raise InputError(str(error), path=path, hint=_QUANTITY_HINT) from None
    if amount < 0:
        raise InputError(f"{quantity} is negative", path=path, hint="use zero or more")


def _quantities(item: Object) -> _Quantities:
    """Every quantity of an object, with its path."""
    match item:
        case Pod():
            yield from _of_pod(item.spec, "spec")
        case Node():
            yield from _of_list(item.status.capacity, "status.capacity")
            yield from _of_list(item.status.allocatable, "status.allocatable")
        case PersistentVolume():
            yield from _of_list(item.spec.capacity, "spec.capacity")
        case PersistentVolumeClaim():
            yield from _of_resources(item.spec.resources, "spec.resources")
        case CsiStorageCapacity():
            yield "capacity", item.capacity or 0
            yield "maximumVolumeSize", item.maximum_volume_size or 0
        case StatefulSet():
            for index, claim in enumerate(item.spec.volume_claim_templates or ()):
                path = f"spec.volumeClaimTemplates[{index}].spec.resources"
                yield from _of_resources(claim.spec.resources, path)


def _of_pod(spec: PodSpec, path: str) -> _Quantities:
    for index, container in enumerate(spec.containers or ()):
        if container.resources:
            yield from _of_resources(container.resources, f"{path}.containers[{index}].resources")
    for index, container in enumerate(spec.init_containers or ()):
        if container.resources:
            where = f"{path}.initContainers[{index}].resources"
            yield from _of_resources(container.resources, where)
    yield from _of_resources(spec.resources, f"{path}.resources")
    yield from _of_list(spec.overhead, f"{path}.overhead")


def _of_resources(resources: ResourceRequirements | None, path: str) -> _Quantities:
    if resources is not None:
        yield from _of_list(resources.requests, f"{path}.requests")
        yield from _of_list(resources.limits, f"{path}.limits")


def _of_list(resources: ResourceList | None, path: str) -> _Quantities:
    for name, quantity in (resources or {}).items():
        yield joined(path, name), quantity


def notes(objects: Objects) -> list[str]:
    """Sentences about what was skipped or looks odd, for people to read."""
    found = [f"{where}: holds no objects" for where in objects.empty_files]
    if objects.unknown_kinds:
        counted = ", ".join(f"{kind} {n}" for kind, n in sorted(objects.unknown_kinds.items()))
        total = objects.unknown_kinds.total()
        found.append(f"skipped {_plural(total, 'object')} of kinds that do not matter: {counted}")
    found += _pod_notes(objects)
    return found


def _pod_notes(objects: Objects) -> Iterator[str]:
    finished = sum(pod.finished for pod in objects.pods)
    if finished:
        yield f"skipped {_plural(finished, 'finished pod')}"
    nodes = {node.name for node in objects.nodes}
    lost = [
        f"{pod.key} on {pod.spec.node_name}"
        for pod in objects.pods
        if pod.spec.node_name and pod.spec.node_name not in nodes and not pod.finished
    ]
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        named = ", ".join(lost[:_SHOWN])
        yield f"{_plural(len(lost), 'pod')} on nodes that are not in the input: {named}{more}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
