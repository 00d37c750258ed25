"""Discovery: which kinds an API server serves, and the path of the newest version known here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec

from podium.kube.api import KubeApi, decoded
from podium.kube.errors import ApiError, UnreachableError
from podium.kube.pauses import PAUSES, answered
from podium.objects.kinds.registry import KINDS


class Served(msgspec.Struct, frozen=True):
    """The groups, versions and kinds of one API server."""

    #: Every group and version, such as `v1` or `policy/v1beta1`.
    versions: frozenset[str]
    #: Of the kinds that scheduling reads, those that are served: group and version, plural.
    kinds: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    def path(self, kind: str, namespace: str | None = None) -> str | None:
        """The path of all objects of a kind, or of one namespace; None when not served."""
        found = self.kinds.get(kind)
        if found is None:
            return None
        version, plural = found
        within = f"namespaces/{namespace}/" if namespace is not None else ""
        return f"{root(version)}/{within}{plural}"

    def version(self, kind: str) -> str | None:
        """The `apiVersion` under which a kind is read."""
        found = self.kinds.get(kind)
        return None if found is None else found[0]


def root(version: str) -> str:
    """The path of a group and version: `/api/v1`, `/apis/policy/v1`."""
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True):
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct, frozen=True):
    groups: list[_Group] | None = None


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    verbs: list[str] | None = None


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] | None = None


async def discover(
    client: KubeApi,
    *,
    pauses: Iterable[float] = PAUSES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    failed: Callable[[UnreachableError], None] | None = None,
) -> Served:
    """Ask what is served, again after each of the *pauses* if no answer comes."""
    return await answered(partial(_discovered, client), pauses, sleep=sleep, failed=failed)


async def _discovered(client: KubeApi) -> Served:
    """The result of one round; only the groups that scheduling reads are looked into."""
    answer = decoded(await client.request("GET", "/apis"), "GET /apis", _Groups)
    versions = {"v1"} | {
        version.group_version for group in answer.groups or () for version in group.versions or ()
    }
    wanted = sorted({each for kind in KINDS.values() for each in kind.api_versions} & versions)
    listed = await asyncio.gather(*(_resources(client, version) for version in wanted))
    plurals = dict(zip(wanted, listed, strict=True))
    kinds = {}
    for kind in KINDS.values():
        for version in kind.api_versions:
            plural = plurals.get(version, {}).get(kind.name)
            if plural is not None:
                kinds[kind.name] = (version, plural)
                break
    return Served(frozenset(versions), kinds)


async def _resources(client: KubeApi, version: str) -> dict[str, str]:
    """The plural of each kind of one version that can be listed and watched."""
    try:
        text = await client.request("GET", root(version))
    except ApiError as error:
        if error.status == 404:  # removed since it was listed
            return {}
        raise
    answer = decoded(text, f"GET {root(version)}", _Resources)
    return {
        each.kind: each.name
        for each in answer.resources or ()
        if "/" not in each.name and {"list", "watch"} <= set(each.verbs or ())
    }
