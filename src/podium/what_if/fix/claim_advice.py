"""What a pod needs of volumes and devices that no edit of pods or nodes can give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.engine.rules.volumes.binding import WAIT
from podium.library.absence import is_dump
from podium.objects.kinds.registry import (
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.objects.kinds.devices import ResourceClaimSpec
    from podium.objects.kinds.kind import Kind
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.storage import PersistentVolumeClaim
    from podium.objects.reading.collection import Objects

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def claim_advice(pod: Pod, objects: Objects) -> tuple[str, ...]:
    """A sentence for every claim of the pod that is missing, or cannot be fulfilled as it is."""
    return tuple(dict.fromkeys([*_of_volumes(pod, objects), *_of_devices(pod, objects)]))


def _absent(objects: Objects, get: str, otherwise: str = "create it") -> str:
    """What to do about an object that is not there: a dump may not hold all objects."""
    if is_dump(objects):
        return f"is not in the input: `{get}` adds it, if it exists"
    return f"does not exist: {otherwise}"


def volume_claims(pod: Pod) -> list[str]:
    """The names of the claims for the volumes of a pod."""
    found = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.name}-{volume.name}")
    return found


def _by_name(objects: Objects, kind: Kind[Any], namespace: str | None = None) -> dict[str, Any]:
    return {
        each.name: each
        for each in objects.of(kind)
        if namespace is None or each.namespace == namespace
    }


def _of_volumes(pod: Pod, objects: Objects) -> Iterator[str]:
    claims = _by_name(objects, PERSISTENT_VOLUME_CLAIM, pod.namespace)
    for name in volume_claims(pod):
        claim = claims.get(name)
        called = f"the claim {pod.namespace}/{name}"
        if claim is None:
            get = f"kubectl -n {pod.namespace} get persistentvolumeclaim {name} -o yaml"
            either = "create it, or remove its volume from the pod"
            yield f"{called} {_absent(objects, get, either)}"
        elif claim.metadata.deletion_timestamp is not None:
            yield f"{called} is being deleted: name another one, or create it anew"
        elif claim.spec.volume_name:
            yield from _of_volume(claim.spec.volume_name, called, objects)
        else:
            yield from _of_unbound(claim, called, objects)


def _of_volume(name: str, called: str, objects: Objects) -> Iterator[str]:
    volume = _by_name(objects, PERSISTENT_VOLUME).get(name)
    if volume is None:
        get = f"kubectl get persistentvolume {name} -o yaml"
        yield f"{called} is bound to the volume {name}, which {_absent(objects, get)}"
    elif volume.spec.node_affinity is not None:
        yield (
            f"{called} is bound to the volume {name}, which can be used on some nodes only: make "
            "room on one of them, or use another claim"
        )


def _of_unbound(claim: PersistentVolumeClaim, called: str, objects: Objects) -> Iterator[str]:
    annotations = claim.metadata.annotations or {}
    name = claim.spec.storage_class_name or annotations.get(_CLASS_ANNOTATION, "")
    known = _by_name(objects, STORAGE_CLASS).get(name) if name else None
    if name and known is None:
        get = f"kubectl get storageclass {name} -o yaml"
        yield f"{called} asks for the storage class {name}, which {_absent(objects, get)}"
    elif known is not None and known.volume_binding_mode == WAIT:
        yield (
            f"{called} is not bound: create a volume of the storage class {name} that fits it and "
            "can be used on one of the nodes, or allow its provisioner more of them"
        )
    else:
        of_class = f" of the storage class {name}" if name else ""
        yield f"{called} is not bound: create a volume{of_class} that fits it"


def _of_devices(pod: Pod, objects: Objects) -> Iterator[str]:
    claims = _by_name(objects, RESOURCE_CLAIM, pod.namespace)
    templates = _by_name(objects, RESOURCE_CLAIM_TEMPLATE, pod.namespace)
    generated = {each.name: each for each in pod.status.resource_claim_statuses or ()}
    for wanted in pod.spec.resource_claims or ():
        name, template = wanted.resource_claim_name, wanted.resource_claim_template_name
        made = generated.get(wanted.name)
        if made is not None and made.resource_claim_name:
            name = made.resource_claim_name
        if name:
            claim = claims.get(name)
            if claim is None:
                get = f"kubectl -n {pod.namespace} get resourceclaim {name} -o yaml"
                yield f"the resource claim {pod.namespace}/{name} {_absent(objects, get)}"
            else:
                yield from _of_requests(claim.spec, f"{pod.namespace}/{name}", objects)
        elif template:
            known = templates.get(template)
            called = f"{pod.namespace}/{template}"
            if known is None:
                get = f"kubectl -n {pod.namespace} get resourceclaimtemplate {template} -o yaml"
                yield f"the resource claim template {called} {_absent(objects, get)}"
            else:
                yield (
                    f"no claim was made yet from the resource claim template {called}: the "
                    "controller of claims makes it"
                )
                yield from _of_requests(known.spec.spec, called, objects)


def _of_requests(spec: ResourceClaimSpec, called: str, objects: Objects) -> Iterator[str]:
    classes = _by_name(objects, DEVICE_CLASS)
    names = []
    for request in spec.devices.requests or ():
        exactly = [] if request.exactly is None else [request.exactly]
        names += [each.device_class_name for each in (*exactly, *(request.first_available or ()))]
    missing = [name for name in dict.fromkeys(names) if name not in classes]
    for name in missing:
        get = f"kubectl get deviceclass {name} -o yaml"
        yield f"{called} asks for devices of the class {name}, which {_absent(objects, get)}"
    if names and not missing:
        devices = sum(len(each.spec.devices or ()) for each in objects.of(RESOURCE_SLICE))
        yield (
            f"{called} asks for devices that are not free together on any node: the drivers "
            f"publish {devices} in all; ask for fewer or others, or add a node that has them"
        )
