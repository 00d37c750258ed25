"""The Policy document, version v1: read from JSON or YAML as kube-scheduler reads it, and checked.

The default of a field is what it means when it is absent; an absent list of predicates, priorities
or extenders is not the same as an empty one. Null is the same as absent, and unknown keys are
skipped with a note. Keys are case-sensitive, except inside an extender. kube-scheduler refuses a
Policy in one sentence with all that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from podium.engine.framework.declaration import PolicyArgument
from podium.errors import ConfigError, InputError
from podium.generations.predicates import PREDICATE_ARGUMENTS, PRIORITY_ARGUMENTS
from podium.objects.field_errors import joined
from podium.objects.kinds.meta import Int64
from podium.objects.names import is_extended, label_key_reasons
from podium.objects.reading.json_text import looks_like_json, values
from podium.objects.reading.type_errors import explain
from podium.objects.reading.yaml_text import documents
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A mapping of the document."""


def _argument(name: str, declared: Sequence[PolicyArgument[Any]]) -> type[msgspec.Struct]:
    """An `argument`: exactly one of its members makes a rule."""
    fields = [(each.attribute, each.struct | None, None) for each in declared]
    return msgspec.defstruct(name, fields, bases=(_Part,), frozen=True)


if TYPE_CHECKING:
    PredicateArgument = Any
    PriorityArgument = Any
else:
    PredicateArgument = _argument("PredicateArgument", PREDICATE_ARGUMENTS)
    PriorityArgument = _argument("PriorityArgument", PRIORITY_ARGUMENTS)


class PredicatePolicy(_Part, frozen=True):
    """A predicate; its `order`, the position among the others, is an addition of Podium."""

    name: str = ""
    argument: PredicateArgument | None = None
    order: Int64 | None = None


class PriorityPolicy(_Part, frozen=True):
    """A priority and its weight."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class ManagedResource(_Part, frozen=True):
    """A resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class TlsConfig(_Part, frozen=True):
    """TLS of the connection to an extender; data is base64."""

    insecure: bool = msgspec.field(default=False, name="Insecure")
    server_name: str = msgspec.field(default="", name="ServerName")
    cert_file: str = msgspec.field(default="", name="CertFile")
    key_file: str = msgspec.field(default="", name="KeyFile")
    ca_file: str = msgspec.field(default="", name="CAFile")
    cert_data: bytes = msgspec.field(default=b"", name="CertData")
    key_data: bytes = msgspec.field(default=b"", name="KeyData")
    ca_data: bytes = msgspec.field(default=b"", name="CAData")


