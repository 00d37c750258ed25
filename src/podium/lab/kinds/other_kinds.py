"""Kinds with a table and nothing else of their own: defaults, validation, table.

Upstream: pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.kinds.formats import NONE, age, container_cells, labels_text
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.object_fields import list_at, name_of, number_at, object_at
from podium.lab.kinds.printer import Printer
from podium.lab.kinds.workload_fields import wanted_replicas
from podium.objects.kinds.meta import JsonObject


def _named_cells(object_: JsonObject, now: float) -> list[Any]:
    return [name_of(object_), age(object_, now)]


def _quota_cells(quota: JsonObject, now: float) -> list[Any]:
    used, hard = object_at(quota, "status", "used"), object_at(quota, "status", "hard")
    rows: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        rows[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [name_of(quota), ", ".join(rows[False]), ", ".join(rows[True]), age(quota, now)]


def _controller_revision_cells(revision: JsonObject, now: float) -> list[Any]:
    owner = next(
        (
            each
            for each in list_at(revision, "metadata", "ownerReferences")
            if each.get("controller")
        ),
        None,
    )
    name = NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")) + (f".{group}" if group else "")
        name = f"{kind.lower()}/{owner.get('name', '')}"
    return [
        name_of(revision),
        name,
        number_at(revision, "revision"),
        age(revision, now),
    ]


def _pod_template_cells(template: JsonObject, _now: float) -> list[Any]:
    inner = object_at(template, "template")
    return [
        name_of(template),
        *container_cells(inner),
        labels_text(object_at(inner, "metadata", "labels")),
    ]


def _scale_cells(scale: JsonObject, now: float) -> list[Any]:
    name = name_of(scale)
    return [name, wanted_replicas(scale), number_at(scale, "status", "replicas"), age(scale, now)]


KINDS: Mapping[str, KindStrategy] = {
    "ControllerRevision": KindStrategy(
        table=Printer("Name, Controller, Revision, Age", _controller_revision_cells)
    ),
    "PodTemplate": KindStrategy(
        table=Printer("Name, Containers, Images, Pod Labels", _pod_template_cells)
    ),
    "ResourceQuota": KindStrategy(table=Printer("Name, Request, Limit, Age", _quota_cells)),
    "Scale": KindStrategy(table=Printer("Name, #Desired, #Available, Age", _scale_cells)),
    "ServiceAccount": KindStrategy(table=Printer("Name, Age", _named_cells)),
}
