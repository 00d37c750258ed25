"""How each kind differs: its defaults, its status, what counts as a change, what is refused.

One row per kind; what is not in the table has no rules of its own.

Upstream: the strategy.go of each resource in pkg/registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from podium.lab.api.field_errors import FieldError
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict
from podium.lab.defaults import others, pods, workloads
from podium.lab.store import selection as selecting
from podium.lab.validation import cluster as cluster_rules
from podium.lab.validation import metadata as metadata_rules
from podium.lab.validation import pods as pod_rules
from podium.lab.validation import storage as storage_rules
from podium.lab.validation import workloads as workload_rules
from podium.lab.validation.names import (
    Check,
    label_reasons,
    segment_reasons,
    service_reasons,
    subdomain_reasons,
)

Change = Callable[[JsonDict], None]
Problems = Iterable[FieldError]


def _nothing(item: JsonDict) -> None:
    """Leave it as it is."""


def _no_status(_item: JsonDict) -> JsonDict:
    return {}


def _fine(*_items: JsonDict) -> Problems:
    return ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """What is special about a kind."""

    defaults: Change = _nothing
    #: Done once, to a new object, when its uid and name are known.
    found: Change = _nothing
    #: The status of a new object; `None` if it keeps what it came with.
    status: Callable[[JsonDict], JsonDict] | None = _no_status
    #: Whether its specification is counted by `metadata.generation`.
    counts: bool = False
    names: Check = subdomain_reasons
    check: Callable[[JsonDict], Problems] = _fine
    check_update: Callable[[JsonDict, JsonDict], Problems] = _fine
    #: Whether an update may leave out the version it replaces.
    unconditional: bool = True
    #: Whether an update of something that does not exist creates it.
    made_by_update: bool = False

    def prepare(self, item: JsonDict) -> None:
        """Complete a new object."""
        self.defaults(item)

    def begin(self, row: Resource, item: JsonDict) -> None:
        """The last touch before a new object is checked."""
        self.found(item)
        if "status" in row.subresources and self.status is not None:
            item["status"] = self.status(item)

    def merged(self, item: JsonDict, old: JsonDict, subresource: str) -> JsonDict:
        """What a write through this door can change, taken from *item*, the rest from *old*."""
        if subresource == "status":
            made = {**old, "metadata": item["metadata"]}
            _keep(made["metadata"], old["metadata"], "ownerReferences")
            if "status" in item:
                made["status"] = item["status"]
            else:
                made.pop("status", None)
            return made
        _keep(item, old, "status")
        return item

    def wants_counting(self, item: JsonDict, old: JsonDict) -> bool:
        """Whether something else than metadata and status changed."""
        keys = (item.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
        return any(item.get(key) != old.get(key) for key in keys)

    def problems(self, item: JsonDict) -> list[FieldError]:
        """What is wrong with a new object."""
        return [*metadata_rules.problems(item["metadata"], self.names), *self.check(item)]

    def update_problems(self, item: JsonDict, old: JsonDict) -> list[FieldError]:
        """What is wrong with an object that replaces *old*."""
        return [*self.check(item), *self.check_update(item, old)]


def _keep(item: JsonDict, old: JsonDict, field: str) -> None:
    if field in old:
        item[field] = old[field]
    else:
        item.pop(field, None)


_PLAIN = Strategy()
_TABLE: Mapping[str, Strategy] = {
    "Pod": Strategy(
        defaults=pods.pod,
        status=pods.status,
        check=pod_rules.pod,
        check_update=pod_rules.pod_update,
    ),
    "Namespace": Strategy(
        defaults=others.namespace,
        found=others.new_namespace,
        status=others.namespace_status,
        names=label_reasons,
    ),
    "Node": Strategy(
        defaults=others.node,
        status=None,
        check=cluster_rules.node,
        check_update=cluster_rules.node_update,
    ),
    "Service": Strategy(
        defaults=others.service,
        status=others.service_status,
        names=service_reasons,
        check=cluster_rules.service,
        check_update=cluster_rules.same_address,
    ),
    "PersistentVolume": Strategy(
        defaults=others.volume, status=others.pending, check=storage_rules.volume
    ),
    "PersistentVolumeClaim": Strategy(
        defaults=others.claim,
        status=others.pending,
        check=storage_rules.claim,
        check_update=storage_rules.claim_update,
    ),
    "ReplicationController": Strategy(
        defaults=workloads.replication_controller,
        status=workloads.no_replicas,
        counts=True,
        check=workload_rules.replication_controller,
    ),
    "Deployment": Strategy(
        defaults=workloads.deployment,
        counts=True,
        check=workload_rules.deployment,
        check_update=workload_rules.same_selector,
    ),
    "ReplicaSet": Strategy(
        defaults=workloads.replica_set,
        status=workloads.no_replicas,
        counts=True,
        check=workload_rules.replica_set,
        check_update=workload_rules.same_selector,
    ),
    "StatefulSet": Strategy(
        defaults=workloads.stateful_set,
        status=workloads.no_replicas,
        counts=True,
        check=workload_rules.stateful_set,
        check_update=workload_rules.stateful_set_update,
    ),
    "DaemonSet": Strategy(
        defaults=workloads.daemon_set,
        found=workloads.first_template,
        status=workloads.no_daemons,
        counts=True,
        check=workload_rules.daemon_set,
        check_update=workload_rules.same_selector,
    ),
    "Job": Strategy(
        defaults=workloads.job,
        found=workloads.job_selector,
        counts=True,
        check=workload_rules.job,
        check_update=workload_rules.job_update,
    ),
    "CronJob": Strategy(defaults=workloads.cron_job, counts=True),
    "PodDisruptionBudget": Strategy(
        status=others.budget_status, counts=True, unconditional=False, check=cluster_rules.budget
    ),
    "PriorityClass": Strategy(
        defaults=others.priority_class,
        counts=True,
        check=cluster_rules.priority_class,
        check_update=cluster_rules.priority_class_update,
    ),
    "StorageClass": Strategy(
        defaults=others.storage_class,
        check=storage_rules.storage_class,
        check_update=storage_rules.storage_class_update,
    ),
    "CSIDriver": Strategy(defaults=others.csi_driver, unconditional=False),
    "CSINode": Strategy(unconditional=False, check=cluster_rules.csi_node),
    "ConfigMap": Strategy(check=cluster_rules.keys),
    "Secret": Strategy(defaults=others.secret, check=cluster_rules.keys),
    "LimitRange": Strategy(defaults=others.limit_range),
    "ClusterRole": Strategy(names=segment_reasons),
    "ClusterRoleBinding": Strategy(names=segment_reasons),
    "Endpoints": Strategy(made_by_update=True),
    "Event": Strategy(check=cluster_rules.event, made_by_update=True),
    "Role": Strategy(names=segment_reasons),
    "RoleBinding": Strategy(names=segment_reasons),
    "Lease": Strategy(check=cluster_rules.lease, unconditional=False, made_by_update=True),
}


def of(row: Resource) -> Strategy:
    """What is special about a resource's kind."""
    return _TABLE.get(row.kind, _PLAIN)


def fields(row: Resource, item: JsonDict) -> Mapping[str, str]:
    """What selectors may ask about an object."""
    return selecting.fields_of(row.storage, item)
