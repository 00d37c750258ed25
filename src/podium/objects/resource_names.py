"""Classes of resource names, which decide what the scheduler counts.

Upstream: pkg/apis/core/v1/helper, Kubernetes v1.13.
"""

from __future__ import annotations

from functools import lru_cache

from podium.objects.names import is_qualified_name


def is_prefixed_native(name: str) -> bool:
    """Whether it contains `kubernetes.io/`, be it after other letters (`notkubernetes.io/x`)."""
    return "kubernetes.io/" in name


def is_native(name: str) -> bool:
    """Whether it is defined by Kubernetes: without a prefix, or with the native one."""
    return "/" not in name or is_prefixed_native(name)


def is_hugepages(name: str) -> bool:
    """Whether it counts pages of one size."""
    return name.startswith("hugepages-")


def is_attachable(name: str) -> bool:
    """Whether it counts volumes of one type that a node can attach."""
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=1 << 12)
def is_extended(name: str) -> bool:
    """Whether it is an extended resource: prefixed, not native, and a legal quota name."""
    if is_native(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


@lru_cache(maxsize=1 << 12)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts it besides cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended(name) or is_hugepages(name) or is_prefixed_native(name) or is_attachable(name)
    )
