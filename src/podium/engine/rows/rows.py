"""The rows that a rule reads: a generic protocol, and its two plain forms.

A rule is one expression over `Ints`, `Flags` and `Floats`. The form of the rows decides what these
are: arrays with an entry per row (many rows), or plain numbers (one row). One row of plain numbers
costs less than one row of NumPy; many rows cost next to nothing as arrays. The type parameter keeps
the forms apart: the type checker refuses an expression that mixes the numbers of two forms, or
that calls what a form does not have.

| form        | `Ints` are   | rows                              | used for                        |
|-------------|--------------|-----------------------------------|---------------------------------|
| `ManyRows`  | int64 arrays | as they are                       | all rows, or many               |
| `OneRow`    | `int`        | as they are                       | the few rows that changed       |
| `TrialRow`  | `int`        | with pods added and removed       | nominated pods, victims         |
| `TrialRows` | int64 arrays | with pods added and removed, each | the same on many rows at a time |
"""

from __future__ import annotations

import math
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import numpy as np
from typing_extensions import override

from podium.engine.state.accounting import TOP, wrap
from podium.engine.state.label_column import ABSENT
from podium.engine.state.node_columns import NO_NODES
from podium.engine.state.pod_class import ANY_IP, Port
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping

    from podium.engine.state.label_column import LabelColumn
    from podium.engine.state.node_columns import FactColumn
    from podium.engine.state.pod_class import PodClass, Resident
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.verdicts import Reason, Verdicts
    from podium.engine.state.view import View
    from podium.objects.selectors.selectors import FieldSelector, Requirement

NAME_FIELD = "metadata.name"
#: The verdict codes of the combinations of so many reasons are kept in a table.
MOST_IN_TABLE = 10
#: Integers below this are exact as doubles.
EXACT = 1 << 53
#: So many integers are divided in less time than it takes to see that doubles would hold them.
FEW_DIVISIONS = 1024

#: The smallest number of an array; the method of the array takes twice the time for a short one.
lowest = np.minimum.reduce


class Column:
    """The form of many rows; only a type parameter."""


class Scalar:
    """The form of one row; only a type parameter."""


#: The form of the rows: `Column` or `Scalar`.
K = TypeVar("K")
T = TypeVar("T")


class Ints(Protocol[K]):  # noqa: PLW1641 - arrays have no hash
    """An integer of each row: an int64 array, or one plain int."""

    @overload
    def __add__(self, other: Ints[K] | int, /) -> Ints[K]: ...
    @overload
    def __add__(self, other: Floats[K] | float, /) -> Floats[K]: ...
    @overload
    def __radd__(self, other: int, /) -> Ints[K]: ...
    @overload
    def __radd__(self, other: float, /) -> Floats[K]: ...
    def __sub__(self, other: Ints[K] | int, /) -> Ints[K]: ...
    def __rsub__(self, other: int, /) -> Ints[K]: ...
    @overload
    def __mul__(self, other: Ints[K] | int, /) -> Ints[K]: ...
    @overload
    def __mul__(self, other: Floats[K] | float, /) -> Floats[K]: ...
    @overload
    def __rmul__(self, other: int, /) -> Ints[K]: ...
    @overload
    def __rmul__(self, other: float, /) -> Floats[K]: ...
    def __truediv__(self, other: Ints[K] | float, /) -> Floats[K]: ...
    def __neg__(self) -> Ints[K]: ...
    def __lshift__(self, other: int, /) -> Ints[K]: ...
    def __or__(self, other: Ints[K] | Flags[K] | int, /) -> Ints[K]: ...
    def __lt__(self, other: Ints[K] | int, /) -> Flags[K]: ...
    def __le__(self, other: Ints[K] | int, /) -> Flags[K]: ...
    def __gt__(self, other: Ints[K] | int, /) -> Flags[K]: ...
    def __ge__(self, other: Ints[K] | int, /) -> Flags[K]: ...
    def __eq__(self, other: Ints[K] | int, /) -> Flags[K]: ...  # type: ignore[override]
    def __ne__(self, other: Ints[K] | int, /) -> Flags[K]: ...  # type: ignore[override]


