"""The document KubeSchedulerConfiguration, version v1, as it is written in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.declaration import TYPE_META
from podium.objects.go_types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    RAW,
    STRING,
    Field,
    Slice,
    Struct,
    record,
)
from podium.profiles.config.json_values import JsonValue
from podium.profiles.policy.document import ExtenderConfig, ManagedResource, TlsConfig

if TYPE_CHECKING:
    from podium.engine.framework.generation import Generation

GROUP: Final = "kubescheduler.config.k8s.io"
VERSION: Final = "v1"
KIND: Final = "KubeSchedulerConfiguration"
API_VERSION: Final = f"{GROUP}/{VERSION}"

MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin in a list; a weight of 0 means that none is given."""

    name: str = ""
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins that a profile enables and disables at one extension point."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()

    def disables(self, name: str) -> bool:
        """Whether a plugin is disabled by its name."""
        return any(entry.name == name for entry in self.disabled)


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The arguments of a plugin: as written, and decoded if the plugin declares some."""

    name: str = ""
    raw: JsonValue = None
    args: Any = None

    @property
    def given(self) -> Any:
        """The decoded arguments, or what is written if they cannot be decoded."""
        return self.raw if self.args is None else self.args


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """A profile as it is written."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[str, PluginSet] = field(default_factory=dict)
    plugin_config: tuple[PluginConfig, ...] = ()

    def plugin_set(self, point: str) -> PluginSet:
        """What is written for one extension point."""
        return self.plugins.get(point) or PluginSet()


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Leader election between replicas; times are in nanoseconds."""

    leader_elect: bool = True
    lease_duration: int = 0
    renew_deadline: int = 0
    retry_period: int = 0
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """The connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: int = 0


@dataclass(frozen=True, slots=True)
class ConfigurationDocument:
    """A KubeSchedulerConfiguration as it is written."""

    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[ProfileDocument, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False


_PLUGIN = record("v1.Plugin", PluginEntry, name=STRING, weight=INT32)
_SET = record("v1.PluginSet", PluginSet, enabled=Slice(_PLUGIN), disabled=Slice(_PLUGIN))


def _by_point(**sets: Any) -> dict[str, Any]:
    return sets


_PLUGIN_CONFIG = record("v1.PluginConfig", PluginConfig, name=STRING, raw=("args", RAW))
_TLS = record(
    "v1.ExtenderTLSConfig",
    TlsConfig,
    insecure=BOOL,
    server_name=STRING,
    cert_file=STRING,
    key_file=STRING,
    ca_file=STRING,
    cert_data=BYTES,
    key_data=BYTES,
    ca_data=BYTES,
)
_MANAGED = record(
    "v1.ExtenderManagedResource", ManagedResource, name=STRING, ignored_by_scheduler=BOOL
)
_EXTENDER = record(
    "v1.Extender",
    ExtenderConfig,
    url_prefix=STRING,
    filter_verb=STRING,
    preempt_verb=STRING,
    prioritize_verb=STRING,
    weight=INT64,
    bind_verb=STRING,
    enable_https=("enableHTTPS", BOOL),
    tls_config=_TLS,
    http_timeout=DURATION,
    node_cache_capable=BOOL,
    managed_resources=Slice(_MANAGED, list),
    ignorable=BOOL,
)
_LEADER_ELECTION = record(
    "v1alpha1.LeaderElectionConfiguration",
    LeaderElection,
    leader_elect=BOOL,
    lease_duration=DURATION,
    renew_deadline=DURATION,
    retry_period=DURATION,
    resource_lock=STRING,
    resource_name=STRING,
    resource_namespace=STRING,
)
_CLIENT_CONNECTION = record(
    "v1alpha1.ClientConnectionConfiguration",
    ClientConnection,
    kubeconfig=STRING,
    accept_content_types=STRING,
    content_type=STRING,
    qps=FLOAT32,
    burst=INT32,
)
_DEBUGGING: Final = {
    "enableProfiling": Field("enable_profiling", BOOL, "DebuggingConfiguration"),
    "enableContentionProfiling": Field(
        "enable_contention_profiling", BOOL, "DebuggingConfiguration"
    ),
}


def schemas(generation: Generation) -> dict[str, Struct]:
    """Kind -> how it is decoded: the configuration, and the arguments of each plugin."""
    known = _SCHEMAS.get(generation.name)
    if known is None or known[0] is not generation:
        declared = (plugin.arguments for plugin in generation.plugins)
        arguments = {each.kind: each.schema for each in declared if each}
        made = {KIND: _configuration(generation.points), **arguments}
        known = _SCHEMAS[generation.name] = (generation, made)
    return known[1]


#: Name of a generation -> the generation and its schemas.
_SCHEMAS: Final[dict[str, tuple[Generation, dict[str, Struct]]]] = {}


def _configuration(points: tuple[str, ...]) -> Struct:
    plugins = Struct(
        "v1.Plugins", _by_point, {point: Field(point, _SET) for point in (*points, MULTI_POINT)}
    )
    profile = record(
        "v1.KubeSchedulerProfile",
        ProfileDocument,
        scheduler_name=STRING,
        percentage_of_nodes_to_score=INT32,
        plugins=plugins,
        plugin_config=Slice(_PLUGIN_CONFIG),
    )
    document = record(
        f"v1.{KIND}",
        ConfigurationDocument,
        parallelism=INT32,
        leader_election=_LEADER_ELECTION,
        client_connection=_CLIENT_CONNECTION,
        percentage_of_nodes_to_score=INT32,
        pod_initial_backoff_seconds=INT64,
        pod_max_backoff_seconds=INT64,
        profiles=Slice(profile),
        extenders=Slice(_EXTENDER),
        delay_cache_until_active=BOOL,
    )
    return Struct(
        document.go, ConfigurationDocument, {**TYPE_META, **_DEBUGGING, **document.fields}
    )
