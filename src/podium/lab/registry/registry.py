"""The API server without HTTP: reads, writes, deletions, bindings and evictions over a store.

Objects are plain dictionaries. An object that is passed in belongs to the registry from then on: it
is completed in place and returned as stored. An object that is returned may be changed. A refused
request raises a `StatusError`. The argument *kind* is the kind, the plural or the qualified name of
a resource: `Node`, `pods`, `deployments.apps`.
"""

from __future__ import annotations

import builtins
import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from podium.lab.api.encoding import APPLY_PATCH, format_time
from podium.lab.api.options import DeleteOptions, WriteOptions
from podium.lab.api.resources import BY_NAME, STORED, Resource
from podium.lab.api.status import (
    FieldError,
    already_exists,
    conflict,
    ignoring,
    invalid,
    not_found,
    wrong_name,
)
from podium.lab.kinds.field_checks import validate_metadata_update
from podium.lab.kinds.known import strategy_of
from podium.lab.registry import admission, deletion, metadata, patches, quotas
from podium.lab.registry.custom_resources import DEFINITIONS, CustomResources
from podium.lab.registry.subresources import bind, evict
from podium.lab.store.selection import fields_of, selection
from podium.lab.store.store import ADDED, DELETED, MODIFIED, Key, ObjectVersion, Store
from podium.objects.kinds.meta import JsonObject

#: Called with the type of the event, the object before and the object now; either may be `None`.
Subscriber = Callable[[str, JsonObject | None, JsonObject | None], None]
DEFAULT_WRITE = WriteOptions()
DEFAULT_DELETE = DeleteOptions()
_NAME_ATTEMPTS = 8
#: The name under which writes of custom objects are announced.
_CUSTOM = "custom resources"


