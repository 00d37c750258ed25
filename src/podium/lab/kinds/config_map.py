"""Config maps and secrets: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from podium.lab.api.status import FieldErrors
from podium.lab.kinds.field_checks import config_key_reasons, validate_name
from podium.lab.kinds.kind import KindStrategy, Printer, object_at
from podium.objects.kinds.meta import JsonObject


def set_secret_defaults(item: JsonObject) -> None:
    """Set the defaults of a secret: `stringData` moves to `data` as base64."""
    item.setdefault("type", "Opaque")
    texts = item.pop("stringData", None) or {}
    if texts:
        data = item.setdefault("data", {})
        data.update({key: b64encode(text.encode()).decode() for key, text in texts.items()})


def validate_data_keys(item: JsonObject) -> FieldErrors:
    """Validate the keys of a config map or a secret."""
    for field in ("data", "binaryData"):
        for name in item.get(field) or {}:
            yield from validate_name(name, f"{field}[{name}]", config_key_reasons)


def _count(item: JsonObject, _now: float) -> int:
    return len(object_at(item, "data")) + len(object_at(item, "binaryData"))


KINDS: Mapping[str, KindStrategy] = {
    "ConfigMap": KindStrategy(
        validate=validate_data_keys, table=Printer("Name, Data, Age", {"Data": _count})
    ),
    "Secret": KindStrategy(
        set_defaults=set_secret_defaults,
        validate=validate_data_keys,
        table=Printer("Name, Type=type, Data, Age", {"Data": _count}),
    ),
}
