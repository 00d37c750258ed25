"""Namespaces: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.kinds.kind import KindStrategy, Printer
from podium.objects.field_errors import dns_label_reasons
from podium.objects.kinds.meta import JsonObject

_NAME_LABEL = "kubernetes.io/metadata.name"


def set_namespace_defaults(item: JsonObject) -> None:
    """Set the defaults of a namespace: the label with its name."""
    about = item["metadata"]
    if about.get("name"):
        about.setdefault("labels", {})[_NAME_LABEL] = about["name"]
    item.setdefault("spec", {})


def add_namespace_finalizer(item: JsonObject) -> None:
    """Add the finalizer that keeps a terminating namespace until it is empty."""
    finalizers = item["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


KINDS: Mapping[str, KindStrategy] = {
    "Namespace": KindStrategy(
        set_defaults=set_namespace_defaults,
        complete_new=add_namespace_finalizer,
        new_status={"phase": "Active"},
        name_rule=dns_label_reasons,
        table=Printer("Name, Status=status.phase, Age"),
    ),
}