class Flags(Protocol[K]):  # noqa: PLW1641 - arrays have no hash
    """Yes or no for each row: a bool array, or one plain bool. `x ^ True` is its negation."""

    def __and__(self, other: Flags[K] | bool, /) -> Flags[K]: ...
    def __or__(self, other: Flags[K] | bool, /) -> Flags[K]: ...
    def __xor__(self, other: Flags[K] | bool, /) -> Flags[K]: ...
    def __mul__(self, other: int, /) -> Ints[K]: ...
    def __eq__(self, other: Flags[K] | bool, /) -> Flags[K]: ...  # type: ignore[override]
    def __ne__(self, other: Flags[K] | bool, /) -> Flags[K]: ...  # type: ignore[override]


class Floats(Protocol[K]):
    """A double of each row: a float64 array, or one plain float."""

    def __add__(self, other: Floats[K] | Ints[K] | float, /) -> Floats[K]: ...
    def __radd__(self, other: float, /) -> Floats[K]: ...
    def __sub__(self, other: Floats[K] | Ints[K] | float, /) -> Floats[K]: ...
    def __rsub__(self, other: float, /) -> Floats[K]: ...
    def __mul__(self, other: Floats[K] | Ints[K] | float, /) -> Floats[K]: ...
    def __rmul__(self, other: float, /) -> Floats[K]: ...
    def __truediv__(self, other: Floats[K] | Ints[K] | float, /) -> Floats[K]: ...
    def __abs__(self) -> Floats[K]: ...
    def __lt__(self, other: Floats[K] | float, /) -> Flags[K]: ...
    def __le__(self, other: Floats[K] | float, /) -> Flags[K]: ...
    def __gt__(self, other: Floats[K] | float, /) -> Flags[K]: ...
    def __ge__(self, other: Floats[K] | float, /) -> Flags[K]: ...


