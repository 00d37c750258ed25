"""Requests to subresources of an object: binding, eviction, scale, finalize, token and log.

The subresource `status` is not among them: it is read and written as the object itself is.

Upstream: pkg/registry/core/pod/rest, pkg/registry/core/namespace (FinalizeREST).
"""

from __future__ import annotations

from podium.lab.api.options import WriteOptions
from podium.lab.http import bodies
from podium.lab.http.negotiation import media_type_of
from podium.lab.http.request_options import representation, write_options
from podium.lab.http.requests import Request, Route
from podium.lab.http.responses import Response, json_response, object_response
from podium.lab.http.tokens import ServiceAccountTokens
from podium.lab.http.unserved import missing_log
from podium.lab.registry.binding import bind
from podium.lab.registry.eviction import evict
from podium.lab.registry.registry import Registry
from podium.lab.registry.scale import patch_scale, scale_of, update_scale
from podium.objects.kinds.meta import JsonObject


class Subresources:
    """Responds to requests about subresources."""

    def __init__(self, registry: Registry, tokens: ServiceAccountTokens) -> None:
        """Read and write the objects of *registry*; *tokens* are those of service accounts."""
        self._registry = registry
        self._tokens = tokens

    async def respond(self, request: Request, where: Route, verb: str) -> Response:
        """Carry out *verb* on the subresource that *where* names."""
        namespace, name = where.namespace, where.name
        if where.subresource == "log":
            self._registry.record(where.resource.storage, name, namespace)
            text = missing_log(namespace, name).encode()
            return Response(200, text, b"text/plain; charset=utf-8")
        body = b"" if verb == "get" else await request.body()
        content_type, options = request.content_type, write_options(request, "CreateOptions")
        match where.subresource:
            case "binding":
                binding = bodies.read_kind("Binding", "v1", body, content_type)
                return json_response(bind(self._registry, namespace, name, binding, options), 201)
            case "eviction":
                eviction = bodies.read_eviction(body, content_type)
                return json_response(evict(self._registry, namespace, name, eviction, options), 201)
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

        return self._registry.modify("namespaces", name, change=change, subresource="finalize")

    def _scale(
        self, where: Route, verb: str, body: bytes, content_type: str, options: WriteOptions
    ) -> JsonObject:
        resource, name, namespace = where.resource, where.name, where.namespace
        current = scale_of(self._registry.get(resource.storage, name, namespace), resource)
        if verb == "get":
            return current
        if verb == "patch":
            patch = bodies.parse_json(body)
            scale = patch_scale(media_type_of(content_type), current, patch)
        else:
            scale = bodies.read_kind("Scale", "autoscaling/v1", body, content_type)
        return update_scale(self._registry, resource, (namespace, name), scale, options)
