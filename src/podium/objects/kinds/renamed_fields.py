"""Which fields of a kind, besides its metadata, are renamed in an anonymized snapshot."""

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
    REMOVED,
    UID,
    VALUE,
    VOLUME,
    Pseudonyms,
)

if TYPE_CHECKING:
    from podium.objects.snapshots.pseudonyms import RenamedFields

ADDRESS: Final = Pseudonyms.address
IMAGE: Final = Pseudonyms.image
KEY: Final = Pseudonyms.key
LABELS: Final = Pseudonyms.labels
REQUIREMENT: Final = Pseudonyms.requirement
TAINT: Final = Pseudonyms.taint


def _request_reference(names: Pseudonyms, text: str) -> str:
    """A request, or one of its alternatives: `request/alternative`."""
    return "/".join(names.name(OBJECT, part) for part in text.split("/"))


def _times_of_pods(names: Pseudonyms, found: dict[str, str]) -> dict[str, str]:
    """The time at which each pod was evicted."""
    return {names.name(POD, name): at for name, at in found.items()}


_LABEL_SELECTOR: Final[RenamedFields] = {"matchLabels": LABELS, "matchExpressions": REQUIREMENT}
_NODE_TERM: Final[RenamedFields] = {
    "matchExpressions": REQUIREMENT,
    "matchFields": {"values": NODE},
}
_NODE_SELECTOR: Final[RenamedFields] = {"nodeSelectorTerms": _NODE_TERM}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
#: Conditions: their messages name nodes, taints and claims in words.
_CONDITIONS: Final[RenamedFields] = {"message": REMOVED}

_POD_TERM: Final[RenamedFields] = {
    "topologyKey": KEY,
    "labelSelector": _LABEL_SELECTOR,
    "namespaceSelector": _LABEL_SELECTOR,
    "namespaces": NAMESPACE,
    "matchLabelKeys": KEY,
    "mismatchLabelKeys": KEY,
}
_POD_TERMS: Final[RenamedFields] = {
    _REQUIRED: _POD_TERM,
    _PREFERRED: {"podAffinityTerm": _POD_TERM},
}
_CONTAINER: Final[RenamedFields] = {
    "name": OBJECT,
    "image": IMAGE,
    "ports": {"hostIP": ADDRESS},
}
#: The fields of volume sources that identify a disk.
_DISKS: Final[RenamedFields] = {
    "gcePersistentDisk": {"pdName": VALUE},
    "awsElasticBlockStore": {"volumeID": VALUE},
    "azureDisk": {"diskName": VALUE, "diskURI": VALUE},
    "cinder": {"volumeID": VALUE},
    "portworxVolume": {"volumeID": VALUE},
    "iscsi": {"iqn": VALUE},
    "rbd": {"image": VALUE, "pool": VALUE, "monitors": VALUE},
}
_CLAIM_OF_POD: Final[RenamedFields] = {
    "name": OBJECT,
    "resourceClaimName": OBJECT,
    "resourceClaimTemplateName": OBJECT,
}

