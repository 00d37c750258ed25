"""The objects of one kind, indexed by name, and the changes between what a reflector reports.

A list that is read again covers everything that was missed since the last one. Objects that are
absent from it were deleted. One with the same name and another uid was deleted and created again. A
change that could not be reported counts as unknown, so that the next list reports it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)


class ObjectIndex(Generic[T]):
    """The objects of one kind as last reported, by `namespace/name`."""

    def __init__(self, on_change: Callable[[T | None, T | None], None]) -> None:
        """*on_change* is called with the object before and after; None where there is none."""
        self.known: dict[str, T] = {}
        self._on_change = on_change
        #: The versions that the API server has answered with and that no watch has reported yet.
        self._answered: dict[str, str] = {}

    def replace(self, items: list[Any]) -> None:
        """Make these the only objects, reporting what was added, changed and deleted."""
        if self.known:
            kept = {item.key for item in items}
            for gone in [item for key, item in self.known.items() if key not in kept]:
                self._report_logged(self.drop, gone)
        for item in items:
            self._report_logged(self.put, item)

    def _report_logged(self, report: Callable[[T], None], item: T) -> None:
        """Report a change; an error is logged, since it must not hide the rest of a list."""
        try:
            report(item)
        except Exception:
            logger.exception("%s %s: reported again after the next list", item.kind, item.key)

    def put(self, item: T) -> None:
        """Add or change an object; the same resourceVersion again is no change."""
        key = item.key
        old = self.known.get(key)
        if old is not None:
            version = item.metadata.resource_version
            if old.metadata.uid != item.metadata.uid:
                self.drop(old)
                old = None
            elif old.metadata.resource_version == version:
                self._answered.pop(key, None)
                return
            elif self._answered and key in self._answered:
                if is_older(version, self._answered[key]):
                    return
                del self._answered[key]
        self.known[key] = item
        try:
            self._on_change(old, item)
        except Exception:
            self.unreported(old, item)
            raise

    def put_answered(self, item: T) -> None:
        """Change an object to what the API server has answered, before a watch reports it.

        What a watch reports meanwhile is older, and is no change.
        """
        self.put(item)
        self._answered[item.key] = item.metadata.resource_version

    def drop(self, item: T) -> None:
        """Delete an object, if it is known."""
        self._answered.pop(item.key, None)
        old = self.known.pop(item.key, None)
        if old is None:
            return
        try:
            self._on_change(old, None)
        except Exception:
            self.unreported(old, None)
            raise

    def unreported(self, old: T | None, new: T | None) -> None:
        """Return to the object before a change that could not be reported, unless it is newer."""
        if new is None:
            if old is not None:
                self.known.setdefault(old.key, old)
        elif self.known.get(new.key) is new:
            if old is None:
                del self.known[new.key]
            else:
                self.known[new.key] = old


def is_older(version: str, other: str) -> bool:
    """Whether a resourceVersion is older than another one of the same kind."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)


class LivePods(ObjectIndex[Pod]):
    """Pods; one that Succeeded or Failed counts as deleted, since it uses no resources."""

    def __init__(
        self,
        on_change: Callable[[Pod | None, Pod | None], None],
        on_first_list: Callable[[Sequence[Pod]], Sequence[Pod]] = lambda pods: pods,
    ) -> None:
        """*on_first_list* is called with all placed pods of the first list.

        It returns those that it has not taken, which are reported one by one.
        """
        super().__init__(on_change)
        self._on_first_list = on_first_list

    def replace(self, items: list[Any]) -> None:
        """Make these the only pods; those of the first list may be reported together."""
        if self.known:
            super().replace(items)
            return
        placed = [item for item in items if item.spec.node_name and not item.finished]
        left = {id(item) for item in self._on_first_list(placed)}
        taken = [item for item in placed if id(item) not in left] if left else placed
        self.known = {item.key: item for item in taken}
        for item in items:
            if not item.spec.node_name or (left and id(item) in left):
                self._report_logged(self.put, item)

    def put(self, item: Pod) -> None:
        """Add or change a pod, or delete it when it has finished."""
        if item.finished:
            self.drop(item)
        else:
            super().put(item)


class KindIndexes:
    """The indexes of several kinds, which report every change to one function."""

    def __init__(self, on_change: Callable[[str, Object | None, Object | None], None]) -> None:
        """*on_change* is called with the kind, and the object before and after."""
        self._on_change = on_change
        self.by_kind: dict[str, ObjectIndex[Any]] = {}

    def index(self, kind: str) -> ObjectIndex[Any]:
        """The index of a kind."""
        found = self.by_kind.get(kind)
        if found is None:
            made = LivePods if kind == "Pod" else ObjectIndex
            found = self.by_kind[kind] = made(partial(self._on_change, kind))
        return found
