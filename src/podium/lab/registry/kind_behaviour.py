"""What the registry does for one kind and not for others: defaults, status, validation, generation.

A kind that is not in the table behaves as `KindBehaviour()` does.

Upstream: the strategy.go of each resource in pkg/registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from podium.lab.api.field_errors import FieldError
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict
from podium.lab.defaults import cluster_objects as cluster_defaults
from podium.lab.defaults import pods as pod_defaults
from podium.lab.defaults import storage as storage_defaults
from podium.lab.defaults import workloads as workload_defaults
from podium.lab.validation import cluster_objects, pods, storage, workloads
from podium.lab.validation.metadata import validate_metadata
from podium.lab.validation.names import (
    NameRule,
    dns_1035_label_reasons,
    dns_label_reasons,
    dns_subdomain_reasons,
    path_segment_reasons,
)

Edit = Callable[[JsonDict], None]


def _no_edit(_item: JsonDict) -> None:
    return


def _empty_status(_item: JsonDict) -> JsonDict:
    return {}


def _no_errors(*_items: JsonDict) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True)
class KindBehaviour:
    """How objects of one kind are completed and validated."""

    #: Sets default values, in new objects and in updates.
    set_defaults: Edit = _no_edit
    #: Completes a new object once its uid and name are known.
    complete_new: Edit = _no_edit
    #: The status of a new object; `None` keeps the status that a client sends.
    new_status: Callable[[JsonDict], JsonDict] | None = _empty_status
    #: Whether `metadata.generation` counts changes of the spec.
    has_generation: bool = False
    name_rule: NameRule = dns_subdomain_reasons
    validate: Callable[[JsonDict], Iterable[FieldError]] = _no_errors
    validate_update: Callable[[JsonDict, JsonDict], Iterable[FieldError]] = _no_errors
    #: Whether an update may leave out the resource version.
    allows_unconditional_update: bool = True
    #: Whether an update of an object that does not exist creates it.
    allows_create_on_update: bool = False

    def prepare_for_create(self, resource: Resource, item: JsonDict) -> None:
        """Complete a new object before it is validated."""
        self.complete_new(item)
        if "status" in resource.subresources and self.new_status is not None:
            item["status"] = self.new_status(item)

    def prepare_for_update(self, item: JsonDict, old: JsonDict, subresource: str) -> JsonDict:
        """The object to be stored: a write of the status keeps the spec, and the reverse."""
        if subresource == "status":
            made = {**old, "metadata": item["metadata"]}
            _copy_field("ownerReferences", old["metadata"], made["metadata"])
            if "status" in item:
                made["status"] = item["status"]
            else:
                made.pop("status", None)
            return made
        _copy_field("status", old, item)
        return item

    def changes_generation(self, item: JsonDict, old: JsonDict) -> bool:
        """Whether an update changes fields besides metadata and status."""
        if not self.has_generation:
            return False
        fields = (item.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
        return any(item.get(field) != old.get(field) for field in fields)

    def create_errors(self, item: JsonDict) -> list[FieldError]:
        """The errors in a new object."""
        return [*validate_metadata(item["metadata"], self.name_rule), *self.validate(item)]

    def update_errors(self, item: JsonDict, old: JsonDict) -> list[FieldError]:
        """The errors in an object that replaces *old*."""
        return [*self.validate(item), *self.validate_update(item, old)]


def _copy_field(field: str, source: JsonDict, target: JsonDict) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


_DEFAULT = KindBehaviour()
_BY_KIND: Mapping[str, KindBehaviour] = {
    "Pod": KindBehaviour(
        set_defaults=pod_defaults.set_pod_defaults,
        new_status=pod_defaults.new_pod_status,
        validate=pods.validate_pod,
        validate_update=pods.validate_pod_update,
    ),
    "Namespace": KindBehaviour(
        set_defaults=cluster_defaults.set_namespace_defaults,
        complete_new=cluster_defaults.add_namespace_finalizer,
        new_status=cluster_defaults.new_namespace_status,
        name_rule=dns_label_reasons,
    ),
    "Node": KindBehaviour(
        set_defaults=cluster_defaults.set_node_defaults,
        new_status=None,
        validate=cluster_objects.validate_node,
        validate_update=cluster_objects.validate_node_update,
    ),
    "Service": KindBehaviour(
        set_defaults=cluster_defaults.set_service_defaults,
        new_status=cluster_defaults.new_service_status,
        name_rule=dns_1035_label_reasons,
        validate=cluster_objects.validate_service,
        validate_update=cluster_objects.validate_service_update,
    ),
    "PersistentVolume": KindBehaviour(
        set_defaults=storage_defaults.set_volume_defaults,
        new_status=storage_defaults.pending_status,
        validate=storage.validate_volume,
    ),
    "PersistentVolumeClaim": KindBehaviour(
        set_defaults=storage_defaults.set_claim_defaults,
        new_status=storage_defaults.pending_status,
        validate=storage.validate_claim,
        validate_update=storage.validate_claim_update,
    ),
    "ReplicationController": KindBehaviour(
        set_defaults=workload_defaults.set_replication_controller_defaults,
        new_status=workload_defaults.new_replica_status,
        has_generation=True,
        validate=workloads.validate_replication_controller,
    ),
    "Deployment": KindBehaviour(
        set_defaults=workload_defaults.set_deployment_defaults,
        has_generation=True,
        validate=workloads.validate_deployment,
        validate_update=workloads.validate_selector_unchanged,
    ),
    "ReplicaSet": KindBehaviour(
        set_defaults=workload_defaults.set_replica_set_defaults,
        new_status=workload_defaults.new_replica_status,
        has_generation=True,
        validate=workloads.validate_replica_set,
        validate_update=workloads.validate_selector_unchanged,
    ),
    "StatefulSet": KindBehaviour(
        set_defaults=workload_defaults.set_stateful_set_defaults,
        new_status=workload_defaults.new_replica_status,
        has_generation=True,
        validate=workloads.validate_stateful_set,
        validate_update=workloads.validate_stateful_set_update,
    ),
    "DaemonSet": KindBehaviour(
        set_defaults=workload_defaults.set_daemon_set_defaults,
        complete_new=workload_defaults.set_template_generation,
        new_status=workload_defaults.new_daemon_set_status,
        has_generation=True,
        validate=workloads.validate_daemon_set,
        validate_update=workloads.validate_selector_unchanged,
    ),
    "Job": KindBehaviour(
        set_defaults=workload_defaults.set_job_defaults,
        complete_new=workload_defaults.set_job_selector,
        has_generation=True,
        validate=workloads.validate_job,
        validate_update=workloads.validate_job_update,
    ),
    "CronJob": KindBehaviour(
        set_defaults=workload_defaults.set_cron_job_defaults, has_generation=True
    ),
    "PodDisruptionBudget": KindBehaviour(
        new_status=cluster_defaults.new_budget_status,
        has_generation=True,
        validate=cluster_objects.validate_budget,
        allows_unconditional_update=False,
    ),
    "PriorityClass": KindBehaviour(
        set_defaults=cluster_defaults.set_priority_class_defaults,
        has_generation=True,
        validate=cluster_objects.validate_priority_class,
        validate_update=cluster_objects.validate_priority_class_update,
    ),
    "StorageClass": KindBehaviour(
        set_defaults=storage_defaults.set_storage_class_defaults,
        validate=storage.validate_storage_class,
        validate_update=storage.validate_storage_class_update,
    ),
    "CSIDriver": KindBehaviour(
        set_defaults=storage_defaults.set_csi_driver_defaults, allows_unconditional_update=False
    ),
    "CSINode": KindBehaviour(
        validate=cluster_objects.validate_csi_node, allows_unconditional_update=False
    ),
    "ConfigMap": KindBehaviour(validate=cluster_objects.validate_data_keys),
    "Secret": KindBehaviour(
        set_defaults=cluster_defaults.set_secret_defaults,
        validate=cluster_objects.validate_data_keys,
    ),
    "LimitRange": KindBehaviour(set_defaults=cluster_defaults.set_limit_range_defaults),
    "ClusterRole": KindBehaviour(name_rule=path_segment_reasons),
    "ClusterRoleBinding": KindBehaviour(name_rule=path_segment_reasons),
    "Endpoints": KindBehaviour(allows_create_on_update=True),
    "Event": KindBehaviour(validate=cluster_objects.validate_event, allows_create_on_update=True),
    "Role": KindBehaviour(name_rule=path_segment_reasons),
    "RoleBinding": KindBehaviour(name_rule=path_segment_reasons),
    "Lease": KindBehaviour(
        validate=cluster_objects.validate_lease,
        allows_unconditional_update=False,
        allows_create_on_update=True,
    ),
}


def behaviour_of(resource: Resource) -> KindBehaviour:
    """The behaviour of a resource's kind."""
    return _BY_KIND.get(resource.kind, _DEFAULT)