OF_NODE: Final[RenamedFields] = {
    "spec": {"taints": TAINT},
    "status": {"images": {"names": IMAGE}},
}
OF_POD: Final[RenamedFields] = {
    "spec": {
        "nodeName": NODE,
        "priorityClassName": OBJECT,
        "runtimeClassName": OBJECT,
        "schedulingGroup": {"podGroupName": OBJECT},
        "nodeSelector": LABELS,
        "affinity": {
            "nodeAffinity": {_REQUIRED: _NODE_SELECTOR, _PREFERRED: {"preference": _NODE_TERM}},
            "podAffinity": _POD_TERMS,
            "podAntiAffinity": _POD_TERMS,
        },
        "tolerations": TAINT,
        "topologySpreadConstraints": {
            "topologyKey": KEY,
            "labelSelector": _LABEL_SELECTOR,
            "matchLabelKeys": KEY,
        },
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "volumes": {
            "name": OBJECT,
            "persistentVolumeClaim": {"claimName": CLAIM},
            "image": {"reference": IMAGE},
            **_DISKS,
        },
        "schedulingGates": {"name": KEY},
        "resourceClaims": _CLAIM_OF_POD,
    },
    "status": {
        "nominatedNodeName": NODE,
        "conditions": _CONDITIONS,
        "containerStatuses": {"name": OBJECT},
        "initContainerStatuses": {"name": OBJECT},
        "resourceClaimStatuses": _CLAIM_OF_POD,
        "extendedResourceClaimStatus": {
            "resourceClaimName": OBJECT,
            "requestMappings": {"containerName": OBJECT, "requestName": OBJECT},
        },
    },
}
_POD_TEMPLATE: Final[RenamedFields] = {"metadata": {"labels": LABELS}, **OF_POD}
OF_POD_GROUP: Final[RenamedFields] = {
    "spec": {
        "priorityClassName": OBJECT,
        "parentCompositePodGroupName": OBJECT,
        "schedulingConstraints": {"topology": {"key": KEY}},
        "resourceClaims": _CLAIM_OF_POD,
    },
    "status": {"conditions": _CONDITIONS},
}
OF_SERVICE: Final[RenamedFields] = {"spec": {"selector": LABELS}}
OF_REPLICATION_CONTROLLER: Final[RenamedFields] = {
    "spec": {"selector": LABELS, "template": _POD_TEMPLATE}
}
OF_CLAIM: Final[RenamedFields] = {
    "spec": {
        "selector": _LABEL_SELECTOR,
        "volumeName": VOLUME,
        "storageClassName": CLASS,
        "volumeAttributesClassName": OBJECT,
    }
}
OF_WORKLOAD: Final[RenamedFields] = {
    "spec": {
        "selector": _LABEL_SELECTOR,
        "template": _POD_TEMPLATE,
        "volumeClaimTemplates": {"metadata": {"name": OBJECT, "labels": LABELS}, **OF_CLAIM},
    }
}
OF_CRON_JOB: Final[RenamedFields] = {
    "spec": {"jobTemplate": {"metadata": {"labels": LABELS}, **OF_WORKLOAD}}
}
OF_AUTOSCALER: Final[RenamedFields] = {"spec": {"scaleTargetRef": {"name": OWNER}}}
#: Expressions over the priority classes whose pods are counted.
OF_QUOTA: Final[RenamedFields] = {
    "spec": {"scopeSelector": {"matchExpressions": {"values": OBJECT}}}
}
OF_RUNTIME_CLASS: Final[RenamedFields] = {
    "handler": OBJECT,
    "scheduling": {"nodeSelector": LABELS, "tolerations": TAINT},
}
OF_POD_DISRUPTION_BUDGET: Final[RenamedFields] = {
    "spec": {"selector": _LABEL_SELECTOR},
    "status": {"disruptedPods": _times_of_pods},
}
OF_PERSISTENT_VOLUME: Final[RenamedFields] = {
    "spec": {
        "storageClassName": CLASS,
        "volumeAttributesClassName": OBJECT,
        "claimRef": {"name": CLAIM, "namespace": NAMESPACE, "uid": UID},
        "nodeAffinity": {"required": _NODE_SELECTOR},
        "csi": {"volumeHandle": VALUE},
        **_DISKS,
    }
}
OF_STORAGE_CLASS: Final[RenamedFields] = {
    "allowedTopologies": {"matchLabelExpressions": REQUIREMENT}
}
OF_CSI_STORAGE_CAPACITY: Final[RenamedFields] = {
    "storageClassName": CLASS,
    "nodeTopology": _LABEL_SELECTOR,
}
OF_VOLUME_ATTACHMENT: Final[RenamedFields] = {
    "spec": {"nodeName": NODE, "source": {"persistentVolumeName": VOLUME}}
}

_DEVICE_ID: Final[RenamedFields] = {"pool": NODE, "device": OBJECT, "shareID": UID}
_DEVICE_REQUEST: Final[RenamedFields] = {
    "name": OBJECT,
    "tolerations": TAINT,
    "derivedAttributes": {"name": OBJECT},
}
_REQUESTS: Final[RenamedFields] = {"requests": _request_reference}
_CLAIM_SPEC: Final[RenamedFields] = {
    "devices": {
        "requests": {
            "name": OBJECT,
            "exactly": _DEVICE_REQUEST,
            "firstAvailable": _DEVICE_REQUEST,
        },
        "constraints": _REQUESTS,
        "config": _REQUESTS,
    }
}
OF_RESOURCE_CLAIM: Final[RenamedFields] = {
    "spec": _CLAIM_SPEC,
    "status": {
        "allocation": {
            "nodeSelector": _NODE_SELECTOR,
            "devices": {
                "config": _REQUESTS,
                "results": {"request": _request_reference, "tolerations": TAINT, **_DEVICE_ID},
            },
        },
        "reservedFor": {"name": POD, "uid": UID},
        "devices": {"conditions": _CONDITIONS, **_DEVICE_ID},
    },
}
OF_RESOURCE_CLAIM_TEMPLATE: Final[RenamedFields] = {
    "spec": {"metadata": {"labels": LABELS}, "spec": _CLAIM_SPEC}
}
#: Expressions read the attributes of devices, which are kept.
OF_RESOURCE_SLICE: Final[RenamedFields] = {
    "spec": {
        "pool": {"name": NODE},
        "nodeName": NODE,
        "nodeSelector": _NODE_SELECTOR,
        "sharedCounters": {"name": OBJECT},
        "devices": {
            "name": OBJECT,
            "nodeName": NODE,
            "nodeSelector": _NODE_SELECTOR,
            "consumesCounters": {"counterSet": OBJECT, "compatibilityGroups": OBJECT},
            "taints": TAINT,
        },
    }
}
OF_DEVICE_TAINT_RULE: Final[RenamedFields] = {
    "spec": {"deviceSelector": _DEVICE_ID, "taint": TAINT}
}
