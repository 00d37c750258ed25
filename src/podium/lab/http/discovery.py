"""What clients ask first: which groups, versions and resources there are.

Upstream: apiserver/pkg/endpoints/discovery, and apidiscovery.k8s.io/v2 for all in one document.
"""

from __future__ import annotations

from functools import cache

from podium.lab.api.resources import TABLE, Resource, groups
from podium.lab.api.status import JsonDict

#: The release whose API this is; newer clients and older ones find what they look for.
VERSION: JsonDict = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.0+podium",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2024-12-11T00:00:00Z",
    "goVersion": "go1.23",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def core_versions(address: str) -> JsonDict:
    """The answer to `/api`."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def _group(name: str, versions: list[str]) -> JsonDict:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


@cache
def group_list() -> JsonDict:
    """The answer to `/apis`."""
    found = [_group(name, versions) for name, versions in groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


@cache
def group(name: str) -> JsonDict | None:
    """The answer to `/apis/GROUP`."""
    versions = groups().get(name)
    if not name or versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


@cache
def resource_list(group_version: str) -> JsonDict | None:
    """The answer to `/api/v1` or `/apis/GROUP/VERSION`."""
    rows = [each for each in TABLE if each.group_version == group_version]
    if not rows:
        return None
    found: list[JsonDict] = []
    for row in rows:
        found.append(_resource(row))
        found += [_subresource(row, name) for name in sorted(row.subresources)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": found,
    }


def _resource(row: Resource) -> JsonDict:
    made: JsonDict = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.verbs),
    }
    if row.short:
        made["shortNames"] = list(row.short)
    if row.categories:
        made["categories"] = list(row.categories)
    if "list" in row.verbs:
        made["storageVersionHash"] = _hash(row)
    return made


def _subresource(row: Resource, name: str) -> JsonDict:
    below = row.subresources[name]
    made: JsonDict = {
        "name": f"{row.plural}/{name}",
        "singularName": "",
        "namespaced": row.namespaced,
        "kind": below.kind,
        "verbs": list(below.verbs),
    }
    if below.group is not None:
        made |= {"group": below.group, "version": below.version}
    return made


def _hash(row: Resource) -> str:
    return f"{abs(hash_of(row.storage)):011d}"[:11] + "="


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    found = 0
    for byte in text.encode():
        found = (found * 131 + byte) % 10**11
    return found


@cache
def aggregated(version: str, *, core: bool) -> JsonDict:
    """Everything about `/api` or `/apis` in one document."""
    found = [
        {
            "metadata": {"name": name, "creationTimestamp": None}
            if name
            else {"creationTimestamp": None},
            "versions": [_aggregated_version(name, each) for each in versions],
        }
        for name, versions in groups().items()
        if bool(name) is not core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": found,
    }


def _aggregated_version(name: str, version: str) -> JsonDict:
    rows = [each for each in TABLE if (each.group, each.version) == (name, version)]
    return {
        "version": version,
        "resources": [_aggregated_resource(each) for each in rows],
        "freshness": "Current",
    }


def _kind(row: Resource, kind: str, group: str | None, version: str | None) -> JsonDict:
    return {
        "group": row.group if group is None else group,
        "version": row.version if version is None else version,
        "kind": kind,
    }


def _aggregated_resource(row: Resource) -> JsonDict:
    made: JsonDict = {
        "resource": row.plural,
        "responseKind": _kind(row, row.kind, None, None),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short:
        made["shortNames"] = list(row.short)
    if row.categories:
        made["categories"] = list(row.categories)
    if row.subresources:
        made["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(row, below.kind, below.group, below.version),
                "verbs": list(below.verbs),
            }
            for name, below in sorted(row.subresources.items())
        ]
    return made


def answer(path: str, form: str, address: str) -> JsonDict | None:
    """The document for a path of discovery, or nothing; *form* is the aggregated version."""
    parts = path.strip("/").split("/")
    found: JsonDict | None = None
    match parts:
        case ["version"]:
            found = VERSION
        case ["api"]:
            found = aggregated(form, core=True) if form else core_versions(address)
        case ["apis"]:
            found = aggregated(form, core=False) if form else group_list()
        case ["api", version]:
            found = resource_list(version)
        case ["apis", name]:
            found = group(name)
        case ["apis", name, version]:
            found = resource_list(f"{name}/{version}")
    return found
