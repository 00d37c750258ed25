"""The verbs of the API: what each method on each kind of path does with the registry.

Subresources are binding, eviction, scale, finalize, token and log. `status` is not among them: it
is read and written as the object itself is. The objects of the metrics API (metrics.k8s.io), from
which `kubectl top` reads, are computed when they are asked for.

Upstream: pkg/registry/core/pod/rest, pkg/registry/core/namespace (FinalizeREST),
k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from typing import Final

from podium.lab.api.encoding import APPLY_PATCH, PATCH_TYPES, format_time
from podium.lab.api.options import DeleteOptions, WriteOptions, asks_dry_run
from podium.lab.api.resources import IDLE, Resource, stored, to_served, to_stored
from podium.lab.api.status import (
    invalid,
    method_not_allowed,
    not_found,
    success,
    too_long,
    unsupported_media_type,
)
from podium.lab.http import bodies
from podium.lab.http.bodies import read_delete_options
from podium.lab.http.list_pages import ListOptions, list_page
from podium.lab.http.requests import (
    Representation,
    Request,
    Route,
    media_type_of,
    missing_log,
    negotiate,
)
from podium.lab.http.responses import (
    Headers,
    Response,
    json_response,
    list_response,
    object_response,
    record_response,
)
from podium.lab.http.security import ServiceAccountTokens, review
from podium.lab.kinds.custom_resource_definition import rules_not_evaluated
from podium.lab.registry.registry import Registry
from podium.lab.registry.resource_lists import (
    Amounts,
    add,
    annotated_usage,
    container_usage,
    pod_usage,
    usage_texts,
)
from podium.lab.registry.subresources import bind, evict, patch_scale, scale_of, update_scale
from podium.lab.schema.typed_bodies import unknown_fields
from podium.lab.store.selection import selection
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted

_WINDOW: Final = "15s"


def metrics(registry: Registry, request: Request, where: Route) -> JsonObject:
    """The metrics of the pods or nodes that a request asks for."""
    if where.resource.plural == "nodes":
        items = _nodes(registry, request, where)
    else:
        items = _pods(registry, request, where)
    resource = where.resource
    if where.name:
        if not items:
            raise not_found(resource.qualified, where.name)
        return {"kind": resource.kind, "apiVersion": resource.group_version, **items[0]}
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.group_version,
        "metadata": {},
        "items": items,
    }


def _pods(registry: Registry, request: Request, where: Route) -> list[JsonObject]:
    fields = f"metadata.name={where.name}" if where.name else request.parameter("fieldSelector")
    wanted = selection(stored("pods"), request.parameter("labelSelector"), fields)
    found = []
    for record in registry.store.table("pods").ordered(where.namespace):
        if record.fields.get("status.phase") == "Running" and wanted.matches(record):
            pod = record.object()
            containers = [
                {"name": name, "usage": usage_texts(used)}
                for name, used in container_usage(pod).items()
            ]
            found.append(_item(registry, pod) | {"containers": containers})
    return found


def _nodes(registry: Registry, request: Request, where: Route) -> list[JsonObject]:
    fields = f"metadata.name={where.name}" if where.name else request.parameter("fieldSelector")
    wanted = selection(stored("nodes"), request.parameter("labelSelector"), fields)
    used: dict[str, Amounts] = {}
    for record in registry.store.table("pods").records.values():
        node = record.fields.get("spec.nodeName")
        if node and record.fields.get("status.phase") == "Running":
            add(used.setdefault(node, {}), pod_usage(record.object()))
    found = []
    for record in registry.store.table("nodes").ordered():
        if wanted.matches(record):
            node_object = record.object()
            own = used.get(record.key.name, {}) | annotated_usage(node_object)
            found.append(_item(registry, node_object) | {"usage": usage_texts(own)})
    return found


def _item(registry: Registry, item: JsonObject) -> JsonObject:
    metadata = item["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
    now = format_time(registry.clock())
    return {
        "metadata": kept | {"creationTimestamp": now},
        "timestamp": now,
        "window": _WINDOW,
    }


_OBJECT_VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_MOST_WARNINGS = 20
#: Kinds whose deletion is answered with the object instead of a `Status`.
_RETURNED_ON_DELETION = frozenset(
    {"Pod", "PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "ResourceQuota",
     "ServiceAccount", "Service"}
)  # fmt: skip


class Verbs:
    """Responds to requests about resources, watches excepted."""

    def __init__(self, registry: Registry, tokens: ServiceAccountTokens) -> None:
        """Read and write the objects of *registry*; *tokens* are those of service accounts."""
        self.registry = registry
        self._tokens = tokens

    async def respond(self, request: Request, where: Route) -> Response:
        """Carry out the verb of the request; 405 if what the path names does not have it."""
        verb = _verb(request, where)
        if where.resource.computed:
            return json_response(metrics(self.registry, request, where))
        if verb == "list":
            return self._list(request, where)
        if where.subresource and where.subresource != "status":
            return await self._act_on_subresource(request, where, verb)
        if verb == "get":
            record = self.registry.record(where.resource.storage, where.name, where.namespace)
            return record_response(where.resource, record, representation(request))
        writes = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        return writes[verb](request, where, await request.body())

    async def _act_on_subresource(self, request: Request, where: Route, verb: str) -> Response:
        """Carry out *verb* on the subresource that *where* names."""
        namespace, name = where.namespace, where.name
        if where.subresource == "log":
            self.registry.record(where.resource.storage, name, namespace)
            text = missing_log(namespace, name).encode()
            return Response(200, text, b"text/plain; charset=utf-8")
        body = b"" if verb == "get" else await request.body()
        content_type, options = request.content_type, write_options(request, "CreateOptions")
        match where.subresource:
            case "binding":
                binding = bodies.read_kind("Binding", "v1", body, content_type)
                return json_response(bind(self.registry, namespace, name, binding, options), 201)
            case "eviction":
                eviction = bodies.read_eviction(body, content_type)
                return json_response(evict(self.registry, namespace, name, eviction, options), 201)
            case "token":
                version = "authentication.k8s.io/v1"
                asked = bodies.read_kind("TokenRequest", version, body, content_type)
                return json_response(self._tokens.issue(namespace, name, asked), 201)
            case "finalize":
                item = bodies.read_object(where.resource, body, content_type)
                made = self._finalize(name, item)
                return object_response(where.resource, made, representation(request))
        return json_response(self._scale(where, verb, body, content_type, options))

    def _finalize(self, name: str, item: JsonObject) -> JsonObject:
        """The namespace with the finalizers of *item* in its spec."""
        finalizers = (item.get("spec") or {}).get("finalizers") or []

        def change(namespace: JsonObject) -> JsonObject:
            namespace["spec"]["finalizers"] = finalizers
            return namespace

        return self.registry.modify("namespaces", name, change=change, subresource="finalize")

    def _scale(
        self, where: Route, verb: str, body: bytes, content_type: str, options: WriteOptions
    ) -> JsonObject:
        resource, name, namespace = where.resource, where.name, where.namespace
        current = scale_of(self.registry.get(resource.storage, name, namespace), resource)
        if verb == "get":
            return current
        if verb == "patch":
            patch = bodies.parse_json(body)
            scale = patch_scale(media_type_of(content_type), current, patch)
        else:
            scale = bodies.read_kind("Scale", "autoscaling/v1", body, content_type)
        return update_scale(self.registry, resource, (namespace, name), scale, options)

    def _list(self, request: Request, where: Route) -> Response:
        resource = where.resource
        labels, fields = request.parameter("labelSelector"), request.parameter("fieldSelector")
        selected = selection(resource, labels, fields)
        options = list_options(request)
        page = list_page(self.registry.store, resource, where.namespace, selected, options)
        return list_response(resource, page, representation(request))

    def _create(self, request: Request, where: Route, body: bytes) -> Response:
        resource = where.resource
        options = write_options(request, "CreateOptions")
        if "list" not in resource.verbs:
            return self._create_unstored(request, where, body, options)
        item, warnings = _read(request, resource, body, options)
        made = self.registry.create(
            resource.storage, item, namespace=where.namespace, options=options
        )
        response = object_response(resource, made, representation(request), status=201)
        return response._replace(headers=warnings)

    def _create_unstored(
        self, request: Request, where: Route, body: bytes, options: WriteOptions
    ) -> Response:
        """Act on an object of a kind that is not stored: a binding or a review."""
        resource = where.resource
        content_type = request.content_type
        item = bodies.read_kind(resource.kind, resource.group_version, body, content_type)
        if resource.kind == "Binding":
            name = (item.get("metadata") or {}).get("name") or ""
            return json_response(bind(self.registry, where.namespace, name, item, options), 201)
        return json_response(review(resource, item, self._tokens), 201)

    def _update(self, request: Request, where: Route, body: bytes) -> Response:
        resource = where.resource
        options = write_options(request, "UpdateOptions")
        item, warnings = _read(request, resource, body, options)
        made = self.registry.update(
            resource.storage,
            item,
            name=where.name,
            namespace=where.namespace,
            subresource=where.subresource,
            options=options,
        )
        response = object_response(resource, made, representation(request))
        return response._replace(headers=warnings)

    def _patch(self, request: Request, where: Route, body: bytes) -> Response:
        media_type = media_type_of(request.content_type)
        if media_type not in PATCH_TYPES:
            raise unsupported_media_type(PATCH_TYPES)
        is_apply = media_type == APPLY_PATCH
        patch = bodies.parse_yaml(body) if is_apply else bodies.parse_json(body)
        made, created = self.registry.patch_or_create(
            where.resource,
            where.name,
            patch,
            content_type=media_type,
            namespace=where.namespace,
            subresource=where.subresource,
            options=write_options(request, "PatchOptions"),
        )
        status = 201 if created else 200
        return object_response(where.resource, made, representation(request), status)

    def _delete_collection(self, request: Request, where: Route, body: bytes) -> Response:
        resource = where.resource
        deleted = self.registry.delete_collection(
            resource.storage,
            where.namespace,
            labels=request.parameter("labelSelector"),
            fields=request.parameter("fieldSelector"),
            options=delete_options(request, body),
        )
        found: JsonObject = {
            "kind": resource.list_kind,
            "apiVersion": resource.group_version,
            "metadata": {"resourceVersion": str(self.registry.store.version)},
            "items": [to_served(resource, each) for each in deleted],
        }
        return json_response(found)

    def _delete(self, request: Request, where: Route, body: bytes) -> Response:
        resource, name = where.resource, where.name
        options = delete_options(request, body)
        made, is_gone = self.registry.start_deletion(
            resource.storage, name, where.namespace, options
        )
        if is_gone and resource.kind not in _RETURNED_ON_DELETION:
            details = {"name": name, "group": resource.group, "kind": resource.plural}
            details["uid"] = made["metadata"]["uid"]
            return json_response(success({key: each for key, each in details.items() if each}))
        return object_response(resource, made, representation(request))


def _verb(request: Request, where: Route) -> str:
    """The verb of the request; 405 if what the path names does not have it."""
    resource = where.resource
    if where.subresource:
        verb = _OBJECT_VERBS.get(request.method, "")
        allowed = verb in resource.subresources[where.subresource].verbs
    elif where.name:
        verb = _OBJECT_VERBS.get(request.method, "")
        allowed = verb in resource.verbs and verb != "create"
    else:
        verb = _COLLECTION_VERBS.get(request.method, "")
        everywhere = resource.namespaced and not where.namespace
        allowed = verb in resource.verbs and not (verb == "create" and everywhere)
    if not allowed:
        raise method_not_allowed()
    return verb


def _read(
    request: Request, resource: Resource, body: bytes, options: WriteOptions
) -> tuple[JsonObject, Headers]:
    """The object in a body, and the warnings about it."""
    content_type = request.content_type
    if resource.custom is not None:
        item, pruned = bodies.read_custom(resource, body, content_type, strict=options.strict)
        texts = [resource.custom.deprecation] if resource.custom.deprecation else []
        if request.parameter("fieldValidation") == "Warn":
            texts += [f"unknown field {quoted(each)}" for each in pruned[:_MOST_WARNINGS]]
        return to_stored(resource, item), _warning_headers(texts)
    item = bodies.read_object(resource, body, content_type, strict=options.strict)
    idle = IDLE.get(resource.kind)
    texts = [idle] if idle else []
    if resource.kind == "CustomResourceDefinition":
        texts += rules_not_evaluated(item)[:_MOST_WARNINGS]
    return item, _warnings(request, resource, item) + _warning_headers(texts)


def _warning_headers(texts: list[str]) -> Headers:
    return tuple((b"warning", f"299 - {quoted(text)}".encode("ascii", "replace")) for text in texts)


def _warnings(request: Request, resource: Resource, item: JsonObject) -> Headers:
    """A `Warning` header for each unknown field if the client asks for warnings."""
    if request.parameter("fieldValidation") != "Warn" or resource.view_of:
        return ()
    unknown = unknown_fields(resource.kind, resource.group_version, item)
    return _warning_headers([f"unknown field {quoted(each)}" for each in unknown[:_MOST_WARNINGS]])


_LONGEST_MANAGER = 128


def representation(request: Request) -> Representation:
    """The representation of the response; 406 if the client accepts none that is served."""
    return negotiate(request.header(b"accept"), request.parameter("includeObject"))


def list_options(request: Request) -> ListOptions:
    """The options of a list."""
    return ListOptions(
        limit=request.number("limit") or 0,
        continue_token=request.parameter("continue"),
        version=request.parameter("resourceVersion"),
        version_match=request.parameter("resourceVersionMatch"),
    )


def write_options(request: Request, kind: str) -> WriteOptions:
    """The options of a write; *kind* is what errors call them: `CreateOptions`."""
    manager = request.parameter("fieldManager")
    if len(manager) > _LONGEST_MANAGER:
        problem = too_long("fieldManager", manager, _LONGEST_MANAGER)
        raise invalid(kind, "meta.k8s.io", "", [problem])
    return WriteOptions(
        dry_run=asks_dry_run(request.parameters.get("dryRun"), kind),
        manager=manager,
        force=request.flag("force"),
        strict=request.parameter("fieldValidation") == "Strict",
    )


def delete_options(request: Request, body: bytes) -> DeleteOptions:
    """The options of a deletion, from its body or from the query."""
    content_type = request.content_type if body else ""
    return DeleteOptions.read(read_delete_options(body, content_type), request.parameters)
