"""The generation that decides for a live cluster: that of the release which the cluster runs.

The scheduler's own version counts where its pods can be seen, as on clusters that kubeadm made.
Otherwise it is that of the API server, which is at most one minor release away.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from podium.errors import ConfigError
from podium.kube.client import ApiClient
from podium.kube.errors import ApiError, UnreachableError
from podium.kube.pauses import PAUSES, answered
from podium.library.profile_source import configured_generation
from podium.releases import DEFAULT_RELEASE, RELEASES, minor_of, release_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource

_SCHEDULERS: Final = "/api/v1/namespaces/kube-system/pods"
_SCHEDULER: Final = "kube-scheduler"
_SECONDS: Final = 10.0
_FIRST: Final = (1, 0)


class Versions(NamedTuple):
    """The versions that a cluster reports; empty where it does not."""

    server: str = ""
    scheduler: str = ""


def choose_in_cluster(
    source: ProfileSource, access: Access, namespace: str = "", configmap: str | None = None
) -> ChosenProfiles:
    """The profiles of the source, of the cluster's generation unless the source names one.

    Where a *configmap* is named, the Policy in it counts instead.
    """
    if configmap is not None:
        return policy_in_configmap(access, source, namespace, configmap)
    return source_in_cluster(source, access).choose()


def source_in_cluster(
    source: ProfileSource,
    access: Access,
    pauses: Iterable[float] = PAUSES,
    failed: Callable[[UnreachableError], None] | None = None,
) -> ProfileSource:
    """The source with the generation of the cluster, which is passed to `source.notify`.

    A generation, Policy or provider that is named or configured stays. So does the default if the
    cluster does not say which release it runs. Without an answer the cluster is asked again after
    each of the *pauses*, and *failed* is called. After the last one the error is raised.
    """
    named = source.profile or source.policy or source.provider
    if named or configured_generation(source.environment):
        return source
    try:
        versions = asyncio.run(_answered(access, pauses, failed))
    except UnreachableError:
        raise
    except ApiError:
        return source  # whatever reads the cluster next says why it cannot be read
    name, sentence = decided_as(versions)
    if sentence:
        source.notify(sentence)
    return replace(source, profile=name) if name else source


def decided_as(versions: Versions) -> tuple[str, str]:
    """The generation for these versions, and why, in a sentence; both empty if none is known."""
    version = versions.scheduler or versions.server
    minor = minor_of(version)
    if minor is None or minor < _FIRST:
        return "", ""  # no version, or one of a build without
    of = "the cluster's scheduler" if versions.scheduler else "the API server"
    release = release_of(version)
    if release is not None:
        return release.name, f"decided as {release.name}: {of} is {version}"
    newest = RELEASES[-1]
    if minor > (minor_of(newest.name) or minor):
        told = f"{of} is {version}, which is newer"
        return newest.name, f"decided as {newest.name}, the newest release known: {told}"
    told = f"{of} is {version}, which is older than the releases known"
    return DEFAULT_RELEASE.name, f"decided as {DEFAULT_RELEASE.name}: {told}"


async def _answered(
    access: Access,
    pauses: Iterable[float],
    failed: Callable[[UnreachableError], None] | None,
) -> Versions:
    return await answered(partial(_versions, access), pauses, failed=failed)


async def _versions(access: Access) -> Versions:
    async with ApiClient(access) as client:
        server = _decoded(await client.request("GET", "/version", timeout=_SECONDS))
        params = {"labelSelector": f"component={_SCHEDULER}", "limit": "10"}
        try:
            answer = await client.request("GET", _SCHEDULERS, params=params, timeout=_SECONDS)
        except ApiError:
            pods: Any = {}  # it may not be allowed to see them
        else:
            pods = _decoded(answer)
    told = server.get("gitVersion")
    return Versions(told if isinstance(told, str) else "", _scheduler_version(pods))


def _decoded(answer: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _scheduler_version(pods: dict[str, Any]) -> str:
    """The tag of the scheduler's image, where all replicas have the same release."""
    tags = {
        container.get("image", "").rpartition(":")[2]
        for pod in pods.get("items") or ()
        for container in (pod.get("spec") or {}).get("containers") or ()
        if container.get("name") == _SCHEDULER
    }
    releases = {minor_of(tag) for tag in tags}
    return min(tags) if len(releases) == 1 and None not in releases else ""


#: The key of the ConfigMap that holds the Policy.
POLICY_KEY: Final = "policy.cfg"


def policy_in_configmap(
    access: Access, source: ProfileSource, namespace: str, name: str
) -> ChosenProfiles:
    """Read the ConfigMap and make the profile of the Policy in it, with the source's options."""
    # With the modules of the scheduler, which are otherwise imported after the lists are asked for.
    from podium.library.profile_choice import by_policy  # noqa: PLC0415
    from podium.profiles.policy.build import parse_policy  # noqa: PLC0415

    where = f"ConfigMap {namespace}/{name}"
    found = asyncio.run(_get(access, f"/api/v1/namespaces/{namespace}/configmaps/{name}"))
    text = (found.get("data") or {}).get(POLICY_KEY)
    if text is None:
        raise ConfigError(f"{where} has no key {POLICY_KEY}", hint="put the Policy there")
    return by_policy(parse_policy(text, where), source, where)


async def _get(access: Access, path: str) -> Any:
    async with ApiClient(access) as client:
        return await client.get(path)
