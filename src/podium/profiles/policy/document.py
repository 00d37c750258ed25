"""The Policy document, version v1, as it is written in files.

The default of a field is what it means when it is absent; an absent list of predicates, priorities
or extenders is not the same as an empty one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A mapping of the document."""


class ServiceAffinity(_Part, frozen=True):
    """Keep the pods of a service on nodes with the same values of these labels."""

    labels: list[str] = []


class LabelsPresence(_Part, frozen=True):
    """All of these labels, or none of them, must be on the node."""

    labels: list[str] = []
    presence: bool = False


class PredicateArgument(_Part, frozen=True):
    """Exactly one of its members makes a predicate."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(_Part, frozen=True):
    """A predicate; its `order`, the position among the others, is an addition of Podium."""

    name: str = ""
    argument: PredicateArgument | None = None
    order: Int | None = None


class ServiceAntiAffinity(_Part, frozen=True):
    """Spread the pods of a service over the values of this label."""

    label: str = ""


class LabelPreference(_Part, frozen=True):
    """Prefer nodes with this label, or without it."""

    label: str = ""
    presence: bool = False


class ShapePoint(_Part, frozen=True):
    """A point of the function from utilization to score."""

    utilization: Int = 0
    score: Int = 0


class CapacityRatio(_Part, frozen=True):
    """Score a node by its utilization with the pod on it."""

    shape: list[ShapePoint] = []


class PriorityArgument(_Part, frozen=True):
    """Exactly one of its members makes a priority."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: CapacityRatio | None = None


class PriorityPolicy(_Part, frozen=True):
    """A priority and its weight."""

    name: str = ""
    weight: Int = 0
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
    weight: Int = 0
    enable_https: bool = False
    tls_config: TlsConfig | None = None
    #: Nanoseconds.
    http_timeout: Int = 0
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
    hard_pod_affinity_symmetric_weight: Int = 0
    always_check_all_predicates: bool = False