class ExtenderConfig(_Part, frozen=True):
    """An extender: an HTTP service that filters, scores, preempts or binds."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: Int64 = 0
    enable_https: bool = False
    tls_config: TlsConfig | None = None
    #: Nanoseconds.
    http_timeout: Int64 = 0
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] = []
    ignorable: bool = False


class Policy(_Part, frozen=True):
    """The whole document."""

    kind: str = "Policy"
    api_version: str = ""
    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[ExtenderConfig] | None = None
    hard_pod_affinity_symmetric_weight: Int64 = 0
    always_check_all_predicates: bool = False


MAX_INT = (1 << 63) - 1
MAX_SCORE = 10
MAX_WEIGHT = MAX_INT // MAX_SCORE


def check_policy(policy: Policy) -> None:
    """Refuse wrong weights and managed resources, and several extenders that bind."""
    texts = list(_errors(policy))
    if texts:
        raise ConfigError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _errors(policy: Policy) -> Iterator[str]:
    for priority in policy.priorities or ():
        if not 0 < priority.weight < MAX_WEIGHT:
            yield (
                f"Priority {priority.name} should have a positive weight applied to it "
                "or it has overflown"
            )
    seen: set[str] = set()
    for extender in policy.extenders or ():
        if extender.prioritize_verb and extender.weight <= 0:
            yield (
                f"Priority for extender {extender.url_prefix} "
                "should have a positive weight applied to it"
            )
        yield from _resources(extender, seen)
    binders = sum(bool(extender.bind_verb) for extender in policy.extenders or ())
    if binders > 1:
        yield f"Only one extender can implement bind, found {binders}"


def _resources(extender: ExtenderConfig, seen: set[str]) -> Iterator[str]:
    for resource in extender.managed_resources:
        reasons = label_key_reasons(resource.name)
        yield from reasons
        if not reasons and not is_extended(resource.name):
            yield f"{resource.name} is an invalid extended resource name"
        if resource.name in seen:
            yield f"Duplicate extender managed resource name {resource.name}"
        seen.add(resource.name)


_KEY = "policy.cfg"
_NANOSECONDS = "it is a number of nanoseconds: 5000000000 is five seconds"


def parse_policy(text: str, where: str) -> Mapping[str, Any]:
    """The Policy in *text*, which may be the text of a ConfigMap that holds one."""
    found = _mapping(text, where)
    if found.get("kind") != "ConfigMap":
        return found
    data = found.get("data")
    inner = data.get(_KEY) if isinstance(data, dict) else None
    if not isinstance(inner, str):
        raise ConfigError(f'missing policy config map value at key "{_KEY}"', hint=f"in {where}")
    return _mapping(inner, f"{where}: {joined('data', _KEY)}")


def _mapping(text: str, where: str) -> dict[str, Any]:
    try:
        found = _plain(text)
    except InputError as error:
        raise _refused(error, where) from None
    if len(found) != 1:
        raise ConfigError(f"{where}: expected one Policy, got {len(found)} documents")
    if not isinstance(found[0], dict):
        raise _not_a_mapping(where)
    return found[0]


def _plain(text: str) -> list[Any]:
    data = text.encode(errors="replace")
    if not looks_like_json(data):
        return [document.value for document in documents(text)]
    try:
        return [msgspec.json.decode(value) for value in values(data)]
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise InputError(f"is not readable JSON: {error}") from None


def _refused(error: InputError, where: str) -> ConfigError:
    text = InputError(error.what, where=where, object=error.object, path=error.path)
    return ConfigError(str(text), hint=error.hint)


def _not_a_mapping(where: str) -> ConfigError:
    return ConfigError(
        f"{where}: expected a Policy, got something else",
        hint="it begins with kind: Policy and apiVersion: v1",
    )


def read_policy(document: Mapping[str, Any], where: str) -> tuple[Policy, list[str]]:
    """The decoded Policy, and a note for every key that no field has."""
    if not isinstance(document, Mapping):
        raise _not_a_mapping(where)
    notes: list[str] = []
    known = _known(dict(document), inspect.type_info(Policy), "", notes, fold=False)
    try:
        policy = msgspec.convert(known, Policy)
    except msgspec.ValidationError as error:
        found = explain(error, "", known)
        if found.path.endswith(".httpTimeout"):
            found.hint = _NANOSECONDS
        raise _refused(found, where) from None
    _check_version(policy, where)
    return policy, notes


def _check_version(policy: Policy, where: str) -> None:
    if policy.kind != "Policy":
        raise ConfigError(f"{where}: kind: expected Policy, got {policy.kind!r}")
    if not policy.api_version:
        raise ConfigError(
            f"{where}: apiVersion is missing",
            hint="write apiVersion: v1; without it kube-scheduler ignores the rest of the file",
        )
    if policy.api_version != "v1":
        raise ConfigError(f"{where}: apiVersion: expected v1, got {policy.api_version!r}")


def _known(value: Any, kind: inspect.Type, path: str, notes: list[str], *, fold: bool) -> Any:
    """*value* without nulls and unknown keys; known keys get the spelling of their field."""
    kind = _not_none(kind)
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        item = kind.item_type
        return [_known(v, item, f"{path}[{i}]", notes, fold=fold) for i, v in enumerate(value)]
    if not isinstance(kind, inspect.StructType) or not isinstance(value, dict):
        return value
    fold = fold or kind.cls is ExtenderConfig
    fields = {_folded(field.encode_name, fold=fold): field for field in kind.fields}
    found = {}
    for key, each in value.items():
        field = fields.get(_folded(str(key), fold=fold))
        if field is None:
            names = [known.encode_name for known in kind.fields]
            notes.append(_ignored(joined(path, str(key)), did_you_mean(str(key), names)))
        elif each is not None:
            name = field.encode_name
            found[name] = _known(each, field.type, joined(path, name), notes, fold=fold)
    return found


def _not_none(kind: inspect.Type) -> inspect.Type:
    """The type of a field when it is not null."""
    if isinstance(kind, inspect.UnionType):
        return next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind


def _folded(key: str, *, fold: bool) -> str:
    return key.casefold() if fold else key


def _ignored(path: str, hint: str) -> str:
    note = f"{path} is not a field of a Policy and is ignored"
    return f"{note}; {hint}" if hint else note
