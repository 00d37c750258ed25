"""The custom resources of a lab, made from its CustomResourceDefinitions.

A definition adds one `Resource` for each version that it serves. Objects are stored in the storage
version; other versions serve the same objects with another `apiVersion` (conversion `None`).

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.lab.api.resources import CustomVersion, Resource, Subresource
from podium.lab.api.status import FieldError, bad_request, invalid
from podium.lab.schema.structural import prune, set_defaults, validate_custom_object
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class CustomResources:
    """The custom resources that are served now."""

    def __init__(self) -> None:
        self._by_definition: dict[str, tuple[Resource, ...]] = {}
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_storage: dict[str, Resource] = {}
        #: Increases with every change, for what is kept of discovery and OpenAPI.
        self.generation = 0

    def __iter__(self) -> Iterator[Resource]:
        """All versions of all custom resources."""
        for resources in self._by_definition.values():
            yield from resources

    def stored(self) -> Iterator[Resource]:
        """The custom resources in the versions in which they are stored."""
        yield from self._by_storage.values()

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a path."""
        return self._by_path.get((group, version, plural))

    def by_storage(self, name: str) -> Resource:
        """The resource that is stored under a qualified name; KeyError if there is none."""
        return self._by_storage[name]

    def has_kind(self, api_version: str, kind: str) -> bool:
        """Whether objects of this kind are custom objects that are served."""
        return any(each.group_version == api_version and each.kind == kind for each in self)

    def of_object(self, item: JsonObject) -> Resource | None:
        """The resource of an object, by its `apiVersion` and `kind`."""
        wanted = (item.get("apiVersion"), item.get("kind"))
        return next((each for each in self if (each.group_version, each.kind) == wanted), None)

    def put(self, definition: JsonObject) -> None:
        """Serve the resources of a new or changed definition."""
        name = definition["metadata"]["name"]
        self.drop(name)
        made = tuple(resources_of(definition))
        self._by_definition[name] = made
        for each in made:
            self._by_path[each.group, each.version, each.plural] = each
            if not each.view_of:
                self._by_storage[each.storage] = each
        self.generation += 1

    def drop(self, name: str) -> None:
        """Serve the resources of a definition no longer."""
        for each in self._by_definition.pop(name, ()):
            self._by_path.pop((each.group, each.version, each.plural), None)
            self._by_storage.pop(each.storage, None)
            self.generation += 1


def resources_of(definition: JsonObject) -> Iterator[Resource]:
    """One resource for each version that a definition serves, and for the one it stores."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    storage = next(each["name"] for each in spec["versions"] if each.get("storage"))
    qualified = f"{names['plural']}.{group}"
    for each in spec["versions"]:
        is_stored = each["name"] == storage
        if not each.get("served", True) and not is_stored:
            continue
        yield Resource(
            group,
            each["name"],
            names["plural"],
            names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(each, names["kind"]),
            view_of="" if is_stored else qualified,
            singular_name=names.get("singular") or "",
            list_name=names.get("listKind") or "",
            custom=_custom_version(each, spec, f"{group}/{storage}"),
        )


def _subresources(version: JsonObject, kind: str) -> dict[str, Subresource]:
    wanted = version.get("subresources") or {}
    found = {}
    if wanted.get("status") is not None:
        found["status"] = Subresource(kind)
    if wanted.get("scale") is not None:
        found["scale"] = Subresource("Scale", group="autoscaling", version="v1")
    return found


def _custom_version(version: JsonObject, spec: JsonObject, stored: str) -> CustomVersion:
    deprecation = ""
    if version.get("deprecated"):
        name = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
        deprecation = version.get("deprecationWarning") or f"{name} is deprecated"
    return CustomVersion(
        stored,
        (version.get("schema") or {}).get("openAPIV3Schema") or {},
        bool(spec.get("preserveUnknownFields")),
        tuple(version.get("additionalPrinterColumns") or ()),
        (version.get("subresources") or {}).get("scale"),
        deprecation,
    )


def admit_custom(resource: Resource, item: JsonObject, *, strict: bool = False) -> list[str]:
    """Prune, complete and validate a custom object in the version of *resource*.

    The result is the paths of the fields that were pruned; they are an error if *strict*.
    """
    custom = resource.custom
    assert custom is not None
    unknown = [] if custom.preserves_unknown else prune(custom.schema, item)
    if strict and unknown:
        listed = ", ".join(f"unknown field {quoted(each)}" for each in unknown)
        about = f"{resource.kind} in version {quoted(resource.version)} cannot be handled as a "
        raise bad_request(f"{about}{resource.kind}: strict decoding error: {listed}")
    set_defaults(custom.schema, item)
    errors: list[FieldError] = validate_custom_object(custom.schema, item)
    if errors:
        name = (item.get("metadata") or {}).get("name") or ""
        raise invalid(resource.kind, resource.group, name, errors)
    return unknown
