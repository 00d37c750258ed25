"""Objects of one kind that rules look up, with the latest changes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

from podium.engine.state.journal import ChangeLog
from podium.objects.kinds.meta import Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

T = TypeVar("T", bound=Object)
#: Beyond this many changes of a kind the older half is dropped; then older readers start over.
CHANGES_LIMIT = 1 << 14


class Shelf(Generic[T]):
    """Objects of one kind, in order of arrival."""

    __slots__ = ("_by_namespace", "_changes", "_count", "version")

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        self._by_namespace: dict[str, dict[str, T]] = defaultdict(dict)
        self._count = 0
        self.version = 0
        #: Namespace and name of the latest changes, the last one last.
        self._changes: ChangeLog[tuple[str, str]] = ChangeLog(changes_limit)

    def put(self, item: T) -> None:
        """Add or replace an object."""
        items, name = self._by_namespace[item.namespace], item.name
        self._count += name not in items
        items[name] = item
        self._note(item.namespace, name)

    def drop(self, item: T) -> None:
        """Remove an object."""
        if self._by_namespace[item.namespace].pop(item.name, None) is not None:
            self._count -= 1
            self._note(item.namespace, item.name)

    def _note(self, namespace: str, name: str) -> None:
        self.version += 1
        self._changes.add((namespace, name))

    def changes_since(self, version: int) -> Sequence[tuple[str, str]] | None:
        """Namespace and name of what changed since; None when that is not known any more."""
        return self._changes.since(version)

    def get(self, name: str, namespace: str = "default") -> T | None:
        """The object of that name, if it exists. Cluster-wide kinds live in `default`."""
        return self._by_namespace[namespace].get(name)

    def within(self, namespace: str) -> Iterable[T]:
        """All objects of a namespace."""
        return self._by_namespace[namespace].values()

    def __iter__(self) -> Iterator[T]:
        for items in self._by_namespace.values():
            yield from items.values()

    def __len__(self) -> int:
        return self._count
