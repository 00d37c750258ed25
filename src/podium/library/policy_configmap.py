"""A Policy that the cluster keeps in a ConfigMap, as kube-scheduler v1.13 reads it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from podium.errors import ConfigError
from podium.kube.client import ApiClient
from podium.library.profile_choice import by_policy
from podium.profiles.policy.build import parse_policy

if TYPE_CHECKING:
    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource

#: The key of the ConfigMap that holds the Policy.
POLICY_KEY: Final = "policy.cfg"


def policy_in_configmap(
    access: Access, source: ProfileSource, namespace: str, name: str
) -> ChosenProfiles:
    """Read the ConfigMap and make the profile of the Policy in it, with the source's options."""
    where = f"ConfigMap {namespace}/{name}"
    found = asyncio.run(_get(access, f"/api/v1/namespaces/{namespace}/configmaps/{name}"))
    text = (found.get("data") or {}).get(POLICY_KEY)
    if text is None:
        raise ConfigError(f"{where} has no key {POLICY_KEY}", hint="put the Policy there")
    return by_policy(parse_policy(text, where), source, where)


async def _get(access: Access, path: str) -> Any:
    async with ApiClient(access) as client:
        return await client.get(path)
