"""Fields that every object of a kind has, even if they are empty.

They come from Kubernetes' own types, where these fields are no pointers: an object never lacks
them, so nobody is the owner of their being there, only of what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.status import JsonDict

_POD_SPEC: JsonDict = {"containers": None}
_METADATA: JsonDict = {"creationTimestamp": None}
_TEMPLATE: JsonDict = {"metadata": _METADATA, "spec": _POD_SPEC}
_BASE: JsonDict = {"metadata": _METADATA}

ZEROS: Mapping[str, JsonDict] = {
    "CronJob": {
        "spec": {"jobTemplate": {"metadata": _METADATA, "spec": {"template": _TEMPLATE}}},
        "status": {},
    },
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": None}},
    "DaemonSet": {
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {},
    },
    "Deployment": {
        "spec": {"selector": None, "template": _TEMPLATE, "strategy": {}},
        "status": {},
    },
    "Event": {
        "involvedObject": {},
        "source": {},
        "eventTime": None,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "Job": {"spec": {"template": _TEMPLATE}, "status": {}},
    "Lease": {"spec": {}},
    "LimitRange": {"spec": {"limits": None}},
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {}}, "nodeInfo": {}}},
    "PersistentVolume": {"spec": {}, "status": {}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Pod": {"spec": _POD_SPEC, "status": {}},
    "PodDisruptionBudget": {"spec": {}, "status": {}},
    "PodTemplate": {"template": _TEMPLATE},
    "ReplicaSet": {"spec": {"selector": None, "template": _TEMPLATE}, "status": {}},
    "ReplicationController": {"spec": {}, "status": {}},
    "ResourceQuota": {"spec": {}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "StatefulSet": {
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {},
    },
    "VolumeAttachment": {"spec": {"source": {}}, "status": {}},
}


def with_zeros(kind: str, object_: JsonDict) -> JsonDict:
    """The object with the fields that it cannot lack."""
    return _over(_over(object_, _BASE), ZEROS.get(kind, {}))


def _over(value: JsonDict, zero: JsonDict) -> JsonDict:
    result = dict(value)
    for key, inner in zero.items():
        held = value.get(key)
        if held is None:
            result[key] = inner
        elif isinstance(inner, dict) and isinstance(held, dict):
            result[key] = _over(held, inner)
    return result
