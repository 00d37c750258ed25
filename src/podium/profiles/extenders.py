"""Extenders as the engine knows them, made from what a configuration says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.extenders import Extender
from podium.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.choices import ExtenderProtocol
    from podium.profiles.policy.document import ExtenderConfig, TlsConfig

_NANOSECONDS = 1_000_000_000
_DEFAULT_SECONDS = 5.0


def make_extenders(
    configs: Iterable[ExtenderConfig], protocol: ExtenderProtocol
) -> tuple[Extender, ...]:
    """The extenders, in the order in which they are called."""
    return tuple(_extender(config, protocol) for config in configs)


def ignored_resources(configs: Iterable[ExtenderConfig]) -> frozenset[str]:
    """The resources that the built-in predicates leave to some extender."""
    return frozenset(
        resource.name
        for config in configs
        for resource in config.managed_resources
        if resource.ignored_by_scheduler
    )


def describe_extender(extender: Extender) -> dict[str, Any]:
    """An extender as plain data."""
    verbs = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    seconds = extender.timeout_seconds
    return {
        "urlPrefix": extender.url_prefix,
        "verbs": {call: verb for call, verb in verbs.items() if verb},
        "weight": extender.weight,
        "timeoutSeconds": None if math.isinf(seconds) else seconds,
        "managedResources": sorted(extender.managed_resources),
        "ignorable": extender.ignorable,
    }


def _extender(config: ExtenderConfig, protocol: ExtenderProtocol) -> Extender:
    return Extender(
        url_prefix=config.url_prefix,
        filter_verb=config.filter_verb,
        prioritize_verb=config.prioritize_verb,
        preempt_verb=config.preempt_verb,
        bind_verb=config.bind_verb,
        weight=config.weight,
        enable_https=config.enable_https,
        tls=_tls(config),
        timeout_seconds=_seconds(config.http_timeout),
        node_cache_capable=config.node_cache_capable,
        managed_resources=frozenset(resource.name for resource in config.managed_resources),
        ignorable=config.ignorable,
        protocol=protocol,
    )


def _seconds(nanoseconds: int) -> float:
    """0 is the default, a negative time is no limit."""
    if nanoseconds == 0:
        return _DEFAULT_SECONDS
    return nanoseconds / _NANOSECONDS if nanoseconds > 0 else math.inf


def _tls(config: ExtenderConfig) -> dict[str, object]:
    """The fields that are set, by attribute name (`ca_file`, `insecure`)."""
    tls: TlsConfig | None = config.tls_config
    if tls is None:
        return {}
    if tls.insecure and (tls.ca_file or tls.ca_data):
        raise ConfigError(
            "specifying a root certificates file with the insecure flag is not allowed",
            hint="give either a certificate authority or Insecure",
        )
    return {name: value for name, value in msgspec.structs.asdict(tls).items() if value}
