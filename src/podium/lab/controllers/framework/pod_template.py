"""Pods from templates, as controllers make them."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from podium.lab.controllers.framework.controller_ref import reference
from podium.objects.kinds.meta import JsonObject

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # as in Kubernetes: no words by accident


def from_template(template: JsonObject, owner: JsonObject) -> JsonObject:
    """A pod of *template* that *owner* manages; its name is generated unless one is given."""
    written = template.get("metadata") or {}
    metadata: JsonObject = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(written.get("labels") or {}),
        "ownerReferences": [reference(owner)],
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


def digest(value: Any, length: int = 10) -> str:
    """A short name for a value: the same for equal values, whatever the order of their keys."""
    data = hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()
    number = int.from_bytes(data)
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)
