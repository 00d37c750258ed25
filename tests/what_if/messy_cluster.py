"""A cluster as clusters are: every kind of workload, claims, budgets, quotas, and odd pods."""

from __future__ import annotations

import copy
import json
from functools import cache

from manifests import budget, manifest
from what_if.clusters import Item, node, pod, pod_spec, workload
from what_if.random_clusters import at_rest

_RUN = "lab.podium/run-seconds"
_UNREACHABLE = "node.kubernetes.io/unreachable"


def messy_cluster() -> list[Item]:
    """Its objects, with uids and status; the caller may change them."""
    return copy.deepcopy(_messy_cluster())


def _workloads() -> list[Item]:
    web = workload("Deployment", "web", 5, "900m", priorityClassName="urgent")
    web["spec"]["template"]["spec"] |= {
        "terminationGracePeriodSeconds": 7,
        "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
        "tolerations": [
            {"key": _UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
            | {"tolerationSeconds": 45}
        ],
    }
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}
    db = workload("StatefulSet", "db", 3, "700m")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    db["spec"] |= {
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    template = {
        "metadata": {"annotations": {_RUN: "1000000"}},
        "spec": pod_spec("300m", restartPolicy="Never", runtimeClassName="boxed"),
    }
    job = manifest("Job", "sum", spec={"parallelism": 3, "template": template})
    nightly = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return [
        web,
        db,
        workload("DaemonSet", "agent", None, "100m"),
        workload("Deployment", "idle", 0),
        job,
        manifest("CronJob", "nightly", spec=nightly),
        manifest(
            *("HorizontalPodAutoscaler", "web"),
            spec={"minReplicas": 2, "maxReplicas": 5, "scaleTargetRef": target},
        ),
        budget("web", "web", maxUnavailable=1),
        manifest("PriorityClass", "urgent", value=1000),
        manifest("RuntimeClass", "boxed", handler="box")
        | {"overhead": {"podFixed": {"cpu": "100m"}}},
        manifest("ResourceQuota", "all", spec={"hard": {"pods": "40"}}),
        manifest(
            *("LimitRange", "usual"),
            spec={"limits": [{"type": "Container", "defaultRequest": {"memory": "64Mi"}}]},
        ),
    ]


def _odd_pods(now: str) -> list[Item]:
    """Pods of a custom controller, of another scheduler and of a kubelet; one that terminates."""
    owners: list[tuple[str, str, Item, Item]] = [
        ("step-1", "Workflow", {}, {}),
        ("gang-1", "PodGang", {"schedulerName": "volcano"}, {}),
        ("proxy-n1", "Node", {}, {"annotations": {"kubernetes.io/config.mirror": "0a1b"}}),
        ("leaving", "Workflow", {}, {"deletionTimestamp": now, "deletionGracePeriodSeconds": 30}),
    ]
    made = []
    for name, kind, spec, about in owners:
        odd = pod(name, "200m", nodeName="n1", **spec)
        owner = {"apiVersion": "x.io/v1", "kind": kind, "name": name[:4], "uid": f"uid-{name[:4]}"}
        odd["metadata"] |= {
            "uid": f"uid-{name}",
            "creationTimestamp": now,
            "ownerReferences": [{**owner, "controller": True}],
            **about,
        }
        odd["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        made.append(odd)
    return made


@cache
def _messy_cluster() -> list[Item]:
    nodes = [node(f"n{number}", "abc"[number % 3], cpu="4") for number in range(6)]
    text = json.dumps(at_rest([*nodes, *_workloads()], seed=7))
    items: list[Item] = json.loads(text.replace(f'"{_RUN}": "1000000"', ""))
    now = max(each["metadata"]["creationTimestamp"] for each in items)
    items += _odd_pods(now)
    for each in items:
        each["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
        if each["kind"] == "Node" and each["metadata"]["name"] == "n5":
            each["spec"]["taints"] = [
                {"key": _UNREACHABLE, "effect": effect, "timeAdded": now}
                for effect in ("NoSchedule", "NoExecute")
            ]
            each["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return items
