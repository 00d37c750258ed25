"""The order in which nodes are looked at: one node of each zone in turn.

Kubernetes v1.13 walks the tree with cursors that outlive the pod: `next()` yields one name, and a
pod that stopped early leaves the cursors where the following pod goes on. Additions and removals do
not move the cursors, so a node may be met twice or not at all in the pass after them. Later
versions made a list of it (`round_robin_order`), without cursors.

Calls of `next()` between two changes of the tree always yield a *lead* (what the zones have left,
at most one pass) and then the same *cycle* over and over. Both are computed once per change, so
`peek` of a whole pass costs nothing per node, and `advance` is an addition. The cursors themselves
are worked out again only when the tree changes.

Upstream: internal/cache/node_tree.go, Kubernetes v1.13; backend/cache/node_tree.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final, NamedTuple

#: Labels that name region and zone; of several labels the first that a node has counts.
ZoneLabels = tuple[tuple[str, ...], tuple[str, ...]]
BETA_ZONE_LABELS: Final[ZoneLabels] = (
    ("failure-domain.beta.kubernetes.io/region",),
    ("failure-domain.beta.kubernetes.io/zone",),
)
ZONE_LABELS: Final[ZoneLabels] = (
    (*BETA_ZONE_LABELS[0], "topology.kubernetes.io/region"),
    (*BETA_ZONE_LABELS[1], "topology.kubernetes.io/zone"),
)


def zone_key(labels: Mapping[str, str] | None, keys: ZoneLabels = BETA_ZONE_LABELS) -> str:
    """Name the zone of a node with these *labels*; nodes without region and zone share one."""
    region, zone = (_first(labels or {}, names) for names in keys)
    # The null character cannot occur in a label, so no two pairs share a key.
    return f"{region}:\0:{zone}" if region or zone else ""


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if name in labels), "")


@dataclass(slots=True)
class _Zone:
    """The nodes of a zone in the order of addition, and how many of them `next` has yielded."""

    names: list[str] = field(default_factory=list)
    cursor: int = 0


class TreePosition(NamedTuple):
    """A tree as plain values."""

    #: Key, names and cursor of each zone.
    zones: list[tuple[str, list[str], int]]
    turn: int
    calls: int
    #: The list that was last made; None when it is the present one.
    listed: list[str] | None
    #: Whether names came or went since it was made.
    stale: bool


class NodeTree:
    """Zones in the order of their first node, nodes in the order of addition."""

    def __init__(self) -> None:
        """An empty tree."""
        self._zones: dict[str, _Zone] = {}
        self._zone_of: dict[str, str] = {}
        #: Which zone is next. With the zones' own cursors: the state at the last change.
        self._turn = 0
        #: Calls of `next` since then, counted within the lead and one cycle.
        self._calls = 0
        #: Names yielded until every zone is exhausted, and by every later pass; `None`: stale.
        self._lead: tuple[str, ...] | None = ()
        self._cycle: tuple[str, ...] | None = ()
        self._pass: tuple[int, int, tuple[str, ...]] = (0, 0, ())
        self._listed: tuple[str, ...] = ()
        self._listed_names: frozenset[str] = frozenset()
        self._list_stale = False

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self._zone_of)

    def __contains__(self, name: str) -> bool:
        """Whether the node is in the tree."""
        return name in self._zone_of

    def add(self, name: str, zone: str) -> None:
        """Append a node to its zone. A name that is in the tree already is left where it is."""
        if name in self._zone_of:
            return
        self._settle()
        self._zones.setdefault(zone, _Zone()).names.append(name)
        self._zone_of[name] = zone
        self._list_stale = True

    def remove(self, name: str) -> bool:
        """Take a node out; a zone goes with its last node. Tells whether the node was there.

        No cursor moves: the node that steps into the freed place is skipped until the next pass
        if the place was yielded already.
        """
        if name not in self._zone_of:
            return False
        self._settle()
        key = self._zone_of.pop(name)
        zone = self._zones[key]
        zone.names.remove(name)
        if not zone.names:
            del self._zones[key]
        self._list_stale = True
        return True

    def update(self, name: str, zone: str) -> None:
        """Move a node whose zone changed to the end of its new zone; add an unknown one."""
        if self._zone_of.get(name) == zone:
            return
        self.remove(name)
        self.add(name, zone)

    def next(self) -> str:
        """Yield the next name; the empty string if there are no nodes."""
        taken = self.take(1)
        return taken[0] if taken else ""

    def take(self, count: int) -> tuple[str, ...]:
        """Yield the next *count* names: `peek`, then `advance`."""
        names = self.peek(count)
        self.advance(count)
        return names

    def peek(self, count: int) -> tuple[str, ...]:
        """The names that the next *count* calls of `next` would yield, without the calls.

        A whole pass over a tree that did not change is the same tuple object each time.
        """
        lead, cycle = self._walks()
        if not cycle or count <= 0:
            return ()
        calls, size, names = self._pass
        if (calls, size) != (self._calls, count):
            names = _slice(lead, cycle, self._calls, count)
            self._pass = (self._calls, count, names)
        return names

    def advance(self, count: int) -> None:
        """Leave the cursors as *count* calls of `next` would."""
        lead, cycle = self._walks()
        if not cycle:
            return
        calls = self._calls + count
        if calls > len(lead):
            # Passes differ by whole cycles; the end of a cycle is kept apart from its beginning
            # (exhausted zones, not fresh ones), because a node added there is yielded at once.
            calls = len(lead) + 1 + (calls - len(lead) - 1) % len(cycle)
        self._calls = calls

    def ring(self) -> tuple[tuple[str, ...], int]:
        """All names and a place among them: a whole pass begins there and wraps around.

        While the tree does not change, the names are the same tuple object and only the place
        moves, so callers can keep what they derive from the names (row numbers, say).
        """
        lead, cycle = self._walks()
        if self._calls < len(lead):
            return self.peek(len(cycle)), 0
        return cycle, (self._calls - len(lead)) % len(cycle) if cycle else 0

    def round_robin_order(self) -> tuple[str, ...]:
        """All names as v1.36 lists them: the first of each zone, then the second, and so on.

        The list is made anew when names came or went since it was last asked for; a node that
        only changed its zone keeps its old place until then.
        """
        if self._list_stale:
            self._list_stale = False
            if self._listed_names != self._zone_of.keys():
                self._listed = self._walks()[1]
                self._listed_names = frozenset(self._zone_of)
        return self._listed

    def position(self) -> TreePosition:
        """The zones, the cursors and the list, from which `restored` makes the same tree."""
        zones = [(key, list(zone.names), zone.cursor) for key, zone in self._zones.items()]
        usual = not self._list_stale and self._listed == self._walks()[1]
        listed = None if usual else list(self._listed)
        return TreePosition(zones, self._turn, self._calls, listed, self._list_stale)

    @classmethod
    def restored(cls, position: TreePosition) -> NodeTree:
        """The tree whose `position` this is."""
        tree = cls()
        for key, names, cursor in position.zones:
            tree._zones[key] = _Zone(list(names), cursor)
            tree._zone_of.update(dict.fromkeys(names, key))
        tree._turn, tree._calls = position.turn, position.calls
        tree._lead = tree._cycle = None
        tree._listed = tree._walks()[1] if position.listed is None else tuple(position.listed)
        tree._listed_names = frozenset(tree._listed)
        tree._list_stale = position.stale
        return tree

    def _walks(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lead and the cycle, computed again after a change."""
        if self._lead is None or self._cycle is None:
            zones = list(self._zones.values())
            cursors = [zone.cursor for zone in zones]
            self._cycle = tuple(_walk(zones, [0] * len(zones), 0))
            lead = self._cycle
            if any(cursors) or self._turn % max(len(zones), 1):
                lead = tuple(_walk(zones, cursors, self._turn))
            self._lead = self._cycle if lead == self._cycle else lead
            self._pass = (0, 0, ())
        return self._lead, self._cycle

    def _settle(self) -> None:
        """Bring the cursors to where the calls so far have left them; a change follows."""
        lead, cycle = self._lead, self._cycle
        self._lead = self._cycle = None
        if lead is None or cycle is None or not self._calls:
            return
        past_lead = self._calls - len(lead)
        if past_lead > 0:  # every zone was exhausted once, and the cursors began anew
            for zone in self._zones.values():
                zone.cursor = 0
        yielded = cycle[:past_lead] if past_lead > 0 else lead[: self._calls]
        for name in yielded:
            self._zones[self._zone_of[name]].cursor += 1
        self._turn = list(self._zones).index(self._zone_of[yielded[-1]]) + 1
        self._calls = 0


def _walk(zones: list[_Zone], cursors: list[int], turn: int) -> list[str]:
    """One name per zone in turn, beginning with zone *turn*, until all are exhausted."""
    order = [*range(turn, len(zones)), *range(min(turn, len(zones)))]
    rests = [zones[index].names[cursors[index] :] for index in order]
    # A zone that is exhausted gives None.
    in_turn = chain.from_iterable(zip_longest(*rests))
    return [name for name in in_turn if name is not None]


def _slice(
    lead: tuple[str, ...], cycle: tuple[str, ...], start: int, count: int
) -> tuple[str, ...]:
    """*count* names from place *start* of the lead followed by endless cycles."""
    names = lead[start : start + count]
    offset = max(start - len(lead), 0) % len(cycle)
    missing = count - len(names)
    if not names and not offset and missing == len(cycle):
        return cycle
    while missing > 0:
        part = cycle[offset : offset + missing]
        names += part
        missing -= len(part)
        offset = 0
    return names
