"""The nodes of a cluster as columns, one row per node.

Words are interned when they first appear, so that rules compare small integers. A row without a
node object (`known` is False) holds pods that name a node which does not exist; it is in no order.
Rows are reused once neither a node nor pods are left on them.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.engine.state.accounting import NATIVE, Amounts
from podium.engine.state.label_column import LabelColumn
from podium.objects.quantity import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.objects.kinds.node import Node


#: Names of so many rows or more are kept for the next time.
MANY_NAMES = 64
#: For so many numbers of rows.
MOST_NAMED = 8


class FactColumn:
    """An interned fact per row, such as the list of the node's taints."""

    __slots__ = ("ids", "index", "values")

    def __init__(self, capacity: int, absent: Any) -> None:
        self.ids = np.zeros(capacity, np.int32)
        self.values: list[Any] = [absent]
        self.index: dict[Any, int] = {absent: 0}

    def put(self, row: int, value: Any) -> None:
        """Set the fact of a row."""
        found = self.index.get(value)
        if found is None:
            found = self.index[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = found

    def on(self, row: int) -> Any:
        """The fact of a row."""
        return self.values[self.ids.item(row)]

    def clear(self, row: int) -> None:
        """Set the fact of a row to the absent value."""
        self.ids[row] = 0

    def trim(self) -> None:
        """Number the values in use anew; 0 stays the absent one."""
        used = [0, *(number for number in np.bincount(self.ids).nonzero()[0].tolist() if number)]
        self.ids = np.searchsorted(used, self.ids).astype(self.ids.dtype)
        self.values = [self.values[number] for number in used]
        self.index = {value: number for number, value in enumerate(self.values)}


class Facts:
    """The interned facts of nodes, one column each."""

    def __init__(self, capacity: int) -> None:
        self.taints = FactColumn(capacity, ())
        self.conditions = FactColumn(capacity, ())
        self.pressures = FactColumn(capacity, frozenset())
        self.unschedulable = FactColumn(capacity, False)  # noqa: FBT003 - the absent value
        self.zone = FactColumn(capacity, "")
        self.avoid = FactColumn(capacity, "")
        self.attach_limits = FactColumn(capacity, ())
        self.features = FactColumn(capacity, frozenset())

    def columns(self) -> list[FactColumn]:
        """All columns, for what is done to every one of them."""
        return list(vars(self).values())


class ImageNodes(NamedTuple):
    """The nodes that have an image."""

    #: As the first of them reported it.
    size: int
    #: Row -> how many nodes had the image when that node was last updated.
    counts: dict[int, int]


NO_NODES = ImageNodes(0, {})


class LabelMove(NamedTuple):
    """The value of a label that changed on a row: its number before and after."""

    key: str
    before: int
    after: int


class NodeColumns:
    """Names, objects, labels, resources, facts and images of nodes.

    `cluster.cache.columns.Columns` writes them, by the methods below; columns of labels are also
    made when a rule first reads them.
    """

    def __init__(self, capacity: int) -> None:
        #: The length of every column; rows beyond `names` are not in use.
        self.capacity = capacity
        #: The node name of each row; empty for a row that is free.
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        #: The node object of each row; None where there is no such node.
        self.objects: list[Node | None] = []
        #: The labels of each row; empty where there is no node.
        self.labels: list[Mapping[str, str]] = []
        self.known = np.zeros(capacity, np.bool_)
        #: The rows of all nodes, in node order.
        self.order = np.zeros(0, np.int64)
        #: Resource name -> its column in `allocatable` and `PodIndex.requested`.
        self.resources: dict[str, int] = {name: i for i, name in enumerate(NATIVE)}
        #: What nodes can allocate of the native resources, and the pods they may hold: a line each,
        #: so that all numbers of some rows are read together.
        self.numbers = np.zeros((len(NATIVE) + 1, capacity), np.int64)
        #: The same lines as columns, and a column for every other resource.
        self.allocatable = list(self.numbers[:-1])
        self.allowed_pods: np.ndarray = self.numbers[-1]
        self.facts = Facts(capacity)
        #: Label key -> its column, for the keys that were read.
        self.label_columns: dict[str, LabelColumn] = {}
        #: The images that nodes have, by each of their names.
        self.images: dict[str, ImageNodes] = {}
        #: Changes when a node comes, goes, or has other images.
        self._images_version = 0
        #: Row -> the version of the images for which `counts_images_of` was true.
        self._images_counted: dict[int, int] = {}
        self._free: list[int] = []
        #: The order with spare room at its end, so that many nodes are added in linear time.
        self._order_room = self.order
        #: The order that was last checked for rows named twice, and the answer.
        self._checked_order: tuple[np.ndarray, bool] = (self.order, True)
        #: Per row, a number that is the same for nodes that can allocate the same of native
        #: resources, and allow as many pods; and these numbers by what can be allocated.
        self.sizes: list[int] = []
        self._known_sizes: dict[tuple[int, ...], int] = {}
        #: Whether all nodes offer a resource, by its column; see `all_offer`.
        self._offered: dict[int, bool] = {}
        #: By their number: many rows, and the names of their nodes.
        self._named: dict[int, tuple[np.ndarray, tuple[str, ...]]] = {}
        #: The names of all rows as an array, until one of them is another; see `name_array`.
        self._name_array: np.ndarray | None = None

    # Reading ----------------------------------------------------------------------------------

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use."""
        column = self.label_columns.get(key)
        if column is None:
            column = self.label_columns[key] = LabelColumn(self.capacity)
            column.fill(list(map(methodcaller("get", key), self.labels)))
        return column

    def rows_named(self, names: Sequence[str]) -> np.ndarray:
        """The rows of these nodes, in this order."""
        return np.fromiter(map(self.row_of.__getitem__, names), np.int64, len(names))

    def names_of(self, rows: np.ndarray) -> tuple[str, ...]:
        """The names of the nodes on these rows, in this order.

        Those of many rows are kept for the next time, the last ones of each number of rows.
        """
        if len(rows) < MANY_NAMES:
            return tuple(map(self.names.__getitem__, rows.tolist()))
        known = self._named.get(len(rows))
        if known is not None and (known[0] is rows or (known[0] == rows).all()):
            return known[1]
        names = tuple(self.name_array()[rows].tolist())
        if len(self._named) >= MOST_NAMED:
            self._named.clear()
        # An order that was handed out never changes; other rows may.
        self._named[len(rows)] = rows if rows is self.order else rows.copy(), names
        return names

    def name_array(self) -> np.ndarray:
        """The names of all rows as an array of objects, which picks those of many rows faster.

        The array never changes: after a change of a name there is another one.
        """
        found = self._name_array
        if found is None or len(found) != len(self.names):
            found = self._name_array = np.array(self.names, np.object_)
        return found

    def names_once(self, order: np.ndarray) -> bool:
        """Whether an order names no row twice; kept for the order that was last checked."""
        if self._checked_order[0] is not order:
            named = np.zeros(self.capacity, np.bool_)
            named[order] = True
            self._checked_order = (order, int(named.sum()) == len(order))
        return self._checked_order[1]

    def all_offer(self, resource: int) -> bool:
        """Whether every node can allocate something of a resource."""
        found = self._offered.get(resource)
        if found is None:
            found = bool(self.allocatable[resource][self.order].all())
            self._offered[resource] = found
        return found

    def all_have(self, key: str) -> bool:
        """Whether every node has a label key."""
        return self.label_column(key).held == len(self.order)

    def count_images_anew(self) -> set[int]:
        """Let every node know its images as they are counted now; the rows that did not."""
        changed: set[int] = set()
        for known in self.images.values():
            number = len(known.counts)
            changed.update(row for row, counted in known.counts.items() if counted != number)
            known.counts.update(dict.fromkeys(known.counts, number))
        return changed

    def counts_images_of(self, row: int) -> bool:
        """Whether the node knows its images as they are counted now; an update counts them anew."""
        if self._images_counted.get(row) == self._images_version:
            return True
        node = self.objects[row]
        for image in (node.status.images if node else None) or ():
            for name in image.names or ():
                counts = self.images[name].counts
                if counts[row] != len(counts):
                    return False
        self._images_counted[row] = self._images_version
        return True

    def note_order(self, order: np.ndarray, *, names_once: bool) -> None:
        """Take over what is known of an order already; see `names_once`."""
        self._checked_order = (order, names_once)

    # Writing ----------------------------------------------------------------------------------

    def resource(self, name: str) -> int:
        """The column of a resource, made on first use."""
        found = self.resources.get(name)
        if found is None:
            found = self.resources[name] = len(self.resources)
            self.allocatable.append(np.zeros(self.capacity, np.int64))
        return found

    def new_row(self, name: str) -> int:
        """Take a row for a node of this name; all columns become longer when none is free."""
        if self._free:
            row = self._free.pop()
            self._rename(row, name)
        else:
            row = len(self.names)
            if row == self.capacity:
                self._grow()
            self.names.append(name)
            self.objects.append(None)
            self.labels.append({})
            self.sizes.append(-1)
        self.row_of[name] = row
        return row

    def free_row(self, row: int) -> None:
        """Give back a row that holds neither a node nor pods."""
        del self.row_of[self.names[row]]
        self._rename(row, "")
        self._free.append(row)

    def _rename(self, row: int, name: str) -> None:
        self.names[row] = name
        self._named.clear()
        self._name_array = None

    def put(self, row: int, node: Node) -> list[LabelMove]:
        """Set the node of a row, except for its facts; returns the labels that changed."""
        before = self.objects[row]
        if before is None:
            self._append_to_order(row)
            self.known[row] = True
        self.objects[row] = node
        self._put_allocatable(row, node)
        self._drop_images(row, before)
        self._put_images(row, node)
        if before is None or before.status.images != node.status.images:
            self._images_version += 1
        self._images_counted[row] = self._images_version
        return self._put_labels(row, node.labels)

    def drop(self, row: int) -> list[LabelMove]:
        """Clear the node of a row; returns the labels that it had."""
        self._drop_images(row, self.objects[row])
        self._images_version += 1
        for column in (*self.allocatable, self.allowed_pods):
            column[row] = 0
        self._note_size(row, (0,) * len(self.numbers))
        for fact in self.facts.columns():
            fact.clear(row)
        self.objects[row] = None
        self.known[row] = False
        self._offered.clear()
        self.order = self._order_room = self.order[self.order != row]
        return self._put_labels(row, {})

    def trim(self) -> None:
        """Forget label columns, and values of facts that no node has any more."""
        self.label_columns = {}
        for fact in self.facts.columns():
            fact.trim()

    def _grow(self) -> None:
        self.capacity *= 2
        self.known = longer(self.known, self.capacity)
        self.numbers = longer(self.numbers, self.capacity)
        self.allowed_pods = self.numbers[-1]
        others = [longer(column, self.capacity) for column in self.allocatable[len(NATIVE) :]]
        self.allocatable[:] = [*self.numbers[:-1], *others]
        for fact in self.facts.columns():
            fact.ids = longer(fact.ids, self.capacity)
        for label in self.label_columns.values():
            label.ids = longer(label.ids, self.capacity)

    def _append_to_order(self, row: int) -> None:
        """Append without changing arrays that were handed out: only spare room is written."""
        count = len(self.order)
        if count == len(self._order_room):
            spare = np.zeros(max(count, 64), np.int64)
            self._order_room = np.concatenate([self.order, spare])
        self._order_room[count] = row
        self.order = self._order_room[: count + 1]

    def _put_labels(self, row: int, labels: Mapping[str, str]) -> list[LabelMove]:
        moves: list[LabelMove] = []
        if self.labels[row] != labels:
            for key, column in self.label_columns.items():
                before, after = column.ids.item(row), column.intern(labels.get(key))
                if before != after:
                    column.put(row, labels.get(key))
                    moves.append(LabelMove(key, before, after))
        self.labels[row] = labels
        return moves

    def _put_allocatable(self, row: int, node: Node) -> None:
        amounts = Amounts()
        amounts.add(node.status.allocatable)
        for column, number in enumerate(amounts.native):
            self.allocatable[column][row] = number
        scalars = {self.resource(name): number for name, number in amounts.scalars.items()}
        for column in range(len(NATIVE), len(self.allocatable)):
            self.allocatable[column][row] = scalars.get(column, 0)
        for column, offered in list(self._offered.items()):
            if offered != bool(self.allocatable[column][row]):
                del self._offered[column]
        pods = self.allowed_pods[row] = value((node.status.allocatable or {}).get("pods", 0))
        self._note_size(row, (*amounts.native, pods))

    def _note_size(self, row: int, numbers: tuple[int, ...]) -> None:
        known = self._known_sizes
        self.sizes[row] = known.setdefault(numbers, len(known))

    def _put_images(self, row: int, node: Node) -> None:
        images = self.images
        for image in node.status.images or ():
            for name in image.names or ():
                known = images.get(name)
                if known is None:
                    known = images[name] = ImageNodes(image.size_bytes, {})
                counts = known.counts
                counts[row] = 0  # so that the node itself is counted, once
                counts[row] = len(counts)

    def _drop_images(self, row: int, node: Node | None) -> None:
        for image in (node.status.images if node else None) or ():
            for name in image.names or ():
                known = self.images.get(name)
                if known is not None:
                    known.counts.pop(row, None)
                    if not known.counts:
                        del self.images[name]


def longer(column: np.ndarray, capacity: int) -> np.ndarray:
    """A copy of a column, or of several lines, with room for *capacity* rows; new ones are 0."""
    room = np.zeros((*column.shape[:-1], capacity), column.dtype)
    room[..., : column.shape[-1]] = column
    return room