class Rows(Protocol[K]):
    """Some rows of the view, as a rule reads them."""

    __slots__ = ()

    view: View
    #: Errors that a filter reported: position among these rows -> text.
    errors: dict[int, str]

    #: Whether pods were added to or removed from these rows, for this evaluation only.
    modified: bool

    def __len__(self) -> int: ...

    # Numbers of the node and its pods

    def requested(self, resource: int) -> Ints[K]:
        """What the pods on the row request of a resource."""

    def allocatable(self, resource: int) -> Ints[K]:
        """What the node can allocate of a resource."""

    def offers(self, resource: int) -> Flags[K]:
        """Whether the node can allocate anything of a resource.

        One plain True stands for many rows where all nodes of the cluster do.
        """

    def nonzero_requested(self, resource: int) -> Ints[K]:
        """Requested cpu (0) or memory (1) as scores count it: with a floor for each container."""

    def pod_count(self) -> Ints[K]:
        """How many pods are on the row."""

    def allowed_pods(self) -> Ints[K]:
        """How many pods the node may hold."""

    # Counts of pods

    def may_count(self, tally: Tally) -> bool:
        """Whether the tally may count a pod anywhere; if not, its counts need not be read."""
        return bool(tally.carriers)

    def on_row(self, tally: Tally) -> Ints[K]:
        """What the tally counts on the row itself."""

    def domain(self, tally: Tally, key: str) -> Ints[K]:
        """What the tally counts in the row's domain of a label key; 0 where the key is absent."""

    def weighted_domain(self, weighted: list[tuple[int, Tally]], key: str) -> Ints[K]:
        """The weighted sum of several tallies in the row's domain of a label key."""

    def total(self, tally: Tally, key: str) -> Ints[K] | int:
        """What the tally counts on all rows that have the key."""
        return tally.total(key)

    def gained_labels(
        self,
        key: Hashable,  # noqa: ARG002 - modified rows read them
        fact: Callable[[LabelSet], int],  # noqa: ARG002
    ) -> Ints[K] | int:
        """The sum of a fact of label sets over the pods added, less that over those removed.

        0 on rows that are not modified. `key` names the fact: equal keys stand for equal facts.
        """
        return 0

    def gained_classes(
        self,
        key: Hashable,  # noqa: ARG002
        fact: Callable[[PodClass], int],  # noqa: ARG002
    ) -> Ints[K] | int:
        """The same sum for a fact of pod classes."""
        return 0

    def readded(
        self,
        key: Hashable,  # noqa: ARG002
        fact: Callable[[LabelSet], int],  # noqa: ARG002
    ) -> Ints[K] | int:
        """The sum of a fact of label sets over the pods that were removed and added again."""
        return 0

    # Facts of the node

    def fact(self, column: FactColumn | LabelColumn, answer: Callable[[Any], int]) -> Ints[K]:
        """The answer for the node's value of a fact; asked once per distinct value."""

    def flag(self, column: FactColumn | LabelColumn, answer: Callable[[Any], bool]) -> Flags[K]:
        """The same for an answer that is yes or no."""

    def accepts(self, requirement: Requirement) -> Flags[K]:
        """Whether the node's labels meet a requirement."""

    def has_label(self, key: str) -> Flags[K]:
        """Whether the node has a label key."""

    def label_ids(self, key: str) -> Ints[K]:
        """The id of the node's value of a label key; 0 where it is absent."""

    def label_entry(self, table: np.ndarray, key: str) -> Ints[K]:
        """The entry of a table of integers, by the id of the node's value of a label key."""

    def label_flag(self, table: np.ndarray, key: str) -> Flags[K]:
        """The entry of a table of flags, by the id of the node's value of a label key."""

    def matches_fields(self, fields: FieldSelector) -> Flags[K]:
        """Whether the node's fields (its name) meet a field selector."""

    def is_node(self, name: str) -> Flags[K]:
        """Whether the row is the node of this name."""

    def port_conflict(self, wanted: Iterable[Port]) -> Flags[K]:
        """Whether a pod on the row uses a host port that one of these conflicts with."""

    def has_image(self, name: str) -> Flags[K]:
        """Whether the node reports an image."""

    def image_size(self, name: str) -> Ints[K]:
        """The size of an image that the node reports; 0 where it does not."""

    def image_nodes(self, name: str) -> Ints[K]:
        """On how many nodes the image was when the node last reported; 0 where it does not."""

    # Arithmetic: the same for arrays and plain numbers, 64 bits wide

    def full(self, value: int) -> Ints[K]:
        """The same integer on every row."""

    def flags(self, value: bool) -> Flags[K]:  # noqa: FBT001 - a constant column
        """The same flag on every row."""

    @overload
    def where(self, condition: Flags[K], yes: Ints[K] | int, no: Ints[K] | int) -> Ints[K]: ...
    @overload
    def where(
        self, condition: Flags[K], yes: Floats[K] | float, no: Floats[K] | float
    ) -> Floats[K]: ...
    def where(self, condition: Flags[K], yes: Any, no: Any) -> Any:
        """`yes` where the condition holds, else `no`."""

    def divide(self, number: Ints[K], by: Ints[K] | int) -> Ints[K]:
        """Integer division that truncates toward zero; 0 where the divisor is 0."""

    def ratio(self, number: Ints[K], by: Ints[K]) -> Floats[K]:
        """Division in doubles; 1.0 where the divisor is 0."""

    def truncate(self, number: Floats[K]) -> Ints[K]:
        """A double as an integer, truncated toward zero; the lowest one if it does not fit."""

    def sqrt(self, number: Floats[K]) -> Floats[K]:
        """The square root in doubles."""

    def wrap(self, number: Ints[K]) -> Ints[K]:
        """The number as a signed 64-bit integer holds it."""

    def highest(self, number: Ints[K]) -> int:
        """The largest of all rows, at least 0."""

    def outside(self, number: Ints[K], highest: int) -> Flags[K]:
        """Where the number is below 0 or above *highest*; one plain False if it is nowhere."""

    # Verdicts

    def any(self, bits: Ints[K] | Flags[K]) -> bool:
        """Whether any bit is set on any row."""

    def codes(self, rule: str, bits: Ints[K], reasons: tuple[Reason, ...]) -> Ints[K]:
        """The verdict codes for bits, where bit i stands for reason i."""

    def fail_where(self, flags: Flags[K], text: str) -> None:
        """Report an error on some rows."""

    def fail(self, text: str) -> Ints[K]:
        """Report the same error on every row; the verdict codes to answer with."""

    # Rows one at a time

    def either(self, many: Callable[[ManyRows], Any], one: Callable[[OneRow], Any]) -> Ints[K]:
        """`many` of these rows as arrays, or `one` for a single row, which may be modified."""

    def each(self) -> Iterator[tuple[int, OneRow]]:
        """Every row by itself with its position, for rules that must look at single pods."""

    def map(self, answer: Callable[[OneRow], int]) -> Ints[K]:
        """The answer of a function of one row, for every row."""

    def sparse(
        self, rows: Container[int], answer: Callable[[OneRow], int], other: int = 0
    ) -> Ints[K]:
        """The answer of a function of one row on these `rows`, and `other` everywhere else."""

    def by_signature(
        self, flags: list[Flags[K]], answer: Callable[[tuple[bool, ...]], int]
    ) -> Ints[K]:
        """The answer for each row's combination of flags; asked once per distinct combination."""


