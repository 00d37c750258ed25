"""Verbs on resources: what each method on each kind of path does with the registry."""

from __future__ import annotations

from podium.lab.api.conversion import shown
from podium.lab.api.field_errors import too_long
from podium.lab.api.options import DeleteOptions, WriteOptions, asks_dry_run
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, StatusError, invalid, success, unsupported_media_type
from podium.lab.http import bodies, listing
from podium.lab.http import subresources as below
from podium.lab.http.answers import Answer, document, kept, many, one
from podium.lab.http.negotiation import Form, accepted, media_type
from podium.lab.http.requests import Request, Route
from podium.lab.registry import patches
from podium.lab.registry.binding import bind
from podium.lab.registry.eviction import evict
from podium.lab.registry.registry import Registry
from podium.lab.schema import typed_bodies as shapes
from podium.lab.store.selection import selection
from podium.objects.names import quoted

_METHODS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: What the methods mean without the name of an object.
_COLLECTION = {"get": "list", "create": "create", "delete": "deletecollection"}
_LONGEST_MANAGER = 128
_MOST_WARNINGS = 20
#: Kinds that answer a deletion with the object instead of a `Status`.
_SHOWN_AT_LAST = frozenset(
    {"Pod", "PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "ResourceQuota",
     "ServiceAccount", "Service"}
)  # fmt: skip


class Verbs:
    """Answers requests about resources."""

    def __init__(self, registry: Registry) -> None:
        """Ask *registry*."""
        self.registry = registry

    async def answer(self, request: Request, where: Route) -> Answer:
        """Do what the request says; 405 if that cannot be done."""
        verb = _verb(request, where)
        if verb == "list":
            return self._list(request, where)
        if where.subresource and where.subresource != "status":
            return await self._below(request, where, verb)
        if verb == "get":
            record = self.registry.record(where.row.storage, where.name, where.namespace)
            return kept(where.row, record, *_form(request))
        body = await request.body()
        act = {"create": self._create, "update": self._update, "patch": self._patch}
        return act.get(verb, self._delete)(request, where, body)

    # Reading
    def _list(self, request: Request, where: Route) -> Answer:
        row, ask = where.row, request.parameters
        wanted = selection(row, ask.get("labelSelector", ""), ask.get("fieldSelector", ""))
        options = listing.ListOptions(
            limit=request.number("limit") or 0,
            again=ask.get("continue", ""),
            version=ask.get("resourceVersion", ""),
            match=ask.get("resourceVersionMatch", ""),
        )
        page = listing.page(self.registry.store, row, where.namespace, wanted, options)
        return many(row, page, *_form(request))

    # Writing
    def _create(self, request: Request, where: Route, body: bytes) -> Answer:
        row = where.row
        options = _options(request, "CreateOptions")
        if "list" not in row.verbs:
            return self._ask(request, where, body, options)
        content_type = request.header(b"content-type")
        item = bodies.object_of(row, body, content_type, strict=options.strict)
        warnings = _warnings(request, row, item)
        made = self.registry.create(row.storage, item, namespace=where.namespace, options=options)
        return one(row, made, *_form(request), status=201)._replace(headers=warnings)

    def _ask(self, request: Request, where: Route, body: bytes, options: WriteOptions) -> Answer:
        """A request about something that is not kept."""
        row = where.row
        asked = bodies.of_kind(row.kind, row.group_version, body, request.header(b"content-type"))
        if row.kind == "Binding":
            name = (asked.get("metadata") or {}).get("name") or ""
            return document(bind(self.registry, where.namespace, name, asked, options), 201)
        return document(below.review(row, asked), 201)

    def _update(self, request: Request, where: Route, body: bytes) -> Answer:
        row = where.row
        options = _options(request, "UpdateOptions")
        content_type = request.header(b"content-type")
        item = bodies.object_of(row, body, content_type, strict=options.strict)
        warnings = _warnings(request, row, item)
        made = self.registry.update(
            row.storage,
            item,
            name=where.name,
            namespace=where.namespace,
            subresource=where.subresource,
            options=options,
        )
        return one(row, made, *_form(request))._replace(headers=warnings)

    def _patch(self, request: Request, where: Route, body: bytes) -> Answer:
        row = where.row
        media = media_type(request.header(b"content-type"))
        if media not in patches.FORMS:
            raise unsupported_media_type(patches.FORMS)
        patch = bodies.parsed_yaml(body) if media == patches.APPLY else bodies.plain(body)
        made, created = self.registry.patched(
            row,
            where.name,
            patch,
            content_type=media,
            namespace=where.namespace,
            subresource=where.subresource,
            options=_options(request, "PatchOptions"),
        )
        return one(row, made, *_form(request), status=201 if created else 200)

    # Deleting
    def _delete(self, request: Request, where: Route, body: bytes) -> Answer:
        row, ask = where.row, request.parameters
        content_type = request.header(b"content-type") if body else ""
        options = DeleteOptions.read(bodies.delete_options(body, content_type), ask)
        if not where.name:
            selectors = {
                "labels": ask.get("labelSelector", ""),
                "fields": ask.get("fieldSelector", ""),
            }
            gone = self.registry.delete_collection(
                row.storage, where.namespace, **selectors, options=options
            )
            about = {"resourceVersion": str(self.registry.store.version)}
            items = [shown(row, each) for each in gone]
            listed = {"kind": row.list_kind, "apiVersion": row.group_version, "metadata": about}
            return document(listed | {"items": items})
        made, over = self.registry.remove(row.storage, where.name, where.namespace, options)
        if over and row.kind not in _SHOWN_AT_LAST:
            about = {"name": where.name, "group": row.group, "kind": row.plural}
            about["uid"] = made["metadata"]["uid"]
            return document(success({key: value for key, value in about.items() if value}))
        return one(row, made, *_form(request))

    # Below objects
    async def _below(self, request: Request, where: Route, verb: str) -> Answer:
        row, name, namespace = where.row, where.name, where.namespace
        if where.subresource == "log":
            self.registry.record(row.storage, name, namespace)
            text = below.log_sentence(namespace, name).encode()
            return Answer(200, text, b"text/plain; charset=utf-8")
        body = b"" if verb == "get" else await request.body()
        content_type = request.header(b"content-type")
        options = _options(request, "CreateOptions")
        if where.subresource == "binding":
            binding = bodies.of_kind("Binding", "v1", body, content_type)
            return document(bind(self.registry, namespace, name, binding, options), 201)
        if where.subresource == "eviction":
            eviction = bodies.eviction(body, content_type)
            return document(evict(self.registry, namespace, name, eviction, options), 201)
        if where.subresource == "finalize":
            item = bodies.object_of(row, body, content_type)
            return one(row, below.finalize(self.registry, name, item), *_form(request))
        return document(self._scale(where, verb, body, content_type, options))

    def _scale(
        self, where: Route, verb: str, body: bytes, content_type: str, options: WriteOptions
    ) -> object:
        row, name, namespace = where.row, where.name, where.namespace
        current = below.scale(self.registry.get(row.storage, name, namespace))
        if verb == "get":
            return current
        if verb == "patch":
            wanted = patches.patched_scale(media_type(content_type), current, bodies.plain(body))
        else:
            wanted = bodies.of_kind("Scale", "autoscaling/v1", body, content_type)
        return below.rescale(self.registry, row, (namespace, name), wanted, options)


