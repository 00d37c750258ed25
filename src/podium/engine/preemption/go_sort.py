"""The order in which Go's `sort.Slice` leaves elements that its comparison cannot tell apart.

Up to twelve elements it sorts by insertion, which keeps equals in their order. Beyond that it is a
pattern-defeating quicksort, which permutes equals, but always in the same way: to evict the same
pods as kube-scheduler, the same permutation is needed.

    "Pattern-defeating Quicksort", Orson Peters, 2021.  Upstream: Go's package sort, 1.19 and later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

MOST_INSERTED = 12
_NINTHER = 50
_RISING, _FALLING, _UNKNOWN = "rising", "falling", "unknown"
_MOST_SWAPS = 12
_MASK = (1 << 64) - 1


def go_sorted(items: Iterable[T], less: Callable[[T, T], bool]) -> list[T]:
    """The items in order; `less` need not be consistent, each of two items may come first."""
    found = list(items)
    _Sort(found, less).run(0, len(found), len(found).bit_length())
    return found


class _Sort:
    """One list being sorted; `a` and `b` bound a part of it, as in Go's slices."""

    def __init__(self, items: list[T], less: Callable[[T, T], bool]) -> None:
        self.items = items
        self.before = less

    def less(self, i: int, j: int) -> bool:
        return self.before(self.items[i], self.items[j])

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def run(self, a: int, b: int, limit: int) -> None:
        balanced = partitioned = True
        while b - a > MOST_INSERTED:
            if not limit:
                self.by_heap(a, b)
                return
            if not balanced:
                self.break_patterns(a, b)
                limit -= 1
            pivot, hint = self.pivot(a, b)
            if hint == _FALLING:
                self.items[a:b] = self.items[a:b][::-1]
                pivot, hint = (b - 1) - (pivot - a), _RISING
            if balanced and partitioned and hint == _RISING and self.nearly_sorted(a, b):
                return
            if a > 0 and not self.less(a - 1, pivot):
                a = self.partition_equal(a, b, pivot)
                continue
            middle, partitioned = self.partition(a, b, pivot)
            left, right, fair = middle - a, b - middle, (b - a) // 8
            if left < right:
                balanced = left >= fair
                self.run(a, middle, limit)
                a = middle + 1
            else:
                balanced = right >= fair
                self.run(middle + 1, b, limit)
                b = middle
        self.by_insertion(a, b)

    def by_insertion(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def by_heap(self, a: int, b: int) -> None:
        size = b - a
        for root in range((size - 1) // 2, -1, -1):
            self.sift_down(root, size, a)
        for last in range(size - 1, -1, -1):
            self.swap(a, a + last)
            self.sift_down(0, last, a)

    def sift_down(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Move smaller elements before the pivot; its new index, and whether all were there."""
        self.swap(a, pivot)
        i, j, moved = a + 1, b - 1, False
        while True:
            while i <= j and self.less(i, a):
                i += 1
            while i <= j and not self.less(j, a):
                j -= 1
            if i > j:
                self.swap(j, a)
                return j, not moved
            self.swap(i, j)
            i, j, moved = i + 1, j - 1, True

    def partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Move elements equal to the pivot first; the index at which the larger ones begin."""
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self.less(a, i):
                i += 1
            while i <= j and self.less(a, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def nearly_sorted(self, a: int, b: int) -> bool:
        """Swap a few neighbours that are out of order; whether everything is in order then."""
        i = a + 1
        for _ in range(5):
            while i < b and not self.less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _NINTHER:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:
                j = i - 1
                while j >= 1 and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j -= 1
            if b - i >= 2:
                j = i + 1
                while j < b and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j += 1
        return False

    def break_patterns(self, a: int, b: int) -> None:
        """Swap three elements with others, chosen by numbers that depend on the length only."""
        length = b - a
        random, modulus = length, 1 << length.bit_length()
        middle = a + length // 4 * 2 - 1
        for i in range(3):
            random ^= random << 13 & _MASK
            random ^= random >> 7
            random ^= random << 17 & _MASK
            other = random & (modulus - 1)
            self.swap(middle + i, a + (other - length if other >= length else other))

    def pivot(self, a: int, b: int) -> tuple[int, str]:
        """The index of the pivot, and the order that the compared elements suggest."""
        quarter = (b - a) // 4
        i, j, k = a + quarter, a + quarter * 2, a + quarter * 3
        swaps = 0
        if b - a >= _NINTHER:
            i, swaps = self.median(i - 1, i, i + 1, swaps)
            j, swaps = self.median(j - 1, j, j + 1, swaps)
            k, swaps = self.median(k - 1, k, k + 1, swaps)
        j, swaps = self.median(i, j, k, swaps)
        return j, _RISING if not swaps else _FALLING if swaps == _MOST_SWAPS else _UNKNOWN

    def median(self, a: int, b: int, c: int, swaps: int) -> tuple[int, int]:
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self.less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps
