"""What the registry does for one kind and not for others: defaults, status, validation, generation.

A kind that is not in the table behaves as `KindBehaviour()` does.

Upstream: the strategy.go of each resource in pkg/registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from podium.lab.api.field_errors import FieldError
from podium.lab.api.resources import Resource
from podium.lab.defaults.cluster_objects import (
    add_namespace_finalizer,
    new_budget_status,
    new_namespace_status,
    new_service_status,
    set_limit_range_defaults,
    set_namespace_defaults,
    set_node_defaults,
    set_priority_class_defaults,
    set_secret_defaults,
    set_service_defaults,
)
from podium.lab.defaults.devices import (
    set_claim_template_defaults,
    set_resource_claim_defaults,
    set_slice_defaults,
)
from podium.lab.defaults.pods import (
    new_pod_status,
    set_pod_defaults,
)
from podium.lab.defaults.storage import (
    pending_status,
    set_claim_defaults,
    set_csi_driver_defaults,
    set_storage_class_defaults,
    set_volume_defaults,
)
from podium.lab.defaults.workloads import (
    new_autoscaler_status,
    new_daemon_set_status,
    new_replica_status,
    set_autoscaler_defaults,
    set_cron_job_defaults,
    set_daemon_set_defaults,
    set_deployment_defaults,
    set_job_defaults,
    set_job_selector,
    set_replica_set_defaults,
    set_replication_controller_defaults,
    set_stateful_set_defaults,
    set_template_generation,
)
from podium.lab.registry.custom_resources import (
    add_cleanup_finalizer,
    new_definition_status,
    set_definition_defaults,
)
from podium.lab.registry.resource_claims import drop_released_devices
from podium.lab.validation.cluster_objects import (
    validate_budget,
    validate_csi_node,
    validate_data_keys,
    validate_event,
    validate_lease,
    validate_node,
    validate_node_update,
    validate_priority_class,
    validate_priority_class_update,
    validate_service,
    validate_service_update,
)
from podium.lab.validation.custom_definitions import (
    validate_definition,
    validate_definition_update,
)
from podium.lab.validation.devices import (
    validate_claim_template,
    validate_device_class,
    validate_resource_claim,
    validate_resource_claim_status,
    validate_resource_claim_update,
)
from podium.lab.validation.metadata import validate_metadata
from podium.lab.validation.names import (
    NameRule,
    dns_1035_label_reasons,
    dns_label_reasons,
    dns_subdomain_reasons,
    path_segment_reasons,
)
from podium.lab.validation.pods import (
    validate_pod,
    validate_pod_update,
)
from podium.lab.validation.resource_slices import (
    validate_resource_slice,
    validate_resource_slice_update,
)
from podium.lab.validation.storage import (
    validate_claim,
    validate_claim_update,
    validate_storage_class,
    validate_storage_class_update,
    validate_volume,
)
from podium.lab.validation.workloads import (
    validate_autoscaler,
    validate_cron_job,
    validate_daemon_set,
    validate_deployment,
    validate_job,
    validate_job_update,
    validate_replica_set,
    validate_replication_controller,
    validate_selector_unchanged,
    validate_stateful_set,
    validate_stateful_set_update,
)
from podium.objects.kinds.meta import JsonObject

Edit = Callable[[JsonObject], None]


def _no_edit(_item: JsonObject) -> None:
    return


def _empty_status(_item: JsonObject) -> JsonObject:
    return {}


def _no_errors(*_items: JsonObject) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True)
class KindBehaviour:
    """How objects of one kind are completed and validated."""

    #: Sets default values, in new objects and in updates.
    set_defaults: Edit = _no_edit
    #: Completes a new object once its uid and name are known.
    complete_new: Edit = _no_edit
    #: The status of a new object; `None` keeps the status that a client sends.
    new_status: Callable[[JsonObject], JsonObject] | None = _empty_status
    #: Whether `metadata.generation` counts changes of the spec.
    has_generation: bool = False
    name_rule: NameRule = dns_subdomain_reasons
    validate: Callable[[JsonObject], Iterable[FieldError]] = _no_errors
    validate_update: Callable[[JsonObject, JsonObject], Iterable[FieldError]] = _no_errors
    #: The errors in a new status.
    validate_status: Callable[[JsonObject, JsonObject], Iterable[FieldError]] = _no_errors
    #: Whether an update may leave out the resource version.
    allows_unconditional_update: bool = True
    #: Whether an update of an object that does not exist creates it.
    allows_create_on_update: bool = False

    def prepare_for_create(self, resource: Resource, item: JsonObject) -> None:
        """Complete a new object before it is validated."""
        self.complete_new(item)
        if "status" in resource.subresources and self.new_status is not None:
            item["status"] = self.new_status(item)

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
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

    def changes_generation(self, item: JsonObject, old: JsonObject) -> bool:
        """Whether an update changes fields besides metadata and status."""
        if not self.has_generation:
            return False
        fields = (item.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
        return any(item.get(field) != old.get(field) for field in fields)

    def create_errors(self, item: JsonObject) -> list[FieldError]:
        """The errors in a new object."""
        return [*validate_metadata(item["metadata"], self.name_rule), *self.validate(item)]

    def update_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in an object that replaces *old*."""
        return [*self.validate(item), *self.validate_update(item, old)]

    def status_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in the status that replaces that of *old*."""
        return list(self.validate_status(item, old))


def _copy_field(field: str, source: JsonObject, target: JsonObject) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


class ResourceClaimBehaviour(KindBehaviour):
    """How resource claims are completed and validated."""

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
        """The object to be stored; devices that are no longer allocated lose their status."""
        made = KindBehaviour.prepare_for_update(self, item, old, subresource)
        if subresource == "status" and made.get("status"):
            drop_released_devices(made["status"], old.get("status") or {})
        return made

    def update_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in an object that replaces *old*: its spec is valid and cannot change."""
        return list(self.validate_update(item, old))