def _verb(request: Request, where: Route) -> str:
    """What is asked for; 405 if that cannot be done with what the path names."""
    row = where.row
    verb = _METHODS.get(request.method, "")
    if where.subresource:
        allowed = verb in row.subresources[where.subresource].verbs
    elif where.name:
        allowed = verb in row.verbs and verb != "create"
    else:
        verb = _COLLECTION.get(verb, "")
        allowed = verb in row.verbs
        if verb == "create" and row.namespaced and not where.namespace:
            allowed = False
    if not allowed:
        raise StatusError(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    return verb


def _form(request: Request) -> tuple[Form, str]:
    return accepted(request.header(b"accept")), request.parameters.get("includeObject", "")


def _options(request: Request, kind: str) -> WriteOptions:
    ask = request.parameters
    if not ask:
        return WriteOptions(program=_agent(request))
    manager = ask.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER:
        raise invalid(
            kind, "meta.k8s.io", "", [too_long("fieldManager", manager, _LONGEST_MANAGER)]
        )
    return WriteOptions(
        dry_run=asks_dry_run(ask.get("dryRun"), kind),
        manager=manager,
        program=_agent(request),
        force=request.flag("force"),
        strict=ask.get("fieldValidation") == "Strict",
    )


def _warnings(request: Request, row: Resource, item: JsonDict) -> tuple[tuple[bytes, bytes], ...]:
    """A header for each unknown field, for clients that want to be told and not refused."""
    if request.parameters.get("fieldValidation") != "Warn" or row.view_of:
        return ()
    unknown = shapes.unknown_fields(row.kind, row.group_version, item)
    texts = [quoted(f"unknown field {quoted(each)}") for each in unknown[:_MOST_WARNINGS]]
    return tuple((b"warning", f"299 - {text}".encode("ascii", "replace")) for text in texts)


def _agent(request: Request) -> str:
    """Without a name of its own, a writer is called as its program."""
    return request.header(b"user-agent").partition("/")[0][:_LONGEST_MANAGER] or "unknown"
