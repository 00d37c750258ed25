"""What persistent volumes and claims have in common.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from podium.lab.api.field_errors import FieldErrors, invalid_value, not_supported
from podium.lab.kinds.object_fields import list_at, object_at, text_at
from podium.lab.validation.names import dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_SHORT_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def pending_status(_item: JsonObject) -> JsonObject:
    """The status of a new claim or volume."""
    return {"phase": "Pending"}


def validate_access_modes(spec: JsonObject) -> FieldErrors:
    """Validate the access modes of a claim or volume."""
    for mode in spec.get("accessModes") or ():
        if mode not in _ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, _ACCESS_MODES)


def validate_class_and_mode(spec: JsonObject) -> FieldErrors:
    """Validate the name of the class and the volume mode."""
    name = spec.get("storageClassName")
    if name:
        for reason in dns_subdomain_reasons(name):
            yield invalid_value("spec.storageClassName", name, reason)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield not_supported("spec.volumeMode", mode, _VOLUME_MODES)


def access_modes_cell(holder: JsonObject) -> str:
    """The access modes in their short form."""
    asked = list_at(holder, "accessModes")
    return ",".join(short for mode, short in _SHORT_ACCESS_MODES.items() if mode in asked)


def storage_class_cell(object_: JsonObject) -> str:
    """The name of the storage class."""
    old = object_at(object_, "metadata", "annotations").get(_OLD_CLASS_ANNOTATION)
    return text_at(object_, "spec", "storageClassName") if old is None else str(old)
