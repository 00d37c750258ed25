"""Index of selectors by a label they require, and of label sets by the labels they have.

A cluster has thousands of label sets, and as many selectors (spreading, affinity). Whether a
selector matches a label set is evaluated when either is new. Nearly every selector requires some
label, so a new selector is tried only on the label sets that have it, and a new label set only
against the selectors that require one of its labels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from podium.objects.selectors.selectors import Selector

_Label = tuple[str, str]
#: Labels of which a pod must have at least one to be selected; None: it need not have any.
Anchor = tuple[_Label, ...] | None
NOBODY: Anchor = ()

_T = TypeVar("_T")


def anchor(selector: Selector) -> Anchor:
    """The labels that a selector requires."""
    if selector.nothing:
        return NOBODY
    wanted = [each for each in selector.requirements if each.operator == "In"]
    if not wanted:
        return None
    fewest = min(wanted, key=lambda each: len(each.values))
    return tuple((fewest.key, value) for value in fewest.values)


def anchor_of_all(selectors: Iterable[Selector]) -> Anchor:
    """The labels required by selectors that must all match: those of any one of them."""
    found = (anchor(selector) for selector in selectors)
    return next((each for each in found if each is not None), None)


def anchor_of_any(selectors: Iterable[Selector]) -> Anchor:
    """The labels required where one of several selectors must match."""
    labels: dict[_Label, None] = {}
    for selector in selectors:
        found = anchor(selector)
        if found is None:
            return None
        labels.update(dict.fromkeys(found))
    return tuple(labels)


class ByAnchor(Generic[_T]):
    """Things with a selector, indexed by a label it requires, in the order they were added."""

    __slots__ = ("_anywhere", "_by_label", "_things")

    def __init__(self) -> None:
        self._things: list[_T] = []
        self._anywhere: list[int] = []
        self._by_label: defaultdict[_Label, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._things)

    def add(self, thing: _T, anchor: Anchor) -> None:
        """Add a thing whose selector requires one of these labels."""
        if anchor is None:
            self._anywhere.append(len(self._things))
        else:
            for label in anchor:
                self._by_label[label].append(len(self._things))
        self._things.append(thing)

    def likely(self, labels: Mapping[str, str], since: int = 0) -> list[_T]:
        """Those, from the one numbered *since* on, whose selector may match these labels."""
        places = self._anywhere[bisect_left(self._anywhere, since) :]
        for label in labels.items():
            found = self._by_label.get(label)
            if found is not None:
                places += found[bisect_left(found, since) :]
        return [self._things[place] for place in sorted(set(places))]


class ByLabel(Generic[_T]):
    """Things with labels, indexed by each of their labels."""

    __slots__ = ("_all", "_by_label")

    def __init__(self) -> None:
        self._all: list[_T] = []
        self._by_label: defaultdict[_Label, list[_T]] = defaultdict(list)

    def add(self, thing: _T, labels: Mapping[str, str]) -> None:
        """Add a thing that has these labels."""
        self._all.append(thing)
        for label in labels.items():
            self._by_label[label].append(thing)

    def likely(self, anchor: Anchor) -> Collection[_T]:
        """Those that a selector with these required labels may match, each of them once."""
        if anchor is None:
            return self._all
        if len(anchor) == 1:
            return self._by_label.get(anchor[0], ())
        return {
            id(thing): thing for label in anchor for thing in self._by_label.get(label, ())
        }.values()
