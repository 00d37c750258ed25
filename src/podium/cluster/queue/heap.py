"""Binary heaps whose members can be found, replaced and removed by key.

Members of equal rank come out in the order that the mechanics of the heap give, and that order
decides which of two equal pods is tried first. The mechanics of `KeyedHeap` are therefore those of
Go's container/heap, step by step; Python's heapq, which sifts differently, would order ties
otherwise. Where no two ranks are equal the mechanics make no difference: `DistinctHeap` uses heapq.

Upstream: internal/queue/scheduling_queue.go (Heap), Kubernetes v1.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

import msgspec

T = TypeVar("T")
Rank = tuple[float, ...]
#: So many entries without a member are left in a `DistinctHeap` before they are counted.
_FEW_STALE: Final = 64


class _Slot(msgspec.Struct, Generic[T]):
    key: str
    rank: Rank
    member: T
    index: int


class KeyedHeap(Generic[T]):
    """The member of the lowest rank first; `put`, `pop` and `remove` take logarithmic time."""

    def __init__(self) -> None:
        """An empty heap."""
        self._slots: list[_Slot[T]] = []
        self._by_key: dict[str, _Slot[T]] = {}
        #: The slots by key; empty if the heap is.
        self.members: Mapping[str, object] = self._by_key

    def __len__(self) -> int:
        """The number of members."""
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        """Whether there is a member under this key."""
        return key in self._by_key

    def __iter__(self) -> Iterator[T]:
        """All members, in the order of the underlying array."""
        return (slot.member for slot in self._slots)

    def get(self, key: str) -> T | None:
        """The member under this key."""
        slot = self._by_key.get(key)
        return slot.member if slot else None

    def put(self, key: str, member: T, rank: Rank) -> None:
        """Add a member, or replace the one under the same key and restore the order."""
        slot = self._by_key.get(key)
        if slot is None:
            slot = _Slot(key, rank, member, len(self._slots))
            self._by_key[key] = slot
            self._slots.append(slot)
            self._up(slot.index)
            return
        slot.member, slot.rank = member, rank
        self._fix(slot.index)

    def peek(self) -> T | None:
        """The member that `pop` would take."""
        return self._slots[0].member if self._slots else None

    def pop(self) -> T | None:
        """Take the first member out."""
        return self._take(0) if self._slots else None

    def remove(self, key: str) -> T | None:
        """Take the member under this key out."""
        slot = self._by_key.get(key)
        return self._take(slot.index) if slot else None

    def _take(self, index: int) -> T:
        last = len(self._slots) - 1
        if index != last:
            self._swap(index, last)
            if not self._down(index, last):
                self._up(index)
        slot = self._slots.pop()
        del self._by_key[slot.key]
        return slot.member

    def _fix(self, index: int) -> None:
        if not self._down(index, len(self._slots)):
            self._up(index)

    def _up(self, child: int) -> None:
        slots = self._slots
        moving = slots[child]
        rank = moving.rank
        while child:
            parent = (child - 1) // 2
            above = slots[parent]
            if not rank < above.rank:
                break
            slots[child], above.index = above, child
            child = parent
        slots[child], moving.index = moving, child

    def _down(self, parent: int, size: int) -> bool:
        """Sift down among the first *size* slots; returns whether anything moved."""
        slots, start = self._slots, parent
        moving = slots[parent]
        rank = moving.rank
        while (child := 2 * parent + 1) < size:
            below = slots[child]
            if child + 1 < size and slots[child + 1].rank < below.rank:
                child += 1
                below = slots[child]
            if not below.rank < rank:
                break
            slots[parent], below.index = below, parent
            parent = child
        slots[parent], moving.index = moving, parent
        return parent > start

    def _swap(self, one: int, other: int) -> None:
        slots = self._slots
        slots[one], slots[other] = slots[other], slots[one]
        slots[one].index, slots[other].index = one, other


class DistinctHeap(Generic[T]):
    """The same members in the same order as a `KeyedHeap`, for ranks that all differ.

    A member that is removed, or gets another rank, leaves an entry without a member behind, which
    `pop` passes over. When most entries are such, the heap is made anew.
    """

    def __init__(self) -> None:
        """An empty heap."""
        #: Rank, number and key; no two numbers are equal, so that keys are never compared.
        self._entries: list[tuple[Rank, int, str]] = []
        self._by_key: dict[str, tuple[tuple[Rank, int, str], T]] = {}
        self._puts = 0

    def __len__(self) -> int:
        """The number of members."""
        return len(self._by_key)

    def __contains__(self, key: str) -> bool:
        """Whether there is a member under this key."""
        return key in self._by_key

    def get(self, key: str) -> T | None:
        """The member under this key."""
        found = self._by_key.get(key)
        return found[1] if found else None

    def put(self, key: str, member: T, rank: Rank) -> None:
        """Add a member, or replace the one under the same key and restore the order."""
        known = self._by_key.get(key)
        if known is not None and known[0][0] == rank:
            self._by_key[key] = (known[0], member)
            return
        self._puts += 1
        entry = (rank, self._puts, key)
        self._by_key[key] = (entry, member)
        heappush(self._entries, entry)
        self._drop_stale()

    def pop(self) -> T | None:
        """Take the first member out."""
        entries, by_key = self._entries, self._by_key
        while entries:
            entry = heappop(entries)
            found = by_key.get(entry[2])
            if found is not None and found[0] is entry:
                del by_key[entry[2]]
                return found[1]
        return None

    def remove(self, key: str) -> T | None:
        """Take the member under this key out."""
        found = self._by_key.pop(key, None)
        if found is None:
            return None
        self._drop_stale()
        return found[1]

    def _drop_stale(self) -> None:
        """Make the heap anew if most entries have no member any more."""
        if len(self._entries) > 2 * len(self._by_key) + _FEW_STALE:
            self._entries = [entry for entry, _ in self._by_key.values()]
            heapify(self._entries)
