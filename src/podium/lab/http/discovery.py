"""Discovery: which groups, versions and resources there are.

Upstream: apiserver/pkg/endpoints/discovery; apidiscovery.k8s.io/v2 is the aggregated form.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from podium.lab.api.resources import Resource, groups
from podium.objects.kinds.meta import JsonObject
from podium.releases import Release


@cache
def server_version(release: Release) -> JsonObject:
    """The document at `/version` of an API server of this release."""
    major, minor = release.name.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{release.name}.0+podium",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def core_versions(address: str) -> JsonObject:
    """The document at `/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def _group(name: str, versions: list[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(resource: Resource) -> JsonObject:
    made: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    made |= _other_names(resource)
    if "list" in resource.verbs:
        made["storageVersionHash"] = _hash(resource)
    return made


def _other_names(resource: Resource) -> JsonObject:
    names = {"shortNames": list(resource.short), "categories": list(resource.categories)}
    return {field: listed for field, listed in names.items() if listed}


def _subresource(resource: Resource, name: str) -> JsonObject:
    subresource = resource.subresources[name]
    made: JsonObject = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.group is not None:
        made |= {"group": subresource.group, "version": subresource.version}
    return made


def _hash(resource: Resource) -> str:
    return f"{abs(_stable_hash(resource.storage)):011d}"[:11] + "="


def _stable_hash(text: str) -> int:
    """A hash that is the same in every process."""
    found = 0
    for byte in text.encode():
        found = (found * 131 + byte) % 10**11
    return found


def _kind(resource: Resource, kind: str, group: str | None, version: str | None) -> JsonObject:
    return {
        "group": resource.group if group is None else group,
        "version": resource.version if version is None else version,
        "kind": kind,
    }


def _aggregated_resource(resource: Resource) -> JsonObject:
    made: JsonObject = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind, None, None),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    made |= _other_names(resource)
    if resource.subresources:
        made["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(resource, each.kind, each.group, each.version),
                "verbs": list(each.verbs),
            }
            for name, each in sorted(resource.subresources.items())
        ]
    return made


class Discovery:
    """The documents about some resources; each is made when it is first asked for."""

    def __init__(self, resources: Iterable[Resource], release: Release) -> None:
        """Describe *resources*, and the API server as one of *release*."""
        self._resources = tuple(resources)
        self._release = release
        self._groups = groups(self._resources)
        self._made: dict[tuple[str, ...], JsonObject | None] = {}

    def document(self, path: str, address: str, *, aggregated: str = "") -> JsonObject | None:
        """The document at a path of discovery, `None` if the path is not one.

        *aggregated* is the version of aggregated discovery that the client accepts, if any.
        """
        parts = path.strip("/").split("/")
        if parts == ["version"]:
            return server_version(self._release)
        if parts == ["api"] and not aggregated:
            return core_versions(address)
        key = (*parts, aggregated)
        if key not in self._made:
            found = self._document(parts, aggregated)
            if found is None:
                return None
            self._made[key] = found
        return self._made[key]

    def _document(self, parts: list[str], aggregated: str) -> JsonObject | None:
        found: JsonObject | None = None
        match parts:
            case ["api"]:
                found = self._aggregated_list(aggregated, core=True)
            case ["apis"] if aggregated:
                found = self._aggregated_list(aggregated, core=False)
            case ["apis"]:
                found = self._group_list()
            case ["api", version]:
                found = self._resource_list(version)
            case ["apis", name]:
                found = self._group_document(name)
            case ["apis", name, version]:
                found = self._resource_list(f"{name}/{version}")
        return found

    def _group_list(self) -> JsonObject:
        found = [_group(name, versions) for name, versions in self._groups.items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}

    def _group_document(self, name: str) -> JsonObject | None:
        versions = self._groups.get(name)
        if not name or versions is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def _resource_list(self, group_version: str) -> JsonObject | None:
        """The document at `/api/v1` or `/apis/GROUP/VERSION`, `None` if there is none."""
        resources = [each for each in self._resources if each.group_version == group_version]
        if not resources:
            return None
        found: list[JsonObject] = []
        for resource in resources:
            found.append(_resource(resource))
            found += [_subresource(resource, name) for name in sorted(resource.subresources)]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": found,
        }

    def _aggregated_list(self, version: str, *, core: bool) -> JsonObject:
        """All groups, or the core group alone, with their resources in one document."""
        found = [
            {
                "metadata": {"name": name, "creationTimestamp": None}
                if name
                else {"creationTimestamp": None},
                "versions": [self._aggregated_version(name, each) for each in versions],
            }
            for name, versions in self._groups.items()
            if bool(name) is not core
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": found,
        }

    def _aggregated_version(self, name: str, version: str) -> JsonObject:
        wanted = (name, version)
        resources = [each for each in self._resources if (each.group, each.version) == wanted]
        return {
            "version": version,
            "resources": [_aggregated_resource(each) for each in resources],
            "freshness": "Current",
        }
