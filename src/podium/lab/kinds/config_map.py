"""Config maps and secrets: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from podium.lab.api.status import FieldErrors, invalid_value
from podium.lab.kinds.field_checks import config_key_reasons
from podium.lab.kinds.kind import KindStrategy, Printer, age, name_of, object_at, text_at
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
            for reason in config_key_reasons(name):
                yield invalid_value(f"{field}[{name}]", name, reason)


def _config_map_cells(config: JsonObject, now: float) -> list[Any]:
    data = len(object_at(config, "data")) + len(object_at(config, "binaryData"))
    return [name_of(config), data, age(config, now)]


def _secret_cells(secret: JsonObject, now: float) -> list[Any]:
    return [
        name_of(secret),
        text_at(secret, "type"),
        len(object_at(secret, "data")),
        age(secret, now),
    ]


KINDS: Mapping[str, KindStrategy] = {
    "ConfigMap": KindStrategy(
        validate=validate_data_keys, table=Printer("Name, Data, Age", _config_map_cells)
    ),
    "Secret": KindStrategy(
        set_defaults=set_secret_defaults,
        validate=validate_data_keys,
        table=Printer("Name, Type, Data, Age", _secret_cells),
    ),
}
