"""Some rows of the view, as a rule reads them: many as arrays, one as plain ints.

A rule is one expression over what `requested`, `where`, `divide` and the others return, and that
expression holds for both forms. One row of plain ints costs less than one row of NumPy; many rows
cost next to nothing as arrays. `TrialRow` is one row with pods added and taken away, never stored
anywhere.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from podium.engine.rows.one import NAME_FIELD, OneRow, code_of
from podium.engine.state.tallies import ABSENT, Flags, Ints, LabelColumn, Tally
from podium.engine.state.verdicts import Reason
from podium.engine.state.view import ImageState

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator

    from podium.engine.state.pod_class import Port
    from podium.engine.state.view import FactColumn, View
    from podium.objects.selectors.selectors import FieldSelector, Requirement

__all__ = ["NAME_FIELD", "ManyRows", "OneRow", "Rows"]

T = TypeVar("T")
#: Integers below this are exact as doubles.
EXACT = 1 << 53


class ManyRows:
    """Rows of a view, read as arrays in the order of `index`."""

    __slots__ = ("errors", "index", "memo", "view")
    #: Whether pods were added or taken away for this look only.
    on_trial = False

    def __init__(
        self, view: View, index: np.ndarray, memo: dict[Hashable, Any] | None = None
    ) -> None:
        self.view = view
        self.index = index
        self.memo = memo
        #: Errors found by a predicate: position among these rows -> text.
        self.errors: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.index)

    # Columns
    def requested(self, resource: int) -> Ints:
        """What the pods of the row use of a resource."""
        return self.view.requested[resource][self.index]

    def allocatable(self, resource: int) -> Ints:
        """What the row has of a resource."""
        if self.memo is None:
            return self.view.allocatable[resource][self.index]
        found = self.memo.get(("allocatable", resource))
        if found is None:
            found = self.view.allocatable[resource][self.index]
            self.memo["allocatable", resource] = found
        return found

    def assumed(self, resource: int) -> Ints:
        """cpu (0) or memory (1) of the row's pods, as the scores count it."""
        return self.view.assumed[resource][self.index]

    def pod_count(self) -> Ints:
        """How many pods the row holds."""
        return self.view.pod_count[self.index]

    def allowed_pods(self) -> Ints:
        """How many pods the row may hold."""
        return self.view.allowed_pods[self.index]

    def on_row(self, tally: Tally) -> Ints:
        """What the tally counts on the row itself."""
        return tally.rows[self.index]

    def domain(self, tally: Tally, key: str) -> Ints:
        """What the tally counts in the row's domain of a label key; 0 where the key is absent."""
        return tally.by_domain(key)[self.label_ids(key)]

    def look_up(self, table: np.ndarray, key: str) -> Any:
        """The entry of a table by value id for the row's value of a label key."""
        return table[self.label_ids(key)]

    def weighted_domain(self, weighted: list[tuple[int, Tally]], key: str) -> Ints:
        """The weighted sum of several tallies in the row's domain of a label key."""
        weight, tally = weighted[0]
        table = tally.by_domain(key) * weight
        for weight, tally in weighted[1:]:
            other = tally.by_domain(key)
            size = min(len(table), len(other))
            table = table[:size] + other[:size] * weight
        return table[self.label_ids(key)]

    def total(self, tally: Tally, key: str) -> int:
        """What the tally counts on all rows that have the key."""
        return tally.total(key)

    # Node facts
    def fact(self, column: FactColumn, answer: Callable[[Any], int | bool]) -> Ints:
        """The answer for the row's value of a fact; asked once per distinct value."""
        answers = np.array([answer(value) for value in column.values])
        if (answers == answers[0]).all():
            return np.full(len(self.index), answers[0])
        return answers[self.ids(column)]

    def accepts(self, requirement: Requirement) -> Flags:
        """Whether the row's labels meet a requirement."""
        column = self.view.label_column(requirement.key)
        if requirement.operator in {"Exists", "DoesNotExist"}:
            return (column.ids[self.index] == ABSENT) == (requirement.operator == "DoesNotExist")
        if requirement.operator in {"In", "NotIn"}:
            wanted = requirement.operator == "In"
            table = np.full(len(column.values), not wanted)
            table[[column.index[v] for v in requirement.values if v in column.index]] = wanted
            return table[column.ids[self.index]]
        table = np.fromiter(map(requirement.accepts, column.values), np.bool_, len(column.values))
        return table[column.ids[self.index]]

    def has_label(self, key: str) -> Flags:
        """Whether the row has a label key."""
        return self.view.label_column(key).ids[self.index] != ABSENT

    def label_ids(self, key: str) -> Ints:
        """The id of the row's value of a label key; 0 where it is absent."""
        return self.ids(self.view.label_column(key))

    def ids(self, column: FactColumn | LabelColumn) -> np.ndarray:
        """The ids of an interned column; remembered for as long as the rows stay the same."""
        ids: np.ndarray = self.remembered(id(column), lambda: column.ids[self.index])
        return ids

    def named(self, fields: FieldSelector) -> Flags:
        """Whether the row's fields (its name) meet a field selector."""
        accepted = np.full(len(self.index), not fields.nothing)
        for wanted in fields.requirements:
            if wanted.field == NAME_FIELD:
                accepted &= (self.index == self.view.row_of.get(wanted.value, -1)) == wanted.equal
            else:
                accepted &= wanted.accepts("")
        return accepted

    def is_node(self, name: str) -> Flags:
        """Whether the row is this node."""
        return self.index == self.view.row_of.get(name, -1)

    def remembered(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A fact of these rows that holds while they and their nodes stay the same."""
        if self.memo is None:
            return compute()
        if key not in self.memo:
            self.memo[key] = compute()
        return self.memo[key]  # type: ignore[no-any-return]

    def port_conflict(self, wanted: Iterable[Port]) -> Flags:
        """Whether a pod of the row uses a host port that one of these conflicts with."""
        view = self.view
        used = np.zeros(view.capacity, np.bool_)
        for port in wanted:
            rows = map(view.port_rows.get, view.ports_like(port), repeat(()))
            used[list(chain.from_iterable(rows))] = True
        return used[self.index]

    def image(self, name: str, answer: Callable[[ImageState], Ints]) -> Ints:
        """The answer for what the rows remember of an image; 0 where they have none."""
        states = self.view.images.get(name, {})
        column = np.zeros(self.view.capacity, np.int64)
        rows = np.fromiter(states.keys(), np.int64, len(states))
        known = np.fromiter(chain.from_iterable(states.values()), np.int64, 2 * len(states))
        column[rows] = answer(ImageState(*known.reshape(-1, 2).T))
        return column[self.index]

    # Arithmetic
    def full(self, value: int | bool) -> Any:  # noqa: FBT001 - a constant column
        """The same value on every row."""
        return np.full(len(self.index), value)

    def where(self, condition: Flags, yes: Ints, no: Ints) -> Ints:
        """`yes` where the condition holds, else `no`."""
        # Most conditions hold everywhere or nowhere, which costs less to see than to merge.
        if isinstance(condition, np.ndarray):
            if isinstance(no, np.ndarray) and not condition.any():
                return no
            if isinstance(yes, np.ndarray) and condition.all():
                return yes
        return np.where(condition, yes, no)

    def divide(self, number: Ints, by: Ints) -> Ints:
        """Integer division that truncates toward zero; 0 where the divisor is 0."""
        if not len(self.index):
            return number
        least, most = number.min(), number.max()
        if isinstance(by, int):
            if by > 0 and least >= 0:
                return number // by
        elif least > -EXACT and most < EXACT and by.min() > 0:
            # Doubles hold these exactly, and their quotient truncates to the right integer.
            return (number / by).astype(np.int64)
        safe = np.where(np.equal(by, 0), 1, by)
        quotient = number // safe
        inexact = quotient * safe != number
        quotient = quotient + (inexact & (np.less(number, 0) != np.less(safe, 0)))
        return np.where(np.equal(by, 0), 0, quotient)

    def ratio(self, number: Ints, by: Ints) -> Any:
        """Division in doubles; 1.0 where the divisor is 0."""
        if len(by) and by.min() > 0:
            return number / by
        return np.where(by == 0, 1.0, number / np.where(by == 0, 1, by))

    def truncate(self, number: Any) -> Ints:
        """A double as an integer, truncated toward zero; the lowest one if it does not fit."""
        with np.errstate(invalid="ignore"):
            return np.asarray(number).astype(np.int64)

    def wrap(self, number: Ints) -> Ints:
        """Arrays wrap at 64 bits by themselves."""
        return number

    def highest(self, number: Ints) -> int:
        """The largest of all rows, at least 0."""
        return int(number.max(initial=0))

    # Verdicts
    def some(self, bits: Ints) -> bool:
        """Whether any bit is set on any row."""
        return bool(np.any(bits))

    def codes(self, predicate: str, bits: Ints, reasons: tuple[Reason, ...]) -> Ints:
        """Turn bits (bit i set: reason i applies) into verdict codes."""
        present = np.unique(bits) if len(reasons) > 16 else np.flatnonzero(np.bincount(bits))
        if not len(present) or not present[-1]:
            return np.zeros(len(self.index), np.int32)
        verdicts = self.view.verdicts
        codes = [code_of(verdicts, predicate, int(b), reasons) for b in present]
        return np.asarray(codes, np.int32)[np.searchsorted(present, bits)]

    def either(self, many: Callable[[], Ints], one: Callable[[OneRow], int]) -> Ints:  # noqa: ARG002
        """What is kept for many rows; a single row, which may be on trial, is asked itself."""
        return many()

    def each(self) -> Iterator[tuple[int, OneRow]]:
        """Every row by itself with its position, for rules that must look at pods one by one."""
        for position, row in enumerate(self.index.tolist()):
            yield position, OneRow(self.view, row, self.errors, position)

    def map(self, answer: Callable[[OneRow], int]) -> Ints:
        """The answer of a one-row rule for every row."""
        return np.fromiter((answer(row) for _, row in self.each()), np.int64, len(self.index))

    def sparse(self, rows: Container[int], answer: Callable[[OneRow], int], other: int = 0) -> Ints:
        """The answer of a one-row rule for some rows, and `other` everywhere else."""
        answers = np.full(len(self.index), other, np.int64)
        chosen = np.isin(self.index, np.fromiter(rows, np.int64))  # type: ignore[call-overload]
        for position in np.flatnonzero(chosen).tolist():
            row = OneRow(self.view, int(self.index[position]), self.errors, position)
            answers[position] = answer(row)
        return answers

    def by_signature(self, flags: list[Flags], answer: Callable[[tuple[bool, ...]], int]) -> Ints:
        """The answer for each row's combination of flags; asked once per distinct combination."""
        if not flags:
            return np.full(len(self.index), answer(()))
        packed = np.packbits(np.array(flags, np.bool_), axis=0)
        _, first, inverse = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        answers = [answer(tuple(bool(flag[i]) for flag in flags)) for i in first.tolist()]
        return np.array(answers, np.int64)[inverse.ravel()]

    def fail_where(self, flags: Flags, text: str) -> None:
        """An error on some rows."""
        self.errors = dict.fromkeys(np.flatnonzero(flags).tolist(), text) | self.errors

    def fail(self, text: str) -> Ints:
        """The same error on every row."""
        self.fail_where(self.full(True), text)  # noqa: FBT003 - a column of True
        return np.zeros(len(self.index), np.int32)


Rows = Any  #: ManyRows or OneRow; rules hold for both.
