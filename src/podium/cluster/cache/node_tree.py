"""The order in which nodes are looked at: one node of each zone in turn.

Kubernetes v1.13 walks the tree with cursors that outlive the pod: each call yields one node, and a
pod that stopped early leaves the cursors where the following pod goes on. Additions and removals do
not move the cursors, so a node may be met twice or not at all in the pass after them. Later
versions made a list of it (`round_robin_order`), without cursors.

Calls between two changes of the tree always yield a *lead* (what the zones have left, at most one
pass) and then the same *cycle* over and over. Both are computed once per change, so `peek` of a
whole pass costs nothing per node, and `advance` is an addition. The cursors themselves are worked
out again only when the tree changes.

Nodes are added and removed by their names, and yielded as the rows that they have in the columns:
an order of many thousands of nodes is made without looking up their names.

Upstream: internal/cache/node_tree.go, Kubernetes v1.13; backend/cache/node_tree.go, v1.36.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

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
    if not labels:
        return ""
    regions, zones = keys
    region, zone = _first(labels, regions), _first(labels, zones)
    # The null character cannot occur in a label, so no two pairs share a key.
    return f"{region}:\0:{zone}" if region or zone else ""


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in labels:
            return labels[name]
    return ""


@dataclass(slots=True)
class _Zone:
    """The nodes of a zone in the order of addition, and how many of them a pass has yielded."""

    names: list[str] = field(default_factory=list)
    #: The row of each name.
    rows: array[int] = field(default_factory=lambda: array("q"))
    cursor: int = 0


class _Walk(NamedTuple):
    """Nodes in the order in which zones take turns."""

    rows: np.ndarray
    #: The number of the zone of each.
    zones: np.ndarray


_NOWHERE: Final = _Walk(np.zeros(0, np.int64), np.zeros(0, np.int64))


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
        #: The zone of each node.
        self.zone_of: dict[str, str] = {}
        #: Which zone is next. With the zones' own cursors: the state at the last change.
        self._turn = 0
        #: Nodes yielded since then, counted within the lead and one cycle.
        self._calls = 0
        #: Nodes yielded until every zone is exhausted, and by every later pass; `None`: stale.
        self._lead: _Walk | None = _NOWHERE
        self._cycle: _Walk | None = _NOWHERE
        self._pass: tuple[int, int, np.ndarray] = (0, 0, _NOWHERE.rows)
        self._list = _NodeList()
        #: What `round_robin_order` gives while no node comes or goes; None: it is to be asked.
        self.listed: np.ndarray | None = None

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.zone_of)

    def __contains__(self, name: str) -> bool:
        """Whether the node is in the tree."""
        return name in self.zone_of

    def add(self, name: str, zone: str, row: int) -> None:
        """Append a node to its zone. A name that is in the tree already is left where it is."""
        if name in self.zone_of:
            return
        self._settle()
        found = self._zones.get(zone)
        if found is None:
            found = self._zones[zone] = _Zone()
        found.names.append(name)
        found.rows.append(row)
        self.zone_of[name] = zone
        self.listed = None
        self._list.note_added(name, row)

    def remove(self, name: str) -> bool:
        """Take a node out; a zone goes with its last node. Tells whether the node was there.

        No cursor moves: the node that steps into the freed place is skipped until the next pass
        if the place was yielded already.
        """
        if name not in self.zone_of:
            return False
        self._settle()
        key = self.zone_of.pop(name)
        zone = self._zones[key]
        place = zone.names.index(name)
        del zone.names[place]
        self.listed = None
        self._list.note_removed(name, zone.rows.pop(place))
        if not zone.names:
            del self._zones[key]
        return True

    def update(self, name: str, zone: str, row: int) -> None:
        """Move a node whose zone changed to the end of its new zone; add an unknown one."""
        if self.zone_of.get(name) == zone:
            return
        self.remove(name)
        self.add(name, zone, row)

    def take(self, count: int) -> np.ndarray:
        """Yield the next *count* rows: `peek`, then `advance`."""
        rows = self.peek(count)
        self.advance(count)
        return rows

    def peek(self, count: int) -> np.ndarray:
        """The rows that would be yielded next, *count* of them; the cursors stay.

        A whole pass over a tree that did not change is the same array each time.
        """
        lead, cycle = self._walks()
        if not len(cycle.rows) or count <= 0:
            return _NOWHERE.rows
        calls, size, rows = self._pass
        if (calls, size) != (self._calls, count):
            rows = _part(lead.rows, cycle.rows, self._calls, count)
            self._pass = (self._calls, count, rows)
        return rows

    def advance(self, count: int) -> None:
        """Leave the cursors as if *count* rows were yielded."""
        lead, cycle = self._walks()
        size = len(cycle.rows)
        if not size:
            return
        calls = self._calls + count
        # Passes differ by whole cycles; the end of a cycle is kept apart from its beginning
        # (exhausted zones, not fresh ones), because a node added there is yielded at once.
        past = calls - len(lead.rows) - 1
        self._calls = calls if past < size else calls - past // size * size

    def ring(self) -> tuple[np.ndarray, int]:
        """All rows and a place among them: a whole pass begins there and wraps around.

        While the tree does not change, the rows are the same array and only the place moves, so
        callers can keep what they derive from them.
        """
        lead, cycle = self._walks()
        size = len(cycle.rows)
        if lead is not cycle and self._calls < len(lead.rows):
            return self.peek(size), 0
        return cycle.rows, (self._calls - len(lead.rows)) % size if size else 0

    def round_robin_order(self) -> np.ndarray:
        """All rows as v1.36 lists them: the first of each zone, then the second, and so on.

        The list is made anew when names came or went since it was last asked for; a node that
        only changed its zone keeps its old place until then.
        """
        rows = self._list.present()
        if rows is None:
            self._list = _NodeList(self._walks()[1].rows)
            rows = self._walks()[1].rows
        self.listed = rows
        return rows

    def position(self) -> TreePosition:
        """The zones, the cursors and the list, from which `restored` makes the same tree."""
        zones = [(key, list(zone.names), zone.cursor) for key, zone in self._zones.items()]
        name_of = {
            row: name
            for zone in self._zones.values()
            for row, name in zip(zone.rows, zone.names, strict=True)
        }
        stale = self._list.is_stale(len(self))
        listed: list[str] | None = self._list.names(name_of)
        if not stale and listed == [name_of[row] for row in self._walks()[1].rows.tolist()]:
            listed = None
        return TreePosition(zones, self._turn, self._calls, listed, stale)

    @classmethod
    def restored(cls, position: TreePosition, row_of: Mapping[str, int]) -> NodeTree:
        """The tree whose `position` this is; *row_of* has the rows of its nodes."""
        tree = cls()
        for key, names, cursor in position.zones:
            tree._zones[key] = _Zone(
                list(names), array("q", map(row_of.__getitem__, names)), cursor
            )
            tree.zone_of.update(dict.fromkeys(names, key))
        tree._turn, tree._calls = position.turn, position.calls
        tree._lead = tree._cycle = None
        if position.listed is None:
            tree._list = _NodeList(tree._walks()[1].rows)
        else:
            present = {name: row_of[name] for name in tree.zone_of}
            tree._list = _NodeList.restored(position.listed, present)
        return tree

    def _walks(self) -> tuple[_Walk, _Walk]:
        """The lead and the cycle, computed again after a change."""
        if self._lead is None or self._cycle is None:
            zones = list(self._zones.values())
            self._lead = self._cycle = _walk(zones, [0] * len(zones), 0)
            cursors = [zone.cursor for zone in zones]
            if any(cursors) or self._turn % max(len(zones), 1):
                lead = _walk(zones, cursors, self._turn)
                if not np.array_equal(lead.rows, self._cycle.rows):
                    self._lead = lead
            self._pass = (0, 0, _NOWHERE.rows)
        return self._lead, self._cycle

    def _settle(self) -> None:
        """Bring the cursors to where the calls so far have left them; a change follows."""
        lead, cycle = self._lead, self._cycle
        self._lead = self._cycle = None
        if lead is None or cycle is None or not self._calls:
            return
        past_lead = self._calls - len(lead.rows)
        zones = list(self._zones.values())
        if past_lead > 0:  # every zone was exhausted once, and the cursors began anew
            for zone in zones:
                zone.cursor = 0
        yielded = cycle.zones[:past_lead] if past_lead > 0 else lead.zones[: self._calls]
        for zone, count in zip(zones, np.bincount(yielded, minlength=len(zones)), strict=True):
            zone.cursor += int(count)
        self._turn = int(yielded[-1]) + 1
        self._calls = 0


class _NodeList:
    """A list of nodes that was made of a tree, and the nodes that came and went since."""

    def __init__(self, rows: np.ndarray = _NOWHERE.rows) -> None:
        #: The row that each node had when the list was made.
        self._rows = rows
        #: Nodes that came since, and are not in the list.
        self._came: set[str] = set()
        #: Nodes of the list that went since, with their rows in the list.
        self._gone: dict[str, int] = {}
        #: Nodes of the list that went and came back, with their rows in the list and now.
        self._back: dict[str, tuple[int, int]] = {}

    @classmethod
    def restored(cls, names: list[str], row_of: Mapping[str, int]) -> _NodeList:
        """A list of these names, now that the tree has the nodes of *row_of*."""
        # Nodes that are gone have no row; any numbers will do that no row has.
        numbered = {name: row_of.get(name, ~place) for place, name in enumerate(names)}
        made = cls(np.fromiter(numbered.values(), np.int64, len(names)))
        made._gone = {name: row for name, row in numbered.items() if row < 0}
        made._came = row_of.keys() - numbered.keys() if names else set()
        return made

    def note_added(self, name: str, row: int) -> None:
        """A node was added to the tree."""
        if name in self._gone:
            self._back[name] = (self._gone.pop(name), row)
        elif len(self._rows):  # an empty list is stale with any node
            self._came.add(name)

    def note_removed(self, name: str, row: int) -> None:
        """A node on this row was removed from the tree."""
        if name in self._back:
            self._gone[name] = self._back.pop(name)[0]
        elif name in self._came:
            self._came.discard(name)
        elif len(self._rows):
            self._gone[name] = row

    def is_stale(self, nodes: int) -> bool:
        """Whether the tree, which has so many nodes, has others than the list."""
        return bool(self._came or self._gone) or (nodes > 0 and not len(self._rows))

    def present(self) -> np.ndarray | None:
        """The rows of the list, the same array while no node has another row; None if it is stale.

        None as well where there are no nodes.
        """
        if self._came or self._gone or not len(self._rows):
            return None
        if self._back:
            moved = {before: row for before, row in self._back.values() if before != row}
            self._back.clear()
            if moved:
                rows = [moved.get(row, row) for row in self._rows.tolist()]
                self._rows = np.array(rows, np.int64)
        return self._rows

    def names(self, name_of: Mapping[int, str]) -> list[str]:
        """The names of the list; *name_of* has those of the rows in the tree."""
        known = dict(name_of)
        known.update((before, name) for name, (before, _) in self._back.items())
        known.update((row, name) for name, row in self._gone.items())
        return [known[row] for row in self._rows.tolist()]


def _walk(zones: list[_Zone], cursors: list[int], turn: int) -> _Walk:
    """One node per zone in turn, beginning with zone *turn*, until all are exhausted."""
    order = [*range(turn, len(zones)), *range(min(turn, len(zones)))]
    rests = [np.array(zones[index].rows)[cursors[index] :] for index in order]
    if not rests:
        return _NOWHERE
    # Places within zones, zone after zone; equal places stay in the order of the zones.
    places = np.concatenate([np.arange(len(rest)) for rest in rests])
    in_turn = np.argsort(places, kind="stable")
    numbers = np.repeat(order, [len(rest) for rest in rests])
    return _Walk(np.concatenate(rests)[in_turn], numbers[in_turn])


def _part(lead: np.ndarray, cycle: np.ndarray, start: int, count: int) -> np.ndarray:
    """*count* rows from place *start* of the lead followed by endless cycles."""
    if lead is cycle or start >= len(lead):
        start = (start - len(lead)) % len(cycle)
        if not start and count == len(cycle):
            return cycle
        return np.resize(np.roll(cycle, -start), count)
    rows = lead[start : start + count]
    return np.concatenate([rows, np.resize(cycle, count - len(rows))])