def as_array(numbers: Ints[Column] | Flags[Column] | Floats[Column]) -> np.ndarray:
    """Numbers of many rows as the array that they are."""
    return numbers  # type: ignore[return-value]


def as_int(number: Ints[Scalar] | Flags[Scalar]) -> int:
    """The number of one row as the plain int that it is."""
    return number  # type: ignore[return-value]


def conflict(used: Port, wanted: Port) -> bool:
    """Whether two host ports exclude each other; the ip 0.0.0.0 stands for all of them."""
    if used[1:] != wanted[1:]:
        return False
    return used[0] == wanted[0] or ANY_IP in (used[0], wanted[0])


def code_of(verdicts: Verdicts, rule: str, bits: int, reasons: tuple[Reason, ...]) -> int:
    """The verdict code of the reasons whose bits are set."""
    if not bits:
        return FITS
    return verdicts.of(rule, tuple(reason for i, reason in enumerate(reasons) if bits >> i & 1))


def fill_table(
    verdicts: Verdicts, rule: str, reasons: tuple[Reason, ...], bits: np.ndarray
) -> None:
    """Write the codes of these combinations of reasons into the table of the verdicts."""
    table = verdicts.table(rule, reasons)
    for each in np.bincount(bits).nonzero()[0].tolist():
        table[each] = code_of(verdicts, rule, each, reasons)


