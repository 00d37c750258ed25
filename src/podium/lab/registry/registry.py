"""The API server's semantics over a store, in process and synchronous; HTTP is a thin layer above.

Objects are plain dictionaries. One that is handed in belongs to the registry from then on (it is
completed in place and returned as it was stored); one that comes out is the caller's to change.
Everything refused is a `StatusError`. Resources are named by their plural, their qualified name or
their kind: `pods`, `deployments.apps`, `Node`.

Writes are told to subscribers after they happened, in order, each before the next one: what a
subscriber writes is told when all have heard of what went before.
"""

from __future__ import annotations

import builtins
import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from podium.lab.api.field_errors import FieldError
from podium.lab.api.options import DeleteOptions, WriteOptions
from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import (
    JsonDict,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from podium.lab.registry import admission, deletion, metadata, patches, strategies
from podium.lab.registry.binding import bind
from podium.lab.registry.eviction import evict
from podium.lab.store import selection as selecting
from podium.lab.store.store import ADDED, DELETED, MODIFIED, Key, Record, Store
from podium.lab.validation import metadata as metadata_rules

#: Told the type of the event, the object before and the object now; either may be `None`.
Subscriber = Callable[[str, JsonDict | None, JsonDict | None], None]
PLAIN = WriteOptions()
GENTLY = DeleteOptions()


class Registry:
    """All objects, and what may be done with them."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
    ) -> None:
        """Serve what is in *store*; the namespaces that always exist are made if they are not."""
        self.store = store or Store()
        self.clock = clock
        self.chance = chance or random.Random()  # noqa: S311  names, not secrets
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._untold: deque[tuple[str, str, JsonDict | None, JsonDict | None]] = deque()
        self._telling = False
        admission.found(self)

    # Reading
    def record(self, resource: str, name: str, namespace: str = "") -> Record:
        """The record of an object, or 404."""
        row = stored(resource)
        found = self.store.get(row.storage, key_of(row, namespace, name))
        if found is None:
            raise not_found(row.qualified, name)
        return found

    def get(self, resource: str, name: str, namespace: str = "") -> JsonDict:
        """An object, or 404."""
        return self.record(resource, name, namespace).object()

    def find(self, resource: str, name: str, namespace: str = "") -> JsonDict | None:
        """An object, if it exists."""
        row = stored(resource)
        found = self.store.get(row.storage, key_of(row, namespace, name))
        return None if found is None else found.object()

    def list(
        self, resource: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> builtins.list[JsonDict]:
        """Objects in the order of namespace and name; all namespaces if none is given."""
        row = stored(resource)
        wanted = selecting.selection(row, labels, fields)
        records = self.store.table(row.storage).ordered(namespace)
        return [each.object() for each in records if wanted.matches(each)]

    # Writing
    def create(
        self, resource: str, item: JsonDict, *, namespace: str = "", options: WriteOptions = PLAIN
    ) -> JsonDict:
        """Store a new object, with everything that the API server adds."""
        row = stored(resource)
        strategy = strategies.of(row)
        about = metadata.of(item, row, namespace)
        admission.enter(self, row, about.get("namespace", ""), str(about.get("name", "")))
        metadata.begin(item, self.now(), self.chance, counts=strategy.counts)
        self._named(row, item)
        strategy.prepare(item)
        item = patches.owned(row, None, item, options=options, now=self.now())
        about = item["metadata"]
        admission.admit(self, row, item)
        strategy.begin(row, item)
        self._refuse(row, item, strategy.problems(item))
        key = key_of(row, about.get("namespace", ""), about["name"])
        taken = self.store.get(row.storage, key)
        if taken is not None:
            leaving = bool(taken.object()["metadata"].get("deletionTimestamp"))
            raise already_exists(row.qualified, about["name"], leaving=leaving)
        if options.dry_run:
            return item
        self.write(row, item, None)
        return item

    def update(
        self,
        resource: str,
        item: JsonDict,
        *,
        name: str = "",
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = PLAIN,
    ) -> JsonDict:
        """Replace an object, if its resourceVersion is the current one or none is given."""
        row = stored(resource)
        about = metadata.of(item, row, namespace)
        if not about.get("name"):
            about["name"] = name
        if name and about["name"] != name:
            raise bad_request(
                f"the name of the object ({about['name']}) does not match the name on the URL "
                f"({name})"
            )
        old = self.find(resource, about["name"], about.get("namespace", ""))
        version = about.get("resourceVersion")
        if old is None:
            if strategies.of(row).made_by_update and not subresource and not version:
                return self.create(resource, item, namespace=namespace, options=options)
            raise not_found(row.qualified, about["name"])
        if not version and not strategies.of(row).unconditional:
            what = "must be specified for an update"
            problem = FieldError("FieldValueInvalid", "metadata.resourceVersion", 0, what)
            raise invalid(row.plural, row.group, about["name"], [problem])
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(row.qualified, about["name"])
        return self.overwrite(row, item, old, subresource=subresource, options=options)

    def modify(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        change: Callable[[JsonDict], JsonDict],
        subresource: str = "",
        options: WriteOptions = PLAIN,
    ) -> JsonDict:
        """Read, let *change* return what it should be, and write: for those in the same process."""
        row = stored(resource)
        record = self.record(resource, name, namespace)
        return self.overwrite(
            row, change(record.object()), record.object(), subresource=subresource, options=options
        )

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        *,
        content_type: str,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = PLAIN,
    ) -> JsonDict:
        """Apply a patch in any of the four forms; server-side apply may create the object."""
        way = {"content_type": content_type, "namespace": namespace, "subresource": subresource}
        return self.patched(stored(resource), name, patch, **way, options=options)[0]

    def patched(
        self,
        row: Resource,
        name: str,
        patch: Any,
        *,
        content_type: str,
        namespace: str,
        subresource: str,
        options: WriteOptions,
    ) -> tuple[JsonDict, bool]:
        """The object after a patch, in the version of *row*, and whether it is new."""
        record = self.store.get(row.storage, key_of(row, namespace, name))
        home = stored(row.storage)
        if content_type == patches.APPLY:
            live = None if record is None else record.object()
            new = patches.applied(
                row,
                live,
                patch,
                (namespace, name),
                subresource=subresource,
                options=options,
                now=self.now(),
            )
            owned = replace(options, manager="", program="")
            if record is None:
                if subresource:
                    raise not_found(row.qualified, name)
                return self.create(home.storage, new, namespace=namespace, options=owned), True
            old = record.object()
        elif record is None:
            raise not_found(row.qualified, name)
        else:
            old, owned = record.object(), options
            new = patches.patched(row, content_type, record.object(), patch, options)
        metadata.unmoved(home, new, old)
        return self.overwrite(home, new, old, subresource=subresource, options=owned), False

    def overwrite(
        self,
        row: Resource,
        item: JsonDict,
        old: JsonDict,
        *,
        subresource: str = "",
        options: WriteOptions = PLAIN,
    ) -> JsonDict:
        """Write *item* over *old*, which is what is stored now."""
        strategy = strategies.of(row)
        metadata.carry(item, old, row)
        item = strategy.merged(item, old, subresource)
        item = patches.owned(
            row, old, item, options=options, now=self.now(), subresource=subresource
        )
        if not subresource:
            strategy.prepare(item)
            admission.readmit(self, row, item, old)
        problems = metadata_rules.update_problems(item, old)
        if not subresource:
            problems += strategy.update_problems(item, old)
        self._refuse(row, item, problems)
        if strategy.counts and strategy.wants_counting(item, old):
            item["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if item == old:
            return item
        if options.dry_run:
            return item
        if deletion.is_over(item):
            return self.erase(row, item, old)
        self.write(row, item, old)
        return item

    def delete(
        self, resource: str, name: str, namespace: str = "", options: DeleteOptions = GENTLY
    ) -> JsonDict:
        """Delete an object, at once or gracefully; returns it as it is now, or was at last."""
        return self.remove(resource, name, namespace, options)[0]

    def remove(
        self, resource: str, name: str, namespace: str = "", options: DeleteOptions = GENTLY
    ) -> tuple[JsonDict, bool]:
        """Delete an object; returns it, and whether it is gone."""
        row = stored(resource)
        admission.refuse_deletion(row, name)
        return deletion.delete(self, row, key_of(row, namespace, name), options)

    def delete_collection(
        self,
        resource: str,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        options: DeleteOptions = GENTLY,
    ) -> builtins.list[JsonDict]:
        """Delete all that are selected; returns them."""
        row = stored(resource)
        wanted = selecting.selection(row, labels, fields)
        records = list(self.store.table(row.storage).ordered(namespace))
        found = [each for each in records if wanted.matches(each)]
        for each in found:
            try:
                deletion.delete(self, row, each.key, options)
            except StatusError as error:
                if error.code != 404:
                    raise
        return [each.object() for each in found]

    # Pods only
    def bind(self, name: str, namespace: str, node: str, *, uid: str = "") -> None:
        """Put a pod on a node, if it is the one with this uid and on none yet."""
        about = {"name": name, "uid": uid}
        binding = {"metadata": about, "target": {"kind": "Node", "name": node}}
        bind(self, namespace, name, binding, PLAIN)

    def evict(self, name: str, namespace: str, options: WriteOptions = PLAIN) -> None:
        """Delete a pod, unless a disruption budget is against it (429)."""
        evict(self, namespace, name, {"metadata": {"name": name}}, options)

    # The only two ways into the store
    def write(self, row: Resource, item: JsonDict, old: JsonDict | None) -> Record:
        """Store *item* and tell."""
        about = item["metadata"]
        key = Key(about.get("namespace", ""), about["name"])
        record = self.store.put(row.storage, key, item, strategies.fields(row, item))
        self._tell(row.storage, ADDED if old is None else MODIFIED, old, item)
        return record

    def erase(self, row: Resource, item: JsonDict, old: JsonDict) -> JsonDict:
        """Remove *item* and tell."""
        about = item["metadata"]
        key = Key(about.get("namespace", ""), about["name"])
        self.store.drop(row.storage, key, item, strategies.fields(row, item))
        self._tell(row.storage, DELETED, old, None)
        return item

    # Those who want to know
    def subscribe(self, kinds: Iterable[str], subscriber: Subscriber) -> Callable[[], None]:
        """Tell *subscriber* of every write to these resources; the returned call ends that.

        The dictionaries it is given are shared: read them, copy them, do not change them.
        """
        names = [stored(kind).storage for kind in kinds]
        for name in names:
            self._subscribers.setdefault(name, []).append(subscriber)

        def end() -> None:
            for name in names:
                self._subscribers[name].remove(subscriber)

        return end

    def _tell(self, storage: str, type: str, old: JsonDict | None, new: JsonDict | None) -> None:  # noqa: A002
        if not self._subscribers.get(storage):
            return
        self._untold.append((storage, type, old, new))
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                storage, type, old, new = self._untold.popleft()  # noqa: A001
                for subscriber in tuple(self._subscribers.get(storage, ())):
                    subscriber(type, old, new)
        finally:
            self._telling = False

    # Small parts
    def now(self) -> str:
        """The time as objects have it."""
        return metadata.stamp(self.clock())

    def _named(self, row: Resource, item: JsonDict) -> None:
        """Give a name to an object that only has a prefix for one."""
        about = item["metadata"]
        if about.get("name") or not about.get("generateName"):
            return
        table = self.store.table(row.storage)
        for _ in range(8):
            about["name"] = metadata.generated(about["generateName"], self.chance)
            if Key(about.get("namespace", ""), about["name"]) not in table.records:
                return
        raise already_exists(row.qualified, about["name"])

    def _refuse(self, row: Resource, item: JsonDict, problems: builtins.list[Any]) -> None:
        if problems:
            name = item["metadata"].get("name") or item["metadata"].get("generateName") or ""
            raise invalid(row.kind, row.group, name, problems)


def key_of(row: Resource, namespace: str, name: str) -> Key:
    """Where an object of this resource is kept."""
    return Key(namespace if row.namespaced else "", name)
