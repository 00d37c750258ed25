"""Media types of bodies and patches, and objects as JSON bytes and back."""

from __future__ import annotations

from typing import Any

import msgspec

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
#: The types in which an object may be sent.
OBJECT_TYPES = (JSON, YAML, PROTOBUF)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(type=dict[str, Any]).decode
