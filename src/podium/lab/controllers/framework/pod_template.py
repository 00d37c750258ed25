"""Pods from the templates of workloads, and the hashes that name templates."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from podium.lab.controllers.framework.controller_ref import controller_ref
from podium.lab.registry.metadata import NAME_LETTERS
from podium.objects.kinds.meta import JsonObject


def pod_from_template(template: JsonObject, owner: JsonObject) -> JsonObject:
    """A pod managed by *owner*; the API server generates its name."""
    written = template.get("metadata") or {}
    metadata: JsonObject = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(written.get("labels") or {}),
        "ownerReferences": [controller_ref(owner)],
    }
    for part in ("annotations", "finalizers"):
        if written.get(part):
            metadata[part] = written[part]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def template_hash(value: Any, length: int = 10) -> str:
    """A hash of a JSON value that can stand in a name; the order of keys does not matter."""
    data = hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()
    number = int.from_bytes(data)
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(NAME_LETTERS))
        letters.append(NAME_LETTERS[letter])
    return "".join(letters)
