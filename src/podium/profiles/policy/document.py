"""The Policy document, version v1, as it is written in files.

The default of a field is what it means when it is absent; an absent list of predicates, priorities
or extenders is not the same as an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.declaration import PolicyArgument
from podium.generations.predicates import PREDICATE_ARGUMENTS, PRIORITY_ARGUMENTS
from podium.objects.kinds.meta import Int64


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
