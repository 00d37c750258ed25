"""What an API server would refuse in a manifest: versions, fields, types and values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import BY_NAME
from podium.lab.api.status import StatusError
from podium.lab.registry.admission import NAMESPACES
from podium.lab.registry.registry import Registry
from podium.lab.schema.typed_bodies import check_types, quantities_in, unknown_fields
from podium.lab.store.store import Store
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import (
    INT64_MAX,
    Amount,
    QuantityError,
    amount_of,
    milli,
    nano,
    value,
)
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from podium.what_if.check.manifest_state import ManifestObject

_INVALID: Final = 422
_REQUIRED: Final = "Required value"
#: Fields with amounts of resources by name.
_AMOUNTS: Final = frozenset({"requests", "limits", "capacity", "hard", "overhead"})
_POD_SPECS: Final = ("spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec")
#: What is left of a number with a binary suffix that is too large.
_CAPPED: Final = Amount(short=False, digits=INT64_MAX, scale=0)
_TOO_LARGE: Final = "than a number of 64 bits holds"


def problems(found: ManifestObject, *, of_values_only: bool = False) -> Iterator[tuple[str, str]]:
    """What an API server would refuse in an object: the path of each field, and a sentence.

    With *of_values_only* only what is written counts: not what is missing, nor the refusals of
    admission, since what an object refers to may be elsewhere.
    """
    resource = BY_NAME[found.kind]
    version = str(found.item["apiVersion"])
    if version != resource.group_version:
        known = {each.group_version for each in BY_NAME.values() if each.kind == found.kind}
        if version not in known:
            text = f"the version of a {found.kind} is {resource.group_version}, not {version}"
            yield "apiVersion", text
            return
    item = json.loads(json.dumps(found.item, default=str))
    try:
        typed = check_types(resource, item)
    except StatusError as error:
        yield _path_in(error.message, item), error.message
        return
    unknown = unknown_fields(found.kind, resource.group_version, typed)
    for path in unknown:
        yield path, f"there is no field {path}{_suggested(found, path)}"
    if unknown:
        return
    yield from _refused(found, typed, of_values_only=of_values_only)


def _refused(
    found: ManifestObject, typed: Mapping[str, Any], *, of_values_only: bool
) -> Iterator[tuple[str, str]]:
    """What the registry of the lab refuses when the object is created in it."""
    resource = BY_NAME[found.kind]
    registry = Registry(Store())
    if resource.namespaced and found.namespace not in NAMESPACES:
        registry.create("namespaces", {"metadata": {"name": found.namespace}})
    try:
        registry.create(
            resource.qualified,
            dict(typed),
            namespace=found.namespace,
            options=WriteOptions(dry_run=True),
        )
    except StatusError as error:
        if of_values_only and error.code != _INVALID:
            return
        causes = error.details.get("causes") or [{"message": error.message, "field": ""}]
        for cause in causes:
            path = str(cause.get("field", ""))
            if of_values_only and str(cause["message"]).startswith(_REQUIRED):
                continue
            yield path, f"{path}: {cause['message']}" if path else str(cause["message"])


def too_large(found: ManifestObject) -> Iterator[tuple[str, str, str]]:
    """Quantities that are no number of 64 bits, and sums of requests that are none.

    Each has its path, a sentence, and how that ends where it is read all the same.
    """
    version = BY_NAME[found.kind].group_version
    singles = [
        fault
        for path, amount in quantities_in(found.kind, version, found.item)
        for fault in _too_large_amount(path, amount)
    ]
    yield from singles or _too_large_sums(found.item)


def _too_large_amount(path: str, amount: Any) -> Iterator[tuple[str, str, str]]:
    of_cpu = path.endswith("cpu")
    try:
        is_capped = amount_of(amount) == _CAPPED
        billionths = nano(amount)
    except QuantityError:
        return
    if billionths // (10**6 if of_cpu else 10**9) <= INT64_MAX and not is_capped:
        return
    most = f"{INT64_MAX}m" if of_cpu else str(INT64_MAX)
    read = f"{milli(amount)}m" if of_cpu else str(value(amount))
    yield (
        path,
        f"{path}: {amount} is more {_TOO_LARGE}; the most is {most}",
        f"; it is read as {read}, as kube-scheduler reads it",
    )


def _too_large_sums(item: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Requests of the containers of a pod, and its overhead, whose sum would wrap around."""
    for holder in _POD_SPECS:
        spec: Any = item
        for step in holder.split("."):
            spec = spec.get(step) if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
            continue
        total: Counter[str] = Counter()
        asked = [
            (each.get("resources") or {}).get("requests") for each in spec.get("containers") or ()
        ]
        for requests in (*asked, spec.get("overhead")):
            for name, amount in (requests or {}).items():
                with suppress(QuantityError):
                    total[name] += nano(amount)
        for name, billionths in total.items():
            if billionths // (10**6 if name == "cpu" else 10**9) > INT64_MAX:
                path = f"{holder}.containers"
                yield (
                    path,
                    f"{path} request more {name} {_TOO_LARGE}",
                    "; the sum wraps around, as it does in kube-scheduler",
                )


def _path_in(message: str, item: Mapping[str, Any]) -> str:
    """The path of the field that an error about types names, without the Go type before it."""
    marked = message.partition("Go struct field ")[2].partition(" of type")[0]
    if marked:
        return marked.partition(".")[2]
    return next(_wrong_amounts(item, ""), "")


def _wrong_amounts(value: Any, path: str) -> Iterator[str]:
    """The paths of amounts of resources that cannot be read."""
    steps: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        steps = ((f"{path}.{name}" if path else name, each) for name, each in value.items())
    elif isinstance(value, list):
        steps = ((f"{path}[{number}]", each) for number, each in enumerate(value))
    for inner, each in steps:
        if inner.rpartition(".")[2] in _AMOUNTS and isinstance(each, dict):
            yield from (f"{inner}.{name}" for name, text in each.items() if not _is_amount(text))
        else:
            yield from _wrong_amounts(each, inner)


def _is_amount(text: object) -> bool:
    try:
        amount_of(str(text))
    except QuantityError:
        return False
    return True


def _suggested(found: ManifestObject, path: str) -> str:
    from podium.lab.schema import api_types  # noqa: PLC0415  only for a mistake

    holder, _, name = path.rpartition(".")
    model = api_types.model_of_kind(found.kind, BY_NAME[found.kind].group_version)
    for step in (part.partition("[")[0] for part in holder.split(".") if part):
        step_type = api_types.model(model).fields.get(step)
        if step_type is None or not step_type.is_model:
            return ""
        model = step_type.of
    hint = did_you_mean(name, list(api_types.model(model).fields))
    return f"; {hint}" if hint else ""