class ManyRows(Rows[Column]):
    """Rows of a view, read as arrays in the order of `index`."""

    __slots__ = ("errors", "index", "memo", "view")
    modified = False

    def __init__(
        self, view: View, index: np.ndarray, memo: dict[Hashable, Any] | None = None
    ) -> None:
        self.view = view
        self.index = index
        #: Facts of these rows that hold while the rows and their nodes stay the same.
        self.memo = memo
        self.errors: dict[int, str] = {}

    def only(self, places: np.ndarray) -> ManyRows:
        """Some of these rows, by their positions."""
        return ManyRows(self.view, self.index[places])

    def remembered(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A fact of these rows, computed once while they and their nodes stay the same."""
        if self.memo is None:
            return compute()
        if key not in self.memo:
            self.memo[key] = compute()
        found: T = self.memo[key]
        return found

    def ids(self, column: FactColumn | LabelColumn) -> np.ndarray:
        """The ids of an interned column."""
        ids: np.ndarray
        if self.memo is None:
            ids = column.ids[self.index]
            return ids
        # Kept as the type that arrays are indexed by, which makes lookups twice as fast.
        ids = self.remembered(column, lambda: column.ids[self.index].astype(np.intp))
        return ids

    def label_id_list(self, key: str) -> list[int]:
        """The number of the value of a label on each row, as plain numbers."""
        found: list[int] = self.remembered(("ids", key), lambda: self.label_ids(key).tolist())
        return found

    @override
    def __len__(self) -> int:
        return len(self.index)

    @override
    def requested(self, resource: int) -> Any:
        return self.view.pods.requested[resource][self.index]

    @override
    def allocatable(self, resource: int) -> Any:
        if self.memo is None:
            return self.view.nodes.allocatable[resource][self.index]
        found = self.memo.get(("allocatable", resource))
        if found is None:
            found = self.view.nodes.allocatable[resource][self.index]
            self.memo["allocatable", resource] = found
        return found

    @override
    def offers(self, resource: int) -> Any:
        return self.view.nodes.all_offer(resource) or self.allocatable(resource) != 0

    @override
    def nonzero_requested(self, resource: int) -> Any:
        return self.view.pods.nonzero_requested[resource][self.index]

    @override
    def pod_count(self) -> Any:
        return self.view.pods.counts[self.index]

    @override
    def allowed_pods(self) -> Any:
        return self.view.nodes.allowed_pods[self.index]

    @override
    def on_row(self, tally: Tally) -> Any:
        return tally.rows.take(self.index)

    @override
    def domain(self, tally: Tally, key: str) -> Any:
        return tally.by_domain(key).take(self.label_ids(key))

    @override
    def weighted_domain(self, weighted: list[tuple[int, Tally]], key: str) -> Any:
        weight, tally = weighted[0]
        table = tally.by_domain(key) * weight
        for weight, tally in weighted[1:]:
            other = tally.by_domain(key)
            size = min(len(table), len(other))
            table = table[:size] + other[:size] * weight
        return table.take(self.label_ids(key))

    @override
    def fact(self, column: FactColumn | LabelColumn, answer: Callable[[Any], int]) -> Any:
        answers = np.array([answer(value) for value in column.values])
        if (answers == answers[0]).all():
            return np.full(len(self.index), answers[0])
        return answers[self.ids(column)]

    @override
    def flag(self, column: FactColumn | LabelColumn, answer: Callable[[Any], bool]) -> Any:
        return self.fact(column, answer)

    @override
    def accepts(self, requirement: Requirement) -> Any:
        column = self.view.nodes.label_column(requirement.key)
        if requirement.operator in {"Exists", "DoesNotExist"}:
            return (column.ids[self.index] == ABSENT) == (requirement.operator == "DoesNotExist")
        if requirement.operator in {"In", "NotIn"}:
            wanted = requirement.operator == "In"
            table = np.full(len(column.values), not wanted)
            table[[column.index[v] for v in requirement.values if v in column.index]] = wanted
            return table[column.ids[self.index]]
        table = np.fromiter(map(requirement.accepts, column.values), np.bool_, len(column.values))
        return table[column.ids[self.index]]

    @override
    def has_label(self, key: str) -> Any:
        return self.view.nodes.label_column(key).ids[self.index] != ABSENT

    @override
    def label_ids(self, key: str) -> Any:
        return self.ids(self.view.nodes.label_column(key))

    @override
    def label_entry(self, table: np.ndarray, key: str) -> Any:
        return table[self.label_ids(key)]

    @override
    def label_flag(self, table: np.ndarray, key: str) -> Any:
        return table[self.label_ids(key)]

    @override
    def matches_fields(self, fields: FieldSelector) -> Any:
        accepted = np.full(len(self.index), not fields.nothing)
        for wanted in fields.requirements:
            if wanted.field == NAME_FIELD:
                accepted &= (
                    self.index == self.view.nodes.row_of.get(wanted.value, -1)
                ) == wanted.equal
            else:
                accepted &= wanted.accepts("")
        return accepted

    @override
    def is_node(self, name: str) -> Any:
        return self.index == self.view.nodes.row_of.get(name, -1)

    @override
    def port_conflict(self, wanted: Iterable[Port]) -> Any:
        view = self.view
        used = np.zeros(view.nodes.capacity, np.bool_)
        for port in wanted:
            rows = map(view.pods.port_rows.get, view.pods.conflicting_ports(port), repeat(()))
            used[list(chain.from_iterable(rows))] = True
        return used[self.index]

    @override
    def has_image(self, name: str) -> Any:
        rows = self.view.nodes.images.get(name, NO_NODES).counts
        return np.isin(self.index, np.fromiter(rows.keys(), np.int64, len(rows)))

    @override
    def image_size(self, name: str) -> Any:
        image = self.view.nodes.images.get(name, NO_NODES)
        return self._of_rows(dict.fromkeys(image.counts, image.size))

    @override
    def image_nodes(self, name: str) -> Any:
        return self._of_rows(self.view.nodes.images.get(name, NO_NODES).counts)

    def _of_rows(self, numbers: Mapping[int, int]) -> np.ndarray:
        """The numbers that some rows have; 0 for all others."""
        column = np.zeros(self.view.nodes.capacity, np.int64)
        rows = np.fromiter(numbers.keys(), np.int64, len(numbers))
        column[rows] = np.fromiter(numbers.values(), np.int64, len(numbers))
        found: np.ndarray = column[self.index]
        return found

    @override
    def full(self, value: int) -> Any:
        return np.full(len(self.index), value)

    @override
    def flags(self, value: bool) -> Any:
        return np.full(len(self.index), value)

    @override
    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        # Most conditions hold everywhere or nowhere, which costs less to see than to merge.
        if condition is True:
            return yes
        if isinstance(condition, np.ndarray):
            if isinstance(no, np.ndarray) and not condition.any():
                return no
            if isinstance(yes, np.ndarray) and condition.all():
                return yes
        return np.where(condition, yes, no)

    @override
    def divide(self, number: Any, by: Any) -> Any:
        if not len(self.index):
            return number
        least = lowest(number)
        if isinstance(by, int):
            if by > 0 and least >= 0:
                return number // by
        elif len(self.index) < FEW_DIVISIONS:
            if least >= 0 and lowest(by) > 0:
                return number // by
        elif least > -EXACT and number.max() < EXACT and lowest(by) > 0:
            # Doubles hold these exactly, and their quotient truncates to the right integer.
            return (number / by).astype(np.int64)
        safe = np.where(np.equal(by, 0), 1, by)
        quotient = number // safe
        inexact = quotient * safe != number
        quotient = quotient + (inexact & (np.less(number, 0) != np.less(safe, 0)))
        return np.where(np.equal(by, 0), 0, quotient)

    @override
    def ratio(self, number: Any, by: Any) -> Any:
        if len(by) and lowest(by) > 0:
            return number / by
        return np.where(by == 0, 1.0, number / np.where(by == 0, 1, by))

    @override
    def truncate(self, number: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.asarray(number).astype(np.int64)

    @override
    def sqrt(self, number: Any) -> Any:
        return np.sqrt(number)

    @override
    def wrap(self, number: Any) -> Any:
        return number  # arrays wrap at 64 bits by themselves

    @override
    def highest(self, number: Any) -> int:
        return int(number.max(initial=0))

    @override
    def outside(self, number: Any, highest: int) -> Any:
        if not isinstance(number, np.ndarray):
            return not 0 <= number <= highest
        if not len(number):
            return False
        if number.dtype == np.int64:
            # Negative numbers are very large ones when they are read without a sign.
            if np.maximum.reduce(number.view(np.uint64)) <= highest:
                return False
        elif lowest(number) >= 0 and np.maximum.reduce(number) <= highest:
            return False
        return (number < 0) | (number > highest)

    @override
    def any(self, bits: Any) -> bool:
        return bool(np.count_nonzero(bits) if isinstance(bits, np.ndarray) else bits)

    @override
    def codes(self, rule: str, bits: Any, reasons: tuple[Reason, ...]) -> Any:
        verdicts = self.view.verdicts
        if len(reasons) > MOST_IN_TABLE:
            present, places = np.unique(bits, return_inverse=True)
            codes = [code_of(verdicts, rule, b, reasons) for b in present.tolist()]
            return np.asarray(codes, np.int32)[places]
        table = verdicts.table(rule, reasons)
        found = table.take(bits)
        if len(found) and lowest(found) < 0:
            fill_table(verdicts, rule, reasons, bits[found < 0])
            found = table.take(bits)
        return found

    @override
    def fail_where(self, flags: Any, text: str) -> None:
        self.errors = dict.fromkeys(np.flatnonzero(flags).tolist(), text) | self.errors

    @override
    def fail(self, text: str) -> Any:
        self.errors = dict.fromkeys(range(len(self.index)), text) | self.errors
        return np.zeros(len(self.index), np.int32)

    @override
    def either(self, many: Callable[[ManyRows], Any], one: Callable[[OneRow], Any]) -> Any:
        return many(self)

    @override
    def each(self) -> Iterator[tuple[int, OneRow]]:
        for position, row in enumerate(self.index.tolist()):
            yield position, OneRow(self.view, row, self.errors, position)

    @override
    def map(self, answer: Callable[[OneRow], int]) -> Any:
        return np.fromiter((answer(row) for _, row in self.each()), np.int64, len(self.index))

    @override
    def sparse(self, rows: Container[int], answer: Callable[[OneRow], int], other: int = 0) -> Any:
        answers = np.full(len(self.index), other, np.int64)
        chosen = np.isin(self.index, np.fromiter(rows, np.int64))  # type: ignore[call-overload]
        for position in np.flatnonzero(chosen).tolist():
            row = OneRow(self.view, int(self.index[position]), self.errors, position)
            answers[position] = answer(row)
        return answers

    @override
    def by_signature(self, flags: list[Any], answer: Callable[[tuple[bool, ...]], int]) -> Any:
        if not flags:
            return np.full(len(self.index), answer(()))
        packed = np.packbits(np.array(flags, np.bool_), axis=0)
        _, first, inverse = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        answers = [answer(tuple(bool(flag[i]) for flag in flags)) for i in first.tolist()]
        return np.array(answers, np.int64)[inverse.ravel()]


class OneRow(Rows[Scalar]):
    """One row of a view, read as plain numbers."""

    __slots__ = ("errors", "position", "row", "view")
    modified = False

    def __init__(
        self, view: View, row: int, errors: dict[int, str] | None = None, position: int = 0
    ) -> None:
        self.view = view
        self.row = row
        self.errors: dict[int, str] = {} if errors is None else errors
        self.position = position

    @property
    def name(self) -> str:
        """The node's name."""
        return self.view.nodes.names[self.row]

    @property
    def node_labels(self) -> dict[str, str]:
        """The node's labels."""
        node = self.view.nodes.objects[self.row]
        return node.labels if node is not None else {}

    def residents(self) -> list[Resident]:
        """The pods on the row, in their order."""
        return self.view.pods.residents[self.row]

    def ports(self) -> set[Port]:
        """The host ports in use on the row."""
        return self.view.pods.ports[self.row]

    def nominated_pods(self) -> list[Resident]:
        """The pods that a trial put on the row because they are nominated to it."""
        return []

    def labelled_pods(self) -> list[Resident]:
        """The pods on the row whose labels count for the affinity of other pods."""
        return self.residents()

    @override
    def __len__(self) -> int:
        return 1

    @override
    def requested(self, resource: int) -> Any:
        return self.view.pods.requested[resource].item(self.row)

    @override
    def allocatable(self, resource: int) -> Any:
        return self.view.nodes.allocatable[resource].item(self.row)

    @override
    def offers(self, resource: int) -> Any:
        return self.allocatable(resource) != 0

    @override
    def nonzero_requested(self, resource: int) -> Any:
        return self.view.pods.nonzero_requested[resource].item(self.row)

    @override
    def pod_count(self) -> Any:
        return self.view.pods.counts.item(self.row)

    @override
    def allowed_pods(self) -> Any:
        return self.view.nodes.allowed_pods.item(self.row)

    @override
    def on_row(self, tally: Tally) -> Any:
        return tally.on(self.row)

    @override
    def domain(self, tally: Tally, key: str) -> Any:
        return tally.in_domain(key, self.view.nodes.label_column(key).ids.item(self.row))

    @override
    def weighted_domain(self, weighted: list[tuple[int, Tally]], key: str) -> Any:
        return sum(weight * self.domain(tally, key) for weight, tally in weighted)

    @override
    def fact(self, column: FactColumn | LabelColumn, answer: Callable[[Any], int]) -> Any:
        return answer(column.values[column.ids.item(self.row)])

    @override
    def flag(self, column: FactColumn | LabelColumn, answer: Callable[[Any], bool]) -> Any:
        return answer(column.values[column.ids.item(self.row)])

    @override
    def accepts(self, requirement: Requirement) -> Any:
        return requirement.accepts(self.node_labels.get(requirement.key))

    @override
    def has_label(self, key: str) -> Any:
        return key in self.node_labels

    @override
    def label_ids(self, key: str) -> Any:
        return self.view.nodes.label_column(key).ids.item(self.row)

    @override
    def label_entry(self, table: np.ndarray, key: str) -> Any:
        return table.item(self.label_ids(key))

    @override
    def label_flag(self, table: np.ndarray, key: str) -> Any:
        return table.item(self.label_ids(key))

    @override
    def matches_fields(self, fields: FieldSelector) -> Any:
        return fields.matches({NAME_FIELD: self.name})

    @override
    def is_node(self, name: str) -> Any:
        return self.name == name

    @override
    def port_conflict(self, wanted: Iterable[Port]) -> Any:
        return any(conflict(port, other) for port in self.ports() for other in wanted)

    @override
    def has_image(self, name: str) -> Any:
        return self.row in self.view.nodes.images.get(name, NO_NODES).counts

    @override
    def image_size(self, name: str) -> Any:
        image = self.view.nodes.images.get(name, NO_NODES)
        return image.size if self.row in image.counts else 0

    @override
    def image_nodes(self, name: str) -> Any:
        return self.view.nodes.images.get(name, NO_NODES).counts.get(self.row, 0)

    @override
    def full(self, value: int) -> Any:
        return value

    @override
    def flags(self, value: bool) -> Any:
        return value

    @override
    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no

    @override
    def divide(self, number: Any, by: Any) -> Any:
        if by == 0:
            return 0
        quotient = abs(number) // abs(by)
        return -quotient if (number < 0) != (by < 0) else quotient

    @override
    def ratio(self, number: Any, by: Any) -> Any:
        return float(number) / float(by) if by else 1.0

    @override
    def truncate(self, number: Any) -> Any:
        return int(number) if -TOP <= number < TOP else -TOP

    @override
    def sqrt(self, number: Any) -> Any:
        return math.sqrt(number)

    @override
    def wrap(self, number: Any) -> Any:
        return wrap(number)

    @override
    def highest(self, number: Any) -> int:
        return int(max(0, number))

    @override
    def outside(self, number: Any, highest: int) -> Any:
        return not 0 <= number <= highest

    @override
    def any(self, bits: Any) -> bool:
        return bool(bits)

    @override
    def codes(self, rule: str, bits: Any, reasons: tuple[Reason, ...]) -> Any:
        return code_of(self.view.verdicts, rule, int(bits), reasons)

    @override
    def fail_where(self, flags: Any, text: str) -> None:
        if flags:
            self.errors.setdefault(self.position, text)

    @override
    def fail(self, text: str) -> Any:
        self.errors.setdefault(self.position, text)
        return FITS

    @override
    def either(self, many: Callable[[ManyRows], Any], one: Callable[[OneRow], Any]) -> Any:
        return one(self)

    @override
    def each(self) -> Iterator[tuple[int, OneRow]]:
        yield self.position, self

    @override
    def map(self, answer: Callable[[OneRow], int]) -> Any:
        return answer(self)

    @override
    def sparse(self, rows: Container[int], answer: Callable[[OneRow], int], other: int = 0) -> Any:
        return answer(self)  # always asked, since the row may be modified

    @override
    def by_signature(self, flags: list[Any], answer: Callable[[tuple[bool, ...]], int]) -> Any:
        return answer(tuple(map(bool, flags)))