_DEFAULT = KindBehaviour()
_BY_KIND: Mapping[str, KindBehaviour] = {
    "Pod": KindBehaviour(
        set_defaults=set_pod_defaults,
        new_status=new_pod_status,
        validate=validate_pod,
        validate_update=validate_pod_update,
    ),
    "Namespace": KindBehaviour(
        set_defaults=set_namespace_defaults,
        complete_new=add_namespace_finalizer,
        new_status=new_namespace_status,
        name_rule=dns_label_reasons,
    ),
    "Node": KindBehaviour(
        set_defaults=set_node_defaults,
        new_status=None,
        validate=validate_node,
        validate_update=validate_node_update,
    ),
    "Service": KindBehaviour(
        set_defaults=set_service_defaults,
        new_status=new_service_status,
        name_rule=dns_1035_label_reasons,
        validate=validate_service,
        validate_update=validate_service_update,
    ),
    "PersistentVolume": KindBehaviour(
        set_defaults=set_volume_defaults,
        new_status=pending_status,
        validate=validate_volume,
    ),
    "PersistentVolumeClaim": KindBehaviour(
        set_defaults=set_claim_defaults,
        new_status=pending_status,
        validate=validate_claim,
        validate_update=validate_claim_update,
    ),
    "ReplicationController": KindBehaviour(
        set_defaults=set_replication_controller_defaults,
        new_status=new_replica_status,
        has_generation=True,
        validate=validate_replication_controller,
    ),
    "Deployment": KindBehaviour(
        set_defaults=set_deployment_defaults,
        has_generation=True,
        validate=validate_deployment,
        validate_update=validate_selector_unchanged,
    ),
    "ReplicaSet": KindBehaviour(
        set_defaults=set_replica_set_defaults,
        new_status=new_replica_status,
        has_generation=True,
        validate=validate_replica_set,
        validate_update=validate_selector_unchanged,
    ),
    "StatefulSet": KindBehaviour(
        set_defaults=set_stateful_set_defaults,
        new_status=new_replica_status,
        has_generation=True,
        validate=validate_stateful_set,
        validate_update=validate_stateful_set_update,
    ),
    "DaemonSet": KindBehaviour(
        set_defaults=set_daemon_set_defaults,
        complete_new=set_template_generation,
        new_status=new_daemon_set_status,
        has_generation=True,
        validate=validate_daemon_set,
        validate_update=validate_selector_unchanged,
    ),
    "Job": KindBehaviour(
        set_defaults=set_job_defaults,
        complete_new=set_job_selector,
        has_generation=True,
        validate=validate_job,
        validate_update=validate_job_update,
    ),
    "CronJob": KindBehaviour(
        set_defaults=set_cron_job_defaults, has_generation=True, validate=validate_cron_job
    ),
    "HorizontalPodAutoscaler": KindBehaviour(
        set_defaults=set_autoscaler_defaults,
        new_status=new_autoscaler_status,
        has_generation=True,
        validate=validate_autoscaler,
    ),
    "PodDisruptionBudget": KindBehaviour(
        new_status=new_budget_status,
        has_generation=True,
        validate=validate_budget,
        allows_unconditional_update=False,
    ),
    "PriorityClass": KindBehaviour(
        set_defaults=set_priority_class_defaults,
        has_generation=True,
        validate=validate_priority_class,
        validate_update=validate_priority_class_update,
    ),
    "StorageClass": KindBehaviour(
        set_defaults=set_storage_class_defaults,
        validate=validate_storage_class,
        validate_update=validate_storage_class_update,
    ),
    "DeviceClass": KindBehaviour(has_generation=True, validate=validate_device_class),
    "ResourceClaim": ResourceClaimBehaviour(
        set_defaults=set_resource_claim_defaults,
        validate=validate_resource_claim,
        validate_update=validate_resource_claim_update,
        validate_status=validate_resource_claim_status,
    ),
    "ResourceClaimTemplate": ResourceClaimBehaviour(
        set_defaults=set_claim_template_defaults,
        validate=validate_claim_template,
        validate_update=validate_resource_claim_update,
    ),
    "ResourceSlice": KindBehaviour(
        set_defaults=set_slice_defaults,
        has_generation=True,
        validate=validate_resource_slice,
        validate_update=validate_resource_slice_update,
    ),
    "CSIDriver": KindBehaviour(
        set_defaults=set_csi_driver_defaults, allows_unconditional_update=False
    ),
    "CSINode": KindBehaviour(validate=validate_csi_node, allows_unconditional_update=False),
    "CustomResourceDefinition": KindBehaviour(
        set_defaults=set_definition_defaults,
        complete_new=add_cleanup_finalizer,
        new_status=new_definition_status,
        has_generation=True,
        validate=validate_definition,
        validate_update=validate_definition_update,
    ),
    "ConfigMap": KindBehaviour(validate=validate_data_keys),
    "Secret": KindBehaviour(
        set_defaults=set_secret_defaults,
        validate=validate_data_keys,
    ),
    "LimitRange": KindBehaviour(set_defaults=set_limit_range_defaults),
    "ClusterRole": KindBehaviour(name_rule=path_segment_reasons),
    "ClusterRoleBinding": KindBehaviour(name_rule=path_segment_reasons),
    "Endpoints": KindBehaviour(allows_create_on_update=True),
    "Event": KindBehaviour(validate=validate_event, allows_create_on_update=True),
    "Role": KindBehaviour(name_rule=path_segment_reasons),
    "RoleBinding": KindBehaviour(name_rule=path_segment_reasons),
    "Lease": KindBehaviour(
        validate=validate_lease,
        allows_unconditional_update=False,
        allows_create_on_update=True,
    ),
}


class CustomBehaviour(KindBehaviour):
    """How custom objects are completed and validated; the schema is checked where they are read."""

    def prepare_for_create(self, resource: Resource, item: JsonObject) -> None:
        """Remove the status of a new object if only its subresource may write it."""
        if "status" in resource.subresources:
            item.pop("status", None)


class CustomBehaviourWithoutStatus(CustomBehaviour):
    """The behaviour where the status is a field as all others are."""

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:  # noqa: ARG002
        """The object to be stored: *item* as a whole."""
        return item

    def changes_generation(self, item: JsonObject, old: JsonObject) -> bool:
        """Whether an update changes anything besides metadata."""
        return {**item, "metadata": None} != {**old, "metadata": None}


_CUSTOM = CustomBehaviour(has_generation=True)
_CUSTOM_WITHOUT_STATUS = CustomBehaviourWithoutStatus(has_generation=True)


def behaviour_of(resource: Resource) -> KindBehaviour:
    """The behaviour of a resource's kind."""
    if resource.custom is not None:
        return _CUSTOM if "status" in resource.subresources else _CUSTOM_WITHOUT_STATUS
    return _BY_KIND.get(resource.kind, _DEFAULT)
