"""Which fields of a kind, besides its metadata, are renamed in an anonymized snapshot.

All functions work in place on the JSON form of an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.objects.snapshots.pseudonyms import (
    CLAIM,
    CLASS,
    NAMESPACE,
    NODE,
    OBJECT,
    OWNER,
    POD,
    UID,
    VALUE,
    VOLUME,
)

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.snapshots.pseudonyms import FieldRenaming

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
#: Volume sources and their fields that identify a disk.
_DISKS: Final = (
    ("gcePersistentDisk", ("pdName",)),
    ("awsElasticBlockStore", ("volumeID",)),
    ("azureDisk", ("diskName", "diskURI")),
    ("cinder", ("volumeID",)),
    ("portworxVolume", ("volumeID",)),
    ("iscsi", ("iqn",)),
    ("rbd", ("image", "pool")),
)


def anonymize_node(item: JsonObject, renaming: FieldRenaming) -> None:
    """Taints and images."""
    for taint in item.get("spec", {}).get("taints", ()):
        renaming.taint(taint)
    for image in item.get("status", {}).get("images", ()):
        renaming.image_list(image, "names")


def anonymize_pod(item: JsonObject, renaming: FieldRenaming) -> None:
    """Everything in specification and status that names something."""
    spec, status = item.get("spec", {}), item.get("status", {})
    _note_parts_of_names(item.get("metadata", {}), spec, renaming)
    renaming.name(spec, "nodeName", NODE)
    renaming.name(spec, "priorityClassName", OBJECT)
    renaming.name(spec, "runtimeClassName", OBJECT)
    renaming.name(spec.get("schedulingGroup", {}), "podGroupName", OBJECT)
    renaming.labels(spec, "nodeSelector")
    _affinity(spec.get("affinity", {}), renaming)
    for toleration in spec.get("tolerations", ()):
        renaming.taint(toleration)
    for constraint in spec.get("topologySpreadConstraints", ()):
        renaming.key(constraint, "topologyKey")
        renaming.label_selector(constraint, "labelSelector")
        renaming.key_list(constraint, "matchLabelKeys")
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        renaming.name(container, "name", OBJECT)
        renaming.image(container, "image")
        for port in container.get("ports", ()):
            renaming.address(port, "hostIP")
    for volume in spec.get("volumes", ()):
        _volume(volume, renaming)
    for gate in spec.get("schedulingGates", ()):
        renaming.key(gate, "name")
    _claims_of_pod(spec, status, renaming)
    renaming.name(status, "nominatedNodeName", NODE)
    for condition in status.get("conditions", ()):
        condition.pop("message", None)  # names nodes, taints and claims in words
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field, ()):
            renaming.name(container, "name", OBJECT)


def _note_parts_of_names(metadata: JsonObject, spec: JsonObject, renaming: FieldRenaming) -> None:
    """Controllers find pods of stateful sets, and claims of one pod, by their very names."""
    pod, note = metadata.get("name", ""), renaming.names.composed
    for owner in metadata.get("ownerReferences", ()):
        workload, _, ordinal = pod.rpartition("-")
        if owner.get("kind") == "StatefulSet" and workload == owner.get("name"):
            note(pod, (OWNER, workload), ("", ordinal))
    for volume in spec.get("volumes", ()):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if pod and claim.endswith(f"-{pod}"):
            note(claim, (OBJECT, claim.removesuffix(f"-{pod}")), (POD, pod))
        if pod and "ephemeral" in volume:
            name = volume.get("name", "")
            note(f"{pod}-{name}", (POD, pod), (OBJECT, name))


def anonymize_pod_group(item: JsonObject, renaming: FieldRenaming) -> None:
    """The priority class, and what else the specification names; messages are left out."""
    spec = item.get("spec", {})
    for field in ("priorityClassName", "parentCompositePodGroupName"):
        renaming.name(spec, field, OBJECT)
    for constraint in spec.get("schedulingConstraints", {}).get("topology", ()):
        renaming.key(constraint, "key")
    for entry in spec.get("resourceClaims", ()):
        for field in ("name", "resourceClaimName", "resourceClaimTemplateName"):
            renaming.name(entry, field, OBJECT)
    for condition in item.get("status", {}).get("conditions", ()):
        condition.pop("message", None)


def _claims_of_pod(spec: JsonObject, status: JsonObject, renaming: FieldRenaming) -> None:
    for entry in spec.get("resourceClaims", ()):
        renaming.name(entry, "name", OBJECT)
        renaming.name(entry, "resourceClaimName", OBJECT)
        renaming.name(entry, "resourceClaimTemplateName", OBJECT)
    for entry in status.get("resourceClaimStatuses", ()):
        renaming.name(entry, "name", OBJECT)
        renaming.name(entry, "resourceClaimName", OBJECT)
    extended = status.get("extendedResourceClaimStatus", {})
    renaming.name(extended, "resourceClaimName", OBJECT)
    for mapping in extended.get("requestMappings", ()):
        renaming.name(mapping, "containerName", OBJECT)
        renaming.name(mapping, "requestName", OBJECT)


def _affinity(affinity: JsonObject, renaming: FieldRenaming) -> None:
    by_node = affinity.get("nodeAffinity", {})
    renaming.node_selector(by_node, _REQUIRED)
    for each in by_node.get(_PREFERRED, ()):
        renaming.node_selector_term(each.get("preference", {}))
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field, {})
        for each in terms.get(_REQUIRED, ()):
            _pod_affinity_term(each, renaming)
        for each in terms.get(_PREFERRED, ()):
            _pod_affinity_term(each.get("podAffinityTerm", {}), renaming)


def _pod_affinity_term(term: JsonObject, renaming: FieldRenaming) -> None:
    renaming.key(term, "topologyKey")
    renaming.label_selector(term, "labelSelector")
    renaming.label_selector(term, "namespaceSelector")
    renaming.name_list(term, "namespaces", NAMESPACE)
    renaming.key_list(term, "matchLabelKeys")
    renaming.key_list(term, "mismatchLabelKeys")


def _volume(volume: JsonObject, renaming: FieldRenaming) -> None:
    renaming.name(volume, "name", OBJECT)
    renaming.name(volume.get("persistentVolumeClaim", {}), "claimName", CLAIM)
    _disks(volume, renaming)
    renaming.image(volume.get("image", {}), "reference")


def _disks(holder: JsonObject, renaming: FieldRenaming) -> None:
    for source, fields in _DISKS:
        for field in fields:
            renaming.name(holder.get(source, {}), field, VALUE)
    renaming.name_list(holder.get("rbd", {}), "monitors", VALUE)


def anonymize_map_selector(item: JsonObject, renaming: FieldRenaming) -> None:
    """A selector that is a plain map, as services and replication controllers have it."""
    renaming.labels(item.get("spec", {}), "selector")


def anonymize_label_selector(item: JsonObject, renaming: FieldRenaming) -> None:
    """A label selector, as workloads and budgets have it."""
    renaming.label_selector(item.get("spec", {}), "selector")


def anonymize_replication_controller(item: JsonObject, renaming: FieldRenaming) -> None:
    """The selector and the template of pods."""
    anonymize_map_selector(item, renaming)
    _template(item.get("spec", {}), renaming)


def anonymize_workload(item: JsonObject, renaming: FieldRenaming) -> None:
    """The selector, and the templates of pods and of claims."""
    anonymize_label_selector(item, renaming)
    _template(item.get("spec", {}), renaming)
    for claim in item.get("spec", {}).get("volumeClaimTemplates", ()):
        about = claim.get("metadata", {})
        renaming.name(about, "name", OBJECT)
        renaming.labels(about, "labels")
        anonymize_claim(claim, renaming)


def anonymize_cron_job(item: JsonObject, renaming: FieldRenaming) -> None:
    """The template of jobs."""
    template = item.get("spec", {}).get("jobTemplate", {})
    renaming.labels(template.get("metadata", {}), "labels")
    anonymize_workload(template, renaming)


def _template(spec: JsonObject, renaming: FieldRenaming) -> None:
    template = spec.get("template", {})
    renaming.labels(template.get("metadata", {}), "labels")
    anonymize_pod(template, renaming)


def anonymize_autoscaler(item: JsonObject, renaming: FieldRenaming) -> None:
    """The workload that is scaled."""
    renaming.name(item.get("spec", {}).get("scaleTargetRef", {}), "name", OWNER)


def anonymize_quota(item: JsonObject, renaming: FieldRenaming) -> None:
    """The priority classes whose pods are counted."""
    selector = item.get("spec", {}).get("scopeSelector", {})
    for requirement in selector.get("matchExpressions", ()):
        renaming.name_list(requirement, "values", OBJECT)


def anonymize_runtime_class(item: JsonObject, renaming: FieldRenaming) -> None:
    """The handler, and the nodes that have it."""
    renaming.name(item, "handler", OBJECT)
    scheduling = item.get("scheduling", {})
    renaming.labels(scheduling, "nodeSelector")
    for toleration in scheduling.get("tolerations", ()):
        renaming.taint(toleration)


def anonymize_pod_disruption_budget(item: JsonObject, renaming: FieldRenaming) -> None:
    """The selector, and the names of pods whose eviction is under way."""
    anonymize_label_selector(item, renaming)
    status = item.get("status", {})
    if "disruptedPods" in status:
        found = status["disruptedPods"].items()
        status["disruptedPods"] = {renaming.names.name(POD, name): at for name, at in found}


def anonymize_persistent_volume(item: JsonObject, renaming: FieldRenaming) -> None:
    """The class, the claim, the nodes that reach the volume, and its disk."""
    spec = item.get("spec", {})
    renaming.name(spec, "storageClassName", CLASS)
    renaming.name(spec, "volumeAttributesClassName", OBJECT)
    claim = spec.get("claimRef", {})
    renaming.name(claim, "name", CLAIM)
    renaming.name(claim, "namespace", NAMESPACE)
    renaming.name(claim, "uid", UID)
    renaming.node_selector(spec.get("nodeAffinity", {}), "required")
    _disks(spec, renaming)
    renaming.name(spec.get("csi", {}), "volumeHandle", VALUE)


def anonymize_claim(item: JsonObject, renaming: FieldRenaming) -> None:
    """The selector, the volume and the classes."""
    spec = item.get("spec", {})
    renaming.label_selector(spec, "selector")
    renaming.name(spec, "volumeName", VOLUME)
    renaming.name(spec, "storageClassName", CLASS)
    renaming.name(spec, "volumeAttributesClassName", OBJECT)


def anonymize_storage_class(item: JsonObject, renaming: FieldRenaming) -> None:
    """The topologies in which volumes may be made."""
    for term in item.get("allowedTopologies", ()):
        renaming.requirements(term, "matchLabelExpressions")


def anonymize_csi_storage_capacity(item: JsonObject, renaming: FieldRenaming) -> None:
    """The storage class and the nodes that reach the storage."""
    renaming.name(item, "storageClassName", CLASS)
    renaming.label_selector(item, "nodeTopology")


def anonymize_volume_attachment(item: JsonObject, renaming: FieldRenaming) -> None:
    """The node and the volume."""
    spec = item.get("spec", {})
    renaming.name(spec, "nodeName", NODE)
    renaming.name(spec.get("source", {}), "persistentVolumeName", VOLUME)


def anonymize_resource_claim(item: JsonObject, renaming: FieldRenaming) -> None:
    """Tolerations, the devices of the allocation, and the pods that have reserved the claim."""
    _claim_spec(item.get("spec", {}), renaming)
    status = item.get("status", {})
    allocation = status.get("allocation", {})
    renaming.node_selector(allocation, "nodeSelector")
    for config in allocation.get("devices", {}).get("config", ()):
        _request_references(config, renaming)
    for result in allocation.get("devices", {}).get("results", ()):
        _device_id(result, renaming)
        result["request"] = _request_reference(result.get("request", ""), renaming)
        for toleration in result.get("tolerations", ()):
            renaming.taint(toleration)
    for consumer in status.get("reservedFor", ()):
        renaming.name(consumer, "name", POD)
        renaming.name(consumer, "uid", UID)
    for device in status.get("devices", ()):
        _device_id(device, renaming)
        for condition in device.get("conditions", ()):
            condition.pop("message", None)


def anonymize_resource_claim_template(item: JsonObject, renaming: FieldRenaming) -> None:
    """Tolerations, and the labels of the claims."""
    spec = item.get("spec", {})
    renaming.labels(spec.get("metadata", {}), "labels")
    _claim_spec(spec.get("spec", {}), renaming)


def anonymize_resource_slice(item: JsonObject, renaming: FieldRenaming) -> None:
    """Pool, nodes, names and taints of devices; expressions read attributes, which are kept."""
    spec = item.get("spec", {})
    renaming.name(spec.get("pool", {}), "name", NODE)
    renaming.name(spec, "nodeName", NODE)
    renaming.node_selector(spec, "nodeSelector")
    for counters in spec.get("sharedCounters", ()):
        renaming.name(counters, "name", OBJECT)
    for device in spec.get("devices", ()):
        renaming.name(device, "name", OBJECT)
        renaming.name(device, "nodeName", NODE)
        for consumed in device.get("consumesCounters", ()):
            renaming.name(consumed, "counterSet", OBJECT)
            if "compatibilityGroups" in consumed:
                groups = consumed["compatibilityGroups"]
                consumed["compatibilityGroups"] = renaming.names.names(OBJECT, groups)
        renaming.node_selector(device, "nodeSelector")
        for taint in device.get("taints", ()):
            renaming.taint(taint)


def anonymize_device_taint_rule(item: JsonObject, renaming: FieldRenaming) -> None:
    """The taint, and the pool and the device that it is for."""
    spec = item.get("spec", {})
    _device_id(spec.get("deviceSelector", {}), renaming)
    renaming.taint(spec.get("taint", {}))


def _claim_spec(spec: JsonObject, renaming: FieldRenaming) -> None:
    devices = spec.get("devices", {})
    for request in devices.get("requests", ()):
        renaming.name(request, "name", OBJECT)
        for each in (request.get("exactly", {}), *request.get("firstAvailable", ())):
            renaming.name(each, "name", OBJECT)
            for toleration in each.get("tolerations", ()):
                renaming.taint(toleration)
            for attribute in each.get("derivedAttributes", ()):
                renaming.name(attribute, "name", OBJECT)
    for each in (*devices.get("constraints", ()), *devices.get("config", ())):
        _request_references(each, renaming)


def _request_references(item: JsonObject, renaming: FieldRenaming) -> None:
    if "requests" in item:
        item["requests"] = [_request_reference(each, renaming) for each in item["requests"]]


def _request_reference(text: str, renaming: FieldRenaming) -> str:
    """A request, or one of its alternatives: `request/alternative`."""
    return "/".join(renaming.names.name(OBJECT, part) for part in text.split("/"))


def _device_id(item: JsonObject, renaming: FieldRenaming) -> None:
    renaming.name(item, "pool", NODE)
    renaming.name(item, "device", OBJECT)
    renaming.name(item, "shareID", UID)