class Subscriptions:
    """The subscribers of all resources.

    A write by a subscriber is announced after all subscribers were called for the write before, so
    all of them see the writes in the same order.
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._waiting: deque[tuple[str, str, JsonObject | None, JsonObject | None]] = deque()
        self._announcing = False

    def add(self, resources: Iterable[str], subscriber: Subscriber) -> Callable[[], None]:
        """Call *subscriber* after writes to these resources; the returned function ends that."""
        names = list(resources)
        for name in names:
            self._subscribers.setdefault(name, []).append(subscriber)

        def end() -> None:
            for name in names:
                self._subscribers[name].remove(subscriber)

        return end

    def announce(
        self, resource: str, event: str, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        """Call the subscribers of a resource for a write to it."""
        if not self._subscribers.get(resource):
            return
        self._waiting.append((resource, event, old, new))
        if self._announcing:
            return
        self._announcing = True
        try:
            while self._waiting:
                resource, event, old, new = self._waiting.popleft()
                for subscriber in tuple(self._subscribers.get(resource, ())):
                    subscriber(event, old, new)
        finally:
            self._announcing = False


class Registry:
    """All objects of a cluster, and the operations of the API on them."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        """Serve the objects in *store*; uids and generated names come from *rng*."""
        self.store = store or Store()
        self.clock = clock
        self.rng = rng or random.Random()  # noqa: S311  names and uids are not secret
        self._subscriptions = Subscriptions()
        #: The resources of the stored CustomResourceDefinitions.
        self.custom = CustomResources()
        for record in self.store.table(DEFINITIONS).records.values():
            self.custom.put(record.object())
        admission.create_system_objects(self)

    def resource(self, kind: str) -> Resource:
        """The stored resource of this kind, plural or qualified name; custom ones by the latter."""
        found = BY_NAME.get(kind)
        return self.custom.by_storage(kind) if found is None else found

    def stored_resources(self) -> Iterable[Resource]:
        """All resources whose objects are stored, custom ones included."""
        return (*STORED.values(), *self.custom.stored())

    # Reading
    def record(self, kind: str, name: str, namespace: str = "") -> ObjectVersion:
        """The stored record of an object; 404 if it does not exist."""
        resource = self.resource(kind)
        found = self.store.get(resource.storage, key_of(resource, namespace, name))
        if found is None:
            raise not_found(resource.qualified, name)
        return found

    def get(self, kind: str, name: str, namespace: str = "") -> JsonObject:
        """An object; 404 if it does not exist."""
        return self.record(kind, name, namespace).object()

    def find(self, kind: str, name: str, namespace: str = "") -> JsonObject | None:
        """An object, if it exists."""
        resource = self.resource(kind)
        found = self.store.get(resource.storage, key_of(resource, namespace, name))
        return None if found is None else found.object()

    def list(
        self, kind: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> builtins.list[JsonObject]:
        """The selected objects, ordered by namespace and name; of all namespaces by default."""
        resource = self.resource(kind)
        wanted = selection(resource, labels, fields)
        records = self.store.table(resource.storage).ordered(namespace)
        return [each.object() for each in records if wanted.matches(each)]

    # Writing
    def create(
        self,
        kind: str,
        item: JsonObject,
        *,
        namespace: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> JsonObject:
        """Complete, admit, validate and store a new object."""
        resource = self.resource(kind)
        strategy = strategy_of(resource)
        about = metadata.set_type_and_namespace(item, resource, namespace)
        name = str(about.get("name", ""))
        admission.check_namespace(self, resource, about.get("namespace", ""), name)
        now = self.timestamp()
        metadata.initialize(item, now, self.rng, has_generation=strategy.has_generation)
        self._generate_name(resource, item)
        strategy.set_defaults(item)
        item = patches.track_fields(resource, None, item, options=options, now=now)
        about = item["metadata"]
        admission.admit_create(self, resource, item)
        strategy.prepare_for_create(resource, item)
        self._refuse_invalid(resource, item, strategy.create_errors(item))
        admission.check_bounds(self, resource, item)
        key = key_of(resource, about.get("namespace", ""), about["name"])
        taken = self.store.get(resource.storage, key)
        if taken is not None:
            leaving = bool(taken.object()["metadata"].get("deletionTimestamp"))
            raise already_exists(resource.qualified, about["name"], leaving=leaving)
        charged = quotas.charge(self, resource, item)
        if options.dry_run:
            return item
        self.write(resource, item, None)
        quotas.store_charges(self, charged)
        return item

    def update(
        self,
        kind: str,
        item: JsonObject,
        *,
        name: str = "",
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> JsonObject:
        """Replace an object; 409 if its resource version is not the current one."""
        resource = self.resource(kind)
        about = metadata.set_type_and_namespace(item, resource, namespace)
        if not about.get("name"):
            about["name"] = name
        if name and about["name"] != name:
            raise wrong_name(about["name"], name)
        old = self.find(kind, about["name"], about.get("namespace", ""))
        version = metadata.version_precondition(about)
        if old is None:
            if strategy_of(resource).allows_create_on_update and not subresource and not version:
                return self.create(kind, item, namespace=namespace, options=options)
            raise not_found(resource.qualified, about["name"])
        if not version and not strategy_of(resource).allows_unconditional_update:
            what = "must be specified for an update"
            error = FieldError("FieldValueInvalid", "metadata.resourceVersion", 0, what)
            raise invalid(resource.plural, resource.group, about["name"], [error])
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(resource.qualified, about["name"])
        return self._replace(resource, item, old, subresource=subresource, options=options)

    def modify(
        self,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        change: Callable[[JsonObject], JsonObject],
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> JsonObject:
        """Replace an object by the result of *change*, which is called with the present one."""
        resource = self.resource(kind)
        record = self.record(kind, name, namespace)
        return self._replace(
            resource,
            change(record.object()),
            record.object(),
            subresource=subresource,
            options=options,
        )

    def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        *,
        content_type: str,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> JsonObject:
        """Apply a JSON, merge, strategic merge or server-side apply patch."""
        patched, _ = self.patch_or_create(
            self.resource(kind),
            name,
            patch,
            content_type=content_type,
            namespace=namespace,
            subresource=subresource,
            options=options,
        )
        return patched

    def patch_or_create(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        content_type: str,
        namespace: str,
        subresource: str,
        options: WriteOptions,
    ) -> tuple[JsonObject, bool]:
        """Apply a patch in the version of *resource*; the object, and whether it was created.

        Only server-side apply creates objects.
        """
        record = self.store.get(resource.storage, key_of(resource, namespace, name))
        storage = self.resource(resource.storage)
        if content_type == APPLY_PATCH:
            live = None if record is None else record.object()
            new = patches.apply_configuration(
                resource,
                live,
                patch,
                Key(namespace, name),
                subresource=subresource,
                options=options,
                now=self.timestamp(),
            )
            # The result of apply names its field manager itself.
            options = replace(options, manager="")
            if record is None:
                if subresource:
                    raise not_found(resource.qualified, name)
                made = self.create(storage.storage, new, namespace=namespace, options=options)
                return made, True
            old = record.object()
        elif record is None:
            raise not_found(resource.qualified, name)
        else:
            old = record.object()
            new = patches.apply_patch_to(resource, content_type, record.object(), patch, options)
        metadata.check_same_object(storage, new, old)
        return self._replace(storage, new, old, subresource=subresource, options=options), False

    def _replace(
        self,
        resource: Resource,
        item: JsonObject,
        old: JsonObject,
        *,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> JsonObject:
        """Complete, admit, validate and store *item* in place of the stored object *old*."""
        strategy = strategy_of(resource)
        metadata.keep_server_fields(item, old, resource)
        item = strategy.prepare_for_update(item, old, subresource)
        item = patches.track_fields(
            resource, old, item, options=options, now=self.timestamp(), subresource=subresource
        )
        if not subresource:
            strategy.set_defaults(item)
            admission.admit_update(self, resource, item, old)
        elif subresource == "status":
            admission.admit_status(self, resource, item, old)
        errors = validate_metadata_update(item, old)
        if not subresource:
            errors += strategy.update_errors(item, old)
        elif subresource == "status":
            errors += strategy.status_errors(item, old)
        self._refuse_invalid(resource, item, errors)
        if strategy.changes_generation(item, old):
            item["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if item == old:
            return item
        charged = []
        if not subresource:
            admission.check_bounds(self, resource, item, old)
            charged = quotas.charge(self, resource, item, old)
        if options.dry_run:
            return item
        if deletion.is_removable(item):
            return self.erase(resource, item, old)
        self.write(resource, item, old)
        quotas.store_charges(self, charged)
        return item

    def delete(
        self, kind: str, name: str, namespace: str = "", options: DeleteOptions = DEFAULT_DELETE
    ) -> JsonObject:
        """Delete an object, at once or gracefully; returns its last state."""
        return self.start_deletion(kind, name, namespace, options)[0]

    def start_deletion(
        self, kind: str, name: str, namespace: str = "", options: DeleteOptions = DEFAULT_DELETE
    ) -> tuple[JsonObject, bool]:
        """Delete an object; returns its last state, and whether it is removed already."""
        resource = self.resource(kind)
        admission.check_deletion(resource, name)
        return deletion.delete(self, resource, key_of(resource, namespace, name), options)

    def delete_collection(
        self,
        kind: str,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        options: DeleteOptions = DEFAULT_DELETE,
    ) -> builtins.list[JsonObject]:
        """Delete all selected objects; returns them."""
        resource = self.resource(kind)
        wanted = selection(resource, labels, fields)
        records = list(self.store.table(resource.storage).ordered(namespace))
        found = [each for each in records if wanted.matches(each)]
        for each in found:
            with ignoring(404):
                deletion.delete(self, resource, each.key, options)
        return [each.object() for each in found]

    # Pods only
    def bind(self, name: str, namespace: str, node: str, *, uid: str = "") -> None:
        """Bind a pod to a node; a conflict if it has a node or another uid."""
        binding = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": node}}
        bind(self, namespace, name, binding, DEFAULT_WRITE)

    def evict(self, name: str, namespace: str, options: WriteOptions = DEFAULT_WRITE) -> None:
        """Delete a pod; 429 if its disruption budget does not allow that."""
        evict(self, namespace, name, {"metadata": {"name": name}}, options)

    # Writing to the store
    def write(self, resource: Resource, item: JsonObject, old: JsonObject | None) -> ObjectVersion:
        """Store *item* and call the subscribers."""
        about = item["metadata"]
        key = Key(about.get("namespace", ""), about["name"])
        record = self.store.put(resource.storage, key, item, fields_of(resource.storage, item))
        if resource.storage == DEFINITIONS:
            self.custom.put(item)
        self._announce(resource, ADDED if old is None else MODIFIED, old, item)
        return record

    def erase(self, resource: Resource, item: JsonObject, old: JsonObject) -> JsonObject:
        """Remove *item* from the store and call the subscribers."""
        about = item["metadata"]
        key = Key(about.get("namespace", ""), about["name"])
        self.store.delete(resource.storage, key, item, fields_of(resource.storage, item))
        self._announce(resource, DELETED, old, None)
        if resource.storage == DEFINITIONS:
            self.custom.drop(about["name"])
        return item

    def _announce(
        self, resource: Resource, event: str, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        name = resource.storage if resource.custom is None else _CUSTOM
        self._subscriptions.announce(name, event, old, new)

    # Subscriptions
    def subscribe(self, kinds: Iterable[str], subscriber: Subscriber) -> Callable[[], None]:
        """Call *subscriber* after every write of these kinds; the returned function ends that.

        The objects it is called with are shared and must not be changed.
        """
        names = [self.resource(each).storage for each in kinds]
        return self._subscriptions.add(names, subscriber)

    def subscribe_custom(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call *subscriber* after every write of a custom object; the returned function ends it."""
        return self._subscriptions.add([_CUSTOM], subscriber)

    def timestamp(self) -> str:
        """The present time as objects carry it."""
        return format_time(self.clock())

    def _generate_name(self, resource: Resource, item: JsonObject) -> None:
        """Generate the name of an object that has `generateName` only."""
        about = item["metadata"]
        if about.get("name") or not about.get("generateName"):
            return
        table = self.store.table(resource.storage)
        for _ in range(_NAME_ATTEMPTS):
            about["name"] = metadata.generate_name(about["generateName"], self.rng)
            if Key(about.get("namespace", ""), about["name"]) not in table.records:
                return
        raise already_exists(resource.qualified, about["name"])

    def _refuse_invalid(
        self, resource: Resource, item: JsonObject, errors: builtins.list[FieldError]
    ) -> None:
        if errors:
            name = item["metadata"].get("name") or item["metadata"].get("generateName") or ""
            raise invalid(resource.kind, resource.group, name, errors)


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """The key of an object of this resource."""
    return Key(namespace if resource.namespaced else "", name)
